//! A TUN device, many packets a system call: the kernel hands over what is still to be cut into segments,
//! and takes segments put together again (virtio's header in front of each says how).
//!
//! What is cut has no transport checksums, nor need what is put together have them: see [`Checksum`].

use crate::cut::{Outline, cut};
use crate::join::Waiting;
use crate::tun::{Tun, is_from_nobody};
use crate::virtio::{FRONT_LEN, Front};
use crate::{Error, Netlink};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use wire::checksum::{self, Checksum};

/// The most packets that one system call brings: the kernel is told not to put more together.
pub const SEGMENTS: usize = 128;

/// The longest packet, and the longest of what is not cut yet.
pub(crate) const LONGEST: usize = 65_535;

/// A TUN device whose packets come and go in bulk, if the kernel does that; otherwise one by one. It and
/// every route through it vanish when this is dropped.
pub struct Bulk {
    tun: Tun,
    /// What the last system call read, with virtio's header in front, and its length.
    uncut: Vec<u8>,
    uncut_len: usize,
    waiting: Waiting,
}

impl Bulk {
    /// As [`Tun::open`]; with `offload`, in bulk if this kernel can, and if there are to be several `queues`, with
    /// room for them.
    ///
    /// # Errors
    /// Those of [`Tun::open`].
    pub fn open(name: &str, mtu: u16, offload: bool, queues: bool) -> Result<Self, Error> {
        let whole = || -> Result<Tun, Error> {
            let tun = Tun::make(name, mtu, true, queues)?;
            Netlink::open()?.set_most_segments(tun.name(), SEGMENTS as u32)?;
            Ok(tun)
        };
        let tun = match offload {
            // What else may be wrong is wrong without as well.
            true => whole().or_else(|_| Tun::make(name, mtu, false, queues))?,
            false => Tun::make(name, mtu, false, queues)?,
        };
        Ok(Self::over(tun))
    }

    /// Another queue of the device, for another thread: the kernel shares flows out between them as long as
    /// both are open.
    ///
    /// # Errors
    /// If the device was not opened for several.
    pub fn queue(&self) -> Result<Self, Error> {
        Ok(Self::over(self.tun.queue()?))
    }

    fn over(tun: Tun) -> Self {
        Self {
            uncut: vec![0; FRONT_LEN + LONGEST],
            uncut_len: 0,
            waiting: Waiting::new(tun.device.udp_gso()),
            tun,
        }
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
    /// take what one more system call may bring. How long each is is in `outlines`, and whether it has its
    /// checksum. Gives how many there are, and why there are no more.
    pub fn recv(
        &mut self,
        spaces: &mut [&mut [u8]],
        outlines: &mut [Outline],
    ) -> (usize, Option<io::Error>) {
        let most = if self.is_offloaded() { SEGMENTS } else { 1 };
        let mut filled = 0;
        while spaces.len() - filled >= most {
            match self.recv_once(&mut spaces[filled..], &mut outlines[filled..]) {
                Ok(count) => filled += count,
                Err(error) => return (filled, Some(error)),
            }
        }
        (filled, None)
    }

    /// The same with one system call, for which there are at least [`SEGMENTS`] spaces. Many packets are also
    /// there as they came ([`Bulk::uncut`]).
    pub(crate) fn recv_once(
        &mut self,
        spaces: &mut [impl AsRef<[u8]> + AsMut<[u8]>],
        outlines: &mut [Outline],
    ) -> io::Result<usize> {
        loop {
            match self.read(spaces, outlines)? {
                1 if is_from_nobody(&spaces[0].as_ref()[..outlines[0].len]) => {}
                count => return Ok(count),
            }
        }
    }

    fn read(
        &mut self,
        spaces: &mut [impl AsMut<[u8]>],
        outlines: &mut [Outline],
    ) -> io::Result<usize> {
        let device = &self.tun.device;
        if !self.is_offloaded() {
            let checksum = Checksum::Made;
            let len = device.recv(spaces[0].as_mut())?;
            outlines[0] = Outline { len, checksum };
            return Ok(1);
        }
        self.uncut_len = device.recv(&mut self.uncut)?;
        let read = Front::read(&mut self.uncut[..self.uncut_len]);
        let count = read.and_then(|(front, packet)| cut(front, packet, spaces, outlines));
        count.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// What the last system call brought, if it was many packets, as it came: virtio's header, and the packet
    /// that they were cut from.
    pub(crate) fn uncut(&self) -> &[u8] {
        &self.uncut[..self.uncut_len]
    }

    /// Changes the packet in that, which stays as long.
    pub(crate) fn change_uncut(&mut self, change: impl FnOnce(&mut [u8])) {
        if let Some(packet) = self.uncut.get_mut(FRONT_LEN..self.uncut_len) {
            change(packet);
        }
    }

    /// Hands the kernel what [`Bulk::uncut`] of another device gave. Nothing waits.
    pub(crate) fn send_uncut(&self, uncut: &[u8]) -> io::Result<()> {
        self.tun.device.send(uncut).map(drop)
    }

    /// Has a packet wait for [`Bulk::flush`], which is called if too many wait. A checksum that is left is made by
    /// the kernel, or here if the kernel does not. Gives how many packets the kernel did not take.
    pub fn push(&mut self, packet: &[u8], checksum: Checksum) -> u64 {
        if !self.is_offloaded() {
            return u64::from(!self.send_whole(packet, checksum));
        }
        self.waiting.push(packet, checksum);
        if self.waiting.packets() < SEGMENTS {
            0
        } else {
            self.flush()
        }
    }

    /// Hands what waits to the kernel as if it had arrived on the device. Gives how many packets it did not take.
    pub fn flush(&mut self) -> u64 {
        let device = &self.tun.device;
        self.waiting.write(|octets| device.send(octets).is_ok())
    }

    /// Hands one packet to a kernel that wants it whole.
    fn send_whole(&mut self, packet: &[u8], checksum: Checksum) -> bool {
        let device = &self.tun.device;
        if checksum == Checksum::Made {
            return device.send(packet).is_ok();
        }
        // Nothing is read uncut from a device that is not offloaded.
        let Some(copy) = self.uncut.get_mut(..packet.len()) else {
            return false;
        };
        copy.copy_from_slice(packet);
        checksum::restore(copy) && device.send(copy).is_ok()
    }
}

impl AsFd for Bulk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}
