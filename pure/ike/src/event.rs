//! Events that an engine reports.
//!
//! A reason (`down_reason.rs`, `refusal.rs`) states facts; what to do about them is up to the
//! caller. Events carry the peer separately, so that a log line reads `peer NAME: REASON`.

use crate::down_reason::DownReason;
use crate::extension::configuration::Inside;
use crate::refusal::{GrantRefusal, KeyRefusal, Refusal};
use crypto::Secret;
use model::{ChildSa, ChildSaId, CsaId, Grant, Identity, IkeSaId, Path, PeerId, TrafficSelector};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::ike::{PingCounts, Token};

/// The fate of a request that measured a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// It was answered after this time.
    Answered(Duration),
    /// It, or its answer, was lost.
    Lost,
    /// It was not sent, as other requests are outstanding, or its answer came on another path.
    Unknown,
}

/// The reason for which a hand-over did not take place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotHandedOver {
    /// The peer had no time for a clone.
    Busy,
    /// The peer refused the clone.
    Refused,
    /// The clone did not come up on its path, or not with all child SAs.
    Failed,
}

/// An event that the engine reports.
#[derive(Clone, Debug)]
pub enum Event {
    /// An IKE SA is up: both ends are authenticated.
    IkeUp {
        /// The IKE SA.
        sa: IkeSaId,
        /// The peer.
        peer: PeerId,
        /// True if we initiated it.
        initiator: bool,
        /// True if a session was resumed.
        resumed: bool,
    },
    /// An attempt to resume a session failed, or is not answered, and we initiated in full. The
    /// engine reports nothing more about the attempt, unless it comes up after all.
    NotResumed {
        /// The attempt.
        old: IkeSaId,
        /// The IKE SA that we initiated.
        sa: IkeSaId,
        /// The peer.
        peer: PeerId,
    },
    /// Of several attempts at addresses of a peer, one is answered. The others have ended.
    Answered {
        /// The attempt that continues.
        sa: IkeSaId,
        /// The peer.
        peer: PeerId,
    },
    /// Re-authentication succeeded: a new IKE SA replaces one that is up. The old one goes down
    /// once it has no outstanding exchanges.
    IkeReplaced {
        /// The replaced IKE SA.
        old: IkeSaId,
        /// The new one.
        sa: IkeSaId,
        /// The peer.
        peer: PeerId,
        /// True if a session was resumed: neither end has authenticated again.
        resumed: bool,
    },
    /// An initiator proved one of the identities that a table stands for. It is a peer of its own
    /// from now on, with the settings of the table.
    UserEntered {
        /// The peer.
        peer: PeerId,
        /// The table.
        table: PeerId,
        /// Its name: the identity, with a number if it has several tunnels.
        name: String,
    },
    /// Nothing is left of a user, about which the engine reports nothing more.
    UserLeft {
        /// The peer.
        peer: PeerId,
    },
    /// A peer established an IKE SA from another address while one from `old` was up, and did not
    /// mention the old one: it restarted elsewhere, or two machines have its key. The old IKE SA
    /// goes down with the next event.
    Displaced {
        /// The peer.
        peer: PeerId,
        /// Source of the old IKE SA.
        old: SocketAddr,
        /// Source of the new one.
        new: SocketAddr,
    },
    /// An IKE SA was cloned (RFC 7791). The clone is another IKE SA with the same peer, as yet
    /// without child SAs.
    IkeCloned {
        /// The original IKE SA, which stays unchanged.
        old: IkeSaId,
        /// The clone.
        sa: IkeSaId,
        /// The peer.
        peer: PeerId,
    },
    /// A clone replaces the IKE SA that it was cloned from: it has the same child SAs and uses the
    /// requested path. If we asked for the hand-over, the old IKE SA goes down once it has no
    /// outstanding exchanges.
    IkeHandedOver {
        /// The replaced IKE SA.
        old: IkeSaId,
        /// The clone.
        sa: IkeSaId,
        /// The peer.
        peer: PeerId,
    },
    /// A gateway redirected us to another one, and we initiated an IKE SA there (RFC 5685). The
    /// engine reports nothing more about the old SA, unless it was up.
    Redirected {
        /// The IKE SA on which the gateway redirected us.
        old: IkeSaId,
        /// The IKE SA that we initiated.
        sa: IkeSaId,
        /// The peer.
        peer: PeerId,
        /// The other gateway.
        to: IpAddr,
    },
    /// A gateway redirected us to another one by its name. The caller looks it up, and calls
    /// [`crate::Engine::follow`] for its addresses. An IKE SA that is not authenticated, or that is
    /// up, continues.
    RedirectedToName {
        /// The IKE SA on which the gateway redirected us.
        old: IkeSaId,
        /// The peer.
        peer: PeerId,
        /// Name of the other gateway.
        name: Box<str>,
    },
    /// The peer did not answer by UDP, and we initiated again over TCP (RFC 9329). The engine
    /// reports nothing more about the old SA.
    FellBack {
        /// The IKE SA that was not answered.
        old: IkeSaId,
        /// The IKE SA that we initiated.
        sa: IkeSaId,
        /// The peer.
        peer: PeerId,
        /// Address and port at which the peer should listen.
        to: SocketAddr,
    },
    /// An IKE SA and its child SAs are down, or one that we initiated could not be established. Our
    /// Delete may still be in flight, as nothing depends on its response. Initiators that fail to
    /// authenticate cause only [`Event::Refused`].
    IkeDown {
        /// The IKE SA.
        sa: IkeSaId,
        /// The peer.
        peer: PeerId,
        /// Reason.
        why: DownReason,
    },
    /// The peer assigned us inner addresses. They are valid until the IKE SA is down.
    Configured {
        /// The IKE SA.
        sa: IkeSaId,
        /// The peer.
        peer: PeerId,
        /// The addresses, name servers and subnets.
        inside: Inside,
    },
    /// A child SA is up. Its name identifies it among the peer's child SAs.
    ChildUp(Box<ChildSa<Secret>>),
    /// A child SA replaces another one between the same ends. Both are usable: the caller decides
    /// when to stop sending on the old one, which goes down some time later.
    ChildRekeyed {
        /// The replaced child SA.
        old: ChildSaId,
        /// The new one. Its `initiator` tells which end requested it.
        new: Box<ChildSa<Secret>>,
    },
    /// The peer has deleted a replaced child SA or its IKE SA, or we are deleting the child SA.
    /// Stop sending on it. Packets in flight may still arrive.
    ChildRetired {
        /// The child SA.
        child: ChildSaId,
    },
    /// The peer has installed a child SA that it requested as a replacement, as an additional one
    /// for the same traffic, or as a slot. It is safe to send on it.
    ChildAssured {
        /// The new one.
        child: ChildSaId,
    },
    /// The peer has offered a slot for a node of a domain that we license, with the node's place.
    /// The slot comes up next, unless the peer gives up.
    Placed {
        /// The peer.
        peer: PeerId,
        /// The node.
        node: Identity,
        /// The addresses that identify its location.
        place: Vec<TrafficSelector>,
    },
    /// A licensed node announced the nodes that mobile nodes may move to from it.
    Neighbours {
        /// The node.
        node: Identity,
        /// The announced nodes.
        neighbours: Vec<Identity>,
    },
    /// Another licensed node requests keys with a token of a mobile node.
    /// [`crate::Engine::answer_request`] accepts or refuses.
    KeysAsked {
        /// The IKE SA with the node.
        sa: IkeSaId,
        /// The authenticated identity of the node.
        node: Identity,
        /// The token that the node presented.
        token: Token,
    },
    /// Another licensed node answered our request for keys, or the request failed.
    KeysAnswered {
        /// The IKE SA with the node.
        sa: IkeSaId,
        /// The token that we presented.
        token: Token,
        /// The keys, or the reason for the refusal.
        answer: Result<Grant<Secret>, KeyRefusal>,
    },
    /// The peer of an IKE SA answered a question for its counters of pings.
    PingCounts {
        /// The IKE SA.
        sa: IkeSaId,
        /// The number of the question.
        question: u64,
        /// The counters; `None` from a peer that does not have our vendor ID.
        counts: Option<PingCounts>,
    },
    /// An IKE SA was rekeyed: it has new keys and SPIs. Its id, child SAs and grants stay.
    IkeRekeyed {
        /// The IKE SA.
        sa: IkeSaId,
        /// The peer.
        peer: PeerId,
    },
    /// A child SA is down and must not be used any more.
    ChildDown {
        /// The child SA.
        child: ChildSaId,
        /// Reason for which its IKE SA goes down, unless only the child SA does.
        why: Option<DownReason>,
    },
    /// The child SAs of an IKE SA moved to another path: one of the ends moved (RFC 4555), or the
    /// peer's address changed behind its NAT (RFC 7296 section 2.23).
    PathMoved {
        /// The IKE SA.
        sa: IkeSaId,
        /// Its child SAs, which move too.
        children: Vec<ChildSaId>,
        /// The new path.
        path: Path,
    },
    /// An IKE SA can move to other addresses. Reported when the IKE SA is up, and whenever the
    /// peer's addresses change.
    Mobile {
        /// The IKE SA.
        sa: IkeSaId,
        /// True if we choose the path, by [`crate::Engine::move_to`].
        decides: bool,
        /// The current path.
        path: Path,
        /// Additional addresses of the peer.
        addresses: Vec<IpAddr>,
    },
    /// The peer does not answer on the path of an IKE SA whose path we choose. Reported once.
    /// [`crate::Engine::probe`] can try other paths until the engine gives up the SA.
    PathSilent {
        /// The IKE SA.
        sa: IkeSaId,
        /// The path.
        path: Path,
    },
    /// The peer answers again, after [`Event::PathSilent`].
    PathAnswers {
        /// The IKE SA.
        sa: IkeSaId,
        /// The path of the answer.
        path: Path,
    },
    /// A request of [`crate::Engine::measure`] has ended.
    PathMeasured {
        /// The IKE SA.
        sa: IkeSaId,
        /// The path.
        path: Path,
        /// The fate of the request.
        measured: Measured,
    },
    /// A hand-over of [`crate::Engine::hand_over`] did not take place. [`Event::Refused`] reports
    /// the reason to an operator.
    NotHandedOver {
        /// The IKE SA, which stays where it is.
        sa: IkeSaId,
        /// The reason.
        why: NotHandedOver,
    },
    /// The peer has answered on the path of a child SA that it requested for this path alone.
    /// Nothing may be sent on the child SA before.
    PathProved {
        /// The IKE SA.
        sa: IkeSaId,
        /// The number of the path.
        number: u8,
    },
    /// A path of [`crate::Engine::add_path`] was not added.
    PathNotAdded {
        /// The IKE SA.
        sa: IkeSaId,
        /// The path.
        path: Path,
        /// True if the peer allows no further path.
        full: bool,
    },
    /// The peer has left the path of an IKE SA with several paths. The child SAs there move after a
    /// check, with [`Event::PathMoved`]; until then, others should be used.
    PathLeft {
        /// The IKE SA.
        sa: IkeSaId,
    },
    /// The peer refused to move to a path. [`Event::Refused`] has reported the reason.
    MoveRefused {
        /// The IKE SA.
        sa: IkeSaId,
        /// The refused path. The IKE SA uses it until the caller chooses another one.
        path: Path,
    },
    /// Licensed node: a gateway granted us keys. Answer with [`crate::Engine::answer_grant`] before
    /// any other input. A grant for a composite SA that already has one replaces the earlier grant.
    Granted {
        /// The IKE SA that carried the grant.
        sa: IkeSaId,
        /// The authenticated identity of the gateway.
        gateway: Identity,
        /// The grant.
        grant: Grant<Secret>,
    },
    /// Gateway: the licensed node accepted a grant.
    GrantAccepted {
        /// The node's IKE SA.
        sa: IkeSaId,
        /// The composite SA.
        csa: CsaId,
        /// The grant's number.
        grant: u16,
    },
    /// Gateway: the licensed node refused a grant.
    GrantRefused {
        /// The node's IKE SA.
        sa: IkeSaId,
        /// The composite SA.
        csa: CsaId,
        /// The grant's number.
        grant: u16,
        /// Reason.
        why: GrantRefusal,
    },
    /// Licensed node: the gateway revoked a grant.
    Revoked {
        /// The IKE SA that carried the revocation.
        sa: IkeSaId,
        /// The composite SA.
        csa: CsaId,
    },
    /// Gateway: a licensed node dropped a grant on its own.
    GivenBack {
        /// The IKE SA that carried the notice.
        sa: IkeSaId,
        /// The composite SA.
        csa: CsaId,
    },
    /// A refusal that ends no SA, for the log and `status`.
    Refused {
        /// The peer; `None` if the remote end is not authenticated.
        peer: Option<PeerId>,
        /// Source of the refused message, if the remote end is not authenticated.
        from: Option<SocketAddr>,
        /// The refused request and the reason.
        why: Refusal,
    },
}
