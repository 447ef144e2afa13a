//! An IKE SA that is up: its data, which every task may use.
//!
//! Tasks (`task/`) change a session and queue requests. They send nothing but answers: the dispatch
//! (`sa/established.rs`) sends queued requests at the end of a turn, and performs what a task
//! returns ([`Then`]).

pub(crate) mod child_request;
pub(crate) mod children;
pub(crate) mod follow;
pub(crate) mod grants;
pub(crate) mod live_paths;
pub(crate) mod openings;
pub(crate) mod pace;
pub(crate) mod queue;
pub(crate) mod replacement;
pub(crate) mod successor;
pub(crate) mod task;
mod unsure;
pub(crate) mod upkeep;

use crate::config::Peer;
use crate::down_reason::{DownReason, PeerMisbehaved};
use crate::exchange::notify;
use crate::extension::contact::Contact;
use crate::extension::live_path;
use crate::extension::mobike::Mobike;
use crate::extension::mode::ModeContext;
use crate::extension::path_traffic::path_traffic;
use crate::keys::ProvedKeys;
use crate::policy::Policy;
use crate::sa::arrived::Arrived;
use crate::sa::core::Core;
use crate::sa::protected;
use crate::sa::turn::Turn;
use children::{Age, Children};
use crypto::UnixTime;
use follow::Follow;
use grants::{Grants, Offered};
use live_paths::LivePaths;
use model::{InnerAddresses, Instant, Licence, Path};
use openings::Openings;
use queue::Queue;
use replacement::Replacement;
use std::net::IpAddr;
use std::time::Duration;
use task::{Makes, Task, Then};
use upkeep::Upkeep;
use wire::ike::{Datagram, NotifyType, Payload, PingCounts};

/// Pause after the start of an IKE SA, in which unauthenticated errors start no other. It doubles
/// with each error.
const HINT_PAUSE: Duration = Duration::from_secs(2);

/// The data of an IKE SA that is up.
pub(crate) struct Session {
    pub(crate) keys: ProvedKeys,
    pub(crate) terms: Terms,
    /// MOBIKE state, if both ends support MOBIKE.
    pub(crate) mobike: Option<Mobike>,
    pub(crate) follow: Follow,
    /// The paths beside that of the IKE SA.
    pub(crate) paths: LivePaths,
    pub(crate) children: Children,
    pub(crate) upkeep: Upkeep,
    pub(crate) openings: Openings,
    pub(crate) lifetime: Lifetime,
    pub(crate) replacement: Replacement,
    pub(crate) liveness: Liveness,
    pub(crate) grants: Grants,
    /// Our counters of the peer's pings.
    pub(crate) pings: PingCounts,
    /// True if the peer has given us a ticket.
    pub(crate) gives_tickets: bool,
    /// Our requests.
    pub(crate) queue: Queue,
}

/// What IKE_AUTH has settled. A clone has the same.
#[derive(Clone)]
pub(crate) struct Terms {
    /// The properties that decide between this SA and another one with the same peer.
    pub(crate) contact: Contact,
    /// The inner addresses that one end has leased to the other.
    pub(crate) addresses: Option<InnerAddresses>,
    /// The certificates that authenticated the peer; empty if it authenticated in another way.
    pub(crate) chain: Vec<Vec<u8>>,
    /// Wall-clock time at which the certificates were verified.
    pub(crate) believed: UnixTime,
    /// True if the peer understands our private numbers.
    pub(crate) private: bool,
    /// True if either end may clone the SA.
    pub(crate) clones: bool,
    /// True if there may be several child SAs for the same traffic.
    pub(crate) resources: bool,
    /// True if the peer supports redirection.
    pub(crate) willing: bool,
}

/// Times at which parts of the SA have to be renewed.
pub(crate) struct Lifetime {
    /// Of the SA's own keys.
    pub(crate) keys: Age,
    /// Of the authentication, which another SA renews.
    pub(crate) proof: Age,
}

/// Signs of life of the peer, and of its opposite.
pub(crate) struct Liveness {
    pub(crate) heard: Instant,
    /// No unauthenticated error starts another IKE SA before this time.
    pub(crate) heeds_from: Instant,
    pub(crate) hint_pause: Duration,
    /// True if an unauthenticated error says that the peer has lost this SA.
    pub(crate) is_doubtful: bool,
    /// True if the next replacement is for this reason, and may resume the session.
    pub(crate) may_resume: bool,
    /// Time by which the third message of SKID3 is answered (`task/confirm.rs`).
    pub(crate) confirmed_by: Option<Instant>,
    /// No unknown SPI makes us ask the peer before this time.
    pub(crate) asks_from: Instant,
    /// Proves that the peer has lost this SA (`extension/crash.rs`).
    pub(crate) token: Option<Box<[u8]>>,
}

impl Liveness {
    pub(crate) fn begin(now: Instant) -> Self {
        Self {
            heard: now,
            heeds_from: now + HINT_PAUSE,
            hint_pause: HINT_PAUSE,
            is_doubtful: false,
            may_resume: false,
            confirmed_by: None,
            asks_from: now,
            token: None,
        }
    }

    /// Notes that an authentic packet of the peer arrived.
    pub(crate) fn note_heard(&mut self, now: Instant) {
        self.heard = self.heard.max(now);
    }
}

impl Session {
    /// Begins without child SAs, grants and requests. `home` is the peer's address.
    pub(crate) fn new(
        keys: ProvedKeys,
        terms: Terms,
        lifetime: Lifetime,
        home: IpAddr,
        now: Instant,
    ) -> Box<Self> {
        Box::new(Self {
            keys,
            terms,
            mobike: None,
            follow: Follow::begin(home),
            paths: LivePaths::default(),
            children: Children::default(),
            upkeep: Upkeep::default(),
            openings: Openings::default(),
            lifetime,
            replacement: Replacement::default(),
            liveness: Liveness::begin(now),
            grants: Grants::default(),
            pings: PingCounts::default(),
            gives_tickets: false,
            queue: Queue::default(),
        })
    }

    /// Returns the licences that we asked for with a slot, also with one that is not complete yet;
    /// none if it does not exist.
    pub(crate) fn asked(&self, slot: &str) -> &[Licence] {
        let current = self.children.current(Some(slot));
        let current = current.and_then(|id| self.children.get(id));
        let asked = current.map(|child| &child.asked[..]);
        asked
            .or_else(|| self.openings.asked(slot))
            .unwrap_or_default()
    }

    /// Queues a request, which is sent at the end of the turn.
    pub(crate) fn ask(&mut self, task: impl Task, turn: &mut Turn<'_, '_>) {
        // A check may be sent for ever, but not while another task waits for its answer.
        let timers = &turn.ctx.config.timers;
        turn.core
            .requests
            .hurry(timers.give_up.max(timers.give_up_patient), turn.ctx.now);
        self.queue.push(Box::new(task));
    }

    /// Answers a request.
    pub(crate) fn respond(
        &mut self,
        payloads: Vec<Payload>,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) {
        protected::respond(turn, &mut self.keys.cipher, arrived, payloads);
    }

    /// Answers a request that awaited an answer of the caller.
    pub(crate) fn respond_late(
        &mut self,
        payloads: Vec<Payload>,
        offered: &Offered,
        turn: &mut Turn<'_, '_>,
    ) {
        let datagram = Datagram::decode(&offered.octets).expect("it was decoded when it came");
        let arrived = Arrived::new(datagram, &offered.octets, offered.path);
        self.respond(payloads, &arrived, turn);
    }

    /// Answers CREATE_CHILD_SA. A request that lacks payloads is as fatal as one that cannot be
    /// parsed: "this error notification is considered fatal in both peers, meaning that the IKE SA
    /// is deleted without needing an explicit Delete payload" (RFC 7296 section 2.21.3).
    pub(crate) fn respond_renewal(
        &mut self,
        answer: Vec<Payload>,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> Then {
        let fatal = answer.contains(&notify(NotifyType::INVALID_SYNTAX, Vec::new()));
        self.respond(answer, arrived, turn);
        match fatal {
            true => Then::End(DownReason::Misbehaved(PeerMisbehaved::WrongPayloads)),
            false => Then::Stay,
        }
    }

    /// Returns the properties on which the mode of a child SA depends.
    pub(crate) fn mode_context(&self, core: &Core) -> ModeContext {
        ModeContext::new(core.proved, core.nat, self.terms.private)
    }

    /// Returns the MOBIKE state if we choose the path.
    pub(crate) fn deciding(&mut self) -> Option<&mut Mobike> {
        self.mobike.as_mut().filter(|mobike| mobike.decides)
    }

    /// Returns true if we choose the path; `None` if the SA does not move, except where a NAT takes
    /// the peer's messages.
    pub(crate) fn chooses_path(&self) -> Option<bool> {
        self.mobike.as_ref().map(|mobike| mobike.decides)
    }

    /// Returns true if both ends support MOBIKE-X.
    pub(crate) fn is_extended(&self) -> bool {
        self.mobike.as_ref().is_some_and(|mobike| mobike.extended)
    }

    /// Returns true if both ends support selectors for the traffic of live paths.
    pub(crate) fn has_path_selectors(&self) -> bool {
        let mobike = self.mobike.as_ref();
        mobike.is_some_and(|mobike| mobike.path_selectors)
    }

    /// Returns true if the path with this number has a child SA for all traffic.
    pub(crate) fn has_path(&self, number: u8) -> bool {
        let name = live_path::name(number);
        (number == 1 || name.is_some()) && self.children.current(name).is_some()
    }

    /// Returns true if a child SA is to carry the traffic of a path that does not exist any more.
    pub(crate) fn lacks_path(&self, name: Option<&str>) -> bool {
        path_traffic(name).is_some_and(|traffic| !self.has_path(traffic.path))
    }

    /// Returns the most paths to a peer, including that of the IKE SA.
    pub(crate) fn most_paths(&self, peer: Option<&Peer>) -> u8 {
        let most = peer.map_or(1, |peer| peer.features.paths);
        if self.is_extended() { most } else { 1 }
    }

    /// Returns the policy of a child SA, which depends on its path if that is a further one.
    pub(crate) fn policy<'p>(&self, peer: &'p Peer, name: Option<&str>) -> Option<Policy<'p>> {
        let policy = peer.policy(name)?;
        let own = self.paths.carrying(name);
        Some(own.map_or(policy, |own| self.policy_on(own.path, policy, peer)))
    }

    /// Returns the policy of the child SA of a further path. No node is licensed there unless both
    /// ends have agreed on zones.
    pub(crate) fn policy_on<'p>(
        &self,
        path: Path,
        policy: Policy<'p>,
        peer: &'p Peer,
    ) -> Policy<'p> {
        let mut children = self.children.all_current();
        match children.any(|child| child.agreement.is_some()) {
            true => policy.on(path, peer),
            false => policy,
        }
    }

    /// Returns true if moves of this SA are announced, so that "other messages" move nothing (RFC
    /// 4555 section 3.8).
    pub(crate) fn announces_moves(&self) -> bool {
        self.chooses_path().is_some()
    }

    /// Has the path announced to the peer, if we choose it. If the peer does, no check of its path
    /// is due any more.
    pub(crate) const fn announce_path(&mut self) {
        if let Some(mobike) = &mut self.mobike {
            mobike.pending = mobike.decides;
        }
    }

    /// Returns true if the peer chooses the path of this SA, and needs time to find one.
    pub(crate) fn is_patient(&self) -> bool {
        self.chooses_path() == Some(false)
    }

    /// Returns true if a change of path requires a request, for which all others wait.
    pub(crate) fn is_to_move(&self) -> bool {
        self.mobike.as_ref().is_some_and(|mobike| mobike.pending)
    }

    /// Returns true if a change of path is to be requested, or is not answered yet.
    pub(crate) fn is_moving(&self) -> bool {
        self.is_to_move() || self.queue.runs(|task| task.moves())
    }

    /// Returns true if the next request is the question to a new address, for which all others
    /// wait.
    pub(crate) fn is_to_follow(&self) -> bool {
        self.follow.is_to_ask(self.announces_moves())
    }

    /// Returns true if another SA has replaced this one.
    pub(crate) const fn is_leaving(&self) -> bool {
        self.replacement.leaving.is_some()
    }

    /// Returns true if this is a clone of ours that has not replaced its original.
    pub(crate) const fn is_on_trial(&self) -> bool {
        self.replacement.is_on_trial()
    }

    /// Returns true if an exchange for a successor that we requested is outstanding.
    pub(crate) fn is_rekeying(&self) -> bool {
        self.queue
            .runs(|task| task.makes() == Some(Makes::Successor))
    }

    /// Returns true if a packet of the peer arrived after the SA came up.
    pub(crate) fn was_heard(&self) -> bool {
        self.terms.contact.since < self.liveness.heard
    }
}
