//! Diversion of forwarded packets to a licensed node (DESIGN section 7).
//!
//! Policy routing sends transit packets of interest into a TUN, and the kernel routes packets
//! written to a TUN as if they had arrived there. Each side has a TUN of its own, so the TUN that a
//! packet is read from identifies the side that it came from. The packet is written to the TUN of
//! the side that it **leaves** by: the kernel checks reverse paths by routing a hypothetical
//! answer, and an answer that enters on that side is diverted into that side's TUN, so even the
//! strict check (`rp_filter` 1) passes. Hence a packet passes to the opposite side, and one of the
//! node's own is sent to the side of its receiver.
//!
//! On both sides the following is diverted: UDP from and to port 4500, protocol 50, all UDP between
//! learnt pairs of addresses (fragments have no ports and must stay in order with the rest), and
//! with `clear_tcp` all TCP. Packets to this machine itself are never diverted, because the local
//! table is looked up first. If the process dies, its TUNs and the routes through them disappear,
//! the rules have no effect, and packets take the ordinary route.
//!
//! [`Passage`] moves packets from TUN to TUN.

use crate::installed::Installed;
use crate::netlink::{Route, Rule, Via};
use crate::{Bulk, Error, Family, Netlink, Passage, Prefix, crash, sysctl};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

/// The port of ESP in UDP (RFC 3948).
const NAT_TRAVERSAL: u16 = 4500;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ESP: u8 = 50;

/// Priority of the rules: behind the local table, before that of [`crate::routes`].
pub const PRIORITY: u32 = 7290;

/// Metric of the routes, the only ones in their tables.
const METRIC: u32 = 10;

/// The detour accepts packets of any length; the real interface fragments or refuses what leaves.
const MTU: u16 = 65_535;

/// Most learnt pairs. The kernel tries rules one after the other for every packet, so their number
/// is limited.
const MOST_PAIRS: usize = 256;

/// One of the two sides of a licensed node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// Towards the gateway.
    Wired,
    /// Towards the mobile nodes.
    Wireless,
}

impl Side {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Wired, Self::Wireless];

    /// Returns the other side.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Wired => Self::Wireless,
            Self::Wireless => Self::Wired,
        }
    }

    /// Returns the name of the side's TUN.
    pub const fn device(self) -> &'static str {
        match self {
            Self::Wired => "strata-wired",
            Self::Wireless => "strata-wireless",
        }
    }

    /// Returns the routing table into the side's TUN.
    pub(crate) const fn table(self) -> u32 {
        match self {
            Self::Wired => 7291,
            Self::Wireless => 7292,
        }
    }

    /// Returns the link-local address of the side's TUN. The kernel drops more packets on an
    /// interface without any address.
    const fn address(self) -> IpAddr {
        IpAddr::V4(match self {
            Self::Wired => Ipv4Addr::new(169, 254, 72, 91),
            Self::Wireless => Ipv4Addr::new(169, 254, 72, 92),
        })
    }
}

/// The options of a diversion.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The interface towards the gateway.
    pub wired: &'a str,
    /// The interface towards the mobile nodes.
    pub wireless: &'a str,
    /// True to divert unprotected TCP too.
    pub clear_tcp: bool,
    /// True to exchange packets in bulk, if this kernel supports it.
    pub offload: bool,
}

/// The two TUNs and the rules that fill them.
pub struct Divert {
    /// The transfer of packets between the two TUNs.
    pub passage: Passage,
    netlink: Netlink,
    wired: String,
    wireless: String,
    families: Vec<Family>,
    clear_tcp: bool,
    pairs: BTreeSet<Pair>,
}

/// Two hosts that communicate through this node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    wired: IpAddr,
    wireless: IpAddr,
}

impl Divert {
    /// Starts diverting between two interfaces of the calling thread's network namespace, in each
    /// family that the machine forwards. A predecessor's remains are removed first. An interface
    /// may be missing, now or later: the kernel applies a rule as soon as there is an interface
    /// with its name.
    ///
    /// # Errors
    /// [`Error::NotForwarding`] if it forwards neither; those of [`Bulk::open`].
    pub fn open(options: &Options<'_>) -> Result<Self, Error> {
        let forwards = |family: &Family| sysctl::require_forwarding(*family).is_ok();
        let families: Vec<_> = Family::ALL.into_iter().filter(forwards).collect();
        if families.is_empty() {
            return Err(Error::NotForwarding { family: Family::V4 });
        }
        let netlink = Netlink::open()?;
        remove_all(&netlink)?;
        let tun = |side| open_tun(side, options.offload);
        let divert = Self {
            passage: Passage::new(tun(Side::Wired)?, tun(Side::Wireless)?),
            wired: options.wired.to_owned(),
            wireless: options.wireless.to_owned(),
            netlink,
            families,
            clear_tcp: options.clear_tcp,
            pairs: BTreeSet::new(),
        };
        divert.restore()?;
        Ok(divert)
    }

    /// Returns missing kernel state, in the notation of ip(8).
    pub fn missing(&self) -> Result<Vec<String>, Error> {
        self.installed().missing(&self.netlink)
    }

    /// Restores missing kernel state.
    pub fn restore(&self) -> Result<(), Error> {
        self.installed().restore(&self.netlink)
    }

    /// Removes a predecessor's remains, on a machine that no longer diverts.
    pub fn remove_leftovers() -> Result<(), Error> {
        remove_all(&Netlink::open()?)
    }

    /// Returns the diverted families.
    pub fn families(&self) -> &[Family] {
        &self.families
    }

    /// Diverts all UDP between two hosts in both directions, after a packet that arrived on `from`.
    /// Returns true if the pair is new.
    pub fn learn(
        &mut self,
        from: Side,
        source: IpAddr,
        destination: IpAddr,
    ) -> Result<bool, Error> {
        let pair = Pair::new(from, source, destination);
        if self.pairs.contains(&pair) {
            return Ok(false);
        }
        if self.pairs.len() == MOST_PAIRS {
            return Err(Error::Limit {
                what: "diverting another pair of hosts",
                limit: MOST_PAIRS,
            });
        }
        let [there, back] = self.pair_rules(pair);
        self.netlink.add_rule(&there)?;
        if let Err(error) = self.netlink.add_rule(&back) {
            self.netlink.delete_rule(&there)?;
            return Err(error);
        }
        self.pairs.insert(pair);
        Ok(true)
    }

    /// Reverses [`Divert::learn`], with the same arguments from either side.
    pub fn forget(&mut self, from: Side, source: IpAddr, destination: IpAddr) -> Result<(), Error> {
        let pair = Pair::new(from, source, destination);
        if self.pairs.remove(&pair) {
            for rule in self.pair_rules(pair) {
                self.netlink.drop_rule(&rule)?;
            }
        }
        Ok(())
    }

    /// Stops the diversion and removes all its state: packets take the ordinary route again.
    pub fn close(self) -> Result<(), Error> {
        remove_all(&self.netlink)?;
        crash::point("divert-rules-removed");
        Ok(())
    }

    fn interface(&self, side: Side) -> &str {
        match side {
            Side::Wired => &self.wired,
            Side::Wireless => &self.wireless,
        }
    }

    fn installed(&self) -> Installed<'_> {
        let address = |side: Side| (side.device(), Prefix::host(side.address()));
        Installed {
            devices: Side::ALL.map(Side::device).into(),
            addresses: Side::ALL.map(address).into(),
            routes: self.routes(),
            rules: self.rules(),
        }
    }

    fn routes(&self) -> Vec<Route> {
        let route = |(side, family): (Side, &Family)| Route {
            table: side.table(),
            metric: METRIC,
            ..Route::new(
                Prefix::everything(*family),
                Via::Device(side.device().into()),
            )
        };
        self.each_side_and_family().map(route).collect()
    }

    fn rules(&self) -> Vec<Rule> {
        let mut rules = Vec::new();
        for (side, &family) in self.each_side_and_family() {
            let rule = self.rule(side, family);
            let port = NAT_TRAVERSAL..=NAT_TRAVERSAL;
            rules.extend([
                rule.clone().protocol(UDP).destination_ports(port.clone()),
                rule.clone().protocol(UDP).source_ports(port),
                rule.clone().protocol(ESP),
            ]);
            rules.extend(self.clear_tcp.then(|| rule.protocol(TCP)));
        }
        rules.extend(self.pairs.iter().flat_map(|pair| self.pair_rules(*pair)));
        rules
    }

    fn pair_rules(&self, Pair { wired, wireless }: Pair) -> [Rule; 2] {
        let rule = |side, source, destination| {
            let rule = self.rule(side, Family::from_address(source)).protocol(UDP);
            rule.from(source).to(destination)
        };
        [
            rule(Side::Wired, wired, wireless),
            rule(Side::Wireless, wireless, wired),
        ]
    }

    fn rule(&self, side: Side, family: Family) -> Rule {
        Rule::new(family, PRIORITY, side.table()).iif(self.interface(side))
    }

    fn each_side_and_family(&self) -> impl Iterator<Item = (Side, &Family)> {
        Side::ALL
            .into_iter()
            .flat_map(|side| self.families.iter().map(move |family| (side, family)))
    }
}

impl Pair {
    const fn new(from: Side, source: IpAddr, destination: IpAddr) -> Self {
        let (wired, wireless) = match from {
            Side::Wired => (source, destination),
            Side::Wireless => (destination, source),
        };
        Self { wired, wireless }
    }
}

fn open_tun(side: Side, offload: bool) -> Result<Bulk, Error> {
    let tun = Bulk::open(side.device(), MTU, offload, false)?;
    // Our own device needs no check of reverse paths; that of `all` may still be in force.
    sysctl::set(&format!("net/ipv4/conf/{}/rp_filter", tun.name()), "0")?;
    crash::point("divert-device-made");
    Ok(tun)
}

fn remove_all(netlink: &Netlink) -> Result<(), Error> {
    for side in Side::ALL {
        netlink.cleanup(side.table(), PRIORITY..=PRIORITY)?;
    }
    Ok(())
}
