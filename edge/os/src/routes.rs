//! Routes of an endpoint's packets into the tunnel, which also keep them from leaving in clear.
//!
//! One rule sends every packet to our table, except the encapsulated ones, which carry our mark. In
//! the table, each protected prefix has two routes: one through the TUN, and a black hole with a
//! worse metric. When a daemon dies, its TUN disappears, and with it the first route. The second
//! route stays and stops the packets until the next start takes it over or a graceful end removes
//! it. A bypassed prefix inside a protected one has a throw route back to the tables behind ours.
//! Routes have no protocols or ports, but rules do: a bypassed service looks into the main table
//! first.
//!
//! [`Routes::set`] compares the wanted state with the present one and adds before it deletes. So it
//! works the same after a crash, at a start and for every change, and a protected prefix is never
//! open in between.
//!
//! Prefixes may be held beyond the end of the daemon ([`RoutePlan::held`]). Their black holes then
//! stay, and [`crate::lock`] blocks packets that do not follow routes.

use crate::netlink::{Mark, Route, Rule, Via};
use crate::{Error, Netlink, Prefix, claim, crash, prefix, sysctl};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// The routing table of protected prefixes.
pub const TABLE: u32 = 7296;

/// Priority of the rule to our table: behind the local table, before the main one.
pub const PRIORITY: u32 = 7296;

/// Priority of the rules that send bypassed services to the main table: before that one.
const SERVICE_PRIORITY: u32 = PRIORITY - 1;

/// Priorities of all rules here.
pub(crate) const PRIORITIES: RangeInclusive<u32> = SERVICE_PRIORITY..=PRIORITY;

/// The main routing table.
const MAIN: u32 = 254;

/// The interface of packets to the host itself.
const LOOPBACK: &str = "lo";

/// The firewall mark of packets that must not enter the tunnel, set on sockets by
/// [`crate::Datagrams`].
pub const MARK: u32 = 0x7296;

/// Metric of tunnel routes; the black hole's must be worse.
const TUNNEL_METRIC: u32 = 10;
const BLACKHOLE_METRIC: u32 = 4096;

/// The wanted routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutePlan {
    /// Prefixes that are reachable only through the tunnel, with the preferred inner source
    /// address.
    pub protected: Vec<(Prefix, Option<IpAddr>)>,
    /// Prefixes that are reachable as if there were no tunnel.
    pub bypassed: Vec<Prefix>,
    /// Services that are reachable as if there were no tunnel, whatever prefix they are in.
    pub services: Vec<Service>,
    /// Prefixes with a black hole; those that are protected too stay reachable through the tunnel.
    pub held: Vec<Prefix>,
}

/// A protocol at the remote end of packets, and its ports if it has any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Prefix of the remote end.
    pub prefix: Prefix,
    /// IP protocol.
    pub protocol: u8,
    /// From 1 to 65534; `None` for all ports, and for fragments, which have none.
    pub ports: Option<RangeInclusive<u16>>,
}

impl Service {
    /// Returns the rule that sends the service around the tunnel.
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

impl RoutePlan {
    /// Returns the plan after the tunnel is gone: held prefixes, and bypassed ones inside them.
    pub fn without_tunnel(&self) -> Self {
        Self {
            protected: Vec::new(),
            ..self.clone()
        }
    }
}

/// The routes into one TUN. A drop without [`Routes::close`] leaves them in place.
pub struct Routes {
    netlink: Netlink,
    device: String,
}

impl Routes {
    /// Takes over our table in the calling thread's network namespace, including a predecessor's
    /// routes, for the TUN of this name.
    pub fn open(device: &str) -> Result<Self, Error> {
        let netlink = Netlink::open()?;
        let device = device.to_owned();
        Ok(Self { netlink, device })
    }

    /// Returns the prefixes of black holes while no route leads into a tunnel, that is, while no
    /// daemon runs. Needs no privileges.
    pub fn held() -> Result<Vec<Prefix>, Error> {
        let routes = Netlink::open()?.routes(TABLE)?;
        let by_tunnel = |route: &Route| matches!(route.via, Via::Device(_));
        Ok(match routes.iter().any(by_tunnel) {
            true => Vec::new(),
            false => black_holes(&routes),
        })
    }

    /// Returns the prefixes of all black holes, also of those behind a route into a tunnel.
    pub fn black_holes() -> Result<Vec<Prefix>, Error> {
        Ok(black_holes(&Netlink::open()?.routes(TABLE)?))
    }

    /// Removes a predecessor's routes on a machine that no longer has tunnels.
    pub fn remove_leftovers() -> Result<(), Error> {
        Netlink::open()?.cleanup(TABLE, PRIORITIES).map(drop)
    }

    /// Makes the table equal to the plan. Source addresses must already be on an interface.
    pub fn set(&self, plan: &RoutePlan) -> Result<(), Error> {
        let (wanted, present) = (self.routes(plan), self.netlink.routes(TABLE)?);
        // The kernel treats routes with the same key as one, and the source address as its value.
        let key = |route: &Route| (route.prefix, route.metric);
        let present: BTreeSet<_> = present.into_iter().collect();
        let replaced: BTreeSet<_> = present.iter().map(key).collect();
        for route in wanted.iter().filter(|route| !present.contains(route)) {
            match replaced.contains(&key(route)) {
                true => self.netlink.replace_route(route)?,
                false => self.netlink.add_route(route)?,
            }
            crash::point("route-added");
        }
        self.install_rules(&plan.services)?;
        let kept: BTreeSet<_> = wanted.iter().map(key).collect();
        for route in present.iter().filter(|route| !kept.contains(&key(route))) {
            self.netlink.drop_route(route)?;
        }
        Ok(())
    }

    /// Returns the missing routes and rules of a plan, in the notation of ip(8).
    pub fn missing(&self, plan: &RoutePlan) -> Result<Vec<String>, Error> {
        let routes = self.netlink.absent_routes(self.routes(plan))?.into_iter();
        let routes = routes.map(|route| format!("route {route}"));
        let rules = self
            .netlink
            .absent_rules(rules(&plan.services))?
            .into_iter();
        let rules = rules.map(|rule| format!("rule {rule}"));
        Ok(routes.chain(rules).collect())
    }

    /// Returns an error if packets from a peer at one of these outer addresses would be dropped on
    /// arrival. Reverse paths are looked up without our mark, so with the peer inside a protected
    /// prefix they lead into the TUN, and an interface with strict checks (IPv4 only) drops the
    /// packet.
    pub fn check_peers(
        &self,
        plan: &RoutePlan,
        peers: impl IntoIterator<Item = IpAddr>,
    ) -> Result<(), Error> {
        let peers = peers.into_iter().filter(IpAddr::is_ipv4).collect();
        let protected = plan.protected.iter().map(|(prefix, _)| *prefix);
        let protected = prefix::inside(protected, peers);
        let bypassed = prefix::inside(plan.bypassed.iter().copied(), protected.clone());
        let Some(&peer) = protected.difference(&bypassed).next() else {
            return Ok(());
        };
        let mut strict = strict_interfaces(&self.netlink, &self.device)?;
        match strict.pop() {
            Some(interface) => Err(Error::StrictReversePath { interface, peer }),
            None => Ok(()),
        }
    }

    /// Removes all routes and rules, which opens the prefixes again.
    pub fn close(self) -> Result<(), Error> {
        self.netlink.cleanup(TABLE, PRIORITIES).map(drop)
    }

    fn routes(&self, plan: &RoutePlan) -> Vec<Route> {
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

    /// Sends all packets to our table, except those of bypassed services.
    fn install_rules(&self, services: &[Service]) -> Result<(), Error> {
        let (wanted, present) = (rules(services), self.netlink.rules()?);
        for rule in wanted.iter().filter(|rule| !present.contains(rule)) {
            self.netlink.add_rule(rule)?;
            crash::point("rule-added");
        }
        let ours = self.netlink.own_rules(SERVICE_PRIORITY)?.into_iter();
        let mut unwanted = ours.filter(|rule| !wanted.contains(rule));
        unwanted.try_for_each(|rule| self.netlink.drop_rule(&rule))
    }
}

fn black_holes(routes: &[Route]) -> Vec<Prefix> {
    let black_holes = routes.iter().filter(|route| route.via == Via::Blackhole);
    black_holes.map(|route| route.prefix).collect()
}

/// Returns the interfaces with strict reverse path checks on which packets of a peer may arrive.
/// Loopback, the claim and the TUN of this name are excluded.
fn strict_interfaces(netlink: &Netlink, device: &str) -> Result<Vec<String>, Error> {
    let ours = [LOOPBACK, claim::DEVICE, device];
    let links = netlink.links()?.into_iter();
    let others = links.filter(|interface| !ours.contains(&interface.as_str()));
    let strict =
        others.map(|interface| Ok(sysctl::strict_reverse_path(&interface)?.then_some(interface)));
    strict.filter_map(Result::transpose).collect()
}

/// Returns the interfaces with strict reverse path checks among the one of this name, or among
/// those of `strict_interfaces` for `all`. An interface that does not exist has none.
pub fn strict_among(interface: &str, device: &str) -> Vec<String> {
    if interface != "all" {
        let is_strict = sysctl::strict_reverse_path(interface).unwrap_or(false);
        return is_strict
            .then(|| interface.to_owned())
            .into_iter()
            .collect();
    }
    let strict = Netlink::open().and_then(|netlink| strict_interfaces(&netlink, device));
    strict.unwrap_or_default()
}

/// Returns the rules that send all packets to our table, except those of bypassed services.
fn rules(services: &[Service]) -> Vec<Rule> {
    let here = sysctl::families().map(|family| {
        let rule = Rule::new(family, PRIORITY, TABLE);
        rule.mark(Mark::IsNot(MARK))
    });
    here.chain(services.iter().map(Service::rule)).collect()
}
