//! Probes of a path MTU, and their echoes (RFC 8899), and pings through a tunnel with their
//! answers: the payload of an ESP dummy packet.
//!
//! A dummy has the next header 59, and a receiver that knows nothing of probes discards it (RFC
//! 4303 section 2.6). So a probe has the encapsulation, the SPI and the numbers of data, and
//! nothing but its length distinguishes it on the path. The payload of other dummies of ours is
//! zero. A ping with the number zero checks a path, and is not counted. A notice before a probe
//! tells its number, so that the loss of the probe is not taken for one of data.
//!
//! ```text
//! "STPM" | kind(1) | 0(1) | length of the probe(2) | number(8)      then zeros up to the length
//! ```

/// Length of an echo, and of the part of a probe that has a meaning, in octets.
pub const LEN: usize = 16;

const MAGIC: [u8; 4] = *b"STPM";

/// The purpose of a dummy packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A probe, which asks for an echo.
    Probe,
    /// The echo of a probe that arrived.
    Echo,
    /// Notice that a sequence number is that of a probe.
    Notice,
    /// A ping, which asks for an answer.
    Ping,
    /// The answer to a ping that arrived.
    Answer,
}

impl Kind {
    /// Returns true if the packet belongs to the search for a path MTU.
    pub const fn is_of_mtu(self) -> bool {
        matches!(self, Self::Probe | Self::Echo | Self::Notice)
    }
}

/// A probe, an echo or a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Its purpose.
    pub kind: Kind,
    /// Length of the probe with all its outer headers, in octets; 0 in a ping and its answer.
    pub octets: u16,
    /// The number of the probe, which no one can guess who did not receive it. In a notice, the
    /// sequence number of the probe on the SA of the notice.
    pub number: u64,
}

impl Probe {
    /// Reads the payload of a dummy packet. `None` if it is none of ours.
    pub fn read(payload: &[u8]) -> Option<Self> {
        let (magic, rest) = payload.split_first_chunk()?;
        let ([kind, 0], rest) = rest.split_first_chunk()? else {
            return None;
        };
        let (octets, rest) = rest.split_first_chunk()?;
        let (number, _zeros) = rest.split_first_chunk()?;
        let kind = match kind {
            1 => Kind::Probe,
            2 => Kind::Echo,
            3 => Kind::Notice,
            4 => Kind::Ping,
            5 => Kind::Answer,
            _ => return None,
        };
        (*magic == MAGIC).then_some(Self {
            kind,
            octets: u16::from_be_bytes(*octets),
            number: u64::from_be_bytes(*number),
        })
    }

    /// Returns the octets.
    pub fn octets(&self) -> [u8; LEN] {
        let mut octets = [0; LEN];
        octets[..4].copy_from_slice(&MAGIC);
        octets[4] = match self.kind {
            Kind::Probe => 1,
            Kind::Echo => 2,
            Kind::Notice => 3,
            Kind::Ping => 4,
            Kind::Answer => 5,
        };
        octets[6..8].copy_from_slice(&self.octets.to_be_bytes());
        octets[8..].copy_from_slice(&self.number.to_be_bytes());
        octets
    }

    /// Returns the notice that a sequence number is that of a probe.
    pub const fn notice(number: u64) -> Self {
        Self {
            kind: Kind::Notice,
            octets: 0,
            number,
        }
    }

    /// A ping that asks for a sign of life on the path of its SA. Neither end counts it.
    pub const CHECK: Self = Self::ping(0);

    /// Returns true if this is a check of a path, or the answer to one.
    pub const fn is_check(&self) -> bool {
        matches!(self.kind, Kind::Ping | Kind::Answer) && self.number == 0
    }

    /// Returns a ping.
    pub const fn ping(number: u64) -> Self {
        Self {
            kind: Kind::Ping,
            octets: 0,
            number,
        }
    }

    /// Returns the answer to a ping.
    #[must_use]
    pub const fn answer(self) -> Self {
        Self {
            kind: Kind::Answer,
            ..self
        }
    }

    /// Returns the echo of a probe.
    #[must_use]
    pub const fn echo(self) -> Self {
        Self {
            kind: Kind::Echo,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PROBE: Probe = Probe {
        kind: Kind::Probe,
        octets: 1400,
        number: 0x0102_0304_0506_0708,
    };

    #[test]
    fn a_probe_is_laid_out_as_documented() {
        let octets = b"STPM\x01\x00\x05\x78\x01\x02\x03\x04\x05\x06\x07\x08";
        assert_eq!(PROBE.octets(), *octets);
        assert_eq!(PROBE.echo().octets()[4], 2);
        let ping = Probe::ping(PROBE.number);
        let octets = b"STPM\x04\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08";
        assert_eq!(ping.octets(), *octets);
        assert_eq!(ping.answer().octets()[4], 5);
    }

    /// Dummies that hide silence are zero, and those of other implementations are anything.
    #[test]
    fn other_dummies_have_no_meaning() {
        assert_eq!(Probe::read(&[0; 1400]), None);
        assert_eq!(Probe::read(&PROBE.octets()[..LEN - 1]), None);
        for (at, octet) in [(0, b'T'), (4, 0), (4, 6), (5, 1)] {
            let mut octets = PROBE.octets();
            octets[at] = octet;
            assert_eq!(Probe::read(&octets), None, "{at}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(
            octets: u16, number: u64, kind in 0..5_usize, zeros in 0..64_usize,
        ) {
            let kinds = [Kind::Probe, Kind::Echo, Kind::Notice, Kind::Ping, Kind::Answer];
            let kind = kinds[kind];
            let probe = Probe { kind, octets, number };
            let mut payload = probe.octets().to_vec();
            payload.resize(LEN + zeros, 0);
            prop_assert_eq!(Probe::read(&payload), Some(probe));
        }

        #[test]
        fn no_octets_are_read_otherwise(payload: Vec<u8>) {
            if let Some(probe) = Probe::read(&payload) {
                prop_assert_eq!(&probe.octets(), &payload[..LEN]);
            }
        }
    }
}
