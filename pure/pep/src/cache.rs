//! The sealed packets of one connection that the receiver has not acknowledged yet.
//!
//! Entries are ordered by TCP sequence number and never overlap. Beside the packet an entry keeps
//! *when in the order of transmissions* it was sent, which is what loss detection needs: the
//! wireless hop is a queue, so once a packet sent later has arrived, one sent before it and still
//! missing is lost.

use crate::flow::EspSeq;
use model::Instant;
use std::collections::VecDeque;
use wire::tcp::Seq;

/// The place of a transmission among all of a connection's transmissions over the wireless hop,
/// first ones and repeated ones alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Order(pub(crate) u64);

/// One cached packet.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// First octet.
    pub(crate) seq: Seq,
    /// The octet after the last.
    pub(crate) end: Seq,
    /// The packet.
    pub(crate) sealed: Vec<u8>,
    /// Its ESP sequence number, if it has one.
    pub(crate) esp_seq: Option<EspSeq>,
    /// Its first transmission.
    pub(crate) first: Order,
    /// Its last transmission.
    pub(crate) last: Order,
    /// The earliest transmission that may be the one which arrives: a repetition of a packet known
    /// to be lost moves this, one on suspicion does not.
    pub(crate) surely: Order,
    /// When it was last sent.
    pub(crate) sent: Instant,
    /// How often it was sent again from here.
    pub(crate) attempts: u8,
    /// How many of these were on suspicion: the receiver may get that many copies.
    pub(crate) guesses: u8,
    /// The sender sent it again, or sent it out of order: it has to see the duplicate
    /// acknowledgements (its congestion control is at work, or needs to be).
    pub(crate) from_sender: bool,
    /// The receiver reports that it has it; it may still change its mind (RFC 2018 section 8).
    pub(crate) sacked: bool,
}

impl Entry {
    /// A packet sent for the first time.
    pub(crate) fn new(seq: Seq, end: Seq, sealed: &[u8], order: Order, now: Instant) -> Self {
        Self {
            seq,
            end,
            sealed: sealed.to_vec(),
            esp_seq: None,
            first: order,
            last: order,
            surely: order,
            sent: now,
            attempts: 0,
            guesses: 0,
            from_sender: false,
            sacked: false,
        }
    }

    /// Whether it was sent exactly once, so that its acknowledgement is a sample (Karn's rule).
    pub(crate) fn sent_once(&self) -> bool {
        self.attempts == 0 && !self.from_sender
    }

    fn holds(&self, seq: Seq) -> bool {
        !self.seq.is_after(seq) && self.end.is_after(seq)
    }
}

/// How a segment relates to what is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nothing of it is cached; it belongs at this index.
    Free(usize),
    /// Exactly this entry.
    Same(usize),
    /// It shares octets with this entry, and perhaps with later ones, but is cut differently.
    Overlap(usize),
}

/// The cache of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cache {
    entries: VecDeque<Entry>,
    octets: usize,
}

impl Cache {
    /// Packets cached.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Octets of them.
    pub(crate) fn octets(&self) -> usize {
        self.octets
    }

    /// Where a segment belongs.
    pub(crate) fn place(&self, seq: Seq, end: Seq) -> Place {
        let index = self.entries.partition_point(|e| !e.end.is_after(seq));
        match self.entries.get(index) {
            Some(entry) if entry.seq == seq && entry.end == end => Place::Same(index),
            Some(entry) if entry.seq.is_before(end) => Place::Overlap(index),
            _ => Place::Free(index),
        }
    }

    /// Puts an entry where [`Cache::place`] said.
    pub(crate) fn insert(&mut self, index: usize, entry: Entry) {
        self.octets += entry.sealed.len();
        self.entries.insert(index.min(self.entries.len()), entry);
    }

    /// Puts the sender's newer copy of the packet in the place of the old one: its ESP sequence
    /// number stays inside the replay window longer.
    pub(crate) fn replace(&mut self, index: usize, sealed: &[u8], esp_seq: Option<EspSeq>) {
        if let Some(entry) = self.entries.get_mut(index) {
            self.octets = self.octets - entry.sealed.len() + sealed.len();
            entry.sealed = sealed.to_vec();
            entry.esp_seq = esp_seq;
        }
    }

    /// Takes out the next entry that is acknowledged as a whole.
    pub(crate) fn pop_acknowledged(&mut self, ack: Seq) -> Option<Entry> {
        let entry = self.entries.pop_front_if(|e| !e.end.is_after(ack))?;
        self.octets -= entry.sealed.len();
        Some(entry)
    }

    /// The entry the receiver waits for, if it is cached.
    pub(crate) fn hole(&mut self, ack: Seq) -> Option<&mut Entry> {
        self.entries.front_mut().filter(|entry| entry.holds(ack))
    }

    /// The oldest entry.
    pub(crate) fn oldest(&self) -> Option<&Entry> {
        self.entries.front()
    }

    /// All entries, oldest octet first.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut()
    }

    /// The entries from an index on that have octets before `end`.
    pub(crate) fn overlapping(
        &mut self,
        from: usize,
        end: Seq,
    ) -> impl Iterator<Item = &mut Entry> {
        self.entries
            .iter_mut()
            .skip(from)
            .take_while(move |entry| entry.seq.is_before(end))
    }

    /// Whether every octet from `from` to `edge` is cached, in entries that satisfy `good`.
    pub(crate) fn covers(&self, from: Seq, edge: Seq, good: impl Fn(&Entry) -> bool) -> bool {
        let mut next = from;
        for entry in self.entries.iter().take_while(|e| e.seq.is_before(edge)) {
            if entry.seq.is_after(next) || !good(entry) {
                return false;
            }
            next = entry.end;
        }
        !next.is_before(edge)
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
