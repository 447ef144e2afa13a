//! The daemon's changes to the system, and their removal: the TUN device with its addresses and
//! routes, the UDP sockets, and on a licensed node the diversion of transit packets.
//!
//! All changes are made under the claim to the network namespace ([`claim`]), so any of our state
//! that exists belongs to a predecessor that has ended, and not to another running daemon.
//!
//! Opening first removes the remains of a killed predecessor. A graceful [`Host::close`] leaves no
//! device, route or rule behind, except the lock of `leak = "never"`. The lock is set before
//! everything else and stays until it is removed on purpose ([`unlock`]). Before a restart,
//! [`Host::hand_over`] leaves the tunnel as it is, if the service manager keeps its device.

use crate::assigned::AssignedAddresses;
use crate::awaited::Awaited;
use crate::clear::{self, Clear};
use crate::faults::{self, Faults, Step};
use crate::kept::Kept;
use crate::mobile::Mobile;
use crate::naming::Outer;
use crate::plan;
use crate::sockets::Sockets;
use config::{Config, Offload};
use model::Path;
use node::Way;
use os::resolver::ResolverManager;
use os::routes::{MARK, RoutePlan};
use os::{
    Bulk, Changes, Claim, Divert, Error, Family, Links, Lock, Netlink, Prefix, Reports, Resolver,
    Routes, crash, lock,
};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU8;
use std::{path, process};

/// The daemon's state in the system.
pub struct Host {
    /// The tunnel device, if there are VPN peers.
    pub tunnel: Option<Tunnel>,
    /// The sockets of the main thread.
    pub sockets: Sockets,
    /// The diversion, on a licensed node.
    pub divert: Option<Divert>,
    /// A source of events after which a tunnel may need another path.
    pub changes: Changes,
    /// The sockets for reports of routers, as far as this process may have them.
    pub reports: Vec<Reports>,
    /// This host's role in Mobile IPv4, if it has one.
    pub mobile: Option<Mobile>,
    /// The lock as nftables listed it when it was last set; `None` if nothing is locked.
    locked: Option<String>,
    /// The filter that drops unencrypted packets whose addresses belong inside a tunnel.
    pub clear: Clear,
    /// Hosts outside whose answers pass the lock and the filter.
    outer: Outer,
    /// Parts of the system that the configuration needs and that are not there yet.
    pub awaited: Awaited,
    /// The interfaces of hosts with link-local addresses.
    links: Links,
    netlink: Netlink,
}

/// The tunnel device, the routes into it, and the name servers behind it.
pub struct Tunnel {
    /// The queue of the main thread, for inner packets.
    pub tun: Bulk,
    routes: Routes,
    plan: RoutePlan,
    netlink: Netlink,
    /// Addresses and subnets from peers.
    inside: AssignedAddresses,
    /// Addresses of this host that routes may prefer.
    own: Vec<IpAddr>,
    resolver: Resolver,
    /// Name servers that programs should use while a tunnel is up.
    servers: Vec<IpAddr>,
    /// Name servers that the resolver is currently set to; empty if we have set none.
    asked: Vec<IpAddr>,
}

/// Claims the network namespace for the daemon with this configuration. The error names a daemon
/// that already holds it.
pub fn claim(config: &Config) -> Result<Claim, Error> {
    let file = config.places.file();
    let file = path::absolute(file).unwrap_or_else(|_| file.to_owned());
    Claim::take(&holder(&file.display().to_string()))
}

/// Blocks protected traffic before any daemon runs: at boot, before the network is up. A unit does
/// this at every boot, so a configuration that blocks nothing is no failure.
pub fn lock(config: &Config) -> anyhow::Result<()> {
    let _claim = claim_between_daemons("--lock")?;
    let nothing = AssignedAddresses::default();
    let Some(lock) = plan::lock(config, &nothing, &Outer::default()) else {
        eprintln!("nothing to block: no peer has `leak = \"never\"`");
        return Ok(());
    };
    lock.set()?;
    Ok(Routes::open(&config.tunnel.name)?
        .set(&plan::plan(config, &AssignedAddresses::default(), &[]).without_tunnel())?)
}

/// Removes the lock. The configuration is not read: it may be lost, or have changed.
pub fn unlock() -> anyhow::Result<()> {
    let _claim = claim_between_daemons("--unlock")?;
    Divert::remove_leftovers()?;
    Routes::remove_leftovers()?;
    clear::remove()?;
    Ok(lock::remove()?)
}

/// Claims the network namespace for a change that must not coincide with a running daemon. Without
/// TUN devices no daemon can run, so the lock can be removed there without a claim.
fn claim_between_daemons(task: &str) -> anyhow::Result<Option<Claim>> {
    let taken = match Claim::take(&holder(task)) {
        Err(Error::NoTunDevice) => match Claim::holder()? {
            Some(holder) => Err(Error::Claimed { holder }),
            None => return Ok(None),
        },
        taken => taken,
    };
    match taken {
        Err(Error::Claimed { holder }) => anyhow::bail!(
            "{holder} is running\n  fix: stop it first (`systemctl stop stratad` if it is a unit)"
        ),
        taken => Ok(taken.map(Some)?),
    }
}

/// Describes this process to processes that find the network namespace claimed.
fn holder(task: &str) -> String {
    format!("stratad (process {}, {task})", process::id())
}

/// Sets the interfaces of the configuration's hosts with link-local addresses.
fn name_links(links: &Links, config: &Config) {
    let hosts = config.linked_hosts();
    links.set(hosts.map(|host| (host.at.address, host.at.interface.clone())));
}

/// Opens the sockets for reports of routers. Without them probes find the MTU of a path.
fn reports() -> Vec<Reports> {
    let families = [Family::V4, Family::V6];
    let opened = families.map(|family| {
        let opened = Reports::open(family);
        let told = |error: &Error| tracing::debug!("reports of routers are not heard: {error}");
        opened.inspect_err(told).ok()
    });
    opened.into_iter().flatten().collect()
}

impl Host {
    /// Sets everything up, with what was kept since the last start. The error describes the
    /// obstacle and its remedy.
    pub fn open(
        config: &Config,
        links: &Links,
        kept: &mut Kept,
        faults: &mut Option<Faults>,
    ) -> Result<Self, Error> {
        name_links(links, config);
        let outer = Outer::default();
        let lock = plan::lock(config, &AssignedAddresses::default(), &outer);
        let locked = set(lock.as_ref())?;
        if lock.is_some() {
            crash::point("lock-set");
        }
        // Mobile IP is set up before the sockets, which may be bound to its home address, and
        // before the diversion of packets that it forwards.
        let mobile = Mobile::open(config)?;
        let sockets = match Sockets::open(config, links, kept) {
            Ok(sockets) => sockets,
            Err(error) => {
                mobile.map_or(Ok(()), Mobile::close)?;
                return Err(error);
            }
        };
        crash::point("sockets-bound");
        let mut host = Self {
            tunnel: None,
            sockets,
            divert: None,
            changes: Changes::watch(&config.tunnel.name)?,
            reports: reports(),
            mobile,
            locked,
            clear: Clear::default(),
            outer,
            awaited: Awaited::default(),
            links: links.clone(),
            netlink: Netlink::open()?,
        };
        match host.open_devices(config, kept, faults) {
            Ok(()) => Ok(host),
            Err(error) => {
                if let Err(also) = host.close() {
                    tracing::error!("clean-up failed as well: {also}");
                }
                Err(error)
            }
        }
    }

    /// Sets up the devices. The tunnel comes last, and its routes last of all: a start that fails
    /// earlier leaves the black holes of a predecessor in place, and no protected prefix is
    /// reachable in clear at any time. Remains of a role that the configuration no longer has are
    /// removed too.
    fn open_devices(
        &mut self,
        config: &Config,
        kept: &mut Kept,
        faults: &mut Option<Faults>,
    ) -> Result<(), Error> {
        match &config.divert {
            None => Divert::remove_leftovers()?,
            Some(divert) => {
                self.divert = Some(Divert::open(&os::divert::Options {
                    wired: &divert.wired,
                    wireless: &divert.wireless,
                    clear_tcp: divert.clear_tcp,
                    offload: divert.offload == Offload::Auto,
                })?)
            }
        }
        let mobile = self.mobile.as_ref().map_or_else(Vec::new, Mobile::ports);
        self.clear.start(config, mobile, faults);
        match config.peers.is_empty() {
            true => Routes::remove_leftovers()?,
            false => self.tunnel = Some(Tunnel::open(config, kept.tunnel(config))?),
        }
        match plan::lock(config, &AssignedAddresses::default(), &self.outer) {
            Some(_) => Ok(()),
            None => lock::remove(),
        }
    }

    /// Applies another configuration. The lock closes before anything opens, and opens after
    /// everything is closed. The tunnel device is created with the first peer and removed with the
    /// last.
    pub fn reconfigure(
        &mut self,
        config: &Config,
        faults: &mut Option<Faults>,
    ) -> Result<(), Error> {
        name_links(&self.links, config);
        let lock = plan::lock(
            config,
            self.inside().unwrap_or(&AssignedAddresses::default()),
            &self.outer,
        );
        self.locked = set(lock.as_ref())?;
        self.divert.as_ref().map_or(Ok(()), Divert::restore)?;
        let inside = self.inside().cloned().unwrap_or_default();
        self.clear.set(config, &inside, &self.outer, faults);
        match (&mut self.tunnel, config.peers.is_empty()) {
            (Some(tunnel), false) => {
                tunnel.equip(config)?;
                tunnel.install_routes(config)?;
            }
            (None, false) => self.tunnel = Some(Tunnel::open(config, None)?),
            (tunnel, true) => {
                if let Some(mut tunnel) = tunnel.take() {
                    tunnel.plan.held.clear();
                    tunnel.close()?;
                }
            }
        }
        lock.map_or_else(lock::remove, |_| Ok(()))
    }

    /// Adds the inner addresses that peers assign to the tunnel device, and removes those no longer
    /// assigned. If the system refuses a change, the previous state stays.
    pub fn assign(
        &mut self,
        config: &Config,
        inside: AssignedAddresses,
        faults: &mut Option<Faults>,
    ) -> Result<(), Error> {
        let Some(tunnel) = self.tunnel.as_mut() else {
            return Ok(());
        };
        let inside = inside.remembering(&tunnel.inside, config);
        if tunnel.inside == inside {
            return Ok(());
        }
        let lock = plan::lock(config, &inside, &self.outer);
        if lock.is_some() {
            faults::step(faults, Step::Lock)?;
        }
        self.locked = set(lock.as_ref())?;
        self.clear.set(config, &inside, &self.outer, faults);
        let taken = tunnel.assign(config, inside, faults);
        if taken.is_err() {
            self.clear.set(config, &tunnel.inside, &self.outer, faults);
            let before = plan::lock(config, &tunnel.inside, &self.outer);
            self.locked = set(before.as_ref())?;
        }
        taken
    }

    /// Lets answers of these hosts pass the lock and the filter, and no others.
    pub fn open_to(
        &mut self,
        config: &Config,
        outer: Outer,
        faults: &mut Option<Faults>,
    ) -> Result<(), Error> {
        if self.outer == outer {
            return Ok(());
        }
        self.outer = outer;
        let inside = self.inside().cloned().unwrap_or_default();
        self.clear.set(config, &inside, &self.outer, faults);
        let lock = plan::lock(config, &inside, &self.outer);
        self.locked = set(lock.as_ref())?;
        Ok(())
    }

    /// Returns the name servers behind tunnels that programs use, or would use.
    pub fn servers_inside(&self) -> &[IpAddr] {
        self.tunnel.as_ref().map_or(&[], |tunnel| &tunnel.servers)
    }

    /// Returns the hosts outside whose answers pass.
    pub const fn outer(&self) -> &Outer {
        &self.outer
    }

    /// Handles a change of interfaces, addresses or routes.
    pub fn look(&mut self, config: &Config) -> Result<(), Error> {
        self.links.look();
        self.awaited.look(config, &self.netlink, &self.links);
        let tunnel = self.tunnel.as_mut();
        tunnel.map_or(Ok(()), |tunnel| tunnel.follow_addresses(config))
    }

    /// Returns system state that this host's roles need and that another program has removed.
    pub fn missing(&self, config: &Config) -> Result<Vec<String>, Error> {
        let tunnel = self.tunnel.as_ref();
        let mut missing = tunnel.map_or(Ok(Vec::new()), |tunnel| tunnel.missing(config))?;
        let divert = self.divert.as_ref();
        missing.extend(divert.map_or(Ok(Vec::new()), Divert::missing)?);
        let mobile = self.mobile.as_ref();
        missing.extend(mobile.map_or(Ok(Vec::new()), Mobile::missing)?);
        if self.locked.is_some() && self.locked != lock::listing()? {
            missing.push(format!("nftables {}", lock::NAME));
        }
        if self.clear.is_missing()? {
            missing.push(format!("nftables {}", os::clear::NAME));
        }
        Ok(missing)
    }

    /// Restores missing state. The lock comes first: it holds while routes are missing. A failure
    /// does not prevent the restoration of the rest.
    pub fn restore(&mut self, config: &Config, faults: &mut Option<Faults>) -> Result<(), Error> {
        if self.clear.is_missing().unwrap_or(true) {
            self.clear.restore(faults);
        }
        let nothing = AssignedAddresses::default();
        let inside = self.inside().unwrap_or(&nothing);
        let lock = plan::lock(config, inside, &self.outer);
        let locked = set(lock.as_ref()).map(|locked| self.locked = locked);
        let tunnel = self.tunnel.as_ref();
        let routes = tunnel.map_or(Ok(()), |tunnel| tunnel.restore(config));
        let divert = self.divert.as_ref().map_or(Ok(()), Divert::restore);
        let mobile = self.mobile.as_ref().map_or(Ok(()), Mobile::restore);
        locked.and(routes).and(divert).and(mobile)
    }

    /// Returns the addresses and subnets from peers.
    pub fn inside(&self) -> Option<&AssignedAddresses> {
        self.tunnel.as_ref().map(|tunnel| &tunnel.inside)
    }

    /// Returns the ends of the main thread's packets: the sockets, and the tunnel device.
    pub fn ends(&mut self) -> (&mut Sockets, Option<&mut Bulk>) {
        let tun = self.tunnel.as_mut().map(|tunnel| &mut tunnel.tun);
        (&mut self.sockets, tun)
    }

    /// Returns the MTU of the interface by which a path leaves, if it has a route.
    pub fn interface_mtu(&self, path: Path) -> Option<u16> {
        let (local, remote) = (path.local.ip(), path.remote.ip());
        let link = self.links.scope(path.remote);
        let mtu = self.netlink.egress_mtu(local, remote, link, MARK).ok()??;
        // The MTU of loopback exceeds the longest datagram.
        Some(u16::try_from(mtu).unwrap_or(u16::MAX))
    }

    /// Returns the address pairs on which packets can leave for these peers, the best first for
    /// each peer. The tunnel's own addresses are excluded, because they are behind the tunnel.
    pub fn ways(&self, config: &Config, remotes: &[IpAddr]) -> Result<Vec<Way>, Error> {
        let inside = |local: &IpAddr| {
            let mut inside = config.tunnel.addresses.iter();
            inside.any(|prefix| prefix.address() == *local)
        };
        let bound = &config.listen.addresses;
        let ours = |local: &IpAddr| (bound.is_empty() || bound.contains(local)) && !inside(local);
        let mut ways = Vec::new();
        for &remote in remotes {
            let link = self.links.index(remote);
            let sources = self.netlink.sources(remote, link, MARK)?;
            let ours = sources.into_iter().filter(ours);
            ways.extend(ours.map(|local| Way { local, remote }));
        }
        Ok(ways)
    }

    /// Returns the interfaces of this host's addresses, if a peer's traffic depends on them.
    pub fn interfaces(&self, config: &Config) -> Result<BTreeMap<IpAddr, String>, Error> {
        let mut peers = config.peers.iter();
        match peers.any(|peer| !peer.traffic.is_empty()) {
            true => self.netlink.interfaces(),
            false => Ok(BTreeMap::new()),
        }
    }

    /// Removes what the next process sets up again, and leaves the tunnel: the service manager has
    /// a copy of its device, so packets wait in the queue, and what protects them stays closed.
    pub fn hand_over(self) -> Result<(), Error> {
        let divert = self.divert.map_or(Ok(()), Divert::close);
        let mobile = self.mobile.map_or(Ok(()), Mobile::close);
        divert.and(mobile)
    }

    /// Removes everything. An error does not stop the removal; the first error is returned.
    pub fn close(self) -> Result<(), Error> {
        // A failed start leaves a predecessor's black holes, and with them its filter.
        let stays = self.tunnel.is_none() && Routes::held().is_ok_and(|held| !held.is_empty());
        let routes = self.tunnel.map_or(Ok(()), Tunnel::close);
        let divert = self.divert.map_or(Ok(()), Divert::close);
        let mobile = self.mobile.map_or(Ok(()), Mobile::close);
        let clear = if stays { Ok(()) } else { clear::remove() };
        routes.and(divert).and(mobile).and(clear)
    }
}

impl Tunnel {
    /// Continues with a kept device, or creates one.
    fn open(config: &Config, kept: Option<Bulk>) -> Result<Self, Error> {
        let name = config.tunnel.name.clone();
        let manager = config.tunnel.resolver.clone().map(ResolverManager::File);
        let manager = manager.unwrap_or_else(ResolverManager::of_this_machine);
        let resolver = Resolver::new(name, manager);
        resolver.restore()?;
        let tun = kept.map_or_else(|| make(config), Ok)?;
        let netlink = Netlink::open()?;
        let routes = Routes::open(tun.name())?;
        let left = Routes::black_holes()?;
        let mut tunnel = Self {
            tun,
            routes,
            plan: RoutePlan::default(),
            netlink,
            inside: AssignedAddresses::left(&left, config),
            own: Vec::new(),
            resolver,
            servers: Vec::new(),
            asked: Vec::new(),
        };
        tunnel.equip(config)?;
        tunnel.install_routes(config)?;
        Ok(tunnel)
    }

    /// Brings the device up and adds its addresses.
    fn equip(&self, config: &Config) -> Result<(), Error> {
        let name = self.tun.name();
        self.netlink.link_up(name)?;
        for address in self.missing_addresses(config)? {
            self.netlink.add_address(name, address)?;
            crash::point("address-given");
        }
        Ok(())
    }

    /// Removes addresses that a kept device has from the last start, and that neither the
    /// configuration nor a peer assigns now.
    pub fn drop_old_addresses(&self, config: &Config) -> Result<(), Error> {
        let wanted = self.addresses(config);
        let present = self.netlink.addresses(self.tun.name())?.into_iter();
        let mut old = present.filter(|address| !wanted.contains(address));
        old.try_for_each(|address| self.netlink.drop_address(self.tun.name(), address))?;
        // The kernel removes all IPv4 routes through a device that loses its last IPv4 address.
        self.routes.set(&self.plan)
    }

    /// Restores missing state. Unlike at a start, nothing else prevents that.
    fn restore(&self, config: &Config) -> Result<(), Error> {
        let equipped = self.equip(config);
        equipped.and(self.routes.set(&self.plan))
    }

    /// Returns the state that [`Tunnel::restore`] would restore, in the notation of ip(8).
    fn missing(&self, config: &Config) -> Result<Vec<String>, Error> {
        let name = self.tun.name();
        let up = (!self.netlink.is_up(name)?).then(|| format!("link {name} up"));
        let addresses = self.missing_addresses(config)?.into_iter();
        let addresses = addresses.map(|address| format!("address {address} dev {name}"));
        let routes = self.routes.missing(&self.plan)?;
        Ok(up.into_iter().chain(addresses).chain(routes).collect())
    }

    /// Returns the addresses of the file and of peers that the device lacks.
    fn missing_addresses(&self, config: &Config) -> Result<Vec<Prefix>, Error> {
        let present = self.netlink.addresses(self.tun.name())?;
        let mut wanted = self.addresses(config);
        wanted.retain(|address| !present.contains(address));
        Ok(wanted)
    }

    /// Returns the addresses of the file and of peers.
    fn addresses(&self, config: &Config) -> Vec<Prefix> {
        let own = config.tunnel.addresses.iter().map(|own| Prefix {
            address: own.address(),
            length: own.length(),
        });
        let lent = lent(config, &self.inside).into_iter();
        own.chain(lent.map(Prefix::from)).collect()
    }

    /// Routes the protected prefixes of a configuration into the tunnel, and nothing else. Its name
    /// servers apply from the next [`Tunnel::resolve`] on.
    fn install_routes(&mut self, config: &Config) -> Result<(), Error> {
        let own = self.netlink.source_addresses(self.tun.name())?;
        let mut plan = plan::plan(config, &self.inside, &own);
        let addresses = config.peers.iter();
        let addresses = addresses.filter_map(|peer| peer.address.as_ref()?.ip());
        self.routes.check_peers(&plan, addresses)?;
        // An address may be gone again, or belong to another routing domain (VRF).
        if let Err(error) = self.routes.set(&plan) {
            tracing::warn!("routes into tunnels prefer no address of this host: {error}");
            plan = plan::plan(config, &self.inside, &[]);
            self.routes.set(&plan)?;
        }
        crash::point("routes-set");
        self.plan = plan;
        self.own = own;
        self.servers = [&config.tunnel.dns, self.inside.servers()].concat();
        Ok(())
    }

    /// Chooses the source addresses of routes again after this host's addresses have changed. When
    /// an address is removed, the kernel removes the IPv4 routes that prefer it.
    fn follow_addresses(&mut self, config: &Config) -> Result<(), Error> {
        let own = self.netlink.source_addresses(self.tun.name())?;
        match own == self.own {
            true => Ok(()),
            false => self.install_routes(config),
        }
    }

    /// Changes the assigned addresses. An address is added before a route prefers it, and removed
    /// after the last such route.
    fn assign(
        &mut self,
        config: &Config,
        inside: AssignedAddresses,
        faults: &mut Option<Faults>,
    ) -> Result<(), Error> {
        let before = std::mem::replace(&mut self.inside, inside);
        let (old, new) = (lent(config, &before), lent(config, &self.inside));
        let added: Vec<_> = new.iter().filter(|new| !old.contains(new)).collect();
        if let Err(error) = self.give(config, &added, faults) {
            self.inside = before;
            if let Err(also) = self.give_back(config, &added) {
                tracing::error!("cannot restore the previous state: {also}");
            }
            return Err(error);
        }
        for address in old.iter().filter(|old| !new.contains(old)) {
            self.netlink
                .drop_address(self.tun.name(), (*address).into())?;
            crash::point("leased-address-taken");
        }
        // The kernel removes all IPv4 routes through a device that loses its last IPv4 address.
        self.routes.set(&self.plan)
    }

    fn give(
        &mut self,
        config: &Config,
        addresses: &[&IpAddr],
        faults: &mut Option<Faults>,
    ) -> Result<(), Error> {
        for address in addresses {
            faults::step(faults, Step::Address)?;
            self.netlink
                .add_address(self.tun.name(), (**address).into())?;
            crash::point("leased-address-given");
        }
        faults::step(faults, Step::Route)?;
        self.install_routes(config)
    }

    /// Removes those of the addresses that were added, after the last route that prefers them.
    fn give_back(&mut self, config: &Config, addresses: &[&IpAddr]) -> Result<(), Error> {
        self.install_routes(config)?;
        let name = self.tun.name();
        addresses.iter().try_for_each(|address| {
            let address = Prefix::from(**address);
            self.netlink.drop_address(name, address)
        })
    }

    /// Sets the system's name servers to those behind the tunnel while it is up.
    pub fn resolve(&mut self, up: bool, faults: &mut Option<Faults>) -> Result<(), Error> {
        let servers = if up { self.servers.as_slice() } else { &[] };
        if self.asked == servers {
            return Ok(());
        }
        faults::step(faults, Step::Resolver)?;
        match servers {
            [] => {
                self.resolver.restore()?;
                crash::point("resolver-restored");
            }
            servers => self.resolver.set(servers)?,
        }
        self.asked = servers.to_vec();
        Ok(())
    }

    fn close(mut self) -> Result<(), Error> {
        let resolver = self.resolve(false, &mut None);
        let routes = if self.plan.held.is_empty() {
            let closed = self.routes.close();
            crash::point("rules-and-routes-removed");
            closed
        } else {
            let held = self.routes.set(&self.plan.without_tunnel());
            crash::point("lock-kept");
            held
        };
        routes.and(resolver)
    }
}

/// Creates the tunnel device.
fn make(config: &Config) -> Result<Bulk, Error> {
    let offload = config.tunnel.offload == Offload::Auto;
    let queues = config.tunnel.workers > NonZeroU8::MIN;
    let tun = Bulk::open(&config.tunnel.name, config.tunnel.mtu, offload, queues)?;
    crash::point("tun-made");
    Ok(tun)
}

/// Sets the lock, and returns its listing.
fn set(lock: Option<&Lock>) -> Result<Option<String>, Error> {
    match lock {
        Some(lock) => lock.set().and_then(|()| lock::listing()),
        None => Ok(None),
    }
}

/// Returns the addresses that peers assign and that the file does not add to the device anyway.
fn lent(config: &Config, inside: &AssignedAddresses) -> Vec<IpAddr> {
    let own = |address: &IpAddr| {
        let mut own = config.tunnel.addresses.iter();
        own.any(|own| own.address() == *address)
    };
    let lent = inside.addresses();
    lent.filter(|address| !own(address)).collect()
}
