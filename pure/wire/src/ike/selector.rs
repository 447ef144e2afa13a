//! Traffic selector payloads (RFC 7296 section 3.13).
//!
//! ```text
//!  Number of TSs (1) | RESERVED (3) | selectors
//!  selector: TS Type (1) | IP Protocol (1) | Selector Length (2) | Start Port (2) | End Port (2)
//!            Starting Address (4 or 16) | Ending Address
//! ```

use super::TsType;
use crate::codec::{Codec, LengthPrefixed, Malformed, Reader};
use model::TrafficSelector;
use std::net::IpAddr;

const WHAT: &str = "a traffic selector";

/// The selectors of one side, at most 255.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrafficSelectors(pub Vec<TrafficSelector>);

impl Codec for TrafficSelectors {
    fn encode(&self, out: &mut Vec<u8>) {
        let count = self.0.len().min(u8::MAX.into());
        out.extend_from_slice(&[count as u8, 0, 0, 0]);
        self.0
            .iter()
            .take(count)
            .for_each(|selector| encode(selector, out));
    }

    /// Selectors of unknown types are skipped, so they are never negotiated.
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let count = reader.u8()?;
        reader.take(3)?;
        let mut selectors = Vec::new();
        for _ in 0..count {
            selectors.extend(read(reader)?);
        }
        Ok(Self(selectors))
    }
}

fn encode(selector: &TrafficSelector, out: &mut Vec<u8>) {
    let kind = match selector.first {
        IpAddr::V4(_) => TsType::IPV4_ADDR_RANGE,
        IpAddr::V6(_) => TsType::IPV6_ADDR_RANGE,
    };
    let mut body = LengthPrefixed::after(&[kind.0, selector.protocol], out);
    body.extend_from_slice(&selector.ports.start().to_be_bytes());
    body.extend_from_slice(&selector.ports.end().to_be_bytes());
    for address in [selector.first, selector.last] {
        match address {
            IpAddr::V4(address) => body.extend_from_slice(&address.octets()),
            IpAddr::V6(address) => body.extend_from_slice(&address.octets()),
        }
    }
}

fn read(reader: &mut Reader<'_>) -> Result<Option<TrafficSelector>, Malformed> {
    let kind = TsType::read(reader)?;
    let protocol = reader.u8()?;
    let length = usize::from(reader.u16()?)
        .checked_sub(4)
        .ok_or(Malformed::Length(WHAT))?;
    let mut body = reader.sub(WHAT, length)?;
    if kind != TsType::IPV4_ADDR_RANGE && kind != TsType::IPV6_ADDR_RANGE {
        return Ok(None);
    }
    let (start, end) = (body.u16()?, body.u16()?);
    let (first, last) = (address(kind, &mut body)?, address(kind, &mut body)?);
    body.finish()?;
    // Start 65535 and end 0 is OPAQUE: an empty range here, which matches no visible port.
    let opaque = (start, end) == (u16::MAX, 0);
    if first > last || (start > end && !opaque) {
        return Err(Malformed::Value(WHAT));
    }
    Ok(Some(TrafficSelector {
        protocol,
        ports: start..=end,
        first,
        last,
    }))
}

fn address(kind: TsType, body: &mut Reader<'_>) -> Result<IpAddr, Malformed> {
    match kind {
        TsType::IPV4_ADDR_RANGE => body.array::<4>().map(IpAddr::from),
        _ => body.array::<16>().map(IpAddr::from),
    }
}
