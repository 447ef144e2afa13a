//! Handling of acknowledgements.
//!
//! | the acknowledgement | effect | verdict |
//! |---|---|---|
//! | acknowledges data that never passed here | none | forwarded |
//! | is older than the last | none | forwarded |
//! | advances | frees cache, samples RTT, shows loss | forwarded; held if repairs are on the way |
//! | repeats, and the hole is not cached | SACK is used | forwarded: the sender must repair it |
//! | has other congestion marks than the last one forwarded | SACK is used | forwarded |
//! | has payload, SYN, FIN, RST, URG or an option beyond SACK and timestamps | SACK is used | forwarded |
//! | repeats with another window | a window update (RFC 5681 section 2) | forwarded |
//! | repeats with a window of zero, or after one | answers a probe | forwarded |
//! | repeats without SACK though the receiver uses it | answers a keepalive or a duplicate (RFC 2883) | forwarded |
//! | repeats; the sender resent the hole | losses are repaired | forwarded for congestion control |
//! | repeats, as the echo of a copy | none | suppressed |
//! | repeats | losses are repaired | suppressed |
//!
//! Suppressing SACK information is safe, because it is advisory: the acknowledgement that comes
//! when the hole is filled says more. *Forwarding* it would do harm. An acknowledgement that
//! advances to the next hole still lists the segments that arrived behind that hole. A sender with
//! SACK takes this for a loss although the repair is already on its way.
//!
//! The node may read such an acknowledgement but not change it, so it holds it. A later one without
//! holes makes it superfluous. Otherwise it is sent after [`crate::Config::hold`], which is too
//! short for any sender's retransmission timer to notice. A later one with holes replaces it and
//! inherits its deadline. In downloads at 2 % loss this saves a sender with SACK two of three
//! recoveries.

use crate::flow::{Context, EspSeq, Flow, Held, Reaches};
use crate::repair::is_ours;
use crate::{Counters, Segment, Side, Verdict};
use std::collections::VecDeque;
use std::time::Duration;
use wire::tcp::{Flags, Header, OptionValue, SackBlocks, Seq};

/// An acknowledgement from the receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgement<'a> {
    number: Seq,
    window: u16,
    /// True if the segment carries nothing that must arrive: no payload, no SYN, FIN, RST or URG,
    /// no option other than SACK and timestamps, and no hidden option. DATA_ACK of MPTCP and the
    /// counters of accurate ECN are options.
    pure: bool,
    marks: Marks,
    sack: Option<SackBlocks<'a>>,
    sealed: &'a [u8],
    esp_seq: Option<EspSeq>,
}

/// Congestion marks: ECE and CWR (RFC 3168 section 6.1), and with AE the counter of accurate ECN
/// (RFC 9768 section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    echo: bool,
    reduced: bool,
    accurate: bool,
}

impl Marks {
    fn from_header(header: &Header<'_>) -> Self {
        Self {
            echo: header.flags.contains(Flags::ECE),
            reduced: header.flags.contains(Flags::CWR),
            accurate: header.accurate,
        }
    }
}

impl<'a> Acknowledgement<'a> {
    /// Returns the acknowledgement in a segment, or `None` without the ACK flag.
    pub(crate) fn read(segment: &Segment<'a>) -> Option<Self> {
        let header = &segment.header;
        let carries = Flags::SYN
            .union(Flags::FIN)
            .union(Flags::RST)
            .union(Flags::URG);
        let (mut sack, mut says_more) = (None, segment.hides);
        for option in header.options() {
            match option.map(|option| option.value) {
                Ok(OptionValue::Sack(blocks)) => sack = sack.or(Some(blocks)),
                Ok(OptionValue::Timestamps { .. }) => {}
                _ => says_more = true,
            }
        }
        let bare = segment.payload_len == 0 && !header.flags.intersects(carries);
        header.flags.contains(Flags::ACK).then_some(Self {
            number: header.ack,
            window: header.window,
            pure: bare && !says_more,
            marks: Marks::from_header(header),
            sack,
            sealed: segment.sealed,
            esp_seq: segment.position.map(EspSeq::new),
        })
    }

    /// Returns the SACK blocks above the hole. Blocks at or below the acknowledgement report
    /// duplicates (RFC 2883); blocks that are inverted or beyond the data are ignored.
    fn blocks(&self, highest: Seq) -> impl Iterator<Item = (Seq, Seq)> {
        let number = self.number;
        self.sack
            .into_iter()
            .flatten()
            .filter(move |&(left, right)| {
                left.is_before(right) && left.is_after(number) && !right.is_after(highest)
            })
    }

    /// Returns the end of the highest SACK block.
    fn edge(&self, highest: Seq) -> Option<Seq> {
        self.blocks(highest)
            .map(|(_, right)| right)
            .reduce(Seq::later)
    }
}

impl Flow {
    /// Handles an acknowledgement on its way to the sender.
    pub(crate) fn handle_ack(
        &mut self,
        ack: &Acknowledgement<'_>,
        ctx: &mut Context<'_>,
    ) -> Verdict {
        self.hear(ctx.now);
        let verdict = self.judge(ack, ctx);
        if verdict == Verdict::Forward {
            self.marks = ack.marks;
        }
        verdict
    }

    fn judge(&mut self, ack: &Acknowledgement<'_>, ctx: &mut Context<'_>) -> Verdict {
        if ack.number.is_after(self.highest) {
            ctx.counters.ack_beyond_data += 1;
            return Verdict::Forward;
        }
        if ack.number.is_before(self.acked) {
            return Verdict::Forward;
        }
        let advances = ack.number.is_after(self.acked);
        let reopens = self.window == Some(0);
        let same_window = self.window == Some(ack.window);
        self.window = Some(ack.window);
        if advances {
            self.advance(ack, ctx);
        }
        let edge = self.note_sack(ack, ctx);
        let updates = !advances && !same_window && edge.is_some();
        let says_more = !ack.pure || ack.marks != self.marks || updates;
        let verdict = if says_more || ack.window == 0 || reopens {
            self.repair(ctx);
            Verdict::Forward
        } else if advances {
            self.repair(ctx);
            self.hold_or_forward(ack, edge, ctx)
        } else if edge.is_none() && (self.sack || !same_window) {
            Verdict::Forward
        } else {
            self.handle_duplicate(edge.is_some(), ctx)
        };
        if verdict == Verdict::Forward {
            self.supersede_held(ctx);
            self.sender_behind = false;
        }
        verdict
    }

    /// Sends the held acknowledgement, or drops it if its number is too old.
    pub(crate) fn release(
        &mut self,
        reaches: &Reaches,
        counters: &mut Counters,
        outbox: &mut VecDeque<(Side, Vec<u8>)>,
    ) {
        let Some(held) = self.held.take() else { return };
        counters.held += 1;
        if reaches.allow(Side::Wireless, held.esp_seq) {
            outbox.push_back((Side::Wired, held.sealed));
        } else {
            counters.too_old += 1;
        }
    }

    /// Frees the packets that the receiver has. The RTT sample is that of the last packet freed,
    /// and only if none of them was sent twice. An acknowledgement that a repair made possible
    /// measures the repair, and so does one for a packet that waited behind the hole.
    fn advance(&mut self, ack: &Acknowledgement<'_>, ctx: &mut Context<'_>) {
        let mut sample = None;
        let mut clean = true;
        let mut copies = 0;
        while let Some(entry) = self.cache.pop_acknowledged(ack.number) {
            self.arrived = self.arrived.max(entry.surely);
            clean &= entry.sent_once() && !entry.sacked;
            sample = Some(ctx.now.since(entry.sent));
            // A sealed copy never reaches TCP: the endpoint's replay window drops it.
            if entry.esp_seq.is_none() {
                copies += u32::from(entry.guesses);
            }
        }
        if let Some(rtt) = sample.filter(|_| clean) {
            self.rtt.sample(rtt);
        }
        if copies > 0 {
            self.expect_echoes(copies, ctx);
        }
        self.acked = ack.number;
        self.progress = ctx.now;
        self.rtt.progress();
        if let Some(hole) = self.cache.hole(ack.number) {
            // The receiver asks for a packet that it reported to have, so it has dropped that
            // packet.
            hole.sacked = false;
        }
    }

    /// Marks the packets that SACK blocks report; returns the end of the last block.
    fn note_sack(&mut self, ack: &Acknowledgement<'_>, ctx: &Context<'_>) -> Option<Seq> {
        self.sack |= ack.sack.is_some();
        let edge = ack.edge(self.highest)?;
        let mut sample: Option<(crate::cache::Order, Duration)> = None;
        for (left, right) in ack.blocks(self.highest) {
            let inside = |e: &&mut crate::cache::Entry| {
                !e.sacked && !e.seq.is_before(left) && !e.end.is_after(right)
            };
            for entry in self.cache.iter_mut().filter(inside) {
                entry.sacked = true;
                self.arrived = self.arrived.max(entry.surely);
                if entry.sent_once() && sample.is_none_or(|(order, _)| order < entry.first) {
                    sample = Some((entry.first, ctx.now.since(entry.sent)));
                }
            }
        }
        if let Some((_, rtt)) = sample {
            self.rtt.sample(rtt);
        }
        Some(edge)
    }

    /// Handles a duplicate acknowledgement as RFC 5681 section 2 defines it, or one with SACK.
    fn handle_duplicate(&mut self, has_sack: bool, ctx: &mut Context<'_>) -> Verdict {
        if !has_sack && self.echoes > 0 && ctx.now < self.echoes_until {
            self.echoes -= 1;
            return self.suppress_unless(self.sender_behind, ctx);
        }
        self.progress = ctx.now;
        let acked = self.acked;
        let Some(hole) = self.cache.hole(acked) else {
            self.repair(ctx);
            ctx.counters.duplicates_forwarded += 1;
            return Verdict::Forward;
        };
        if !has_sack {
            // One more packet behind the hole arrived. All of these were sent after the hole's
            // first transmission, unless the packet of the hole itself reached this node out of
            // order.
            if !hole.from_sender {
                self.arrived = self.arrived.max(hole.first);
            }
            self.arrived.0 += 1;
        }
        self.repair(ctx);
        let (attempts, reaches) = (ctx.config.attempts, ctx.reaches);
        let ours = self
            .cache
            .hole(acked)
            .is_some_and(|hole| is_ours(hole, attempts, reaches));
        self.suppress_unless(self.sender_behind || !ours, ctx)
    }

    fn suppress_unless(&mut self, forward: bool, ctx: &mut Context<'_>) -> Verdict {
        if forward {
            ctx.counters.duplicates_forwarded += 1;
            return Verdict::Forward;
        }
        ctx.counters.suppressed += 1;
        self.suppressed += 1;
        Verdict::Suppress
    }

    /// Holds an acknowledgement that reports losses if the proxy can repair all of them. A
    /// replacement inherits the deadline of the acknowledgement held before, so the sender sees
    /// progress at least that often.
    fn hold_or_forward(
        &mut self,
        ack: &Acknowledgement<'_>,
        edge: Option<Seq>,
        ctx: &mut Context<'_>,
    ) -> Verdict {
        let Some(edge) = edge else {
            return Verdict::Forward;
        };
        let (attempts, reaches) = (ctx.config.attempts, ctx.reaches);
        let ours = self.cache.covers(ack.number, edge, |entry| {
            entry.sacked || is_ours(entry, attempts, reaches)
        });
        let until = match &self.held {
            Some(held) => held.until,
            None => ctx.now + ctx.config.hold,
        };
        if !ours || self.sender_behind || until <= ctx.now {
            return Verdict::Forward;
        }
        self.supersede_held(ctx);
        self.held = Some(Held {
            sealed: ack.sealed.to_vec(),
            esp_seq: ack.esp_seq,
            until,
        });
        Verdict::Suppress
    }

    /// Drops the held acknowledgement: a later one includes all that it reports.
    fn supersede_held(&mut self, ctx: &mut Context<'_>) {
        ctx.counters.held += u64::from(self.held.take().is_some());
    }
}
