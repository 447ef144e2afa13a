//! Which packets are lost, and sending them again.
//!
//! One rule finds losses, for SACK and without: **a packet is lost if one that was sent later over
//! the wireless hop has arrived and it has not**. It holds because the hop is a queue. Every
//! transmission has a number; [`Flow::arrived`] is the highest one known to have arrived:
//!
//! * An acknowledgement that advances, or a SACK block, says that certain packets arrived, so the
//!   earliest transmission of each that can have done it did.
//! * Without SACK the k-th duplicate acknowledgement says that k packets behind the hole arrived;
//!   at the least these are the k that were sent right after it. This is the original's count of
//!   expected duplicate acknowledgements: those that the packets sent before the retransmission
//!   cause do not raise the mark above it, the first one beyond them does, and then the
//!   retransmission was lost too.
//!
//! So a lost retransmission, several losses in one window and a partial acknowledgement need no
//! rules of their own, and nothing is sent again without proof, except by the timers.

use crate::Side;
use crate::cache::Entry;
use crate::flow::{Context, Flow, Reaches};

/// Why a packet is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// One sent later has arrived.
    Lost,
    /// Nothing was heard for a retransmission timeout.
    Timeout,
    /// Nothing was heard for the persist time.
    Persist,
}

impl Flow {
    /// Sends again what is lost. Without SACK nothing is known about packets behind the hole.
    pub(crate) fn repair(&mut self, ctx: &mut Context<'_>) {
        let (arrived, acked, sack) = (self.arrived, self.acked, self.sack);
        let is_lost = |entry: &Entry| {
            !entry.sacked && entry.last < arrived && (sack || !entry.seq.is_after(acked))
        };
        self.retransmit(Cause::Lost, ctx.config.burst, is_lost, ctx);
    }

    /// Sends again the first `most` entries that `which` picks and that may be sent.
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

/// Whether a packet can still be repaired without the sender: not one that the sender itself sent
/// again, with attempts left or the last one on its way, and within reach.
pub(crate) fn is_ours(entry: &Entry, attempts: u8, reaches: &Reaches) -> bool {
    !entry.from_sender && entry.attempts < attempts && reaches.allow(Side::Wired, entry.esp_seq)
}
