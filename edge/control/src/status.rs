//! `strata status`: peers, their SAs, and what was dropped.

use crate::{Carrier, MobileIp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// How a host is. Times are in whole seconds before the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Who we are.
    pub identity: String,
    /// What we do, as far as the configuration goes.
    pub roles: Vec<Role>,
    /// Since the daemon started.
    pub uptime_seconds: u64,
    /// What a person should look at, the worst first.
    pub warnings: Vec<String>,
    /// Prefixes that are reached through the tunnel or not at all (`leak = "never"`).
    #[serde(default)]
    pub locked: Vec<String>,
    /// Routes, rules, addresses and tables of the tunnel that another program removes, and that are no longer put back.
    #[serde(default)]
    pub removed: Vec<String>,
    /// Packets in clear that claimed to come out of a tunnel and were dropped, by their sources of the last hour:
    /// the 64 with the most packets, these first.
    #[serde(default)]
    pub clear: Vec<ClearClaim>,
    /// Why packets in clear that claim to come out of a tunnel are not dropped as the configuration says, if that could
    /// not be set up.
    #[serde(default)]
    pub unguarded: Option<String>,
    /// Everybody of the configuration, sorted by name.
    pub peers: Vec<Peer>,
    /// How things are with Mobile IPv4, if we take part in it.
    #[serde(default)]
    pub mobile_ip: Option<MobileIp>,
    /// Why somebody who is none of them was last refused.
    #[serde(default)]
    pub refused_stranger: Option<Refusal>,
    /// Packets dropped since the start, by reason; reasons that never happened are left out.
    pub drops: BTreeMap<String, u64>,
    /// Segments that began a TCP connection and offered longer ones than fit the tunnel: the offer was
    /// lowered.
    #[serde(default)]
    pub clamped: u64,
    /// Packets whose TCP window a licensed node has lowered (`right = "write"`).
    #[serde(default)]
    pub written: u64,
    /// Packets that a licensed node has made in the name of a peer that was silent (`right = "inject"`).
    #[serde(default)]
    pub injected: u64,
    /// Datagrams that were padded so that nobody outside sees how long they are, and the octets that took
    /// (`tfc`).
    #[serde(default)]
    pub padded: Traffic,
    /// Packets that were sent to hide the silence (`cover`).
    #[serde(default)]
    pub covered: u64,
    /// Packets that came and only hide the silence. They are dropped, and nothing is lost by it.
    #[serde(default)]
    pub dummies: u64,
    /// Datagrams whose ECN field was another outside than inside where a tunnel ended.
    #[serde(default)]
    pub congestion: Congestion,
    /// What path MTU discovery did.
    #[serde(default)]
    pub path_mtu: PathMtu,
}

/// Packets in clear that one source sent in the name of a peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClearClaim {
    /// The address inside that the packets claimed to come from.
    pub address: IpAddr,
    /// The peer whose tunnel brings packets from there.
    pub peer: Option<String>,
    /// The interface by which they came.
    pub interface: String,
    /// The Ethernet address of the source, or of the last router before this host; `null` on other interfaces.
    pub link: Option<String>,
    /// Addresses that this host knows of that Ethernet address.
    pub from: Vec<IpAddr>,
    /// Dropped packets.
    pub packets: u64,
    /// Time since the last of them.
    pub seconds_ago: u64,
}

/// One line for a person.
impl fmt::Display for ClearClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.packets {
            1 => f.write_str("1 packet")?,
            packets => write!(f, "{packets} packets")?,
        }
        write!(f, " in clear claimed to be ")?;
        if let Some(peer) = &self.peer {
            write!(f, "{peer}, ")?;
        }
        write!(f, "{}, by {}", self.address, self.interface)?;
        let from = self.from.iter().map(ToString::to_string);
        let from: Vec<_> = from.chain(self.link.clone()).collect();
        if !from.is_empty() {
            write!(f, " from {}", from.join(" "))?;
        }
        f.write_str(", dropped")
    }
}

/// What came of packets that paths do not take (`path_mtu` in `[tunnel]`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathMtu {
    /// Datagrams that had no room in a packet, whose sources were told how long they may be.
    pub too_long: u64,
    /// Times that somebody said in a router's name what no path is.
    pub disbelieved: u64,
}

/// What the headers outside said about congestion (RFC 6040).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Congestion {
    /// Datagrams that a congested way has marked CE.
    pub marked: u64,
    /// Datagrams whose fields fit so badly that somebody may be lying about the way.
    pub dangerous: u64,
    /// Datagrams whose fields nobody makes so, which does no harm.
    pub unused: u64,
}

/// What a host does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It has tunnels of its own.
    Endpoint,
    /// It gives keys to licensed nodes.
    Gateway,
    /// It takes keys, and forwards packets of others.
    LicensedNode,
    /// It keeps its address wherever it is (Mobile IPv4).
    MobileNode,
    /// Such hosts visit it.
    ForeignAgent,
    /// It stands in for them.
    HomeAgent,
}

/// Somebody of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Name of its table.
    pub name: String,
    /// Kind of its table.
    pub kind: PeerKind,
    /// Who it has to be.
    pub identity: String,
    /// How far it is.
    pub state: PeerState,
    /// Its address and port, as far as known.
    pub remote: Option<SocketAddr>,
    /// What carries packets to it.
    #[serde(default)]
    pub carrier: Carrier,
    /// For how long it has been up.
    pub since_seconds: Option<u64>,
    /// What failed last. Stays until it is up again.
    pub last_refusal: Option<Refusal>,
    /// Whether a post-quantum pre-shared key is in all its keys.
    #[serde(default)]
    pub ppk: bool,
    /// The key exchanges besides that of the group that are in all its keys, as the configuration
    /// writes them.
    #[serde(default)]
    pub kem: Vec<String>,
    /// Whether its IKE SA may be cloned, so that the tunnel can move without a pause.
    #[serde(default)]
    pub clone: bool,
    /// How many IKE SAs with it are up: two while one takes the place of another, and more if it has
    /// cloned them.
    #[serde(default)]
    pub ike_sas: usize,
    /// How many requests of IKE may be under way at once, while it is up.
    #[serde(default)]
    pub window: Option<Window>,
    /// The addresses inside that one end lends the other.
    #[serde(default)]
    pub inside: Vec<IpAddr>,
    /// What is led into the tunnel, where the peer is asked what that is (`routes = "subnets"`).
    #[serde(default)]
    pub routes: Option<Routes>,
    /// Its child SAs.
    pub children: Vec<Child>,
    /// The names of those of the configuration that are not up while it is.
    #[serde(default)]
    pub missing: Vec<String>,
}

/// Kind of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerKind {
    /// `[peer.NAME]`: the other end of a tunnel.
    Vpn,
    /// `[licensed.NAME]`: a node we give keys to.
    Licensed,
    /// `[gateway.NAME]`: a gateway whose grants we take.
    Gateway,
    /// `[neighbour.NAME]`: another licensed node, that gives us keys when a mobile node comes from it, and gets some.
    Neighbour,
}

/// How far a peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerState {
    /// Nothing is going on.
    Down,
    /// An IKE SA is being made.
    Connecting,
    /// The IKE SA is established.
    Up,
}

/// How many requests of IKE may be under way at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// So many of the peer's, as we have told it.
    pub ours: u8,
    /// So many of ours, as both ends have told each other.
    pub theirs: u8,
    /// So many of ours are.
    pub under_way: usize,
}

/// What is led into a tunnel, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routes {
    /// Why these.
    pub reason: RoutesReason,
    /// What is led into the tunnel; everything else goes beside it.
    pub prefixes: Vec<String>,
    /// What the peer says is behind it as well, and the tunnel does not carry, or not as a whole.
    pub beyond: Vec<String>,
}

/// Why these prefixes are led into a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoutesReason {
    /// The peer says that they are behind it.
    Subnets,
    /// They are `remote`, for the peer does not say what is behind it, or in too many prefixes.
    Unsaid,
    /// There are none until the peer has been up.
    Awaited,
}

/// One line for a person.
impl fmt::Display for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefixes = match self.prefixes.as_slice() {
            [] => "nothing".to_owned(),
            prefixes => prefixes.join(", "),
        };
        let reason = match self.reason {
            RoutesReason::Subnets => "the peer says what is behind it",
            RoutesReason::Unsaid => {
                "all of `remote`, for the peer does not say what is behind it, or in over 256 prefixes"
            }
            RoutesReason::Awaited => "until the peer has said what is behind it",
        };
        write!(f, "{prefixes}: {reason}")?;
        match self.beyond.as_slice() {
            [] => Ok(()),
            beyond => write!(
                f,
                "; the tunnel does not carry all of {}: add that to `local` there and to `remote` here",
                beyond.join(", ")
            ),
        }
    }
}

/// A refusal or failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// How long ago.
    pub seconds_ago: u64,
    /// Why, for a person.
    pub reason: String,
}

/// A child SA.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    /// Name of its table; `null` is the tunnel of the peer's own table.
    #[serde(default)]
    pub name: Option<String>,
    /// SPI towards us, eight hexadecimal digits.
    pub spi_in: String,
    /// SPI towards the peer, eight hexadecimal digits.
    pub spi_out: String,
    /// Whether it has zones.
    pub kind: ChildKind,
    /// Whether its sequence numbers are extended to 64 bits (`esn`).
    #[serde(default)]
    pub esn: bool,
    /// The key exchanges of its own that its keys come from (`pfs`), as the configuration writes them.
    /// Without any they come from the keys of the IKE SA alone, as those of the first one do.
    #[serde(default)]
    pub key_exchanges: Vec<String>,
    /// What of a packet it seals.
    #[serde(default)]
    pub mode: ChildMode,
    /// What carries its packets.
    #[serde(default)]
    pub carrier: Carrier,
    /// Whether a newer one has its place, and it only waits for what is under way.
    #[serde(default)]
    pub draining: bool,
    /// Whether it is a licensed node's slot, and the tunnel does not pass that node: nothing is sealed in it.
    #[serde(default)]
    pub waiting: bool,
    /// The longest packet that its path takes, if that is known.
    #[serde(default)]
    pub path_mtu: Option<u16>,
    /// The longest datagram that has room in it.
    #[serde(default)]
    pub mtu: Option<u16>,
    /// What of ours it carries.
    pub local: Vec<String>,
    /// What of the peer's it carries.
    pub remote: Vec<String>,
    /// What came and was accepted.
    pub received: Traffic,
    /// What was sent.
    pub sent: Traffic,
}

/// How a child SA seals packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildKind {
    /// As a whole (RFC 4303).
    Plain,
    /// In zones.
    Zoned,
}

/// What of a packet a child SA seals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildMode {
    /// All of it.
    #[default]
    Tunnel,
    /// What follows the IP header, between the addresses outside.
    Transport,
    /// What follows the IP header, between two addresses inside.
    Beet,
}

/// An amount of inner traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Inner datagrams.
    pub packets: u64,
    /// Their octets.
    pub octets: u64,
}
