//! Why an IKE SA is gone.

use crate::advice::{advice, cutter, refusal_of_ours};
use crate::bad_proof::BadProof;
use crate::extension::fragment::Uncut;
use crate::extension::mode::BadMode;
use crate::signature::NotVerified;
use model::Identity;
use std::net::{IpAddr, SocketAddr};
use wire::ike::{CertificateRefusal, NotifyType};

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
    #[error("{0}")]
    SignatureNotAccepted(#[from] NotVerified),
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

impl DownReason {
    /// Returns true if one end refused the other's proof of identity. A key may have been changed at one end
    /// only, so the next attempts follow soon.
    pub const fn is_wrong_key(&self) -> bool {
        matches!(
            self,
            Self::AuthenticationRefused { .. }
                | Self::PpkRefused { .. }
                | Self::CertificateRefused { .. }
                | Self::KeyRefused { .. }
                | Self::WrongKey
        )
    }
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
    #[error("a message holds a critical payload of an unknown type")]
    UnsupportedCritical,
}
