//! How an endpoint's packets find the tunnel, and why none leaves in clear.
//!
//! One rule sends every packet to our table, except those that carry our mark: the encapsulated
//! ones. There each protected prefix has two routes: through the TUN, and with a worse metric a
//! black hole. A daemon that dies takes its TUN along and with it the first; the second stays and
//! stops the packets until the next start takes it over or a graceful end removes it. A bypassed
//! prefix inside a protected one is thrown back to the tables behind ours. Routes know neither protocols nor
//! ports, but rules do: what is bypassed of them looks into the main table first.
//!
//! [`Routes::set`] is told what shall be, compares it with what is, adds before it deletes, and so
//! works the same after a crash, at a start and for every change; there is no moment in between at
//! which a protected prefix is open.
//!
//! Prefixes may be held beyond the end ([`Plan::held`]): then their black holes stay, told to
//! everybody who asks for the routes, and [`crate::lock`] holds them against everybody else.

use crate::netlink::{Mark, Route, Rule, Via};
use crate::{Error, Netlink, Prefix, claim, crash, sysctl};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// The routing table of protected prefixes.
pub const TABLE: u32 = 7296;

/// The priority of the rule that leads to it: behind the local table, before the main one.
pub const PRIORITY: u32 = 7296;

/// The priority of the rules that lead bypassed services to the main table: before that one.
const SERVICE_PRIORITY: u32 = PRIORITY - 1;

/// Those of all rules here.
pub(crate) const PRIORITIES: RangeInclusive<u32> = SERVICE_PRIORITY..=PRIORITY;

/// The table of everybody's routes.
const MAIN: u32 = 254;

/// The interface that packets to the host itself take.
const LOOPBACK: &str = "lo";

/// The firewall mark of packets that are not to enter the tunnel, to be given to [`crate::Datagrams`].
pub const MARK: u32 = 0x7296;

/// What the black hole's metric must be worse than.
const TUNNEL_METRIC: u32 = 10;
const BLACKHOLE_METRIC: u32 = 4096;

/// What shall be routed how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Prefixes to be reached only through the tunnel, with the inner source address to prefer.
    pub protected: Vec<(Prefix, Option<IpAddr>)>,
    /// Prefixes to be reached as if there were no tunnel.
    pub bypassed: Vec<Prefix>,
    /// Services to be reached in the same way, wherever their prefixes lead.
    pub services: Vec<Service>,
    /// Prefixes to be reached by no way at all; with those protected, black holes.
    pub held: Vec<Prefix>,
}

/// A protocol at the far end of packets, and its ports if it has any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Where.
    pub prefix: Prefix,
    /// IP protocol.
    pub protocol: u8,
    /// From 1 to 65534; `None` for all, and for fragments, of which nobody sees a port.
    pub ports: Option<RangeInclusive<u16>>,
}

impl Service {
    /// What leads it around the tunnel.
    fn rule(&self) -> Rule {
        let rule = Rule::new(self.prefix.family(), SERVICE_PRIORITY, MAIN)
            .to(self.prefix)
            .protocol(self.protocol);
        match &self.ports {
            Some(ports) => rule.destination_ports(ports.clone()),
            None => rule,
        }
    }
}

impl Plan {
    /// What stays when the tunnel goes: what is held, and what is bypassed within.
    pub fn without_tunnel(&self) -> Self {
        Self {
            protected: Vec::new(),
            ..self.clone()
        }
    }
}

/// The routes into one TUN. Dropped without [`Routes::close`] it leaves them as they are.
pub struct Routes {
    netlink: Netlink,
    device: String,
}

impl Routes {
    /// Takes over our table in the calling thread's network namespace, with whatever a predecessor
    /// left in it, for the TUN of this name.
    pub fn open(device: &str) -> Result<Self, Error> {
        let netlink = Netlink::open()?;
        let device = device.to_owned();
        Ok(Self { netlink, device })
    }

    /// What is held by black holes though no tunnel leads there: no daemon runs. Needs no rights.
    pub fn held() -> Result<Vec<Prefix>, Error> {
        let routes = Netlink::open()?.routes(TABLE)?;
        let by_tunnel = |route: &Route| matches!(route.via, Via::Device(_));
        let black_holes = routes.iter().filter(|route| route.via == Via::Blackhole);
        Ok(match routes.iter().any(by_tunnel) {
            true => Vec::new(),
            false => black_holes.map(|route| route.prefix).collect(),
        })
    }

    /// Removes what a predecessor left, on a machine that no longer has tunnels.
    pub fn remove_leftovers() -> Result<(), Error> {
        Netlink::open()?.cleanup(TABLE, PRIORITIES).map(drop)
    }

    /// Makes the table say exactly this. Source addresses must have been given to an interface
    /// before.
    pub fn set(&self, plan: &Plan) -> Result<(), Error> {
        let (wanted, present) = (self.routes(plan), self.netlink.routes(TABLE)?);
        // The same to the kernel, which has one of them: another source is another value of it.
        let same = |a: &Route, b: &Route| (a.prefix, a.metric) == (b.prefix, b.metric);
        for route in wanted.iter().filter(|route| !present.contains(route)) {
            match present.iter().any(|other| same(route, other)) {
                true => self.netlink.replace_route(route)?,
                false => self.netlink.add_route(route)?,
            }
            crash::point("route-added");
        }
        self.lead(&plan.services)?;
        let kept = |route: &&Route| wanted.iter().any(|other| same(route, other));
        for route in present.iter().filter(|route| !kept(route)) {
            self.netlink.drop_route(route)?;
        }
        Ok(())
    }

    /// The routes and rules of this plan that are not there, as ip(8) writes them.
    pub fn missing(&self, plan: &Plan) -> Result<Vec<String>, Error> {
        let routes = self.netlink.absent_routes(self.routes(plan))?.into_iter();
        let routes = routes.map(|route| format!("route {route}"));
        let rules = self
            .netlink
            .absent_rules(rules(&plan.services))?
            .into_iter();
        let rules = rules.map(|rule| format!("rule {rule}"));
        Ok(routes.chain(rules).collect())
    }

    /// Fails if packets from a peer at this outer address would be dropped on arrival: reverse
    /// paths are looked up without our mark, so with the peer inside a protected prefix they lead
    /// into the TUN, and an interface that checks them strictly (IPv4 only) refuses the packet.
    pub fn check_peer(&self, plan: &Plan, peer: IpAddr) -> Result<(), Error> {
        let inside = |prefix: &Prefix| prefix.contains(peer);
        let bypassed = plan.bypassed.iter().any(inside);
        let protected = plan.protected.iter().any(|(prefix, _)| inside(prefix));
        if !protected || bypassed || peer.is_ipv6() {
            return Ok(());
        }
        let mut strict = strict_interfaces(&self.netlink, &self.device)?;
        match strict.pop() {
            Some(interface) => Err(Error::StrictReversePath { interface, peer }),
            None => Ok(()),
        }
    }

    /// Opens the prefixes again: removes all routes and rules.
    pub fn close(self) -> Result<(), Error> {
        self.netlink.cleanup(TABLE, PRIORITIES).map(drop)
    }

    fn routes(&self, plan: &Plan) -> Vec<Route> {
        let ours = |prefix, via, metric, source| Route {
            prefix,
            via,
            table: TABLE,
            metric,
            source,
        };
        let protected = plan.protected.iter();
        let closed = protected.clone().map(|(prefix, _)| prefix);
        let closed: BTreeSet<_> = closed.chain(&plan.held).collect();
        let closed = closed
            .into_iter()
            .map(|&prefix| ours(prefix, Via::Blackhole, BLACKHOLE_METRIC, None));
        let protected = protected.map(|&(prefix, source)| {
            let tunnel = Via::Device(self.device.clone());
            ours(prefix, tunnel, TUNNEL_METRIC, source)
        });
        let bypassed = plan.bypassed.iter();
        let bypassed = bypassed.map(|&prefix| ours(prefix, Via::Throw, TUNNEL_METRIC, None));
        closed.chain(protected).chain(bypassed).collect()
    }

    /// Leads all packets here but those of services that are bypassed.
    fn lead(&self, services: &[Service]) -> Result<(), Error> {
        let (wanted, present) = (rules(services), self.netlink.rules()?);
        for rule in wanted.iter().filter(|rule| !present.contains(rule)) {
            self.netlink.add_rule(rule)?;
            crash::point("rule-added");
        }
        let ours = |rule: &&Rule| rule.priority == SERVICE_PRIORITY;
        for rule in present.iter().filter(ours) {
            if !wanted.contains(rule) {
                self.netlink.drop_rule(rule)?;
            }
        }
        Ok(())
    }
}

/// The interfaces by which packets of a peer may arrive and that check reverse paths strictly. By loopback, the claim and
/// the TUN of this name none arrive.
pub fn strict_interfaces(netlink: &Netlink, device: &str) -> Result<Vec<String>, Error> {
    let ours = [LOOPBACK, claim::DEVICE, device];
    let links = netlink.links()?.into_iter();
    let others = links.filter(|interface| !ours.contains(&interface.as_str()));
    let strict =
        others.map(|interface| Ok(sysctl::strict_reverse_path(&interface)?.then_some(interface)));
    strict.filter_map(Result::transpose).collect()
}

/// The rules that lead all packets here but those of services that are bypassed.
fn rules(services: &[Service]) -> Vec<Rule> {
    let here = sysctl::families().map(|family| {
        let rule = Rule::new(family, PRIORITY, TABLE);
        rule.mark(Mark::IsNot(MARK))
    });
    here.chain(services.iter().map(Service::rule)).collect()
}
