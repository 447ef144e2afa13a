//! Interfaces, addresses and routes that the configuration needs and this host does not have yet.
//!
//! The daemon starts without them: sockets are bound to addresses that come later, the kernel
//! applies rules as soon as an interface with their name exists, and tunnels are set up once there
//! is a route. This module only reports them, after each of the kernel's notifications.

use config::{Address, Config, Start};
use control::Trouble;
use os::routes::MARK;
use os::{Error, Links, Netlink};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Most addresses of peers whose routes are looked up after each notification.
const MOST_ROUTES: usize = 64;

/// The missing interfaces, addresses and routes when the kernel was last asked.
#[derive(Debug, Default)]
pub struct Awaited(Vec<Missing>);

#[derive(Debug, PartialEq, Eq)]
struct Missing {
    /// The interface, address or route, with its place in the configuration.
    what: String,
    /// Destination of a missing route.
    remote: Option<IpAddr>,
    /// Command that shows when the host has it.
    look: String,
    /// True if the host may lack it, as an interface whose traffic then takes other paths.
    is_spare: bool,
}

impl Awaited {
    /// Asks the kernel again, and logs the differences.
    pub fn look(&mut self, config: &Config, netlink: &Netlink, links: &Links) {
        let missing = match missing(config, netlink, links) {
            Ok(missing) => missing,
            Err(error) => return tracing::warn!("cannot see what this host lacks: {error}"),
        };
        for new in missing.iter().filter(|new| !self.0.contains(new)) {
            match new.is_spare {
                true => tracing::info!("without {}, its traffic takes other paths", new.what),
                false => tracing::warn!("waiting for {}", new.what),
            }
        }
        for found in self.0.iter().filter(|old| !missing.contains(old)) {
            tracing::info!("found {}", found.what);
        }
        self.0 = missing;
    }

    /// Returns the missing ones that this host needs.
    pub fn list(&self) -> Vec<Trouble> {
        let trouble = |missing: &Missing| Trouble {
            task: "wait".to_owned(),
            remote: missing.remote,
            what: format!("waiting for {}", missing.what),
            fix: format!("`{}` has to show it; stratad then continues", missing.look),
            seconds: None,
        };
        let needed = self.0.iter().filter(|missing| !missing.is_spare);
        needed.map(trouble).collect()
    }
}

fn missing(config: &Config, netlink: &Netlink, known: &Links) -> Result<Vec<Missing>, Error> {
    let mut missing = Vec::new();
    let links = netlink.links()?;
    let needed = config.interfaces().into_iter();
    let needed = needed.map(|(key, name)| (key.to_owned(), name, false));
    let spare = config.interfaces_of_traffic();
    let spare = spare.map(|(key, name)| (key, name, true));
    for (key, name, is_spare) in needed.chain(spare) {
        if !links.iter().any(|link| link == name) {
            missing.push(Missing {
                what: format!("the interface {name} (`{key}`)"),
                remote: None,
                look: "ip link".to_owned(),
                is_spare,
            });
        }
    }
    for host in config.linked_hosts() {
        let address = IpAddr::from(host.at.address);
        if known.index(address).is_none() {
            missing.push(Missing {
                what: format!("the interface {} (`{}`)", host.at.interface, host.key()),
                remote: Some(address),
                look: "ip link".to_owned(),
                is_spare: false,
            });
        }
    }
    let addresses = netlink.all_addresses()?;
    for (key, address) in config.addresses() {
        if !addresses.contains(&address) {
            missing.push(Missing {
                what: format!("the address {address} (`{key}`)"),
                remote: None,
                look: "ip address".to_owned(),
                is_spare: false,
            });
        }
    }
    for (address, peer) in destinations(config).into_iter().take(MOST_ROUTES) {
        let link = known.index(address);
        let is_told = missing
            .iter()
            .any(|missing| missing.remote == Some(address));
        if !is_told && !netlink.reaches(address, link, MARK)? {
            missing.push(Missing {
                what: format!("a route to {address} (`peer.{peer}`)"),
                remote: Some(address),
                look: match link {
                    Some(_) => "ip link".to_owned(),
                    None => format!("ip route get {address}"),
                },
                is_spare: false,
            });
        }
    }
    Ok(missing)
}

/// Returns the addresses that tunnels are set up to without a command, each with the first peer
/// that has it.
fn destinations(config: &Config) -> BTreeMap<IpAddr, &str> {
    let mut destinations = BTreeMap::new();
    for peer in config.peers.iter().filter(|peer| peer.start == Start::Auto) {
        if let Some(address) = peer.address.as_ref().and_then(Address::ip) {
            destinations.entry(address).or_insert(&*peer.party.name);
        }
    }
    destinations
}
