//! Mobile IPv4 in `strata status`, from the view of the mobile node, foreign agent or home agent.

use crate::Refusal;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Mobile IPv4 state of this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MobileIp {
    /// Role of this host, with the state of that role.
    #[serde(flatten)]
    pub part: MobilePart,
    /// The last denied or failed registration.
    pub last_refusal: Option<Refusal>,
}

/// Role of this host, as `role` in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum MobilePart {
    /// A mobile node: keeps its home address on every network.
    MobileNode {
        /// Home address of this host.
        home_address: Ipv4Addr,
        /// Address of the home agent.
        home_agent: Ipv4Addr,
        /// Current registrations.
        registrations: Vec<MobileRegistration>,
    },
    /// A foreign agent: mobile nodes visit its network.
    ForeignAgent {
        /// Care-of address, the end of the tunnels to visitors.
        care_of: Ipv4Addr,
        /// Current visitors.
        visitors: Vec<MobileVisitor>,
    },
    /// A home agent: receives and tunnels packets for mobile nodes away from home.
    HomeAgent {
        /// Address of this host.
        address: Ipv4Addr,
        /// Mobile nodes that this host serves.
        mobiles: Vec<MobileHome>,
    },
}

/// A mobile node's registration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MobileRegistration {
    /// Address of the foreign agent.
    pub agent: Ipv4Addr,
    /// Care-of address, the end of the tunnel.
    pub care_of: Ipv4Addr,
    /// Interface through which the agent is reached.
    pub interface: String,
    /// True if outgoing packets use this registration.
    pub sends: bool,
    /// Age of the registration, in seconds.
    pub since_seconds: u64,
    /// Remaining lifetime in seconds; the registration is renewed before it ends. `None` for an
    /// unlimited registration.
    pub left_seconds: Option<u64>,
}

/// A foreign agent's visitor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MobileVisitor {
    /// Home address of the visitor.
    pub home_address: Ipv4Addr,
    /// Address of its home agent.
    pub home_agent: Ipv4Addr,
    /// True if the tunnel to the home agent is UDP-encapsulated because of a NAT.
    pub in_udp: bool,
    /// Remaining time of the visit in seconds, unless the visitor registers again; `None` if
    /// unlimited.
    pub left_seconds: Option<u64>,
    /// The foreign agent that the visitor moved to, while late packets are forwarded there.
    pub gone_to: Option<Ipv4Addr>,
}

/// A home agent's mobile node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MobileHome {
    /// Home address of the mobile node.
    pub home_address: Ipv4Addr,
    /// Current bindings; empty if the node has none.
    pub bindings: Vec<MobileBinding>,
}

/// A binding of a mobile node to a care-of address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MobileBinding {
    /// Care-of address.
    pub care_of: Ipv4Addr,
    /// Address and port on the outside of a NAT, if the tunnel is UDP-encapsulated.
    pub udp: Option<SocketAddrV4>,
    /// Remaining lifetime in seconds, unless the node registers again; `None` if unlimited.
    pub left_seconds: Option<u64>,
}
