//! Mobile IPv4 (RFC 5944): one of its three engines, if the configuration asks for one.
//!
//! IPsec tunnels run between permanent addresses, inside the tunnels of Mobile IP, so a move does
//! not affect them. Other modules use the events: the IKE engine retransmits requests when a route
//! appears, `placement.rs` tracks the location of mobile nodes, and `migration.rs` sends tokens
//! along with registration requests.

mod part;

pub(crate) use part::MobileIp;

use crate::tunnels::desired::Refused;
use model::Instant;
use std::net::Ipv4Addr;

pub use mobility::mobile_ip::{
    Algorithm, Arrival, Association, Attachment, Dropped, Enclosed, Envelope, ForeignAgentConfig,
    ForeignEvent, HomeAgentConfig, HomeEvent, Keepalives, MobileEvent, MobileNodeConfig, Nat,
    NtpTime, Place, Registration, Remote, Replay, Station, TakenOut, Transmit, TunnelDrop, Visitor,
    room,
};
pub use wire::mobile_ip::{Lifetime, PORT, TunnelData, message};

/// Role of a host in Mobile IPv4.
#[derive(Clone, Debug)]
pub enum Config {
    /// A mobile node, which keeps its address wherever it is.
    MobileNode(MobileNodeConfig),
    /// A foreign agent, which serves visitors.
    ForeignAgent(ForeignAgentConfig),
    /// A home agent, which acts for mobile nodes that are away.
    HomeAgent(HomeAgentConfig),
}

/// An event of Mobile IPv4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An event of a mobile node.
    MobileNode(MobileEvent),
    /// An event concerning a visitor of a foreign agent.
    ForeignAgent(ForeignEvent),
    /// An event concerning a mobile node of a home agent.
    HomeAgent(HomeEvent),
    /// A registration was denied or not authenticated.
    Refused(Refused),
}

/// Status of Mobile IPv4, by role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Status of a mobile node.
    MobileNode {
        /// Home address.
        home: Ipv4Addr,
        /// Address of the home agent.
        home_agent: Ipv4Addr,
        /// Current registrations.
        registrations: Vec<Registration>,
        /// Agent that packets are sent through.
        route: Option<Attachment>,
    },
    /// Status of a foreign agent.
    ForeignAgent {
        /// Care-of address, where tunnels to visitors end.
        care_of: Ipv4Addr,
        /// Visitors that the agent serves.
        visitors: Vec<Stay>,
    },
    /// Status of a home agent.
    HomeAgent {
        /// Address of the home agent.
        address: Ipv4Addr,
        /// Home addresses of the mobile nodes, each with its registered care-of addresses.
        homes: Vec<(Ipv4Addr, Vec<Place>)>,
    },
}

/// A visitor of a foreign agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// The visitor, with its home agent and its link.
    pub visitor: Visitor,
    /// End of the service unless the visitor registers again; `None` if it is unlimited.
    pub until: Option<Instant>,
    /// Foreign agent that packets for the visitor are forwarded to.
    pub gone_to: Option<Ipv4Addr>,
    /// True if the visitor's tunnel uses UDP encapsulation.
    pub is_in_udp: bool,
}
