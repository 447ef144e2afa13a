//! Settings that are legal but may be unintended.

use crypto::{UnixTime, Untrusted};
use model::{Identity, Wildcard};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// A setting to review. The text states its consequence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// Every user of this machine may change the configuration.
    #[error(
        "every user of this machine may change {} and with it all tunnels: run `chmod o-w` on it",
        file.display()
    )]
    Writable {
        /// The configuration.
        file: PathBuf,
    },
    /// A certificate of ours, or of a CA, is no longer valid.
    #[error(
        "the certificate of `{subject}` EXPIRED on {end}: peers are refused until it is renewed"
    )]
    Expired {
        /// The subject of the certificate.
        subject: String,
        /// The end of its validity.
        end: UnixTime,
    },
    /// A certificate of ours, or of a CA, expires soon.
    #[error("the certificate of `{subject}` expires in {days} days, on {end}: renew it")]
    Expires {
        /// The subject of the certificate.
        subject: String,
        /// The end of its validity.
        end: UnixTime,
        /// Whole days until the end.
        days: u64,
    },
    /// A certificate of ours, or of a CA, is not valid yet.
    #[error(
        "the certificate of `{subject}` is valid only from {start}, and peers refuse it until then: compare the clock of this machine with `date --utc`, and correct it if it is behind"
    )]
    NotYetValid {
        /// The subject of the certificate.
        subject: String,
        /// The start of its validity.
        start: UnixTime,
    },
    /// The revocation list is past its next update, and the newer list is not loaded.
    #[error(
        "the revocation list of `{issuer}` EXPIRED on {end}: later revocations are unknown, and with `revocation = \"strict\"` its certificates are refused; get the newest list and run `strata reload`"
    )]
    RevocationListEnded {
        /// The issuing CA.
        issuer: String,
        /// The time of the next update.
        end: UnixTime,
    },
    /// The revocation list reaches its next update soon.
    #[error(
        "the revocation list of `{issuer}` expires on {end}: get the newest list and run `strata reload`"
    )]
    RevocationListEnds {
        /// The issuing CA.
        issuer: String,
        /// The time of the next update.
        end: UnixTime,
    },
    /// Peers refuse our certificate, whatever the time.
    #[error(
        "peers that run Strata refuse our certificate ({why}), and others may: issue another one (`strata pki issue`)"
    )]
    Refused {
        /// The reason.
        why: Untrusted,
    },
    /// One of our own certificates, or a CA's, is revoked.
    #[error(
        "the certificate of `{subject}` was REVOKED on {since}: peers with a current revocation list refuse it"
    )]
    Revoked {
        /// The subject of the certificate.
        subject: String,
        /// The time of the revocation.
        since: UnixTime,
    },
    /// Other machines can read the metrics.
    #[error(
        "[metrics] `listen = \"{address}\"`: whoever can connect there reads the names of all peers and how much they send; listen at \"127.0.0.1:{}\", or let a firewall pass only the collector",
        address.port()
    )]
    MetricsExposed {
        /// The address.
        address: SocketAddr,
    },
    /// There are more worker threads than tunnels, so some threads have no tunnel of their own.
    #[error(
        "{peer} has `resources = {resources}`, fewer than `workers = {workers}`: threads without a tunnel of their own wait for the others; remove `resources`"
    )]
    ThreadsWait {
        /// Name of the peer's table.
        peer: String,
        /// Number of tunnels.
        resources: u8,
        /// Number of threads.
        workers: u8,
    },
    /// A zone is authenticated and not encrypted.
    #[error(
        "ZONE IN CLEAR: every router on the path can read zone `{zone}` of the tunnel with {peer}: \
         its suite does not encrypt"
    )]
    ZoneInClear {
        /// Name of the peer's table.
        peer: String,
        /// The zone.
        zone: String,
    },
    /// A tunnel is authenticated and not encrypted.
    #[error(
        "TUNNEL IN CLEAR: until {until} or for {packets} packets, every router on the path can read \
         the tunnel with {peer}: `unencrypted` accepts {suites}"
    )]
    TunnelInClear {
        /// Name of the peer's table.
        peer: String,
        /// The suites.
        suites: String,
        /// The end.
        until: UnixTime,
        /// The most packets.
        packets: u32,
    },
    /// The time of a tunnel without encryption is over.
    #[error("`unencrypted` of {peer} ended on {until}, and its tunnel is encrypted: remove it")]
    UnencryptedEnded {
        /// Name of the peer's table.
        peer: String,
        /// The end.
        until: UnixTime,
    },
    /// A licence opens the payload.
    #[error(
        "PAYLOAD LICENSED: {node} may read everything in the tunnel with {peer}; \
         the payload is not confidential end to end"
    )]
    PayloadLicensed {
        /// Name of the peer's table.
        peer: String,
        /// The node.
        node: Identity,
    },
    /// A node gets the keys of every path.
    #[error(
        "{node} gets the keys of every path to {peer}, as its licence has no `at`: write the \
         addresses of the paths that it is on"
    )]
    LicenceOnEveryPath {
        /// Name of the peer's table.
        peer: String,
        /// The node.
        node: Identity,
    },
    /// Two nodes hold the key of the same zone.
    #[error(
        "{one} and {other} share the key of `{zone}` of {peer} (`shared`, `holders`): each can forge data that the other accepts, although neither endpoint does"
    )]
    KeyShared {
        /// Name of the peer's table.
        peer: String,
        /// The zone.
        zone: String,
        /// A node.
        one: Identity,
        /// Another node.
        other: Identity,
    },
    /// A licensed node's keys travel without the PPK that protects the tunnel (RFC 8784 section 6).
    #[error(
        "the keys that {node} gets for the tunnel with {peer} are not protected by its `ppk`: an attacker with a quantum computer could read what {node} may read"
    )]
    LicenceWithoutPpk {
        /// Name of the peer's table.
        peer: String,
        /// The node.
        node: Identity,
    },
    /// A licensed node's keys travel without the additional key exchange that protects the tunnel.
    #[error(
        "the keys that [licensed.{node}] gets for the tunnel with {peer} are not protected by its `kem`: write the same `kem` in both tables, and in the node's own table for this gateway"
    )]
    LicenceWithoutKem {
        /// Name of the peer's table.
        peer: String,
        /// Name of the node's table.
        node: String,
    },
    /// The licences of a tunnel that we accept name a node without a table, so it gets no keys from
    /// us.
    #[error(
        "the licences of {peer} name {node}, but no [licensed.NAME] {}: this host sends it no keys",
        match_of(node)
    )]
    NodeWithoutTable {
        /// Name of the peer's table.
        peer: String,
        /// The node.
        node: Identity,
    },
    /// No licence names a licensed node.
    #[error("no peer's licences name {node} ([licensed.{name}]): it never gets keys")]
    NodeWithoutLicence {
        /// Name of the node's table.
        name: String,
        /// The node.
        node: Identity,
    },
    /// A licensed node has a place, and is licensed by its name.
    #[error(
        "`at` of [licensed.{name}] has no effect, as {node} is licensed by its name: write `at` in that licence"
    )]
    PlaceUnused {
        /// Name of the node's table.
        name: String,
        /// The node.
        node: Identity,
    },
    /// A selector has no counterpart of its address family.
    #[error(
        "the tunnel with {peer} never carries {prefix}: the other side lists no prefix of its address family"
    )]
    OneFamily {
        /// Name of the peer's table.
        peer: String,
        /// The prefix without a counterpart.
        prefix: String,
    },
    /// Two peers claim the same destinations.
    #[error(
        "{second} claims {prefix}, which {first} claims as well: such packets take the tunnel of {taken}"
    )]
    Overlap {
        /// Name of the first peer's table.
        first: String,
        /// Name of the other peer's table.
        second: String,
        /// The prefix that both claim.
        prefix: String,
        /// The tunnel that carries the packets.
        taken: String,
    },
    /// No tunnel leads to a name server, so programs query it in clear.
    #[error("no tunnel carries packets to the name server {server}: DNS queries are sent in clear")]
    NameServerOutside {
        /// The server.
        server: IpAddr,
    },
    /// A discard policy names packets that are not routed into any tunnel.
    #[error(
        "no tunnel carries {packets}: its discard has no effect, and packets are sent in clear"
    )]
    DiscardOutside {
        /// The packets that the policy names.
        packets: String,
    },
    /// No peer leases from a pool.
    #[error("no peer has `pool = \"{name}\"`: [pool.{name}] is unused")]
    PoolWithoutPeer {
        /// Name of the pool.
        name: String,
    },
    /// Tickets should be by value, and their use is to be counted.
    #[error(
        "the limits `established` and `data` are counted in our store, so tickets are by reference: remove them, or `tickets_by_value`"
    )]
    TicketsByReference,
    /// A pool announces a subnet that the peer's tunnel does not carry.
    #[error(
        "the pool of {peer} announces {subnet}, which its tunnel does not carry: add it to `local` of [peer.{peer}], or remove it from `subnets`"
    )]
    SubnetOutside {
        /// Name of the peer's table.
        peer: String,
        /// The subnet.
        subnet: String,
    },
    /// A secret of Mobile IP is easy to guess.
    #[error(
        "the secret of [{table}] is weak: {why} by any station that receives a registration; make one with `(umask 077; head -c 32 /dev/urandom | base64 > FILE)`"
    )]
    WeakSecret {
        /// The table.
        table: String,
        /// The reason.
        why: String,
    },
    /// The foreign agent accepts visitors from any home network.
    #[error(
        "OPEN TO ALL VISITORS: any station on {interface} can register any home address that this router does not use, with its own home agent: list home networks in `homes`, or home agents in [foreign_agent.home.NAME]"
    )]
    AnybodyVisits {
        /// The device on which visitors register.
        interface: String,
    },
    /// Two home agents have no home networks, so each can register the other's mobile nodes.
    #[error(
        "[foreign_agent.home.{first}] and [foreign_agent.home.{second}] can register each other's mobile nodes: write the home networks of each as its `homes`"
    )]
    SharedHomes {
        /// Name of the first home agent's table.
        first: String,
        /// Name of the other home agent's table.
        second: String,
    },
    /// `nat` is set, but no agent has a key, so requests for tunnels in UDP cannot be
    /// authenticated.
    #[error(
        "`nat` is set, but no [{table}.NAME] has a `key`: without a key at both ends, a home agent cannot authenticate a request for tunnels in UDP and denies it with code 132"
    )]
    NatWithoutKey {
        /// The kind of tables that would hold the keys.
        table: &'static str,
    },
    /// `[divert]` names devices on which visitors' packets are already tunnelled or do not pass.
    #[error(
        "[divert] misses the packets of visitors: write `wired = \"strata-mobile\"` and `wireless = \"{interface}\"`"
    )]
    VisitorsNotDiverted {
        /// The device on which visitors register.
        interface: String,
    },
    /// A licensed node has gateways but diverts no packets.
    #[error("there is a [gateway.NAME] but no [divert]: this node gets keys but opens no packets")]
    NothingDiverted,
}

/// Returns the words for a table that matches a licensed node, which may be a domain.
fn match_of(licensed: &Identity) -> &'static str {
    match Wildcard::read(licensed) {
        Some(_) => "is a node of it",
        None => "has this id",
    }
}
