//! How a licensed node gets to see the packets that pass through it (DESIGN section 7).
//!
//! Policy routing sends transit packets of interest into a TUN, and what is written to a TUN the
//! kernel routes on as if it had arrived there. There is one TUN for each side, so that the side a
//! packet came from is known by the TUN it is read from. It is written to the TUN of the side it
//! **leaves** by: the kernel checks reverse paths by asking which way an answer would take, and an
//! answer entering on that side is diverted into that side's TUN, so even the strict check
//! (`rp_filter` 1) passes. Hence a packet passes to the opposite side, and one of the node's own is
//! sent to the side of its receiver.
//!
//! Diverted are, on both sides: UDP from and to port 4500, protocol 50, all UDP between learnt
//! pairs of addresses (fragments carry no ports and must stay in order with the rest), and with
//! `clear_tcp` all TCP. What is addressed to this machine itself never gets here, because the
//! local table is looked up first. If the process dies, its TUNs and the routes through them go,
//! the rules lead nowhere, and the packets take the ordinary way.
//!
//! How packets go from TUN to TUN is [`Passage`]'s.

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

/// The priority of its rules: behind the local table, before that of [`crate::routes`].
pub const PRIORITY: u32 = 7290;

/// The metric of its routes, the only ones in their tables.
const METRIC: u32 = 10;

/// No packet is too long for the detour; what leaves is fragmented or refused on the real interface.
const MTU: u16 = 65_535;

/// Rules are tried one after the other for every packet the machine routes, so there are not many.
const MOST_PAIRS: usize = 256;

/// One of the two sides a licensed node stands between.
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

    /// The other one.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Wired => Self::Wireless,
            Self::Wireless => Self::Wired,
        }
    }

    /// Name of its TUN.
    pub(crate) const fn device(self) -> &'static str {
        match self {
            Self::Wired => "strata-wired",
            Self::Wireless => "strata-wireless",
        }
    }

    /// The routing table that leads into its TUN.
    pub(crate) const fn table(self) -> u32 {
        match self {
            Self::Wired => 7291,
            Self::Wireless => 7292,
        }
    }

    /// The address of its TUN: link-local, for the kernel judges packets on an interface without
    /// any address more harshly.
    const fn address(self) -> IpAddr {
        IpAddr::V4(match self {
            Self::Wired => Ipv4Addr::new(169, 254, 72, 91),
            Self::Wireless => Ipv4Addr::new(169, 254, 72, 92),
        })
    }
}

/// What is diverted, and how.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The interface towards the gateway.
    pub wired: &'a str,
    /// That towards the mobile nodes.
    pub wireless: &'a str,
    /// Whether TCP that nobody protects is diverted too.
    pub clear_tcp: bool,
    /// Whether packets pass in bulk, if this kernel can.
    pub offload: bool,
}

/// The two TUNs and the rules that fill them.
pub struct Divert {
    /// What packets do there.
    pub passage: Passage,
    netlink: Netlink,
    wired: String,
    wireless: String,
    families: Vec<Family>,
    clear_tcp: bool,
    pairs: BTreeSet<Pair>,
}

/// Two hosts that talk through us.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    wired: IpAddr,
    wireless: IpAddr,
}

impl Divert {
    /// Starts diverting between two interfaces of the calling thread's network namespace, in each
    /// family that the machine forwards. Leftovers of a predecessor are removed first.
    ///
    /// # Errors
    /// [`Error::NotForwarding`] if it forwards neither; those of [`Bulk::open`]; an interface that
    /// does not exist.
    pub fn open(options: &Options<'_>) -> Result<Self, Error> {
        let forwards = |family: &Family| sysctl::require_forwarding(*family).is_ok();
        let families: Vec<_> = Family::ALL.into_iter().filter(forwards).collect();
        if families.is_empty() {
            return Err(Error::NotForwarding { family: Family::V4 });
        }
        let netlink = Netlink::open()?;
        for interface in [options.wired, options.wireless] {
            netlink.mtu(interface)?;
        }
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

    /// What ought to be there and is not, as ip(8) writes it.
    pub fn missing(&self) -> Result<Vec<String>, Error> {
        self.installed().missing(&self.netlink)
    }

    /// Puts that there.
    pub fn restore(&self) -> Result<(), Error> {
        self.installed().restore(&self.netlink)
    }

    /// Removes what a predecessor left, on a machine that no longer diverts.
    pub fn remove_leftovers() -> Result<(), Error> {
        remove_all(&Netlink::open()?)
    }

    /// The families that are diverted.
    pub fn families(&self) -> &[Family] {
        &self.families
    }

    /// Diverts all UDP between two hosts, both ways, as learnt from a packet that came in on `from`.
    /// Returns whether that is new.
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

    /// Takes back what [`Divert::learn`] did. Arguments as there, from either side.
    pub fn forget(&mut self, from: Side, source: IpAddr, destination: IpAddr) -> Result<(), Error> {
        let pair = Pair::new(from, source, destination);
        if self.pairs.remove(&pair) {
            for rule in self.pair_rules(pair) {
                self.netlink.drop_rule(&rule)?;
            }
        }
        Ok(())
    }

    /// Stops: packets take the ordinary way again, and nothing of ours is left.
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
            let rule = self.rule(side, Family::of(source)).protocol(UDP);
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
