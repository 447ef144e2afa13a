//! Seeds of the fuzzers are valid messages of the kind in their name. A fuzzer would learn nothing
//! from a seed that the readers refuse immediately.

use model::{ZoneId, ZoneSuite};
use std::fs;
use std::path::Path;
use wire::dns::{Answer, Kind, Question};
use wire::esp::HEADER_LEN;
use wire::ike::Datagram;
use wire::ip::Header;
use wire::ip_in_ip::whole;
use wire::mobile_ip::{Advertisement, Notice, Reply, Request, Solicitation, TunnelData};
use wire::zoned::{Layout, MAX_ZONES, Map, Overlay, mark};

/// Returns the seeds of one fuzz target, by name; at least four.
fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let mut found = Vec::new();
    for entry in fs::read_dir(seeds.join(target)).expect("each target has a folder") {
        let file = entry.expect("a folder can be listed");
        let name = file.file_name().to_string_lossy().into_owned();
        let octets = fs::read(file.path()).expect("a seed can be read");
        found.push((name, octets));
    }
    assert!(found.len() >= 4, "{target} has {} seeds", found.len());
    found
}

#[test]
fn seeds_of_ike_message_are_ike_messages() {
    for (name, octets) in seeds("ike_message") {
        let sealed = matches!(Datagram::decode(&octets).unwrap(), Datagram::Sealed(_));
        assert_eq!(sealed, name.starts_with("auth"), "{name}");
    }
}

/// The first octet is the kind of the question.
#[test]
fn seeds_of_dns_are_answers() {
    for (name, octets) in seeds("dns") {
        let question = Question {
            id: u16::from_be_bytes([octets[1], octets[2]]),
            name: "gw.example.net".to_owned(),
            kind: Kind::ALL[usize::from(octets[0])],
        };
        let answer = question.read(&octets[1..]).expect(&name).expect(&name);
        let empty = Answer::Addresses(Vec::new());
        let expected = match name.as_str() {
            "no-such-name" => answer == Answer::NoSuchName,
            "failed" => answer == Answer::Failed(2),
            "circle" => answer == empty,
            _ => matches!(answer, Answer::Addresses(_)) && answer != empty,
        };
        assert!(expected, "{name}: {answer:?}");
    }
}

#[test]
fn seeds_of_classify_are_ip_datagrams() {
    for (name, octets) in seeds("classify") {
        let header = Header::parse(&octets).unwrap();
        assert_eq!(header.total_len(), octets.len(), "{name}");
    }
}

#[test]
fn seeds_of_zone_map_are_zoned_packets() {
    let mut overlays = 0;
    for (name, mut octets) in seeds("zone_map") {
        let mut packet = octets.split_off(1);
        let zones = 2 + usize::from(octets[0]);
        let overlay = Overlay::read(&packet).expect(&name);
        if let Some(end) = overlay.map(|(end, _)| end) {
            packet.truncate(end);
            mark(&mut packet, false);
            overlays += 1;
        }
        let map = Map::parse(&packet[HEADER_LEN..], ZoneId(zones as u8)).expect(&name);
        let suites = [ZoneSuite::Aes128Gcm16; MAX_ZONES];
        let layout = Layout::of_packet(map, &suites[..zones], packet.len()).expect(&name);
        assert_eq!(layout.packet_len(), packet.len(), "{name}");
    }
    assert_eq!(overlays, 1);
}

#[test]
fn seeds_of_mobile_ip_are_messages() {
    for (name, octets) in seeds("mobile_ip") {
        let is_read = match name.split('-').next() {
            Some("request" | "deregistration") => Request::parse(&octets).is_ok(),
            Some("reply") => Reply::parse(&octets).is_ok(),
            Some("data") => TunnelData::parse(&octets).is_ok(),
            Some("notice") => Notice::parse(&octets).is_ok(),
            Some("advertisement") => Advertisement::parse(&octets).is_ok(),
            Some("solicitation") => Solicitation::parse(&octets).is_ok(),
            _ => whole(&octets).is_ok(),
        };
        assert!(is_read, "{name}");
    }
}

/// A step has an event, a delay, a length and its octets.
#[test]
fn seeds_of_mobile_agents_are_whole_steps() {
    for (name, octets) in seeds("mobile_agents") {
        let mut rest = &octets[1..];
        while let Some((&[.., len], tail)) = rest.split_first_chunk::<3>() {
            rest = tail.get(len.into()..).expect(&name);
        }
        assert!(rest.is_empty(), "{name}");
    }
}

#[test]
fn seeds_of_ike_payload_are_payloads() {
    for (name, octets) in seeds("ike_payload") {
        let body = &octets[1..];
        let mut message = [&[1; 16][..], &[octets[0], 0x20, 37, 8, 0, 0, 0, 0]].concat();
        message.extend((32 + body.len() as u32).to_be_bytes());
        message.extend([0, 0]);
        message.extend((4 + body.len() as u16).to_be_bytes());
        message.extend(body);
        assert!(Datagram::decode(&message).is_ok(), "{name}");
    }
}

#[test]
fn seeds_of_headers_are_transport_headers() {
    for (name, octets) in seeds("headers") {
        if name.starts_with("tcp") {
            let header = wire::tcp::Header::parse(&octets).expect(&name);
            assert!(header.options().all(|option| option.is_ok()), "{name}");
        }
        if name.starts_with("ip-parameter") {
            assert!(wire::ike::IpParameter::decode(&octets).is_ok(), "{name}");
        }
        if name.starts_with("ping-counts") {
            assert!(wire::ike::PingCounts::decode(&octets).is_ok(), "{name}");
        } else if name.starts_with("probe") || name.starts_with("ping") {
            assert!(wire::probe::Probe::read(&octets).is_some(), "{name}");
        }
    }
}
