//! Mobile IPv4 (RFC 5944) with reverse tunnels (RFC 3024): the discovery of agents by ICMP, and
//! registration with them by UDP. Tunnels through a NAT use UDP as well (RFC 3519).
//!
//! An authenticator covers a message up to and including the head of its authentication extension
//! (section 3.5.1), and a foreign agent forwards octets that it did not write. So parsing returns
//! the fields of a message and its [`Extensions`], which stay in place.

mod advertisement;
mod code;
pub mod echo;
mod enclosure;
mod extension;
mod home_test;
mod icmp;
mod lifetime;
mod note;
mod notice;
mod reply;
mod request;
mod solicitation;
#[cfg(test)]
mod tests;
mod tunnel_data;
mod udp_tunnel;

pub use advertisement::{Advertisement, Agent, AgentFlags, LONGEST_CARE_OF, Router};
pub use code::{Code, Party};
pub use enclosure::Enclosure;
pub use extension::{Authentication, Between, Extension, Extensions, append_authentication, kind};
pub use home_test::HomeTest;
pub use lifetime::Lifetime;
pub use note::Note;
pub use notice::{Notice, Step};
pub use reply::Reply;
pub use request::{Request, RequestFlags};
pub use solicitation::Solicitation;
pub use tunnel_data::TunnelData;
pub use udp_tunnel::{UdpTunnelReply, UdpTunnelRequest};

/// The UDP port of agents (section 1.8).
pub const PORT: u16 = 434;

/// First octets of messages on that port.
pub mod message {
    /// A Registration Request.
    pub const REQUEST: u8 = 1;
    /// A Registration Reply.
    pub const REPLY: u8 = 3;
    /// A MIP Tunnel Data Message (RFC 3519 section 3.3).
    pub const TUNNEL_DATA: u8 = 4;
    /// Experimental (RFC 4064): see [`Notice`](super::Notice) and [`HomeTest`](super::HomeTest).
    pub const EXPERIMENT: u8 = 255;
}
