//! Packets that pass from one of two TUN devices to the other.
//!
//! The result of a system call is shown packet by packet, each in the form it has on the wire, with
//! its checksum, so that a caller may keep it and send it later. If all packets pass, the original
//! is forwarded unsegmented. Packets that pass in part, or with others in between, are forwarded
//! one by one and joined again.
//!
//! The detour through a device costs a packet one hop of TTL, which is restored here.

use crate::bulk::LONGEST;
use crate::divert::Side;
use crate::{Bulk, Outline, SEGMENTS};
use std::io;
use wire::checksum::{self, Checksum};
use wire::ip::restore_hop;

/// The two devices.
pub struct Passage {
    /// The devices by side.
    devices: [Bulk; 2],
    /// The side of the last read.
    from: Side,
    packets: Vec<Vec<u8>>,
    /// A checksum that was left keeps that mark after it is completed, so that it is not verified.
    outlines: [Outline; SEGMENTS],
    count: usize,
    /// Number of packets, from the first, that pass and wait for the decision on the others.
    passed: usize,
    /// Packets that the kernel refused.
    lost: u64,
}

impl Passage {
    pub(crate) fn new(wired: Bulk, wireless: Bulk) -> Self {
        Self {
            devices: [wired, wireless],
            from: Side::Wired,
            // Untouched memory is not allocated yet.
            packets: (0..SEGMENTS).map(|_| vec![0; LONGEST]).collect(),
            outlines: [Outline::default(); SEGMENTS],
            count: 0,
            passed: 0,
            lost: 0,
        }
    }

    /// Returns the device of one side, for the poller.
    pub const fn device(&self, side: Side) -> &Bulk {
        &self.devices[side as usize]
    }

    /// Reads packets that arrived on this side with one system call. Returns their number; earlier
    /// packets are done with.
    pub fn recv(&mut self, from: Side) -> io::Result<usize> {
        self.pass_decided();
        self.from = from;
        let device = &mut self.devices[from as usize];
        self.count = device.recv_once(&mut self.packets, &mut self.outlines)?;
        let packets = self.packets.iter_mut().zip(self.outlines);
        for (packet, outline) in packets.take(self.count) {
            let packet = &mut packet[..outline.len];
            restore_hop(packet);
            if outline.checksum == Checksum::Left {
                // A checksum that is left has a place.
                let _ = checksum::restore(packet);
            }
        }
        if self.count > 1 {
            device.change_uncut(restore_hop);
        }
        Ok(self.count)
    }

    /// Returns one of the packets that were read.
    pub fn packet(&self, index: usize) -> &[u8] {
        &self.packets[index][..self.outlines[index].len]
    }

    /// Forwards one of the packets that were read, behind all earlier ones. Call at most once per
    /// packet, in order.
    pub fn pass(&mut self, index: usize) {
        if index == self.passed {
            self.passed += 1;
        } else {
            self.divide();
            self.push(index);
        }
    }

    /// Sends a packet to a side, behind all earlier ones.
    pub fn send(&mut self, to: Side, packet: &[u8]) {
        if to != self.from {
            self.divide();
        }
        self.lost += self.devices[to as usize].push(packet, Checksum::Made);
    }

    /// Passes queued packets to the kernel. Returns the number of packets that it has refused since
    /// the last call.
    pub fn flush(&mut self) -> u64 {
        self.pass_decided();
        for device in &mut self.devices {
            self.lost += device.flush();
        }
        std::mem::take(&mut self.lost)
    }

    /// Ends the decisions on the packets that were read.
    fn pass_decided(&mut self) {
        let [wired, wireless] = &mut self.devices;
        let (from, to) = match self.from {
            Side::Wired => (wired, wireless),
            Side::Wireless => (wireless, wired),
        };
        if self.count > 1 && self.passed == self.count && to.is_offloaded() {
            self.lost += to.flush();
            if to.send_uncut(from.uncut()).is_ok() {
                self.passed = 0;
            }
        }
        self.divide();
        self.count = 0;
    }

    /// Forwards the passed packets one by one.
    fn divide(&mut self) {
        for index in 0..std::mem::take(&mut self.passed) {
            self.push(index);
        }
    }

    fn push(&mut self, index: usize) {
        let to = &mut self.devices[self.from.opposite() as usize];
        let Outline { len, checksum } = self.outlines[index];
        self.lost += to.push(&self.packets[index][..len], checksum);
    }
}
