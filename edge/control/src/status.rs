//! `strata status`: peers, their SAs, and packet counters.

use crate::{Carrier, Lookup, MobileIp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// State of a host. Counters start with the daemon; times are whole seconds before the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Identity of this host.
    pub identity: String,
    /// Roles of this host in the configuration.
    pub roles: Vec<Role>,
    /// Time since the daemon started, in seconds.
    pub uptime_seconds: u64,
    /// The restart with which the daemon began, if a service manager kept the tunnel device; within
    /// an hour of it.
    #[serde(default)]
    pub restart: Option<Restart>,
    /// Failures of the daemon and of its host that last.
    #[serde(default)]
    pub errors: Vec<Trouble>,
    /// Human-readable warnings, the most severe first.
    pub warnings: Vec<String>,
    /// Prefixes reachable only through a tunnel (`leak = "never"`).
    #[serde(default)]
    pub locked: Vec<String>,
    /// Routes, rules, addresses and tables of a tunnel that another program keeps removing. The
    /// daemon no longer restores them.
    #[serde(default)]
    pub removed: Vec<String>,
    /// Sources of dropped packets in clear that claimed an inner address, within the last hour. At
    /// most 64 sources, those with the most packets first.
    #[serde(default)]
    pub clear: Vec<ClearClaim>,
    /// Reason why the filter against packets in clear with a claimed inner address could not be
    /// installed; `None` if it is in place or not needed.
    #[serde(default)]
    pub unguarded: Option<String>,
    /// Peers of the configuration, sorted by name.
    pub peers: Vec<Peer>,
    /// Name of the last peer that was visited, if others follow: `after` of the next request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Mobile IPv4 state; `None` if this host has no Mobile IPv4 role.
    #[serde(default)]
    pub mobile_ip: Option<MobileIp>,
    /// The last refusal of an unknown peer.
    #[serde(default)]
    pub refused_stranger: Option<Refusal>,
    /// Dropped packets by reason. Reasons with a count of zero are left out.
    pub drops: BTreeMap<String, u64>,
    /// TCP SYN segments whose MSS option was lowered to fit the tunnel.
    #[serde(default)]
    pub clamped: u64,
    /// Received packets whose TCP window a licensed node lowered (`right = "write"`).
    #[serde(default)]
    pub written: u64,
    /// Received packets that a licensed node injected on behalf of a silent peer
    /// (`right = "inject"`).
    #[serde(default)]
    pub injected: u64,
    /// Datagrams padded to hide their length, and octets of padding (`tfc`).
    #[serde(default)]
    pub padded: Traffic,
    /// Dummy packets sent during silence (`cover`).
    #[serde(default)]
    pub covered: u64,
    /// Dummy packets received. They are discarded by design and are not losses.
    #[serde(default)]
    pub dummies: u64,
    /// Datagrams whose outer and inner ECN fields differed at decapsulation.
    #[serde(default)]
    pub congestion: Congestion,
    /// Path MTU discovery.
    #[serde(default)]
    pub path_mtu: PathMtu,
}

impl Status {
    /// Adds the next part of the same answer.
    pub fn append(&mut self, part: Self) {
        self.peers.extend(part.peers);
        self.warnings.extend(part.warnings);
        self.next = part.next;
    }
}

/// A restart of the daemon, over which packets waited in the kept tunnel device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// Time since the start of this daemon, in seconds.
    pub seconds_ago: u64,
    /// Time from that start until the device was read, in microseconds.
    pub waited_micros: u64,
}

/// A task of the daemon that fails and has not succeeded since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// Name of the task, stable across versions: `dns`, `store`, `audit`, `keylog`, `addresses`,
    /// `names`, `resolvers`, `restore`, `routes`, `paths`, `send`, `agent`, `forwarding`,
    /// `reverse_path`, `removed` for state that is no longer restored, `filter` for packets in
    /// clear that are not dropped, or `wait` for an interface, address or route that the host does
    /// not have yet.
    pub task: String,
    /// Destination that is not reached, if the task concerns one.
    #[serde(default)]
    pub remote: Option<IpAddr>,
    /// Human-readable description and reason.
    pub what: String,
    /// Action that corrects it.
    pub fix: String,
    /// Time since the first failure, in seconds, if known.
    pub seconds: Option<u64>,
}

/// Packets in clear from one source that claimed a peer's inner address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClearClaim {
    /// Claimed inner source address of the packets.
    pub address: IpAddr,
    /// Name of the peer whose tunnel carries that address.
    pub peer: Option<String>,
    /// Interface on which the packets arrived.
    pub interface: String,
    /// Ethernet address of the source or of the last router before this host; `null` on other
    /// interfaces.
    pub link: Option<String>,
    /// Addresses that this host associates with that Ethernet address.
    pub from: Vec<IpAddr>,
    /// Packets dropped.
    pub packets: u64,
    /// Time since the last of these packets, in seconds.
    pub seconds_ago: u64,
}

/// Formats the claim as one line of text.
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

/// Effects of path MTU discovery (`path_mtu` in `[tunnel]`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathMtu {
    /// Datagrams too long for their tunnel, answered with an ICMP "packet too big" to their source.
    pub too_long: u64,
    /// Reported path MTUs that were ignored, because the report quoted no packet of a tunnel or the
    /// value is impossibly small, or that probes refuted: probably from forged ICMP messages.
    pub disbelieved: u64,
    /// Datagrams too long for their tunnel that were fragmented before they were sealed.
    #[serde(default)]
    pub cut: u64,
    /// Probes sent.
    #[serde(default)]
    pub probes: u64,
    /// Probes without an echo.
    #[serde(default)]
    pub lost: u64,
    /// Probes of peers that were echoed.
    #[serde(default)]
    pub echoed: u64,
}

/// Combinations of outer and inner ECN fields at decapsulation (RFC 6040).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Congestion {
    /// Datagrams marked CE by a congested router.
    pub marked: u64,
    /// Datagrams with a potentially dangerous combination, "(!!!)" in figure 4 of RFC 6040: the
    /// outer field may be forged.
    pub dangerous: u64,
    /// Datagrams with an unused combination, "(!)" in figure 4 of RFC 6040. It is harmless.
    pub unused: u64,
}

/// Role of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It terminates tunnels.
    Endpoint,
    /// It distributes keys to licensed nodes.
    Gateway,
    /// It receives keys and forwards packets between endpoints.
    LicensedNode,
    /// It keeps its home address on every network (Mobile IPv4).
    MobileNode,
    /// It serves visiting mobile nodes (Mobile IPv4).
    ForeignAgent,
    /// It tunnels packets to mobile nodes away from home (Mobile IPv4).
    HomeAgent,
}

/// A peer of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Name of the peer's table.
    pub name: String,
    /// Kind of the peer's table.
    pub kind: PeerKind,
    /// Table of a user: a peer that proved one of the many identities for which it stands.
    #[serde(default)]
    pub table: Option<String>,
    /// Number of users, if this is a table that stands for many identities. It is never up itself.
    #[serde(default)]
    pub users: Option<Users>,
    /// Identity that the peer must prove.
    pub identity: String,
    /// Connection state.
    pub state: PeerState,
    /// Address and port of the peer, if known.
    pub remote: Option<SocketAddr>,
    /// Interface that a link-local address belongs to; `None` for other addresses.
    #[serde(default)]
    pub interface: Option<String>,
    /// The name of the peer and its last lookup; `None` unless `address` is a name.
    #[serde(default)]
    pub lookup: Option<Lookup>,
    /// Encapsulation of packets to the peer.
    #[serde(default)]
    pub carrier: Carrier,
    /// Time since the peer came up, in seconds; `None` if it is not up.
    pub since_seconds: Option<u64>,
    /// Time since the last authentic message or packet of the peer, in seconds; `None` if it is not
    /// up.
    #[serde(default)]
    pub heard_seconds: Option<u64>,
    /// True if the peer has not answered a request that was sent three times or more.
    #[serde(default)]
    pub silent: bool,
    /// Two addresses from which the peer connects in turns, as if two machines had its key;
    /// otherwise empty.
    #[serde(default)]
    pub rivals: Vec<SocketAddr>,
    /// The last failure. Cleared when the peer comes up.
    pub last_refusal: Option<Refusal>,
    /// True if a post-quantum pre-shared key (PPK) protects all keys of the peer.
    #[serde(default)]
    pub ppk: bool,
    /// Additional key exchanges, as the configuration names them, that all keys of the peer depend
    /// on.
    #[serde(default)]
    pub kem: Vec<String>,
    /// True if the IKE SA may be cloned for a hand-over without a pause.
    #[serde(default)]
    pub clone: bool,
    /// Number of IKE SAs that are up: two while one replaces the other, more if the peer cloned its
    /// IKE SA.
    #[serde(default)]
    pub ike_sas: usize,
    /// IKE message windows (RFC 7296 section 2.3); `None` unless the peer is up.
    #[serde(default)]
    pub window: Option<Window>,
    /// Inner addresses that one end leased to the other.
    #[serde(default)]
    pub inside: Vec<IpAddr>,
    /// Prefixes routed into the tunnel; `None` unless the peer announces them
    /// (`routes = "subnets"`).
    #[serde(default)]
    pub routes: Option<Routes>,
    /// The peer's child SAs.
    pub children: Vec<Child>,
    /// Names of configured children that are down although the peer is up.
    #[serde(default)]
    pub missing: Vec<String>,
}

/// Number of users of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Users {
    /// Users now.
    pub here: u32,
    /// Most users at once.
    pub most: u32,
}

/// Kind of a peer's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerKind {
    /// `[peer.NAME]`: the other end of a tunnel.
    Vpn,
    /// `[licensed.NAME]`: a licensed node that receives keys from this host.
    Licensed,
    /// `[gateway.NAME]`: a gateway that grants keys to this host.
    Gateway,
    /// `[neighbour.NAME]`: another licensed node, for the exchange of keys when a mobile node moves
    /// between the two.
    Neighbour,
}

/// Connection state of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerState {
    /// No IKE SA exists and none is being established.
    Down,
    /// An IKE SA is being established, or the address of the peer is looked for.
    Connecting,
    /// The IKE SA is established.
    Up,
}

/// IKE message windows: limits on outstanding requests (RFC 7296 section 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Requests that the peer may have outstanding; the window that this host announced.
    pub ours: u8,
    /// Requests that this host may have outstanding: the smaller of both announced windows.
    pub theirs: u8,
    /// Requests that this host has outstanding.
    pub under_way: usize,
}

/// Prefixes routed into a tunnel, and their origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routes {
    /// Origin of the prefixes.
    pub reason: RoutesReason,
    /// Prefixes routed into the tunnel; other traffic bypasses it.
    pub prefixes: Vec<String>,
    /// Prefixes that the peer announced and the tunnel carries only in part or not at all.
    pub beyond: Vec<String>,
}

/// Origin of the prefixes routed into a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoutesReason {
    /// The peer announced them.
    Subnets,
    /// They are those of `remote`, because the peer announced no prefix or too many.
    Unsaid,
    /// None yet: the peer has not been up.
    Awaited,
}

/// Formats the routes as one line of text.
impl fmt::Display for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefixes = match self.prefixes.as_slice() {
            [] => "none".to_owned(),
            prefixes => prefixes.join(", "),
        };
        let reason = match self.reason {
            RoutesReason::Subnets => "announced by the peer",
            RoutesReason::Unsaid => {
                "all of `remote`: the peer announces no prefixes, or more than 256"
            }
            RoutesReason::Awaited => "waiting for the prefixes of the peer",
        };
        write!(f, "{prefixes}: {reason}")?;
        match self.beyond.as_slice() {
            [] => Ok(()),
            beyond => write!(
                f,
                "; the tunnel does not carry all of {}: add it to `local` of the peer and to `remote` here",
                beyond.join(", ")
            ),
        }
    }
}

/// A refusal or failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Time since the event, in seconds.
    pub seconds_ago: u64,
    /// Source of the refused message, if its sender is not authenticated.
    #[serde(default)]
    pub from: Option<SocketAddr>,
    /// Human-readable reason.
    pub reason: String,
}

/// A child SA.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    /// Name of the child's table; `null` for the tunnel of the peer's own table.
    #[serde(default)]
    pub name: Option<String>,
    /// SPI towards us, as eight hexadecimal digits.
    pub spi_in: String,
    /// SPI towards the peer, as eight hexadecimal digits.
    pub spi_out: String,
    /// Plain or zoned ESP.
    pub kind: ChildKind,
    /// Cipher suite of plain ESP; `null` for zoned ESP, whose zones have a suite each.
    #[serde(default)]
    pub suite: Option<String>,
    /// True if its packets are authenticated and not encrypted (`unencrypted`).
    #[serde(default)]
    pub unencrypted: bool,
    /// Packets that may still go without encryption, here and on the peer's other child SAs
    /// (`packets` in `unencrypted`); `null` if it encrypts.
    #[serde(default)]
    pub packets_left: Option<u64>,
    /// True with 64-bit extended sequence numbers (`esn`).
    #[serde(default)]
    pub esn: bool,
    /// Key exchanges of the child SA's own (`pfs`), as the configuration names them. Empty if its
    /// keys derive from the IKE SA alone, as those of the first child SA do.
    #[serde(default)]
    pub key_exchanges: Vec<String>,
    /// Encapsulation mode.
    #[serde(default)]
    pub mode: ChildMode,
    /// Encapsulation of its packets.
    #[serde(default)]
    pub carrier: Carrier,
    /// True if a newer SA has replaced this one, which remains for packets in flight.
    #[serde(default)]
    pub draining: bool,
    /// True for the slot of a licensed node that is not on the tunnel's path: the SA seals no
    /// packets.
    #[serde(default)]
    pub waiting: bool,
    /// Path MTU in octets, including the outer headers, if known.
    #[serde(default)]
    pub path_mtu: Option<u16>,
    /// Origin of the path MTU, if known.
    #[serde(default)]
    pub path_mtu_origin: Option<MtuOrigin>,
    /// Longest inner datagram that fits into the SA, in octets.
    #[serde(default)]
    pub mtu: Option<u16>,
    /// Local traffic selectors.
    pub local: Vec<String>,
    /// Remote traffic selectors.
    pub remote: Vec<String>,
    /// Traffic received and accepted.
    pub received: Traffic,
    /// Traffic sent.
    pub sent: Traffic,
    /// Octets received per second, over the last seconds.
    #[serde(default)]
    pub received_per_second: u64,
    /// Octets sent per second, over the last seconds.
    #[serde(default)]
    pub sent_per_second: u64,
}

/// ESP format of a child SA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildKind {
    /// Plain ESP: each packet is sealed as a whole (RFC 4303).
    Plain,
    /// Zoned ESP: each zone of a packet is sealed with its own key.
    Zoned,
}

/// Encapsulation mode of a child SA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildMode {
    /// Seals the whole inner packet.
    #[default]
    Tunnel,
    /// Seals the payload of the IP packet, between the outer addresses.
    Transport,
    /// Seals the payload of the IP packet, between two fixed inner addresses.
    Beet,
}

/// Origin of a path MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MtuOrigin {
    /// The interface; nothing was sent on the path yet.
    Interface,
    /// A router reported it.
    Reported,
    /// The longest probe that came through.
    Probed,
    /// A search is under way.
    Searching,
    /// The peer echoes no probes: a length that nearly every path carries.
    Safe,
}

/// An amount of inner traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Inner datagrams.
    pub packets: u64,
    /// Octets of the inner datagrams.
    pub octets: u64,
}
