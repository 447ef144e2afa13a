//! Which zone each octet of a datagram is in.

use crate::prefetch::prefetch;
use model::{Run, ZoneAgreement, ZoneId, ZoneSelector};
use std::ops::Range;
use wire::classify::Clear;
use wire::content::Content;
use wire::rtp::Rtp;
use wire::udp;
use wire::zoned::{BadMap, MAX_RUNS, Map};

/// What the zones of an agreement ask for.
pub(crate) struct Division {
    /// Those of all zones but the payload zone, from serial 1.
    selectors: Vec<ZoneSelector>,
    contents: Vec<(ZoneId, Box<dyn Content>)>,
    payload_zone: ZoneId,
}

/// A header behind those of a datagram: the zone that asks for it, and its octets.
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

    /// Asks memory for what it points to.
    pub fn prefetch(&self) {
        prefetch(&self.selectors[..]);
        prefetch(&self.contents[..]);
    }

    /// From now on the designated zone has what this finds as well, before all others.
    pub fn recognise(&mut self, content: Box<dyn Content>) {
        self.contents.insert(0, (ZoneId::DESIGNATED, content));
    }

    /// The map of a datagram whose headers are known, and what was found behind them. Errors if the zones do not begin with the
    /// datagram or leave it in too many pieces: then it is to be opaque.
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

    /// Gives the octets of one part to the zones that ask for them.
    fn share(&self, runs: &mut Runs, part: Part, octets: Range<usize>) {
        let mut at = octets.start;
        while at < octets.end {
            let (zone, end) = self.zone_at(part, at);
            let end = end.min(octets.end);
            runs.push(zone, end - at);
            at = end;
        }
    }

    /// The zone that an octet is in, and where the next one may begin.
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

    /// The first zone that finds a header in what UDP carries, and how long that is.
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

/// The places in a datagram that a selector asks for, as far as they are in this part.
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

/// How a selector recognises what is inside UDP.
fn content(selector: ZoneSelector) -> Option<Box<dyn Content>> {
    match selector {
        ZoneSelector::Rtp(ports) => Some(Box::new(Rtp { ports })),
        _ => None,
    }
}

/// The runs of a datagram under construction, neighbours of one zone made one.
struct Runs {
    runs: [Run; MAX_RUNS],
    /// One more than there is room for if they are too many.
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

    /// The map of these runs. A last one in the payload zone is the beginning of the rest.
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
