//! A tunnel through a NAT that loses its mappings: the gateway follows to the new port by itself,
//! and the connection in the tunnel continues with the same octets.

use crypto::Secret;
use model::{Features, Instant, Mode, TrafficSelector, ZoneSelector, ZoneSuite};
use node::{Addressing, Config, Node, Peer, Role, Stance, ZonePolicy};
use sim::tcp::Settings as Tcp;
use sim::{Host, HostId, Nat, Network, Program, Settings, Stream, Via, WireId};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::num::NonZeroU64;
use std::time::Duration;
use world::Hosts;

const HOME: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 2);
const INNER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const OUTER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
const GATEWAY: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 1);
const LIVENESS: Duration = Duration::from_secs(10);

/// A mobile node behind a NAT, and a gateway that is also a server.
struct World {
    network: Network,
    mobile: HostId,
    gateway: HostId,
    wire: WireId,
}

impl World {
    fn new() -> Self {
        let mut network = Network::new();
        let mobile = network.add(Host::new(&[HOME, INNER]));
        let gateway = network.add(Host::new(&[GATEWAY, SERVER]));
        let settings = Settings {
            rate: NonZeroU64::new(1_000_000),
            delay: Duration::from_millis(20),
            queue: 100,
            bit_error_rate: 0.0,
        };
        let wire = network.connect(mobile, gateway, settings, 1);
        network.translate(wire, Nat::new(OUTER, Duration::from_secs(120)));
        let [radio, uplink] = network.interfaces(wire);
        let (ours, theirs) = (selector(INNER), selector(SERVER));
        for (host, inner, interface, config) in [
            (
                mobile,
                SERVER,
                radio,
                config("mobile", "gateway", Some(GATEWAY), [&ours, &theirs]),
            ),
            (
                gateway,
                INNER,
                uplink,
                config("gateway", "mobile", None, [&theirs, &ours]),
            ),
        ] {
            let host_of = network.host_mut(host);
            host_of.route(inner, 32, Via::Tunnel);
            host_of.route(Ipv4Addr::UNSPECIFIED, 0, Via::Wire(interface));
            host_of.install(Node::new(
                config,
                [interface_seed(inner); 32],
                Instant::ZERO,
            ));
        }
        let mut world = Self {
            network,
            mobile,
            gateway,
            wire,
        };
        world.run_for(Duration::from_secs(2));
        let tcp = Tcp {
            mss: 1200,
            ..Tcp::default()
        };
        let ends = [
            SocketAddrV4::new(INNER, 40_000),
            SocketAddrV4::new(SERVER, 80),
        ];
        let content = Stream::new(3);
        let server = Program::server(tcp.clone(), ends[1], content);
        let client = Program::client(tcp, ends, content, world.network.now());
        world.network.host_mut(gateway).start(server);
        world.network.host_mut(mobile).start(client);
        world
    }

    fn run_for(&mut self, duration: Duration) {
        self.network.run_for(duration);
    }

    /// Returns the octets that the mobile node received, all verified.
    fn octets(&self) -> u64 {
        let program = self.network.host(self.mobile).program();
        let received = program.and_then(Program::received).expect("a client");
        assert_eq!(received.damaged, None);
        received.octets
    }

    /// Returns the socket that the gateway sends to.
    fn remote(&self) -> String {
        let peers = self.network.host(self.gateway).node().map(Node::peers);
        let peer = peers.and_then(|mut peers| peers.pop()).expect("a peer");
        peer.children[0].path.remote.to_string()
    }
}

fn interface_seed(address: Ipv4Addr) -> u8 {
    address.octets()[1]
}

fn selector(address: Ipv4Addr) -> TrafficSelector {
    TrafficSelector::from_prefix(address.into(), 32).expect("a length of IPv4")
}

fn config(
    name: &str,
    peer: &str,
    address: Option<Ipv4Addr>,
    [local, remote]: [&TrafficSelector; 2],
) -> Config {
    let zones = ZonePolicy {
        map: model::MapKind::Changeable,
        stance: Stance::Require,
        zones: vec![
            (ZoneSelector::IpTransport, ZoneSuite::Aes128Gcm16),
            (ZoneSelector::Rest, ZoneSuite::Aes128Gcm16),
        ],
        window: 4096,
        licences: Vec::new(),
        level: None,
    };
    let identity = |who: &str| format!("{who}.example").parse().expect("an identity");
    let role = Role::Vpn {
        local: vec![local.clone()].into(),
        remote: vec![remote.clone()].into(),
        addressing: Addressing::Fixed,
        zones: zones.into(),
        mode: Mode::Tunnel,
    };
    let mut other = Peer::new(peer, identity(peer), role);
    other.ike.address = address.map(Into::into);
    other.ike.psk = Some(Secret::new(b"a key for this test".to_vec()));
    other.ike.liveness = LIVENESS;
    other.ike.features = Features::offered();
    Config {
        start: address.iter().map(|_| peer.to_owned()).collect(),
        grant_lifetime: Duration::from_secs(3600),
        ..Config::new(identity(name), vec![other])
    }
}

#[test]
fn a_download_survives_a_nat_that_forgets_its_mappings() {
    let mut world = World::new();
    world.run_for(Duration::from_secs(5));
    let (before, old) = (world.octets(), world.remote());
    assert!(
        before > 300_000 && old.starts_with("198.51.100.7:"),
        "{before} from {old}"
    );

    world.network.nat_mut(world.wire).expect("a NAT").rebind();
    world.run_for(Duration::from_secs(1));
    let stalled = world.octets();
    assert!(
        stalled - before < 20_000,
        "nothing comes by a mapping that is gone"
    );

    // The mobile node hears nothing and sends a liveness check. The gateway follows it to the new
    // port.
    world.run_for(LIVENESS * 3);
    assert_ne!(world.remote(), old);
    assert!(
        world.octets() > stalled + 300_000,
        "{} after {stalled}",
        world.octets()
    );
    let nat = world.network.nat_mut(world.wire).expect("a NAT");
    assert!(nat.counters().uninvited > 0);
}

/// Negative control: the rebinding is the reason for the stall.
#[test]
fn without_a_rebinding_nothing_stalls() {
    let mut world = World::new();
    world.run_for(Duration::from_secs(5));
    let (before, old) = (world.octets(), world.remote());
    world.run_for(Duration::from_secs(1));
    assert!(world.octets() > before + 50_000);
    world.run_for(LIVENESS * 3);
    assert_eq!(world.remote(), old);
}
