//! Packets between an agent's device and its tunnels (RFC 2003), many at once.
//!
//! The header outside is the kernel's to write: packets for one place that are of one length leave with one call.

use crate::batch::{TURNS, fill};
use crate::outlet::Losses;
use model::Path;
use node::{Node, Packet};
use os::routes::MARK;
use os::{Bulk, Datagrams, Error, Run};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use wire::checksum::Checksum;
use wire::ecn::Ecn;
use wire::ip_in_ip::{HEADER_LEN, Outer};
use wire::too_big::TooBig;

/// Where our tunnels end.
pub struct Tunnel {
    socket: Datagrams,
    run: Run,
}

impl Tunnel {
    /// At an address of ours.
    pub fn open(address: Ipv4Addr) -> Result<Self, Error> {
        Ok(Self {
            socket: Datagrams::ip_in_ip(address.into(), Some(MARK))?,
            run: Run::default(),
        })
    }

    /// The socket, to wait for.
    pub const fn socket(&self) -> &Datagrams {
        &self.socket
    }

    /// What the kernel led into the device goes into tunnels.
    pub fn put_in(
        &mut self,
        device: &mut Bulk,
        node: &mut Node,
        batch: &mut [Packet],
        losses: &mut Losses,
    ) -> io::Result<()> {
        for _ in 0..TURNS {
            let (filled, failed) = fill(batch, device);
            for packet in &mut batch[..filled] {
                match packet.make_checksum() {
                    Ok(()) => node.encapsulate(packet.octets(), |outer| {
                        self.gather(&outer, packet.octets(), device, losses);
                    }),
                    Err(_) => losses.sent += 1,
                }
            }
            self.leave(device, losses);
            losses.delivered += device.flush();
            failed.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// What came in tunnels goes to the kernel, or into another tunnel.
    pub fn take_out(
        &mut self,
        device: &mut Bulk,
        node: &mut Node,
        losses: &mut Losses,
    ) -> io::Result<()> {
        // Some, for some seconds after a move: no room is kept for them.
        let mut onward = Vec::new();
        for _ in 0..TURNS {
            let read = self.socket.recv(|arrival, inner| {
                let (IpAddr::V4(from), ecn) = (arrival.path.remote.ip(), arrival.ecn) else {
                    return;
                };
                let Some(taken) = node.decapsulate(from, Ecn::from_bits(ecn), inner) else {
                    return;
                };
                match taken.onward {
                    None => losses.delivered += device.push(taken.datagram, Checksum::Made),
                    Some(outer) => onward.push((outer, taken.datagram.to_vec())),
                }
            });
            for (outer, datagram) in onward.drain(..) {
                self.gather(&outer, &datagram, device, losses);
            }
            self.leave(device, losses);
            losses.delivered += device.flush();
            read?;
        }
        Ok(())
    }

    fn gather(&mut self, outer: &Outer, datagram: &[u8], device: &mut Bulk, losses: &mut Losses) {
        let end = |address: Ipv4Addr| SocketAddr::new(address.into(), 0);
        let path = Path::udp(end(outer.source), end(outer.destination)).without_udp();
        let destination = (path, (outer.tos, outer.dont_fragment));
        if !self.run.take(destination, datagram) {
            self.leave(device, losses);
            self.run.take(destination, datagram);
        }
    }

    /// Sends what waits, one by one where it cannot leave together.
    fn leave(&mut self, device: &mut Bulk, losses: &mut Losses) {
        let Some((path, header)) = self.run.destination() else {
            return;
        };
        let run = std::mem::take(&mut self.run);
        let sent = run.together().map(|(length, octets)| {
            let sent = self.socket.send_run(path, header, length, octets);
            sent.unwrap_or_default()
        });
        for datagram in run.packets().skip(sent.unwrap_or_default()) {
            self.send(path, header, datagram, device, losses);
        }
        self.run = run;
        self.run.clear();
    }

    fn send(
        &self,
        path: Path,
        (class, whole): (u8, bool),
        datagram: &[u8],
        device: &mut Bulk,
        losses: &mut Losses,
    ) {
        let sent = match whole {
            true => self.socket.send_whole(path, class, datagram),
            false => self.socket.send(path, class, datagram),
        };
        match sent {
            Ok(()) => {}
            Err(error) if whole && os::is_too_long(&error) => {
                losses.delivered += refuse(path, datagram, device);
            }
            Err(error) => {
                tracing::trace!("cannot send to {}: {error}", path.remote);
                losses.sent += 1;
            }
        }
    }
}

/// Tells a datagram's source how long one may be that has room in the tunnel (RFC 2003 section 5.1). Gives how many packets
/// the kernel did not take.
fn refuse(path: Path, datagram: &[u8], device: &mut Bulk) -> u64 {
    let mtu = os::path_mtu(path, Some(MARK)).unwrap_or(super::OUTER_MTU);
    let message = TooBig::about(datagram, mtu.saturating_sub(HEADER_LEN as u16));
    message.map_or(1, |message| device.push(message.octets(), Checksum::Made))
}
