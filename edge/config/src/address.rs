//! `address` of a peer: an IP address or a name, with or without a port. An address that is bound
//! to a link has the name of an interface of this host.

use crate::reader::Value;
use crate::value::is_device;
use model::is_host_name;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The place at which a peer listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Its address, or the name to look up.
    pub host: Host,
    /// Its UDP port for IKE and ESP. Default: 500 for the first message, then 4500.
    pub port: Option<u16>,
}

/// The host of an [`Address`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// An IP address.
    Ip(IpAddr),
    /// A link-local address on one link of this host. Boxed because most hosts have none.
    Link(Box<OnLink>),
    /// A complete name, without the final dot.
    Name(Box<str>),
}

/// A link-local address (RFC 4291 section 2.5.6), as in `fe80::1%eth0` (RFC 4007 section 11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnLink {
    /// The address.
    pub address: Ipv6Addr,
    /// The interface of this host behind which it is.
    pub interface: String,
}

impl Address {
    /// Returns the IP address, unless the host is a name.
    pub fn ip(&self) -> Option<IpAddr> {
        match &self.host {
            Host::Ip(address) => Some(*address),
            Host::Link(on) => Some(on.address.into()),
            Host::Name(_) => None,
        }
    }

    /// Returns the address and its interface, if it is bound to a link.
    pub fn link(&self) -> Option<&OnLink> {
        match &self.host {
            Host::Link(on) => Some(on),
            Host::Ip(_) | Host::Name(_) => None,
        }
    }

    /// Returns the name, if the host is one.
    pub fn name(&self) -> Option<&str> {
        match &self.host {
            Host::Ip(_) | Host::Link(_) => None,
            Host::Name(name) => Some(name),
        }
    }

    /// Reads `address`: `192.0.2.1`, `[2001:db8::1]:4501`, `fe80::1%eth0`, `gw.example.net` or
    /// `gw.example.net:4501`.
    pub(crate) fn read(value: &Value<'_>) -> Option<Self> {
        value.accepts(|| "IP address or name, with or without a port".to_owned());
        let text = value.text()?;
        let (host, port) = split(text);
        let port = match port {
            None => None,
            Some(port) => Some(read_port(value, text, port)?),
        };
        let host = match host.split_once('%') {
            Some((address, interface)) => read_on_link(value, address, interface)?,
            None => read_host(value, text, host)?,
        };
        Some(Self { host, port })
    }

    /// Reads an address of a host that connects to us: neither a name nor a port.
    pub(crate) fn read_source(value: &Value<'_>) -> Option<Self> {
        match value.text()?.split_once('%') {
            None => value.address().map(Self::from),
            Some((address, interface)) => Some(Self {
                host: read_on_link(value, address, interface)?,
                port: None,
            }),
        }
    }
}

impl Host {
    /// Reads an address or a name without a port.
    pub(crate) fn read(value: &Value<'_>) -> Option<Self> {
        value.accepts(|| "IP address or name".to_owned());
        let text = value.text()?;
        read_host(value, text, text)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Link(on) => on.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for OnLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%{}", self.address, self.interface)
    }
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        Self {
            host: Host::Ip(address),
            port: None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.host, self.port) {
            (host, None) => host.fmt(f),
            (Host::Ip(address), Some(port)) => write!(f, "{}", SocketAddr::new(*address, port)),
            (Host::Link(on), Some(port)) => write!(f, "[{on}]:{port}"),
            (Host::Name(name), Some(port)) => write!(f, "{name}:{port}"),
        }
    }
}

/// Returns the text of an address without the interface of its link.
pub(crate) fn without_link(text: &str) -> String {
    let (address, rest) = text.split_once('%').unwrap_or((text, ""));
    let port = rest.find(']').map_or("", |end| &rest[end..]);
    format!("{address}{port}")
}

/// Separates the port. The colons of an IPv6 address without brackets belong to it.
fn split(text: &str) -> (&str, Option<&str>) {
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        return match rest.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if rest.is_empty() => (host, None),
            None => (text, None),
        };
    }
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => (host, Some(port)),
        _ => (text, None),
    }
}

fn read_port(value: &Value<'_>, text: &str, port: &str) -> Option<u16> {
    let digits = port.bytes().all(|octet| octet.is_ascii_digit());
    let number = port.parse().ok().filter(|port| digits && *port > 0);
    number.or_else(|| {
        value.fault(
            format!("`{}` has no valid port", text.escape_debug()),
            "write a port from 1 to 65535 after the colon, like \"gw.example.net:4501\"",
        )
    })
}

fn read_host(value: &Value<'_>, text: &str, host: &str) -> Option<Host> {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) if address.is_unicast_link_local() => value.fault(
            format!("`{text}` is link-local, so it belongs to one link only"),
            "write the interface of this host behind it, like \"fe80::1%eth0\", or a global address",
        ),
        Ok(address) => Some(Host::Ip(address)),
        Err(_) if is_host_name(host.strip_suffix('.').unwrap_or(host)) => {
            let name = host.strip_suffix('.').unwrap_or(host);
            Some(Host::Name(name.to_ascii_lowercase().into()))
        }
        Err(_) => value.fault(
            format!("`{}` is no IP address and no complete name", text.escape_debug()),
            "write it like \"192.0.2.1\", \"2001:db8::1\" or \"gw.example.net\", with a port like \"gw.example.net:4501\" or \"[2001:db8::1]:4501\"",
        ),
    }
}

/// Reads an address in front of the name of an interface.
fn read_on_link(value: &Value<'_>, address: &str, interface: &str) -> Option<Host> {
    let text = value.text()?.escape_debug();
    // An interface gets another number when it is created again.
    let is_number = interface.bytes().all(|octet| octet.is_ascii_digit());
    match address.parse::<Ipv6Addr>() {
        Ok(address) if !address.is_unicast_link_local() => value.fault(
            format!("`{text}` names an interface, and only link-local addresses belong to one"),
            format!("write \"{address}\" without `%`"),
        ),
        Ok(address) if is_device(interface) && !is_number => {
            let interface = interface.to_owned();
            Some(Host::Link(Box::new(OnLink { address, interface })))
        }
        Ok(_) => value.fault(
            format!("`{text}` does not end with the name of an interface"),
            "write the name as `ip link` shows it, like \"fe80::1%eth0\"",
        ),
        Err(_) => value.fault(
            format!("`{text}` has `%`, and no link-local address in front of it"),
            "write it like \"fe80::1%eth0\", with a port like \"[fe80::1%eth0]:4501\"",
        ),
    }
}
