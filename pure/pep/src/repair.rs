//! Loss detection and retransmission.
//!
//! One rule finds losses, with SACK and without: **a packet is lost if one that was sent later over
//! the wireless hop has arrived and it has not**. It holds because the hop is a queue. Every
//! transmission has a number; [`Flow::arrived`] is the highest one known to have arrived:
//!
//! * An acknowledgement that advances, or a SACK block, shows that certain packets arrived. So for
//!   each of them the earliest transmission that can account for it has arrived.
//! * Without SACK the k-th duplicate acknowledgement shows that k packets behind the hole arrived;
//!   at the least these are the k sent right after it. This is the original's count of expected
//!   duplicate acknowledgements. Duplicates caused by packets sent before the retransmission do not
//!   raise the mark above it. The first duplicate beyond them does, and then the retransmission was
//!   lost too.
//!
//! A lost retransmission, several losses in one window and a partial acknowledgement therefore need
//! no rules of their own. Only the timers retransmit without proof of a loss.

use crate::Side;
use crate::cache::Entry;
use crate::flow::{Context, Flow, Reaches};

/// Cause of a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A packet sent later has arrived.
    Lost,
    /// No progress for a retransmission timeout.
    Timeout,
    /// No packet for the persist time.
    Persist,
}

impl Flow {
    /// Retransmits lost packets. Without SACK the state of packets behind the hole is unknown.
    pub(crate) fn repair(&mut self, ctx: &mut Context<'_>) {
        let (arrived, acked, sack) = (self.arrived, self.acked, self.sack);
        let is_lost = |entry: &Entry| {
            !entry.sacked && entry.last < arrived && (sack || !entry.seq.is_after(acked))
        };
        self.retransmit(Cause::Lost, ctx.config.burst, is_lost, ctx);
    }

    /// Retransmits the first `most` entries that `which` selects and that may still be sent.
    pub(crate) fn retransmit(
        &mut self,
        cause: Cause,
        most: usize,
        which: impl Fn(&Entry) -> bool,
        ctx: &mut Context<'_>,
    ) {
        let mut left = most;
        for entry in self.cache.iter_mut().filter(|entry| which(entry)) {
            if left == 0 {
                break;
            }
            if entry.attempts >= ctx.config.attempts {
                ctx.counters.given_up += 1;
                continue;
            }
            if !ctx.reaches.allow(Side::Wired, entry.esp_seq) {
                ctx.counters.too_old += 1;
                entry.attempts = ctx.config.attempts;
                continue;
            }
            left -= 1;
            self.transmissions.0 += 1;
            entry.last = self.transmissions;
            entry.sent = ctx.now;
            entry.sacked = false;
            entry.attempts += 1;
            match cause {
                Cause::Lost => entry.surely = entry.last,
                Cause::Timeout | Cause::Persist => entry.guesses = entry.guesses.saturating_add(1),
            }
            self.retransmitted += 1;
            *match cause {
                Cause::Lost => &mut ctx.counters.retransmitted_lost,
                Cause::Timeout => &mut ctx.counters.retransmitted_timeout,
                Cause::Persist => &mut ctx.counters.retransmitted_persist,
            } += 1;
            ctx.outbox.push_back((Side::Wireless, entry.sealed.clone()));
        }
    }
}

/// Returns true if the proxy can still repair a packet without the sender: the sender has not
/// retransmitted it, it has attempts left, and it is within reach of the replay window.
pub(crate) fn is_ours(entry: &Entry, attempts: u8, reaches: &Reaches) -> bool {
    !entry.from_sender && entry.attempts < attempts && reaches.allow(Side::Wired, entry.esp_seq)
}
