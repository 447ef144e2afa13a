//! Packets of the model: a TCP header in wire format, a payload length, an ESP sequence number.

use model::{CsaId, Flow};
use pep::{Line, Owner, Position, Segment};
use wire::tcp::{Flags, Header};

/// The composite SA of every sealed packet in these tests.
pub const CSA: CsaId = CsaId(7);

/// Its line.
pub const LINE: Line = Line {
    owner: Owner(1),
    csa: CSA,
};
/// The endpoints' replay window, in packets.
pub const WINDOW: u32 = 4096;
/// Approximate octets that IP, ESP and UDP add to the TCP header and the payload.
pub const OVERHEAD: usize = 100;

/// A TCP segment, sealed if it has an ESP sequence number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    pub esp_seq: Option<u32>,
    pub tcp: Vec<u8>,
    pub payload_len: usize,
}

impl Packet {
    pub fn new(seq: u32, ack: u32, flags: Flags) -> Self {
        let mut tcp = vec![0; 20];
        tcp[4..8].copy_from_slice(&seq.to_be_bytes());
        tcp[8..12].copy_from_slice(&ack.to_be_bytes());
        tcp[12] = 5 << 4;
        tcp[13] = flags.0;
        Self {
            esp_seq: None,
            tcp,
            payload_len: 0,
        }
        .window(1000)
    }

    pub fn data(seq: u32, payload_len: usize) -> Self {
        let mut packet = Self::new(seq, 1, Flags::ACK);
        packet.payload_len = payload_len;
        packet
    }

    pub fn ack(number: u32) -> Self {
        Self::new(1, number, Flags::ACK)
    }

    pub fn window(mut self, window: u16) -> Self {
        self.tcp[14..16].copy_from_slice(&window.to_be_bytes());
        self
    }

    pub fn flags(mut self, flags: Flags) -> Self {
        self.tcp[13] = flags.0;
        self
    }

    pub fn esp(mut self, esp_seq: u32) -> Self {
        self.esp_seq = Some(esp_seq);
        self
    }

    pub fn payload(mut self, payload_len: usize) -> Self {
        self.payload_len = payload_len;
        self
    }

    pub fn sack(mut self, blocks: &[(u32, u32)]) -> Self {
        if blocks.is_empty() {
            return self;
        }
        self.tcp
            .extend([1, 1, 5, 2 + 8 * u8::try_from(blocks.len()).unwrap()]);
        for (left, right) in blocks {
            self.tcp.extend(left.to_be_bytes());
            self.tcp.extend(right.to_be_bytes());
        }
        self.tcp[12] = u8::try_from(self.tcp.len() / 4).unwrap() << 4;
        self
    }

    /// Adds options that are already padded to 32-bit words.
    pub fn options(mut self, options: &[u8]) -> Self {
        self.tcp.extend(options);
        self.tcp[12] = u8::try_from(self.tcp.len() / 4).unwrap() << 4;
        self
    }

    /// Sets the AE bit.
    pub fn accurate(mut self) -> Self {
        self.tcp[12] |= 1;
        self
    }

    pub fn header(&self) -> Header<'_> {
        Header::parse(&self.tcp).unwrap()
    }

    /// Returns the length on a link in octets.
    pub fn len(&self) -> usize {
        OVERHEAD + self.tcp.len() + self.payload_len
    }

    /// Returns the packet as the proxy caches it. The proxy does not look into it, but tests can.
    pub fn sealed(&self) -> Vec<u8> {
        let mut octets = vec![u8::from(self.esp_seq.is_some())];
        octets.extend(self.esp_seq.unwrap_or(0).to_be_bytes());
        octets.extend(u32::try_from(self.payload_len).unwrap().to_be_bytes());
        octets.extend(&self.tcp);
        octets
    }

    pub fn unseal(octets: &[u8]) -> Self {
        let number = |at: usize| u32::from_be_bytes(octets[at..at + 4].try_into().unwrap());
        Self {
            esp_seq: (octets[0] == 1).then(|| number(1)),
            payload_len: number(5) as usize,
            tcp: octets[9..].to_vec(),
        }
    }

    /// Returns the segment that the licensed node hands to the proxy. `sealed` is this packet in
    /// sealed form, `highest` the highest ESP sequence number of its direction.
    pub fn segment<'a>(&'a self, flow: Flow, sealed: &'a [u8], highest: u32) -> Segment<'a> {
        Segment {
            line: self.esp_seq.map(|_| LINE),
            flow,
            header: self.header(),
            hides: false,
            payload_len: self.payload_len,
            sealed,
            fresh: true,
            position: self.esp_seq.map(|seq| Position {
                csa: CSA,
                seq: seq.into(),
                highest: highest.into(),
                window: WINDOW,
            }),
        }
    }
}

/// Returns the connection from server to mobile node; `port` tells connections apart.
pub fn downward(port: u16) -> Flow {
    Flow {
        source: "10.1.0.1".parse().unwrap(),
        destination: "10.2.0.1".parse().unwrap(),
        protocol: wire::tcp::PROTOCOL,
        source_port: 80,
        destination_port: port,
        ports_visible: true,
    }
}

/// Returns the same connection, seen from the mobile node.
pub fn upward(port: u16) -> Flow {
    let down = downward(port);
    Flow {
        source: down.destination,
        destination: down.source,
        source_port: down.destination_port,
        destination_port: down.source_port,
        ..down
    }
}
