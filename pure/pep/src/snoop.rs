//! The table of connections and the outside of the proxy.

use crate::acknowledgement::Acknowledgement;
use crate::flow::{Context, Data, EspSeq, Flow, Reaches};
use crate::lines::{Line, Lines};
use crate::{Config, Counters, FlowStatus, Segment, Side, Verdict};
use model::{CsaId, Deadline, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::tcp::Flags;

/// SNOOP for any number of composite SAs and for TCP in the clear; see the crate's documentation.
///
/// After every call of a `handle_` method, and of those that forget something, call [`Snoop::poll_transmit`] until `None`.
#[derive(Debug)]
pub struct Snoop {
    config: Config,
    flows: Lines<model::Flow, Entry>,
    /// No alarm is later than its connection's deadline. It may be earlier, for most packets put the deadline off.
    alarms: BTreeSet<(Instant, Key)>,
    /// Connections by the acknowledgement that they hold, if that is sealed.
    held: BTreeMap<EspSeq, Key>,
    reaches: Reaches,
    octets: Octets,
    outbox: VecDeque<(Side, Vec<u8>)>,
    counters: Counters,
}

/// A connection in the direction of its data, within the line of SAs that carries it: only the two ends of that SA can
/// touch its state, and overlapping private addresses never meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    line: Line,
    flow: model::Flow,
}

/// A connection and when it is to be looked at.
#[derive(Debug)]
struct Entry {
    flow: Flow,
    alarm: Instant,
}

/// Octets in all caches, and in those of each line.
#[derive(Debug, Default)]
struct Octets {
    all: usize,
    lines: BTreeMap<Line, usize>,
    /// No connection of this line will have been silent for the persist time before this.
    busy: Option<(Line, Instant)>,
}

impl Octets {
    fn change(&mut self, line: Line, before: usize, after: usize) {
        if before == after {
            return;
        }
        self.all = self.all - before + after;
        let of_line = self.lines.entry(line).or_default();
        *of_line = *of_line - before + after;
        if *of_line == 0 {
            self.lines.remove(&line);
        }
    }

    fn of(&self, line: Line) -> usize {
        self.lines.get(&line).copied().unwrap_or(0)
    }

    fn largest(&self) -> Option<Line> {
        let largest = self.lines.iter().max_by_key(|(_, octets)| **octets);
        largest.map(|(line, _)| *line)
    }
}

impl Snoop {
    /// A proxy that knows no connection.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            flows: Lines::new(),
            alarms: BTreeSet::new(),
            held: BTreeMap::new(),
            reaches: Reaches::default(),
            octets: Octets::default(),
            outbox: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Other limits from now on. A cache that is longer than they allow takes nothing more until
    /// acknowledgements have made room.
    pub fn set_config(&mut self, config: Config) {
        self.config = config;
        self.octets.busy = None;
        let keys: Vec<_> = self.keys().collect();
        keys.iter().for_each(|key| self.set_alarm(key));
    }

    /// A composite SA is no more: what is held of its acknowledgements is sent, and none of its packets is sent again.
    pub fn retire(&mut self, csa: CsaId) {
        let held = self.held.range(EspSeq::all(csa));
        let held: Vec<_> = held.map(|(esp_seq, _)| *esp_seq).collect();
        held.into_iter().for_each(|esp_seq| self.release(esp_seq));
        self.reaches.forget(csa);
    }

    /// Forgets everything about a line of composite SAs: their keys are gone, their packets mean
    /// nothing. To be told before the last of them is [retired](Snoop::retire).
    pub fn forget(&mut self, line: CsaId) {
        let flows = self.flows.of(Some(line)).map(|(flow, _)| *flow);
        let flows: Vec<_> = flows.collect();
        for flow in flows {
            let line = Some(line);
            self.remove(&Key { line, flow });
        }
    }

    /// Ends the proxy, and gives what it has still to send: acknowledgements that it holds are the senders'.
    pub fn close(mut self) -> impl Iterator<Item = (Side, Vec<u8>)> {
        let keys: Vec<_> = self.keys().collect();
        keys.iter().for_each(|key| self.remove(key));
        self.outbox.into_iter()
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
            if from == Side::Wireless {
                self.release_in_time(position.csa);
            }
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
        let alarms = self.alarms.iter().take_while(|(at, _)| *at <= now);
        let due: Vec<_> = alarms.map(|(_, key)| *key).collect();
        for key in due {
            let entry = self.flows.get(key.line, &key.flow);
            if entry.is_some_and(|entry| entry.flow.is_garbage(&self.config, now)) {
                self.counters.flows_expired += 1;
                self.remove(&key);
            } else {
                self.with_flow(&key, now, |flow, ctx| flow.handle_timeout(ctx));
                self.set_alarm(&key);
            }
        }
    }

    /// The next packet to send, exactly as it came once, and the side it leaves on.
    pub fn poll_transmit(&mut self) -> Option<(Side, Vec<u8>)> {
        self.outbox.pop_front()
    }

    /// When to call [`Snoop::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let (at, key) = self.alarms.first()?;
        let entry = self.flows.get(key.line, &key.flow)?;
        let reason = entry.flow.deadline(&self.config).reason;
        Some(Deadline { at: *at, reason })
    }

    /// The connections, in no order that means anything.
    pub fn flows(&self) -> impl Iterator<Item = FlowStatus> {
        let flows = self.flows.iter();
        flows.map(|(line, name, Entry { flow, .. })| FlowStatus {
            line,
            flow: *name,
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
        self.make_room_for(key.line, data.sealed.len(), now);
        if self.flows.get(key.line, &key.flow).is_none() {
            self.begin(key, Flow::new(data.seq, now));
        }
        let room = self.config.octets.saturating_sub(self.octets.all);
        self.with_flow(&key, now, |flow, ctx| flow.handle_data(&data, room, ctx));
    }

    fn handle_ack(&mut self, segment: &Segment<'_>, now: Instant) -> Verdict {
        let key = Key::of(Side::Wireless, segment);
        let Some(ack) = Acknowledgement::read(segment) else {
            return Verdict::Forward;
        };
        let verdict = self.with_flow(&key, now, |flow, ctx| flow.handle_ack(&ack, ctx));
        let entry = self.flows.get(key.line, &key.flow);
        if entry.is_some_and(|entry| entry.flow.is_over()) {
            self.remove(&key);
        }
        verdict.unwrap_or(Verdict::Forward)
    }

    /// Runs one of a connection's rules, and keeps right what is known of all connections together.
    fn with_flow<T>(
        &mut self,
        key: &Key,
        now: Instant,
        rule: impl FnOnce(&mut Flow, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let Entry { flow, alarm } = self.flows.get_mut(key.line, &key.flow)?;
        let mut ctx = Context {
            config: &self.config,
            reaches: &self.reaches,
            counters: &mut self.counters,
            outbox: &mut self.outbox,
            now,
        };
        let (octets, held) = (flow.cache.octets(), flow.held_at());
        let result = rule(flow, &mut ctx);
        self.octets.change(key.line, octets, flow.cache.octets());
        if flow.held_at() != held {
            if let Some(esp_seq) = held {
                self.held.remove(&esp_seq);
            }
            if let Some(esp_seq) = flow.held_at() {
                self.held.insert(esp_seq, *key);
            }
        }
        if flow.deadline(&self.config).at < *alarm {
            self.set_alarm(key);
        }
        Some(result)
    }

    fn set_alarm(&mut self, key: &Key) {
        if let Some(entry) = self.flows.get_mut(key.line, &key.flow) {
            self.alarms.remove(&(entry.alarm, *key));
            entry.alarm = entry.flow.deadline(&self.config).at;
            self.alarms.insert((entry.alarm, *key));
        }
    }

    fn keys(&self) -> impl Iterator<Item = Key> {
        let flows = self.flows.iter();
        flows.map(|(line, flow, _)| Key { line, flow: *flow })
    }

    /// Takes up a connection, at the cost of others of the line that has the most.
    fn begin(&mut self, key: Key, flow: Flow) {
        let used = |entry: &Entry| entry.flow.last_used();
        for (line, flow) in self.flows.crowded_out(self.config.flows, used) {
            self.evict(&Key { line, flow });
        }
        let alarm = flow.deadline(&self.config).at;
        self.alarms.insert((alarm, key));
        self.flows.insert(key.line, key.flow, Entry { flow, alarm });
    }

    /// Makes room for octets of a line, at the cost of connections of the line that has the most: those that have been silent
    /// for the persist time, and if it is another line, with more than this one will have, those in use too.
    fn make_room_for(&mut self, line: Line, octets: usize, now: Instant) {
        while self.octets.all + octets > self.config.octets {
            let Some(largest) = self.octets.largest() else {
                return;
            };
            let has_more = self.octets.of(largest) > self.octets.of(line) + octets;
            let is_busy = |(busy, until): (Line, Instant)| busy == largest && now < until;
            if !has_more && self.octets.busy.is_some_and(is_busy) {
                return;
            }
            let flows = self.flows.of(largest);
            let flows = flows.map(|(flow, entry)| (entry.flow.last_used(), *flow));
            let Some((used, flow)) = flows.min() else {
                return;
            };
            if !has_more && now.since(used) < self.config.persist {
                self.octets.busy = Some((largest, used + self.config.persist));
                return;
            }
            let line = largest;
            self.evict(&Key { line, flow });
        }
    }

    /// Sends what is held of a composite SA's acknowledgements as long as it can be sent.
    fn release_in_time(&mut self, csa: CsaId) {
        loop {
            let oldest = self.held.range(EspSeq::all(csa)).next();
            match oldest.map(|(esp_seq, _)| *esp_seq) {
                Some(oldest) if !self.reaches.allow_for_long(Side::Wireless, oldest) => {
                    self.release(oldest);
                }
                _ => return,
            }
        }
    }

    /// Sends the acknowledgement of this number that is held.
    fn release(&mut self, esp_seq: EspSeq) {
        let key = self.held.remove(&esp_seq);
        let entry = key.and_then(|key| self.flows.get_mut(key.line, &key.flow));
        if let Some(Entry { flow, .. }) = entry {
            flow.release(&self.reaches, &mut self.counters, &mut self.outbox);
        }
    }

    fn evict(&mut self, key: &Key) {
        self.counters.flows_evicted += 1;
        self.remove(key);
    }

    /// Forgets a connection. An acknowledgement that it holds is the sender's.
    fn remove(&mut self, key: &Key) {
        let Some(Entry { mut flow, alarm }) = self.flows.remove(key.line, &key.flow) else {
            return;
        };
        self.alarms.remove(&(alarm, *key));
        if let Some(esp_seq) = flow.held_at() {
            self.held.remove(&esp_seq);
        }
        self.octets.change(key.line, flow.cache.octets(), 0);
        flow.release(&self.reaches, &mut self.counters, &mut self.outbox);
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
