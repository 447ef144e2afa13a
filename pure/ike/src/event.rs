//! What an engine tells its owner, and the reasons it gives to people.
//!
//! A reason says whose fault it is and what to change. The peer's name stands in the event beside
//! it, so that a log line reads `peer NAME: REASON`.

use crate::extension::configuration::Inside;
use crate::extension::fragment::Uncut;
use crate::extension::mode::BadMode;
use crate::extension::ppk::BadPpk;
use crate::menu::IkeMenu;
use crypto::{Secret, Untrusted};
use model::{
    ChildSa, ChildSaId, CsaId, Grant, Group, Identity, IkeSaId, InnerAddresses, Kem, Licence, Mode,
    Path, Suite,
};
use std::net::{IpAddr, SocketAddr};
use wire::ike::{CertificateRefusal, NotifyType, RefusalCode, Token};

/// Something happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// Both ends proved who they are.
    IkeUp {
        /// The IKE SA.
        sa: IkeSaId,
        /// The peer's name in the configuration.
        peer: String,
        /// Whether we began it.
        initiator: bool,
    },
    /// Both ends proved anew who they are: a new IKE SA takes the place of one that is up. The old one
    /// is down when nothing is under way on it any more.
    IkeReplaced {
        /// The one that is replaced.
        old: IkeSaId,
        /// The new one.
        sa: IkeSaId,
        /// The peer's name in the configuration.
        peer: String,
    },
    /// An IKE SA has a clone (RFC 7791): another one with the same peer, without children yet.
    IkeCloned {
        /// The one that it came of, which stays as it is.
        old: IkeSaId,
        /// The clone.
        sa: IkeSaId,
        /// The peer's name in the configuration.
        peer: String,
    },
    /// A clone takes the place of the IKE SA that it came of: it has the same children, and where it was to
    /// go it is. If we asked for it the old one is down when nothing is under way on it any more.
    IkeHandedOver {
        /// The one that is replaced.
        old: IkeSaId,
        /// The clone.
        sa: IkeSaId,
        /// The peer's name in the configuration.
        peer: String,
    },
    /// A gateway sent us to another one, and we began there (RFC 5685). Nothing more is told of the old
    /// SA, unless it was up.
    Redirected {
        /// The one that the gateway said so in.
        old: IkeSaId,
        /// The one that we began.
        sa: IkeSaId,
        /// The peer's name in the configuration.
        peer: String,
        /// The other gateway.
        to: IpAddr,
    },
    /// Nobody answered by UDP, and we began again in a stream (RFC 9329). Nothing more is told of the
    /// old SA.
    FellBack {
        /// The one that was not answered.
        old: IkeSaId,
        /// The one that we began.
        sa: IkeSaId,
        /// The peer's name in the configuration.
        peer: String,
        /// Where it is to listen.
        to: SocketAddr,
    },
    /// An IKE SA is down with its children, or one that we began did not come about. A Delete of ours
    /// may still be on its way: nobody waits for its answer. Initiators that did not prove who they are leave no event but [`Event::Refused`].
    IkeDown {
        /// The IKE SA.
        sa: IkeSaId,
        /// The peer's name in the configuration.
        peer: String,
        /// Why.
        why: DownReason,
    },
    /// The peer lends us addresses. They are ours until the IKE SA is down.
    Configured {
        /// The IKE SA.
        sa: IkeSaId,
        /// The peer's name in the configuration.
        peer: String,
        /// What it lends and tells.
        inside: Inside,
    },
    /// A child SA can be used: one of the peer's, by its name.
    ChildUp(Box<ChildSa<Secret>>),
    /// A child SA takes the place of another between the same ends. Both can be used: the owner
    /// says when to stop sending on the old one, which goes down some time later.
    ChildRekeyed {
        /// The one that is replaced.
        old: ChildSaId,
        /// The new one; its `initiator` says which end asked for it.
        new: Box<ChildSa<Secret>>,
    },
    /// The peer has deleted a child SA that was replaced, or its IKE SA, or we delete it: nothing is to be
    /// sent on it any more. What is still under way to us may come.
    ChildRetired {
        /// The old one.
        child: ChildSaId,
    },
    /// The peer has a child SA that it asked for in the place of another: it can be sent on.
    ChildAssured {
        /// The new one.
        child: ChildSaId,
    },
    /// A licensed node has said to which others mobile nodes may go from it.
    Neighbours {
        /// The node.
        node: Identity,
        /// The others.
        neighbours: Vec<Identity>,
    },
    /// Another licensed node asks for keys with a token of a mobile node: [`crate::Engine::answer_request`] says
    /// whether it gets them.
    KeysAsked {
        /// The IKE SA with it.
        sa: IkeSaId,
        /// The node, which is who it says.
        node: Identity,
        /// What it shows.
        token: Token,
    },
    /// Another licensed node was asked for keys.
    KeysAnswered {
        /// The IKE SA with it.
        sa: IkeSaId,
        /// What it was shown.
        token: Token,
        /// The keys, or why not.
        answer: Result<Grant<Secret>, KeyRefusal>,
    },
    /// An IKE SA has new keys and SPIs. Its name, its children and all that came on it stay.
    IkeRekeyed {
        /// The IKE SA.
        sa: IkeSaId,
        /// The peer's name in the configuration.
        peer: String,
    },
    /// A child SA must not be used any more.
    ChildDown {
        /// The child SA.
        child: ChildSaId,
        /// Why its IKE SA is going down, if it does not go down alone.
        why: Option<DownReason>,
    },
    /// An IKE SA's children take another path: one of the ends moved (RFC 4555), or the peer's address
    /// changed behind its NAT (RFC 7296 section 2.23).
    PathMoved {
        /// The IKE SA.
        sa: IkeSaId,
        /// Its children, which move with it.
        children: Vec<ChildSaId>,
        /// The path.
        path: Path,
    },
    /// An IKE SA can move to other addresses: told when it is up, and whenever the peer's are others.
    Mobile {
        /// The IKE SA.
        sa: IkeSaId,
        /// Whether it is for us to decide: by [`crate::Engine::move_to`].
        decides: bool,
        /// The path it takes.
        path: Path,
        /// Where the peer can be reached besides.
        addresses: Vec<IpAddr>,
    },
    /// Nobody answers on the path of an IKE SA that is ours to move; told once. Others can be tried by
    /// [`crate::Engine::probe`] until it is given up.
    PathSilent {
        /// The IKE SA.
        sa: IkeSaId,
        /// The path.
        path: Path,
    },
    /// After [`Event::PathSilent`]: somebody answers.
    PathAnswers {
        /// The IKE SA.
        sa: IkeSaId,
        /// The path that the answer took.
        path: Path,
    },
    /// The peer does not follow to a path (the reason was told by [`Event::Refused`]).
    MoveRefused {
        /// The IKE SA.
        sa: IkeSaId,
        /// The path, which it takes until it is told another.
        path: Path,
    },
    /// Licensed node: a gateway hands us a grant. What became of it is told to the gateway by
    /// [`crate::Engine::answer_grant`], before anything else is handed in. A grant for a composite
    /// SA that is held already replaces the earlier one.
    Granted {
        /// The IKE SA it came on.
        sa: IkeSaId,
        /// The gateway's proved identity.
        gateway: Identity,
        /// The grant.
        grant: Grant<Secret>,
    },
    /// Gateway: the licensed node took a grant.
    GrantAccepted {
        /// The node's IKE SA.
        sa: IkeSaId,
        /// The composite SA.
        csa: CsaId,
        /// The grant's number.
        grant: u16,
    },
    /// Gateway: the licensed node did not take a grant.
    GrantRefused {
        /// The node's IKE SA.
        sa: IkeSaId,
        /// The composite SA.
        csa: CsaId,
        /// The grant's number.
        grant: u16,
        /// Why.
        why: GrantRefusal,
    },
    /// Licensed node: the gateway took a grant back.
    Revoked {
        /// The IKE SA it came on.
        sa: IkeSaId,
        /// The composite SA.
        csa: CsaId,
    },
    /// Something was refused that ends nothing: for the log and `status`.
    Refused {
        /// The peer's name; `None` for somebody who has not proved to be any.
        peer: Option<String>,
        /// What and why.
        why: Refusal,
    },
}

/// Why an IKE SA is gone. `{}` is for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DownReason {
    /// The other end was told to.
    #[error("the peer closed it")]
    ClosedByPeer,
    /// We were told to.
    #[error("closed on request")]
    ClosedHere,
    /// A secret is wrong at one of the two ends; the peer noticed.
    #[error(
        "the peer refused our authentication (AUTHENTICATION_FAILED): our identity {ours} is unknown there, the pre-shared keys differ, or it requires a `ppk`; compare `id` and `psk` at both ends"
    )]
    AuthenticationRefused {
        /// Who we said we are.
        ours: Identity,
    },
    /// The same, of a proof that has a PPK in it.
    #[error(
        "the peer refused our authentication (AUTHENTICATION_FAILED): the PPK `{id}` or our identity {ours} is unknown there, or the keys differ; compare `ppk`, `id` and `psk` at both ends"
    )]
    PpkRefused {
        /// Who we said we are.
        ours: Identity,
        /// The name of the PPK.
        id: String,
    },
    /// We require a PPK.
    #[error(
        "a PPK is required here, and the peer does not use ours (RFC 8784): give it the same `ppk`, or write `required = false` in `ppk` here"
    )]
    NoPpk,
    /// The peer did not believe our certificate.
    #[error(
        "the peer refused our certificate for {ours} (AUTHENTICATION_FAILED): {}",
        refusal_of_ours(*.why)
    )]
    CertificateRefused {
        /// Who we said we are.
        ours: Identity,
        /// What it said about it, if it is one of ours.
        why: Option<CertificateRefusal>,
    },
    /// The peer knows us by another key.
    #[error(
        "the peer refused our public key (AUTHENTICATION_FAILED): our identity {ours} is unknown there, or its `pubkey` for us is not our key; `strata pki pubkey` prints ours"
    )]
    KeyRefused {
        /// Who we said we are.
        ours: Identity,
    },
    /// The peer's proof is not good enough, or not any more.
    #[error("{0}")]
    BadProof(#[from] BadProof),
    /// The peer does not verify what we sign with.
    #[error(
        "the peer does not verify signatures of our key's kind (RFC 7427): issue our certificate for a key of the kind it names, or use a `psk`"
    )]
    SignatureNotAccepted,
    /// The private key does not work.
    #[error("our private key cannot sign: look at `cert` and `key` in [node]")]
    CannotSign,
    /// IKE_SA_INIT was answered, IKE_AUTH was not.
    #[error(
        "the peer answered at first, but not on UDP port {port}; does a firewall block that port?"
    )]
    AuthUnanswered {
        /// The port both moved to.
        port: u16,
    },
    /// The same, and what was not answered was so long that IP had to cut it.
    #[error(
        "the peer answered at first, but not the {} octets that prove who we are: IP cuts messages of that length, and many firewalls drop the parts; {}",
        .0.octets,
        cutter(.0.ours)
    )]
    LongAuthUnanswered(Uncut),
    /// IKE_SA_INIT was answered, and what came after it was so long that IP had to cut it.
    #[error(
        "the peer answered at first, but not the {} octets of the additional key exchange: IP cuts messages of that length, and many firewalls drop the parts; {}",
        .0.octets,
        cutter(.0.ours)
    )]
    LongKemUnanswered(Uncut),
    /// The peer did not carry out the additional key exchange it had agreed to.
    #[error("the peer refused the additional key exchange: {notify}; {}", advice(*.notify))]
    KemRefused {
        /// How it said so.
        notify: NotifyType,
    },
    /// No key for an additional key exchange.
    #[error(
        "no key for the additional key exchange can be drawn: this machine has no memory left, or no randomness"
    )]
    NoKemKey,
    /// The peer refused to make the child SA.
    #[error("the peer refused the tunnel: {notify}; {}", advice(*.notify))]
    ChildRefused {
        /// How it said so.
        notify: NotifyType,
    },
    /// The child SA deleted by the peer was what the IKE SA was for.
    #[error("the peer deleted the tunnel")]
    ChildDeleted,
    /// The peer answered with something we did not offer.
    #[error("the peer broke the protocol: it chose what we did not offer ({0})")]
    NotOffered(&'static str),
    /// The child cannot have the mode we want.
    #[error("{0}")]
    Mode(#[from] BadMode),
    /// We asked for an address inside.
    #[error(
        "the peer gives us no address inside: give it a pool of addresses there, or list ours in `local` here and in [tunnel]"
    )]
    NoAddress,
    /// The peer cannot do without NAT traversal what we need it for.
    #[error(
        "the peer does not detect NATs; without that there is no ESP in UDP, the only encapsulation here"
    )]
    NoNatTraversal,
    /// The peer insists on a child.
    #[error(
        "the peer cannot hold an IKE SA without a child (RFC 6023), so it cannot be a licensed node or a gateway for one"
    )]
    NotChildless,
    /// No answer to an established SA's request.
    #[error("the peer did not answer {attempts} times; it is gone or unreachable")]
    PeerGone {
        /// How often it was asked.
        attempts: u32,
    },
    /// An unprotected refusal was all that came until we gave up.
    #[error("the peer refused to begin: {notify}; {}", advice(*.notify))]
    Refused {
        /// What it said. Anybody on the path could have said it.
        notify: NotifyType,
    },
    /// Its keys, or a child's, have reached the end of their lifetime.
    #[error("its keys reached the end of their lifetime, and the peer made no new ones")]
    LifetimeOver,
    /// It has forgotten, time and again, what new keys were being agreed upon.
    #[error(
        "the peer forgot 5 times in a row which new keys it was agreeing on with us: a fault of its implementation, or the path loses nearly everything"
    )]
    Forgetful,
    /// Both ends proved who they are too long ago.
    #[error(
        "both ends proved who they are longer ago than `reauth` allows, and it was not done again; the log says why"
    )]
    ProofTooOld,
    /// A clone is not where it was to be, or not with all that it was to have.
    #[error(
        "the peer did not answer there, or did not agree to all there that it agrees to here; its log may say more"
    )]
    NotFollowed,
    /// It sends us where we do not go.
    #[error(
        "the peer sends us to {to}, which `redirect` in its table does not list; add it there if that is a gateway of the peer's"
    )]
    RedirectNotListed {
        /// The address, or the name.
        to: String,
    },
    /// It sends us to and fro.
    #[error(
        "the peer, and those it sent us to, sent us on more than 5 times in 300 s: look at their `redirect`, which may lead in a circle"
    )]
    RedirectedTooOften,
    /// The configuration asks for other terms now.
    #[error("its configuration changed: it is made anew")]
    Reconfigured,
    /// The configuration has the peer no more.
    #[error("it was taken out of the configuration")]
    Removed,
    /// The same peer has a newer IKE SA.
    #[error("replaced by a newer IKE SA of the same peer")]
    Replaced,
    /// The peer said what it could not have said.
    #[error("the peer broke the protocol: {0}")]
    Misbehaved(PeerMisbehaved),
    /// A syntax error that the peer found in what we sent.
    #[error(
        "the peer could not read our message ({notify}): a fault of one of the implementations"
    )]
    Unreadable {
        /// INVALID_SYNTAX or UNSUPPORTED_CRITICAL_PAYLOAD.
        notify: NotifyType,
    },
    /// No connection could be made, or it was lost before anything was agreed on.
    #[error(
        "no TCP connection with {to}: is the peer running there with `tcp = {}` in its [listen], and does a firewall let that port pass?",
        .to.port()
    )]
    NotConnected {
        /// Where we looked for it.
        to: SocketAddr,
    },
    /// There is a connection, and nobody answers in it.
    #[error(
        "{to} takes our TCP connection and does not answer; does another program listen at that port? compare `tcp_port` here with `tcp` in the peer's [listen]"
    )]
    StreamUnanswered {
        /// Where we looked for it.
        to: SocketAddr,
    },
    /// Nothing at all came back.
    #[error(
        "no answer from {address}; is the peer running there, and does a firewall let UDP ports 500 and 4500 pass?"
    )]
    Unreachable {
        /// Where we looked for it.
        address: IpAddr,
    },
    /// It holds another secret than we do.
    #[error("the pre-shared key of the peer does not match ours: compare `psk` at both ends")]
    WrongKey,
    /// It proved an identity we did not want.
    #[error(
        "the peer is {theirs}, but the configuration expects {expected}: change `id` here or there"
    )]
    WrongIdentity {
        /// Who it says it is.
        theirs: Identity,
        /// Who it should be.
        expected: Identity,
    },
    /// The zones the peer answered with are more than we offered.
    #[error("the peer widened the zones or licences we offered; nothing of that is accepted")]
    ZonesWidened,
    /// We require zones.
    #[error(
        "zones are required here, but the peer did not agree to ours: set its `zones` like ours, or `zones = \"accept\"` here"
    )]
    ZonesRequired,
}

/// Rules that only a faulty or hostile peer breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerMisbehaved {
    /// Its protected message cannot be read.
    #[error("a protected message cannot be read")]
    InvalidSyntax,
    /// Its protected message does not hold what that exchange needs.
    #[error("a protected message lacks or repeats payloads")]
    WrongPayloads,
    /// Its protected request has no place here.
    #[error("a protected message belongs to no exchange that could come now")]
    UnexpectedExchange,
    /// Its half of an additional key exchange is none.
    #[error("its value for the additional key exchange is not acceptable")]
    BadKem,
    /// It answered with another cookie than ours, or with none.
    #[error("it answered a check of its address with another cookie")]
    Cookie,
    /// Its protected request needs something unknown.
    #[error("a request holds a critical payload of an unknown type")]
    UnsupportedCritical,
}

/// Why a proof of identity is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadProof {
    /// The chain is not believed.
    #[error("its certificate is not believed: {0}")]
    Untrusted(#[from] Untrusted),
    /// The certificate is somebody else's.
    #[error(
        "its certificate is not for {claimed} but for {}: issue it anew, or change `id`",
        either(.names)
    )]
    WrongName {
        /// Who the peer says it is.
        claimed: Identity,
        /// Whom the certificate names.
        names: Vec<String>,
    },
    /// Somebody else's signature, or over something else.
    #[error("its signature was not made for this exchange with the key of its certificate")]
    WrongSignature,
    /// Another algorithm.
    #[error("its signature is of another kind than the key of its certificate")]
    UnknownSignature,
    /// It says itself that it has another key than we know it by.
    #[error("its public key is {theirs}, but {expected} is in its `pubkey` here")]
    AnotherKey {
        /// The key that it sent, for people.
        theirs: String,
        /// The one that we have.
        expected: String,
    },
    /// Somebody else's signature, or over something else, and no certificate to tell.
    #[error("its signature was not made for this exchange with the key in its `pubkey` here")]
    WrongKey,
    /// Something else where we want a certificate.
    #[error(
        "it has to prove itself by certificate, as it has neither `psk` nor `pubkey` here, but it came with another kind of proof"
    )]
    CertificateExpected,
    /// A signature where we want a shared key.
    #[error(
        "it has to prove a pre-shared key, as it has a `psk` here, but it came with a signature"
    )]
    SharedKeyExpected,
    /// Something else where we want to see a key that we know.
    #[error("it has to prove the key in its `pubkey` here, but it came with another kind of proof")]
    KeyExpected,
}

impl BadProof {
    /// What the peer is told: only what its certificate alone gives rise to.
    pub(crate) const fn code(&self) -> Option<CertificateRefusal> {
        use CertificateRefusal as Code;
        Some(match self {
            Self::Untrusted(Untrusted::Expired(_) | Untrusted::AuthorityExpired(_)) => {
                Code::EXPIRED
            }
            Self::Untrusted(Untrusted::NotYetValid(_)) => Code::NOT_YET_VALID,
            Self::Untrusted(Untrusted::UnknownAuthority(_) | Untrusted::Forged(_)) => {
                Code::UNKNOWN_AUTHORITY
            }
            Self::Untrusted(Untrusted::Usage) => Code::WRONG_USAGE,
            Self::Untrusted(Untrusted::Revoked { .. }) => Code::REVOKED,
            Self::Untrusted(
                Untrusted::RevocationUnknown(_)
                | Untrusted::RevocationListEnded(_)
                | Untrusted::RevocationListForged(_),
            ) => Code::REVOCATION_UNKNOWN,
            Self::Untrusted(_) => Code::INVALID,
            Self::WrongName { .. } => Code::WRONG_NAME,
            Self::WrongSignature | Self::UnknownSignature => Code::WRONG_SIGNATURE,
            // They would tell that there is such a peer.
            Self::AnotherKey { .. } | Self::WrongKey => return None,
            Self::CertificateExpected | Self::SharedKeyExpected | Self::KeyExpected => return None,
        })
    }
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
    #[error(
        "it does not verify signatures of our key's kind (RFC 7427), or our key cannot sign: look at `cert` and `key` in [node]"
    )]
    CannotProve,
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
    #[error("it offers no ESP suite that is allowed here: {} {} is; compare `suite` and `esn` at both ends", either(.allowed), numbers(*.esn))]
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
    /// A VPN peer without a child is useless.
    #[error("it is a VPN peer but asks for no tunnel")]
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
        "it refused new keys ({0}): the old ones are used until their lifetime is over, then all is made anew; compare `suite` and `rekey` at both ends"
    )]
    RekeyRefused(NotifyType),
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

/// What a person can do about a refused request.
const fn key_advice(code: RefusalCode) -> &'static str {
    match code {
        RefusalCode::NOT_A_NEIGHBOUR => "it has to know us by a [neighbour.NAME] with our `id`",
        RefusalCode::UNKNOWN_GRANT => "it has no keys that it may hand on, or not any more",
        RefusalCode::WRONG_TOKEN => {
            "the mobile node's token is not for us, or not the mobile node's"
        }
        RefusalCode::STALE_TOKEN => "compare the clocks of the mobile node and of both nodes",
        RefusalCode::USED_TOKEN => "it has given them to us before",
        RefusalCode::NOT_LICENSED => {
            "both ends of the tunnel have to license us, by `licences` with `at`"
        }
        RefusalCode::BUSY => "it is asked too often",
        _ => "both ends should run the same release",
    }
}

/// A command that cannot be carried out: our caller's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApiMisuse {
    /// An IKE SA with that peer is just being made.
    #[error("an IKE SA with that peer is being made already")]
    AlreadyInitiating,
    /// No peer of that name.
    #[error("the configuration has no peer of that name")]
    UnknownPeer,
}

/// A command named a child that the configuration does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has no such peer, or not with such a child")]
pub struct UnknownChild;

/// Why an IKE SA does not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotMove {
    /// There is no IKE SA, or not yet.
    #[error("it is not up")]
    NotUp,
    /// One of the ends cannot do it, or does not want to.
    #[error("it was not agreed that it may move (RFC 4555)")]
    NotAgreed,
    /// What it carries is bound to the addresses outside (RFC 4555 section 1.2).
    #[error("it has a tunnel in transport mode, which stays where it is; `mode = \"beet\"` moves")]
    Transport,
    /// The peer decides.
    #[error("the other end began it, and decides where it goes")]
    NotOurs,
    /// One of the ends does not want that.
    #[error("it was not agreed that its IKE SA may be cloned (RFC 7791)")]
    NotCloned,
    /// Another IKE SA is on its way to take its place.
    #[error("another IKE SA is just taking its place")]
    UnderWay,
    /// The peer has refused it, and nothing has been deleted since.
    #[error("the peer wants no more IKE SAs with us than there are")]
    Enough,
}

/// Why an IKE SA is not authenticated anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotReauthenticate {
    /// There is no IKE SA, or not yet.
    #[error("it is not up")]
    NotUp,
    /// The peer began it.
    #[error("the other end began it, and only that end can begin anew")]
    NotOurs,
    /// It is being done.
    #[error("that is being done already")]
    UnderWay,
}

/// Why a peer is not sent to another gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotRedirect {
    /// There is no IKE SA, or not yet.
    #[error("it is not up")]
    NotUp,
    /// We began it.
    #[error("we began it, and only who was called can send the other end elsewhere")]
    NotTheirs,
    /// The peer did not say that it would go.
    #[error("it did not say that it goes elsewhere (RFC 5685)")]
    NotWilling,
}

/// What a person can do about a refused grant.
const fn grant_advice(code: RefusalCode) -> &'static str {
    match code {
        RefusalCode::NOT_A_LICENSED_NODE | RefusalCode::NOT_THE_GATEWAY => {
            "it has to know us by a [gateway.NAME] with our `id`"
        }
        RefusalCode::TOO_MANY_GRANTS => "it holds as many as it can",
        _ => "both ends should run the same release",
    }
}

/// Who has to change what so that IP need not cut messages.
const fn cutter(ours: bool) -> &'static str {
    match ours {
        true => "set `fragment = 1280` in [listen]",
        false => "the peer does not offer IKE fragmentation (RFC 7383): turn it on there",
    }
}

/// A child as a person calls it.
fn tunnel(name: &Option<String>) -> String {
    name.as_ref().map_or_else(
        || "the tunnel".to_owned(),
        |name| format!("the tunnel `{name}`"),
    )
}

/// What a person can do about a child that was refused.
fn child_advice(notify: NotifyType) -> &'static str {
    match notify {
        NotifyType::NO_ADDITIONAL_SAS => "it has no more than it has, or one that carries the same",
        notify => advice(notify),
    }
}

/// What a person can do about a clone that was refused.
fn clone_advice(notify: NotifyType) -> &'static str {
    match notify {
        NotifyType::TEMPORARY_FAILURE => "it was busy: try again",
        NotifyType::NO_ADDITIONAL_SAS => "it wants no more of them: wait until one is gone",
        notify => advice(notify),
    }
}

/// What a person can do about an error notify.
fn advice(notify: NotifyType) -> &'static str {
    match notify {
        NotifyType::NO_PROPOSAL_CHOSEN => {
            "nothing in common: compare `suite` and `groups` at both ends, and `kem` and `mode` where there are any"
        }
        NotifyType::INVALID_KE_PAYLOAD => {
            "no key exchange in common: allow x25519 (group 31) or p256 (group 19) there"
        }
        NotifyType::TS_UNACCEPTABLE => {
            "nothing in common: compare `local` and `remote` at both ends"
        }
        NotifyType::INTERNAL_ADDRESS_FAILURE => {
            "its pool has no address left for us: add to it there, or end what uses it"
        }
        NotifyType::FAILED_CP_REQUIRED => {
            "it lends the addresses inside: set `local = [\"dynamic\"]` here"
        }
        NotifyType::OFFER_REFUSED => {
            "no licence there names that node, or it shares keys with others there: write the same ones, with `at`, and the same `holders` at both ends"
        }
        NotifyType::ZONES_REQUIRED => {
            "zones are required there: set `zones` here like there, or make the peer accept plain ESP"
        }
        NotifyType::INVALID_MAJOR_VERSION => "the peer speaks another version of IKE",
        NotifyType::TEMPORARY_FAILURE => {
            "somebody has taken it down there; `strata up` there lets us in again"
        }
        NotifyType::NO_ADDITIONAL_SAS => "our role there allows no tunnel",
        NotifyType::AUTHENTICATION_FAILED => "compare `id` and `psk` at both ends",
        NotifyType::UNACCEPTABLE_ADDRESSES => {
            "it does not want us at that address: see its log, and leave our `address` out there"
        }
        NotifyType::UNEXPECTED_NAT_DETECTED => {
            "our address is translated on the way: allow it (`nat`), or find who translates"
        }
        _ => "the peer's log may say more",
    }
}

/// What a person can do about a certificate of ours that was refused.
fn refusal_of_ours(why: Option<CertificateRefusal>) -> &'static str {
    match why {
        Some(CertificateRefusal::EXPIRED) => "it, or its CA, has expired; issue it anew",
        Some(CertificateRefusal::NOT_YET_VALID) => "it is not valid yet there; compare the clocks",
        Some(CertificateRefusal::UNKNOWN_AUTHORITY) => {
            "our CA is not trusted there; add it to `ca` there, and the intermediates to our `cert`"
        }
        Some(CertificateRefusal::WRONG_NAME) => "our `id` is not a name in it; issue it anew",
        Some(CertificateRefusal::WRONG_USAGE) => "its key usage does not allow IKE; issue it anew",
        Some(CertificateRefusal::WRONG_SIGNATURE) => {
            "our signature does not verify: is `key` that of `cert`?"
        }
        Some(CertificateRefusal::REVOKED) => "it was revoked; issue it anew, with a new key",
        Some(CertificateRefusal::REVOCATION_UNKNOWN) => {
            "it cannot tell there whether it was revoked: the newest list of our CA has to be in `crl` there"
        }
        Some(_) => "it breaks a rule of RFC 5280; the peer's log says which",
        None => {
            "our `id` is unknown or has a `psk` or `pubkey` there, or it does not believe our CA; its log may say more"
        }
    }
}

/// What there has to be beside a group; nothing if it may be without.
fn besides(kems: &[Option<Kem>]) -> String {
    let required: Option<Vec<_>> = kems.iter().copied().collect();
    let required = required.filter(|kems| !kems.is_empty());
    required.map_or_else(String::new, |kems| {
        format!(" and {} besides", either(&kems))
    })
}

/// What is to be compared because of it.
fn kem_too(kems: &[Option<Kem>]) -> &'static str {
    match besides(kems).is_empty() {
        true => "",
        false => ", and `kem`",
    }
}

/// Which sequence numbers are allowed.
const fn numbers(esn: bool) -> &'static str {
    match esn {
        true => "with extended sequence numbers or without",
        false => "without extended sequence numbers",
    }
}

/// What is wrong with an offer to license these nodes.
fn offers(nodes: &[Identity]) -> String {
    let read = match nodes {
        [node] => format!("{node} read, and no licence here names it"),
        _ => format!(
            "each of {} read by the same keys, and no licences here are for these nodes and no others",
            listed(nodes)
        ),
    };
    let both = match nodes {
        [_] => "write the same licence, with `at`, at both ends",
        _ => "write the same licences, with `at` and `holders`, at both ends",
    };
    format!(
        "it offers to let {read}: its keys do not leave, and nobody reads in that place; {both}"
    )
}

fn listed(nodes: &[Identity]) -> String {
    let nodes: Vec<_> = nodes.iter().map(ToString::to_string).collect();
    nodes.join(", ")
}

fn either(allowed: &[impl ToString]) -> String {
    let names: Vec<_> = allowed.iter().map(ToString::to_string).collect();
    names.join(" or ")
}
