//! The roofline of a machine: a TUN and a UDP socket, all that the kernel does in bulk, and AES-128-GCM
//! between them. It has no replay window, no policies, no zones and no peer that moves; what more a tunnel does
//! is what it is slower by.
//!
//! ```text
//! number (8 octets) | packet, encrypted | ICV (16)
//! ```

use crate::host::Host;
use anyhow::{Context, Result};
use crypto::{Aead, AeadAlgorithm, ICV_LEN, NONCE_LEN};
use model::Path;
use nix::sys::eventfd::{EfdFlags, EventFd};
use os::poll::{Interest, Poller};
use os::{Bulk, Datagrams, Outline, Run, SEGMENTS};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use wire::checksum::{Checksum, restore};

/// The longest packet inside, that of a tunnel of Strata.
const MTU: u16 = 1380;

const PORT: u16 = 4500;

const NUMBER_LEN: usize = 8;

/// A packet with all that is around it.
const ROOM: usize = NUMBER_LEN + MTU as usize + ICV_LEN;

/// Packets sealed at once. With room for what one system call may bring and no more, each that comes alone would
/// be a batch of its own.
const BATCH: usize = 2 * SEGMENTS;

/// Batches taken from one descriptor before the other gets its turn.
const TURNS: usize = 4;

/// No traffic class, and who has to may cut it.
const HEADER: (u8, bool) = (0, false);

const TUN: u64 = 0;
const UDP: u64 = 1;
const STOP: u64 = 2;

/// One end, which is a thread. It ends when this is dropped.
pub(super) struct Roofline {
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Roofline {
    /// An end in a host, at the first of two addresses outside. All that is routed into its device, which
    /// has this prefix, goes to the second.
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
            // What ended it early has been seen: nothing was carried from then on.
            let _ = thread.join();
        }
    }
}

struct End {
    tun: Bulk,
    udp: Datagrams,
    path: Path,
    /// This end and the other.
    outside: [Ipv4Addr; 2],
    aead: Aead,
    number: u64,
    /// Room for the packets, with all that is around them.
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

    /// One batch from the device.
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
                // What is left has a place for it.
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

    /// What one system call brings of the socket.
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

/// Sends what waits. As any router it loses what the system does not take.
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

/// Both ends have one key, and so nonces of their own.
fn nonce(sender: Ipv4Addr, number: [u8; NUMBER_LEN]) -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    let (salt, rest) = nonce.split_at_mut(NONCE_LEN - NUMBER_LEN);
    salt.copy_from_slice(&sender.octets());
    rest.copy_from_slice(&number);
    nonce
}
