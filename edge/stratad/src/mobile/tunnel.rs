//! Packets between an agent's device and its tunnels (RFC 2003), in batches. Behind a NAT they are
//! in UDP (RFC 3519), on the same port as registrations.
//!
//! The kernel writes the outer header. Packets of equal length for one destination leave with one
//! call.

use super::home_agent::routed;
use crate::batch::{TURNS, fill};
use crate::sink::IoCounters;
use model::{Df, Instant, Path};
use node::mobile_ip::{Envelope, Remote, TunnelData, message, room};
use node::{Node, Packet};
use os::routes::MARK;
use os::{Bulk, Datagrams, Error, Run};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use wire::checksum::Checksum;
use wire::ecn::Ecn;
use wire::fragments::fragments;
use wire::ip_in_ip::{HEADER_LEN, UDP_LEN};
use wire::too_big::TooBig;

/// The local ends of tunnels.
pub struct Tunnel {
    /// The socket of IP in IP.
    bare: Datagrams,
    /// The socket of tunnels in UDP and of routed registrations: both "use the same ports" (RFC
    /// 3519 section 2).
    udp: Datagrams,
    run: Run,
    /// A packet under preparation for UDP.
    data: Vec<u8>,
    /// The last path with an implausibly small MTU, and the kernel's MTU for it. The node gets
    /// both.
    disbelieved: Option<(Path, u16)>,
}

/// Packets from one tunnel into another. They are rare: for some seconds after a move, or
/// keepalives, so no buffer is kept for them.
type Onward = Vec<(Envelope, Vec<u8>)>;

impl Tunnel {
    /// Opens the sockets at a local address and port; with port 0 the kernel chooses one.
    pub fn open(address: Ipv4Addr, port: u16) -> Result<Self, Error> {
        Ok(Self {
            bare: Datagrams::ip_in_ip(address.into(), Some(MARK))?,
            udp: Datagrams::udp(SocketAddr::from((address, port)), Some(MARK))?,
            run: Run::default(),
            data: Vec::new(),
            disbelieved: None,
        })
    }

    /// Returns the socket of IP in IP, for the poller.
    pub const fn bare(&self) -> &Datagrams {
        &self.bare
    }

    /// Returns the socket of UDP, for the poller.
    pub const fn udp(&self) -> &Datagrams {
        &self.udp
    }

    /// Sends packets from the device into tunnels.
    pub fn put_in(
        &mut self,
        device: &mut Bulk,
        node: &mut Node,
        batch: &mut [Packet],
        counters: &mut IoCounters,
        now: Instant,
    ) -> io::Result<()> {
        for _ in 0..TURNS {
            let (filled, failed) = fill(batch, device);
            for packet in &mut batch[..filled] {
                if packet.make_checksum().is_err() {
                    counters.sent += 1;
                    continue;
                }
                let octets = packet.octets();
                let each = |envelope| self.gather(envelope, octets, device, counters);
                node.encapsulate(octets, each, now);
            }
            self.leave(device, counters);
            self.tell(node, now);
            counters.delivered += device.flush();
            failed.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Passes packets from tunnels of IP in IP to the kernel, or into another tunnel.
    pub fn take_out(
        &mut self,
        device: &mut Bulk,
        node: &mut Node,
        counters: &mut IoCounters,
        now: Instant,
    ) -> io::Result<()> {
        let from = |_: &mut Node, path: Path, _: &[u8]| match path.remote.ip() {
            IpAddr::V4(from) => Some(Remote::Ip(from)),
            IpAddr::V6(_) => None,
        };
        self.take_from(|tunnel| &mut tunnel.bare, from, device, node, counters, now)
    }

    /// Handles registrations from the UDP socket, and passes tunnelled packets on in the same way.
    pub fn read_udp(
        &mut self,
        device: &mut Bulk,
        node: &mut Node,
        counters: &mut IoCounters,
        now: Instant,
    ) -> io::Result<()> {
        let from = |node: &mut Node, path: Path, octets: &[u8]| {
            let arrival = routed(path)?;
            if octets.first() != Some(&message::TUNNEL_DATA) {
                node.handle_registration(&arrival, octets, now);
                return None;
            }
            Some(Remote::Udp(arrival.source))
        };
        self.take_from(|tunnel| &mut tunnel.udp, from, device, node, counters, now)
    }

    /// Decapsulates packets from one of the sockets, if `from` names their tunnel. Reading stops
    /// at an event: a registration decides where the packets behind it go.
    fn take_from(
        &mut self,
        socket: fn(&mut Self) -> &mut Datagrams,
        from: impl Fn(&mut Node, Path, &[u8]) -> Option<Remote>,
        device: &mut Bulk,
        node: &mut Node,
        counters: &mut IoCounters,
        now: Instant,
    ) -> io::Result<()> {
        let mut onward = Onward::new();
        for _ in 0..TURNS {
            let read = socket(self).recv(|arrival, octets| {
                let ecn = Ecn::from_bits(arrival.ecn);
                let taken = from(node, arrival.path, octets)
                    .and_then(|from| node.decapsulate(from, ecn, octets, now));
                if let Some(taken) = taken {
                    match taken.onward {
                        None => counters.delivered += device.push(taken.datagram, Checksum::Made),
                        Some(envelope) => onward.push((envelope, taken.datagram.to_vec())),
                    }
                }
            });
            self.send_on(&mut onward, device, counters);
            self.tell(node, now);
            read?;
            if node.has_events() {
                break;
            }
        }
        Ok(())
    }

    fn tell(&mut self, node: &mut Node, now: Instant) {
        if let Some((path, mtu)) = self.disbelieved.take() {
            node.disbelieve_path_mtu(path, mtu, now);
        }
    }

    fn send_on(&mut self, onward: &mut Onward, device: &mut Bulk, counters: &mut IoCounters) {
        for (envelope, datagram) in onward.drain(..) {
            self.gather(envelope, &datagram, device, counters);
        }
        self.leave(device, counters);
        counters.delivered += device.flush();
    }

    fn gather(
        &mut self,
        Envelope { outer, port }: Envelope,
        datagram: &[u8],
        device: &mut Bulk,
        counters: &mut IoCounters,
    ) {
        self.data.clear();
        let end = |address: Ipv4Addr, port| SocketAddr::new(address.into(), port);
        let path = match port {
            None => Path::udp(end(outer.source, 0), end(outer.destination, 0)).without_udp(),
            Some(port) => {
                self.data.extend(TunnelData::IP_IN_UDP.octets());
                let here = end(outer.source, self.udp.local().port());
                Path::udp(here, end(outer.destination, port))
            }
        };
        self.data.extend(datagram);
        let df = if outer.dont_fragment {
            Df::Set
        } else {
            Df::Clear
        };
        let destination = (path, (outer.tos, df));
        if !self.run.take(destination, &self.data) {
            self.leave(device, counters);
            self.run.take(destination, &self.data);
        }
    }

    const fn socket(&self, path: Path) -> &Datagrams {
        match path.has_udp() {
            true => &self.udp,
            false => &self.bare,
        }
    }

    /// Sends queued packets, one by one if the system refuses them together.
    fn leave(&mut self, device: &mut Bulk, counters: &mut IoCounters) {
        let Some((path, header @ (class, df))) = self.run.destination() else {
            return;
        };
        let run = std::mem::take(&mut self.run);
        let sent = run.together().map(|(length, octets)| {
            let sent = self.socket(path).send_run(path, header, length, octets);
            sent.unwrap_or_default()
        });
        for datagram in run.packets().skip(sent.unwrap_or_default()) {
            self.send(path, class, df, datagram, device, counters);
        }
        self.run = run;
        self.run.clear();
    }

    fn send(
        &mut self,
        path: Path,
        class: u8,
        df: Df,
        packet: &[u8],
        device: &mut Bulk,
        counters: &mut IoCounters,
    ) {
        let sent = self.socket(path).send_as(path, (class, df), packet);
        match sent {
            Ok(()) => {}
            Err(error) if df != Df::Clear && os::is_too_long(&error) => {
                self.shorten(path, class, packet, device, counters);
            }
            Err(error) => {
                tracing::trace!("cannot send to {}: {error}", path.remote);
                counters.sent += 1;
            }
        }
    }

    /// Handles a packet that is too long for the path. In UDP the inner packet is fragmented, if
    /// allowed: "the fragmentation MUST be done prior to the encapsulation" (RFC 3519 section 4.8).
    /// Otherwise the source is notified of the MTU (RFC 2003 section 5.1), unless that is below the
    /// minimum of any link; the packet is then fragmented on the path.
    fn shorten(
        &mut self,
        path: Path,
        class: u8,
        packet: &[u8],
        device: &mut Bulk,
        counters: &mut IoCounters,
    ) {
        let (header, added) = match path.has_udp() {
            true => (TunnelData::LEN, HEADER_LEN + UDP_LEN),
            false => (0, HEADER_LEN),
        };
        let mtu = os::path_mtu(path, Some(MARK)).unwrap_or(super::OUTER_MTU);
        let (front, datagram) = packet.split_at(header);
        let mut pieces = fragments(datagram, mtu.saturating_sub(added as u16)).peekable();
        if path.has_udp() && pieces.peek().is_some() {
            for piece in pieces {
                let piece = [front, &piece].concat();
                if let Err(error) = self.udp.send_whole(path, class, &piece) {
                    tracing::trace!("cannot send a piece to {}: {error}", path.remote);
                    counters.sent += 1;
                }
            }
            return;
        }
        let Some(room) = room(mtu, added as u16) else {
            self.disbelieved = Some((path, mtu));
            return self.send(path, class, Df::Clear, packet, device, counters);
        };
        let message = TooBig::about(datagram, room);
        counters.delivered +=
            message.map_or(1, |message| device.push(message.octets(), Checksum::Made));
    }
}
