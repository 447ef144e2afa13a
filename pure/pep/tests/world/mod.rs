//! A download: server, wired hop, licensed node with or without SNOOP, wireless
//! hop, mobile node.
#![allow(dead_code, reason = "no test file uses all of it")]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

pub mod bench;
pub mod hop;
pub mod packet;
pub mod receiver;
pub mod sender;

use ::world::{Hosts, Network};
use hop::{Hop, Loss};
use model::Instant;
use packet::{Packet, downward, upward};
use pep::{Config, Side, Snoop, Verdict};
use receiver::Receiver;
use sender::{MSS, Sender};
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

/// The arrival of a packet.
enum Arrival {
    /// At the licensed node, from this side.
    Node(Side, Packet),
    Receiver(Packet),
    Sender(Packet),
}

struct World {
    /// True if the licensed node runs SNOOP.
    snoops: bool,
    sealed: bool,
    wired_delay: Duration,
    now: Instant,
    snoop: Snoop,
    sender: Sender,
    receiver: Receiver,
    down: Hop,
    up: Hop,
    network: Network<Arrival>,
    esp_down: u32,
    esp_up: u32,
}

/// Runs a download to its end, for at most an hour.
pub fn download(setup: Setup) -> Outcome {
    let (rate, delay) = (2_000_000, Duration::from_millis(1));
    let mut world = World {
        snoops: setup.snoop,
        sealed: setup.sealed,
        wired_delay: setup.wired_delay,
        now: Instant::ZERO,
        snoop: Snoop::new(setup.config),
        sender: Sender::new(setup.initial, setup.segments, setup.receive_window),
        receiver: Receiver::new(setup.initial, setup.sack),
        down: Hop::new(rate, delay, setup.queue, setup.loss),
        up: Hop::new(rate, delay, 1000, setup.ack_loss),
        network: Network::default(),
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
    /// Runs until the sender is done. Returns that time.
    fn run(&mut self) -> Instant {
        let first = self.sender.start(self.now);
        self.leave_sender(first);
        let end = Instant::from_origin(Duration::from_secs(3600));
        while !self.sender.is_done() && self.step(end) {}
        self.now
    }

    fn at_node(&mut self, side: Side, packet: Packet) {
        if !self.snoops {
            return self.forward(side.opposite(), packet);
        }
        let sealed = packet.sealed();
        let (flow, highest) = match side {
            Side::Wired => (downward(1), self.esp_down),
            Side::Wireless => (upward(1), self.esp_up),
        };
        let segment = packet.segment(flow, &sealed, highest);
        if self.snoop.handle_segment(side, &segment, self.now) == Verdict::Forward {
            self.forward(side.opposite(), packet);
        }
        self.flush();
    }

    fn flush(&mut self) {
        while let Some((side, sealed)) = self.snoop.poll_transmit() {
            self.forward(side, Packet::unseal(&sealed));
        }
    }

    fn forward(&mut self, to: Side, packet: Packet) {
        match to {
            Side::Wireless => {
                if let Some(at) = self.down.send(&packet, self.now) {
                    self.network.deliver(Arrival::Receiver(packet), at);
                }
            }
            Side::Wired => {
                let at = self.now + self.wired_delay;
                self.network.deliver(Arrival::Sender(packet), at);
            }
        }
    }

    fn leave_sender(&mut self, packets: Vec<Packet>) {
        for mut packet in packets {
            if self.sealed {
                self.esp_down += 1;
                packet = packet.esp(self.esp_down);
            }
            let at = self.now + self.wired_delay;
            self.network.deliver(Arrival::Node(Side::Wired, packet), at);
        }
    }

    fn leave_receiver(&mut self, ack: Option<Packet>) {
        let Some(mut ack) = ack else { return };
        if self.sealed {
            self.esp_up += 1;
            ack = ack.esp(self.esp_up);
        }
        if let Some(at) = self.up.send(&ack, self.now) {
            self.network.deliver(Arrival::Node(Side::Wireless, ack), at);
        }
    }
}

impl Hosts for World {
    type Packet = Arrival;

    fn clock(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn network(&mut self) -> &mut Network<Arrival> {
        &mut self.network
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let snoop = self.snoop.poll_timeout().map(|deadline| deadline.at);
        let timers = [self.sender.timer(), self.receiver.timer(), snoop];
        timers.into_iter().flatten().min()
    }

    fn handle_timeout(&mut self) {
        let packets = self.sender.handle_timer(self.now);
        self.leave_sender(packets);
        let ack = self.receiver.handle_timer(self.now);
        self.leave_receiver(ack);
        let deadline = self.snoop.poll_timeout().filter(|_| self.snoops);
        if deadline.is_some_and(|deadline| deadline.at <= self.now) {
            self.snoop.handle_timeout(self.now);
            self.flush();
        }
    }

    fn receive(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Node(side, packet) => self.at_node(side, packet),
            Arrival::Receiver(packet) => {
                let ack = self.receiver.handle_data(&packet, self.now);
                self.leave_receiver(ack);
            }
            Arrival::Sender(packet) => {
                let packets = self.sender.handle_ack(&packet, self.now);
                self.leave_sender(packets);
            }
        }
    }
}
