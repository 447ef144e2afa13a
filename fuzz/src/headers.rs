//! Fuzzes the parsers of transport headers, of datagrams on the port that IKE and ESP share, of
//! path MTU probes and pings, of the counters of pings, of addresses with a role, and of
//! reports that packets were too long.

use wire::ike::{IpParameter, PingCounts};
use wire::probe::{self, Probe};
use wire::quoted::Quoted;
use wire::{esp, tcp, udp};

/// Parses octets as a transport header, as a UDP payload, and as the payload of a dummy packet.
pub fn run(octets: &[u8]) {
    if let Some(header) = tcp::Header::parse(octets) {
        assert!((tcp::MIN_HEADER_LEN..=60).contains(&header.header_len));
        assert!(header.header_len <= octets.len());
        let most = header.header_len - tcp::MIN_HEADER_LEN;
        assert!(header.options().count() <= most + 1, "options without end");
    }
    let _ = udp::Header::parse(octets);
    let _ = esp::Header::parse(octets);
    if let Some(probe) = Probe::read(octets) {
        assert_eq!(probe.octets(), octets[..probe::LEN]);
    }
    if let Ok(counts) = PingCounts::decode(octets) {
        assert_eq!(counts.encode(), octets);
    }
    if let Ok(named) = IpParameter::decode(octets) {
        assert_eq!(named.encode(), octets);
    }
    for quoted in [Quoted::read_v4(octets), Quoted::read_v6(octets)] {
        let header = quoted.and_then(|quoted| quoted.header);
        assert!(header.is_none() || octets.len() >= 8 + 20 + 8);
    }
    let parts = match esp::Datagram::parse(octets) {
        esp::Datagram::Ike(part) | esp::Datagram::Esp(part) => part.len(),
        esp::Datagram::Keepalive => 0,
    };
    assert!(parts <= octets.len());
}
