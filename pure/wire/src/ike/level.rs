//! Data of the private notify LEVEL_GRANT (DESIGN section 3, "dynamic levels"): the datagrams that
//! may be sent unencrypted. The SPI of the notify is the one on which its sender receives them.
//!
//! ```text
//!  LEVEL_GRANT  Version (1) = 1 | Named (1) | [Protocol (1)] | [First port (2) | Last port (2)] | [DSCP (1)]
//!               | [Marker (1)] | [Pictures (1)] | Packets (4) | Seconds (4) | Renewals (2)
//! ```
//!
//! `Named` has a bit for each optional field that is present, from bit 0 for the protocol to bit 4
//! for the pictures. The form is canonical because it enters the key derivation: a grant that can
//! be read is written as the same octets.

use crate::codec::{Malformed, Reader};
use model::{Class, Dscp, LevelGrant, Pictures, Span};

/// Version of the encoding.
const VERSION: u8 = 1;

const WHAT: &str = "the LEVEL_GRANT notify";

const PROTOCOL: u8 = 1;
const PORTS: u8 = 1 << 1;
const DSCP: u8 = 1 << 2;
const MARKER: u8 = 1 << 3;
const PICTURES: u8 = 1 << 4;
const ALL: u8 = PROTOCOL | PORTS | DSCP | MARKER | PICTURES;

/// Returns the canonical octets of a grant.
pub fn encode_level(grant: &LevelGrant) -> Vec<u8> {
    let mut out = vec![VERSION];
    encode_class(&grant.class, &mut out);
    out.extend(grant.packets.to_be_bytes());
    out.extend(grant.seconds.to_be_bytes());
    out.extend(grant.renewals.to_be_bytes());
    out
}

/// Reads a grant. Refuses a grant without a condition or without a bound.
pub fn decode_level(data: &[u8]) -> Result<LevelGrant, Malformed> {
    let mut r = Reader::new(WHAT, data);
    if r.u8()? != VERSION {
        return Err(Malformed::Value(WHAT));
    }
    let grant = LevelGrant {
        class: read_class(&mut r)?,
        packets: r.u32()?,
        seconds: r.u32()?,
        renewals: r.u16()?,
    };
    r.finish()?;
    match grant.class.is_named() && grant.packets > 0 && grant.seconds > 0 {
        true => Ok(grant),
        false => Err(Malformed::Value(WHAT)),
    }
}

fn encode_class(class: &Class, out: &mut Vec<u8>) {
    let at = out.len();
    out.push(0);
    let mut name = |bit, octets: Option<Vec<u8>>| {
        if let Some(octets) = octets {
            out[at] |= bit;
            out.extend(octets);
        }
    };
    let ports = |ports: Span| [ports.first().to_be_bytes(), ports.last().to_be_bytes()].concat();
    name(PROTOCOL, class.protocol.map(|protocol| vec![protocol]));
    name(PORTS, class.ports.map(ports));
    name(DSCP, class.dscp.map(|dscp| vec![dscp]));
    name(MARKER, class.marker.map(|marker| vec![marker.into()]));
    name(PICTURES, class.pictures.map(|types| vec![types.bits()]));
}

fn read_class(r: &mut Reader<'_>) -> Result<Class, Malformed> {
    let named = r.u8()?;
    let bad = Malformed::Value(WHAT);
    if named & !ALL != 0 {
        return Err(bad);
    }
    let mut class = Class::default();
    if named & PROTOCOL != 0 {
        class.protocol = Some(r.u8()?);
    }
    if named & PORTS != 0 {
        class.ports = Some(Span::new(r.u16()?, r.u16()?).ok_or(bad)?);
    }
    if named & DSCP != 0 {
        class.dscp = Some(r.u8()?);
    }
    if named & MARKER != 0 {
        class.marker = match r.u8()? {
            marker @ 0..=1 => Some(marker == 1),
            _ => return Err(bad),
        };
    }
    if named & PICTURES != 0 {
        class.pictures = Some(Pictures::from_bits(r.u8()?).ok_or(bad)?);
    }
    match class.dscp {
        Some(dscp) if dscp > Dscp::HIGHEST => Err(bad),
        _ => Ok(class),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(class: Class) -> LevelGrant {
        LevelGrant {
            class,
            packets: 0x0102_0304,
            seconds: 3600,
            renewals: 23,
        }
    }

    fn everything() -> LevelGrant {
        grant(Class {
            protocol: Some(17),
            ports: Span::new(5004, 5005),
            dscp: Some(34),
            marker: Some(false),
            pictures: Pictures::from_letters("PB"),
        })
    }

    #[test]
    fn a_grant_has_one_form() {
        let octets = encode_level(&everything());
        let numbers = [1, 2, 3, 4, 0, 0, 0x0e, 0x10, 0, 23];
        let class = [1, 0x1f, 17, 0x13, 0x8c, 0x13, 0x8d, 34, 0, 0x0c];
        assert_eq!(octets, [&class[..], &numbers].concat());
        assert_eq!(decode_level(&octets), Ok(everything()));
        let ports = grant(Class {
            ports: Span::new(80, 80),
            ..Class::default()
        });
        assert_eq!(decode_level(&encode_level(&ports)), Ok(ports));
    }

    #[test]
    fn whatever_is_read_is_written_as_the_same_octets() {
        let octets = encode_level(&everything());
        for (place, value) in (0..octets.len()).flat_map(|i| (0..=u8::MAX).map(move |v| (i, v))) {
            let mut changed = octets.clone();
            changed[place] = value;
            if let Ok(grant) = decode_level(&changed) {
                assert_eq!(encode_level(&grant), changed);
            }
        }
    }

    #[test]
    fn a_grant_that_is_cut_short_or_followed_by_something_is_none() {
        let mut octets = encode_level(&everything());
        for len in 0..octets.len() {
            assert!(decode_level(&octets[..len]).is_err());
        }
        octets.push(0);
        assert!(decode_level(&octets).is_err());
    }

    #[test]
    fn a_grant_without_bounds_or_for_everything_is_none() {
        let refused = |change: fn(&mut LevelGrant)| {
            let mut grant = everything();
            change(&mut grant);
            decode_level(&encode_level(&grant)).is_err()
        };
        assert!(refused(|grant| grant.packets = 0));
        assert!(refused(|grant| grant.seconds = 0));
        assert!(refused(|grant| grant.class = Class::default()));
        assert!(refused(|grant| grant.class.dscp = Some(64)));
        assert!(refused(|grant| grant.class.ports = None));
        assert!(!refused(|grant| grant.renewals = 0));
    }
}
