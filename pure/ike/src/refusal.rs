//! Reasons for refusals, by either end.

use crate::allowed_suites::AllowedIkeSuites;
use crate::bad_proof::BadProof;
use crate::destination::Destination;
use crate::down_reason::{DownReason, PeerMisbehaved};
use crate::extension::mode::BadMode;
use crate::extension::ppk::BadPpk;
use crate::placed::Unplaced;
use crate::signature::NotVerified;
use model::{EspSuite, Group, Identity, InnerAddresses, Kem, Licence, Mode, Suite};
use std::net::{IpAddr, SocketAddr};
use wire::ike::{NotifyType, RefusalCode};

/// Reason not to follow a peer to the source address of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfollowed {
    /// The new address did not answer.
    #[error(
        "that address does not answer; if the NAT of the peer changed, its next message is checked again"
    )]
    Unanswered,
    /// The old address still answers.
    #[error(
        "the peer still answers at its previous address, so a router may have changed the header"
    )]
    StillThere,
    /// The peer changed its address too often.
    #[error(
        "the peer changed its address too often in this second; its next message is checked again"
    )]
    TooOften,
    /// Too many peers changed their addresses.
    #[error(
        "too many peers changed their addresses in this second; the next message is checked again"
    )]
    TooMany,
}

/// Reason not to resume a session whose entry was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotResumed {
    /// The initiator does not know the keys of the session.
    #[error("its sender does not know the keys of the session")]
    WrongProof,
    /// The session belongs to another identity.
    #[error("the session belongs to another identity")]
    OtherIdentity,
    /// The configuration allows no tickets for the peer.
    #[error("tickets are off for this peer")]
    Off,
    /// The session was authenticated in another way than the configuration requires now.
    #[error("the session was authenticated in another way than the configuration requires now")]
    TooLittle,
    /// A credential, or our identity, has been replaced since the session was authenticated.
    #[error("a key, a CA or an identity in the configuration has changed since")]
    OtherCredential,
    /// The inner addresses of the session are leased to another identity.
    #[error("its inner addresses have been leased to another one since")]
    OtherAddress,
    /// The configuration has changed since the first message was answered.
    #[error("the configuration has changed while the session was being resumed")]
    Reconfigured,
    /// The answer would be too long for a source address that is not verified.
    #[error("the answer would be much longer than the request, whose source is not verified")]
    TooLong,
    /// Another attempt has used the ticket, or the store did not answer in time.
    #[error("the ticket has been used, or the store of sessions did not answer in time")]
    Spent,
}

/// Reason for refusing a peer's request, or for which the peer refused ours. `Display` states the
/// fact for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The initiator authenticated by another method than a pre-shared key or a signature.
    #[error(
        "the peer wants to authenticate by another method than pre-shared key or signature (RFC 7427)"
    )]
    AuthenticationMethod,
    /// No configured peer has this identity.
    #[error("no peer with the identity {0} is configured")]
    UnknownIdentity(Identity),
    /// The initiator named another responder identity than ours.
    #[error("the peer expects {wanted}, but we are {ours}")]
    NotWhoWeAre {
        /// Identity that the initiator expects.
        wanted: Identity,
        /// Our identity.
        ours: Identity,
    },
    /// The peer connected from another address than the configured one.
    #[error("{identity} came from {address}, which is not the configured address of that peer")]
    WrongAddress {
        /// Claimed identity.
        identity: Identity,
        /// Source address.
        address: IpAddr,
    },
    /// The peer's proof does not verify with the pre-shared key.
    #[error("the pre-shared key of {0} does not match ours")]
    WrongKey(Identity),
    /// The peer's proof by signature is not acceptable.
    #[error("{claimed}: {why}")]
    BadProof {
        /// Claimed identity.
        claimed: Identity,
        /// Reason.
        why: BadProof,
    },
    /// The peer presented a ticket of ours, and its session is not resumed.
    #[error("{claimed} cannot resume its session: {why}; a full exchange follows")]
    NotResumed {
        /// Claimed identity.
        claimed: Identity,
        /// Reason.
        why: NotResumed,
    },
    /// The peer's use of a PPK is not acceptable.
    #[error("{claimed}: {why}")]
    BadPpk {
        /// Claimed identity.
        claimed: Identity,
        /// Reason.
        why: BadPpk,
    },
    /// The PPK, which is optional here, was not used.
    #[error(
        "the peer does not use the configured PPK: the tunnel is not protected against quantum computers"
    )]
    WithoutPpk,
    /// The additional key exchange, which is optional here, did not take place.
    #[error(
        "the peer does not use the configured additional key exchange: the tunnel is not protected against quantum computers"
    )]
    WithoutKem,
    /// The peer supports only one child SA for the same traffic.
    #[error(
        "the peer does not support several tunnels for the same traffic (RFC 9611), as configured here: one is used"
    )]
    WithoutResources,
    /// Our credential cannot sign, so we cannot authenticate.
    #[error("our private key cannot sign")]
    CannotProve,
    /// The peer cannot verify our signature.
    #[error("{0}")]
    SignatureNotAccepted(#[from] NotVerified),
    /// No proposal for the IKE SA is acceptable.
    #[error(
        "the peer offers no IKE suite that is allowed here ({} with prfsha256 and {}{})",
        either(.suites), either(.groups), besides(.kems)
    )]
    NoIkeProposal {
        /// Suites allowed here.
        suites: Vec<Suite>,
        /// Groups allowed here.
        groups: Vec<Group>,
        /// Additional key exchanges allowed here. `None` among them makes them optional.
        kems: Vec<Option<Kem>>,
    },
    /// No proposal for the child SA is acceptable.
    #[error("the peer offers no ESP suite that is allowed here ({} {})", either(.allowed), numbers(*.esn))]
    NoEspProposal {
        /// Suites allowed here.
        allowed: Vec<EspSuite>,
        /// True if extended sequence numbers are allowed as well.
        esn: bool,
    },
    /// The peer offers only child SAs without encryption, which are not accepted, or no longer.
    #[error(
        "the peer offers only ESP without encryption, which is not accepted here, or no longer"
    )]
    Unencrypted,
    /// The traffic selectors do not overlap with ours.
    #[error("none of the peer's traffic selectors is within ours")]
    TrafficSelectors,
    /// The child SA cannot have the configured mode.
    #[error("{0}")]
    Mode(#[from] BadMode),
    /// The peer asked for another mode, but tunnel mode is configured here.
    #[error("the peer requests {0} mode, but gets tunnel mode, as configured here")]
    ModeDeclined(Mode),
    /// The peer requested no inner address, although we assign them.
    #[error("the peer requests no inner address, but has to use one of the pool `{pool}`")]
    NoRequest {
        /// Name of the pool.
        pool: String,
    },
    /// All addresses of the pool are leased.
    #[error("the pool `{pool}` has no free address for the peer")]
    NoAddressLeft {
        /// Name of the pool.
        pool: String,
    },
    /// The traffic selectors of the peer exclude the address that was leased to it.
    #[error(
        "the peer's traffic selectors exclude its leased address ({}), the only one that the peer may use", either(&.0.iter().collect::<Vec<_>>())
    )]
    NotItsAddress(InnerAddresses),
    /// The peer initiated, but it assigns our inner address, which only an initiator can request.
    #[error("this peer assigns our inner address, so it cannot initiate")]
    AddressNotAsked,
    /// The role of the peer allows no child SA.
    #[error("the peer requests a tunnel, but its role here allows none")]
    NoChildForRole,
    /// A request for a child SA lacks some of its payloads.
    #[error("the peer requests a tunnel without proposals or traffic selectors")]
    ChildMissing,
    /// The peer lacks NAT traversal, but only ESP in UDP is supported here.
    #[error(
        "the peer does not support NAT traversal, which ESP in UDP requires, the only encapsulation here"
    )]
    NoNatTraversal,
    /// Zones are required here, and the peer offered none that are acceptable.
    #[error("zones are required here, but the peer offered none that fit")]
    ZonesRequired,
    /// Zones are wanted here but were not agreed; plain ESP is used.
    #[error(
        "the peer did not agree to our zones: the tunnel is plain, and no licensed node can help"
    )]
    ZonesNotAgreed,
    /// Unencrypted traffic is allowed here, but the peer did not agree to it.
    #[error("the peer did not agree to unencrypted traffic: all traffic is encrypted")]
    LevelNotAgreed,
    /// The peer does not accept one of our licences.
    #[error("the peer does not accept our licence for zone {} to {}: that node cannot read the zone", .0.zone, .0.node)]
    LicenceNotAccepted(Licence),
    /// The operator took the peer down.
    #[error("the peer was taken down here")]
    TakenDown,
    /// The peer is up from another address, and its first tunnel stays.
    #[error("the peer is up from {at}, and that tunnel stays")]
    UpElsewhere {
        /// The other address.
        at: IpAddr,
    },
    /// The table has as many users as it may have.
    #[error("{identity} is not admitted: {most} users are here already")]
    TooManyUsers {
        /// The proved identity.
        identity: Identity,
        /// Most users of the table.
        most: u32,
    },
    /// The identity has as many tunnels as it may have.
    #[error("{identity} has all of its {most} tunnels already")]
    TooManyTunnels {
        /// The proved identity.
        identity: Identity,
        /// Most tunnels of one identity.
        most: usize,
    },
    /// An unauthenticated error notify answered our request. It may be forged, so we keep trying.
    #[error("ignoring an unauthenticated {0} from this address; still trying")]
    Unproved(NotifyType),
    /// The peer has proved that it lost the IKE SA.
    #[error("the peer was started again and has lost the tunnel; setting it up again")]
    Restarted,
    /// An unauthenticated answer lacks a feature that we need. It may be forged, so we keep trying.
    #[error("ignoring an unauthenticated answer from this address ({0}); still trying")]
    UnprovedLack(Box<DownReason>),
    /// A peer that is not our gateway sent a grant.
    #[error("the peer sent a grant, but is not configured as our gateway")]
    NotOurGateway,
    /// The peer refused to rekey.
    #[error(
        "the peer refused to rekey ({0}); retrying less and less often until the old keys expire, then establishing a new IKE SA"
    )]
    RekeyRefused(NotifyType),
    /// The peer refused a key exchange in the rekey of a child SA, whose keys then come from the
    /// IKE SA alone.
    #[error(
        "the peer refused a key exchange for the tunnel's keys, which now come from the IKE SA alone"
    )]
    ExchangeRefused,
    /// Re-authentication failed: no new IKE SA could replace the existing one.
    #[error(
        "re-authentication failed; retrying, while the tunnel stays up for a quarter of the interval more: {0}"
    )]
    NotReauthenticated(Box<DownReason>),
    /// The peer refused to clone the IKE SA.
    #[error("the tunnel stays on its path: the peer refused to clone the IKE SA ({0})")]
    CloneRefused(NotifyType),
    /// The IKE SA was cloned, but the hand-over to the clone failed.
    #[error("the tunnel stays on its path, as the handover failed: {0}")]
    NotHandedOver(Box<DownReason>),
    /// The peer tried to clone the IKE SA, which was not negotiated.
    #[error("the peer wants to clone its IKE SA (RFC 7791), which was not negotiated")]
    CloneNotAgreed,
    /// The peer has as many clones as it may have.
    #[error("the peer wants to clone its IKE SA, but already has {0} more")]
    TooManyClones(usize),
    /// The initiator was redirected to another gateway.
    #[error("the peer was redirected to {0}, as configured here")]
    SentElsewhere(Destination),
    /// The peer redirected us, and we do not follow.
    #[error("the redirect is not followed: {0}")]
    RedirectNotFollowed(Box<DownReason>),
    /// The peer's public value is invalid.
    #[error("the peer's public value for the key exchange is invalid")]
    KeyExchange,
    /// The peer requested another child SA, but all configured ones exist already.
    #[error("the peer requests another tunnel, but all of its configured tunnels are in use")]
    AnotherChild,
    /// The peer offered to license these nodes, and no slot here is for exactly these nodes.
    #[error("the peer offers to let {}: no keys are distributed, and no node reads there", offer(.0))]
    OfferRefused(Vec<Identity>),
    /// The peer offered to license a node of a domain without the place of the node.
    #[error(
        "the peer offers to let {0} read without its place, as a node that it licenses by its \
         name, and here the node is licensed by its domain"
    )]
    OfferWithoutPlace(Identity),
    /// The peer offered to license one more node of a domain than may have keys at once.
    #[error(
        "the peer offers to let {node} read, but {most} nodes of its domain have keys already, as \
         many as may"
    )]
    TooManyOfDomain {
        /// The node.
        node: Identity,
        /// Most nodes of the domain at once.
        most: usize,
    },
    /// The peer has as many child SAs for the same traffic as it may have.
    #[error("the peer requests another tunnel for the same traffic, but already has all {0}")]
    TooManyResources(u8),
    /// The peer creates no more child SAs for the same traffic.
    #[error(
        "the peer creates no more tunnels for the same traffic; retrying when one of the tunnels is gone"
    )]
    NoMoreResources,
    /// The peer supports only one path at a time.
    #[error(
        "the peer does not support several live paths, as configured here: one path is used at a time"
    )]
    WithoutPaths,
    /// The peer does not support selectors for the traffic of live paths.
    #[error(
        "the peer does not support traffic of its own for an interface, as configured here: all flows share the paths"
    )]
    WithoutPathTraffic,
    /// The peer chooses the paths.
    #[error(
        "the traffic that is configured here for interfaces has no effect: the peer initiated the tunnel, so it chooses the paths"
    )]
    PathTrafficOfPeer,
    /// The peer allows no further path.
    #[error("the peer allows no further path")]
    NoMorePaths,
    /// The peer wants to add another path than its configuration allows.
    #[error("the peer wants to add a path, but its configuration here allows only {0}")]
    TooManyPaths(u8),
    /// The peer has as many child SAs as it may have.
    #[error(
        "the peer requests another tunnel, but already has {0}, including those being replaced"
    )]
    TooManyChildren(usize),
    /// The operator took the child SA down.
    #[error("the peer's tunnel `{0}` was taken down here")]
    ChildTakenDown(String),
    /// The peer refused to create a child SA.
    #[error(
        "the peer refused {}: {notify}; retrying, other tunnels are not affected", tunnel(.name)
    )]
    ChildRefused {
        /// Name of the child SA; `None` for the first.
        name: Option<String>,
        /// Error notify in the response.
        notify: NotifyType,
    },
    /// The peer answered an INFORMATIONAL request about the IKE SA with an error.
    #[error("the peer answered a message about this IKE SA with {notify}")]
    InformationRefused {
        /// Error notify in the response.
        notify: NotifyType,
    },
    /// The peer's response does not describe an acceptable child SA.
    #[error("{} could not be established: {why}; retrying, other tunnels are not affected", tunnel(.name))]
    ChildFailed {
        /// Name of the child SA; `None` for the first.
        name: Option<String>,
        /// Reason.
        why: Box<DownReason>,
    },
    /// The peer tried to move the IKE SA, but is not the end that chooses the path.
    #[error("the peer wants to move the tunnel, but only we can, as we initiated it")]
    NotTheirsToMove,
    /// The peer tried to move to our port 500, on which no ESP is received.
    #[error("the peer wants to move to our port 500, which accepts IKE but no ESP")]
    WrongPort,
    /// The peer tried to move to an address that the configuration does not allow.
    #[error("the peer wants to move to {to}, but its configured address is {only}")]
    MovedAway {
        /// New address.
        to: IpAddr,
        /// Configured address.
        only: IpAddr,
    },
    /// The peer tried to move to an address that a child SA in transport mode cannot have.
    #[error("the peer wants to move, but its tunnel in transport mode cannot: {0}")]
    Unplaced(Unplaced),
    /// A message came from an address that the peer has not announced. Packets do not follow it.
    #[error("a message came from {to}, to which the tunnel does not move: {why}")]
    NotFollowed {
        /// Source address of the message.
        to: SocketAddr,
        /// Reason.
        why: Unfollowed,
    },
    /// The peer refused to move to our new address.
    #[error("the peer refused to move to our new address: {0}")]
    MoveRefused(NotifyType),
    /// A NAT translated an address, although the peer forbids NATs.
    #[error("the peer forbids NATs, but its address was translated")]
    Translated,
    /// The peer violated the protocol before it was authenticated.
    #[error("the peer violated the protocol: {0}")]
    Misbehaved(PeerMisbehaved),
}

impl Refusal {
    pub(crate) fn no_ike_proposal(menu: AllowedIkeSuites) -> Self {
        let AllowedIkeSuites {
            suites,
            groups,
            kems,
        } = menu;
        Self::NoIkeProposal {
            suites,
            groups,
            kems,
        }
    }

    /// Returns the identity that the peer claimed, if known. It is not authenticated.
    pub const fn claimed(&self) -> Option<&Identity> {
        match self {
            Self::UnknownIdentity(identity)
            | Self::WrongKey(identity)
            | Self::BadProof {
                claimed: identity, ..
            }
            | Self::BadPpk {
                claimed: identity, ..
            }
            | Self::WrongAddress { identity, .. } => Some(identity),
            _ => None,
        }
    }
}

/// Reason for which a licensed node did not accept a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantRefusal {
    /// The node refused with a code.
    #[error("the node refused the grant: {0}")]
    Code(RefusalCode),
    /// The node answered with an IKE error notify.
    #[error("the node could not install the grant: {0}")]
    Notify(NotifyType),
    /// The answer of the node is neither an acceptance nor a refusal.
    #[error("the node answered with neither an acceptance nor a refusal")]
    NoAnswer,
    /// The grant was not sent, because the IKE SA with the node is not up.
    #[error("there is no IKE SA with the node")]
    NotEstablished,
    /// The grant was not sent, because the peer is not a licensed node.
    #[error("the peer is not configured as a licensed node")]
    NotLicensed,
}

/// Reason for which a licensed node obtained no keys from another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyRefusal {
    /// The other node refused with a code.
    #[error("the peer refused to hand on keys: {0}")]
    Code(RefusalCode),
    /// The other node answered with an IKE error notify.
    #[error("the peer refused to hand on keys: {0}")]
    Notify(NotifyType),
    /// The answer holds neither keys nor a refusal.
    #[error("the peer answered a request for keys with neither keys nor a refusal")]
    NoAnswer,
    /// The request was not sent, because the peer is not a neighbour.
    #[error("no keys are requested: the peer is not configured as our neighbour")]
    NotANeighbour,
    /// The request was not sent, because too many earlier ones are unanswered.
    #[error("no more keys are requested until the peer answers earlier requests")]
    TooMany,
}

/// Returns the phrase for a child SA.
fn tunnel(name: &Option<String>) -> String {
    name.as_ref().map_or_else(
        || "the tunnel".to_owned(),
        |name| format!("the tunnel `{name}`"),
    )
}

/// Returns the phrase for the allowed kinds of sequence numbers.
const fn numbers(esn: bool) -> &'static str {
    match esn {
        true => "with or without extended sequence numbers",
        false => "without extended sequence numbers",
    }
}

/// Returns the phrase for a required additional key exchange; empty if it is optional.
fn besides(kems: &[Option<Kem>]) -> String {
    let required: Option<Vec<_>> = kems.iter().copied().collect();
    let required = required.filter(|kems| !kems.is_empty());
    required.map_or_else(String::new, |kems| format!(", and {}", either(&kems)))
}

/// Returns the phrase for an offer to license these nodes, and what is missing here.
fn offer(nodes: &[Identity]) -> String {
    match nodes {
        [node] => format!("{node} read, but no licence here names that node"),
        _ => format!(
            "{} read with shared keys, but no licences here are for exactly these nodes",
            listed(nodes)
        ),
    }
}

fn listed(nodes: &[Identity]) -> String {
    let nodes: Vec<_> = nodes.iter().map(ToString::to_string).collect();
    nodes.join(", ")
}

fn either(allowed: &[impl ToString]) -> String {
    let names: Vec<_> = allowed.iter().map(ToString::to_string).collect();
    names.join(" or ")
}
