//! What a host is configured to be.

use crypto::TrustStore;
use model::{Dscp, Encapsulation, Identity, Sizes};

pub use esp::{Action, Policy};
pub use ike::{
    Addressing, ChildPolicy, Credential, Elsewhere, FRAGMENT, Inside, Lifetimes, Peer,
    PeerRole as Role, Pool, Ppk, Signer, Stance, Tcp, ZonePolicy,
};
pub use pep::{Config as SnoopConfig, Patience};

/// Everything a [`crate::Node`] needs to know before it starts.
pub struct Config {
    /// Who we are, to every peer.
    pub identity: Identity,
    /// What we prove that with to peers without a pre-shared key.
    pub credential: Option<Credential>,
    /// Whose certificates we believe.
    pub trust: TrustStore,
    /// VPN peers, licensed nodes we give keys to, gateways whose grants we take, and neighbours, which ask us for keys and
    /// we them. Whoever of them has an address is one we connect to, but for a gateway.
    pub peers: Vec<Peer>,
    /// Names of the peers to bring up from the start and to keep up.
    pub start: Vec<String>,
    /// Whether ESP is in UDP where no NAT asks for it.
    pub encapsulation: Encapsulation,
    /// Our UDP port for IKE alone; the peer's is always 500.
    pub ike_port: u16,
    /// Our UDP port for IKE and ESP; the peer's is always 4500.
    pub natt_port: u16,
    /// Addresses of ours at which peers that move may reach us, beside the one in use.
    pub addresses: Vec<std::net::IpAddr>,
    /// The longest IP datagram that an IKE message is sent in where the peer knows RFC 7383; at
    /// least 576, or zero for none.
    pub fragment: u16,
    /// Where peers are sent that begin, and can be (RFC 5685).
    pub elsewhere: Option<Elsewhere>,
    /// How many threads seal and open ([`crate::Node::seat`]).
    pub workers: std::num::NonZeroU8,
    /// Exceptions to protection, first match wins (RFC 4301 section 4.4.1).
    pub policies: Vec<Policy>,
    /// What class the packets to peers ask for outside, by the names of those where it is not the default.
    pub classes: std::collections::BTreeMap<String, Dscp>,
    /// How long the datagrams to peers look from outside, by the names of those where it is not as long as
    /// they are.
    pub sizes: std::collections::BTreeMap<String, Sizes>,
    /// For how long nothing may be sealed for peers before a dummy is, by the names of those for whom that
    /// is not for ever.
    pub cover: std::collections::BTreeMap<String, std::time::Duration>,
    /// How to choose among the levels that are agreed on with peers as long as an operator says nothing else, by
    /// the names of those where it is not by default.
    pub levels: std::collections::BTreeMap<String, model::LevelChoice>,
    /// Where the licensed nodes are that have slots, by the names of peers that have any.
    pub places: std::collections::BTreeMap<String, crate::Places>,
    /// The licensed nodes to which mobile nodes may go from us, which gateways are told.
    pub neighbours: Vec<Identity>,
    /// The MTU of the tunnel device, if TCP connections are to have segments that fit it from their
    /// beginning (MSS clamping).
    pub clamp: Option<u16>,
    /// Whether packets are sent whole, and as long as routers on the way say (path MTU discovery).
    pub path_mtu: bool,
    /// How a licensed node's SNOOP works; `None` if it only forwards.
    pub snoop: Option<SnoopConfig>,
    /// How many octets the windows have at most that a licensed node may lower; `None` if it lowers none.
    pub window: Option<u32>,
    /// When a licensed node stands in for an end that is silent; `None` if it never does.
    pub stand_in: Option<Patience>,
    /// What we are to Mobile IPv4, if anything. That stays as it is from the beginning.
    pub mobile_ip: Option<crate::mobile_ip::Config>,
    /// How long a licensed node may keep a grant's keys.
    pub grant_lifetime: std::time::Duration,
    /// Whether keys of SAs made from now on are told by [`crate::Event::KeyLog`].
    pub key_log: bool,
}

impl Config {
    /// What of it the IKE engine has to know.
    pub(crate) fn for_ike(&self) -> ike::Config {
        ike::Config {
            encapsulation: self.encapsulation,
            natt_port: self.natt_port,
            addresses: self.addresses.clone(),
            fragment: self.fragment,
            elsewhere: self.elsewhere,
            workers: self.workers,
            credential: self.credential.clone(),
            trust: self.trust.clone(),
            ..ike::Config::new(self.identity.clone(), self.peers.clone())
        }
    }
}
