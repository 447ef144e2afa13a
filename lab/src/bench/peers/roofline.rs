//! The roofline of a machine: a TUN device and a UDP socket with all kernel offloads, and
//! AES-128-GCM between them. It has no replay window, no policies, no zones and no mobility. The
//! difference in speed to a tunnel is the cost of these.
//!
//! ```text
//! number (8 octets) | packet, encrypted | ICV (16)
//! ```

use crate::host::Host;
use anyhow::{Context, Result};
use crypto::{Aead, AeadAlgorithm, ICV_LEN, NONCE_LEN};
use model::{Df, Path};
use nix::sys::eventfd::{EfdFlags, EventFd};
use os::poll::{Interest, Poller};
use os::{Bulk, Datagrams, Outline, Run, SEGMENTS};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use wire::checksum::{Checksum, restore};

/// Largest inner packet in octets, as in a tunnel of Strata.
const MTU: u16 = 1380;

const PORT: u16 = 4500;

const NUMBER_LEN: usize = 8;

/// Octets of a packet with its number and ICV.
const ROOM: usize = NUMBER_LEN + MTU as usize + ICV_LEN;

/// Packets sealed at once. The batch needs more room than one system call may fill: with exactly
/// that room, each packet that arrives alone would be a batch by itself.
const BATCH: usize = 2 * SEGMENTS;

/// Batches read from one descriptor before the other one gets its turn.
const TURNS: usize = 4;

/// No traffic class, and fragmentation allowed.
const HEADER: (u8, Df) = (0, Df::Clear);

const TUN: u64 = 0;
const UDP: u64 = 1;
const STOP: u64 = 2;

/// One end, run by a thread that ends when this is dropped.
pub(super) struct Roofline {
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Roofline {
    /// Starts an end in a host, at the first of two outer addresses. Packets that are routed into
    /// its device, which has this inner prefix, go to the second outer address.
    pub fn start(host: &Host, outside: [Ipv4Addr; 2], inside: &str) -> Result<Self> {
        let mut end = host.inside(|| End::open(outside))?;
        let netlink = host.netns().netlink()?;
        netlink.add_address(end.tun.name(), inside.parse()?)?;
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let stop = Arc::new(EventFd::from_flags(flags)?);
        let mut poller = Poller::new()?;
        poller.add(&end.tun, TUN, Interest::Read)?;
        poller.add(&end.udp, UDP, Interest::Read)?;
        poller.add(&*stop, STOP, Interest::Read)?;
        let thread = thread::Builder::new()
            .name("roofline".to_owned())
            .spawn(move || end.run(&mut poller))
            .context("cannot start a thread for the roofline")?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Roofline {
    fn drop(&mut self) {
        // The counter of an eventfd overflows at 2^64 - 1; one addition cannot fail.
        let _ = self.stop.write(1);
        if let Some(thread) = self.thread.take() {
            // An early end of the thread has shown already: no traffic was carried from then on.
            let _ = thread.join();
        }
    }
}

struct End {
    tun: Bulk,
    udp: Datagrams,
    path: Path,
    /// Outer addresses of this end and of the other.
    outside: [Ipv4Addr; 2],
    aead: Aead,
    number: u64,
    /// Buffers for the packets, each with its number and ICV.
    batch: Vec<[u8; ROOM]>,
    run: Run,
}

impl End {
    fn open(outside: [Ipv4Addr; 2]) -> Result<Self> {
        let [local, remote] = outside.map(|address| SocketAddr::from((address, PORT)));
        Ok(Self {
            tun: Bulk::open("roof0", MTU, true, false)?,
            udp: Datagrams::udp(local, None)?,
            path: Path::udp(local, remote),
            outside,
            aead: Aead::new(AeadAlgorithm::Aes128Gcm, &[7; 16])?,
            number: 0,
            batch: vec![[0; ROOM]; BATCH],
            run: Run::default(),
        })
    }

    fn run(&mut self, poller: &mut Poller) -> io::Result<()> {
        let mut ready = Vec::new();
        loop {
            poller.wait(None, &mut ready)?;
            for event in &ready {
                let moved = match event.token {
                    TUN => (0..TURNS).try_for_each(|_| self.seal()),
                    UDP => (0..TURNS).try_for_each(|_| self.unseal()),
                    _ => return Ok(()),
                };
                match moved {
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                    _ => {}
                }
            }
        }
    }

    /// Seals and sends one batch from the device.
    fn seal(&mut self) -> io::Result<()> {
        let mut outlines = [Outline::default(); BATCH];
        let spaces = self.batch.iter_mut();
        let mut spaces: Vec<_> = spaces.map(|room| &mut room[NUMBER_LEN..]).collect();
        let (filled, failed) = self.tun.recv(&mut spaces, &mut outlines);
        for (room, outline) in self.batch.iter_mut().zip(outlines).take(filled) {
            let Outline { len, checksum } = outline;
            let number = self.number.to_be_bytes();
            self.number += 1;
            room[..NUMBER_LEN].copy_from_slice(&number);
            let (packet, behind) = room[NUMBER_LEN..].split_at_mut(len);
            if checksum == Checksum::Left {
                // A checksum that was left always has a place in the packet.
                let _ = restore(packet);
            }
            let nonce = nonce(self.outside[0], number);
            behind[..ICV_LEN].copy_from_slice(&self.aead.seal(&nonce, &number, packet));
            let (datagram, to) = (&room[..NUMBER_LEN + len + ICV_LEN], (self.path, HEADER));
            if !self.run.take(to, datagram) {
                leave(&mut self.run, &self.udp);
                self.run.take(to, datagram);
            }
        }
        leave(&mut self.run, &self.udp);
        failed.map_or(Ok(()), Err)
    }

    /// Opens and delivers the datagrams of one system call.
    fn unseal(&mut self) -> io::Result<()> {
        let (aead, tun, sender) = (&self.aead, &mut self.tun, self.outside[1]);
        let read = self.udp.recv(|_, datagram| {
            let Some((number, rest)) = datagram.split_first_chunk_mut::<NUMBER_LEN>() else {
                return;
            };
            let Some((packet, icv)) = rest.split_last_chunk_mut::<ICV_LEN>() else {
                return;
            };
            let opened = aead.open(&nonce(sender, *number), number, packet, icv);
            if opened.is_ok() {
                tun.push(packet, Checksum::Made);
            }
        });
        tun.flush();
        read.map(drop)
    }
}

/// Sends the collected datagrams. Like any router, drops the datagrams that the system rejects.
fn leave(run: &mut Run, udp: &Datagrams) {
    if let (Some((path, header)), Some((length, octets))) = (run.destination(), run.together()) {
        let _ = udp.send_run(path, header, length, octets);
    } else if let Some((path, _)) = run.destination() {
        for packet in run.packets() {
            let _ = udp.send(path, 0, packet);
        }
    }
    run.clear();
}

/// Builds a nonce from the sender's address and the number. Both ends share one key, so the address
/// keeps their nonces apart.
fn nonce(sender: Ipv4Addr, number: [u8; NUMBER_LEN]) -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    let (salt, rest) = nonce.split_at_mut(NONCE_LEN - NUMBER_LEN);
    salt.copy_from_slice(&sender.octets());
    rest.copy_from_slice(&number);
    nonce
}
