//! What an engine tells its owner.
//!
//! A reason (`down_reason.rs`, `refusal.rs`) says whose fault it is and what to change. The peer's name stands in the event
//! beside it, so that a log line reads `peer NAME: REASON`.

use crate::down_reason::DownReason;
use crate::extension::configuration::Inside;
use crate::refusal::{GrantRefusal, KeyRefusal, Refusal};
use crypto::Secret;
use model::{ChildSa, ChildSaId, CsaId, Grant, Identity, IkeSaId, Path};
use std::net::{IpAddr, SocketAddr};
use wire::ike::Token;

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
    /// Gateway: a licensed node has forgotten a grant by itself.
    GivenBack {
        /// The IKE SA that this was said on.
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
