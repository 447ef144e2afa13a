//! The sealed packets of one connection that the receiver has not acknowledged yet.
//!
//! Entries are ordered by TCP sequence number and never overlap. Each entry also records its place
//! in the *order of transmissions*, which loss detection needs. The wireless hop is a queue: once a
//! packet sent later has arrived, an earlier one still missing is lost.

use crate::flow::EspSeq;
use model::Instant;
use std::collections::VecDeque;
use wire::tcp::Seq;

/// The place of a transmission among all of a connection's transmissions over the wireless hop,
/// retransmissions included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Order(pub(crate) u64);

/// One cached packet.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Sequence number of the first octet.
    pub(crate) seq: Seq,
    /// Sequence number after the last octet.
    pub(crate) end: Seq,
    /// The packet as it was forwarded.
    pub(crate) sealed: Vec<u8>,
    /// ESP sequence number of the packet, if it is sealed.
    pub(crate) esp_seq: Option<EspSeq>,
    /// The first transmission.
    pub(crate) first: Order,
    /// The last transmission.
    pub(crate) last: Order,
    /// The earliest transmission that can account for the packet's arrival. Retransmitting a packet
    /// known to be lost moves it; retransmitting on suspicion does not.
    pub(crate) surely: Order,
    /// Time of the last transmission.
    pub(crate) sent: Instant,
    /// Number of retransmissions by the proxy.
    pub(crate) attempts: u8,
    /// Number of these retransmissions made on suspicion; the receiver may get that many copies.
    pub(crate) guesses: u8,
    /// True if the sender retransmitted the packet or sent it out of order. The sender then has to
    /// see the duplicate acknowledgements, because its congestion control is at work or needs to
    /// be.
    pub(crate) from_sender: bool,
    /// True if a SACK block reports the packet; the receiver may still drop it (RFC 2018 section
    /// 8).
    pub(crate) sacked: bool,
}

impl Entry {
    /// Returns the entry of a packet sent for the first time.
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

    /// Returns true if the packet was sent exactly once, so that its acknowledgement is a valid RTT
    /// sample (Karn's rule).
    pub(crate) fn sent_once(&self) -> bool {
        self.attempts == 0 && !self.from_sender
    }

    fn holds(&self, seq: Seq) -> bool {
        !self.seq.is_after(seq) && self.end.is_after(seq)
    }
}

/// The relation of a segment to the cached entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// No octet of the segment is cached; it belongs at this index.
    Free(usize),
    /// The segment has the same bounds as this entry.
    Same(usize),
    /// The segment overlaps this entry, and perhaps later ones, but has other bounds.
    Overlap(usize),
}

/// The cache of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cache {
    entries: VecDeque<Entry>,
    octets: usize,
}

impl Cache {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the total length of the cached packets in octets.
    pub(crate) fn octets(&self) -> usize {
        self.octets
    }

    /// Returns the place of a segment in the cache.
    pub(crate) fn place(&self, seq: Seq, end: Seq) -> Place {
        let index = self.entries.partition_point(|e| !e.end.is_after(seq));
        match self.entries.get(index) {
            Some(entry) if entry.seq == seq && entry.end == end => Place::Same(index),
            Some(entry) if entry.seq.is_before(end) => Place::Overlap(index),
            _ => Place::Free(index),
        }
    }

    /// Inserts an entry at the index that [`Cache::place`] returned.
    pub(crate) fn insert(&mut self, index: usize, entry: Entry) {
        self.octets += entry.sealed.len();
        self.entries.insert(index.min(self.entries.len()), entry);
    }

    /// Replaces a packet by the sender's newer copy, whose ESP sequence number stays inside the
    /// replay window longer.
    pub(crate) fn replace(&mut self, index: usize, sealed: &[u8], esp_seq: Option<EspSeq>) {
        if let Some(entry) = self.entries.get_mut(index) {
            self.octets = self.octets - entry.sealed.len() + sealed.len();
            entry.sealed = sealed.to_vec();
            entry.esp_seq = esp_seq;
        }
    }

    /// Removes and returns the next entry that is acknowledged as a whole.
    pub(crate) fn pop_acknowledged(&mut self, ack: Seq) -> Option<Entry> {
        let entry = self.entries.pop_front_if(|e| !e.end.is_after(ack))?;
        self.octets -= entry.sealed.len();
        Some(entry)
    }

    /// Returns the entry that the receiver waits for, if it is cached.
    pub(crate) fn hole(&mut self, ack: Seq) -> Option<&mut Entry> {
        self.entries.front_mut().filter(|entry| entry.holds(ack))
    }

    pub(crate) fn oldest(&self) -> Option<&Entry> {
        self.entries.front()
    }

    /// Returns all entries in the order of their sequence numbers.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut()
    }

    /// Returns the entries from an index on that have octets before `end`.
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

    /// Returns true if every octet from `from` to `edge` is cached, in entries that satisfy `good`.
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

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
