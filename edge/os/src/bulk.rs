//! A TUN device with many packets per system call: the kernel delivers large packets that are not
//! yet segmented, and accepts packets that were joined (a virtio header in front of each describes
//! it).
//!
//! Segments have no transport checksums, and joined packets need none: see [`Checksum`].

use crate::cut::{Outline, cut};
use crate::join::Waiting;
use crate::kept::Unfit;
use crate::tun::{Form, Tun, is_from_nobody};
use crate::virtio::{FRONT_LEN, Front};
use crate::{Error, Netlink};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use wire::checksum::{self, Checksum};

/// Most packets in one system call: the kernel is configured not to join more.
pub const SEGMENTS: usize = 128;

/// Length of the longest packet, segmented or not, in octets.
pub(crate) const LONGEST: usize = 65_535;

/// A TUN device that exchanges packets in bulk, if the kernel supports that; otherwise one by one.
/// The device and every route through it vanish when this is dropped.
pub struct Bulk {
    tun: Tun,
    /// The packet of the last system call, with the virtio header in front, and its length.
    uncut: Vec<u8>,
    uncut_len: usize,
    waiting: Waiting,
}

impl Bulk {
    /// Opens a device as [`Tun::open`] does; with `offload`, in bulk if this kernel can; with
    /// `queues`, for several queues.
    ///
    /// # Errors
    /// Those of [`Tun::open`].
    pub fn open(name: &str, mtu: u16, offload: bool, queues: bool) -> Result<Self, Error> {
        let whole = || -> Result<Tun, Error> {
            let uncut = true;
            let tun = Tun::make(name, mtu, Form { uncut, queues })?;
            Netlink::open()?.set_most_segments(tun.name(), SEGMENTS as u32)?;
            Ok(tun)
        };
        let cut = || {
            let uncut = false;
            Tun::make(name, mtu, Form { uncut, queues })
        };
        let tun = match offload {
            // An error with another cause also occurs without offload.
            true => whole().or_else(|_| cut())?,
            false => cut()?,
        };
        Ok(Self::over(tun))
    }

    /// Takes over a device that outlived its process ([`crate::kept`]), with the packets in its
    /// queue, if it is what [`Bulk::open`] would open.
    pub fn adopt(
        kept: OwnedFd,
        name: &str,
        mtu: u16,
        offload: bool,
        queues: bool,
    ) -> Result<Self, Unfit> {
        let uncut = offload;
        let tun = Tun::adopt(kept, name, Form { uncut, queues })?;
        let set = || -> Result<(), Error> {
            let netlink = Netlink::open()?;
            netlink.set_mtu(name, mtu.into())?;
            netlink.link_up(name)
        };
        set().map_err(|error| Unfit::Settings(error.to_string()))?;
        Ok(Self::over(tun))
    }

    /// Opens another queue of the device, for another thread. The kernel distributes flows over the
    /// open queues.
    ///
    /// # Errors
    /// The device was not opened for several queues.
    pub fn queue(&self) -> Result<Self, Error> {
        Ok(Self::over(self.tun.queue()?))
    }

    fn over(tun: Tun) -> Self {
        Self {
            uncut: vec![0; FRONT_LEN + LONGEST],
            uncut_len: 0,
            waiting: Waiting::new(tun.udp_gso),
            tun,
        }
    }

    /// Returns the interface's name.
    pub fn name(&self) -> &str {
        self.tun.name()
    }

    /// Returns true if one system call may return many packets.
    pub fn is_offloaded(&self) -> bool {
        self.tun.is_uncut()
    }

    /// Reads packets that the kernel routed into the device, until there are no more or `spaces`
    /// has no room for another system call. `outlines` receives the length of each packet and the
    /// state of its checksum. Returns the number of packets, and the error that ended the read.
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

    /// Reads with one system call, for which there are at least [`SEGMENTS`] spaces. If it returns
    /// many packets, the original is available too ([`Bulk::uncut`]).
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
        if !self.is_offloaded() {
            let checksum = Checksum::Made;
            let len = self.tun.read(spaces[0].as_mut())?;
            outlines[0] = Outline { len, checksum };
            return Ok(1);
        }
        self.uncut_len = self.tun.read(&mut self.uncut)?;
        let read = Front::read(&mut self.uncut[..self.uncut_len]);
        let count = read.and_then(|(front, packet)| cut(front, packet, spaces, outlines));
        count.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Returns the original of the last system call, if it contained many packets: the virtio
    /// header, and the unsegmented packet.
    pub(crate) fn uncut(&self) -> &[u8] {
        &self.uncut[..self.uncut_len]
    }

    /// Changes the unsegmented packet, whose length stays.
    pub(crate) fn change_uncut(&mut self, change: impl FnOnce(&mut [u8])) {
        if let Some(packet) = self.uncut.get_mut(FRONT_LEN..self.uncut_len) {
            change(packet);
        }
    }

    /// Passes the result of another device's [`Bulk::uncut`] to the kernel. The queue must be
    /// empty.
    pub(crate) fn send_uncut(&self, uncut: &[u8]) -> io::Result<()> {
        self.tun.write(uncut).map(drop)
    }

    /// Queues a packet for [`Bulk::flush`], which is called if the queue is full. A checksum that
    /// is left is completed by the kernel, or here if the kernel does not. Returns the number of
    /// packets that the kernel refused.
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

    /// Passes queued packets to the kernel as if they had arrived on the device. Returns the number
    /// of packets that it refused.
    pub fn flush(&mut self) -> u64 {
        let tun = &self.tun;
        self.waiting.write(|octets| tun.write(octets).is_ok())
    }

    /// Passes one packet to a kernel without offload.
    fn send_whole(&mut self, packet: &[u8], checksum: Checksum) -> bool {
        let tun = &self.tun;
        if checksum == Checksum::Made {
            return tun.write(packet).is_ok();
        }
        // Without offload, the buffer holds no unsegmented packet.
        let Some(copy) = self.uncut.get_mut(..packet.len()) else {
            return false;
        };
        copy.copy_from_slice(packet);
        checksum::restore(copy) && tun.write(copy).is_ok()
    }
}

impl AsFd for Bulk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}
