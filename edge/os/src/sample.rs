//! Packets for tests, built and checked by other code than that under test.

use wire::checksum::Checksum;

/// The properties of a packet.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub six: bool,
    pub udp: bool,
    pub port: u8,
    /// The sequence number of the first octet of payload, which is also its value.
    pub number: u32,
    pub payload: usize,
    pub flags: u8,
    pub id: u16,
}

impl Sample {
    pub fn new((six, udp): (bool, bool), number: u32, payload: usize) -> Self {
        Self {
            six,
            udp,
            port: 80,
            number,
            payload,
            flags: 0x10,
            id: 0,
        }
    }

    pub const fn front(&self) -> usize {
        if self.six { 40 } else { 20 }
    }

    /// Returns the octets of all headers. TCP has an option.
    pub const fn headers(&self) -> usize {
        self.front() + if self.udp { 8 } else { 24 }
    }

    const fn protocol(&self) -> u8 {
        if self.udp { 17 } else { 6 }
    }

    /// Returns the packet with changed octets: offsets, and values. All checksums include the
    /// changes.
    pub fn packet(&self, lies: &[(usize, u8)]) -> Vec<u8> {
        let front = self.front();
        let len = (self.headers() + self.payload) as u16;
        let mut octets = vec![0; usize::from(len)];
        if self.six {
            octets[0] = 0x60;
            octets[4..6].copy_from_slice(&(len - 40).to_be_bytes());
            octets[6..8].copy_from_slice(&[self.protocol(), 64]);
            (octets[23], octets[39]) = (1, 2);
        } else {
            octets[0] = 0x45;
            octets[2..4].copy_from_slice(&len.to_be_bytes());
            octets[4..6].copy_from_slice(&self.id.to_be_bytes());
            octets[6] = 0x40;
            octets[8..10].copy_from_slice(&[64, self.protocol()]);
            octets[12..20].copy_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
        }
        let rest = &mut octets[front..];
        rest[..4].copy_from_slice(&[0, self.port, 0, 90]);
        if self.udp {
            rest[4..6].copy_from_slice(&(len - front as u16).to_be_bytes());
        } else {
            rest[4..8].copy_from_slice(&self.number.to_be_bytes());
            rest[12..14].copy_from_slice(&[0x60, self.flags]);
            rest[20..24].copy_from_slice(&[1, 1, 1, 0]);
        }
        for (index, octet) in octets[self.headers()..].iter_mut().enumerate() {
            *octet = (self.number as usize + index) as u8;
        }
        for (place, octet) in lies {
            let place = place % octets.len();
            octets[place] = *octet;
        }
        if !self.six {
            octets[10..12].fill(0);
            let sum = !sum(&octets[..20], 0);
            octets[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        self.seal(&mut octets);
        octets
    }

    /// Completes the transport checksum.
    pub fn seal(&self, octets: &mut [u8]) {
        let at = self.checksum_at();
        octets[at..at + 2].fill(0);
        let right = match !sum(&octets[self.front()..], self.pseudo(octets).into()) {
            0 if self.udp => 0xffff,
            right => right,
        };
        octets[at..at + 2].copy_from_slice(&right.to_be_bytes());
    }

    /// Returns the packet of a sender that leaves its checksum to others.
    pub fn unsealed(&self) -> Vec<u8> {
        let mut octets = self.packet(&[]);
        let (at, sum) = (self.checksum_at(), self.pseudo(&octets));
        octets[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        octets
    }

    pub const fn checksum_at(&self) -> usize {
        self.front() + if self.udp { 6 } else { 16 }
    }

    /// Returns the sum of the pseudo-header.
    fn pseudo(&self, octets: &[u8]) -> u16 {
        let addresses = if self.six { 8..40 } else { 12..20 };
        let len = (octets.len() - self.front()) as u32;
        sum(&octets[addresses], u32::from(self.protocol()) + len)
    }
}

/// Computes the sum of RFC 1071, one word after the other.
fn sum(octets: &[u8], mut sum: u32) -> u16 {
    for pair in octets.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Returns the packet with its checksum completed.
pub(crate) fn made(packet: &[u8], checksum: Checksum) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if checksum == Checksum::Left {
        assert!(wire::checksum::restore(&mut packet));
    }
    packet
}

/// All four kinds of packets.
pub(crate) const KINDS: [(bool, bool); 4] =
    [(false, false), (true, false), (false, true), (true, true)];
