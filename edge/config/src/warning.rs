//! What is legal, but may not be meant.

use crypto::UnixTime;
use model::Identity;
use std::net::IpAddr;

/// Something to look at twice. The text says what follows from it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// A certificate of ours, or of a CA, is no longer valid.
    #[error(
        "the certificate of `{subject}` EXPIRED on {end}: peers are refused until it is renewed"
    )]
    Expired {
        /// Whose it is.
        subject: String,
        /// When it ended.
        end: UnixTime,
    },
    /// It will soon be so.
    #[error("the certificate of `{subject}` expires in {days} days, on {end}: renew it")]
    Expires {
        /// Whose it is.
        subject: String,
        /// When it ends.
        end: UnixTime,
        /// Whole days until then.
        days: u64,
    },
    /// Newer lists are to be had, and we do not have them.
    #[error(
        "the revocation list of `{issuer}` ENDED on {end}: get the newest and `strata reload`; until then what was revoked since is believed, or with `revocation = \"strict\"` none of its certificates"
    )]
    RevocationListEnded {
        /// The CA.
        issuer: String,
        /// When it ended.
        end: UnixTime,
    },
    /// It will soon be so.
    #[error("the revocation list of `{issuer}` ends on {end}: get the newest and `strata reload`")]
    RevocationListEnds {
        /// The CA.
        issuer: String,
        /// When it ends.
        end: UnixTime,
    },
    /// One of our own certificates, or a CA's, is revoked.
    #[error("the certificate of `{subject}` was REVOKED on {since}: peers that know refuse it")]
    Revoked {
        /// Whose it is.
        subject: String,
        /// Since when.
        since: UnixTime,
    },
    /// There are more threads than tunnels that one of them may have for its own.
    #[error(
        "{peer} has `resources = {resources}`, and there are {workers} `workers`: threads without a tunnel of their own wait for those that have one; leave `resources` out"
    )]
    ThreadsWait {
        /// The table.
        peer: String,
        /// How many tunnels.
        resources: u8,
        /// How many threads.
        workers: u8,
    },
    /// A zone is authenticated and not encrypted.
    #[error(
        "ZONE IN CLEAR: everybody on the way reads the zone `{zone}` of the tunnel with {peer}: \
         its suite does not encrypt"
    )]
    ZoneInClear {
        /// Name of the peer's table.
        peer: String,
        /// The zone.
        zone: String,
    },
    /// A licence opens the payload.
    #[error(
        "PAYLOAD LICENSED: {node} may read everything in the tunnel with {peer}; \
         protection from end to end ends there"
    )]
    PayloadLicensed {
        /// Name of the peer's table.
        peer: String,
        /// The node.
        node: Identity,
    },
    /// Two nodes get the key of a zone.
    #[error(
        "{one} and {other} share the key of `{zone}` of {peer} (`shared`, `holders`): what either of them makes of it the other believes, though no end does"
    )]
    KeyShared {
        /// Name of the peer's table.
        peer: String,
        /// The zone.
        zone: String,
        /// A node.
        one: Identity,
        /// Another one.
        other: Identity,
    },
    /// A licensed node's keys travel without the PPK that protects the tunnel (RFC 8784 section 6).
    #[error(
        "the keys that {node} gets to the tunnel with {peer} travel without its `ppk`: who breaks that exchange with a quantum computer reads what {node} may read"
    )]
    LicenceWithoutPpk {
        /// Name of the peer's table.
        peer: String,
        /// The node.
        node: Identity,
    },
    /// A licensed node's keys travel without the additional key exchange that protects the tunnel.
    #[error(
        "the keys that [licensed.{node}] gets to the tunnel with {peer} travel without its `kem`: write the same one into both tables, and into that for us there"
    )]
    LicenceWithoutKem {
        /// Name of the peer's table.
        peer: String,
        /// Name of the node's table.
        node: String,
    },
    /// We accept a tunnel whose licences name a node that we cannot give keys to.
    #[error(
        "the licences of {peer} name {node}, but no [licensed.NAME] has this id: it gets no keys from here"
    )]
    NodeWithoutTable {
        /// Name of the peer's table.
        peer: String,
        /// The node.
        node: Identity,
    },
    /// A licensed node that no licence names.
    #[error("no peer's licences name {node} ([licensed.{name}]): it never gets keys")]
    NodeWithoutLicence {
        /// Name of the node's table.
        name: String,
        /// The node.
        node: Identity,
    },
    /// A selector without a counterpart of its address family.
    #[error(
        "the tunnel with {peer} never carries {prefix}: the other side lists no prefix of its address family"
    )]
    OneFamily {
        /// Name of the peer's table.
        peer: String,
        /// The lonely prefix.
        prefix: String,
    },
    /// Two peers that claim the same destinations.
    #[error(
        "{second} claims {prefix}, which {first} claims as well: such packets take one of the two tunnels"
    )]
    Overlap {
        /// Name of the first peer's table.
        first: String,
        /// Name of the other peer's table.
        second: String,
        /// What both claim.
        prefix: String,
    },
    /// Programs ask a name server that no tunnel leads to.
    #[error("no tunnel leads to the name server {server}: what programs ask it is sent in clear")]
    NameServerOutside {
        /// The server.
        server: IpAddr,
    },
    /// A discard of what is not routed into any tunnel.
    #[error("no tunnel leads to {packets}: a discard stops nothing there, it is sent in clear")]
    DiscardOutside {
        /// What it speaks of.
        packets: String,
    },
    /// A pool that nobody lends from.
    #[error("no peer has `pool = \"{name}\"`: nothing of [pool.{name}] is ever lent")]
    PoolWithoutPeer {
        /// Name of the pool.
        name: String,
    },
    /// A pool tells a peer of what its tunnel does not carry.
    #[error(
        "{peer} is told that {subnet} is behind us, and its tunnel does not carry that: add it to `local` of [peer.{peer}], or take it out of `subnets`"
    )]
    SubnetOutside {
        /// Name of the peer's table.
        peer: String,
        /// The subnet.
        subnet: String,
    },
    /// A secret of Mobile IP that could be guessed.
    #[error(
        "the secret of [{table}] is weak: {why}, by any station that hears a registration; make one with `(umask 077; head -c 32 /dev/urandom | base64 > FILE)`"
    )]
    WeakSecret {
        /// The table.
        table: String,
        /// What makes it easy to guess.
        why: String,
    },
    /// Visitors say themselves where they are at home.
    #[error(
        "ANYBODY VISITS: any station on {interface} can register any home address that this router does not use itself, with a home agent of its own: list home networks in `homes`, or home agents in [foreign_agent.home.NAME]"
    )]
    AnybodyVisits {
        /// The device where visitors are.
        interface: String,
    },
    /// Tunnels in UDP are wanted, and no foreign agent proves that it asks for one.
    #[error(
        "`nat` is written and no [{table}.NAME] has a `key`: without one at both ends a home agent believes no foreign agent that it is behind a NAT, for any host that hears a registration could say so, and denies with code 132"
    )]
    NatWithoutKey {
        /// The tables that have keys.
        table: &'static str,
    },
    /// Packets are diverted where those of visitors are in a tunnel, or do not pass.
    #[error(
        "[divert] does not see what visitors send and get: write `wired = \"strata-mobile\"` and `wireless = \"{interface}\"`"
    )]
    VisitorsNotDiverted {
        /// The device where visitors are.
        interface: String,
    },
    /// A licensed node that never sees a packet.
    #[error("there is a [gateway.NAME] but no [divert]: keys are taken and nothing is ever opened")]
    NothingDiverted,
}
