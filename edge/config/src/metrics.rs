//! `[metrics]`: the address at which Prometheus reads counters.

use crate::config::socket_path;
use crate::reader::Value;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// An address to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricsAddress {
    /// Address and port of TCP.
    Tcp(SocketAddr),
    /// Path of a Unix socket.
    Unix(PathBuf),
}

impl MetricsAddress {
    /// Reads `listen`.
    pub(crate) fn read(value: &Value<'_>) -> Option<Self> {
        value.accepts(|| "address and port, or absolute path".to_owned());
        let text = value.text()?;
        if text.starts_with('/') {
            return socket_path(value).map(Self::Unix);
        }
        match text.parse::<SocketAddr>() {
            Ok(address) if address.port() > 0 => Some(Self::Tcp(address)),
            _ => value.fault(
                format!("`{text}` is neither an address with a port nor a path"),
                "write \"127.0.0.1:9580\", \"[::1]:9580\", or the absolute path of a Unix socket",
            ),
        }
    }

    /// Returns the address if other machines may be able to connect to it.
    pub fn exposed(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => (!address.ip().to_canonical().is_loopback()).then_some(*address),
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for MetricsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}
