//! A peer whose address is a name: name servers that answer, or not, and a gateway at some of the
//! addresses that they tell.

use super::datagram;
use super::world::{GATEWAY, Hosts, MOBILE, Network, Policies, config, peer};
use crate::{Config, Elsewhere, Event, Node, NotFound, PeerState, Query, QueryId, Rekey, Sources};
use crypto::Rng;
use mobility::Way;
use model::{Instant, Path, TrafficSelector};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

const NAME: &str = "gw.example.net";
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

const SERVER: &str = "192.0.2.53";
const OTHER_SERVER: &str = "192.0.2.54";
const V4: &str = "198.51.100.1";
const OTHER_V4: &str = "198.51.100.2";
const V6: &str = "2001:db8::1";

/// What a name server answers.
#[derive(Clone)]
enum Zone {
    Addresses(Vec<IpAddr>),
    /// An error without addresses.
    Code(u8),
    Silent,
}

enum Flight {
    Ike(Path, Vec<u8>),
    Question(QueryId, IpAddr, Vec<u8>),
    Answer(QueryId, Vec<u8>),
}

struct Names {
    now: Instant,
    client: Node,
    gateway: Node,
    /// The addresses of the gateway.
    at: Vec<IpAddr>,
    /// The name servers, in the order in which the client knows them.
    servers: Vec<(IpAddr, Zone)>,
    /// The client's list of hosts.
    listed: Vec<IpAddr>,
    /// True if the client has no route for IPv6.
    only_v4: bool,
    /// Time that a message takes.
    delay: Duration,
    events: Vec<Event>,
    /// Attempts of the client, and their SPIs.
    begun: Vec<(Instant, IpAddr)>,
    spis: BTreeSet<Vec<u8>>,
    /// Times of lookups.
    lookups: Vec<Instant>,
    network: Network<Flight>,
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn ips(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| ip(text)).collect()
}

fn zone(texts: &[&str]) -> Zone {
    Zone::Addresses(ips(texts))
}

impl Names {
    /// Begins with a gateway at these addresses, and servers.
    fn new(at: &[&str], servers: &[(&str, Zone)]) -> Self {
        Self::with(at, servers, |_| {})
    }

    fn with(at: &[&str], servers: &[(&str, Zone)], change: impl FnOnce(&mut Config)) -> Self {
        let mut client = client();
        change(&mut client);
        let gateway = Config {
            natt_port: client.peers[0].port.unwrap_or(4500),
            ..config(GATEWAY, &Policies::default())
        };
        Self::of(client, gateway, at, servers)
    }

    fn of(client: Config, gateway: Config, at: &[&str], servers: &[(&str, Zone)]) -> Self {
        let mut world = Self {
            now: Instant::ZERO,
            client: Node::new(client, [1; 32], Instant::ZERO),
            gateway: Node::new(gateway, [2; 32], Instant::ZERO),
            at: ips(at),
            servers: servers
                .iter()
                .map(|(ip, zone)| (self::ip(ip), zone.clone()))
                .collect(),
            listed: Vec::new(),
            only_v4: false,
            delay: 5 * MS,
            events: Vec::new(),
            begun: Vec::new(),
            spis: BTreeSet::new(),
            lookups: Vec::new(),
            network: Network::new(Rng::from_seed([3; 32])),
        };
        world.collect();
        world
    }

    /// Returns the milliseconds from the start to each first message, with its destination.
    fn begun(&self) -> Vec<(u128, String)> {
        let begun = self.begun.iter();
        let told = begun.map(|(at, to)| ((*at - Instant::ZERO).as_millis(), to.to_string()));
        told.collect()
    }

    fn is_up(&self) -> bool {
        self.client.peers()[0].state == PeerState::Up
    }

    /// Sends a request that the gateway does not answer, and waits until the tunnel is given up.
    fn fall_silent(&mut self) {
        let asked = self.client.rekey("gw", Rekey::Ike, self.now);
        asked.expect("the tunnel is up");
        assert!(self.run_until(120 * SECOND, |world| !world.is_up()));
    }

    fn remote(&self) -> String {
        let remote = self.client.peers()[0].remote;
        remote.map_or_else(String::new, |remote| remote.to_string())
    }

    fn not_found(&self) -> Vec<NotFound> {
        let events = self.events.iter().filter_map(|event| match event {
            Event::NameNotFound { why, .. } => Some(why.clone()),
            _ => None,
        });
        events.collect()
    }

    fn send(&mut self, flight: Flight) {
        let at = self.now + self.delay;
        self.network.deliver(flight, at);
    }

    fn ask(&mut self, query: Query) {
        for message in query.messages {
            self.send(Flight::Question(query.id, query.server, message));
        }
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::NameWanted { peer, name } => {
                self.lookups.push(self.now);
                let sources = Sources {
                    listed: self.listed.clone(),
                    servers: self.servers.iter().map(|(server, _)| *server).collect(),
                };
                self.client
                    .handle_name_sources(peer, &name, &sources, self.now);
            }
            Event::WaysWanted { of: None } => {
                let mut remotes = self.client.remotes();
                remotes.retain(|remote| remote.is_ipv4() || !self.only_v4);
                let ways = remotes.into_iter().map(|remote| Way {
                    local: ours(remote),
                    remote,
                });
                let ways: Vec<_> = ways.collect();
                self.client.handle_ways(&ways, self.now);
            }
            event => self.events.push(event),
        }
    }

    /// Collects the messages of a host. Those of the client are known by their destination.
    fn collect_from(&mut self, is_client: bool) {
        loop {
            let node = if is_client {
                &mut self.client
            } else {
                &mut self.gateway
            };
            let Some(transmit) = node.poll_transmit() else {
                return;
            };
            let message = datagram::ike(&transmit).to_vec();
            let path = transmit.path;
            let spi = message[..8].to_vec();
            if is_client && message[8..16] == [0; 8] && self.spis.insert(spi) {
                self.begun.push((self.now, path.remote.ip()));
            }
            let local = match is_client {
                true => SocketAddr::new(ours(path.remote.ip()), path.local.port()),
                false => path.local,
            };
            self.send(Flight::Ike(Path::udp(local, path.remote), message));
        }
    }
}

/// The client's address for packets to another one.
fn ours(remote: IpAddr) -> IpAddr {
    match remote {
        IpAddr::V4(_) => ip("192.0.2.2"),
        IpAddr::V6(_) => ip("2001:db8::2"),
    }
}

/// The configuration of the client: the gateway's address is a name.
fn client() -> Config {
    let mut client = config(MOBILE, &Policies::default());
    client.peers[0].ike.address = None;
    client.peers[0].host = Some(NAME.into());
    client
}

/// Returns the answer of a server to a question.
fn answer(question: &[u8], zone: &Zone) -> Option<Vec<u8>> {
    let mut reply = question[..question.len() - 11].to_vec();
    let kind = [reply[reply.len() - 4], reply[reply.len() - 3]];
    let (code, addresses) = match zone {
        Zone::Silent => return None,
        Zone::Code(code) => (*code, Vec::new()),
        Zone::Addresses(addresses) => (0, addresses.clone()),
    };
    let fits = |ip: &&IpAddr| (kind == [0, 1]) == ip.is_ipv4();
    let fitting: Vec<_> = addresses.iter().filter(fits).collect();
    reply[2..4].copy_from_slice(&[0x80, code]);
    reply[6..12].copy_from_slice(&[0, fitting.len() as u8, 0, 0, 0, 0]);
    for address in fitting {
        let octets = match address {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        };
        reply.extend([0xc0, 12, kind[0], kind[1], 0, 1, 0, 0, 0, 60, 0]);
        reply.push(octets.len() as u8);
        reply.extend(octets);
    }
    Some(reply)
}

impl Hosts for Names {
    type Packet = Flight;

    fn clock(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn network(&mut self) -> &mut Network<Flight> {
        &mut self.network
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let nodes = [&self.client, &self.gateway].into_iter();
        let deadlines = nodes.filter_map(Node::poll_timeout);
        deadlines.map(|deadline| deadline.at).min()
    }

    fn handle_timeout(&mut self) {
        for node in [&mut self.client, &mut self.gateway] {
            let deadline = node.poll_timeout();
            if deadline.is_some_and(|deadline| deadline.at <= self.now) {
                node.handle_timeout(self.now);
                while node.poll_path_mtu().is_some() {}
                let deadline = node.poll_timeout();
                let is_due = deadline.is_some_and(|deadline| deadline.at <= self.now);
                assert!(!is_due, "due for ever: {deadline:?}");
            }
        }
    }

    fn receive(&mut self, flight: Flight) {
        match flight {
            Flight::Ike(path, message) => {
                let there = Path::udp(path.remote, path.local);
                let to = path.remote.ip();
                if self.at.contains(&to) {
                    self.gateway.handle_datagram(there, &message, self.now);
                } else if to == ours(to) {
                    self.client.handle_datagram(there, &message, self.now);
                }
            }
            Flight::Question(id, server, message) => {
                let zone = self.servers.iter().find(|(known, _)| *known == server);
                let reply = zone.and_then(|(_, zone)| answer(&message, zone));
                if let Some(reply) = reply {
                    self.send(Flight::Answer(id, reply));
                }
            }
            Flight::Answer(id, reply) => self.client.handle_name_reply(id, &reply, self.now),
        }
    }

    fn collect(&mut self) {
        loop {
            self.collect_from(true);
            self.collect_from(false);
            while self.gateway.poll_event().is_some() {}
            while let Some(query) = self.client.poll_query() {
                self.ask(query);
            }
            let Some(event) = self.client.poll_event() else {
                return;
            };
            self.note(event);
        }
    }
}

#[test]
fn a_name_is_found_and_the_peer_is_up_there() {
    let mut world = Names::new(&[V4], &[(SERVER, zone(&[V4]))]);
    assert!(world.run_until(SECOND, Names::is_up));
    assert_eq!(world.remote(), format!("{V4}:4500"));
    let status = world.client.peers()[0].naming.clone().unwrap();
    assert_eq!((status.name.as_str(), status.good), (NAME, Some(ip(V4))));
    let (_, found) = status.last.unwrap();
    assert_eq!(found.unwrap().by, Some(ip(SERVER)));
    assert!(world.events.contains(&Event::NameProved {
        peer: world.client.names().id("gw").unwrap(),
        name: NAME.to_owned(),
        address: ip(V4),
    }));
}

/// RFC 8305 section 5.
#[test]
fn dead_ipv6_costs_a_quarter_of_a_second() {
    let mut world = Names::new(&[V4], &[(SERVER, zone(&[V6, V4]))]);
    assert!(world.run_until(SECOND, Names::is_up));
    let begun = world.begun();
    assert_eq!(begun[0].1, V6);
    assert_eq!((begun[1].0 - begun[0].0, begun[1].1.as_str()), (250, V4));
    assert_eq!(world.remote(), format!("{V4}:4500"));
    let before = world.begun.len();
    world.run_for(20 * SECOND);
    assert_eq!(world.begun.len(), before, "the attempt by IPv6 has ended");
}

/// RFC 6724 section 6, rule 1.
#[test]
fn an_address_without_a_route_comes_last() {
    let mut world = Names::new(&[V4], &[(SERVER, zone(&[V6, V4]))]);
    world.only_v4 = true;
    assert!(world.run_until(SECOND, Names::is_up));
    let to: Vec<_> = world.begun().into_iter().map(|(_, to)| to).collect();
    assert_eq!(to, [V4]);
}

#[test]
fn an_answer_in_time_is_the_end_of_the_race() {
    let all = [V6, V4, OTHER_V4];
    let mut world = Names::new(&all, &[(SERVER, zone(&all))]);
    world.run_for(20 * SECOND);
    assert!(world.is_up());
    let to: Vec<_> = world.begun().into_iter().map(|(_, to)| to).collect();
    assert_eq!(to, [V6], "nothing is sent to others");
}

/// Over a satellite, several attempts are under way when the first answer arrives.
#[test]
fn on_a_long_path_one_of_several_answers_is_used() {
    let all = [V6, V4, OTHER_V4];
    let mut world = Names::new(&all, &[(SERVER, zone(&all))]);
    world.delay = 300 * MS;
    assert!(world.run_until(20 * SECOND, Names::is_up));
    assert_eq!(world.remote(), format!("[{V6}]:4500"));
    world.run_for(200 * SECOND);
    assert!(world.is_up());
    let sas = world.client.peers()[0].sas;
    assert_eq!(sas, 1);
}

// Weakness: 196
#[test]
fn a_flood_of_addresses_is_bounded() {
    let many: Vec<_> = (0..200).map(|n| format!("203.0.113.{n}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    let mut world = Names::new(&[], &[(SERVER, zone(&many))]);
    world.run_for(4 * SECOND);
    let to: BTreeSet<_> = world.begun().into_iter().map(|(_, to)| to).collect();
    assert_eq!(to.len(), 8);
    world.run_for(600 * SECOND);
    let sas = world.client.peers()[0].naming.clone().unwrap();
    assert!(sas.tried.len() <= 16);
}

#[test]
fn an_up_tunnel_is_never_moved_by_a_name() {
    let mut world = Names::new(&[V4, OTHER_V4], &[(SERVER, zone(&[V4]))]);
    assert!(world.run_until(SECOND, Names::is_up));
    world.servers[0].1 = zone(&[OTHER_V4]);
    let lookups = world.lookups.len();
    world.client.handle_network_change(world.now);
    world.run_for(3600 * SECOND);
    assert_eq!(world.remote(), format!("{V4}:4500"));
    assert_eq!(world.lookups.len(), lookups, "nothing asks");
}

// Weakness: 194
#[test]
fn a_gateway_that_is_renumbered_is_found_while_the_tunnel_is_down() {
    let mut world = Names::new(&[], &[(SERVER, zone(&[V4]))]);
    world.run_for(30 * SECOND);
    assert!(!world.is_up());
    world.servers[0].1 = zone(&[OTHER_V4]);
    world.at = ips(&[OTHER_V4]);
    assert!(world.run_until(61 * SECOND, Names::is_up));
    assert_eq!(world.remote(), format!("{OTHER_V4}:4500"));
}

#[test]
fn a_gateway_that_is_renumbered_is_found_after_silence() {
    let mut world = Names::new(&[V4], &[(SERVER, zone(&[V4]))]);
    assert!(world.run_until(SECOND, Names::is_up));
    world.servers[0].1 = zone(&[OTHER_V4]);
    world.at = ips(&[OTHER_V4]);
    world.fall_silent();
    assert!(world.run_until(5 * SECOND, Names::is_up));
    assert_eq!(world.remote(), format!("{OTHER_V4}:4500"));
}

#[test]
fn the_last_good_address_is_tried_if_no_server_answers() {
    let mut world = Names::new(&[V4], &[(SERVER, Zone::Silent)]);
    world.client.restore_address(NAME, ip(V4));
    assert!(world.run_until(12 * SECOND, Names::is_up));
    assert_eq!(world.remote(), format!("{V4}:4500"));
    // From the next attempt on, the lookup is waited for two seconds.
    world.client.down("gw", world.now).unwrap();
    world.client.up("gw", world.now).unwrap();
    assert!(!world.run_until(1900 * MS, Names::is_up));
    assert!(world.run_until(SECOND, Names::is_up));
    // The control: without an address of before there is none.
    let mut world = Names::new(&[V4], &[(SERVER, Zone::Silent)]);
    world.run_for(60 * SECOND);
    assert!(!world.is_up());
    let servers = ips(&[SERVER]);
    assert_eq!(world.not_found(), [NotFound::NoAnswer { servers }]);
}

#[test]
fn another_server_is_asked_if_one_is_silent_or_fails() {
    for first in [Zone::Silent, Zone::Code(2)] {
        let servers = [(SERVER, first), (OTHER_SERVER, zone(&[V4]))];
        let mut world = Names::new(&[V4], &servers);
        assert!(world.run_until(2 * SECOND, Names::is_up));
    }
}

#[test]
fn a_name_that_does_not_exist_is_told_once_and_asked_for_again() {
    let mut world = Names::new(&[V4], &[(SERVER, Zone::Code(3))]);
    world.run_for(60 * SECOND);
    let server = ip(SERVER);
    assert_eq!(world.not_found(), [NotFound::NoSuchName { server }]);
    let lookups = world.lookups.len();
    assert!((5..8).contains(&lookups), "{lookups}");
    let refusal = world.client.peers()[0].refusal.clone().unwrap();
    assert!(refusal.why.to_string().contains(NAME), "{}", refusal.why);
    world.servers[0].1 = zone(&[V4]);
    world.client.handle_network_change(world.now);
    assert!(
        world.run_until(SECOND, Names::is_up),
        "a change of network asks at once"
    );
}

#[test]
fn without_a_name_server_the_list_of_hosts_is_enough() {
    let mut world = Names::new(&[V4], &[]);
    world.run_for(SECOND);
    assert_eq!(world.not_found(), [NotFound::NoServer]);
    world.listed = ips(&[V4]);
    world.client.handle_network_change(world.now);
    assert!(world.run_until(SECOND, Names::is_up));
}

#[test]
fn an_address_from_inside_the_tunnel_is_refused() {
    let mut world = Names::new(&[V4], &[(SERVER, zone(&["10.8.0.1"]))]);
    world.run_for(5 * SECOND);
    let addresses = ips(&["10.8.0.1"]);
    assert_eq!(world.not_found(), [NotFound::Inside { addresses }]);
    assert!(world.begun.is_empty());
}

/// Of two addresses, one has another gateway, which does not have our key.
#[test]
fn an_address_at_which_an_attempt_failed_comes_last() {
    let mut world = Names::new(&[V4], &[(SERVER, zone(&[V4]))]);
    assert!(world.run_until(SECOND, Names::is_up));
    world.servers[0].1 = zone(&[V4, OTHER_V4]);
    world.at = ips(&[OTHER_V4]);
    world.fall_silent();
    world.begun.clear();
    assert!(world.run_until(10 * SECOND, Names::is_up));
    assert_eq!(world.begun()[0].1, OTHER_V4);
}

#[test]
fn a_peer_with_a_port_of_its_own_gets_all_messages_there() {
    let mut world = Names::with(&[V4], &[(SERVER, zone(&[V4]))], |config| {
        config.peers[0].port = Some(4501);
    });
    world.run_for(SECOND);
    assert!(world.is_up());
    assert!(world.remote().ends_with(":4501"), "{}", world.remote());
}

#[test]
fn another_name_or_port_ends_the_tunnel_and_the_same_does_not() {
    let mut world = Names::new(&[V4], &[(SERVER, zone(&[V4]))]);
    assert!(world.run_until(SECOND, Names::is_up));
    let now = world.now;
    assert_eq!(world.client.reconfigure(client(), now).len(), 0);
    let mut other = client();
    other.peers[0].host = Some("gw2.example.net".into());
    assert_eq!(world.client.reconfigure(other, now).len(), 1);
    world.run_for(5 * SECOND);
    assert!(world.is_up(), "the server knows that name, too");
    let mut fixed = client();
    fixed.peers[0] = peer("gw", GATEWAY, Some(ip(V4)), fixed.peers[0].ike.role.clone());
    assert_eq!(world.client.reconfigure(fixed, world.now).len(), 1);
}

/// The queries of peers that are taken down are of no use.
#[test]
fn a_peer_that_is_taken_down_asks_nothing() {
    let mut world = Names::new(&[V4], &[(SERVER, Zone::Silent)]);
    world.run_for(SECOND);
    world.client.down("gw", world.now).unwrap();
    let lookups = world.lookups.len();
    world.run_for(600 * SECOND);
    assert_eq!(world.lookups.len(), lookups);
}

/// Returns a world in which the gateway at [`V4`] redirects the client to a name, and is the other
/// gateway as well.
fn redirecting(at_once: bool, servers: &[(&str, Zone)]) -> Names {
    let mut client = config(MOBILE, &Policies::default());
    let peer = &mut client.peers[0].ike;
    peer.address = Some(ip(V4));
    let listed = [(OTHER_V4, 32), (V6, 128)].into_iter();
    let listed = listed.map(|(text, length)| TrafficSelector::from_prefix(ip(text), length));
    peer.redirects = listed.map(Option::unwrap).collect();
    let mut gateway = config(GATEWAY, &Policies::default());
    let to = "gw2.example.net".parse().unwrap();
    gateway.elsewhere = Some(Elsewhere { to, at_once });
    Names::of(client, gateway, &[V4, OTHER_V4], servers)
}

#[test]
fn a_redirect_to_a_name_is_followed_to_its_first_address_that_answers() {
    for at_once in [true, false] {
        let mut world = redirecting(at_once, &[(SERVER, zone(&[V6, OTHER_V4]))]);
        let there = format!("{OTHER_V4}:4500");
        assert!(world.run_until(5 * SECOND, |world| world.is_up() && world.remote() == there));
        assert_eq!(world.lookups.len(), 1);
        let to = ip(OTHER_V4);
        let peer = world.client.names().id("gw").unwrap();
        assert!(world.events.contains(&Event::Redirected { peer, to }));
    }
}

/// The control is the test above.
#[test]
fn no_address_that_is_not_listed_is_followed() {
    for at_once in [true, false] {
        let mut world = redirecting(at_once, &[(SERVER, zone(&["203.0.113.5"]))]);
        let is_told = |world: &Names| !world.not_found().is_empty();
        assert!(world.run_until(5 * SECOND, is_told));
        let addresses = ips(&["203.0.113.5"]);
        assert_eq!(world.not_found()[0], NotFound::NotListed { addresses });
        let refusal = world.client.peers()[0].refusal.clone();
        let told = refusal.map(|refusal| refusal.why.to_string()).unwrap();
        assert!(told.contains("gw2.example.net"), "{told}");
        world.run_for(60 * SECOND);
        let begun = world.begun();
        assert!(begun.iter().all(|(_, to)| to == V4), "{begun:?}");
    }
}

/// Each redirection is looked up once, and there are five in 300 s.
#[test]
fn a_silent_server_ends_no_client_that_is_redirected() {
    for at_once in [true, false] {
        let mut world = redirecting(at_once, &[(SERVER, Zone::Silent)]);
        world.run_for(300 * SECOND);
        assert!(matches!(world.not_found()[0], NotFound::NoAnswer { .. }));
        assert!(
            (1..=5).contains(&world.lookups.len()),
            "{:?}",
            world.lookups
        );
        world.servers = vec![(ip(SERVER), zone(&[OTHER_V4]))];
        assert!(world.run_until(600 * SECOND, Names::is_up));
        assert_eq!(world.remote(), format!("{OTHER_V4}:4500"));
    }
}
