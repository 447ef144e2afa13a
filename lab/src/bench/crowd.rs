//! The initiators: one engine each, all behind one socket, driven by one thread.
//!
//! They start on the port that IKE and ESP share, so that one socket is enough: "an initiator can
//! use port 4500 for both IKE and ESP, regardless of whether or not there is a NAT, even at the
//! beginning of IKE" (RFC 7296 section 2.23). The port has another number here, because the
//! responder occupies 4500 if both are on one host.

use super::certificates::{self, Certificates};
use super::client::{Client, SEALED};
use super::responder::{self, Place, Terms};
use crate::host::Host;
use anyhow::{Context, Result, ensure};
use crypto::Secret;
use esp::Packet;
use ike::{Addressing, Engine, Event, PeerRole, Resumption, SaStatus, ZonePolicy};
use model::{ChildSa, Features, Instant, Mode, Path, PeerId, TrafficSelector};
use os::poll::{Interest, Poller, Ready};
use os::{Datagrams, clock, entropy};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Port of all initiators.
const PORT: u16 = 14_500;

/// Prefix of IKE messages on a shared port (RFC 3948 section 2.2).
pub(super) const NON_ESP_MARKER: &[u8] = &[0; 4];

/// Largest number of initiators to start before arrived datagrams are read, so that the receive
/// buffer does not overflow.
const BREATH: usize = 32;

/// Time without a start or an outcome until initiators that are not up have failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// The same if initiators that give up begin again. Each gives up after less than two minutes.
const LONG_PATIENCE: Duration = Duration::from_secs(150);

/// Time after which an initiator has given a lost IKE SA up for certain.
const LONGEST_LOSS: Duration = Duration::from_secs(600);

/// Time after which a packet of a tunnel, or its answer, counts as lost, which is more than the
/// longest round trip; and number of attempts.
const ECHO_PATIENCE: Duration = Duration::from_secs(1);
const ECHO_ATTEMPTS: u16 = 6;

/// Time after which an initiator that is not up, and begins again if it gives up, begins another
/// attempt beside, as a daemon does.
const BESIDE: Duration = Duration::from_secs(4);

/// Pace at which initiators start.
#[derive(Clone, Copy)]
pub(super) enum Pace {
    /// Starts one as soon as fewer than this number are under way.
    Queue(usize),
    /// Starts one at this interval.
    Every(Duration),
}

/// All initiators so far, in the order of their start.
pub(super) struct Crowd {
    place: Place,
    udp: Datagrams,
    poller: Poller,
    ready: Vec<Ready>,
    initiators: Vec<Initiator>,
    deadlines: BTreeSet<(Instant, usize)>,
    under_way: usize,
    key: Secret,
    terms: Terms,
    certificates: Option<Certificates>,
    /// Lengths of the datagrams of the very first set-up, in both directions.
    dialogue: Vec<usize>,
    tunnels: Vec<Tunnel>,
    /// Way in which initiators from now on resume lost sessions.
    resumption: Resumption,
    /// True if initiators that give up begin again, and those that have to.
    persistent: bool,
    gave_up: Vec<usize>,
    /// Number of messages that arrived.
    heard: usize,
}

/// An established tunnel of an initiator.
pub(super) struct Tunnel {
    /// Number of the initiator.
    pub number: u32,
    pub child: Box<ChildSa<Secret>>,
}

struct Initiator {
    engine: Engine,
    /// Time that its clock is ahead of ours.
    ahead: Duration,
    began: Instant,
    deadline: Option<Instant>,
    /// `None` while the set-up is under way.
    outcome: Option<Outcome>,
    /// True if its IKE SA came up by resumption.
    resumed: bool,
    /// Datagrams sent before the set-up began.
    before: Sent,
    /// Time of another attempt beside the one that is not answered.
    again_at: Instant,
}

/// Number of datagrams sent.
#[derive(Clone, Copy, Default)]
struct Sent {
    all: u64,
    /// Retransmitted requests among them.
    again: u64,
}

impl Initiator {
    /// Handles a message, by the clock of the initiator.
    fn hear(&mut self, path: Path, message: &[u8], now: Instant) {
        self.engine.handle_datagram(path, message, now + self.ahead);
    }
}

enum Outcome {
    Up(Duration),
    Failed(String),
}

/// Result of a run.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// Number of initiators that should start.
    pub wanted: usize,
    /// Number of initiators that are up.
    pub up: usize,
    /// Reason of the first failure.
    pub failure: Option<String>,
    /// Time from the first start until no set-up was under way.
    pub lasted: Duration,
    /// Durations of the successful set-ups, the shortest first.
    pub setups: Vec<Duration>,
    /// Times from the first start until each of them was up, the shortest first.
    pub served: Vec<Duration>,
    /// Number of set-ups that resumed a session.
    pub resumed: usize,
    /// Requests, without retransmissions.
    pub requests: u64,
    /// Retransmitted requests.
    pub retransmitted: u64,
}

impl Crowd {
    /// Creates a crowd without initiators, which will authenticate by a pre-shared key.
    pub fn new(host: &Host, place: Place) -> Result<Self> {
        Self::on(Terms::Psk, host, place, None)
    }

    /// Creates a crowd without initiators for these terms. [`Terms::Ecdsa`] needs certificates.
    pub fn on(
        terms: Terms,
        host: &Host,
        place: Place,
        certificates: Option<Certificates>,
    ) -> Result<Self> {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT));
        let udp = host.inside(|| Ok(Datagrams::udp(any, None)?))?;
        let poller = Poller::new()?;
        poller.add(&udp, 0, Interest::Read)?;
        Ok(Self {
            place,
            udp,
            poller,
            ready: Vec::new(),
            initiators: Vec::new(),
            deadlines: BTreeSet::new(),
            under_way: 0,
            key: Secret::new(responder::KEY.to_vec()),
            terms,
            certificates,
            dialogue: Vec::new(),
            tunnels: Vec::new(),
            resumption: Resumption::Off,
            persistent: false,
            gave_up: Vec::new(),
            heard: 0,
        })
    }

    /// Has all initiators from now on resume lost sessions in this way.
    pub const fn resume(&mut self, way: Resumption) {
        self.resumption = way;
    }

    /// Has initiators that give up begin again at once.
    pub const fn persist(&mut self) {
        self.persistent = true;
    }

    /// Gives all initiators from now on a key that the responder does not have.
    pub fn forget_the_key(&mut self) {
        self.key = Secret::new(b"some key that the responder has not".to_vec());
    }

    /// Returns the number of initiators that are up.
    pub fn up(&self) -> usize {
        let outcomes = self.initiators.iter().map(|one| &one.outcome);
        outcomes
            .filter(|outcome| matches!(outcome, Some(Outcome::Up(_))))
            .count()
    }

    /// Returns the established tunnels and the shared socket, for packets.
    pub fn into_tunnels(self) -> (Vec<Tunnel>, Datagrams) {
        (self.tunnels, self.udp)
    }

    /// Returns the lengths of the four messages of a set-up, without the marker.
    pub fn dialogue(&self) -> Result<[usize; 4]> {
        let lengths = self.dialogue.iter().map(|len| len - NON_ESP_MARKER.len());
        let lengths: Vec<_> = lengths.collect();
        let four: Result<[usize; 4], _> = lengths.as_slice().try_into();
        four.with_context(|| format!("the first set-up took {lengths:?} and not four messages"))
    }

    /// Starts this many more initiators, and waits until each is up or has failed.
    pub fn run(&mut self, count: usize, pace: Pace) -> Result<Run> {
        let from = self.initiators.len();
        self.drive(from, count, pace, |crowd, _| crowd.begin())
    }

    /// Has the last initiators, which have lost their IKE SAs, begin again, and waits until each is
    /// up or has failed.
    pub fn run_again(&mut self, count: usize, pace: Pace) -> Result<Run> {
        let from = self.initiators.len().saturating_sub(count);
        self.drive(from, count, pace, Self::begin_again)
    }

    /// Has `begin` start one initiator after the other, the first with the number `from`.
    fn drive(
        &mut self,
        from: usize,
        count: usize,
        pace: Pace,
        begin: impl Fn(&mut Self, usize) -> Result<()>,
    ) -> Result<Run> {
        let start = clock::now();
        let time = self.patience();
        let (mut begun, mut under_way, mut patience) = (0, 0, start + time);
        loop {
            let now = clock::now();
            if now >= patience || (begun == count && self.under_way == 0) {
                break;
            }
            let due = match pace {
                Pace::Queue(most) => most.saturating_sub(self.under_way),
                Pace::Every(pause) => due(now.since(start), pause).saturating_sub(begun),
            };
            let due = due.min(count - begun);
            for _ in 0..due.min(BREATH) {
                begin(self, from + begun)?;
                begun += 1;
            }
            if due > 0 || self.under_way < under_way {
                patience = now + time;
            }
            under_way = self.under_way;
            let next = match pace {
                _ if due > BREATH => now,
                Pace::Every(pause) if begun < count => start + pause * begun as u32,
                Pace::Every(_) | Pace::Queue(_) => patience,
            };
            self.turn(next)?;
            self.replace_lost();
        }
        self.give_up(from);
        Ok(self.summary(from, count, start))
    }

    /// Deletes the tunnels of the last initiators, and waits until the responder has confirmed.
    pub fn leave(&mut self, count: usize) -> Result<()> {
        let from = self.initiators.len().saturating_sub(count);
        let (mut next, mut leaving) = (from..self.initiators.len(), Vec::new());
        let mut patience = clock::now() + PATIENCE;
        loop {
            let is_up = |one: &usize| self.initiators[*one].engine.sas().next().is_some();
            leaving.retain(is_up);
            let (now, has_room) = (clock::now(), leaving.len() < BREATH);
            if has_room && let Some(index) = next.next() {
                let leaver = &mut self.initiators[index];
                leaver.engine.shutdown(now + leaver.ahead);
                self.process(index, now);
                leaving.push(index);
                patience = now + PATIENCE;
            } else if !leaving.is_empty() {
                let count = leaving.len();
                ensure!(now < patience, "{count} tunnels do not end");
                self.turn(patience)?;
            } else {
                break;
            }
        }
        self.initiators.truncate(from);
        self.deadlines.retain(|(_, index)| *index < from);
        self.tunnels
            .retain(|tunnel| (tunnel.number as usize) < from);
        Ok(())
    }

    /// Has the last initiators lose their IKE SAs: their clocks run on while nothing that they send
    /// leaves. They keep what resumes a session, and the responder keeps the IKE SAs.
    pub fn lose(&mut self, count: usize) -> Result<()> {
        let from = self.initiators.len().saturating_sub(count);
        for index in from..self.initiators.len() {
            let initiator = &mut self.initiators[index];
            let engine = &mut initiator.engine;
            let ids: Vec<_> = engine.sas().map(|sa| sa.id).collect();
            for id in ids {
                engine.rekey_ike(id, clock::now() + initiator.ahead);
            }
            let most = initiator.ahead + LONGEST_LOSS;
            while engine.sas().next().is_some() {
                ensure!(initiator.ahead < most, "an initiator never gives up");
                initiator.ahead += Duration::from_secs(1);
                engine.handle_timeout(clock::now() + initiator.ahead);
                while engine.poll_transmit().is_some() {}
            }
            while engine.poll_event().is_some() {}
        }
        let from = u32::try_from(from)?;
        self.tunnels.retain(|tunnel| tunnel.number < from);
        Ok(())
    }

    /// Handles datagrams until none has come for this long and no request is without an answer.
    pub fn settle(&mut self, time: Duration) -> Result<()> {
        let patience = clock::now() + self.patience();
        loop {
            let until = clock::now() + time;
            let before = self.heard;
            while clock::now() < until {
                self.turn(until)?;
                self.replace_lost();
            }
            let waiting = self.initiators.iter().filter(|one| one.is_waiting());
            let waiting = waiting.count();
            if self.heard == before && waiting == 0 {
                return Ok(());
            }
            ensure!(
                until < patience,
                "requests of {waiting} initiators are not answered"
            );
        }
    }

    /// Has initiators begin again that gave up, or need another attempt beside.
    fn replace_lost(&mut self) {
        for index in mem::take(&mut self.gave_up) {
            // It may have as many attempts as are allowed, and goes on with them.
            let _ = self.initiate(index);
        }
    }

    /// Sends an echo request through each tunnel that is new since the last call, and waits for all
    /// replies. If an initiator has several, the last one counts: it replaces the others.
    pub fn echo(&mut self) -> Result<()> {
        let tunnels = mem::take(&mut self.tunnels).into_iter();
        let last: BTreeMap<_, _> = tunnels.map(|tunnel| (tunnel.number, tunnel)).collect();
        let mut tunnels = last.into_values();
        loop {
            let clients = tunnels.by_ref().take(BREATH).map(|tunnel| {
                let client = Client::new(tunnel)?;
                Ok((client.path.local.ip(), client))
            });
            let mut clients = clients.collect::<Result<BTreeMap<_, _>>>()?;
            if clients.is_empty() {
                return Ok(());
            }
            for attempt in 0..ECHO_ATTEMPTS {
                self.ask(&mut clients, attempt)?;
            }
            let lost = clients.len();
            ensure!(lost == 0, "{lost} echoes did not come back");
        }
    }

    /// Sends an echo request for each client, and removes those that get a reply in time.
    fn ask(&mut self, clients: &mut BTreeMap<IpAddr, Client>, sequence: u16) -> Result<()> {
        let mut packet = Packet::with_capacity(SEALED);
        for client in clients.values_mut() {
            client.request(&mut packet, sequence, clock::now())?;
            self.udp.send(client.path, 0, packet.octets())?;
        }
        let deadline = clock::now() + ECHO_PATIENCE;
        let (mut replies, mut messages) = (Vec::new(), Vec::new());
        while !clients.is_empty() && clock::now() < deadline {
            let read =
                self.udp.recv(
                    |arrival, payload| match payload.strip_prefix(NON_ESP_MARKER) {
                        Some(message) => messages.push((arrival.path, message.to_vec())),
                        None => replies.push((arrival.path, payload.to_vec())),
                    },
                );
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.poller.wait(Some(deadline), &mut self.ready)?;
                }
                read => {
                    read.context("reading echoes")?;
                }
            }
            for (path, octets) in replies.drain(..) {
                if let Some(mut client) = clients.remove(&path.local.ip()) {
                    packet.fill(&octets);
                    packet.path = Some(path);
                    client.check(&mut packet, clock::now())?;
                }
            }
            for (path, message) in messages.drain(..) {
                self.hear(path, &message);
            }
        }
        Ok(())
    }

    /// Answers a message that comes between replies to echo requests.
    fn hear(&mut self, path: Path, message: &[u8]) {
        let now = clock::now();
        let index = self.place.number_of(path.local.ip()).unwrap_or(usize::MAX);
        if let Some(initiator) = self.initiators.get_mut(index) {
            initiator.hear(path, message, now);
            self.heard += 1;
            self.process(index, now);
        }
    }

    const fn patience(&self) -> Duration {
        match self.persistent {
            true => LONG_PATIENCE,
            false => PATIENCE,
        }
    }

    /// Marks the initiators that are still under way as failed.
    fn give_up(&mut self, from: usize) {
        let time = self.patience().as_secs();
        for initiator in &mut self.initiators[from..] {
            let why = || Outcome::Failed(format!("no end in {time} s"));
            initiator.outcome.get_or_insert_with(why);
        }
        self.under_way = 0;
    }

    fn begin(&mut self) -> Result<()> {
        let (index, now) = (self.initiators.len(), clock::now());
        let number = u32::try_from(index)?;
        let path = self.path(number);
        let mut config = config(number, self.key.clone(), PORT, self.place);
        config.peers[0].resumption = self.resumption;
        if self.terms == Terms::Leased {
            config.peers[0].role = role(Addressing::Requested, everything());
        }
        if let Some(certificates) = &self.certificates {
            certificates.certify(number, &mut config)?;
        }
        let mut engine = Engine::new(config, entropy::seed(), now);
        engine.set_wall_clock(certificates::today());
        engine.initiate(PEER, path, now)?;
        self.initiators.push(Initiator {
            engine,
            ahead: Duration::ZERO,
            began: now,
            deadline: None,
            outcome: None,
            resumed: false,
            before: Sent::default(),
            again_at: now + BESIDE,
        });
        self.under_way += 1;
        self.process(index, now);
        Ok(())
    }

    fn begin_again(&mut self, index: usize) -> Result<()> {
        let initiator = &mut self.initiators[index];
        initiator.before = initiator.sent();
        (initiator.began, initiator.outcome) = (clock::now(), None);
        initiator.resumed = false;
        self.under_way += 1;
        self.initiate(index)
    }

    fn initiate(&mut self, index: usize) -> Result<()> {
        let now = clock::now();
        let path = self.path(u32::try_from(index)?);
        let initiator = &mut self.initiators[index];
        let theirs = now + initiator.ahead;
        initiator.again_at = now + BESIDE;
        initiator.engine.initiate(PEER, path, theirs)?;
        self.process(index, now);
        Ok(())
    }

    fn path(&self, number: u32) -> Path {
        Path::udp(
            SocketAddr::new(self.place.address_of(number), PORT),
            SocketAddr::new(self.place.responder, ike::NATT_PORT),
        )
    }

    /// Waits until a datagram arrives or a timer is due, at most until `until`, and handles it.
    fn turn(&mut self, until: Instant) -> Result<()> {
        let next = self.deadlines.first().map(|(at, _)| *at);
        let until = next.map_or(until, |next| next.min(until));
        self.poller.wait(Some(until), &mut self.ready)?;
        while self.receive()? {}
        let now = clock::now();
        while let Some(&(at, index)) = self.deadlines.first()
            && at <= now
        {
            let initiator = &mut self.initiators[index];
            initiator.engine.handle_timeout(now + initiator.ahead);
            if initiator.again_at <= now {
                initiator.again_at = now + BESIDE;
                if self.persistent && initiator.needs_another() {
                    self.gave_up.push(index);
                }
            }
            self.process(index, now);
        }
        Ok(())
    }

    /// Handles the datagrams of one system call; returns false if there are none.
    fn receive(&mut self) -> Result<bool> {
        let Self {
            place,
            udp,
            initiators,
            dialogue,
            ..
        } = self;
        let now = clock::now();
        let mut spoken_to = Vec::new();
        let read = udp.recv(|arrival, payload| {
            let Some(index) = place.number_of(arrival.path.local.ip()) else {
                return;
            };
            let message = payload.strip_prefix(NON_ESP_MARKER);
            if let (Some(initiator), Some(message)) = (initiators.get_mut(index), message) {
                if index == 0 && initiator.outcome.is_none() {
                    dialogue.push(payload.len());
                }
                initiator.hear(arrival.path, message, now);
                spoken_to.push(index);
            }
        });
        match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            read => read.context("reading what the responder answers")?,
        };
        self.heard += spoken_to.len();
        for index in spoken_to {
            self.process(index, now);
        }
        Ok(true)
    }

    /// Sends an engine's messages, handles its events and updates its timer.
    fn process(&mut self, index: usize, now: Instant) {
        let initiator = &mut self.initiators[index];
        while let Some(transmit) = initiator.engine.poll_transmit() {
            if index == 0 && initiator.outcome.is_none() {
                self.dialogue.push(transmit.payload.len());
            }
            // A datagram that a full buffer rejects is lost, as on any path, and retransmitted.
            let _ = self.udp.send(transmit.path, 0, &transmit.payload);
        }
        while let Some(event) = initiator.engine.poll_event() {
            let outcome = match event {
                // By SKID3, an initiator is up before the responder is: another one may follow.
                Event::IkeUp { resumed, .. } | Event::IkeReplaced { resumed, .. } => {
                    initiator.resumed = resumed;
                    continue;
                }
                Event::ChildUp(child) => {
                    let number = index as u32;
                    self.tunnels.push(Tunnel { number, child });
                    Outcome::Up(now.since(initiator.began))
                }
                Event::NotResumed { .. } => {
                    initiator.resumed = false;
                    continue;
                }
                Event::ChildDown { child, .. } => {
                    let is_other = |tunnel: &Tunnel| {
                        tunnel.number as usize != index || tunnel.child.id != child
                    };
                    self.tunnels.retain(is_other);
                    continue;
                }
                Event::IkeDown { .. } if self.persistent => {
                    // Another one may be under way beside it, or up.
                    if initiator.engine.sas().next().is_none() {
                        self.gave_up.push(index);
                    }
                    continue;
                }
                Event::IkeDown { why, .. } => Outcome::Failed(why.to_string()),
                _ => continue,
            };
            if initiator.outcome.replace(outcome).is_none() {
                self.under_way -= 1;
            }
        }
        let theirs = now + initiator.ahead;
        let deadline = initiator.engine.poll_timeout();
        let deadline = deadline.map(|deadline| now + deadline.at.since(theirs));
        let again = (self.persistent && initiator.outcome.is_none()).then_some(initiator.again_at);
        let deadline = deadline.into_iter().chain(again).min();
        if initiator.deadline != deadline {
            let before = mem::replace(&mut initiator.deadline, deadline);
            if let Some(before) = before {
                self.deadlines.remove(&(before, index));
            }
            self.deadlines.extend(deadline.map(|at| (at, index)));
        }
    }

    fn summary(&self, from: usize, wanted: usize, start: Instant) -> Run {
        let mut run = Run {
            wanted,
            lasted: clock::now().since(start),
            ..Run::default()
        };
        for initiator in &self.initiators[from..] {
            let (sent, before) = (initiator.sent(), initiator.before);
            let again = sent.again - before.again;
            run.retransmitted += again;
            run.requests += sent.all - before.all - again;
            run.resumed += usize::from(initiator.resumed);
            match &initiator.outcome {
                Some(Outcome::Up(took)) => {
                    run.setups.push(*took);
                    run.served.push(initiator.began.since(start) + *took);
                }
                Some(Outcome::Failed(why)) => {
                    run.failure.get_or_insert_with(|| why.clone());
                }
                None => {}
            }
        }
        run.setups.sort_unstable();
        run.served.sort_unstable();
        run.up = run.setups.len();
        run
    }
}

impl Run {
    /// Checks that all initiators are up.
    pub fn complete(&self) -> Result<()> {
        let Self {
            up,
            wanted,
            failure,
            ..
        } = self;
        let why = failure.as_deref().unwrap_or_default();
        ensure!(up == wanted, "{up} of {wanted} are up: {why}");
        Ok(())
    }
}

impl Initiator {
    /// Returns true if the responder seems to have lost what it has answered.
    fn needs_another(&self) -> bool {
        let mut sas = self.engine.sas();
        let is_lost = |sa: SaStatus| sa.allows_another && sa.tries > 1 && !sa.refused;
        self.outcome.is_none() && sas.any(is_lost)
    }

    fn is_waiting(&self) -> bool {
        self.engine.sas().any(|sa| sa.tries > 0)
    }

    fn sent(&self) -> Sent {
        let counters = self.engine.counters();
        Sent {
            all: counters.sent,
            again: counters.retransmitted,
        }
    }
}

/// Returns the number of initiators that should have started by then; the first starts at once.
fn due(elapsed: Duration, pause: Duration) -> usize {
    1 + (elapsed.as_nanos() / pause.as_nanos().max(1)) as usize
}

/// The responder, to the initiators.
pub(super) const PEER: PeerId = PeerId(0);

/// Returns an initiator's configuration, without liveness checks or rekeys after the set-up.
pub(super) fn config(number: u32, key: Secret, port: u16, place: Place) -> ike::Config {
    let role = role(Addressing::Fixed, responder::inner(number));
    let mut responder = ike::Peer::new(PEER, responder::identity(), role);
    responder.address = Some(place.responder);
    responder.psk = Some(key);
    responder.liveness = Duration::ZERO;
    responder.lifetimes.child = Duration::ZERO;
    responder.lifetimes.ike = Duration::ZERO;
    responder.features = Features::offered();
    ike::Config {
        natt_port: port,
        ..ike::Config::new(responder::identity_of(number), vec![responder])
    }
}

fn role(addressing: Addressing, local: TrafficSelector) -> PeerRole {
    PeerRole::Vpn {
        local: vec![local].into(),
        remote: vec![responder::protected()].into(),
        addressing,
        zones: ZonePolicy::default().into(),
        mode: Mode::Tunnel,
    }
}

fn everything() -> TrafficSelector {
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    TrafficSelector::from_prefix(any, 0).expect("no length is shorter")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_begins_every_so_often_begins_at_once_and_then_every_so_often() {
        let pause = Duration::from_millis(10);
        let due = |millis| due(Duration::from_millis(millis), pause);
        assert_eq!([0, 9, 10, 95, 990].map(due), [1, 1, 2, 10, 100]);
    }
}
