//! A download in virtual time: server, wired hop, licensed node with or without SNOOP, wireless
//! hop, mobile node.
#![allow(dead_code, reason = "no test file uses all of it")]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

pub mod bench;
pub mod hop;
pub mod packet;
pub mod receiver;
pub mod sender;

use hop::{Hop, Loss};
use model::Instant;
use packet::{Packet, downward, upward};
use pep::{Config, Side, Snoop, Verdict};
use receiver::Receiver;
use sender::{MSS, Sender};
use std::collections::BTreeMap;
use std::time::Duration;

/// Parameters of a download.
pub struct Setup {
    pub snoop: bool,
    pub sealed: bool,
    pub sack: bool,
    pub wired_delay: Duration,
    pub queue: u64,
    pub receive_window: u64,
    pub segments: u64,
    pub initial: u32,
    pub loss: Loss,
    pub ack_loss: Loss,
    pub config: Config,
}

impl Setup {
    /// Returns the hops of the demo: 100 ms, then 2 Mb/s and 1 ms.
    pub fn new(snoop: bool, loss: Loss) -> Self {
        Self {
            snoop,
            sealed: true,
            sack: false,
            wired_delay: Duration::from_millis(100),
            queue: 100,
            receive_window: 64,
            segments: 3000,
            initial: 1,
            loss,
            ack_loss: hop::perfect(),
            config: Config::default(),
        }
    }
}

/// Result of a download.
pub struct Outcome {
    pub took: Duration,
    pub sender: Sender,
    pub receiver: Receiver,
    pub snoop: Snoop,
    pub down: Hop,
}

impl Outcome {
    /// Returns the goodput in octets per second.
    pub fn goodput(&self) -> f64 {
        self.sender.una as f64 * MSS as f64 / self.took.as_secs_f64()
    }

    /// Returns the details that a reader of a failed test needs.
    pub fn story(&self) -> String {
        format!(
            "{:.0} kb/s in {:.1?}; sender: {} fast retransmits, {} timeouts, {} again; hop: {} sent, {} lost, {} overflowed; replayed {}; {:?}",
            self.goodput() * 8.0 / 1000.0,
            self.took,
            self.sender.fast_retransmits,
            self.sender.timeouts,
            self.sender.retransmitted,
            self.down.sent,
            self.down.lost,
            self.down.overflowed,
            self.receiver.replayed,
            self.snoop.counters(),
        )
    }
}

enum Event {
    Node(Side, Packet),
    Receiver(Packet),
    Sender(Packet),
}

struct World {
    setup: (bool, bool, Duration),
    snoop: Snoop,
    sender: Sender,
    receiver: Receiver,
    down: Hop,
    up: Hop,
    events: BTreeMap<(Instant, u64), Event>,
    counter: u64,
    esp_down: u32,
    esp_up: u32,
}

/// Runs a download to its end, for at most an hour.
pub fn download(setup: Setup) -> Outcome {
    let (rate, delay) = (2_000_000, Duration::from_millis(1));
    let mut world = World {
        setup: (setup.snoop, setup.sealed, setup.wired_delay),
        snoop: Snoop::new(setup.config),
        sender: Sender::new(setup.initial, setup.segments, setup.receive_window),
        receiver: Receiver::new(setup.initial, setup.sack),
        down: Hop::new(rate, delay, setup.queue, setup.loss),
        up: Hop::new(rate, delay, 1000, setup.ack_loss),
        events: BTreeMap::new(),
        counter: 0,
        esp_down: 0,
        esp_up: 0,
    };
    let took = world.run();
    Outcome {
        took: took.since(Instant::ZERO),
        sender: world.sender,
        receiver: world.receiver,
        snoop: world.snoop,
        down: world.down,
    }
}

impl World {
    fn run(&mut self) -> Instant {
        let mut now = Instant::ZERO;
        let first = self.sender.start(now);
        self.leave_sender(first, now);
        while !self.sender.is_done() && now < Instant::from_origin(Duration::from_secs(3600)) {
            now = self.next_moment().max(now);
            while let Some(entry) = self.events.first_entry().filter(|e| e.key().0 <= now) {
                let event = entry.remove();
                self.handle(event, now);
            }
            let packets = self.sender.handle_timer(now);
            self.leave_sender(packets, now);
            let ack = self.receiver.handle_timer(now);
            self.leave_receiver(ack, now);
            if self.setup.0 && self.snoop.poll_timeout().is_some_and(|d| d.at <= now) {
                self.snoop.handle_timeout(now);
                self.flush(now);
            }
        }
        now
    }

    fn next_moment(&self) -> Instant {
        let snoop = self.snoop.poll_timeout().map(|deadline| deadline.at);
        let event = self.events.keys().next().map(|(at, _)| *at);
        [self.sender.timer(), self.receiver.timer(), snoop, event]
            .into_iter()
            .flatten()
            .min()
            .expect("somebody waits for something")
    }

    fn handle(&mut self, event: Event, now: Instant) {
        match event {
            Event::Node(side, packet) => self.at_node(side, packet, now),
            Event::Receiver(packet) => {
                let ack = self.receiver.handle_data(&packet, now);
                self.leave_receiver(ack, now);
            }
            Event::Sender(packet) => {
                let packets = self.sender.handle_ack(&packet, now);
                self.leave_sender(packets, now);
            }
        }
    }

    fn at_node(&mut self, side: Side, packet: Packet, now: Instant) {
        if self.setup.0 {
            let sealed = packet.sealed();
            let (flow, highest) = match side {
                Side::Wired => (downward(1), self.esp_down),
                Side::Wireless => (upward(1), self.esp_up),
            };
            let segment = packet.segment(flow, &sealed, highest);
            if self.snoop.handle_segment(side, &segment, now) == Verdict::Forward {
                self.forward(side.opposite(), packet, now);
            }
            self.flush(now);
        } else {
            self.forward(side.opposite(), packet, now);
        }
    }

    fn flush(&mut self, now: Instant) {
        while let Some((side, sealed)) = self.snoop.poll_transmit() {
            self.forward(side, Packet::unseal(&sealed), now);
        }
    }

    fn forward(&mut self, to: Side, packet: Packet, now: Instant) {
        match to {
            Side::Wireless => {
                if let Some(at) = self.down.send(&packet, now) {
                    self.at(at, Event::Receiver(packet));
                }
            }
            Side::Wired => self.at(now + self.setup.2, Event::Sender(packet)),
        }
    }

    fn leave_sender(&mut self, packets: Vec<Packet>, now: Instant) {
        for mut packet in packets {
            if self.setup.1 {
                self.esp_down += 1;
                packet = packet.esp(self.esp_down);
            }
            self.at(now + self.setup.2, Event::Node(Side::Wired, packet));
        }
    }

    fn leave_receiver(&mut self, ack: Option<Packet>, now: Instant) {
        let Some(mut ack) = ack else { return };
        if self.setup.1 {
            self.esp_up += 1;
            ack = ack.esp(self.esp_up);
        }
        if let Some(at) = self.up.send(&ack, now) {
            self.at(at, Event::Node(Side::Wireless, ack));
        }
    }

    fn at(&mut self, at: Instant, event: Event) {
        self.counter += 1;
        self.events.insert((at, self.counter), event);
    }
}
