//! A host: does the work that the kernel, the daemon and one program do with packets on a real
//! host.
//!
//! A received packet is either for one of the host's addresses, or is forwarded by the first route
//! that matches. In both cases it passes the [`Node`], if there is one, at the same points as in
//! the daemon:
//!
//! * packets routed into the tunnel are sealed ([`Node::seal`]);
//! * UDP ports 500 and 4500 are IKE and ESP ([`Node::handle_datagram`], [`Node::open`]), and opened
//!   packets are received like packets from a wire;
//! * on a licensed node, transit packets between the wired and the wireless side are diverted
//!   ([`Node::transit`]);
//! * after each of these, the node's outputs are carried out.
//!
//! The detour of a diverted packet costs a hop, which the node restores, as on Linux.

use crate::datagram::{pass_router, udp as udp_datagram};
use crate::network::Interface;
use crate::tcp::Connection;
use crate::{Program, ip4};
use model::{Instant, Path};
use node::{DropReason, Event, Node, Packet, Side, Sink, Verdict};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use wire::esp::{self, Datagram};
use wire::{ip, tcp, udp};

/// Next hop of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// An interface.
    Wire(Interface),
    /// The tunnel.
    Tunnel,
}

/// The two sides of a licensed node.
#[derive(Clone, Copy, Debug)]
pub struct Divert {
    /// Interface towards the gateway.
    pub wired: Interface,
    /// Interface towards the mobile node.
    pub wireless: Interface,
    /// True if unprotected TCP is diverted as well.
    pub clear_tcp: bool,
}

/// Counters of dropped packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Packets that are not IPv4.
    pub malformed: u64,
    /// Packets that no route matches.
    pub unroutable: u64,
    /// Packets whose time to live expired.
    pub expired: u64,
    /// Packets for this host that no node or program accepts.
    pub unwanted: u64,
}

/// A host of a [`crate::Network`].
#[derive(Default)]
pub struct Host {
    addresses: Vec<Ipv4Addr>,
    routes: Vec<(Ipv4Addr, u8, Via)>,
    node: Option<Node>,
    divert: Option<Divert>,
    program: Option<Program>,
    /// One queue of outgoing packets for each interface.
    outboxes: Vec<VecDeque<Vec<u8>>>,
    events: Vec<Event>,
    counters: HostCounters,
}

impl Host {
    /// Creates a host with these addresses and nothing else. The first address is the source of
    /// packets that the node sends.
    pub fn new(addresses: &[Ipv4Addr]) -> Self {
        Self {
            addresses: addresses.to_vec(),
            ..Self::default()
        }
    }

    // Commands.

    /// Adds a route. The first route that matches a packet is used.
    pub fn route(&mut self, network: Ipv4Addr, length: u8, via: Via) {
        self.routes.push((network, length, via));
    }

    /// Starts a node, and replaces any other.
    pub fn install(&mut self, node: Node) {
        self.node = Some(node);
    }

    /// Diverts transit packets to the node.
    pub fn divert(&mut self, divert: Divert) {
        self.divert = Some(divert);
    }

    /// Starts a program, and replaces any other.
    pub fn start(&mut self, program: Program) {
        self.program = Some(program);
    }

    /// Returns the node.
    pub const fn node(&self) -> Option<&Node> {
        self.node.as_ref()
    }

    /// Returns the node, for commands.
    pub const fn node_mut(&mut self) -> Option<&mut Node> {
        self.node.as_mut()
    }

    /// Returns the program.
    pub const fn program(&self) -> Option<&Program> {
        self.program.as_ref()
    }

    /// Returns all events of the node since it started.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns the counters of dropped packets.
    pub const fn counters(&self) -> &HostCounters {
        &self.counters
    }

    // Inputs.

    pub(crate) fn add_interface(&mut self) -> Interface {
        self.outboxes.push(VecDeque::new());
        Interface(self.outboxes.len() - 1)
    }

    /// Handles a packet that arrives on an interface.
    pub(crate) fn handle_packet(&mut self, from: Interface, mut packet: Vec<u8>, now: Instant) {
        match ip4::destination(&packet) {
            None => self.counters.malformed += 1,
            Some(to) if self.addresses.contains(&to) => self.receive(packet, now),
            Some(to) => {
                if pass_router(&mut packet) {
                    self.forward(Some(from), to, packet, now);
                } else {
                    self.counters.expired += 1;
                }
            }
        }
        self.carry_out(now);
    }

    /// Runs due timers of the node and the program.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Some(node) = &mut self.node
            && node
                .poll_timeout()
                .is_some_and(|deadline| deadline.at <= now)
        {
            node.handle_timeout(now);
        }
        if let Some(program) = &mut self.program {
            program.connection_mut().handle_timeout(now);
        }
        self.carry_out(now);
    }

    // Outputs.

    /// Returns the next packet to leave on an interface.
    pub(crate) fn poll_packet(&mut self, by: Interface) -> Option<Vec<u8>> {
        self.outboxes[by.0].pop_front()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let node = self.node.as_ref().and_then(Node::poll_timeout);
        let program = self.program.as_ref().map(Program::connection);
        let timeouts = [
            node.map(|deadline| deadline.at),
            program.and_then(Connection::poll_timeout),
        ];
        timeouts.into_iter().flatten().min()
    }

    // Inside.

    /// Handles a packet for one of our addresses.
    fn receive(&mut self, packet: Vec<u8>, now: Instant) {
        let header = ip::Header::parse(&packet).ok();
        match header.map(|header| header.protocol()) {
            Some(udp::PROTOCOL) if self.node.is_some() => self.receive_udp(&packet, now),
            Some(tcp::PROTOCOL) if self.program.is_some() => {
                if let Some(program) = &mut self.program {
                    program.handle_datagram(&packet, now);
                }
            }
            _ => self.counters.unwanted += 1,
        }
    }

    /// Handles UDP as `stratad` does with its sockets.
    fn receive_udp(&mut self, packet: &[u8], now: Instant) {
        let (Some((path, payload)), Some(node)) = (udp_payload(packet), &mut self.node) else {
            self.counters.unwanted += 1;
            return;
        };
        let datagram = match path.local.port() {
            500 => Datagram::Ike(payload),
            esp::NATT_PORT => Datagram::parse(payload),
            _ => {
                self.counters.unwanted += 1;
                return;
            }
        };
        match datagram {
            Datagram::Ike(message) => node.handle_datagram(path, message, now),
            Datagram::Keepalive => {}
            Datagram::Esp(sealed) => {
                let mut packet = Packet::from_slice(sealed);
                packet.path = Some(path);
                let mut sink = PacketSink::default();
                node.open(&mut [packet], &mut sink, now);
                self.sort(sink, now);
            }
        }
    }

    /// Forwards a packet for another host, or sends one of our own if it came from no interface.
    fn forward(&mut self, from: Option<Interface>, to: Ipv4Addr, packet: Vec<u8>, now: Instant) {
        let mut routes = self.routes.iter();
        let fits = |(network, length, _): &&(Ipv4Addr, u8, Via)| ip4::is_in(to, *network, *length);
        match routes.find(fits).map(|(.., via)| *via) {
            None => self.counters.unroutable += 1,
            Some(Via::Tunnel) => self.seal(&packet, now),
            Some(Via::Wire(by)) => match self.diverted(from, &packet) {
                Some(side) => self.transit(side, packet, now),
                None => self.outboxes[by.0].push_back(packet),
            },
        }
    }

    fn seal(&mut self, packet: &[u8], now: Instant) {
        let Some(node) = &mut self.node else {
            self.counters.unroutable += 1;
            return;
        };
        let mut sink = PacketSink::default();
        node.seal(&mut [Packet::from_slice(packet)], &mut sink, now);
        self.sort(sink, now);
    }

    /// Returns the side that a packet came from, if the node has to see it.
    fn diverted(&self, from: Option<Interface>, packet: &[u8]) -> Option<Side> {
        let divert = self.divert?;
        let side = match from? {
            from if from == divert.wired => Side::Wired,
            from if from == divert.wireless => Side::Wireless,
            _ => return None,
        };
        let flow = ip::flow(packet)?;
        let encapsulated = [flow.source_port, flow.destination_port].contains(&esp::NATT_PORT);
        let seen = match flow.protocol {
            udp::PROTOCOL => encapsulated,
            tcp::PROTOCOL => divert.clear_tcp,
            _ => false,
        };
        seen.then_some(side)
    }

    /// Passes a packet through the node and out on the other side.
    fn transit(&mut self, from: Side, packet: Vec<u8>, now: Instant) {
        let Some(node) = &mut self.node else {
            return self.leave(from.opposite(), packet);
        };
        if node.transit(from, &packet, now) == Verdict::Forward {
            self.leave(from.opposite(), packet);
        }
    }

    /// Sends a packet on one side of a licensed node.
    fn leave(&mut self, to: Side, packet: Vec<u8>) {
        if let Some(divert) = self.divert {
            let by = match to {
                Side::Wired => divert.wired,
                Side::Wireless => divert.wireless,
            };
            self.outboxes[by.0].push_back(packet);
        }
    }

    /// Handles the outputs of the node's data plane.
    fn sort(&mut self, sink: PacketSink, now: Instant) {
        for (path, payload) in sink.transmitted {
            self.send_udp(path, &payload, now);
        }
        for packet in sink.delivered {
            match ip4::destination(&packet) {
                None => self.counters.malformed += 1,
                Some(to) if self.addresses.contains(&to) => self.receive(packet, now),
                Some(to) => self.forward(None, to, packet, now),
            }
        }
    }

    /// Sends a UDP datagram as the kernel does: an unspecified source becomes our first address.
    fn send_udp(&mut self, path: Path, payload: &[u8], now: Instant) {
        let (Some(mut local), Some(remote)) = (v4(path.local), v4(path.remote)) else {
            self.counters.unroutable += 1;
            return;
        };
        if local.ip().is_unspecified()
            && let Some(ours) = self.addresses.first()
        {
            local.set_ip(*ours);
        }
        let packet = udp_datagram(local, remote, payload);
        self.forward(None, *remote.ip(), packet, now);
    }

    /// Carries out the node's outputs as `stratad` does, and sends the program's packets.
    pub(crate) fn carry_out(&mut self, now: Instant) {
        while let Some(transmit) = self.node.as_mut().and_then(Node::poll_transmit) {
            self.send_udp(transmit.path, &transmit.payload, now);
        }
        while let Some((to, packet)) = self.node.as_mut().and_then(Node::poll_resend) {
            self.leave(to, packet);
        }
        while let Some(event) = self.node.as_mut().and_then(Node::poll_event) {
            self.events.push(event);
        }
        while let Some(packet) = self
            .program
            .as_mut()
            .and_then(|program| program.poll_datagram(now))
        {
            if let Some(to) = ip4::destination(&packet) {
                self.forward(None, to, packet, now);
            }
        }
    }
}

/// Collects the outputs of a batch. The node has counted the dropped packets.
#[derive(Default)]
struct PacketSink {
    transmitted: Vec<(Path, Vec<u8>)>,
    delivered: Vec<Vec<u8>>,
}

impl Sink for PacketSink {
    fn transmit(&mut self, packet: &mut Packet, path: Path) {
        self.transmitted.push((path, packet.octets().to_vec()));
    }

    fn deliver(&mut self, packet: &mut Packet) {
        self.delivered.push(packet.octets().to_vec());
    }

    fn dropped(&mut self, _packet: &mut Packet, _why: DropReason) {}
}

/// Returns the path of a UDP datagram from its receiver's view, and the payload.
fn udp_payload(packet: &[u8]) -> Option<(Path, &[u8])> {
    let header = ip::Header::parse(packet).ok()?;
    let ports = udp::Header::parse(header.payload())?;
    let path = Path::udp(
        SocketAddr::new(header.destination(), ports.destination_port),
        SocketAddr::new(header.source(), ports.source_port),
    );
    Some((path, header.payload().get(udp::HEADER_LEN..)?))
}

fn v4(socket: SocketAddr) -> Option<SocketAddrV4> {
    match (socket.ip(), socket.port()) {
        (IpAddr::V4(address), port) => Some(SocketAddrV4::new(address, port)),
        (IpAddr::V6(_), _) => None,
    }
}
