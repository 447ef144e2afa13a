//! Lookups of a peer whose `address` is a name.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// The name of a peer, its last lookup, and the addresses that were tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lookup {
    /// The name.
    pub name: String,
    /// True while name servers are asked.
    pub asking: bool,
    /// Time since the last lookup ended, in seconds; `None` if there was none.
    pub seconds_ago: Option<u64>,
    /// Name server that answered the last lookup; `None` for the list of hosts of this machine.
    pub server: Option<IpAddr>,
    /// Addresses of the name; empty if none was found.
    pub addresses: Vec<IpAddr>,
    /// Human-readable reason why the last lookup found no address.
    pub failure: Option<String>,
    /// Addresses that were tried since the last attempt began, in that order.
    pub tried: Vec<IpAddr>,
    /// Address at which the peer was last up. It is tried if no name server answers.
    pub last_up: Option<IpAddr>,
}

/// Formats the lookup as one line of text, without its time.
impl fmt::Display for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.failure, self.server) {
            _ if self.seconds_ago.is_none() => f.write_str("not looked up yet")?,
            (Some(failure), _) => f.write_str(failure)?,
            (None, Some(server)) => write!(f, "{} (says {server})", list(&self.addresses))?,
            (None, None) => write!(f, "{} (says /etc/hosts)", list(&self.addresses))?,
        }
        if !self.tried.is_empty() {
            write!(f, "; tried {}", list(&self.tried))?;
        }
        let lasts = self.last_up.filter(|_| self.failure.is_some());
        if let Some(last_up) = lasts {
            write!(f, "; last up at {last_up}")?;
        }
        Ok(())
    }
}

fn list(addresses: &[IpAddr]) -> String {
    let addresses = addresses.iter().map(ToString::to_string);
    addresses.collect::<Vec<_>>().join(", ")
}
