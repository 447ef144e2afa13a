//! Hosts with a link-local address (RFC 4291 section 2.5.6), and the links that they are on.
//!
//! Such an address is unique on one link only, so a packet to it needs an interface. The engines
//! name a host by its address alone. Here each address has the name of an interface: what leaves
//! gets the index of that interface as its scope, and what arrives through it has no scope. The
//! name decides, so an interface that is removed and created again continues, whatever its index.
//!
//! A host that is not in the list keeps the scope with which its packets arrive. That scope stands
//! for the name that its interface had then.

use model::Path;
use nix::errno::Errno;
use nix::net::if_::{if_indextoname, if_nametoindex};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Most scopes of hosts that are not in the list. A host can only use those of our interfaces.
const MOST_SCOPES: usize = 64;

/// The interface of each host with a link-local address, for all threads.
#[derive(Clone, Debug, Default)]
pub struct Links(Arc<RwLock<Known>>);

#[derive(Debug, Default)]
struct Known {
    hosts: BTreeMap<Ipv6Addr, Link>,
    /// The interfaces of other hosts, by the index with which their packets arrived.
    scopes: BTreeMap<u32, Link>,
}

#[derive(Debug)]
struct Link {
    interface: String,
    /// `None` while no interface has the name.
    index: Option<u32>,
}

impl Links {
    /// Replaces the hosts, each with the name of its interface in the calling thread's network
    /// namespace.
    pub fn set(&self, hosts: impl IntoIterator<Item = (Ipv6Addr, String)>) {
        let link = |interface: String| Link {
            index: index(&interface),
            interface,
        };
        let hosts = hosts.into_iter();
        let hosts = hosts.map(|(host, interface)| (host, link(interface)));
        self.write().hosts = hosts.collect();
    }

    /// Looks all interfaces up again.
    pub fn look(&self) {
        let mut known = self.write();
        let Known { hosts, scopes } = &mut *known;
        for link in hosts.values_mut() {
            link.index = index(&link.interface);
        }
        for (scope, link) in scopes {
            link.index = match interface(*scope) {
                Some(name) => {
                    link.interface = name;
                    Some(*scope)
                }
                None => index(&link.interface),
            };
        }
    }

    /// Returns the index of the interface behind which a host is, if it has a link-local address
    /// and the interface exists.
    pub fn index(&self, host: IpAddr) -> Option<u32> {
        let IpAddr::V6(host) = host else {
            return None;
        };
        self.read().hosts.get(&host).and_then(|link| link.index)
    }

    /// Returns the same for a place that may have a scope.
    pub fn scope(&self, place: SocketAddr) -> Option<u32> {
        let Some(scope) = scope(place) else {
            return self.index(place.ip());
        };
        let current = self.read().scopes.get(&scope).and_then(|link| link.index);
        Some(current.unwrap_or(scope))
    }

    /// Returns the name of the interface that an address belongs to, if it is link-local. An
    /// interface that was never seen has its number as its name.
    pub fn name(&self, place: SocketAddr) -> Option<String> {
        let SocketAddr::V6(address) = place else {
            return None;
        };
        if !address.ip().is_unicast_link_local() {
            return None;
        }
        let known = self.read();
        let Some(scope) = scope(place) else {
            let link = known.hosts.get(address.ip())?;
            return Some(link.interface.clone());
        };
        let known = known.scopes.get(&scope).map(|link| link.interface.clone());
        let name = known.or_else(|| interface(scope));
        Some(name.unwrap_or_else(|| scope.to_string()))
    }

    /// Returns the path on which a packet leaves.
    ///
    /// # Errors
    /// ENODEV: the interface of the remote address is not there, or not known.
    pub fn leaving(&self, path: Path) -> io::Result<Path> {
        if !is_bound(path.remote.ip()) {
            return Ok(path);
        }
        let index = self.scope(path.remote).ok_or(Errno::ENODEV)?;
        Ok(scoped(path, index))
    }

    /// Returns the path of a packet that has arrived, as the engines name it.
    pub fn arriving(&self, path: Path) -> Path {
        let SocketAddr::V6(remote) = path.remote else {
            return path;
        };
        if !remote.ip().is_unicast_link_local() {
            return path;
        }
        if self.is_on(*remote.ip(), remote.scope_id()) {
            return scoped(path, 0);
        }
        self.remember(remote.scope_id());
        path
    }

    /// Returns true if a host is behind the interface of this index. A new index may have come
    /// with the packet, before the notification of its interface has been read.
    fn is_on(&self, host: Ipv6Addr, scope: u32) -> bool {
        let known = self.read();
        let is_on =
            |link: &Link| link.index == Some(scope) || index(&link.interface) == Some(scope);
        known.hosts.get(&host).is_some_and(is_on)
    }

    /// Remembers the name of an interface, by which it is found under another index.
    fn remember(&self, scope: u32) {
        let known = self.read();
        if known.scopes.contains_key(&scope) || known.scopes.len() >= MOST_SCOPES {
            return;
        }
        drop(known);
        if let Some(interface) = interface(scope) {
            let index = Some(scope);
            self.write().scopes.insert(scope, Link { interface, index });
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true for an address that is unique on one link only.
pub(crate) fn is_bound(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

/// Returns the index of an interface in the calling thread's network namespace.
pub fn index(interface: &str) -> Option<u32> {
    if_nametoindex(interface).ok()
}

/// Returns the name of an interface in the calling thread's network namespace.
fn interface(index: u32) -> Option<String> {
    let name = if_indextoname(index).ok()?.into_string().ok()?;
    (!name.is_empty()).then_some(name)
}

/// Returns the scope of an address, if it has one.
fn scope(address: SocketAddr) -> Option<u32> {
    match address {
        SocketAddr::V6(address) => Some(address.scope_id()).filter(|scope| *scope != 0),
        SocketAddr::V4(_) => None,
    }
}

/// Returns a path whose link-local addresses have this scope.
fn scoped(mut path: Path, index: u32) -> Path {
    for end in [&mut path.local, &mut path.remote] {
        if let SocketAddr::V6(end) = end
            && end.ip().is_unicast_link_local()
        {
            end.set_scope_id(index);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: &str = "lo";

    fn links() -> (Links, u32) {
        let links = Links::default();
        let host = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        links.set([
            (host("fe80::1"), LOOPBACK.to_owned()),
            (host("fe80::2"), "absent0".to_owned()),
        ]);
        (links, index(LOOPBACK).unwrap())
    }

    fn path(local: &str, remote: &str) -> Path {
        Path::udp(local.parse().unwrap(), remote.parse().unwrap())
    }

    #[test]
    fn what_leaves_has_the_scope_of_its_interface_and_what_arrives_has_none() {
        let (links, lo) = links();
        let (inside, outside) = (
            path("[fe80::9]:4500", "[fe80::1]:4500"),
            path(
                &format!("[fe80::9%{lo}]:4500"),
                &format!("[fe80::1%{lo}]:4500"),
            ),
        );
        assert_eq!(links.leaving(inside).unwrap(), outside);
        assert_eq!(links.arriving(outside), inside);
        assert_eq!(links.index("fe80::1".parse().unwrap()), Some(lo));
        for shown in [inside, outside] {
            assert_eq!(links.name(shown.remote).as_deref(), Some(LOOPBACK));
        }
    }

    /// A host on another link may have the same address.
    #[test]
    fn what_arrives_through_another_interface_keeps_its_scope() {
        let (links, lo) = links();
        let other = format!("[fe80::1%{}]:4500", lo + 1000);
        let arrived = path("[::]:4500", &other);
        assert_eq!(links.arriving(arrived), arrived);
        assert_eq!(
            links.leaving(arrived).unwrap(),
            arrived,
            "an answer goes back there"
        );
        let unlisted = path("[::]:500", &format!("[fe80::7%{lo}]:500"));
        assert_eq!(links.arriving(unlisted), unlisted);
        assert_eq!(links.name(unlisted.remote).as_deref(), Some(LOOPBACK));
        links.look();
        assert_eq!(links.scope(unlisted.remote), Some(lo));
        let gone = links.name(arrived.remote);
        assert_eq!(gone, Some((lo + 1000).to_string()));
    }

    /// Without a scope, the kernel would take any link.
    #[test]
    fn nothing_leaves_for_an_interface_that_is_not_there() {
        let (links, _) = links();
        for remote in ["[fe80::2]:500", "[fe80::7]:500"] {
            let error = links.leaving(path("[::]:500", remote)).unwrap_err();
            assert!(crate::is_gone(&error), "{error}");
        }
    }

    #[test]
    fn other_addresses_are_left_alone() {
        let (links, _) = links();
        for (local, remote) in [
            ("192.0.2.1:500", "192.0.2.2:500"),
            ("[2001:db8::1]:500", "[2001:db8::2]:500"),
        ] {
            let path = path(local, remote);
            assert_eq!(links.leaving(path).unwrap(), path);
            assert_eq!(links.arriving(path), path);
            assert_eq!(links.index(path.remote.ip()), None);
        }
    }
}
