//! Hosts connected by wires.
//!
//! At equal times, packets arrive in the order in which they were sent, those of one moment in the
//! order in which their wires were added. Deadlines are handled in the order in which their hosts
//! were added. So a run is a function of its network. The octets and times of all packets enter one
//! digest of the run.

use crate::{Host, Link, Nat, Outcome, Settings, Statistics};
use model::Instant;
use world::Hosts;

/// A host of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostId(usize);

/// A wire of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireId(usize);

/// An interface of a host, numbered in the order in which wires were connected to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface(pub(crate) usize);

/// A network in virtual time; see the module's documentation.
#[derive(Default)]
pub struct Network {
    now: Instant,
    hosts: Vec<Host>,
    wires: Vec<Wire>,
    crossings: world::Network<Crossing>,
    digest: [u8; 32],
}

/// A packet on a wire.
#[derive(Debug)]
pub struct Crossing {
    wire: usize,
    /// 0 from the first end of the wire to the second, 1 back.
    direction: usize,
    packet: Vec<u8>,
}

/// Two links between two hosts' interfaces: from the first end to the second, and back.
struct Wire {
    ends: [(HostId, Interface); 2],
    links: [Link; 2],
    /// NAT at the second end. The first end is inside.
    nat: Option<Nat>,
}

impl Network {
    /// Creates an empty network at the clock's origin.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a host.
    pub fn add(&mut self, host: Host) -> HostId {
        self.hosts.push(host);
        HostId(self.hosts.len() - 1)
    }

    /// Adds a wire with the same settings in both directions. Errors are drawn from `seed`.
    pub fn connect(&mut self, a: HostId, b: HostId, settings: Settings, seed: u64) -> WireId {
        // The directions draw their errors from different streams.
        let link = |direction| Link::new(settings, seed.wrapping_mul(2).wrapping_add(direction));
        let mut end = |id: HostId| (id, self.hosts[id.0].add_interface());
        self.wires.push(Wire {
            ends: [end(a), end(b)],
            links: [link(0), link(1)],
            nat: None,
        });
        WireId(self.wires.len() - 1)
    }

    /// Puts a NAT at the second end of a wire, which hides the first end.
    pub fn translate(&mut self, wire: WireId, nat: Nat) {
        self.wires[wire.0].nat = Some(nat);
    }

    /// Returns the interfaces that a wire connects.
    pub fn interfaces(&self, wire: WireId) -> [Interface; 2] {
        self.wires[wire.0].ends.map(|(_, interface)| interface)
    }

    /// Returns the current time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Returns a host.
    pub fn host(&self, id: HostId) -> &Host {
        &self.hosts[id.0]
    }

    /// Returns a host, for commands. Their packets leave when time advances.
    pub fn host_mut(&mut self, id: HostId) -> &mut Host {
        &mut self.hosts[id.0]
    }

    /// Returns the NAT on a wire.
    pub fn nat_mut(&mut self, wire: WireId) -> Option<&mut Nat> {
        self.wires[wire.0].nat.as_mut()
    }

    /// Returns the counters of a wire: from its first end to its second, and back.
    pub fn statistics(&self, wire: WireId) -> [Statistics; 2] {
        let [there, back] = &self.wires[wire.0].links;
        [there.statistics(), back.statistics()]
    }

    /// Returns a hash over every packet on a wire and its time. Two runs with the same digest are
    /// the same run.
    pub const fn digest(&self) -> [u8; 32] {
        self.digest
    }
}

impl Hosts for Network {
    type Packet = Crossing;

    fn clock(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn network(&mut self) -> &mut world::Network<Crossing> {
        &mut self.crossings
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.hosts.iter().filter_map(Host::poll_timeout).min()
    }

    fn handle_timeout(&mut self) {
        for host in &mut self.hosts {
            if host.poll_timeout().is_some_and(|at| at <= self.now) {
                host.handle_timeout(self.now);
            }
        }
    }

    fn receive(&mut self, mut crossing: Crossing) {
        let wire = &mut self.wires[crossing.wire];
        let (host, interface) = wire.ends[1 - crossing.direction];
        let passes = wire
            .nat
            .as_mut()
            .is_none_or(|nat| match crossing.direction {
                0 => nat.outward(&mut crossing.packet, self.now),
                _ => nat.inward(&mut crossing.packet, self.now),
            });
        if passes {
            self.hosts[host.0].handle_packet(interface, crossing.packet, self.now);
        }
    }

    /// Puts the outgoing packets of the hosts on the wires.
    fn collect(&mut self) {
        for host in &mut self.hosts {
            host.carry_out(self.now);
        }
        for (number, wire) in self.wires.iter_mut().enumerate() {
            for direction in [0, 1] {
                let (host, interface) = wire.ends[direction];
                while let Some(packet) = self.hosts[host.0].poll_packet(interface) {
                    let moment = self.now.since_origin().as_nanos().to_be_bytes();
                    self.digest = crypto::sha256(&[&self.digest, &moment, &packet]);
                    let outcome = wire.links[direction].offer(packet.len(), self.now);
                    if let Outcome::Deliver { at } = outcome {
                        let crossing = Crossing {
                            wire: number,
                            direction,
                            packet,
                        };
                        self.crossings.deliver(crossing, at);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Program, Stream, Via, tcp};
    use std::net::{Ipv4Addr, SocketAddrV4};
    use std::num::NonZeroU64;
    use std::time::Duration;

    const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const EVERYWHERE: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

    fn wire(delay: Duration) -> Settings {
        Settings {
            rate: None,
            delay,
            queue: 10,
            bit_error_rate: 0.0,
        }
    }

    fn client(address: Ipv4Addr) -> Program {
        let ends = [
            SocketAddrV4::new(address, 40_000),
            SocketAddrV4::new(SERVER, 80),
        ];
        Program::client(
            tcp::Settings::default(),
            ends,
            Stream::new(1),
            Instant::ZERO,
        )
    }

    fn at_us(us: u64) -> Instant {
        Instant::from_origin(Duration::from_micros(us))
    }

    fn is_established(network: &Network, host: HostId) -> bool {
        let program = network.host(host).program();
        program.is_some_and(|program| program.connection().is_established())
    }

    #[test]
    fn nothing_happens_before_its_time_and_nothing_after_it() {
        let mut network = Network::new();
        let ours = Ipv4Addr::new(10, 0, 0, 2);
        let [near, far] = [ours, SERVER].map(|address| network.add(Host::new(&[address])));
        let laid = network.connect(near, far, wire(Duration::from_millis(50)), 1);
        for (host, interface) in [near, far].into_iter().zip(network.interfaces(laid)) {
            network
                .host_mut(host)
                .route(EVERYWHERE, 0, Via::Wire(interface));
        }
        let local = SocketAddrV4::new(SERVER, 80);
        let server = Program::server(tcp::Settings::default(), local, Stream::new(1));
        network.host_mut(far).start(server);
        network.host_mut(near).start(client(ours));
        network.run_to(at_us(99_999));
        assert!(!is_established(&network, near), "one round trip is 100 ms");
        network.run_to(at_us(100_000));
        assert!(is_established(&network, near));
        assert!(!is_established(&network, far));
        network.run_to(at_us(150_000));
        assert!(is_established(&network, far));
        assert_eq!(network.now(), at_us(150_000));
    }

    /// Sends two SYNs that reach a router at the same time, with room for one. Returns true for
    /// each answered SYN, in the order in which their wires were added.
    fn race(clients: [Ipv4Addr; 2]) -> [bool; 2] {
        let mut network = Network::new();
        let router = network.add(Host::new(&[Ipv4Addr::new(10, 0, 0, 9)]));
        let far = network.add(Host::new(&[SERVER]));
        let hosts = clients.map(|address| {
            let host = network.add(Host::new(&[address]));
            let laid = network.connect(host, router, wire(Duration::from_millis(1)), 1);
            let [out, back] = network.interfaces(laid);
            network.host_mut(host).route(EVERYWHERE, 0, Via::Wire(out));
            network.host_mut(router).route(address, 32, Via::Wire(back));
            network.host_mut(host).start(client(address));
            host
        });
        let narrow = Settings {
            rate: NonZeroU64::new(1_000_000),
            queue: 0,
            ..wire(Duration::from_millis(1))
        };
        let laid = network.connect(router, far, narrow, 1);
        let [out, back] = network.interfaces(laid);
        network.host_mut(router).route(SERVER, 32, Via::Wire(out));
        network.host_mut(far).route(EVERYWHERE, 0, Via::Wire(back));
        let local = SocketAddrV4::new(SERVER, 80);
        let server = Program::server(tcp::Settings::default(), local, Stream::new(1));
        network.host_mut(far).start(server);
        network.run_to(at_us(500_000));
        assert_eq!(network.statistics(laid)[0].lost_queue, 1);
        hosts.map(|host| is_established(&network, host))
    }

    #[test]
    fn of_two_packets_at_one_moment_that_of_the_older_wire_is_first() {
        let [a, b] = [Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 3)];
        assert_eq!(race([a, b]), [true, false]);
        assert_eq!(race([b, a]), [true, false]);
    }

    #[test]
    fn a_packet_in_a_loop_ends_with_its_time_to_live() {
        let mut network = Network::new();
        let addresses = [Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 3)];
        let hosts = addresses.map(|address| network.add(Host::new(&[address])));
        let laid = network.connect(hosts[0], hosts[1], wire(Duration::from_millis(1)), 1);
        for (host, interface) in hosts.into_iter().zip(network.interfaces(laid)) {
            network
                .host_mut(host)
                .route(EVERYWHERE, 0, Via::Wire(interface));
        }
        network.host_mut(hosts[0]).start(client(addresses[0]));
        network.run_to(at_us(500_000));
        let expired = hosts.map(|host| network.host(host).counters().expired);
        assert_eq!(expired.iter().sum::<u64>(), 1);
        let [there, back] = network.statistics(laid);
        assert_eq!(there.offered + back.offered, 64);
    }

    #[test]
    fn what_has_no_route_and_what_nobody_wants_is_counted() {
        let mut network = Network::new();
        let ours = Ipv4Addr::new(10, 0, 0, 2);
        let [near, far] = [ours, SERVER].map(|address| network.add(Host::new(&[address])));
        let laid = network.connect(near, far, wire(Duration::ZERO), 1);
        network.host_mut(near).start(client(ours));
        network.run_to(at_us(1));
        assert_eq!(network.host(near).counters().unroutable, 1);
        let [out, _] = network.interfaces(laid);
        network.host_mut(near).route(EVERYWHERE, 0, Via::Wire(out));
        network.run_to(at_us(2_000_000));
        assert_eq!(network.host(far).counters().unwanted, 1, "the second SYN");
    }
}
