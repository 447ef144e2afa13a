//! One end of a connection: the handshake (RFC 9293 section 3.5), and the conversion between stream
//! offsets from zero and sequence numbers that wrap.

use super::receiver::Receiver;
use super::segment::{Options, Segment, Timestamps};
use super::sender::{Ack, Outgoing, Sender};
use super::{Counters, Settings};
use crate::Stream;
use model::Instant;
use std::net::SocketAddrV4;
use std::time::Duration;
use wire::tcp::{Flags, Seq};

/// Time before an unanswered SYN is retransmitted (RFC 6298 section 2.1).
const PATIENCE: Duration = Duration::from_secs(1);

/// One end of a TCP connection.
///
/// Inputs are [`Connection::handle_datagram`] and [`Connection::handle_timeout`]; after each, and
/// after every command, call [`Connection::poll_datagram`] until `None`.
#[derive(Clone, Debug)]
pub struct Connection {
    settings: Settings,
    local: SocketAddrV4,
    remote: Option<SocketAddrV4>,
    state: State,
    /// Sequence numbers of the first octet in each direction.
    first: Seq,
    peer_first: Seq,
    peer_shift: u8,
    /// The peer's timestamp to echo.
    recent: u32,
    content: Stream,
    sender: Sender,
    receiver: Receiver,
    /// Handshake: time of the next SYN, and number of SYNs sent.
    due: Option<Instant>,
    attempts: u32,
    began: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Listening,
    Dialing,
    Answering,
    Established,
}

impl Connection {
    /// Opens a connection to a listening peer. [`Connection::write`] sends the octets of `content`.
    pub fn dial(
        settings: Settings,
        [local, remote]: [SocketAddrV4; 2],
        content: Stream,
        now: Instant,
    ) -> Self {
        Self {
            remote: Some(remote),
            state: State::Dialing,
            due: Some(now),
            ..Self::listen(settings, local, content)
        }
    }

    /// Waits for one peer to open a connection.
    pub fn listen(settings: Settings, local: SocketAddrV4, content: Stream) -> Self {
        Self {
            local,
            remote: None,
            state: State::Listening,
            // Any number works, but an early wrap tests the arithmetic.
            first: Seq(u32::MAX - 100_000),
            peer_first: Seq(0),
            peer_shift: 0,
            recent: 0,
            content,
            sender: Sender::new(&settings),
            receiver: Receiver::new(&settings),
            due: None,
            attempts: 0,
            began: Instant::ZERO,
            settings,
        }
    }

    /// Sends the next `octets` of the content.
    pub const fn write(&mut self, octets: u64) {
        self.sender.write(octets);
    }

    /// Returns the octets that arrived in order.
    pub fn read(&mut self, now: Instant) -> Vec<u8> {
        self.receiver.read(now)
    }

    /// Handles a datagram for this end. Ignores damaged datagrams and those of other connections.
    pub fn handle_datagram(&mut self, datagram: &[u8], now: Instant) {
        let Some(segment) = Segment::parse(datagram) else {
            return;
        };
        let known = self.remote.is_none_or(|remote| remote == segment.source);
        if segment.destination != self.local || !known {
            return;
        }
        match self.state {
            State::Listening => self.answer(&segment, now),
            State::Dialing => self.dialled(&segment, now),
            State::Answering => self.answered(&segment, now),
            State::Established => self.carry_on(&segment, now),
        }
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.sender.handle_timer(now);
    }

    /// Returns the next datagram to send.
    pub fn poll_datagram(&mut self, now: Instant) -> Option<Vec<u8>> {
        let segment = match self.state {
            State::Listening => None,
            State::Dialing => self.opening(Flags::SYN, now),
            State::Answering => self.opening(Flags::SYN.union(Flags::ACK), now),
            State::Established => self.next_segment(now),
        };
        segment.map(|segment| segment.encode())
    }

    /// Returns the time to call [`Connection::handle_timeout`], and then to poll.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let timers = match self.state {
            State::Listening => [None, None],
            State::Dialing | State::Answering => [self.due, None],
            State::Established => [self.sender.timer(), self.receiver.due()],
        };
        timers.into_iter().flatten().min()
    }

    /// Returns true if the handshake is complete.
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Returns the number of our octets that the peer has acknowledged.
    pub const fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }

    /// Returns the number of our octets that were sent at least once.
    pub const fn sent(&self) -> u64 {
        self.sender.next()
    }

    /// Returns the number of octets that arrived in order.
    pub const fn received(&self) -> u64 {
        self.receiver.next()
    }

    /// Returns the congestion window in segments.
    pub const fn congestion_window(&self) -> u32 {
        self.sender.window()
    }

    /// Returns the slow start threshold in segments, or `None` before the first loss.
    pub fn slow_start_threshold(&self) -> Option<u32> {
        self.sender.threshold()
    }

    /// Returns the octets of the stream that a full segment carries.
    pub const fn segment_len(&self) -> u64 {
        self.settings.payload_len() as u64
    }

    /// Returns the counters of the sending half.
    pub const fn counters(&self) -> &Counters {
        &self.sender.counters
    }

    // The handshake.

    fn answer(&mut self, segment: &Segment, now: Instant) {
        if segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK) {
            self.remote = Some(segment.source);
            self.meet(segment);
            self.state = State::Answering;
            self.due = Some(now);
        }
    }

    fn dialled(&mut self, segment: &Segment, now: Instant) {
        let both = Flags::SYN.union(Flags::ACK);
        if segment.flags.contains(both) && segment.ack == self.first {
            self.meet(segment);
            self.establish(u64::from(segment.window), now);
            self.receiver.handle_question(now);
        }
    }

    fn answered(&mut self, segment: &Segment, now: Instant) {
        if segment.flags.contains(Flags::SYN) {
            self.due = Some(now);
        } else if segment.flags.contains(Flags::ACK) && segment.ack == self.first {
            self.establish(u64::from(segment.window) << self.peer_shift, now);
            self.carry_on(segment, now);
        }
    }

    /// Negotiates the options that both ends support.
    fn meet(&mut self, segment: &Segment) {
        let (settings, offer) = (&mut self.settings, &segment.options);
        settings.mss = settings.mss.min(offer.mss.unwrap_or(536));
        settings.sack &= offer.sack_permitted;
        settings.timestamps &= offer.timestamps.is_some();
        self.peer_first = segment.seq + 1;
        self.peer_shift = offer.window_scale.unwrap_or(0);
        self.recent = offer.timestamps.map_or(0, |timestamps| timestamps.value);
        let written = self.sender.written();
        self.sender = Sender::new(&self.settings);
        self.sender.write(written);
        self.receiver = Receiver::new(&self.settings);
    }

    fn establish(&mut self, window: u64, now: Instant) {
        let round_trip = (self.attempts == 1).then(|| now - self.began);
        self.sender.open(window, round_trip);
        self.state = State::Established;
    }

    /// Returns a SYN, if one is due.
    fn opening(&mut self, flags: Flags, now: Instant) -> Option<Segment> {
        self.due.filter(|due| *due <= now)?;
        if self.attempts == 0 {
            self.began = now;
        }
        self.due = Some(now + PATIENCE * (1 << self.attempts.min(6)));
        self.attempts += 1;
        let window = self.receiver.window().min(u64::from(u16::MAX)) as u16;
        let mut segment = self.segment(flags, now)?;
        segment.seq = self.first + u32::MAX;
        segment.window = window;
        segment.options.mss = Some(self.settings.mss);
        segment.options.window_scale = Some(self.shift());
        segment.options.sack_permitted = self.settings.sack;
        Some(segment)
    }

    // The halves.

    fn carry_on(&mut self, segment: &Segment, now: Instant) {
        let start = unwrap(segment.seq, self.peer_first, self.receiver.next());
        let Some(start) = start.filter(|_| !segment.flags.contains(Flags::SYN)) else {
            // A repeated SYN, or a probe from before the first octet.
            return self.receiver.handle_question(now);
        };
        self.note_timestamp(segment, start);
        if let Some(ack) = self.acknowledgement(segment) {
            self.sender.handle_ack(&ack, now);
        }
        if !segment.payload.is_empty() {
            self.receiver.handle_data(start, &segment.payload, now);
        } else if start < self.receiver.next() {
            self.receiver.handle_question(now);
        }
    }

    /// Stores the timestamp to echo. A segment that was acknowledged before changes nothing
    /// (RFC 7323 section 4.3, rules 2 and 3).
    fn note_timestamp(&mut self, segment: &Segment, start: u64) {
        if let Some(timestamps) = segment.options.timestamps {
            let newer = timestamps.value.wrapping_sub(self.recent) as i32 >= 0;
            let told = self.receiver.told();
            if newer && (start..=start + segment.payload.len() as u64).contains(&told) {
                self.recent = timestamps.value;
            }
        }
    }

    fn acknowledgement(&self, segment: &Segment) -> Option<Ack> {
        let near = self.sender.acknowledged();
        let offset = |seq: Seq| unwrap(seq, self.first, near);
        let blocks = segment.options.sack.iter();
        let echo = segment.options.timestamps.map(|timestamps| timestamps.echo);
        Some(Ack {
            to: offset(segment.ack)?,
            window: u64::from(segment.window) << self.peer_shift,
            sack: blocks
                .filter_map(|(start, end)| Some((offset(*start)?, offset(*end)?)))
                .collect(),
            echo: echo.map(|echo| Instant::from_origin(Duration::from_millis(echo.into()))),
            with_data: !segment.payload.is_empty(),
        })
    }

    fn next_segment(&mut self, now: Instant) -> Option<Segment> {
        let (start, payload) = match self.sender.poll(now) {
            Some(Outgoing::Data { start, end }) => {
                (start, self.content.octets(start, (end - start) as usize))
            }
            // One octet before the window is not acceptable, so the peer has to answer.
            Some(Outgoing::Probe) => (self.sender.acknowledged().wrapping_sub(1), Vec::new()),
            None => {
                self.receiver.due().filter(|due| *due <= now)?;
                (self.sender.next(), Vec::new())
            }
        };
        let mut segment = self.segment(Flags::ACK, now)?;
        segment.seq = self.first + start as u32;
        segment.window = (self.receiver.window() >> self.shift()) as u16;
        segment.payload = payload;
        self.receiver.note_told();
        Some(segment)
    }

    /// Returns a segment with the fields that all have.
    fn segment(&self, flags: Flags, now: Instant) -> Option<Segment> {
        let value = now.since_origin().as_millis() as u32;
        let echo = self.recent;
        // The options have room for four blocks, or for three with timestamps.
        let limit = if self.settings.timestamps { 3 } else { 4 };
        let sack = self
            .receiver
            .sack(if self.settings.sack { limit } else { 0 });
        let seq = |offset: u64| self.peer_first + offset as u32;
        Some(Segment {
            source: self.local,
            destination: self.remote?,
            seq: self.first,
            ack: seq(self.receiver.next()),
            flags,
            window: 0,
            options: Options {
                timestamps: self
                    .settings
                    .timestamps
                    .then_some(Timestamps { value, echo }),
                sack: sack.map(|(start, end)| (seq(start), seq(end))).collect(),
                ..Options::default()
            },
            payload: Vec::new(),
        })
    }

    /// Returns the smallest shift with which the receive buffer fits the window field.
    fn shift(&self) -> u8 {
        let buffer = self.settings.receive_buffer;
        (0..14)
            .find(|shift| buffer >> shift <= u32::from(u16::MAX))
            .unwrap_or(14)
    }
}

/// Returns the offset for a sequence number near offset `near`; `None` before the first octet.
fn unwrap(seq: Seq, first: Seq, near: u64) -> Option<u64> {
    let distance = i64::from(seq.since(first + near as u32));
    near.checked_add_signed(distance)
}
