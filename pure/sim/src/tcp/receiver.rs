//! The receiving half: reassembles the stream and decides when to acknowledge.
//!
//! Every second full segment is acknowledged immediately, a single one after the delay (RFC 5681
//! section 4.2). The first segments, segments out of order, and segments that fill a hole are
//! acknowledged immediately, as in Linux.

use super::Settings;
use model::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// Segments acknowledged immediately on a new connection, or after a long silence: Linux's
/// TCP_MAX_QUICKACKS.
const QUICK: u32 = 16;

#[derive(Clone, Debug)]
pub(super) struct Receiver {
    mss: u64,
    buffer: u64,
    delay: Duration,
    /// Next octet of the stream.
    next: u64,
    /// Octets in order that the program has not read.
    ready: Vec<u8>,
    /// Pieces out of order, without overlaps.
    waiting: BTreeMap<u64, Vec<u8>>,
    /// Ranges of `waiting`, the most recently changed first (RFC 2018 section 4).
    blocks: Vec<(u64, u64)>,
    /// Offset in the last acknowledgement.
    told: u64,
    /// Right edge of the announced window. It never moves back (RFC 9293 section 3.8.6).
    right: u64,
    quick: u32,
    heard: Option<Instant>,
    /// Time of the next acknowledgement.
    due: Option<Instant>,
}

impl Receiver {
    pub fn new(settings: &Settings) -> Self {
        Self {
            mss: settings.payload_len() as u64,
            buffer: u64::from(settings.receive_buffer),
            delay: settings.delay,
            next: 0,
            ready: Vec::new(),
            waiting: BTreeMap::new(),
            blocks: Vec::new(),
            told: 0,
            right: u64::from(settings.receive_buffer),
            quick: QUICK,
            heard: None,
            due: None,
        }
    }

    /// Handles data of the stream from `start`. Data beyond the window is dropped.
    pub fn handle_data(&mut self, start: u64, octets: &[u8], now: Instant) {
        self.note_silence(now);
        let end = start + octets.len() as u64;
        if end <= self.next || end > self.right {
            // A duplicate, or data beyond the window (RFC 9293 section 3.10.7.4).
            self.due = Some(now);
            return;
        }
        let had_holes = !self.waiting.is_empty();
        self.store(start, end, octets);
        if start > self.next {
            self.due = Some(now);
            return;
        }
        self.take_in_order();
        let filled = had_holes && self.waiting.is_empty();
        let much = self.next - self.told > self.mss;
        if filled || much || self.quick > 0 || !self.waiting.is_empty() {
            self.due = Some(now);
        } else {
            self.due.get_or_insert(now + self.delay);
        }
    }

    /// Handles a segment that requires an acknowledgement: a probe, or an unacceptable segment.
    pub fn handle_question(&mut self, now: Instant) {
        self.due = Some(now);
    }

    /// Returns the octets in order. Announces a window that was nearly closed as open again
    /// (RFC 9293 section 3.8.6.2.2).
    pub fn read(&mut self, now: Instant) -> Vec<u8> {
        let octets = std::mem::take(&mut self.ready);
        let told = self.right - self.next;
        let enough = (self.buffer / 2).min(self.mss);
        if !octets.is_empty() && told < enough && self.buffer - told >= enough {
            self.due = Some(now);
        }
        octets
    }

    pub const fn due(&self) -> Option<Instant> {
        self.due
    }

    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Returns the announced octets from `next` on. Data behind a hole occupies the buffer, so a
    /// window in full use does not move until the hole is filled.
    pub fn window(&mut self) -> u64 {
        let waiting = self.waiting.values().map(Vec::len).sum::<usize>();
        let held = (self.ready.len() + waiting) as u64;
        let free = self.buffer.saturating_sub(held);
        // No window below a segment, or the sender would fill it with tiny segments.
        if free >= self.mss.min(self.buffer / 2) {
            self.right = self.right.max(self.next + free);
        }
        self.right - self.next
    }

    /// Records that a segment leaves, which acknowledges everything.
    pub fn note_told(&mut self) {
        self.told = self.next;
        self.due = None;
        self.quick = self.quick.saturating_sub(1);
    }

    /// Returns the blocks beyond the next octet, at most `limit`.
    pub fn sack(&self, limit: usize) -> impl Iterator<Item = (u64, u64)> {
        self.blocks.iter().copied().take(limit)
    }

    /// Returns the last acknowledged offset. Only timestamps of segments up to there are echoed
    /// (RFC 7323 section 4.3).
    pub const fn told(&self) -> u64 {
        self.told
    }

    fn note_silence(&mut self, now: Instant) {
        const LONG: Duration = Duration::from_secs(1);
        if self.heard.is_some_and(|heard| now - heard > LONG) {
            self.quick = QUICK;
        }
        self.heard = Some(now);
    }

    /// Stores the new octets of a segment.
    fn store(&mut self, start: u64, end: u64, octets: &[u8]) {
        let mut from = start.max(self.next);
        let known: Vec<_> = self.waiting.range(..end).map(range).collect();
        for (low, high) in known.into_iter().filter(|(_, high)| *high > start) {
            if from < low {
                let piece = &octets[(from - start) as usize..(low - start) as usize];
                self.waiting.insert(from, piece.to_vec());
            }
            from = from.max(high);
        }
        if from < end {
            self.waiting
                .insert(from, octets[(from - start) as usize..].to_vec());
        }
        let (mut low, mut high) = (start.max(self.next), end);
        let touches = |block: &(u64, u64)| block.0 <= high && block.1 >= low;
        let (joined, others): (Vec<_>, Vec<_>) = self.blocks.iter().copied().partition(touches);
        for block in joined {
            (low, high) = (low.min(block.0), high.max(block.1));
        }
        self.blocks = others;
        self.blocks.insert(0, (low, high));
    }

    fn take_in_order(&mut self) {
        while let Some(first) = self.waiting.first_entry().filter(|e| *e.key() == self.next) {
            let octets = first.remove();
            self.next += octets.len() as u64;
            self.ready.extend(octets);
        }
        let next = self.next;
        self.blocks.retain(|block| block.1 > next);
    }
}

fn range((start, octets): (&u64, &Vec<u8>)) -> (u64, u64) {
    (*start, start + octets.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a receiver for segments of 100 octets, with room for ten.
    fn receiver() -> Receiver {
        Receiver::new(&Settings {
            mss: 100,
            timestamps: false,
            receive_buffer: 1000,
            ..Settings::default()
        })
    }

    fn take(receiver: &mut Receiver, segment: u64) {
        receiver.handle_data(segment * 100, &[segment as u8; 100], Instant::ZERO);
    }

    /// A sender that needs the whole window waits while SNOOP repairs a loss late.
    #[test]
    fn the_window_stands_still_while_data_waits_behind_a_hole() {
        let mut receiver = receiver();
        [1, 3, 4, 5]
            .into_iter()
            .for_each(|n| take(&mut receiver, n));
        assert_eq!((receiver.next(), receiver.window()), (0, 1000));
        take(&mut receiver, 0);
        receiver.read(Instant::ZERO);
        assert_eq!(
            (receiver.next(), receiver.window()),
            (200, 800),
            "three wait for one"
        );
        take(&mut receiver, 2);
        receiver.read(Instant::ZERO);
        assert_eq!((receiver.next(), receiver.window()), (600, 1000));
    }

    #[test]
    fn what_is_not_read_closes_the_window_and_nothing_beyond_it_is_taken() {
        let mut receiver = receiver();
        (0..10).for_each(|n| take(&mut receiver, n));
        assert_eq!(receiver.window(), 0);
        take(&mut receiver, 10);
        assert_eq!(receiver.next(), 1000);
        assert_eq!(receiver.read(Instant::ZERO).len(), 1000);
        assert_eq!(receiver.window(), 1000);
    }

    #[test]
    fn the_block_that_changed_last_is_told_first() {
        let mut receiver = receiver();
        [2, 6, 4, 3]
            .into_iter()
            .for_each(|n| take(&mut receiver, n));
        let blocks: Vec<_> = receiver.sack(3).collect();
        assert_eq!(blocks, [(200, 500), (600, 700)]);
        take(&mut receiver, 0);
        take(&mut receiver, 1);
        assert_eq!(receiver.sack(3).collect::<Vec<_>>(), [(600, 700)]);
    }

    #[test]
    fn pieces_that_overlap_are_put_together_once() {
        let mut receiver = receiver();
        let stream: Vec<u8> = (0..=255).collect();
        for (start, end) in [
            (50, 90),
            (120, 200),
            (80, 130),
            (30, 60),
            (0, 40),
            (190, 256),
        ] {
            receiver.handle_data(start as u64, &stream[start..end], Instant::ZERO);
        }
        assert_eq!(receiver.read(Instant::ZERO), stream);
    }
}
