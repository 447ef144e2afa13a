//! Reasons for refusals, by either end.

use crate::advice::{
    advice, besides, child_advice, clone_advice, either, grant_advice, kem_too, key_advice,
    numbers, offers, rekey_advice, tunnel,
};
use crate::bad_proof::BadProof;
use crate::down_reason::{DownReason, PeerMisbehaved};
use crate::extension::mode::BadMode;
use crate::extension::ppk::BadPpk;
use crate::menu::IkeMenu;
use crate::signature::NotVerified;
use model::{Group, Identity, InnerAddresses, Kem, Licence, Mode, Suite};
use std::net::{IpAddr, SocketAddr};
use wire::ike::{NotifyType, RefusalCode};

/// Reason not to follow a peer without MOBIKE to the source address of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfollowed {
    /// The new address did not answer.
    #[error(
        "nothing that is sent there is answered; if its NAT has changed, the next message finds out"
    )]
    Unanswered,
    /// The old address still answers.
    #[error(
        "the peer still answers at its address so far, so a router may have changed the header"
    )]
    StillThere,
    /// The peer changed its address too often.
    #[error("it seems to have moved too often in this second; the next message is looked at again")]
    TooOften,
    /// Too many peers changed their addresses.
    #[error(
        "too many peers seem to have moved there in this second; the next message is looked at again"
    )]
    TooMany,
}

/// Reason for refusing a peer's request, or for which the peer refused ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The initiator authenticated by another method than a pre-shared key or a signature.
    #[error("it wants to authenticate otherwise than by pre-shared key or signature (RFC 7427)")]
    AuthenticationMethod,
    /// No configured peer has this identity.
    #[error("no peer with the identity {0} is configured")]
    UnknownIdentity(Identity),
    /// The initiator named another responder identity than ours.
    #[error("it looks for {wanted}, but we are {ours}: change `id` here or there")]
    NotWhoWeAre {
        /// Identity that the initiator expects.
        wanted: Identity,
        /// Our identity.
        ours: Identity,
    },
    /// The peer connected from another address than the configured one.
    #[error("{identity} came from {address}, which is not the `address` of that peer")]
    WrongAddress {
        /// Claimed identity.
        identity: Identity,
        /// Source address.
        address: IpAddr,
    },
    /// The peer's proof does not verify with the pre-shared key.
    #[error("the pre-shared key of {0} does not match ours: compare `psk` at both ends")]
    WrongKey(Identity),
    /// The peer's proof by signature is not acceptable.
    #[error("{claimed}: {why}")]
    BadProof {
        /// Claimed identity.
        claimed: Identity,
        /// Reason.
        why: BadProof,
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
        "no PPK is in its keys, though one is in its table here: it is up, but not protected against quantum computers; give it the same `ppk`"
    )]
    WithoutPpk,
    /// The additional key exchange, which is optional here, did not take place.
    #[error(
        "its keys come of a group alone, though `kem` is in its table here: it is up, but not protected against quantum computers; give it the same `kem`"
    )]
    WithoutKem,
    /// The peer supports only one child SA for the same traffic.
    #[error(
        "it does not say that it makes several tunnels for the same traffic (RFC 9611), which `resources` asks for here: there is one; give it the same `resources`, if it can do that"
    )]
    WithoutResources,
    /// Our credential cannot sign, so we cannot authenticate.
    #[error("our private key cannot sign: look at `cert` and `key` in [node]")]
    CannotProve,
    /// The peer cannot verify our signature.
    #[error("{0}")]
    SignatureNotAccepted(#[from] NotVerified),
    /// No proposal for the IKE SA is acceptable.
    #[error(
        "it offers no IKE suite that is allowed here: {} with prfsha256 and {}{} is; compare `suite` and `groups` at both ends{}",
        either(.suites), either(.groups), besides(.kems), kem_too(.kems)
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
    #[error("it offers no ESP suite that is allowed here: {} {} is; compare `suite`, `groups` and `esn` at both ends", either(.allowed), numbers(*.esn))]
    NoEspProposal {
        /// Suites allowed here.
        allowed: Vec<Suite>,
        /// True if extended sequence numbers are allowed as well.
        esn: bool,
    },
    /// The traffic selectors do not overlap with ours.
    #[error(
        "none of its traffic selectors lies inside ours: compare `local` and `remote` at both ends"
    )]
    TrafficSelectors,
    /// The child SA cannot have the configured mode.
    #[error("{0}")]
    Mode(#[from] BadMode),
    /// The peer asked for another mode, but tunnel mode is configured here.
    #[error("it asks for {0} mode, and gets a tunnel, as `mode` says here")]
    ModeDeclined(Mode),
    /// The peer requested no inner address, although we assign them.
    #[error(
        "it asks for no address inside, but has to get one from [pool.{pool}]: set `local = [\"dynamic\"]` there, or give it `remote` instead of `pool` here"
    )]
    NoRequest {
        /// Name of the pool.
        pool: String,
    },
    /// All addresses of the pool are leased.
    #[error(
        "[pool.{pool}] has no address left for it: add to its `addresses`, or shorten its `lease`; `strata leases` shows who has them"
    )]
    NoAddressLeft {
        /// Name of the pool.
        pool: String,
    },
    /// The traffic selectors of the peer exclude the address that was leased to it.
    #[error(
        "its traffic selectors leave out the address that it was lent ({}); it may use no other", either(&.0.iter().collect::<Vec<_>>())
    )]
    NotItsAddress(InnerAddresses),
    /// The peer initiated, but it assigns our inner address, which only an initiator can request.
    #[error("it begins, but lends us our address inside: only we can begin; `strata up` does")]
    AddressNotAsked,
    /// The role of the peer allows no child SA.
    #[error("it asks for a tunnel, but its role here allows none")]
    NoChildForRole,
    /// A request for a child SA lacks some of its payloads.
    #[error("it asks for a tunnel, and leaves out its proposals or its traffic selectors")]
    ChildMissing,
    /// The peer lacks NAT traversal, but only ESP in UDP is supported here.
    #[error(
        "it does not detect NATs; without that there is no ESP in UDP, the only encapsulation here"
    )]
    NoNatTraversal,
    /// Zones are required here, and the peer offered none that are acceptable.
    #[error(
        "zones are required here, and it offered none that fit: set its `zones` like ours, or `zones = \"accept\"` here"
    )]
    ZonesRequired,
    /// Zones are wanted here but were not agreed; plain ESP is used.
    #[error("it did not agree to our zones: the tunnel is plain, and no licensed node can help")]
    ZonesNotAgreed,
    /// Unencrypted traffic is allowed here, but the peer did not agree to it.
    #[error(
        "it did not agree that anything goes without encryption: all is encrypted; write the same `integrity` under `level` at both ends"
    )]
    LevelNotAgreed,
    /// The peer does not accept one of our licences.
    #[error("it does not accept our licence for zone {} to {}: that node will not be able to read it", .0.zone, .0.node)]
    LicenceNotAccepted(Licence),
    /// The operator took the peer down.
    #[error("it was taken down here; `strata up` lets it in again")]
    TakenDown,
    /// An unauthenticated error notify answered our request. It may be forged, so we keep trying.
    #[error("somebody answers {0} in its name; that is not proved, so we keep trying")]
    Unproved(NotifyType),
    /// An unauthenticated answer lacks a feature that we need. It may be forged, so we keep trying.
    #[error("somebody answers in its name, but {0}; that is not proved, so we keep trying")]
    UnprovedLack(Box<DownReason>),
    /// A peer that is not our gateway sent a grant.
    #[error("it sent a grant, but is not configured as our gateway")]
    NotOurGateway,
    /// The peer refused to rekey.
    #[error(
        "it refused new keys ({notify}); {}; it is asked again ever more rarely, the old ones are used until their lifetime is over, and then all is made anew", rekey_advice(*.0), notify = .0
    )]
    RekeyRefused(NotifyType),
    /// The peer refused a key exchange in the rekey of a child SA, whose keys then come from the
    /// IKE SA alone.
    #[error(
        "it refused a key exchange for the tunnel's keys, which now come from the IKE SA alone: compare `pfs`, `groups` and `kem` at both ends, or write `pfs = false` here"
    )]
    ExchangeRefused,
    /// Re-authentication failed: no new IKE SA could replace the existing one.
    #[error(
        "it could not be authenticated anew; the tunnel stays as it is until `reauth` and a quarter are over, and it is tried again: {0}"
    )]
    NotReauthenticated(Box<DownReason>),
    /// The peer refused to clone the IKE SA.
    #[error(
        "it does not go there without a pause: the peer refused another IKE SA ({notify}); {}; all stays as it is", clone_advice(*.0), notify = .0
    )]
    CloneRefused(NotifyType),
    /// The IKE SA was cloned, but the hand-over to the clone failed.
    #[error("it does not go there without a pause, and all stays as it is: {0}")]
    NotHandedOver(Box<DownReason>),
    /// The peer tried to clone the IKE SA, which was not negotiated.
    #[error(
        "it wants to clone its IKE SA (RFC 7791), which both ends did not allow: write `clone = true` here and there"
    )]
    CloneNotAgreed,
    /// The peer has as many clones as it may have.
    #[error("it wants to clone its IKE SA, and has {0} more already")]
    TooManyClones(usize),
    /// The initiator was redirected to another gateway.
    #[error("it was sent to {0}, as `redirect` says here")]
    SentElsewhere(IpAddr),
    /// The peer redirected us, and we do not follow.
    #[error("all stays as it is: {0}")]
    RedirectNotFollowed(Box<DownReason>),
    /// The peer's public value is invalid.
    #[error("its public value for the key exchange is not acceptable")]
    KeyExchange,
    /// The peer requested another child SA, but all configured ones exist already.
    #[error(
        "it asks for another tunnel beside those it has, and none of its `child` tables here is without one: add a [peer.NAME.child.NAME] that carries it"
    )]
    AnotherChild,
    /// The peer offered to license these nodes, and no slot here is for exactly these nodes.
    #[error("{}", offers(.0))]
    OfferRefused(Vec<Identity>),
    /// The peer has as many child SAs for the same traffic as it may have.
    #[error(
        "it asks for another tunnel for the same traffic, and has all {0} already: write as many in `resources` at both ends"
    )]
    TooManyResources(u8),
    /// The peer creates no more child SAs for the same traffic.
    #[error(
        "it makes no more tunnels for the same traffic than there are: write as many in `resources` at both ends; it is not asked again before one of them is gone"
    )]
    NoMoreResources,
    /// The peer has as many child SAs as it may have.
    #[error("it asks for another tunnel, and has {0} already, those being replaced as well")]
    TooManyChildren(usize),
    /// The operator took the child SA down.
    #[error("its tunnel `{0}` was taken down here; `strata up` lets it in again")]
    ChildTakenDown(String),
    /// The peer refused to create a child SA.
    #[error(
        "it refused {}: {notify}; {}; it is asked again, and all else stays as it is", tunnel(.name), child_advice(*.notify)
    )]
    ChildRefused {
        /// Name of the child SA; `None` for the first.
        name: Option<String>,
        /// Error notify in the response.
        notify: NotifyType,
    },
    /// The peer answered an INFORMATIONAL request about the IKE SA with an error.
    #[error("it answers a message about this IKE SA with {notify}; {}", advice(*.notify))]
    InformationRefused {
        /// Error notify in the response.
        notify: NotifyType,
    },
    /// The peer's response does not describe an acceptable child SA.
    #[error("{} could not be made: {why}; it is asked again, and all else stays as it is", tunnel(.name))]
    ChildFailed {
        /// Name of the child SA; `None` for the first.
        name: Option<String>,
        /// Reason.
        why: Box<DownReason>,
    },
    /// The peer tried to move the IKE SA, but is not the end that chooses the path.
    #[error("it wants to move, but it is for us to decide where the tunnel goes, as we began it")]
    NotTheirsToMove,
    /// The peer tried to move to our port 500, on which no ESP is received.
    #[error("it wants to move to our port for IKE alone, on which there is no ESP")]
    WrongPort,
    /// The peer tried to move to an address that the configuration does not allow.
    #[error(
        "it wants to move to {to}, but its `address` is {only}: leave `address` out for a peer that moves"
    )]
    MovedAway {
        /// New address.
        to: IpAddr,
        /// Configured address.
        only: IpAddr,
    },
    /// A message came from an address that the peer has not announced. Packets do not follow it.
    #[error("a message came from {to}, to which packets of the tunnel do not go: {why}")]
    NotFollowed {
        /// Source address of the message.
        to: SocketAddr,
        /// Reason.
        why: Unfollowed,
    },
    /// The peer refused to move to our new address.
    #[error("it does not follow us to our new address: {notify}; {}", advice(*.0), notify = .0)]
    MoveRefused(NotifyType),
    /// A NAT translated an address, although the peer forbids NATs.
    #[error(
        "it forbids NATs (`nat` there), but its address was translated on the way: allow them there, or find who translates"
    )]
    Translated,
    /// The peer violated the protocol before it was authenticated.
    #[error("it broke the protocol: {0}")]
    Misbehaved(PeerMisbehaved),
}

impl Refusal {
    pub(crate) fn no_ike_proposal(menu: IkeMenu) -> Self {
        let IkeMenu {
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
#[non_exhaustive]
pub enum GrantRefusal {
    /// The node refused with a code.
    #[error("the node refused the grant: {code}; {}", grant_advice(*.0), code = .0)]
    Code(RefusalCode),
    /// The node answered with an IKE error notify.
    #[error("the node could not take the grant: {0}")]
    Notify(NotifyType),
    /// The answer of the node is neither an acceptance nor a refusal.
    #[error("the node answered neither yes nor no")]
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
#[non_exhaustive]
pub enum KeyRefusal {
    /// The other node refused with a code.
    #[error("it gives no keys: {code}; {}", key_advice(*.0), code = .0)]
    Code(RefusalCode),
    /// The other node answered with an IKE error notify.
    #[error("it gives no keys: {0}")]
    Notify(NotifyType),
    /// The answer holds neither keys nor a refusal.
    #[error("it answered a request for keys neither by keys nor by a refusal")]
    NoAnswer,
    /// The request was not sent, because the peer is not a neighbour.
    #[error("it is asked for no keys, as it is not configured as our neighbour")]
    NotANeighbour,
    /// The request was not sent, because too many earlier ones are unanswered.
    #[error("it is asked for no more keys before it has answered")]
    TooMany,
}
