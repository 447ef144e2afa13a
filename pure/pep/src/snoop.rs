//! The connection table and the public interface of SNOOP.

use crate::acknowledgement::Acknowledgement;
use crate::flow::{Context, Data, EspSeq, Flow, Reaches};
use crate::lines::{Lines, owner};
use crate::{Config, Counters, FlowStatus, Line, Owner, Segment, Side, Verdict};
use model::{CsaId, Deadline, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque, btree_map};
use wire::tcp::Flags;

/// SNOOP for any number of composite SAs and for TCP in clear; see the crate's documentation.
///
/// After every `handle_` method, [`Snoop::retire`] and [`Snoop::forget`], call
/// [`Snoop::poll_transmit`] until it returns `None`.
#[derive(Debug)]
pub struct Snoop {
    config: Config,
    flows: Lines<model::Flow, Entry>,
    /// Alarms by time. An alarm is never later than its connection's deadline. It may be earlier,
    /// because most packets postpone the deadline.
    alarms: BTreeSet<(Instant, Key)>,
    /// Connections by the ESP sequence number of the acknowledgement they hold, if it is sealed.
    held: BTreeMap<EspSeq, Key>,
    reaches: Reaches,
    octets: Octets,
    outbox: VecDeque<(Side, Vec<u8>)>,
    counters: Counters,
}

/// A connection in the direction of its data, within the line of SAs that carries it. Only the two
/// ends of those SAs can affect its state, and overlapping private addresses never collide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    line: Option<Line>,
    flow: model::Flow,
}

/// A connection and the time of its alarm.
#[derive(Debug)]
struct Entry {
    flow: Flow,
    alarm: Instant,
}

/// Octets in all caches, and in those of each owner of lines and of each line.
#[derive(Debug, Default)]
struct Octets {
    all: usize,
    owners: BTreeMap<Option<Owner>, usize>,
    lines: BTreeMap<Option<Line>, usize>,
    /// A line, and the time before which none of its connections reaches the persist time.
    busy: Option<(Option<Line>, Instant)>,
}

impl Octets {
    fn change(&mut self, line: Option<Line>, before: usize, after: usize) {
        if before == after {
            return;
        }
        self.all = self.all - before + after;
        count(&mut self.owners, owner(line), before, after);
        count(&mut self.lines, line, before, after);
    }

    /// Returns the line that caches the most, of the owner that caches the most.
    fn largest(&self) -> Option<Option<Line>> {
        let (most, _) = self.owners.iter().max_by_key(|(_, octets)| **octets)?;
        let of_owner = self.lines.iter().filter(|(line, _)| owner(**line) == *most);
        let largest = of_owner.max_by_key(|(_, octets)| **octets);
        largest.map(|(line, _)| *line)
    }

    /// Returns true if the owner of the largest line caches more than the owner of `line` will with
    /// `more` octets. Lines of one owner are compared by their own octets.
    fn has_more(&self, largest: Option<Line>, line: Option<Line>, more: usize) -> bool {
        let of_owner = |line| self.owners.get(&owner(line));
        let of_line = |line| self.lines.get(&line);
        let [most, own] = match owner(largest) == owner(line) {
            true => [of_line(largest), of_line(line)],
            false => [of_owner(largest), of_owner(line)],
        };
        most.copied().unwrap_or(0) > own.copied().unwrap_or(0) + more
    }
}

/// Replaces `before` octets by `after`. A count of zero is removed.
fn count<K: Ord>(counts: &mut BTreeMap<K, usize>, of: K, before: usize, after: usize) {
    let mut entry = match counts.entry(of) {
        btree_map::Entry::Vacant(vacant) => vacant.insert_entry(0),
        btree_map::Entry::Occupied(occupied) => occupied,
    };
    *entry.get_mut() = *entry.get() - before + after;
    if *entry.get() == 0 {
        entry.remove();
    }
}

impl Snoop {
    /// Returns a proxy without connections.
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

    /// Replaces the limits. A cache beyond its new limit accepts nothing until acknowledgements
    /// have made room.
    pub fn set_config(&mut self, config: Config) {
        self.config = config;
        self.octets.busy = None;
        let keys: Vec<_> = self.keys().collect();
        keys.iter().for_each(|key| self.set_alarm(key));
    }

    /// Ends a composite SA: sends the acknowledgements held for it and never retransmits its
    /// packets again.
    pub fn retire(&mut self, csa: CsaId) {
        let held = self.held.range(EspSeq::all(csa));
        let held: Vec<_> = held.map(|(esp_seq, _)| *esp_seq).collect();
        held.into_iter().for_each(|esp_seq| self.release(esp_seq));
        self.reaches.forget(csa);
    }

    /// Forgets all connections of a line of composite SAs whose keys are gone. Call this before the
    /// last SA of the line is [retired](Snoop::retire).
    pub fn forget(&mut self, line: Line) {
        let flows = self.flows.in_line(Some(line)).map(|(flow, _)| *flow);
        let flows: Vec<_> = flows.collect();
        for flow in flows {
            let line = Some(line);
            self.remove(&Key { line, flow });
        }
    }

    /// Ends the proxy and returns the packets it still has to send, with all held acknowledgements.
    pub fn close(mut self) -> impl Iterator<Item = (Side, Vec<u8>)> {
        let keys: Vec<_> = self.keys().collect();
        keys.iter().for_each(|key| self.remove(key));
        self.outbox.into_iter()
    }

    /// Handles a TCP segment that came from `from`. The caller forwards it unchanged unless it is
    /// suppressed.
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
            self.remove(&Key::new(from, segment));
            self.remove(&Key::new(from.opposite(), segment));
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

    /// Runs the timers that are due at `now`.
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

    /// Returns the next packet to send, octet for octet as it first came, and the side it leaves
    /// on.
    pub fn poll_transmit(&mut self) -> Option<(Side, Vec<u8>)> {
        self.outbox.pop_front()
    }

    /// Returns the next time to call [`Snoop::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let (at, key) = self.alarms.first()?;
        let entry = self.flows.get(key.line, &key.flow)?;
        let reason = entry.flow.deadline(&self.config).reason;
        Some(Deadline { at: *at, reason })
    }

    /// Returns the status of all connections, in no particular order.
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

    /// Returns the counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn handle_data(&mut self, segment: &Segment<'_>, now: Instant) {
        let sequence_len = segment.header.sequence_len(segment.payload_len);
        if sequence_len == 0 {
            return;
        }
        let key = Key::new(Side::Wired, segment);
        let data = Data {
            seq: segment.header.seq,
            end: segment.header.seq + sequence_len,
            fin: segment.header.flags.contains(Flags::FIN),
            sealed: segment.sealed,
            esp_seq: segment.position.map(EspSeq::new),
        };
        self.make_room_for(key.line, data.sealed.len(), now);
        if self.flows.get(key.line, &key.flow).is_none() {
            self.begin(key, Flow::new(data.seq, now));
        }
        let room = self.config.octets.saturating_sub(self.octets.all);
        self.with_flow(&key, now, |flow, ctx| flow.handle_data(&data, room, ctx));
    }

    fn handle_ack(&mut self, segment: &Segment<'_>, now: Instant) -> Verdict {
        let key = Key::new(Side::Wireless, segment);
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

    /// Runs one of a connection's rules and updates the totals, the held acknowledgements and the
    /// alarm.
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

    /// Adds a connection. If the table is full, others of the owner with the most are evicted.
    fn begin(&mut self, key: Key, flow: Flow) {
        let used = |entry: &Entry| entry.flow.last_used();
        for (line, flow) in self.flows.crowded_out(self.config.flows, used) {
            self.evict(&Key { line, flow });
        }
        let alarm = flow.deadline(&self.config).at;
        self.alarms.insert((alarm, key));
        self.flows.insert(key.line, key.flow, Entry { flow, alarm });
    }

    /// Makes room for octets of a line by evicting connections of the owner that caches the most,
    /// of its largest line. If that owner is another one and caches more than this one will, or the
    /// same holds for the line, any of its connections may go. Otherwise only connections that were
    /// silent for the persist time go.
    fn make_room_for(&mut self, line: Option<Line>, octets: usize, now: Instant) {
        while self.octets.all + octets > self.config.octets {
            let Some(largest) = self.octets.largest() else {
                return;
            };
            let has_more = self.octets.has_more(largest, line, octets);
            let is_busy = |(busy, until): (Option<Line>, Instant)| busy == largest && now < until;
            if !has_more && self.octets.busy.is_some_and(is_busy) {
                return;
            }
            let flows = self.flows.in_line(largest);
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

    /// Sends the held acknowledgements of a composite SA before they are too old to be sent.
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

    /// Sends the held acknowledgement with this number.
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

    /// Forgets a connection and sends the acknowledgement it holds.
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
    /// Returns the connection a segment belongs to. Its data travels from the wired to the wireless
    /// side.
    fn new(from: Side, segment: &Segment<'_>) -> Self {
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
