//! An IKE SA that is up: requests of both ends, as many at a time as the windows allow.

use super::children::{Age, Children, Due, lifetimes};
use super::cloning::Aside;
use super::closing::{Closing, Lingering};
use super::following::Following;
use super::leaving::{self, Leaving};
use super::offered::Offered;
use super::opening::Opening;
use super::pace::Pace;
use super::protected::Complaint;
use super::queue::Queue;
use super::successor::Successor;
use super::task::{self, Task};
use super::unsure::Unsure;
use super::upkeep::Upkeep;
use super::{Arrived, Context, Core, State, Turn};
use crate::attempt::End;
use crate::child::ChildTerms;
use crate::config::Timers;
use crate::down_reason::{DownReason, PeerMisbehaved};
use crate::event::Event;
use crate::exchange::create_child::{Renewal, Wish};
use crate::exchange::{first_error, notify};
use crate::extension::configuration::Inside;
use crate::extension::contact::Contact;
use crate::extension::mobike::Mobike;
use crate::extension::mode::ModeContext;
use crate::extension::nat;
use crate::extension::{clone, distribute, liveness, migration, resource};
use crate::keys::ProvedKeys;
use crate::peer_table::PeerTable;
use crate::refusal::Refusal;
use crypto::UnixTime;
use model::{ChildSaId, CsaId, Deadline, IkeSaId, InnerAddresses, Instant, Path};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;
use wire::ike::{Datagram, ExchangeType, Message, NotifyType, Payload};

/// Pause after the start of an IKE SA, in which unauthenticated errors start no other. It doubles
/// with each error.
const HINT_PAUSE: Duration = Duration::from_secs(2);

/// The longest such pause.
const LAST_HINT_PAUSE: Duration = Duration::from_secs(64);

pub(crate) struct Established {
    pub(crate) keys: ProvedKeys,
    /// MOBIKE state, if both ends support MOBIKE.
    pub(crate) mobike: Option<Mobike>,
    /// The properties that decide between this SA and another one with the same peer.
    pub(crate) contact: Contact,
    /// The inner addresses that one end has leased to the other.
    pub(crate) addresses: Option<InnerAddresses>,
    /// The certificates that authenticated the peer; empty if it authenticated in another way.
    pub(crate) chain: Vec<Vec<u8>>,
    /// Wall-clock time at which the certificates were verified.
    pub(crate) believed: UnixTime,
    /// The check of a new address of the peer. Boxed because it is rare.
    pub(super) following: Option<Box<Following>>,
    /// Rate of the checks that packets of child SAs start.
    pub(super) pace: Pace,
    /// Address of the peer when the SA was established.
    pub(super) home: IpAddr,
    /// No unauthenticated error starts another IKE SA before this time.
    pub(super) heeds_from: Instant,
    pub(super) hint_pause: Duration,
    /// True if an unauthenticated error says that the peer has lost this SA.
    pub(super) is_doubtful: bool,
    pub(super) children: Children,
    pub(super) upkeep: Upkeep,
    /// Child SAs that the peer may not know of.
    pub(super) unsure: Unsure,
    /// The IKE SA that this one replaces. The child SAs of this one replace those of the other.
    pub(crate) follows: Option<IkeSaId>,
    /// Lifetime of the SA's own keys.
    pub(super) age: Age,
    /// Lifetime of the authentication, which another SA renews.
    pub(super) proof: Age,
    /// True if either end may clone the SA.
    pub(super) clones: bool,
    /// True if there may be several child SAs for the same traffic.
    pub(super) resources: bool,
    /// Number of SAs at the time when the peer refused a clone as one too many.
    pub(super) enough: Option<usize>,
    /// State of a clone that has not replaced its original.
    pub(super) aside: Option<Aside>,
    /// Set if another SA, which we initiated, has replaced this one.
    pub(super) leaving: Option<Leaving>,
    /// True if another SA, which the peer initiated, replaces this one as soon as the peer knows.
    pub(crate) has_successor: bool,
    /// True if the peer supports redirection.
    pub(super) willing: bool,
    /// True if the peer understands our private numbers.
    pub(crate) private: bool,
    /// Our requests.
    pub(super) queue: Queue,
    /// A successor that the peer requested and that has not replaced this SA yet. Boxed because it
    /// is rare.
    pub(super) promised: Option<Box<Successor>>,
    /// Child SAs that the peer requested and that are not complete yet.
    pub(super) openings: Vec<Opening>,
    /// Number of times in a row that the peer lost the state of our follow-up exchanges.
    pub(super) forgotten: u8,
    pub(crate) heard: Instant,
    /// Licensed node: the composite SAs whose keys arrived on this SA.
    pub(crate) grants: BTreeSet<CsaId>,
    /// Licensed node: grants and requests that await an answer of the caller.
    pub(super) offered: Vec<Offered>,
}

/// Properties of a new SA.
#[derive(Clone)]
pub(super) struct Beginning {
    pub(super) private: bool,
    /// True if the initiator sent INITIAL_CONTACT.
    pub(super) initial: bool,
    pub(super) mobike: Option<Mobike>,
    /// The inner addresses that one end has leased to the other.
    pub(super) addresses: Option<InnerAddresses>,
    /// The certificates that authenticated the peer.
    pub(super) chain: Vec<Vec<u8>>,
    /// Lifetime of the authentication that the responder announced, if it did.
    pub(super) counts_for: Option<Duration>,
    /// True if the initiator supports redirection by us.
    pub(super) willing: bool,
    /// True if either end may clone the IKE SA.
    pub(super) clones: bool,
    /// True if there may be several child SAs for the same traffic.
    pub(super) resources: bool,
    /// Number of responses that the peer keeps, if announced.
    pub(super) window: Option<u32>,
}

impl Established {
    /// Brings the SA up, with the assigned inner addresses, and its child SA if it has one.
    pub(super) fn begin(
        keys: ProvedKeys,
        beginning: Beginning,
        inside: Option<Inside>,
        child: Option<ChildTerms>,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        turn.core.proved = turn.core.path;
        turn.core.esp = nat::esp_path(turn.core.path, turn.core.nat, turn.ctx.config);
        turn.core.anew = false;
        turn.core.overlap(beginning.window, turn.ctx.config);
        turn.core
            .responses
            .widen(turn.core.own_window(turn.ctx.config));
        let proof = leaving::age(beginning.counts_for, turn.core.initiator, turn);
        let mut state = Box::new(Self {
            contact: Contact {
                ours: turn.core.initiator,
                began: turn.core.began,
                since: turn.ctx.now,
                initial: beginning.initial,
                lowest_nonce: keys.lowest_nonce.clone(),
            },
            keys,
            mobike: beginning.mobike,
            following: None,
            pace: Pace::default(),
            home: turn.core.path.remote.ip(),
            heeds_from: turn.ctx.now + HINT_PAUSE,
            hint_pause: HINT_PAUSE,
            is_doubtful: false,
            addresses: beginning.addresses,
            chain: beginning.chain,
            believed: turn.ctx.today,
            children: Children::default(),
            upkeep: Upkeep::default(),
            unsure: Unsure::default(),
            follows: None,
            age: Age::begin(
                lifetimes(turn.core, turn.ctx.config).ike,
                turn.ctx.config,
                turn.ctx.rng,
                turn.ctx.now,
            ),
            proof,
            clones: beginning.clones,
            resources: beginning.resources,
            enough: None,
            aside: None,
            leaving: None,
            has_successor: false,
            willing: beginning.willing,
            private: beginning.private,
            queue: Queue::default(),
            promised: None,
            openings: Vec::new(),
            forgotten: 0,
            heard: turn.ctx.now,
            grants: BTreeSet::new(),
            offered: Vec::new(),
        });
        turn.ctx
            .out
            .attempts
            .end(turn.core, End::Up, turn.ctx.config);
        turn.ctx.event(Event::IkeUp {
            sa: turn.core.id,
            peer: turn.core.name(),
            initiator: turn.core.initiator,
        });
        let ppk = turn.core.ppk(turn.ctx.config);
        if ppk.is_some() && !state.keys.ppk {
            // "If a PPK was configured but was not used for a particular IKE SA, then
            // implementations SHOULD audit this event" (RFC 8784 section 6).
            turn.ctx
                .refused(Some(turn.core.name()), Refusal::WithoutPpk);
        }
        let wanted = turn
            .core
            .peer(turn.ctx.config)
            .is_some_and(|peer| peer.kems.iter().any(Option::is_some));
        if wanted && state.keys.kems.is_empty() {
            turn.ctx
                .refused(Some(turn.core.name()), Refusal::WithoutKem);
        }
        let several = turn
            .core
            .peer(turn.ctx.config)
            .is_some_and(|peer| peer.features.resources > 1);
        if several && !state.resources {
            turn.ctx
                .refused(Some(turn.core.name()), Refusal::WithoutResources);
        }
        state.tell_addresses(turn);
        if let Some(inside) = inside {
            let (sa, peer) = (turn.core.id, turn.core.name());
            turn.ctx.event(Event::Configured { sa, peer, inside });
        }
        if let Some(terms) = child {
            state.add_child(terms, turn.core.initiator, turn);
        }
        State::Established(state)
    }

    /// Closes the SA by an INFORMATIONAL request with a Delete.
    pub(super) fn close(mut self: Box<Self>, why: DownReason, turn: &mut Turn<'_, '_>) -> State {
        self.note_in_vain(&why, turn);
        self.drop_children(&why, turn.ctx);
        Closing::begin(self.keys, why, turn)
    }

    /// Returns the properties on which the mode of a child SA depends.
    pub(super) fn ground(&self, core: &Core) -> ModeContext {
        ModeContext::new(core.proved, core.nat, self.private)
    }

    /// Queues a request.
    pub(crate) fn ask(&mut self, task: Task, turn: &mut Turn<'_, '_>) {
        // A check may be sent for ever, but not while another task waits for its answer.
        let timers = &turn.ctx.config.timers;
        turn.core
            .requests
            .hurry(timers.give_up.max(timers.give_up_patient), turn.ctx.now);
        self.queue.push(task);
        self.send_next(turn);
    }

    /// Notes that an authentic packet of the peer arrived.
    pub(crate) fn note_heard(&mut self, now: Instant) {
        self.heard = self.heard.max(now);
    }

    pub(crate) fn children(&self) -> Vec<ChildSaId> {
        self.children.ids()
    }

    pub(super) fn handle(self: Box<Self>, arrived: &Arrived<'_>, turn: &mut Turn<'_, '_>) -> State {
        match arrived.datagram.header().flags.response {
            true => self.handle_response(arrived, turn),
            false => self.handle_request(arrived, turn),
        }
    }

    pub(super) fn handle_timeout(mut self: Box<Self>, turn: &mut Turn<'_, '_>) -> State {
        if self.is_too_old(turn) {
            let why = self.why_over(turn);
            return self.close(why, turn);
        }
        if self.is_overdue(turn.ctx.now) {
            return self.turn_back(DownReason::NotFollowed, turn);
        }
        if self.is_unproved(turn) {
            return self.close(DownReason::ProofTooOld, turn);
        }
        self.unsure
            .resolve(&turn.core.responses, self.heard, turn.ctx);
        self.end_step(turn);
        self.leave(turn);
        self.forget_openings(turn.ctx);
        self.note_silence(turn);
        let due = self.liveness(turn.core, turn.ctx.config);
        if due.is_some_and(|deadline| deadline.at <= turn.ctx.now) {
            let timers = &turn.ctx.config.timers;
            match turn.core.requests.is_idle() {
                true => self.ask(Task::Liveness, turn),
                false => turn
                    .core
                    .requests
                    .press(self.allowed_check(timers), timers, turn.ctx.now),
            }
        }
        State::Established(self)
    }

    /// Rekeys and deletes the SAs that are due. Returns true if keys have expired without a
    /// successor.
    fn is_too_old(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        while let Some(due) = self.children.pop_due(turn.ctx.now) {
            match due {
                Due::Rekey(child) => self.rekey_child(child, turn),
                Due::Delete(child) => self.delete_child(child, turn),
                Due::Forget(child) => {
                    self.children.remove(child);
                    turn.ctx.event(Event::ChildDown { child, why: None });
                }
                Due::End(child) if self.children.all_current().count() > 1 => {
                    self.delete_current(child, turn);
                }
                Due::End(_) => return true,
            }
        }
        let past = |at: Option<Instant>| at.is_some_and(|at| at <= turn.ctx.now);
        if past(self.age.over_at) {
            return true;
        }
        if past(self.age.renew_at) {
            self.rekey_ike(turn);
        }
        false
    }

    /// Returns the next deadline.
    pub(super) fn deadline(&self, core: &Core, config: &PeerTable) -> Option<Deadline> {
        let renewal = |at| Deadline {
            at,
            reason: "rekey or delete an SA",
        };
        let ages = [
            self.children.next(),
            self.age.next(),
            self.proof.next(),
            self.leaves_at(),
            self.tried_until(),
            self.upkeep.next,
            self.unsure.next(),
            self.forgets_at(),
        ];
        let ages = ages.into_iter().flatten();
        let asked = self.liveness(core, config).into_iter();
        ages.map(renewal)
            .chain(asked)
            .chain(self.step_ends_at())
            .chain(self.silent_at(core))
            .min()
    }

    /// Returns the time of the next liveness check, after a time without packets of the peer. An
    /// outstanding request serves as the check: from then on, it gets no more time than a check
    /// would.
    fn liveness(&self, core: &Core, config: &PeerTable) -> Option<Deadline> {
        let peer = core.peer(config)?;
        let allowed = self.allowed_check(&config.timers);
        let asks = core.requests.is_idle() || core.requests.may_exceed(allowed);
        asks.then(|| liveness::deadline(self.heard, peer.liveness))?
    }

    /// Returns the time after which a liveness check without a response ends the SA.
    fn allowed_check(&self, timers: &Timers) -> Duration {
        match self.is_patient() {
            true => timers.give_up_patient,
            false => timers.give_up_check,
        }
    }

    /// Sends a liveness check at once, because child SAs sent and received nothing. The check never
    /// ends the SA earlier than liveness would, and is not sent if liveness checks are disabled.
    pub(crate) fn doubt(&mut self, turn: &mut Turn<'_, '_>) {
        let peer = turn.core.peer(turn.ctx.config);
        let asks = peer.is_some_and(|peer| !peer.liveness.is_zero());
        if asks && turn.core.requests.is_idle() && !self.is_leaving() {
            self.ask(Task::Doubt, turn);
        }
    }

    /// Returns true if the peer chooses the path of this SA, and needs time to find one.
    fn is_patient(&self) -> bool {
        self.mobike.as_ref().is_some_and(|mobike| !mobike.decides)
    }

    /// Gives up, as the peer does not answer.
    pub(super) fn give_up(mut self: Box<Self>, attempts: u32, turn: &mut Turn<'_, '_>) -> State {
        if self.is_on_trial() {
            return self.turn_back(DownReason::PeerGone { attempts }, turn);
        }
        let why = match self.is_leaving() {
            true => DownReason::Replaced,
            false => {
                turn.ctx.ike_spis.lose(turn.core.own_spi());
                DownReason::PeerGone { attempts }
            }
        };
        self.drop_children(&why, turn.ctx);
        turn.core.gone(why, turn.ctx)
    }

    /// Takes the SA down without a message to the peer, which has lost its state.
    pub(crate) fn abandon(&mut self, turn: &mut Turn<'_, '_>) -> State {
        let why = DownReason::Replaced;
        self.drop_children(&why, turn.ctx);
        turn.core.gone(why, turn.ctx)
    }

    fn handle_response(
        mut self: Box<Self>,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        if self.handle_clear_error(arrived, turn) {
            turn.ctx.count_taken();
            turn.core.requests.abandon();
            return self.left(turn.ctx);
        }
        let Some(response) = turn
            .core
            .accept_response(&self.keys.cipher, arrived, turn.ctx)
        else {
            return State::Established(self);
        };
        self.heard = turn.ctx.now;
        turn.core.lost = false;
        self.follow(arrived, turn);
        self.note_answer(arrived.path, turn);
        let task = self.queue.finish(arrived.datagram.header().message_id);
        match response {
            // "Such errors in parsing or processing response packets should still cause the
            // recipient to clean up the IKE state" (RFC 7296 section 2.21).
            Err(Complaint { why, .. }) => self.close(DownReason::Misbehaved(why), turn),
            Ok(mut response) => {
                if !self.private {
                    response.forget_private();
                }
                match first_error(&response) {
                    Some(notify @ NotifyType::INVALID_SYNTAX) => {
                        self.end(DownReason::Unreadable { notify }, turn)
                    }
                    _ => self.conclude(task, &response, arrived.path, turn),
                }
            }
        }
    }

    /// Handles an unauthenticated error while a request is under way: the peer was restarted and
    /// has lost the SA, or the error is forged. Starts another IKE SA, while this one stays until
    /// the other is authenticated. Returns true if the error answers the Delete of an SA that
    /// another one has replaced: nothing is lost if it ends now.
    fn handle_clear_error(&mut self, arrived: &Arrived<'_>, turn: &mut Turn<'_, '_>) -> bool {
        let Datagram::Clear(message) = &arrived.datagram else {
            return false;
        };
        let error = first_error(message).filter(|_| turn.core.requests.awaits(&message.header));
        let Some(error) = error else {
            return false;
        };
        if self.is_leaving() {
            return error == NotifyType::INVALID_IKE_SPI && self.is_deleting();
        }
        if self.contact.ours && self.heeds_from <= turn.ctx.now {
            self.heeds_from = turn.ctx.now + self.hint_pause;
            self.hint_pause = (self.hint_pause * 2).min(LAST_HINT_PAUSE);
            self.is_doubtful = true;
            turn.ctx
                .refused(Some(turn.core.name()), Refusal::Unproved(error));
            // As if a re-authentication were due, once.
            self.proof.renew_at = Some(turn.ctx.now);
        }
        false
    }

    /// Evaluates the answer to a request of ours. Tasks without a case of their own only show that
    /// the peer is alive.
    fn conclude(
        mut self: Box<Self>,
        task: Option<Task>,
        response: &Message,
        path: Path,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let follows_up = |task: &Task| task.exchange() == ExchangeType::IKE_FOLLOWUP_KE;
        if task.as_ref().is_some_and(follows_up)
            && let Err(why) = self.note_forgotten(response)
        {
            return self.close(why, turn);
        }
        let informs = |task: &Task| task.exchange() == ExchangeType::INFORMATIONAL;
        if let Some(notify) = first_error(response)
            && task.as_ref().is_some_and(informs)
            && !matches!(task, Some(Task::Move(_)))
        {
            turn.ctx.refused(
                Some(turn.core.name()),
                Refusal::InformationRefused { notify },
            );
        }
        let concluded = match task {
            Some(Task::RekeyIke(rekey)) => {
                return self.conclude_rekey_ike(*rekey, response, turn);
            }
            Some(Task::FollowUp(follow_up)) => {
                return self.conclude_follow_up(*follow_up, response, turn);
            }
            Some(Task::RekeyChild(rekey)) => self.conclude_rekey_child(*rekey, response, turn),
            Some(Task::NewChild(new)) => {
                self.conclude_new_child(*new, response, turn);
                Ok(())
            }
            Some(Task::DeleteChild(child, _)) => {
                self.children.keep_for_stragglers(child, turn.ctx);
                match child.is_some() && self.children.is_over() {
                    true => Err(DownReason::ClosedHere),
                    false => Ok(()),
                }
            }
            Some(Task::Distribute(grant)) => {
                task::conclude_grant(&grant, response, turn);
                Ok(())
            }
            Some(Task::RequestKeys(token)) => {
                Self::conclude_request(*token, response, turn);
                Ok(())
            }
            Some(Task::Move(moved)) => self.conclude_move(&moved, response, turn),
            Some(Task::Question(cookie)) => {
                self.conclude_question(&cookie, response, turn);
                Ok(())
            }
            Some(Task::Liveness | Task::Doubt | Task::Whereabouts) => {
                self.note_seen(response, path, turn.core);
                Ok(())
            }
            Some(Task::Leave) => return self.left(turn.ctx),
            Some(Task::Revoke(_) | Task::Neighbours(_) | Task::Redirect(_) | Task::Window(_))
            | None => Ok(()),
        };
        match concluded {
            Err(why) => self.close(why, turn),
            Ok(()) => {
                self.send_next(turn);
                State::Established(self)
            }
        }
    }

    fn handle_request(
        mut self: Box<Self>,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let Some(request) = turn
            .core
            .accept_request(&mut self.keys.cipher, arrived, turn.ctx)
        else {
            return State::Established(self);
        };
        self.heard = turn.ctx.now;
        turn.core.lost = false;
        self.unsure
            .resolve(&turn.core.responses, self.heard, turn.ctx);
        self.follow(arrived, turn);
        match request {
            Ok(mut request) => {
                if !self.private {
                    request.forget_private();
                }
                self.handle_genuine(&request, arrived, turn)
            }
            Err(Complaint { why, notify }) => {
                // INVALID_SYNTAX "is considered fatal in both peers" (RFC 7296 section 2.21.3).
                let fatal = notify.kind == NotifyType::INVALID_SYNTAX;
                self.respond(vec![Payload::Notify(notify)], arrived, turn);
                match fatal {
                    true => self.end(DownReason::Misbehaved(why), turn),
                    false => State::Established(self),
                }
            }
        }
    }

    fn handle_genuine(
        mut self: Box<Self>,
        request: &Message,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        match request.header.exchange {
            ExchangeType::INFORMATIONAL => self.handle_informational(request, arrived, turn),
            ExchangeType::KEY_DISTRIBUTE if self.private => {
                if let Err(code) = self.accept_grant(request, arrived, turn) {
                    let (csa, grant) = distribute::name(request);
                    let answer = distribute::reply(csa, grant, Some(code));
                    self.respond(vec![answer], arrived, turn);
                }
                State::Established(self)
            }
            ExchangeType::KEY_REQUEST if self.private => {
                if let Err(code) = self.accept_key_request(request, arrived, turn) {
                    self.respond(migration::answer(&Err(code)), arrived, turn);
                }
                State::Established(self)
            }
            ExchangeType::CREATE_CHILD_SA => self.handle_create_child(request, arrived, turn),
            ExchangeType::IKE_FOLLOWUP_KE => self.answer_follow_up(request, arrived, turn),
            // An initial exchange again, or a private one without the vendor ID: genuine, but
            // "invalid because some type, length, or value was out of range".
            _ => {
                let answer = notify(NotifyType::INVALID_SYNTAX, Vec::new());
                self.respond(vec![answer], arrived, turn);
                let why = PeerMisbehaved::UnexpectedExchange;
                self.end(DownReason::Misbehaved(why), turn)
            }
        }
    }

    fn handle_create_child(
        mut self: Box<Self>,
        request: &Message,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        if self.is_leaving() {
            let later = vec![notify(NotifyType::TEMPORARY_FAILURE, Vec::new())];
            self.respond(later, arrived, turn);
            return State::Established(self);
        }
        let answer = match Renewal::read(request).map(|renewal| renewal.wish(request)) {
            Some(Wish::Ike) if clone::is_asked_for(request) => {
                return self.answer_clone(request, arrived, turn);
            }
            Some(Wish::Ike) => return self.answer_rekey_ike(request, arrived, turn),
            Some(Wish::Child(spi)) => self.answer_rekey_child(spi, request, turn),
            Some(Wish::Another) | None => self.answer_new_child(request, turn),
        };
        self.answer_renewal(answer, arrived, turn)
    }

    /// Answers CREATE_CHILD_SA. A request that lacks payloads is as fatal as one that cannot be
    /// parsed: "this error notification is considered fatal in both peers, meaning that the IKE SA
    /// is deleted without needing an explicit Delete payload" (RFC 7296 section 2.21.3).
    pub(super) fn answer_renewal(
        mut self: Box<Self>,
        answer: Vec<Payload>,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> State {
        let fatal = answer.contains(&notify(NotifyType::INVALID_SYNTAX, Vec::new()));
        self.respond(answer, arrived, turn);
        match fatal {
            true => {
                let why = PeerMisbehaved::WrongPayloads;
                self.end(DownReason::Misbehaved(why), turn)
            }
            false => State::Established(self),
        }
    }

    /// Deletes a replaced child SA whose drain time is over, or a child SA that is no longer
    /// wanted.
    pub(super) fn delete_child(&mut self, id: ChildSaId, turn: &mut Turn<'_, '_>) {
        if let Some(inbound) = self.children.get_mut(id).map(|child| child.inbound) {
            self.ask(Task::DeleteChild(Some(id), inbound), turn);
        }
    }

    /// Ends the SA for both ends. Our last response is kept for a while.
    pub(super) fn end(mut self: Box<Self>, why: DownReason, turn: &mut Turn<'_, '_>) -> State {
        self.note_in_vain(&why, turn);
        self.drop_children(&why, turn.ctx);
        turn.core.announce_down(why, turn.ctx);
        turn.core.requests.abandon();
        State::Lingering(Lingering::until(
            turn.ctx.now + turn.ctx.config.timers.linger,
        ))
    }

    fn drop_children(&mut self, why: &DownReason, ctx: &mut Context<'_>) {
        for child in self.children.drain() {
            let (child, why) = (child.id, Some(why.clone()));
            ctx.event(Event::ChildDown { child, why });
        }
    }

    pub(super) fn respond(
        &mut self,
        payloads: Vec<Payload>,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) {
        turn.core
            .respond(&mut self.keys.cipher, arrived, payloads, turn.ctx);
    }

    /// Returns true if a queued task is no longer necessary.
    fn is_moot(&self, task: &Task) -> bool {
        match task {
            Task::NewChild(new) => {
                let name = new.name.as_deref();
                let full = self.upkeep.is_full && resource::is_additional(name);
                full || self.children.current(name).is_some() || self.is_opening(name)
            }
            Task::RekeyChild(rekey) => {
                let old = self.children.get(rekey.old);
                let opening = old.is_some_and(|old| self.is_opening(old.name.as_deref()));
                opening || !self.children.is_current(rekey.old)
            }
            Task::DeleteChild(Some(child), _) => !self.children.is_deleting(*child),
            _ => false,
        }
    }

    pub(crate) fn send_next(&mut self, turn: &mut Turn<'_, '_>) {
        if turn.core.requests.is_idle()
            && let Some(task) = self.next_move(turn).or_else(|| self.next_question(turn))
        {
            self.send(task, turn);
        }
        while turn.core.requests.has_room()
            && !(self.is_to_move() || self.is_to_follow())
            && let Some(task) = self.queue.pop()
        {
            if !self.is_moot(&task) {
                self.send(task, turn);
            }
        }
    }

    pub(super) fn send(&mut self, task: Task, turn: &mut Turn<'_, '_>) {
        let timers = &turn.ctx.config.timers;
        let allowed = match (&task, self.is_patient()) {
            (Task::Question(_), _) if self.is_led_by_packets() => Duration::MAX,
            (task, true) => task.allowed(timers).max(timers.give_up_patient),
            (task, false) => task.allowed(timers),
        };
        let payloads = match &task {
            Task::Liveness | Task::Doubt | Task::Whereabouts => self.liveness_payloads(turn),
            Task::Question(_) => {
                let hashes = self.question_payloads(turn);
                [task.payloads(), hashes].concat()
            }
            task => task.payloads(),
        };
        let path = self.path_for(&task, turn.core);
        let id = turn.core.request_on(
            path,
            &mut self.keys.cipher,
            task.exchange(),
            payloads,
            allowed,
            turn.ctx,
        );
        self.note_sent(turn.core);
        self.queue.run(id, task);
    }
}

#[cfg(test)]
impl crate::Engine {
    /// Treats all peers as if they had not sent our vendor ID.
    pub(crate) fn forget_vendor(&mut self) {
        for sa in self.sas.values_mut() {
            match &mut sa.state {
                State::Established(up) => up.private = false,
                State::AwaitAuth(state) => state.private = false,
                _ => {}
            }
        }
    }
}
