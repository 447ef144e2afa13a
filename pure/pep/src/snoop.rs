//! The table of connections and the outside of the proxy.

use crate::acknowledgement::Acknowledgement;
use crate::flow::{Context, Data, EspSeq, Flow, Reaches};
use crate::{Config, Counters, FlowStatus, Segment, Side, Verdict};
use model::{CsaId, Deadline, Instant};
use std::collections::{BTreeMap, VecDeque};
use wire::tcp::Flags;

/// SNOOP for any number of composite SAs and for TCP in the clear; see the crate's documentation.
///
/// After every call of a `handle_` method call [`Snoop::poll_transmit`] until `None`.
#[derive(Debug)]
pub struct Snoop {
    config: Config,
    flows: BTreeMap<Key, Flow>,
    reaches: Reaches,
    /// Octets in all caches.
    octets: usize,
    outbox: VecDeque<(Side, Vec<u8>)>,
    counters: Counters,
}

/// A connection in the direction of its data, within the line of SAs that carries it: nobody but the two
/// ends of that SA can touch its state, and overlapping private addresses never meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    line: Option<CsaId>,
    flow: model::Flow,
}

impl Snoop {
    /// A proxy that knows no connection.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            flows: BTreeMap::new(),
            reaches: Reaches::default(),
            octets: 0,
            outbox: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Other limits from now on. A cache that is longer than they allow takes nothing more until
    /// acknowledgements have made room.
    pub const fn set_config(&mut self, config: Config) {
        self.config = config;
    }

    /// A composite SA is no more: none of its packets is sent again.
    pub fn retire(&mut self, csa: CsaId) {
        self.reaches.forget(csa);
    }

    /// Forgets everything about a line of composite SAs: their keys are gone, their packets mean
    /// nothing.
    pub fn forget(&mut self, line: CsaId) {
        let of_line = |key: &&Key| key.line == Some(line);
        let keys: Vec<_> = self.flows.keys().filter(of_line).copied().collect();
        keys.iter().for_each(|key| self.remove(key));
    }

    /// A TCP segment that came from a side. Everything not suppressed goes on as it came.
    #[must_use = "a suppressed acknowledgement must not be forwarded"]
    pub fn handle_segment(&mut self, from: Side, segment: &Segment<'_>, now: Instant) -> Verdict {
        if !segment.fresh {
            self.counters.not_fresh += 1;
            return Verdict::Forward;
        }
        if let Some(position) = segment.position {
            self.reaches.note(from, position);
        }
        let opens = segment.header.flags.contains(Flags::SYN);
        if opens || segment.header.flags.contains(Flags::RST) {
            self.remove(&Key::of(from, segment));
            self.remove(&Key::of(from.opposite(), segment));
            return Verdict::Forward;
        }
        match from {
            Side::Wired => {
                self.handle_data(segment, now);
                Verdict::Forward
            }
            Side::Wireless => self.handle_ack(segment, now),
        }
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        let due: Vec<Key> = self
            .flows
            .iter()
            .filter(|(_, flow)| flow.deadline(&self.config).at <= now)
            .map(|(key, _)| *key)
            .collect();
        for key in due {
            let expired = self
                .flows
                .get(&key)
                .is_some_and(|flow| flow.is_garbage(&self.config, now));
            if expired {
                self.counters.flows_expired += 1;
                self.remove(&key);
            } else {
                self.with_flow(&key, now, |flow, ctx| flow.handle_timeout(ctx));
            }
        }
    }

    /// The next packet to send, exactly as it came once, and the side it leaves on.
    pub fn poll_transmit(&mut self) -> Option<(Side, Vec<u8>)> {
        self.outbox.pop_front()
    }

    /// When to call [`Snoop::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.flows
            .values()
            .map(|flow| flow.deadline(&self.config))
            .min()
    }

    /// The connections, in no order that means anything.
    pub fn flows(&self) -> impl Iterator<Item = FlowStatus> {
        self.flows.iter().map(|(key, flow)| FlowStatus {
            line: key.line,
            flow: key.flow,
            state: flow.state(),
            packets: flow.cache.len(),
            octets: flow.cache.octets(),
            retransmitted: flow.retransmitted,
            suppressed: flow.suppressed,
            srtt: flow.rtt.smoothed(),
            rto: flow.rto(&self.config),
        })
    }

    /// What was done so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn handle_data(&mut self, segment: &Segment<'_>, now: Instant) {
        let sequence_len = segment.header.sequence_len(segment.payload_len);
        if sequence_len == 0 {
            return;
        }
        let key = Key::of(Side::Wired, segment);
        let data = Data {
            seq: segment.header.seq,
            end: segment.header.seq + sequence_len,
            fin: segment.header.flags.contains(Flags::FIN),
            sealed: segment.sealed,
            esp_seq: segment.position.map(EspSeq::of),
        };
        self.make_room_for(data.sealed.len(), now);
        if !self.flows.contains_key(&key) {
            self.make_room_for_a_flow();
            self.flows.insert(key, Flow::new(data.seq, now));
        }
        let room = self.config.octets.saturating_sub(self.octets);
        self.with_flow(&key, now, |flow, ctx| flow.handle_data(&data, room, ctx));
    }

    fn handle_ack(&mut self, segment: &Segment<'_>, now: Instant) -> Verdict {
        let key = Key::of(Side::Wireless, segment);
        let esp_seq = segment.position.map(EspSeq::of);
        let ack = Acknowledgement::read(
            &segment.header,
            segment.payload_len,
            segment.sealed,
            esp_seq,
        );
        let Some(ack) = ack else {
            return Verdict::Forward;
        };
        let verdict = self.with_flow(&key, now, |flow, ctx| flow.handle_ack(&ack, ctx));
        if self.flows.get(&key).is_some_and(Flow::is_over) {
            self.remove(&key);
        }
        verdict.unwrap_or(Verdict::Forward)
    }

    /// Runs one of a connection's rules and keeps the sum of octets right.
    fn with_flow<T>(
        &mut self,
        key: &Key,
        now: Instant,
        rule: impl FnOnce(&mut Flow, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let flow = self.flows.get_mut(key)?;
        let mut ctx = Context {
            config: &self.config,
            reaches: &self.reaches,
            counters: &mut self.counters,
            outbox: &mut self.outbox,
            now,
        };
        let before = flow.cache.octets();
        let result = rule(flow, &mut ctx);
        self.octets = self.octets - before + flow.cache.octets();
        Some(result)
    }

    fn make_room_for_a_flow(&mut self) {
        while self.flows.len() >= self.config.flows.max(1) {
            let Some((key, _)) = self.least_recently_used() else {
                return;
            };
            self.evict(&key);
        }
    }

    /// Makes room for octets at the cost of connections that have been silent for the persist
    /// time. One that is in use is never robbed for another.
    fn make_room_for(&mut self, octets: usize, now: Instant) {
        while self.octets + octets > self.config.octets {
            match self.least_recently_used() {
                Some((key, used)) if now.since(used) >= self.config.persist => self.evict(&key),
                _ => return,
            }
        }
    }

    fn least_recently_used(&self) -> Option<(Key, Instant)> {
        self.flows
            .iter()
            .map(|(key, flow)| (*key, flow.last_used()))
            .min_by_key(|(_, used)| *used)
    }

    fn evict(&mut self, key: &Key) {
        self.counters.flows_evicted += 1;
        self.remove(key);
    }

    /// Forgets a connection. An acknowledgement that it holds is the sender's.
    fn remove(&mut self, key: &Key) {
        if let Some(mut flow) = self.flows.remove(key) {
            self.octets -= flow.cache.octets();
            flow.release(&self.reaches, &mut self.counters, &mut self.outbox);
        }
    }
}

impl Key {
    /// The connection a segment belongs to: its data travels the way the segment does if it came
    /// from the wired side, else the other way.
    fn of(from: Side, segment: &Segment<'_>) -> Self {
        let flow = segment.flow;
        let flow = match from {
            Side::Wired => flow,
            Side::Wireless => model::Flow {
                source: flow.destination,
                destination: flow.source,
                source_port: flow.destination_port,
                destination_port: flow.source_port,
                ..flow
            },
        };
        Self {
            line: segment.line,
            flow,
        }
    }
}
