//! Two ends. The path between them loses, repeats and delays segments as a test demands. Each test
//! checks one rule.

use super::segment::Segment;
use super::{Connection, Settings};
use crate::Stream;
use model::Instant;
use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::time::Duration;
use wire::tcp::Flags;
use world::{Hosts, Network};

const MSS: usize = 1000;
const DELAY: Duration = Duration::from_millis(50);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(ms: u64) -> Instant {
    Instant::from_origin(Duration::from_millis(ms))
}

/// Fate of a data segment of the server on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Arrives,
    Lost,
    Twice,
    Late,
}

/// A datagram on the path.
struct Flight {
    to_client: bool,
    datagram: Vec<u8>,
}

/// A server that sends and a client that receives.
struct Pair {
    now: Instant,
    client: Connection,
    server: Connection,
    network: Network<Flight>,
    /// Fate of the server's nth data segment, counted from 0, retransmissions included.
    fates: BTreeMap<u64, Fate>,
    /// Send time and first octet of each data segment.
    sent: Vec<(Instant, u64)>,
    /// Pure acknowledgements of the client: send time and number of SACK blocks.
    acks: Vec<(Instant, usize)>,
    cut: bool,
    received: Vec<u8>,
    reads: bool,
}

impl Pair {
    /// Returns a connected pair. The server has measured the round trip.
    fn new(settings: Settings) -> Self {
        let ends: [SocketAddrV4; 2] =
            ["10.0.0.1:40000", "10.0.0.2:80"].map(|text| text.parse().unwrap());
        let content = Stream::new(1);
        let mut pair = Self {
            now: Instant::ZERO,
            client: Connection::dial(settings.clone(), ends, Stream::new(2), Instant::ZERO),
            server: Connection::listen(settings, ends[1], content),
            network: Network::default(),
            fates: BTreeMap::new(),
            sent: Vec::new(),
            acks: Vec::new(),
            cut: false,
            received: Vec::new(),
            reads: true,
        };
        pair.run_for(ms(200));
        assert!(pair.client.is_established() && pair.server.is_established());
        pair.acks.clear();
        pair
    }

    fn with(sack: bool) -> Self {
        Self::new(Settings {
            mss: MSS as u16 + 12,
            sack,
            ..Settings::default()
        })
    }

    fn fate(mut self, segment: u64, fate: Fate) -> Self {
        self.fates.insert(segment, fate);
        self
    }

    fn depart(&mut self) {
        while let Some(datagram) = self.server.poll_datagram(self.now) {
            let segment = Segment::parse(&datagram).unwrap();
            let mut fate = Fate::Arrives;
            if !segment.payload.is_empty() {
                fate = *self.fates.get(&(self.sent.len() as u64)).unwrap_or(&fate);
                let start = segment.seq.since(wire::tcp::Seq(u32::MAX - 100_000));
                self.sent.push((self.now, start as u64));
            }
            match fate {
                Fate::Lost => {}
                Fate::Arrives => self.fly(true, datagram, DELAY),
                Fate::Late => self.fly(true, datagram, DELAY + ms(5)),
                Fate::Twice => {
                    self.fly(true, datagram.clone(), DELAY);
                    self.fly(true, datagram, DELAY);
                }
            }
        }
        while let Some(datagram) = self.client.poll_datagram(self.now) {
            let segment = Segment::parse(&datagram).unwrap();
            if segment.payload.is_empty() && !segment.flags.contains(Flags::SYN) {
                self.acks.push((self.now, segment.options.sack.len()));
            }
            self.fly(false, datagram, DELAY);
        }
    }
    fn fly(&mut self, to_client: bool, datagram: Vec<u8>, delay: Duration) {
        if !self.cut {
            let flight = Flight {
                to_client,
                datagram,
            };
            self.network.deliver(flight, self.now + delay);
        }
    }

    /// Returns the number of transmissions of the segment that starts at this octet.
    fn times(&self, octet: u64) -> usize {
        self.sent
            .iter()
            .filter(|(_, start)| *start == octet)
            .count()
    }

    fn assert_complete(&self, octets: u64) {
        assert_eq!(self.received, Stream::new(1).octets(0, octets as usize));
        assert_eq!(self.server.acknowledged(), octets);
    }
}

impl Hosts for Pair {
    type Packet = Flight;

    fn clock(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn network(&mut self) -> &mut Network<Flight> {
        &mut self.network
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let timers = [self.client.poll_timeout(), self.server.poll_timeout()];
        timers.into_iter().flatten().min()
    }

    fn handle_timeout(&mut self) {
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
    }

    fn receive(&mut self, flight: Flight) {
        let to = if flight.to_client {
            &mut self.client
        } else {
            &mut self.server
        };
        to.handle_datagram(&flight.datagram, self.now);
        self.depart();
    }

    fn collect(&mut self) {
        if self.reads {
            self.received.extend(self.client.read(self.now));
        }
        self.depart();
    }
}

#[test]
fn slow_start_begins_with_ten_segments_and_doubles_each_round_trip() {
    let mut pair = Pair::with(false);
    assert_eq!(pair.server.congestion_window(), 10);
    pair.server.write(1_000_000);
    let mut flights = Vec::new();
    for _ in 0..3 {
        let before = pair.sent.len();
        pair.run_for(ms(99));
        flights.push(pair.sent.len() - before);
    }
    assert_eq!(flights[0], 10, "nothing was acknowledged yet at 100 ms");
    assert!(flights[1] >= 18 && flights[2] >= 36, "{flights:?}");
}

/// RFC 7661 section 1: an unused window is no evidence of the path's capacity.
#[test]
fn a_window_grows_only_while_it_is_in_use() {
    let mut pair = Pair::with(false);
    for _ in 0..20 {
        pair.server.write(MSS as u64);
        pair.run_for(ms(200));
    }
    pair.assert_complete(20 * MSS as u64);
    assert_eq!(pair.server.congestion_window(), 10);
}

#[test]
fn the_third_duplicate_acknowledgement_sends_the_lost_segment_again_and_halves_the_window() {
    for sack in [false, true] {
        let mut pair = Pair::with(sack).fate(2, Fate::Lost);
        pair.server.write(200_000);
        pair.run_for(ms(3000));
        pair.assert_complete(200_000);
        let counters = pair.server.counters();
        assert_eq!(
            (counters.recoveries, counters.timeouts),
            (1, 0),
            "SACK {sack}"
        );
        assert_eq!((counters.sent_again, pair.times(2 * MSS as u64)), (1, 2));
        let (again, _) = pair
            .sent
            .iter()
            .filter(|(_, start)| *start == 2000)
            .nth(1)
            .unwrap();
        assert_eq!(*again, at(300), "one round trip after the first was sent");
        assert!(
            pair.server
                .slow_start_threshold()
                .is_some_and(|t| (5..=8).contains(&t))
        );
    }
}

#[test]
fn two_duplicates_prove_nothing() {
    for sack in [false, true] {
        // The third segment comes after the fifth: two duplicates, and it was only late.
        let mut pair = Pair::with(sack).fate(2, Fate::Late);
        pair.server.write(5 * MSS as u64);
        pair.run_for(ms(1000));
        pair.assert_complete(5 * MSS as u64);
        assert_eq!(pair.server.counters().sent_again, 0);
    }
}

#[test]
fn partial_acknowledgements_repair_one_loss_each_round_trip_without_sack() {
    let lost = [2, 4, 6];
    let pair = lost
        .into_iter()
        .fold(Pair::with(false), |pair, n| pair.fate(n, Fate::Lost));
    let mut pair = pair;
    pair.server.write(100_000);
    pair.run_for(ms(3000));
    pair.assert_complete(100_000);
    let counters = pair.server.counters();
    assert_eq!((counters.recoveries, counters.timeouts), (1, 0));
    let again = |n: u64| {
        pair.sent
            .iter()
            .filter(|(_, start)| *start == n * 1000)
            .nth(1)
            .unwrap()
            .0
    };
    assert_eq!([again(2), again(4), again(6)], [at(300), at(400), at(500)]);
}

#[test]
fn sack_repairs_several_losses_in_one_round_trip() {
    let lost = [2, 4, 6];
    let mut pair = lost
        .into_iter()
        .fold(Pair::with(true), |pair, n| pair.fate(n, Fate::Lost));
    pair.server.write(100_000);
    pair.run_for(ms(3000));
    pair.assert_complete(100_000);
    let counters = pair.server.counters();
    assert_eq!((counters.recoveries, counters.timeouts), (1, 0));
    assert_eq!(
        counters.sent_again, 3,
        "nothing that had arrived was sent again"
    );
    let last = pair
        .sent
        .iter()
        .filter(|(_, start)| *start == 6000)
        .nth(1)
        .unwrap();
    assert!(last.0 <= at(400), "without SACK it is 500");
    assert!(pair.acks.iter().any(|(_, blocks)| *blocks == 3));
}

#[test]
fn a_lost_retransmission_waits_for_the_timer_without_sack_and_not_with_it() {
    for (sack, timeouts) in [(false, 1), (true, 0)] {
        let download = |mut pair: Pair| {
            pair.server.write(200_000);
            pair.run_for(ms(5000));
            pair.assert_complete(200_000);
            pair
        };
        let pair = download(Pair::with(sack).fate(2, Fate::Lost));
        let again = pair.sent.iter().rposition(|(_, start)| *start == 2000);
        let again = again.expect("it was sent") as u64;
        let pair = Pair::with(sack).fate(2, Fate::Lost);
        let pair = download(pair.fate(again, Fate::Lost));
        assert_eq!(pair.server.counters().timeouts, timeouts, "SACK {sack}");
        assert_eq!(pair.times(2000), 3);
    }
}

#[test]
fn the_timer_doubles_while_nobody_answers_and_all_arrives_in_the_end() {
    for sack in [false, true] {
        let mut pair = Pair::with(sack);
        pair.cut = true;
        pair.server.write(50_000);
        pair.run_for(ms(8000));
        let moments = pair.sent.iter().filter(|(_, start)| *start == 0);
        let moments: Vec<_> = moments.map(|(at, _)| *at).collect();
        let waits: Vec<_> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(waits.len() >= 4, "{waits:?}");
        assert!(waits[0] >= ms(300), "the round trip and 200 ms");
        assert!(
            waits.windows(2).all(|pair| pair[1] == pair[0] * 2),
            "{waits:?}"
        );
        assert_eq!(pair.server.congestion_window(), 1);
        pair.cut = false;
        pair.run_for(ms(20_000));
        pair.assert_complete(50_000);
    }
}

#[test]
fn a_timeout_that_was_a_mistake_is_taken_back_by_timestamps() {
    let mut pair = Pair::with(false);
    pair.server.write(20_000);
    pair.run_for(ms(60));
    // Delay the acknowledgements on the wire by a second longer than the timer waits for them.
    pair.network.postpone(ms(1000));
    pair.run_for(ms(3000));
    pair.assert_complete(20_000);
    let counters = pair.server.counters();
    assert!(counters.timeouts >= 1, "{counters:?}");
    assert_eq!(counters.undone, 1);
    assert_eq!(pair.server.slow_start_threshold(), None);
    assert!(pair.server.congestion_window() >= 10);
}

/// RFC 5682 section 2.1: after the one segment of a timeout, new data follows, so data that had
/// arrived is not retransmitted.
#[test]
fn after_a_timeout_new_data_is_tried_before_anything_else_is_sent_again() {
    let mut pair = Pair::new(Settings {
        mss: MSS as u16,
        sack: false,
        timestamps: false,
        ..Settings::default()
    });
    pair.server.write(40_000);
    pair.run_for(ms(10));
    pair.network.postpone(ms(400));
    pair.run_for(ms(3000));
    pair.assert_complete(40_000);
    let counters = pair.server.counters();
    assert_eq!((counters.timeouts, counters.sent_again), (1, 1));
}

#[test]
fn what_comes_twice_or_out_of_order_is_delivered_once_and_in_order() {
    for sack in [false, true] {
        let mut pair = Pair::with(sack);
        for n in 0..60 {
            let fate = match n % 7 {
                1 => Fate::Twice,
                4 => Fate::Late,
                6 if n % 3 == 0 => Fate::Lost,
                _ => Fate::Arrives,
            };
            pair.fates.insert(n, fate);
        }
        pair.server.write(100_000);
        pair.run_for(ms(20_000));
        pair.assert_complete(100_000);
    }
}

#[test]
fn every_second_segment_is_acknowledged_and_one_alone_after_the_delay() {
    let mut pair = Pair::with(false);
    // The first segments are acknowledged immediately.
    pair.server.write(40_000);
    pair.run_for(ms(1000));
    pair.acks.clear();
    pair.sent.clear();
    pair.server.write(4 * MSS as u64);
    pair.run_for(ms(1000));
    assert_eq!(pair.acks.len(), 2);
    pair.acks.clear();
    pair.server.write(MSS as u64);
    let sent = pair.now;
    pair.run_for(ms(1000));
    let moments: Vec<_> = pair.acks.iter().map(|(at, _)| *at).collect();
    assert_eq!(moments, [sent + DELAY + ms(40)]);
}

#[test]
fn nothing_is_sent_beyond_the_window_and_a_closed_one_is_probed() {
    let settings = Settings {
        mss: MSS as u16 + 12,
        receive_buffer: 5 * MSS as u32,
        ..Settings::default()
    };
    let mut pair = Pair::new(settings);
    pair.reads = false;
    pair.server.write(20_000);
    pair.run_for(ms(10_000));
    assert_eq!(pair.sent.len(), 5, "the window is full");
    assert!(pair.server.counters().probes >= 3);
    // The program reads again, but the acknowledgement that announces it is lost.
    pair.cut = true;
    pair.received.extend(pair.client.read(pair.now));
    pair.run_for(ms(1));
    pair.cut = false;
    pair.reads = true;
    pair.run_for(ms(60_000));
    pair.assert_complete(20_000);
    assert_eq!(pair.server.counters().timeouts, 0);
}

#[test]
fn a_handshake_survives_the_loss_of_each_of_its_segments() {
    for lost in 0..3 {
        let ends: [SocketAddrV4; 2] =
            ["10.0.0.1:40000", "10.0.0.2:80"].map(|text| text.parse().unwrap());
        let settings = Settings::default();
        let mut client = Connection::dial(settings.clone(), ends, Stream::new(2), Instant::ZERO);
        let mut server = Connection::listen(settings, ends[1], Stream::new(1));
        client.write(10);
        let (mut now, mut count) = (Instant::ZERO, 0);
        while now < at(10_000) && server.received() < 10 {
            for turn in 0..6 {
                let (from, to) = match turn % 2 {
                    0 => (&mut client, &mut server),
                    _ => (&mut server, &mut client),
                };
                while let Some(datagram) = from.poll_datagram(now) {
                    if count != lost {
                        to.handle_datagram(&datagram, now);
                    }
                    count += 1;
                }
            }
            now += ms(10);
            client.handle_timeout(now);
            server.handle_timeout(now);
        }
        assert!(
            server.received() == 10 && client.is_established(),
            "segment {lost}"
        );
    }
}

#[test]
fn what_only_one_end_speaks_is_not_spoken() {
    let ends: [SocketAddrV4; 2] =
        ["10.0.0.1:40000", "10.0.0.2:80"].map(|text| text.parse().unwrap());
    let plain = Settings {
        sack: false,
        timestamps: false,
        mss: 536,
        ..Settings::default()
    };
    let mut client = Connection::dial(plain, ends, Stream::new(2), Instant::ZERO);
    let mut server = Connection::listen(Settings::default(), ends[1], Stream::new(1));
    server.write(5000);
    for _ in 0..4 {
        while let Some(datagram) = client.poll_datagram(Instant::ZERO) {
            server.handle_datagram(&datagram, Instant::ZERO);
        }
        while let Some(datagram) = server.poll_datagram(Instant::ZERO) {
            let segment = Segment::parse(&datagram).unwrap();
            assert_eq!(segment.options.timestamps, None);
            assert!(segment.payload.len() <= 536 && !segment.options.sack_permitted);
            client.handle_datagram(&datagram, Instant::ZERO);
        }
    }
    assert_eq!(client.read(Instant::ZERO), Stream::new(1).octets(0, 5000));
}
