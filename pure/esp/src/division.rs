//! The assignment of a datagram's octets to zones.

use crate::prefetch::prefetch;
use model::{Run, ZoneAgreement, ZoneId, ZoneSelector};
use std::ops::Range;
use wire::classify::Clear;
use wire::content::Content;
use wire::rtp::Rtp;
use wire::udp;
use wire::zoned::{BadMap, MAX_RUNS, Map};

/// The zone selectors of an agreement.
pub(crate) struct Division {
    /// Selectors of all zones except the payload zone, from serial 1.
    selectors: Vec<ZoneSelector>,
    contents: Vec<(ZoneId, Box<dyn Content>)>,
    payload_zone: ZoneId,
}

/// A header behind the transport header: the zone that selects it, and its length.
pub(crate) type Found = (ZoneId, usize);

/// A part of the headers.
#[derive(Clone, Copy)]
enum Part {
    Ip,
    Transport,
}

impl Division {
    pub fn new(agreement: &ZoneAgreement) -> Self {
        let payload_zone = agreement.payload_zone();
        let zones = agreement
            .zones
            .iter()
            .filter(|zone| zone.id != payload_zone);
        let contents = zones.clone();
        Self {
            selectors: zones.map(|zone| zone.selector).collect(),
            contents: contents
                .filter_map(|zone| Some((zone.id, content(zone.selector)?)))
                .collect(),
            payload_zone,
        }
    }

    /// Prefetches the selectors.
    pub fn prefetch(&self) {
        prefetch(&self.selectors[..]);
        prefetch(&self.contents[..]);
    }

    /// Adds a recognised header to the designated zone, ahead of all other selectors.
    pub fn recognise(&mut self, content: Box<dyn Content>) {
        self.contents.insert(0, (ZoneId::DESIGNATED, content));
    }

    /// Returns the map of a datagram with known headers, and of the header found behind them.
    /// Returns an error if the zones do not start with the datagram or divide it into too many
    /// runs; the datagram is then sealed as opaque.
    pub fn map(&self, clear: &Clear, found: Option<Found>) -> Result<Map, BadMap> {
        let mut runs = Runs::new();
        self.share(&mut runs, Part::Ip, clear.ip.clone());
        let mut at = clear.transport.start;
        for secret in clear.secret.iter() {
            self.share(&mut runs, Part::Transport, at..secret.start);
            runs.push(self.payload_zone, secret.len());
            at = secret.end;
        }
        self.share(&mut runs, Part::Transport, at..clear.transport.end);
        if let Some((zone, len)) = found {
            runs.push(zone, len);
        }
        runs.map(self.payload_zone, clear.checksum_at.is_some())
    }

    /// Assigns the octets of one part to the zones that select them.
    fn share(&self, runs: &mut Runs, part: Part, octets: Range<usize>) {
        let mut at = octets.start;
        while at < octets.end {
            let (zone, end) = self.zone_at(part, at);
            let end = end.min(octets.end);
            runs.push(zone, end - at);
            at = end;
        }
    }

    /// Returns the zone of an octet, and the offset of the next possible change.
    fn zone_at(&self, part: Part, at: usize) -> (ZoneId, usize) {
        let mut end = usize::MAX;
        for (selector, serial) in self.selectors.iter().zip(1..) {
            let wanted = wanted(*selector, part);
            if wanted.contains(&at) {
                return (ZoneId(serial), end.min(wanted.end));
            }
            if at < wanted.start {
                end = end.min(wanted.start);
            }
        }
        (self.payload_zone, end)
    }

    /// Returns the first zone that recognises a header in a UDP payload, and the header's length.
    pub fn find(&self, datagram: &[u8], clear: &Clear) -> Option<Found> {
        if self.contents.is_empty() || clear.protocol != udp::PROTOCOL {
            return None;
        }
        let header = udp::Header::parse(&datagram[clear.transport.clone()])?;
        let ports = [header.source_port, header.destination_port];
        let payload = &datagram[clear.transport.end..];
        let found = |(zone, content): &(ZoneId, Box<dyn Content>)| {
            (*zone, content.header_len(ports, payload))
        };
        self.contents.iter().map(found).find(|(_, len)| *len > 0)
    }
}

/// Returns the offsets in a datagram that a selector covers in this part.
fn wanted(selector: ZoneSelector, part: Part) -> Range<usize> {
    match (selector, part) {
        (ZoneSelector::Ip | ZoneSelector::IpTransport, Part::Ip)
        | (ZoneSelector::Transport | ZoneSelector::IpTransport, Part::Transport) => 0..usize::MAX,
        (ZoneSelector::Octets(places), _) => {
            usize::from(places.first())..usize::from(places.last()) + 1
        }
        _ => 0..0,
    }
}

/// Returns the recogniser of a selector for UDP payloads.
fn content(selector: ZoneSelector) -> Option<Box<dyn Content>> {
    match selector {
        ZoneSelector::Rtp(ports) => Some(Box::new(Rtp { ports })),
        _ => None,
    }
}

/// The runs of a datagram under construction. Adjacent runs in one zone are merged.
struct Runs {
    runs: [Run; MAX_RUNS],
    /// One more than the capacity if there are too many.
    count: usize,
}

impl Runs {
    const fn new() -> Self {
        let none = Run {
            zone: ZoneId(0),
            len: 0,
        };
        Self {
            runs: [none; MAX_RUNS],
            count: 0,
        }
    }

    fn push(&mut self, zone: ZoneId, len: usize) {
        let len = len as u16; // a datagram is never longer
        let count = self.count.min(MAX_RUNS);
        match self.runs[..count].last_mut() {
            _ if len == 0 => {}
            Some(last) if last.zone == zone => last.len += len,
            _ => {
                if let Some(free) = self.runs.get_mut(count) {
                    *free = Run { zone, len };
                }
                self.count = count + 1;
            }
        }
    }

    /// Returns the map of these runs. A final run in the payload zone is part of the implicit last
    /// run.
    fn map(&self, payload_zone: ZoneId, checksum_left_out: bool) -> Result<Map, BadMap> {
        let runs = self.runs.get(..self.count).ok_or(BadMap::RunCount)?;
        let described = match runs {
            [described @ .., last] if last.zone == payload_zone => described,
            all => all,
        };
        Map::new(payload_zone, described, checksum_left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_part_is_no_run_and_divides_none() {
        let mut runs = Runs::new();
        for (zone, len) in [(1, 20), (2, 0), (1, 8)] {
            runs.push(ZoneId(zone), len);
        }
        let zone = ZoneId(1);
        assert_eq!(runs.runs[..runs.count], [Run { zone, len: 28 }]);
    }
}
