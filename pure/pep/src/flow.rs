//! State of one connection, with the rule for data and the timers.
//!
//! [`crate::acknowledgement`] handles acknowledgements, [`crate::repair`] retransmissions.

use crate::acknowledgement::Marks;
use crate::cache::{Cache, Entry, Order, Place};
use crate::repair::Cause;
use crate::rtt::Rtt;
use crate::{Config, Counters, Position, Side, State};
use model::{CsaId, Deadline, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::time::Duration;
use wire::tcp::Seq;

/// The widest window TCP can have (RFC 7323 section 2.3), in octets. A segment further from the
/// last acknowledgement belongs to no live connection and would break the order of numbers.
const WIDEST_WINDOW: i32 = 1 << 30;

/// New segments without an acknowledgement after which the acknowledgements are taken to use
/// another path.
const DEAF_SEGMENTS: u32 = 16;

/// Upper limit for the count of expected echoes: duplicate acknowledgements that need not mean a
/// loss.
const MOST_ECHOES: u32 = 64;

/// The proxy's shared state, which a rule uses in addition to its connection.
pub(crate) struct Context<'a> {
    pub(crate) config: &'a Config,
    /// Limits on retransmission by replay window.
    pub(crate) reaches: &'a Reaches,
    pub(crate) counters: &'a mut Counters,
    pub(crate) outbox: &'a mut VecDeque<(Side, Vec<u8>)>,
    pub(crate) now: Instant,
}

/// An ESP sequence number, in the space of one composite SA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EspSeq {
    csa: CsaId,
    number: u64,
}

impl EspSeq {
    /// Returns the range of all numbers of a composite SA.
    pub(crate) const fn all(csa: CsaId) -> RangeInclusive<Self> {
        let (first, last) = (0, u64::MAX);
        Self { csa, number: first }..=Self { csa, number: last }
    }

    pub(crate) fn new(position: Position) -> Self {
        Self {
            csa: position.csa,
            number: position.seq,
        }
    }
}

/// How far back a packet may be retransmitted in each ESP sequence space, by the side it came from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reaches(BTreeMap<(CsaId, Side), Reach>);

/// The state of one direction of one composite SA.
#[derive(Clone, Copy, Debug, Default)]
struct Reach {
    /// The highest sequence number seen.
    highest: u64,
    /// The endpoint's replay window, in packets.
    window: u32,
}

impl Reaches {
    /// Records the highest number of a direction, for all connections in the SA.
    pub(crate) fn note(&mut self, from: Side, position: Position) {
        let reach = self.0.entry((position.csa, from)).or_default();
        reach.highest = reach.highest.max(position.highest).max(position.seq);
        reach.window = position.window;
    }

    /// Forgets a composite SA that has ended: none of its packets may be retransmitted.
    pub(crate) fn forget(&mut self, csa: CsaId) {
        self.0.retain(|(of, _), _| *of != csa);
    }

    /// Returns true if a packet is less than half the endpoint's window behind (DESIGN section 7).
    /// The other half is left for packets that the node has not seen yet and for those in the
    /// queue. TCP in clear is always allowed.
    pub(crate) fn allow(&self, from: Side, esp_seq: Option<EspSeq>) -> bool {
        esp_seq.is_none_or(|esp_seq| self.is_within(2, from, esp_seq))
    }

    /// Returns true within half of that limit, which leaves a margin because numbers advance in
    /// leaps.
    pub(crate) fn allow_for_long(&self, from: Side, esp_seq: EspSeq) -> bool {
        self.is_within(4, from, esp_seq)
    }

    fn is_within(&self, share: u32, from: Side, EspSeq { csa, number }: EspSeq) -> bool {
        let reach = self.0.get(&(csa, from)).copied().unwrap_or_default();
        reach.highest.saturating_sub(number) < u64::from(reach.window / share)
    }
}

/// A data segment from the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data<'a> {
    pub(crate) seq: Seq,
    pub(crate) end: Seq,
    pub(crate) fin: bool,
    pub(crate) sealed: &'a [u8],
    pub(crate) esp_seq: Option<EspSeq>,
}

/// An acknowledgement that is held for a while.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) sealed: Vec<u8>,
    pub(crate) esp_seq: Option<EspSeq>,
    pub(crate) until: Instant,
}

/// One connection, in the direction from a wired sender to a wireless receiver.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) cache: Cache,
    pub(crate) rtt: Rtt,
    /// The highest acknowledgement seen; before the first one, the start of the data.
    pub(crate) acked: Seq,
    /// Sequence number after the highest octet that the sender sent.
    pub(crate) highest: Seq,
    /// The window of the last acknowledgement.
    pub(crate) window: Option<u16>,
    /// The congestion marks of the last forwarded acknowledgement.
    pub(crate) marks: Marks,
    /// The number of the last transmission over the wireless hop.
    pub(crate) transmissions: Order,
    /// The highest transmission known to have arrived.
    pub(crate) arrived: Order,
    /// True if the receiver uses SACK. Duplicate acknowledgements without blocks then mean no loss.
    pub(crate) sack: bool,
    /// Duplicate acknowledgements expected because the receiver gets surplus copies, until
    /// `echoes_until`.
    pub(crate) echoes: u32,
    pub(crate) echoes_until: Instant,
    /// True if the sender repeats acknowledged data, so that it has to see the next
    /// acknowledgement.
    pub(crate) sender_behind: bool,
    /// The held acknowledgement.
    pub(crate) held: Option<Held>,
    /// Time of the last sign that packets arrive.
    pub(crate) progress: Instant,
    pub(crate) retransmitted: u64,
    pub(crate) suppressed: u64,
    /// New segments since the last acknowledgement, which came at `heard`.
    unheard: u32,
    heard: Instant,
    /// True if the acknowledgements take another path. Nothing is cached until one comes this way.
    deaf: bool,
    /// Sequence number after the sender's FIN.
    closing: Option<Seq>,
    last_used: Instant,
    /// True if the persist time has expired since the last packet.
    persisted: bool,
}

impl Flow {
    /// Returns a connection whose first data was seen at `seq`.
    pub(crate) fn new(seq: Seq, now: Instant) -> Self {
        Self {
            cache: Cache::default(),
            rtt: Rtt::default(),
            acked: seq,
            highest: seq,
            window: None,
            marks: Marks::default(),
            transmissions: Order::default(),
            arrived: Order::default(),
            sack: false,
            echoes: 0,
            echoes_until: now,
            sender_behind: false,
            held: None,
            progress: now,
            retransmitted: 0,
            suppressed: 0,
            unheard: 0,
            heard: now,
            deaf: false,
            closing: None,
            last_used: now,
            persisted: false,
        }
    }

    /// Handles a data segment on its way to the receiver, which is forwarded in any case. `room` is
    /// the number of octets that all connections together may still cache.
    pub(crate) fn handle_data(&mut self, data: &Data<'_>, room: usize, ctx: &mut Context<'_>) {
        if !self.is_near(data) {
            ctx.counters.out_of_window += 1;
            return;
        }
        self.touch(ctx.now);
        let is_new = data.end.is_after(self.highest);
        let in_order = !data.seq.is_before(self.highest);
        self.highest = self.highest.later(data.end);
        self.transmissions.0 += 1;
        if data.fin {
            self.closing = Some(data.end);
        }
        if !data.end.is_after(self.acked) {
            ctx.counters.already_acknowledged += 1;
            ctx.counters.sender_retransmissions += 1;
            self.sender_behind = true;
            self.expect_echoes(1, ctx);
            return;
        }
        if self.is_deaf(is_new, data, ctx) {
            ctx.counters.acks_elsewhere += 1;
            return;
        }
        match self.cache.place(data.seq, data.end) {
            Place::Same(index) => self.take_again(index, data, ctx),
            Place::Overlap(index) => {
                ctx.counters.sender_retransmissions += 1;
                for entry in self.cache.overlapping(index, data.end) {
                    entry.from_sender = true;
                }
            }
            Place::Free(index) => {
                let full = self.cache.len() >= ctx.config.packets_per_flow;
                if full || data.sealed.len() > room {
                    ctx.counters.cache_full += 1;
                    return;
                }
                let mut entry =
                    Entry::new(data.seq, data.end, data.sealed, self.transmissions, ctx.now);
                entry.esp_seq = data.esp_seq;
                // Neither cached nor new: the segment was lost before this node or overtaken.
                entry.from_sender = !in_order;
                ctx.counters.sender_retransmissions += u64::from(!in_order);
                ctx.counters.cached += 1;
                self.cache.insert(index, entry);
            }
        }
    }

    /// Returns true if the connection is over: the receiver has acknowledged the sender's FIN.
    pub(crate) fn is_over(&self) -> bool {
        self.closing.is_some_and(|fin| !fin.is_after(self.acked))
    }

    /// Returns true if the garbage time has passed.
    pub(crate) fn is_garbage(&self, config: &Config, now: Instant) -> bool {
        now.since(self.last_used) >= config.garbage
    }

    /// Returns the time of the connection's last packet.
    pub(crate) fn last_used(&self) -> Instant {
        self.last_used
    }

    /// Returns the ESP sequence number of the held acknowledgement, if it is sealed.
    pub(crate) fn held_at(&self) -> Option<EspSeq> {
        self.held.as_ref()?.esp_seq
    }

    /// Records a packet of the connection.
    pub(crate) fn touch(&mut self, now: Instant) {
        self.last_used = now;
        self.persisted = false;
    }

    /// Records an acknowledgement, which shows that acknowledgements come this way.
    pub(crate) fn hear(&mut self, now: Instant) {
        self.touch(now);
        (self.unheard, self.heard, self.deaf) = (0, now, false);
    }

    /// Expects duplicate acknowledgements for surplus copies; these mean no loss.
    pub(crate) fn expect_echoes(&mut self, copies: u32, ctx: &Context<'_>) {
        self.echoes = self.echoes.saturating_add(copies).min(MOST_ECHOES);
        self.echoes_until = ctx.now + ctx.config.persist;
    }

    /// Returns the next time to call [`Flow::handle_timeout`], and the reason.
    pub(crate) fn deadline(&self, config: &Config) -> Deadline {
        let garbage = (self.last_used + config.garbage, "forget an idle connection");
        let retransmission = self
            .retransmission_due(config)
            .map(|at| (at, "retransmit over the wireless hop"));
        let persist = self
            .persist_due(config)
            .map(|at| (at, "retransmit after silence"));
        let held = self
            .held
            .as_ref()
            .map(|held| (held.until, "release an acknowledgement"));
        let (at, reason) = [retransmission, persist, held]
            .into_iter()
            .flatten()
            .fold(garbage, Ord::min);
        Deadline { at, reason }
    }

    /// Runs the timers that are due, except the one that forgets the connection.
    pub(crate) fn handle_timeout(&mut self, ctx: &mut Context<'_>) {
        if self.held.as_ref().is_some_and(|held| held.until <= ctx.now) {
            self.release(ctx.reaches, ctx.counters, ctx.outbox);
        }
        if self.persist_due(ctx.config).is_some_and(|at| at <= ctx.now) {
            self.persisted = true;
            self.repeat_everything(ctx);
        }
        if self
            .retransmission_due(ctx.config)
            .is_some_and(|at| at <= ctx.now)
        {
            self.rtt.back_off();
            self.progress = ctx.now;
            self.repeat_oldest(ctx);
        }
    }

    /// Returns the state to display.
    pub(crate) fn state(&self) -> State {
        if self.deaf {
            State::AcksElsewhere
        } else if self.closing.is_some() {
            State::Closing
        } else if self
            .cache
            .oldest()
            .is_some_and(|oldest| oldest.attempts > 0)
        {
            State::Repairing
        } else {
            State::Open
        }
    }

    /// Returns the time after which the oldest cached packet is retransmitted on suspicion.
    pub(crate) fn rto(&self, config: &Config) -> Duration {
        self.rtt.timeout(config)
    }

    fn is_near(&self, data: &Data<'_>) -> bool {
        data.seq.since(self.acked) > -WIDEST_WINDOW && data.end.since(self.acked) <= WIDEST_WINDOW
    }

    /// Handles a retransmission by the sender of a cached packet. The sender believes it lost, so
    /// the proxy no longer hides the loss from it.
    fn take_again(&mut self, index: usize, data: &Data<'_>, ctx: &mut Context<'_>) {
        ctx.counters.sender_retransmissions += 1;
        self.cache.replace(index, data.sealed, data.esp_seq);
        self.progress = ctx.now;
        for entry in self.cache.overlapping(index, data.end) {
            entry.from_sender = true;
            entry.attempts = 0;
            entry.last = self.transmissions;
            entry.sent = ctx.now;
        }
    }

    /// Returns true if the acknowledgements take another path. In an outage new data stops one
    /// round trip after the acknowledgements. If new data goes on for longer, it is being
    /// acknowledged elsewhere.
    fn is_deaf(&mut self, is_new: bool, data: &Data<'_>, ctx: &Context<'_>) -> bool {
        self.unheard = self.unheard.saturating_add(u32::from(is_new));
        let silent = ctx.now.since(self.heard) >= ctx.config.persist;
        if !self.deaf && is_new && silent && self.unheard >= DEAF_SEGMENTS {
            self.deaf = true;
            self.cache.clear();
        }
        if self.deaf {
            // No acknowledgement shows the receiver's position. Follow the data, or the numbers
            // diverge.
            self.acked = self.acked.later(data.seq);
        }
        self.deaf
    }

    /// Returns the time of the next retransmission, counted from the last progress: while
    /// acknowledgements come, the queue moves and the packets in it are not late. `None` with a
    /// closed window, because then the sender probes.
    fn retransmission_due(&self, config: &Config) -> Option<Instant> {
        let oldest = self.cache.oldest()?;
        let waiting = oldest.attempts < config.attempts && self.window != Some(0);
        let since = self.progress.max(oldest.sent);
        waiting.then(|| since + self.rto(config))
    }

    fn persist_due(&self, config: &Config) -> Option<Instant> {
        self.cache.oldest()?;
        let waiting = !self.persisted && self.window != Some(0);
        waiting.then(|| self.last_used + config.persist)
    }

    fn repeat_everything(&mut self, ctx: &mut Context<'_>) {
        self.retransmit(
            Cause::Persist,
            ctx.config.persist_burst,
            |entry| !entry.sacked,
            ctx,
        );
    }

    /// Retransmits the oldest packet only, even one that SACK reported, because the receiver may
    /// have dropped it since (RFC 2018 section 8). Its acknowledgement reveals any further losses.
    fn repeat_oldest(&mut self, ctx: &mut Context<'_>) {
        let oldest = self.cache.oldest().map(|oldest| oldest.seq);
        self.retransmit(Cause::Timeout, 1, |entry| Some(entry.seq) == oldest, ctx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_extended_are_as_far_apart_as_they_are() {
        let at = |seq| Position {
            csa: CsaId(1),
            seq,
            highest: seq,
            window: 4096,
        };
        let mut reaches = Reaches::default();
        reaches.note(Side::Wired, at((1 << 32) + 10));
        let allows = |seq| reaches.allow(Side::Wired, Some(EspSeq::new(at(seq))));
        assert!(allows((1 << 32) - 10));
        assert!(!allows(10));
    }
}
