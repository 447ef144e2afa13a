//! The end of an IKE SA: waiting for the answer to our Delete, or keeping only the last answers.

use super::arrived::{Arrived, Genuine};
use super::protected;
use super::turn::{Context, Turn};
use crate::counters::DropReason;
use crate::down_reason::DownReason;
use crate::event::Event;
use crate::exchange::notify;
use crate::extension::delete;
use crate::keys::ProvedKeys;
use crate::session::children::Children;
use crate::window::Arrival;
use model::{Deadline, Instant};
use std::time::Duration;
use wire::ike::{ExchangeType, NotifyType};

/// The last states of an IKE SA.
pub(crate) enum Ending {
    Closing(Box<Closing>),
    Retired(Box<Retired>),
    Lingering(Lingering),
    Gone,
}

impl Ending {
    /// Reports that the SA is down, and ends it.
    pub(crate) fn gone(why: DownReason, turn: &mut Turn<'_, '_>) -> Self {
        turn.announce_down(why);
        Self::Gone
    }

    pub(crate) fn handle(self, arrived: &Arrived<'_>, turn: &mut Turn<'_, '_>) -> Self {
        match self {
            Self::Closing(state) => state.handle(arrived, turn),
            Self::Retired(state) => state.handle(arrived, turn),
            Self::Lingering(_) | Self::Gone => self,
        }
    }

    /// Ends a state whose time is over. `gave_up`: the peer does not answer.
    pub(crate) fn handle_timeout(self, gave_up: bool, turn: &mut Turn<'_, '_>) -> Self {
        match self {
            // The peer finds out on its own.
            Self::Closing(_) if gave_up => Self::Gone,
            Self::Retired(state) => state.handle_timeout(turn),
            Self::Lingering(state) => state.handle_timeout(turn),
            Self::Closing(_) | Self::Gone => self,
        }
    }

    pub(crate) fn deadline(&self) -> Option<Deadline> {
        match self {
            Self::Retired(state) => Some(state.deadline()),
            Self::Lingering(state) => Some(state.deadline()),
            Self::Closing(_) | Self::Gone => None,
        }
    }

    /// Returns true if nothing is left of the SA but its last answers, or its Delete.
    pub(crate) const fn has_ended(&self) -> bool {
        match self {
            Self::Closing(_) | Self::Retired(_) => true,
            Self::Lingering(state) => state.is_childless(),
            Self::Gone => false,
        }
    }
}

/// An SA that is being deleted: the Delete is sent as soon as the window allows. The SA is gone
/// when the Delete is answered, or given up.
pub(crate) struct Closing {
    pub(crate) keys: ProvedKeys,
    delete_sent: bool,
    /// Time after which the Delete is given up.
    allowed: Duration,
}

impl Closing {
    /// Closes an SA, which is down from now on. The caller need not wait for the peer, which may be
    /// unreachable.
    pub(crate) fn begin(keys: ProvedKeys, why: DownReason, turn: &mut Turn<'_, '_>) -> Ending {
        turn.announce_down(why);
        Self::quietly(keys, turn)
    }

    /// Closes an SA that was refused before it was up. Outstanding requests, for which the Delete
    /// waits, get as much time as a liveness check.
    pub(crate) fn quietly(keys: ProvedKeys, turn: &mut Turn<'_, '_>) -> Ending {
        let timers = &turn.ctx.config.timers;
        turn.core.requests.hurry(timers.give_up_check, turn.ctx.now);
        Self::within(timers.give_up_closing, keys, turn)
    }

    /// Closes an SA that another one has replaced, or that lost a simultaneous rekey. The peer is
    /// alive, expects our Delete, and may not be ready for it yet: strongSwan knows an SA that lost
    /// a race only once its own request is answered.
    pub(crate) fn replaced(keys: ProvedKeys, turn: &mut Turn<'_, '_>) -> Ending {
        Self::within(turn.ctx.config.timers.give_up, keys, turn)
    }

    fn within(allowed: Duration, keys: ProvedKeys, turn: &mut Turn<'_, '_>) -> Ending {
        let mut state = Box::new(Self {
            keys,
            delete_sent: false,
            allowed,
        });
        state.send_delete(turn);
        Ending::Closing(state)
    }

    pub(crate) fn handle(
        mut self: Box<Self>,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> Ending {
        if !arrived.datagram.header().flags.response {
            self.answer(arrived, turn);
            return Ending::Closing(self);
        }
        let answered = protected::accept_response(turn, &self.keys.cipher, arrived).is_some();
        match (answered, self.delete_sent) {
            (true, true) => Ending::Gone,
            (true, false) => {
                self.send_delete(turn);
                Ending::Closing(self)
            }
            (false, _) => Ending::Closing(self),
        }
    }

    /// Answers requests. If the peer is closing too, its Delete is answered like any INFORMATIONAL
    /// request.
    fn answer(&mut self, arrived: &Arrived<'_>, turn: &mut Turn<'_, '_>) {
        if let Some(request) = protected::accept_request(turn, &mut self.keys.cipher, arrived) {
            answer_late(request, &mut self.keys, arrived, turn);
        }
    }

    fn send_delete(&mut self, turn: &mut Turn<'_, '_>) {
        if turn.core.requests.is_idle() {
            let (exchange, payloads) = (ExchangeType::INFORMATIONAL, vec![delete::ike_sa()]);
            protected::request(
                turn,
                &mut self.keys.cipher,
                exchange,
                payloads,
                self.allowed,
            );
            self.delete_sent = true;
        }
    }
}

/// An SA that the peer will delete, because the peer has rekeyed it or was redirected. Until then
/// it answers late messages: retransmissions of the request for the successor, in case our answer
/// was lost, and requests that crossed that answer.
pub(crate) struct Retired {
    pub(crate) keys: ProvedKeys,
    until: Instant,
}

impl Retired {
    pub(crate) fn begin(keys: ProvedKeys, ctx: &Context<'_>) -> Ending {
        let until = ctx.now + ctx.config.timers.linger;
        Ending::Retired(Box::new(Self { keys, until }))
    }

    pub(crate) fn handle(
        mut self: Box<Self>,
        arrived: &Arrived<'_>,
        turn: &mut Turn<'_, '_>,
    ) -> Ending {
        if arrived.datagram.header().flags.response {
            turn.ctx.drop(DropReason::MessageId);
            return Ending::Retired(self);
        }
        let Some(request) = protected::accept_request(turn, &mut self.keys.cipher, arrived) else {
            return Ending::Retired(self);
        };
        let closed = request.as_ref().is_ok_and(delete::closes_ike_sa);
        answer_late(request, &mut self.keys, arrived, turn);
        match closed {
            true => Ending::Lingering(Lingering::until(self.until)),
            false => Ending::Retired(self),
        }
    }

    /// Deletes the SA if the peer does not.
    pub(crate) fn handle_timeout(self: Box<Self>, turn: &mut Turn<'_, '_>) -> Ending {
        match self.until <= turn.ctx.now {
            true => Closing::quietly(self.keys, turn),
            false => Ending::Retired(self),
        }
    }

    pub(crate) const fn deadline(&self) -> Deadline {
        Deadline {
            at: self.until,
            reason: "the peer has not deleted an IKE SA",
        }
    }
}

/// Answers a request on an SA that is ending. Anything but an INFORMATIONAL request is too late
/// (RFC 7296 section 2.25.2).
fn answer_late(
    request: Genuine,
    keys: &mut ProvedKeys,
    arrived: &Arrived<'_>,
    turn: &mut Turn<'_, '_>,
) {
    let payloads = match request {
        Ok(request) if request.header.exchange == ExchangeType::INFORMATIONAL => Vec::new(),
        _ => vec![notify(NotifyType::TEMPORARY_FAILURE, Vec::new())],
    };
    protected::respond(turn, &mut keys.cipher, arrived, payloads);
}

/// An SA that is gone, while its last answers are kept: one of them may have been lost, and the
/// peer then retransmits its request. The keys are dropped.
pub(crate) struct Lingering {
    until: Instant,
    /// Child SAs of an SA that another one has replaced. Packets in flight are received until this
    /// time. Only then is the SA down.
    children: Option<(Children, Instant)>,
}

impl Lingering {
    pub(crate) const fn until(until: Instant) -> Self {
        let children = None;
        Self { until, children }
    }

    /// Creates the state for an SA that another one has replaced.
    pub(crate) fn replaced(children: Children, ctx: &Context<'_>) -> Self {
        let timers = &ctx.config.timers;
        Self {
            until: ctx.now + timers.linger,
            children: Some((children, ctx.now + timers.stragglers)),
        }
    }

    /// Returns true if the SA has no child SAs left.
    pub(crate) const fn is_childless(&self) -> bool {
        self.children.is_none()
    }

    /// Answers a retransmitted request again. Anything else is too late.
    pub(crate) fn answer(arrived: &Arrived<'_>, turn: &mut Turn<'_, '_>) {
        let header = arrived.datagram.header();
        let (id, from) = (header.message_id, arrived.path.remote);
        let arrival = match header.flags.response {
            true => Arrival::Unexpected,
            false => turn
                .core
                .responses
                .arrival(id, arrived.octets, from, turn.ctx.now),
        };
        match arrival {
            Arrival::New | Arrival::Unexpected => turn.ctx.drop(DropReason::UnknownSa),
            again => turn.ctx.answer_again(again, arrived.path),
        }
    }

    pub(crate) fn handle_timeout(mut self, turn: &mut Turn<'_, '_>) -> Ending {
        if let Some((mut children, _)) = self.children.take_if(|(_, until)| *until <= turn.ctx.now)
        {
            for child in children.drain() {
                let (child, why) = (child.id, Some(DownReason::Replaced));
                turn.ctx.event(Event::ChildDown { child, why });
            }
            turn.announce_down(DownReason::Replaced);
        }
        match self.until <= turn.ctx.now {
            true => Ending::Gone,
            false => Ending::Lingering(self),
        }
    }

    pub(crate) fn deadline(&self) -> Deadline {
        let stragglers = self.children.as_ref().map(|(_, until)| *until);
        Deadline {
            at: stragglers.unwrap_or(self.until),
            reason: "forget a closed IKE SA",
        }
    }
}
