//! A TUN device, many packets a system call: the kernel hands over what is still to be cut into segments,
//! and takes segments put together again (virtio's header in front of each says how).
//!
//! tun-rs cuts and puts together, and makes the checksums that are left to the device.

use crate::tun::{Tun, is_from_nobody};
use crate::{Error, Netlink};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use tun_rs::{GROTable, VIRTIO_NET_HDR_LEN};
use wire::ip::Header;

/// The most packets that one system call brings: the kernel is told not to put more together.
pub const SEGMENTS: usize = 128;

/// The longest packet, and the longest of what is not cut yet.
pub(crate) const LONGEST: usize = 65_535;

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
            tun,
            uncut: vec![0; VIRTIO_NET_HDR_LEN + LONGEST],
            waiting: Vec::new(),
            filled: 0,
            table: GROTable::new(),
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
            match self.recv_once(&mut spaces[filled..], &mut lens[filled..]) {
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
        lens: &mut [usize],
    ) -> io::Result<usize> {
        loop {
            match (self.tun.device).recv_multiple(&mut self.uncut, spaces, lens, 0)? {
                1 if is_from_nobody(&spaces[0].as_ref()[..lens[0]]) => {}
                count => return Ok(count),
            }
        }
    }

    /// What the last system call brought, if it was many packets, as it came: virtio's header, and the packet
    /// that they were cut from.
    pub(crate) fn uncut(&self) -> &[u8] {
        let packet = Header::parse(&self.uncut[VIRTIO_NET_HDR_LEN..]);
        let len = packet.map_or(0, |packet| packet.total_len());
        &self.uncut[..VIRTIO_NET_HDR_LEN + len]
    }

    /// Changes the packet in that, which stays as long.
    pub(crate) fn change_uncut(&mut self, change: impl FnOnce(&mut [u8])) {
        change(&mut self.uncut[VIRTIO_NET_HDR_LEN..]);
    }

    /// Hands the kernel what [`Bulk::uncut`] of another device gave. Nothing waits.
    pub(crate) fn send_uncut(&self, uncut: &[u8]) -> io::Result<()> {
        self.tun.device.send(uncut).map(drop)
    }

    /// Has a packet wait for [`Bulk::flush`], which is called if too many wait. Gives how many packets the
    /// kernel did not take.
    pub fn push(&mut self, packet: &[u8]) -> u64 {
        if self.filled == self.waiting.len() {
            // What is put together has room here: more than this is never added.
            self.waiting.push(Vec::with_capacity(LONGEST));
        }
        place(&mut self.waiting[self.filled], packet);
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

/// Puts a packet behind room for virtio's header.
fn place(space: &mut Vec<u8>, packet: &[u8]) {
    space.clear();
    space.resize(VIRTIO_NET_HDR_LEN, 0);
    space.extend_from_slice(packet);
}

impl AsFd for Bulk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// What is at the other end of a tunnel wrote these packets. Their checksums are right, or nobody would look
    /// any further; what else is wrong with their headers says `lies`: where, and what is there instead.
    fn packet(
        (six, udp): (bool, bool),
        number: u32,
        payload: usize,
        lies: &[(usize, u8)],
    ) -> Vec<u8> {
        let transport = if udp { 8 } else { 20 };
        let front = if six { 40 } else { 20 };
        let len = (front + transport + payload) as u16;
        let protocol = if udp { 17 } else { 6 };
        let mut octets = vec![0; usize::from(len)];
        if six {
            octets[0] = 0x60;
            octets[4..6].copy_from_slice(&(len - 40).to_be_bytes());
            octets[6..8].copy_from_slice(&[protocol, 64]);
        } else {
            octets[0] = 0x45;
            octets[2..4].copy_from_slice(&len.to_be_bytes());
            octets[8..10].copy_from_slice(&[64, protocol]);
        }
        let rest = &mut octets[front..];
        rest[..4].copy_from_slice(&[0, 80, 0, 90]);
        if udp {
            rest[4..6].copy_from_slice(&(len - front as u16).to_be_bytes());
        } else {
            rest[4..8].copy_from_slice(&number.to_be_bytes());
            rest[12..14].copy_from_slice(&[0x50, 0x10]);
        }
        for (place, octet) in lies {
            let place = place % octets.len();
            octets[place] = *octet;
        }
        seal(&mut octets, front, protocol);
        octets
    }

    /// Makes the transport's checksum (RFC 1071), over a pseudo header without addresses: they are zero, or lies.
    fn seal(octets: &mut [u8], front: usize, protocol: u8) {
        let at = front + if protocol == 17 { 6 } else { 16 };
        let addresses = if front == 40 { 8..40 } else { 12..20 };
        octets[at..at + 2].fill(0);
        let len = (octets.len() - front) as u32;
        let words = |octets: &[u8]| -> u32 {
            let pairs = octets.chunks(2);
            let words =
                pairs.map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
            words.sum()
        };
        let mut sum =
            words(&octets[addresses]) + words(&octets[front..]) + u32::from(protocol) + len;
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        octets[at..at + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }

    fn behind_header(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let space = |packet: &Vec<u8>| {
            let mut space = Vec::with_capacity(LONGEST);
            place(&mut space, packet);
            space
        };
        packets.iter().map(space).collect()
    }

    /// The control of the next: what is written here is put together if nobody lies.
    #[test]
    fn honest_segments_are_put_together() {
        for kind in [(false, false), (true, false), (false, true), (true, true)] {
            let packets = (0..10).map(|index| packet(kind, index * 1000, 1000, &[]));
            let mut waiting = behind_header(&packets.collect::<Vec<_>>());
            let one = waiting[0].len();
            let mut table = GROTable::new();
            table
                .apply_gro(&mut waiting, VIRTIO_NET_HDR_LEN, true)
                .unwrap();
            assert_eq!(waiting[0].len(), one + 9 * 1000, "{kind:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Oversized, merged, with headers that lie: whoever has our keys can write it.
        #[test]
        fn no_packets_of_a_peer_harm_what_puts_them_together(
            packets in vec(
                (
                    any::<(bool, bool)>(),
                    0..20_u32,
                    prop_oneof![3 => Just(1000_usize), 1 => 0..3000_usize, 1 => Just(30_000)],
                    vec((0..80_usize, any::<u8>()), 0..3),
                    prop_oneof![9 => Just(usize::MAX), 1 => 0..60_usize],
                ),
                1..60,
            ),
        ) {
            let packets = packets.iter().map(|(kind, index, payload, lies, cut)| {
                let mut packet = packet(*kind, index * 1000, *payload, lies);
                packet.truncate((*cut).max(1));
                packet
            });
            let mut waiting = behind_header(&packets.collect::<Vec<_>>());
            let mut table = GROTable::new();
            // A refusal would be one of the packets of others as well.
            let put = table.apply_gro(&mut waiting, VIRTIO_NET_HDR_LEN, true);
            prop_assert!(put.is_ok(), "{put:?}");
            prop_assert!(waiting.iter().all(|packet| packet.len() <= VIRTIO_NET_HDR_LEN + LONGEST));
        }
    }
}
