//! A TUN device, many packets a system call: the kernel hands over what is still to be cut into segments,
//! and takes segments put together again (virtio's header in front of each says how).
//!
//! tun-rs cuts and puts together, and makes the checksums that are left to the device.

use crate::tun::{Tun, is_from_nobody};
use crate::{Error, Netlink};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use tun_rs::{GROTable, VIRTIO_NET_HDR_LEN};

/// The most packets that one system call brings: the kernel is told not to put more together.
pub const SEGMENTS: usize = 128;

/// The longest of what is not cut yet.
const LONGEST: usize = 65_535;

/// A TUN device whose packets come and go in bulk, if the kernel does that; otherwise one by one. It and
/// every route through it vanish when this is dropped.
pub struct Bulk {
    tun: Tun,
    uncut: Vec<u8>,
    /// Packets for the kernel, each behind room for virtio's header. As many as are `filled` wait.
    waiting: Vec<Vec<u8>>,
    filled: usize,
    table: GROTable,
}

impl Bulk {
    /// As [`Tun::open`]; with `offload`, in bulk if this kernel can.
    ///
    /// # Errors
    /// Those of [`Tun::open`].
    pub fn open(name: &str, mtu: u16, offload: bool) -> Result<Self, Error> {
        let whole = || -> Result<Tun, Error> {
            let tun = Tun::open_uncut(name, mtu)?;
            Netlink::open()?.set_most_segments(tun.name(), SEGMENTS as u32)?;
            Ok(tun)
        };
        let tun = match offload {
            // What else may be wrong is wrong without as well.
            true => whole().or_else(|_| Tun::open(name, mtu))?,
            false => Tun::open(name, mtu)?,
        };
        Ok(Self {
            tun,
            uncut: vec![0; VIRTIO_NET_HDR_LEN + LONGEST],
            waiting: Vec::new(),
            filled: 0,
            table: GROTable::new(),
        })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        self.tun.name()
    }

    /// Whether it is so that one system call may bring many.
    pub fn is_offloaded(&self) -> bool {
        self.tun.device.tcp_gso()
    }

    /// Reads packets that the kernel routed into the device, until there are no more or `spaces` could not
    /// take what one more system call may bring. How long each is is in `lens`. Gives how many there are,
    /// and why there are no more.
    pub fn recv(
        &mut self,
        spaces: &mut [&mut [u8]],
        lens: &mut [usize],
    ) -> (usize, Option<io::Error>) {
        let most = if self.is_offloaded() { SEGMENTS } else { 1 };
        let mut filled = 0;
        while spaces.len() - filled >= most {
            let (spaces, lens) = (&mut spaces[filled..], &mut lens[filled..]);
            match (self.tun.device).recv_multiple(&mut self.uncut, spaces, lens, 0) {
                Ok(1) if is_from_nobody(&spaces[0][..lens[0]]) => {}
                Ok(count) => filled += count,
                Err(error) => return (filled, Some(error)),
            }
        }
        (filled, None)
    }

    /// Has a packet wait for [`Bulk::flush`], which is called if too many wait. Gives how many packets the
    /// kernel did not take.
    pub fn push(&mut self, packet: &[u8]) -> u64 {
        if self.filled == self.waiting.len() {
            // What is put together has room here: more than this is never added.
            self.waiting.push(Vec::with_capacity(LONGEST));
        }
        let space = &mut self.waiting[self.filled];
        space.clear();
        space.resize(VIRTIO_NET_HDR_LEN, 0);
        space.extend_from_slice(packet);
        self.filled += 1;
        if self.filled < SEGMENTS {
            0
        } else {
            self.flush()
        }
    }

    /// Hands what waits to the kernel as if it had arrived on the device. Gives how many packets it did not
    /// take; all, if it did not take some: nobody says which.
    pub fn flush(&mut self) -> u64 {
        let waiting = &mut self.waiting[..std::mem::take(&mut self.filled)];
        let sent = (self.tun.device).send_multiple(&mut self.table, waiting, VIRTIO_NET_HDR_LEN);
        if sent.is_ok() {
            0
        } else {
            waiting.len() as u64
        }
    }
}

impl AsFd for Bulk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}
