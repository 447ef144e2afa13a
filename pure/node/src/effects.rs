//! Effects of owners. An owner reads the engines through its [`Turn`] and leaves commands and
//! events there. `dispatch.rs` alone carries them out, in their order, as soon as the owner
//! returns.

use crate::plane::Plane;
use crate::{Cause, Event};
use crypto::{Rng, Secret};
use esp::Command;
use model::{ChildSaId, CsaId, Grant, Identity, IkeSaId, Instant, Path, PeerId, Stray};
use wire::ike::{PingCounts, RefusalCode, Token};

/// A command or an event.
pub(crate) enum Effect {
    Ike(IkeCommand),
    Plane(Command),
    Event(Event),
    /// A refusal or failure of a peer, if the peer is known.
    Refused(Option<PeerId>, Cause),
    /// Sends on a child SA, unless a slot of its peer sends.
    Prefer(ChildSaId),
    /// Has the location of a peer's tunnel checked.
    Check(PeerId),
    /// Has the paths to a peer reviewed.
    ReviewPaths(PeerId),
    /// An initiation is not possible now.
    NotStarted(PeerId, Cause),
    /// A redirect is not followed. Without another attempt, the next one is planned.
    NotFollowed(PeerId, Cause),
}

/// A command to the IKE engine, for one of its IKE SAs or for a slot of a peer.
pub(crate) enum IkeCommand {
    RekeyChild(IkeSaId, ChildSaId),
    /// Rekeys a child SA, and ends it after a minute.
    ReplaceChild(IkeSaId, ChildSaId),
    Revoke(IkeSaId, CsaId),
    AnswerGrant {
        sa: IkeSaId,
        csa: CsaId,
        number: u16,
        refusal: Option<RefusalCode>,
    },
    Distribute(IkeSaId, Box<Grant<Secret>>),
    TellNeighbours(IkeSaId, Vec<Identity>),
    RequestKeys(IkeSaId, Token),
    AnswerRequest(IkeSaId, [u8; 16], Box<Result<Grant<Secret>, RefusalCode>>),
    MoveTo(IkeSaId, Path),
    Probe(IkeSaId, Path),
    Measure(IkeSaId, Path),
    AddPath(IkeSaId, Path),
    RemovePath(IkeSaId, u8),
    /// Requests the child SA of one of our rules for the traffic of a path.
    AddPathTraffic(IkeSaId, u8, u8),
    RemovePathTraffic(IkeSaId, u8),
    Doubt(IkeSaId),
    NoteInbound(IkeSaId, Instant),
    NoteNewest(IkeSaId, Option<Stray>),
    /// Counts what child SAs have carried since they were installed, in octets.
    Meter(IkeSaId, Vec<(ChildSaId, u64)>),
    /// Asks the peer for its counters of pings, with the number of the question.
    AskPingCounts(IkeSaId, u64),
    /// Adds to our counters of the peer's pings.
    NotePings(IkeSaId, PingCounts),
    /// Retransmits at once what waits for an answer.
    Hasten,
    OpenSlot {
        peer: PeerId,
        slot: String,
    },
    ReleaseSlot {
        peer: PeerId,
        slot: String,
    },
}

impl From<IkeCommand> for Effect {
    fn from(command: IkeCommand) -> Self {
        Self::Ike(command)
    }
}

impl From<Command> for Effect {
    fn from(command: Command) -> Self {
        Self::Plane(command)
    }
}

impl From<Event> for Effect {
    fn from(event: Event) -> Self {
        Self::Event(event)
    }
}

/// What an owner may read, and the effects of what it does.
pub(crate) struct Turn<'a> {
    pub ike: &'a ike::Engine,
    pub plane: &'a Plane,
    pub rng: &'a mut Rng,
    pub effects: Vec<Effect>,
    pub now: Instant,
}

impl<'a> Turn<'a> {
    pub const fn new(
        ike: &'a ike::Engine,
        plane: &'a Plane,
        rng: &'a mut Rng,
        now: Instant,
    ) -> Self {
        Self {
            ike,
            plane,
            rng,
            effects: Vec::new(),
            now,
        }
    }

    /// Adds a command or an event.
    pub fn add(&mut self, effect: impl Into<Effect>) {
        self.effects.push(effect.into());
    }

    /// Records a refusal or failure of a peer.
    pub fn refuse(&mut self, peer: Option<PeerId>, why: impl Into<Cause>) {
        self.effects.push(Effect::Refused(peer, why.into()));
    }

    /// Has the location of a peer's tunnel checked.
    pub fn check(&mut self, peer: PeerId) {
        self.effects.push(Effect::Check(peer));
    }

    /// Returns the peer of an IKE SA, even if the SA is not the newest.
    pub fn peer(&self, sa: IkeSaId) -> Option<PeerId> {
        self.ike.sa(sa)?.peer
    }
}
