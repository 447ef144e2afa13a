//! Needs of a configuration that the machine meets or not: kernel settings, interfaces, addresses.
//!
//! `strata check` lists the settings, `strata doctor` compares all of this with the machine, and
//! `stratad` waits for interfaces and addresses.

use crate::link::{self, LinkedHost};
use crate::mobility::MOBILE_DEVICE;
use crate::{Action, Addressing, Config, MetricsAddress, Mobility, Peer};
use model::{Mode, TrafficSelector};
use std::fmt;
use std::net::IpAddr;

/// A kernel setting with the value that a role needs. The text is an argument of `sysctl -w`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// Forwarding of IPv4.
    ForwardIpv4,
    /// Forwarding of IPv6.
    ForwardIpv6,
    /// No strict check of reverse paths at an interface; `all` stands for every interface, because
    /// the kernel applies the greater of both values.
    LooseReversePath {
        /// The interface, or `all`.
        interface: String,
    },
}

impl Setting {
    /// Returns true for forwarding of a family.
    pub const fn is_forwarding(&self) -> bool {
        match self {
            Self::ForwardIpv4 | Self::ForwardIpv6 => true,
            Self::LooseReversePath { .. } => false,
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ForwardIpv4 => f.write_str("net.ipv4.ip_forward=1"),
            Self::ForwardIpv6 => f.write_str("net.ipv6.conf.all.forwarding=1"),
            Self::LooseReversePath { interface } if interface.contains('.') => {
                write!(f, "net/ipv4/conf/{interface}/rp_filter=2")
            }
            Self::LooseReversePath { interface } => {
                write!(f, "net.ipv4.conf.{interface}.rp_filter=2")
            }
        }
    }
}

/// The kernel settings of which a role needs at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The alternatives, at least one.
    pub settings: Vec<Setting>,
    /// The reason.
    pub why: &'static str,
    /// True if the role does not work at all without it, false if that depends on the network.
    pub is_vital: bool,
}

impl Need {
    fn vital(setting: Setting, why: &'static str) -> Self {
        Self {
            settings: vec![setting],
            why,
            is_vital: true,
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings: Vec<_> = self.settings.iter().map(Setting::to_string).collect();
        write!(f, "{} ({})", settings.join(" or "), self.why)
    }
}

impl Config {
    /// Returns the kernel settings that the roles of this host need.
    pub fn needs(&self) -> Vec<Need> {
        let licensed = self.divert.as_ref().map(|_| Need {
            settings: vec![Setting::ForwardIpv4, Setting::ForwardIpv6],
            why: "a licensed node forwards packets of other hosts",
            is_vital: true,
        });
        let mut needs: Vec<_> = licensed.into_iter().collect();
        needs.extend(self.mobility.iter().flat_map(of_mobility));
        needs.extend(self.forwarded_families().map(|setting| Need {
            settings: vec![setting],
            why: "without it, hosts behind this gateway are not reached",
            is_vital: false,
        }));
        if self.peers.iter().any(|peer| self.covers_peer(peer)) {
            let interface = "all".to_owned();
            needs.push(Need::vital(
                Setting::LooseReversePath { interface },
                "a tunnel covers its peer's address, so a strict check expects that peer's packets from \
                 the tunnel and drops them",
            ));
        }
        needs
    }

    /// Returns true if a role forwards packets of other hosts.
    pub fn forwards(&self) -> bool {
        let needs = self.needs();
        let mut settings = needs.iter().flat_map(|need| &need.settings);
        settings.any(Setting::is_forwarding)
    }

    /// Returns the interfaces that must exist, each with its key. `stratad` waits for them.
    pub fn interfaces(&self) -> Vec<(&'static str, &str)> {
        let divert = self.divert.iter().flat_map(|divert| {
            [
                ("divert.wired", divert.wired.as_str()),
                ("divert.wireless", divert.wireless.as_str()),
            ]
        });
        let mobility: Vec<_> = match &self.mobility {
            Some(Mobility::MobileNode(node)) => {
                let names = node.interfaces.iter().map(String::as_str);
                names.map(|name| ("mobile_node.interfaces", name)).collect()
            }
            Some(Mobility::ForeignAgent(agent)) => {
                vec![("foreign_agent.interface", agent.interface.as_str())]
            }
            Some(Mobility::HomeAgent(_)) | None => Vec::new(),
        };
        let named = divert.chain(mobility);
        // `stratad` creates this one.
        named.filter(|(_, name)| *name != MOBILE_DEVICE).collect()
    }

    /// Returns the interfaces that traffic of peers goes by, each with its key. They may be
    /// missing: the traffic then takes other paths.
    pub fn interfaces_of_traffic(&self) -> impl Iterator<Item = (String, &str)> {
        self.peers.iter().flat_map(|peer| {
            let key = format!("peer.{}.traffic", peer.party.name);
            let traffic = peer.traffic.iter();
            traffic.map(move |traffic| (key.clone(), traffic.interface.as_str()))
        })
    }

    /// Returns the hosts with a link-local address, whose interfaces must exist too.
    pub fn linked_hosts(&self) -> impl Iterator<Item = LinkedHost<'_>> {
        link::hosts(self)
    }

    /// Returns the addresses that an interface must have, each with its key. `stratad` waits for
    /// them.
    pub fn addresses(&self) -> Vec<(&'static str, IpAddr)> {
        let listen = self.listen.addresses.iter();
        let listen = listen.map(|address| ("listen.addresses", *address));
        let agent = match &self.mobility {
            Some(Mobility::ForeignAgent(agent)) => {
                Some(("foreign_agent.address", agent.address.into()))
            }
            Some(Mobility::HomeAgent(agent)) => Some(("home_agent.address", agent.address.into())),
            Some(Mobility::MobileNode(_)) | None => None,
        };
        let metrics = self.metrics.as_ref().and_then(MetricsAddress::exposed);
        let metrics = metrics.filter(|address| !address.ip().is_unspecified());
        let metrics = metrics.map(|address| ("metrics.listen", address.ip()));
        // A mobile node listens at its home address, which `stratad` adds.
        let home = match &self.mobility {
            Some(Mobility::MobileNode(node)) => Some(IpAddr::from(node.home_address)),
            _ => None,
        };
        let mut addresses: Vec<_> = listen.chain(agent).chain(metrics).collect();
        addresses.retain(|(_, address)| Some(*address) != home);
        addresses
    }

    /// Returns true if the peer's packets arrive from an address that is routed into a tunnel.
    /// Linux checks reverse paths for IPv4 only. A name may have any address.
    pub fn covers_peer(&self, peer: &Peer) -> bool {
        let Some(address) = &peer.address else {
            return false;
        };
        if address.name().is_some() {
            let mut remote = self.peers.iter().flat_map(Peer::all_remote);
            return remote.any(is_half_of_ipv4);
        }
        address.ip().is_some_and(|address| {
            let holds = |selector: &TrafficSelector| selector.contains(address, 0, None);
            let mut remote = self.peers.iter().flat_map(Peer::all_remote);
            let bypasses = self.policies.iter();
            let mut bypasses = bypasses.filter(|policy| policy.action == Action::Bypass);
            address.is_ipv4() && remote.any(holds) && !bypasses.any(|policy| holds(&policy.remote))
        })
    }

    /// Returns forwarding of the families of networks behind this host.
    fn forwarded_families(&self) -> impl Iterator<Item = Setting> {
        let networks: Vec<_> = self.peers.iter().flat_map(networks).collect();
        let families = [(true, Setting::ForwardIpv4), (false, Setting::ForwardIpv6)];
        let needed = families
            .into_iter()
            .filter(move |(is_ipv4, _)| networks.iter().any(|first| first.is_ipv4() == *is_ipv4));
        needed.map(|(_, setting)| setting)
    }
}

/// Returns true if a selector has every IPv4 address, or every second one.
fn is_half_of_ipv4(selector: &TrafficSelector) -> bool {
    let prefixes = selector.prefixes();
    let mut of_ipv4 = prefixes.iter().filter(|(first, _)| first.is_ipv4());
    of_ipv4.any(|(_, length)| *length <= 1)
}

/// Returns the first addresses of a peer's `local` prefixes that hold more than one host.
fn networks(peer: &Peer) -> Vec<IpAddr> {
    if peer.addressing == Addressing::Requested {
        return Vec::new();
    }
    let first = (peer.mode, &peer.local[..]);
    let others = peer
        .children
        .iter()
        .map(|child| (child.mode, &child.local[..]));
    let tunnels = std::iter::once(first).chain(others);
    let tunnels = tunnels.filter(|(mode, _)| *mode == Mode::Tunnel);
    let local = tunnels.flat_map(|(_, local)| local);
    let wide = local.filter(|local| local.first != local.last);
    wide.map(|local| local.first).collect()
}

fn of_mobility(mobility: &Mobility) -> Vec<Need> {
    match mobility {
        Mobility::MobileNode(node) if node.simultaneous => {
            let loose = node.interfaces.iter().map(|interface| {
                let interface = interface.clone();
                Need::vital(
                    Setting::LooseReversePath { interface },
                    "with `simultaneous`, packets arrive by one agent and leave by another",
                )
            });
            loose.collect()
        }
        Mobility::MobileNode(_) => Vec::new(),
        Mobility::ForeignAgent(_) => vec![Need::vital(
            Setting::ForwardIpv4,
            "a foreign agent forwards packets of its visitors",
        )],
        Mobility::HomeAgent(_) => vec![Need::vital(
            Setting::ForwardIpv4,
            "a home agent forwards packets of absent mobile nodes",
        )],
    }
}
