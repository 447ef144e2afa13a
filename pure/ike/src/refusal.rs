//! Why something that was asked for was refused, by either end.

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

/// Why a peer without MOBIKE is not followed to where a message of it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfollowed {
    /// The new address.
    #[error(
        "nothing that is sent there is answered; if its NAT has changed, the next message finds out"
    )]
    Unanswered,
    /// The old address.
    #[error(
        "the peer still answers at its address so far, so a router may have changed the header"
    )]
    StillThere,
    /// The peer itself.
    #[error("it seems to have moved too often in this second; the next message is looked at again")]
    TooOften,
    /// Too many peers.
    #[error(
        "too many peers seem to have moved there in this second; the next message is looked at again"
    )]
    TooMany,
}

/// Why something a peer asked for was refused, or its refusal noted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The initiator used another method than a pre-shared key or a signature.
    #[error("it wants to authenticate otherwise than by pre-shared key or signature (RFC 7427)")]
    AuthenticationMethod,
    /// No peer of that name.
    #[error("no peer with the identity {0} is configured")]
    UnknownIdentity(Identity),
    /// The peer thinks we are somebody else.
    #[error("it looks for {wanted}, but we are {ours}: change `id` here or there")]
    NotWhoWeAre {
        /// Whom it wants.
        wanted: Identity,
        /// Who we are.
        ours: Identity,
    },
    /// It came from elsewhere than configured.
    #[error("{identity} came from {address}, which is not the `address` of that peer")]
    WrongAddress {
        /// Who it says it is.
        identity: Identity,
        /// Where it came from.
        address: IpAddr,
    },
    /// Its proof does not verify.
    #[error("the pre-shared key of {0} does not match ours: compare `psk` at both ends")]
    WrongKey(Identity),
    /// Its proof by certificate is not good enough.
    #[error("{claimed}: {why}")]
    BadProof {
        /// Who it says it is.
        claimed: Identity,
        /// What is wrong.
        why: BadProof,
    },
    /// Its PPK does not do.
    #[error("{claimed}: {why}")]
    BadPpk {
        /// Who it says it is.
        claimed: Identity,
        /// What is wrong.
        why: BadPpk,
    },
    /// The PPK is not required here, and was not used.
    #[error(
        "no PPK is in its keys, though one is in its table here: it is up, but not protected against quantum computers; give it the same `ppk`"
    )]
    WithoutPpk,
    /// An additional key exchange is not required here, and there was none.
    #[error(
        "its keys come of a group alone, though `kem` is in its table here: it is up, but not protected against quantum computers; give it the same `kem`"
    )]
    WithoutKem,
    /// The peer makes one child for the same traffic.
    #[error(
        "it does not say that it makes several tunnels for the same traffic (RFC 9611), which `resources` asks for here: there is one; give it the same `resources`, if it can do that"
    )]
    WithoutResources,
    /// We cannot prove ourselves to it.
    #[error("our private key cannot sign: look at `cert` and `key` in [node]")]
    CannotProve,
    /// It cannot verify our proof.
    #[error("{0}")]
    SignatureNotAccepted(#[from] NotVerified),
    /// No proposal of its IKE SA fits.
    #[error(
        "it offers no IKE suite that is allowed here: {} with prfsha256 and {}{} is; compare `suite` and `groups` at both ends{}",
        either(.suites), either(.groups), besides(.kems), kem_too(.kems)
    )]
    NoIkeProposal {
        /// The suites we allow.
        suites: Vec<Suite>,
        /// The groups we allow.
        groups: Vec<Group>,
        /// What is allowed besides; `None`: it may be without.
        kems: Vec<Option<Kem>>,
    },
    /// No proposal of its child SA fits.
    #[error("it offers no ESP suite that is allowed here: {} {} is; compare `suite`, `groups` and `esn` at both ends", either(.allowed), numbers(*.esn))]
    NoEspProposal {
        /// What we allow.
        allowed: Vec<Suite>,
        /// Whether extended sequence numbers are allowed too.
        esn: bool,
    },
    /// The selectors have nothing in common.
    #[error(
        "none of its traffic selectors lies inside ours: compare `local` and `remote` at both ends"
    )]
    TrafficSelectors,
    /// Its child cannot have the mode we want.
    #[error("{0}")]
    Mode(#[from] BadMode),
    /// It asks for another mode, and a tunnel is what we want.
    #[error("it asks for {0} mode, and gets a tunnel, as `mode` says here")]
    ModeDeclined(Mode),
    /// The addresses inside are ours to lend.
    #[error(
        "it asks for no address inside, but has to get one from [pool.{pool}]: set `local = [\"dynamic\"]` there, or give it `remote` instead of `pool` here"
    )]
    NoRequest {
        /// Name of the pool.
        pool: String,
    },
    /// All addresses are lent.
    #[error(
        "[pool.{pool}] has no address left for it: add to its `addresses`, or shorten its `lease`; `strata leases` shows who has them"
    )]
    NoAddressLeft {
        /// Name of the pool.
        pool: String,
    },
    /// It wants to use other addresses than those it was lent.
    #[error(
        "its traffic selectors leave out the address that it was lent ({}); it may use no other", either(&.0.iter().collect::<Vec<_>>())
    )]
    NotItsAddress(InnerAddresses),
    /// We ask for addresses inside, and it is the initiator who asks.
    #[error("it begins, but lends us our address inside: only we can begin; `strata up` does")]
    AddressNotAsked,
    /// The role allows no child.
    #[error("it asks for a tunnel, but its role here allows none")]
    NoChildForRole,
    /// A part of a child is none.
    #[error("it asks for a tunnel, and leaves out its proposals or its traffic selectors")]
    ChildMissing,
    /// ESP goes in UDP only.
    #[error(
        "it does not detect NATs; without that there is no ESP in UDP, the only encapsulation here"
    )]
    NoNatTraversal,
    /// Zones are required here.
    #[error(
        "zones are required here, and it offered none that fit: set its `zones` like ours, or `zones = \"accept\"` here"
    )]
    ZonesRequired,
    /// Zones are wanted here but were not agreed; plain ESP is used.
    #[error("it did not agree to our zones: the tunnel is plain, and no licensed node can help")]
    ZonesNotAgreed,
    /// We would let some go without encryption, and the peer does not, or not the same.
    #[error(
        "it did not agree that anything goes without encryption: all is encrypted; write the same `integrity` under `level` at both ends"
    )]
    LevelNotAgreed,
    /// Licences we would give and the peer does not.
    #[error("it does not accept our licence for zone {} to {}: that node will not be able to read it", .0.zone, .0.node)]
    LicenceNotAccepted(Licence),
    /// Our operator wants it down.
    #[error("it was taken down here; `strata up` lets it in again")]
    TakenDown,
    /// An unprotected notify: it may be forged, so we keep trying.
    #[error("somebody answers {0} in its name; that is not proved, so we keep trying")]
    Unproved(NotifyType),
    /// An unprotected answer that lacks what we need: it may be forged, so we keep trying.
    #[error("somebody answers in its name, but {0}; that is not proved, so we keep trying")]
    UnprovedLack(Box<DownReason>),
    /// A peer that is no gateway of ours sent keys.
    #[error("it sent a grant, but is not configured as our gateway")]
    NotOurGateway,
    /// The peer makes no new keys.
    #[error(
        "it refused new keys ({notify}); {}; it is asked again ever more rarely, the old ones are used until their lifetime is over, and then all is made anew", rekey_advice(*.0), notify = .0
    )]
    RekeyRefused(NotifyType),
    /// The peer makes new keys of a tunnel from those of the IKE SA alone.
    #[error(
        "it refused a key exchange for the tunnel's keys, which now come from the IKE SA alone: compare `pfs`, `groups` and `kem` at both ends, or write `pfs = false` here"
    )]
    ExchangeRefused,
    /// No new IKE SA came about that would take the place of the one there is.
    #[error(
        "it could not be authenticated anew; the tunnel stays as it is until `reauth` and a quarter are over, and it is tried again: {0}"
    )]
    NotReauthenticated(Box<DownReason>),
    /// The peer did not make a clone.
    #[error(
        "it does not go there without a pause: the peer refused another IKE SA ({notify}); {}; all stays as it is", clone_advice(*.0), notify = .0
    )]
    CloneRefused(NotifyType),
    /// There was a clone, and nothing came of it.
    #[error("it does not go there without a pause, and all stays as it is: {0}")]
    NotHandedOver(Box<DownReason>),
    /// That was not agreed on.
    #[error(
        "it wants to clone its IKE SA (RFC 7791), which both ends did not allow: write `clone = true` here and there"
    )]
    CloneNotAgreed,
    /// All that it may have.
    #[error("it wants to clone its IKE SA, and has {0} more already")]
    TooManyClones(usize),
    /// The initiator was sent to another gateway.
    #[error("it was sent to {0}, as `redirect` says here")]
    SentElsewhere(IpAddr),
    /// We do not go where the peer sends us.
    #[error("all stays as it is: {0}")]
    RedirectNotFollowed(Box<DownReason>),
    /// A public value that is none.
    #[error("its public value for the key exchange is not acceptable")]
    KeyExchange,
    /// There is one of each child.
    #[error(
        "it asks for another tunnel beside those it has, and none of its `child` tables here is without one: add a [peer.NAME.child.NAME] that carries it"
    )]
    AnotherChild,
    /// There is no slot here of that node, or of those nodes and no others.
    #[error("{}", offers(.0))]
    OfferRefused(Vec<Identity>),
    /// All that it may have for the same traffic.
    #[error(
        "it asks for another tunnel for the same traffic, and has all {0} already: write as many in `resources` at both ends"
    )]
    TooManyResources(u8),
    /// The peer makes no more children for the same traffic.
    #[error(
        "it makes no more tunnels for the same traffic than there are: write as many in `resources` at both ends; it is not asked again before one of them is gone"
    )]
    NoMoreResources,
    /// All that it may have.
    #[error("it asks for another tunnel, and has {0} already, those being replaced as well")]
    TooManyChildren(usize),
    /// Our operator wants a child down.
    #[error("its tunnel `{0}` was taken down here; `strata up` lets it in again")]
    ChildTakenDown(String),
    /// The peer refused a child.
    #[error(
        "it refused {}: {notify}; {}; it is asked again, and all else stays as it is", tunnel(.name), child_advice(*.notify)
    )]
    ChildRefused {
        /// Which of the peer's; `None` for the first.
        name: Option<String>,
        /// How it said so.
        notify: NotifyType,
    },
    /// An error in the answer to what needs none.
    #[error("it answers a message about this IKE SA with {notify}; {}", advice(*.notify))]
    InformationRefused {
        /// How it said so.
        notify: NotifyType,
    },
    /// What the peer answered is not the child we want.
    #[error("{} could not be made: {why}; it is asked again, and all else stays as it is", tunnel(.name))]
    ChildFailed {
        /// Which of the peer's; `None` for the first.
        name: Option<String>,
        /// What is wrong with it.
        why: Box<DownReason>,
    },
    /// A peer that does not decide wants to move.
    #[error("it wants to move, but it is for us to decide where the tunnel goes, as we began it")]
    NotTheirsToMove,
    /// A peer wants to move to where ESP is not received.
    #[error("it wants to move to our port for IKE alone, on which there is no ESP")]
    WrongPort,
    /// A peer wants to move to where it must not come from.
    #[error(
        "it wants to move to {to}, but its `address` is {only}: leave `address` out for a peer that moves"
    )]
    MovedAway {
        /// Where it is.
        to: IpAddr,
        /// Where it must be.
        only: IpAddr,
    },
    /// A message came from an address that the peer has not told, and packets do not go there.
    #[error("a message came from {to}, to which packets of the tunnel do not go: {why}")]
    NotFollowed {
        /// Where it came from.
        to: SocketAddr,
        /// Why packets do not go there.
        why: Unfollowed,
    },
    /// The peer did not follow us.
    #[error("it does not follow us to our new address: {notify}; {}", advice(*.0), notify = .0)]
    MoveRefused(NotifyType),
    /// An address was changed on the way.
    #[error(
        "it forbids NATs (`nat` there), but its address was translated on the way: allow them there, or find who translates"
    )]
    Translated,
    /// A peer broke a rule before it was authenticated.
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

    /// Who was claimed to ask, if that is known. Nothing of it is proved.
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

/// Why a licensed node did not take a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrantRefusal {
    /// It said why.
    #[error("the node refused the grant: {code}; {}", grant_advice(*.0), code = .0)]
    Code(RefusalCode),
    /// It answered with an error of IKE.
    #[error("the node could not take the grant: {0}")]
    Notify(NotifyType),
    /// Its answer made no sense.
    #[error("the node answered neither yes nor no")]
    NoAnswer,
    /// It was not sent: its IKE SA is not up.
    #[error("there is no IKE SA with the node")]
    NotEstablished,
    /// It was not sent: keys go to licensed nodes only.
    #[error("the peer is not configured as a licensed node")]
    NotLicensed,
}

/// Why a licensed node got no keys from another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyRefusal {
    /// It said why.
    #[error("it gives no keys: {code}; {}", key_advice(*.0), code = .0)]
    Code(RefusalCode),
    /// It answered with an error of IKE.
    #[error("it gives no keys: {0}")]
    Notify(NotifyType),
    /// Its answer made no sense.
    #[error("it answered a request for keys neither by keys nor by a refusal")]
    NoAnswer,
    /// It was not asked: keys come from neighbours only.
    #[error("it is asked for no keys, as it is not configured as our neighbour")]
    NotANeighbour,
    /// It was not asked: it has not answered others.
    #[error("it is asked for no more keys before it has answered")]
    TooMany,
}
