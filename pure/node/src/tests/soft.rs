//! A mobile node with two ways to its gateway: hand-overs that nobody asks for, while packets flow.

use super::outlet::Outlet;
use super::world::{GATEWAY, Hop, Hosts, MOBILE, Network, Policies, address, config};
use super::{accounts, datagram};
use crate::{CannotMove, Event, Node, Packet, Stance, Why};
use crypto::Rng;
use mobility::Way;
use model::{Instant, Path};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::esp::Datagram;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// The local addresses of the mobile node: the way that the routes prefer, and the other.
const WIFI: usize = 0;
const CELL: usize = 1;
const LOCALS: [[u8; 4]; 2] = [[192, 0, 2, 2], [100, 64, 0, 2]];

const ENDS: [usize; 2] = [MOBILE, GATEWAY];

/// Both hosts, and a hop for each way.
struct Road {
    now: Instant,
    nodes: [Node; 2],
    hops: [Hop; 2],
    /// Ways that exist.
    there: [bool; 2],
    network: Network<(Path, Vec<u8>)>,
    delivered: [Vec<Instant>; 2],
    events: [Vec<Event>; 2],
    /// Number of packets that each host has sent.
    sent: u32,
}

impl Road {
    /// A tunnel over Wi-Fi. `clones` says whether the gateway allows them.
    fn new(clones: bool, probes: Duration, seed: u8) -> Self {
        let policies = Policies {
            stance: Stance::Refuse,
            mobile: Vec::new(),
            gateway: Vec::new(),
            snoop: false,
            ..Policies::default()
        };
        let node = |who: usize| {
            let mut config = config(who, &policies);
            config.peers.truncate(1);
            config.peers[0].ike.features.clones = clones || who == MOBILE;
            config.peers[0].ike.features.probes = probes;
            Node::new(config, [seed; 32], Instant::ZERO)
        };
        let mut road = Self {
            now: Instant::ZERO,
            nodes: ENDS.map(node),
            hops: [Hop::PERFECT; 2],
            there: [true; 2],
            network: Network::new(Rng::from_seed([seed; 32])),
            delivered: Default::default(),
            events: Default::default(),
            sent: 0,
        };
        road.tell_ways();
        road.run_for(5 * SECOND);
        assert_eq!(road.used(), (WIFI, Some(Why::Route)));
        road
    }

    fn tell_ways(&mut self) {
        let ways = [WIFI, CELL].into_iter().filter(|way| self.there[*way]);
        let ways: Vec<_> = ways
            .map(|way| Way {
                local: LOCALS[way].into(),
                remote: address(GATEWAY),
            })
            .collect();
        self.nodes[MOBILE].handle_ways(&ways, self.now);
        self.collect();
    }

    fn set_there(&mut self, way: usize, there: bool) {
        self.there[way] = there;
        self.tell_ways();
    }

    /// Returns the way of the tunnel, and why it is used.
    fn used(&self) -> (usize, Option<Why>) {
        let paths = self.nodes[MOBILE].paths();
        let used = way_of(paths[0].path.local.ip());
        (used.expect("a local address"), paths[0].why)
    }

    /// Sends a thousand packets per second each way.
    fn stream(&mut self, time: Duration) {
        for _ in 0..time.as_millis() {
            let [client, server] = ["10.1.0.2:40000", "10.8.0.1:80"];
            let payload = self.sent.to_be_bytes();
            for (who, from, to) in [(MOBILE, client, server), (GATEWAY, server, client)] {
                let segment = datagram::tcp(from, to, self.sent, 1, &payload);
                let mut outlet = Outlet::default();
                let mut batch = [Packet::with_capacity(2000)];
                batch[0].fill(&segment);
                self.nodes[who].seal(&mut batch, &mut outlet, self.now);
                self.sort(who, outlet);
            }
            self.sent += 1;
            self.collect();
            self.run_for(MS);
        }
    }

    /// Returns the numbers of packets that did not arrive at each end, and the longest time without
    /// one.
    fn losses(&mut self) -> ([u32; 2], Duration) {
        self.run_for(SECOND);
        let lost = ENDS.map(|who| self.sent - self.delivered[who].len() as u32);
        let gaps = self.delivered.iter().flat_map(|times| times.windows(2));
        let longest = gaps.map(|pair| pair[1] - pair[0]).max();
        (lost, longest.unwrap_or_default())
    }

    fn count(&self, who: usize, such: impl Fn(&Event) -> bool) -> usize {
        self.events[who].iter().filter(|event| such(event)).count()
    }

    fn handed_over(&self) -> [usize; 2] {
        ENDS.map(|who| self.count(who, |event| matches!(event, Event::HandedOver { .. })))
    }

    fn moved(&self) -> usize {
        self.count(MOBILE, |event| matches!(event, Event::PathMoved { .. }))
    }

    fn never_down(&self) {
        for who in ENDS {
            let down =
                |event: &Event| matches!(event, Event::PeerDown { .. } | Event::ChildDown { .. });
            let told: Vec<_> = self.events[who]
                .iter()
                .filter(|event| down(event))
                .collect();
            assert!(told.is_empty(), "at host {who}: {told:?}");
        }
    }

    fn sort(&mut self, who: usize, outlet: Outlet) {
        let now = self.now;
        self.delivered[who].extend(outlet.delivered.iter().map(|_| now));
        for (path, payload) in outlet.transmitted {
            self.depart(path, payload);
        }
    }

    /// Sends a datagram over the hop of its way, if that exists.
    fn depart(&mut self, path: Path, payload: Vec<u8>) {
        let ends = [path.local, path.remote].map(|end| way_of(end.ip()));
        let way = ends[0].or(ends[1]).unwrap_or(WIFI);
        if self.there[way] {
            self.network
                .send((path, payload), &self.hops[way], self.now);
        }
    }
}

fn way_of(address: IpAddr) -> Option<usize> {
    LOCALS
        .iter()
        .position(|local| IpAddr::from(*local) == address)
}

impl Hosts for Road {
    type Packet = (Path, Vec<u8>);

    fn clock(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn network(&mut self) -> &mut Network<Self::Packet> {
        &mut self.network
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let deadlines = self.nodes.iter().filter_map(Node::poll_timeout);
        deadlines.map(|deadline| deadline.at).min()
    }

    fn handle_timeout(&mut self) {
        for node in &mut self.nodes {
            let due = node.poll_timeout();
            if due.is_some_and(|due| due.at <= self.now) {
                node.handle_timeout(self.now);
            }
        }
    }

    fn receive(&mut self, (path, payload): Self::Packet) {
        let who = match way_of(path.remote.ip()) {
            Some(_) => MOBILE,
            None => GATEWAY,
        };
        let path = Path::udp(path.remote, path.local);
        let datagram = match path.local.port() {
            500 => Datagram::Ike(&payload),
            _ => Datagram::parse(&payload),
        };
        match datagram {
            Datagram::Ike(message) => self.nodes[who].handle_datagram(path, message, self.now),
            Datagram::Keepalive => {}
            Datagram::Esp(packet) => {
                let mut packet = Packet::from_slice(packet);
                packet.path = Some(path);
                let mut outlet = Outlet::default();
                self.nodes[who].open(&mut [packet], &mut outlet, self.now);
                assert_eq!(outlet.delivered.len() + outlet.dropped.len(), 1);
                self.sort(who, outlet);
            }
        }
    }

    fn collect(&mut self) {
        for who in ENDS {
            while let Some(transmit) = self.nodes[who].poll_transmit() {
                let mut path = transmit.path;
                if path.local.ip().is_unspecified() {
                    path.local.set_ip(address(who));
                }
                self.depart(path, transmit.payload);
            }
            let mut asked = false;
            while let Some(event) = self.nodes[who].poll_event() {
                asked |= matches!(event, Event::WaysWanted { .. });
                self.events[who].push(event);
            }
            if asked && who == MOBILE {
                self.tell_ways();
            }
            let _counted = accounts::ike(&self.nodes[who]);
        }
    }
}

const EVERY: Duration = Duration::from_secs(2);

/// The packets in flight on the way that is gone are lost: the negative control. On the return,
/// nothing is.
#[test]
fn a_better_way_is_taken_without_loss_and_one_that_is_gone_at_once() {
    let mut road = Road::new(true, EVERY, 1);
    road.stream(SECOND);
    road.set_there(WIFI, false);
    road.stream(5 * SECOND);
    assert_eq!(road.used().0, CELL);
    assert_eq!((road.moved(), road.handed_over()), (1, [0, 0]));
    let (hard, gap) = road.losses();
    assert!(hard.iter().any(|lost| *lost > 0), "{hard:?}");
    assert!(gap < 100 * MS, "{gap:?}");
    let (sent, arrived) = (road.sent, road.delivered.clone().map(|times| times.len()));
    road.set_there(WIFI, true);
    road.stream(15 * SECOND);
    assert_eq!(road.used(), (WIFI, Some(Why::Route)));
    assert_eq!(road.handed_over(), [1, 1]);
    road.run_for(SECOND);
    let since = ENDS.map(|who| road.delivered[who].len() - arrived[who]);
    assert_eq!(
        since,
        [(road.sent - sent) as usize; 2],
        "the soft one loses nothing"
    );
    road.never_down();
}

/// Round trips of 20 and 600 ms, and equal ones. To a slower way, packets pause for what its delay
/// is longer: the last one of the quicker way arrives before the first one there. Otherwise no
/// pause is longer than the interval of the packets.
#[test]
fn a_hand_over_between_ways_of_any_delay_loses_nothing_and_pauses_for_the_difference_alone() {
    for round_trips in [[20, 20], [600, 600], [600, 20], [20, 600]] {
        let mut road = Road::new(true, EVERY, 1);
        let [wifi, cell] = round_trips.map(|round_trip| Hop {
            delay: MS * round_trip / 2,
            ..Hop::PERFECT
        });
        road.set_there(WIFI, false);
        road.run_for(5 * SECOND);
        road.hops = [wifi, cell];
        road.run_for(30 * SECOND);
        assert_eq!(road.used().0, CELL);
        road.set_there(WIFI, true);
        road.stream(30 * SECOND);
        assert_eq!(road.used(), (WIFI, Some(Why::Route)));
        assert_eq!(road.handed_over(), [1, 1]);
        let (lost, longest) = road.losses();
        assert_eq!(lost, [0, 0], "{round_trips:?}");
        let pause = wifi.delay.saturating_sub(cell.delay) + MS;
        assert!(longest <= pause, "{round_trips:?}: {longest:?}");
        road.never_down();
    }
}

/// The negative control: with a gateway that allows no clones, the return is not a hand-over.
#[test]
fn without_clones_at_both_ends_nothing_is_measured_and_moves_are_as_before() {
    let mut road = Road::new(false, EVERY, 1);
    let before = accounts::ike(&road.nodes[GATEWAY]);
    road.hops[WIFI] = Hop::PERFECT.losing(300);
    road.run_for(25 * SECOND);
    assert_eq!(accounts::ike(&road.nodes[GATEWAY]), before);
    road.hops[WIFI] = Hop::PERFECT;
    road.set_there(WIFI, false);
    road.stream(SECOND);
    road.set_there(WIFI, true);
    road.stream(SECOND);
    assert_eq!(
        (road.used().0, road.moved(), road.handed_over()),
        (WIFI, 2, [0, 0])
    );
    road.never_down();
}

#[test]
fn a_way_that_fades_is_left_before_it_is_silent_and_returned_to_later() {
    let mut faded = 0;
    for seed in 0..8 {
        let mut road = Road::new(true, EVERY, seed);
        road.hops[WIFI] = Hop::PERFECT.losing(200);
        assert!(
            road.run_until(120 * SECOND, |road| road.used().0 == CELL),
            "seed {seed}"
        );
        // Several requests in a row may be lost, which is silence.
        faded += usize::from(matches!(road.used().1, Some(Why::Faded(lost)) if lost >= 15));
        road.hops[WIFI] = Hop::PERFECT;
        assert!(
            road.run_until(300 * SECOND, |road| road.used().0 == WIFI),
            "seed {seed}"
        );
        assert_eq!(road.used().1, Some(Why::Route));
        road.never_down();
    }
    assert!(faded >= 4, "{faded} of 8");
}

/// A source reports a weak signal, and ten seconds later the way is dead. The negative control has
/// no report, and loses packets until the silence is noticed.
#[test]
fn a_way_with_a_weak_signal_is_left_before_it_is_dead() {
    for reports in [true, false] {
        let mut road = Road::new(true, EVERY, 1);
        road.run_for(20 * SECOND);
        if reports {
            let (now, wifi) = (road.now, LOCALS[WIFI].into());
            road.nodes[MOBILE].handle_signal(&[wifi], 25, Some("iw"), now);
            road.collect();
        }
        road.stream(10 * SECOND);
        if reports {
            assert_eq!(road.used(), (CELL, Some(Why::Weak)));
        }
        road.hops[WIFI] = Hop::PERFECT.losing(1000);
        road.stream(10 * SECOND);
        assert!(road.run_until(60 * SECOND, |road| road.used().0 == CELL));
        let (lost, _) = road.losses();
        assert_eq!(lost == [0, 0], reports, "{lost:?}");
        road.never_down();
    }
}

#[test]
fn an_expired_report_is_logged_once_and_removed() {
    let mut road = Road::new(true, EVERY, 1);
    road.run_for(20 * SECOND);
    let (now, wifi) = (road.now, LOCALS[WIFI].into());
    road.nodes[MOBILE].handle_signal(&[wifi], 25, Some("iw"), now);
    road.nodes[MOBILE].handle_signal(&[wifi], 20, Some("iw"), now);
    road.collect();
    road.run_for(10 * SECOND);
    let signal = road.nodes[MOBILE].signal(wifi);
    let source = signal.and_then(|reported| reported.by.as_deref());
    assert_eq!(source, Some("iw"));
    road.run_for(50 * SECOND);
    assert_eq!(road.nodes[MOBILE].signal(wifi), None);
    assert_eq!(road.used(), (WIFI, Some(Why::Route)));
    let told = |event: &Event| matches!(event, Event::Signal { .. });
    assert_eq!(road.count(MOBILE, told), 2);
    assert_eq!(road.handed_over(), [2, 2]);
}

/// The hand-over from a way that loses packets loses no more than the way does.
#[test]
fn a_stream_survives_a_way_that_fades() {
    // With this seed, the requests that are lost do not follow each other, which would be silence.
    let mut road = Road::new(true, EVERY, 2);
    road.hops[WIFI] = Hop::PERFECT.losing(200);
    road.stream(30 * SECOND);
    assert_eq!(road.used().0, CELL);
    assert_eq!(road.moved(), 0);
    let before = ENDS.map(|who| road.delivered[who].len());
    let sent = road.sent;
    road.stream(5 * SECOND);
    road.run_for(SECOND);
    let since = ENDS.map(|who| road.delivered[who].len() - before[who]);
    assert!(
        since
            .iter()
            .all(|since| since.abs_diff((road.sent - sent) as usize) < 20)
    );
    road.never_down();
}

#[test]
fn each_way_has_its_round_trip_and_its_loss() {
    let mut road = Road::new(true, EVERY, 1);
    road.hops[CELL].delay = 40 * MS;
    road.run_for(120 * SECOND);
    let paths = road.nodes[MOBILE].paths();
    let qualities = paths[0].candidates.iter().map(|known| known.quality);
    for (one, took) in qualities.zip([10 * MS, 80 * MS]) {
        assert!(one.round_trip().unwrap().abs_diff(took) < MS, "{one:?}");
        assert_eq!(one.lost(), Some(0));
    }
    assert_eq!(road.used(), (WIFI, Some(Why::Route)));
}

/// A dead way delays nothing on the current one, and is no reason to give up the tunnel.
#[test]
fn measuring_a_dead_way_harms_nothing() {
    let mut road = Road::new(true, EVERY, 1);
    road.hops[CELL] = Hop::DEAD;
    road.stream(20 * SECOND);
    let (lost, _) = road.losses();
    assert_eq!(
        (lost, road.used(), road.moved()),
        ([0, 0], (WIFI, Some(Why::Route)), 0)
    );
    let paths = road.nodes[MOBILE].paths();
    assert!(paths[0].candidates[CELL].quality.lost() > Some(50));
    road.never_down();
}

/// A move by a connection manager, and one in the other direction at each moment of the first.
#[test]
fn a_second_move_that_is_asked_for_during_the_first_follows_it() {
    for pause in [0, 100, 3000] {
        let mut road = Road::new(true, EVERY, 1);
        let ask = |road: &mut Road, way: usize| {
            let asked = road.nodes[MOBILE].hand_over_or_move("gw", LOCALS[way].into(), road.now);
            road.collect();
            asked
        };
        let there = SocketAddr::new(LOCALS[CELL].into(), 4500);
        assert!(matches!(ask(&mut road, CELL), Ok((path, true)) if path.local == there));
        road.stream(pause * MS);
        assert!(matches!(ask(&mut road, WIFI), Ok((_, true))));
        road.stream(20 * SECOND);
        assert_eq!(road.handed_over(), [2, 2], "after {pause} ms");
        assert_eq!(road.used(), (WIFI, Some(Why::Asked)));
        assert_eq!(road.losses().0, [0, 0]);
        road.never_down();
    }
}

#[test]
fn what_cannot_be_handed_over_is_moved() {
    let mut road = Road::new(false, EVERY, 1);
    let (now, to) = (road.now, LOCALS[CELL].into());
    let moved = road.nodes[MOBILE].hand_over_or_move("gw", to, now);
    assert!(matches!(moved, Ok((_, false))), "{moved:?}");
    let nowhere = road.nodes[MOBILE].hand_over_or_move("gw", [10, 9, 9, 9].into(), now);
    assert!(matches!(nowhere, Err(CannotMove::NoWay(_))), "{nowhere:?}");
    road.run_for(SECOND);
    assert_eq!(road.used(), (CELL, Some(Why::Asked)));
}

/// Ways come and go, lose packets and recover, at random. The tunnel survives as long as it has a
/// way, and ends on the way that the routes prefer.
#[test]
fn random_walks_keep_the_tunnel() {
    for seed in 0..6 {
        let mut road = Road::new(true, EVERY, seed);
        for _ in 0..30 {
            for way in [WIFI, CELL] {
                let lost = [0, 0, 50, 150][usize::from(road.network.rng.u16() % 4)];
                road.hops[way] = Hop::PERFECT.losing(lost);
            }
            let there = [[true, true], [true, false], [false, true], [true, true]];
            road.there = there[usize::from(road.network.rng.u16() % 4)];
            road.tell_ways();
            let pause = u32::from(road.network.rng.u16() % 30);
            road.run_for(pause * SECOND);
        }
        (road.hops, road.there) = ([Hop::PERFECT; 2], [true; 2]);
        road.tell_ways();
        assert!(
            road.run_until(2000 * SECOND, |road| road.used().0 == WIFI),
            "seed {seed}: {:?}",
            road.nodes[MOBILE].paths()
        );
        road.never_down();
        road.sent = 0;
        road.delivered = Default::default();
        road.stream(SECOND);
        assert_eq!(road.losses().0, [0, 0], "seed {seed}");
    }
}
