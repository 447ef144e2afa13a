//! Mobile IPv4 in the status: where a mobile node is, as one of the three that take part knows it.

use crate::Refusal;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddrV4};

/// How things are with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MobileIp {
    /// What we are to it, and know of it.
    #[serde(flatten)]
    pub part: MobilePart,
    /// What was last denied or failed.
    pub last_refusal: Option<Refusal>,
}

/// What we are, by `role`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum MobilePart {
    /// We keep our address wherever we are.
    MobileNode {
        /// That address.
        home_address: Ipv4Addr,
        /// Who stands in for us there.
        home_agent: Ipv4Addr,
        /// Where we are.
        registrations: Vec<MobileRegistration>,
    },
    /// We are visited.
    ForeignAgent {
        /// Where the tunnels to visitors end.
        care_of: Ipv4Addr,
        /// Who is here.
        visitors: Vec<MobileVisitor>,
    },
    /// We stand in for those who are away.
    HomeAgent {
        /// Where we are reached.
        address: Ipv4Addr,
        /// Everybody for whom we do.
        mobiles: Vec<MobileHome>,
    },
}

/// A mobile node's registration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MobileRegistration {
    /// The foreign agent.
    pub agent: Ipv4Addr,
    /// Where its tunnel ends.
    pub care_of: Ipv4Addr,
    /// The device by which it is reached.
    pub interface: String,
    /// Whether what we send goes there.
    pub sends: bool,
    /// For how long we are registered.
    pub since_seconds: u64,
    /// How long that counts unless it is renewed, which it is before; for ever if there is none.
    pub left_seconds: Option<u64>,
}

/// A foreign agent's visitor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MobileVisitor {
    /// Its address.
    pub home_address: Ipv4Addr,
    /// Who stands in for it there.
    pub home_agent: Ipv4Addr,
    /// Whether the tunnel to there is in UDP, for there is a NAT on the way.
    pub in_udp: bool,
    /// How long it is one unless it registers again.
    pub left_seconds: Option<u64>,
    /// The foreign agent where it is now, while what still comes for it is sent on to there.
    pub gone_to: Option<Ipv4Addr>,
}

/// One of a home agent's mobile nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MobileHome {
    /// Its address.
    pub home_address: Ipv4Addr,
    /// Where it is; nowhere if that is empty.
    pub bindings: Vec<MobileBinding>,
}

/// A place at which a mobile node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MobileBinding {
    /// Its care-of address.
    pub care_of: Ipv4Addr,
    /// Where a NAT has its packets come from and go to, if the tunnel is in UDP.
    pub udp: Option<SocketAddrV4>,
    /// How long that counts unless it is registered again.
    pub left_seconds: Option<u64>,
}
