//! Packets that pass from one of two TUN devices to the other.
//!
//! What one system call brings is shown packet by packet, each as it will be on the wire, with its checksum: whoever
//! is shown it may keep it and send it later. Where all of it passes it is handed on as it came, still to be cut. What
//! passes in part, or with others in between, goes on one by one and is put together again.
//!
//! The way through a device costs a packet one TTL, which is given back here.

use crate::bulk::LONGEST;
use crate::divert::Side;
use crate::{Bulk, Outline, SEGMENTS};
use std::io;
use wire::checksum::{self, Checksum};
use wire::ip::restore_hop;

/// The two devices.
pub struct Passage {
    /// By their sides.
    devices: [Bulk; 2],
    /// Where the last system call read.
    from: Side,
    packets: Vec<Vec<u8>>,
    /// Of a checksum that was left they go on saying so, for nobody has to verify it.
    outlines: [Outline; SEGMENTS],
    count: usize,
    /// So many of them, from the first, pass and wait for what becomes of the others.
    passed: usize,
    /// Packets that the kernel did not take.
    lost: u64,
}

impl Passage {
    pub(crate) fn new(wired: Bulk, wireless: Bulk) -> Self {
        Self {
            devices: [wired, wireless],
            from: Side::Wired,
            // Memory that nobody has written to is none yet.
            packets: (0..SEGMENTS).map(|_| vec![0; LONGEST]).collect(),
            outlines: [Outline::default(); SEGMENTS],
            count: 0,
            passed: 0,
            lost: 0,
        }
    }

    /// The device of one side, to wait for.
    pub const fn device(&self, side: Side) -> &Bulk {
        &self.devices[side as usize]
    }

    /// Reads what came in on this side, as much as one system call brings. Gives how many packets that is;
    /// those before are done with.
    pub fn recv(&mut self, from: Side) -> io::Result<usize> {
        self.settle();
        self.from = from;
        let device = &mut self.devices[from as usize];
        self.count = device.recv_once(&mut self.packets, &mut self.outlines)?;
        let packets = self.packets.iter_mut().zip(self.outlines);
        for (packet, outline) in packets.take(self.count) {
            let packet = &mut packet[..outline.len];
            restore_hop(packet);
            if outline.checksum == Checksum::Left {
                // What is left has a place for it.
                let _ = checksum::restore(packet);
            }
        }
        if self.count > 1 {
            device.change_uncut(restore_hop);
        }
        Ok(self.count)
    }

    /// One of the packets that were read.
    pub fn packet(&self, index: usize) -> &[u8] {
        &self.packets[index][..self.outlines[index].len]
    }

    /// One of the packets that were read goes on, behind all that went before. Each is asked about once, in
    /// order.
    pub fn pass(&mut self, index: usize) {
        if index == self.passed {
            self.passed += 1;
        } else {
            self.divide();
            self.push(index);
        }
    }

    /// A packet leaves on a side, behind all that went before.
    pub fn send(&mut self, to: Side, packet: &[u8]) {
        if to != self.from {
            self.divide();
        }
        self.lost += self.devices[to as usize].push(packet, Checksum::Made);
    }

    /// Hands the kernel what waits. Gives how many packets it did not take since this was last asked.
    pub fn flush(&mut self) -> u64 {
        self.settle();
        for device in &mut self.devices {
            self.lost += device.flush();
        }
        std::mem::take(&mut self.lost)
    }

    /// Nothing else becomes of what was read.
    fn settle(&mut self) {
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

    /// What has passed goes on one by one.
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
