//! Payloads, notify data and Mobile IP messages of `docs/protocol-vectors.json`, written and read.

#![allow(clippy::unwrap_used, reason = "the vectors have to be well-formed")]

use model::{
    Class, CsaId, Identity, LevelGrant, Licence, MapKind, Pictures, Right, Run, Spi, Zone,
    ZoneAgreement, ZoneId, ZoneSuite,
};
use pages::{Vector, check_vectors};
use std::time::Duration;
use wire::codec::{Codec, Reader};
use wire::ike::{
    GrantOffer, GrantReply, KeyDirection, RefusalCode, SecretShare, Token, decode_level,
    decode_nodes, decode_zone_map, encode_level, encode_nodes, encode_zone_map,
};
use wire::mobile_ip::{Enclosure, HomeTest, Lifetime, Note, Notice, Step};
use wire::probe::{Kind, Probe};

fn suite(name: &str) -> ZoneSuite {
    let mut suites = ZoneSuite::all();
    suites.find(|suite| suite.to_string() == name).unwrap()
}

fn map(text: &str) -> MapKind {
    let run = |text: &str| {
        let (zone, len) = text.split_once(':').unwrap();
        let (zone, len) = (ZoneId(zone.parse().unwrap()), len.parse().unwrap());
        Run { zone, len }
    };
    match text.strip_prefix("fixed ") {
        Some(runs) => MapKind::Fixed(runs.split(' ').map(run).collect()),
        None => MapKind::Changeable,
    }
}

fn zone(serial: u8, text: &str) -> Zone {
    let (selector, name) = text.rsplit_once(' ').unwrap();
    Zone {
        id: ZoneId(serial),
        selector: selector.parse().unwrap(),
        suite: suite(name),
    }
}

fn licence(text: &str) -> Licence {
    let (front, right) = text.rsplit_once(' ').unwrap();
    let (node, zone) = front.split_once(' ').unwrap();
    Licence {
        node: node.parse().unwrap(),
        zone: ZoneId(zone.parse().unwrap()),
        right: match right {
            "read" => Right::Read,
            "write" => Right::Write,
            "inject" => Right::Inject,
            other => panic!("{other} is no right"),
        },
    }
}

fn agreement(vector: &Vector) -> ZoneAgreement {
    let zones = (1..).zip(vector.texts("zones"));
    let licences = vector.texts("licences").into_iter();
    let mut licences: Vec<_> = licences.map(licence).collect();
    licences.sort();
    ZoneAgreement {
        zones: zones.map(|(serial, text)| zone(serial, text)).collect(),
        map: map(vector.text("map")),
        window: number(vector, "window"),
        licences,
        level: None,
    }
}

fn number<N: TryFrom<u64>>(vector: &Vector, input: &str) -> N {
    let number = N::try_from(vector.number(input));
    number.unwrap_or_else(|_| panic!("{input} is too large"))
}

/// Returns a big-endian number that the vector has in octets.
fn wide(vector: &Vector, input: &str) -> u64 {
    let octets = vector.octets(input).into_iter();
    octets.fold(0, |number, octet| number << 8 | u64::from(octet))
}

fn spi(vector: &Vector, input: &str) -> Spi {
    Spi(wide(vector, input).try_into().unwrap())
}

fn node(vector: &Vector, input: &str) -> Identity {
    let [node] = <[Identity; 1]>::try_from(decode_nodes(&vector.octets(input)).unwrap()).unwrap();
    node
}

/// Returns true if a value is written as these octets and read from them.
fn is_written_as<T: Codec + PartialEq>(value: &T, octets: &[u8]) -> bool {
    let mut written = Vec::new();
    value.encode(&mut written);
    written == octets
        && T::read(&mut Reader::new("a vector", octets)).is_ok_and(|read| read == *value)
}

#[test]
fn agreements_are_written_and_read_as_section_6_2_has_them() {
    check_vectors("zone-map", |vector| {
        let (agreement, data) = (agreement(vector), vector.output(""));
        encode_zone_map(&agreement) == data && decode_zone_map(&data) == Ok(agreement)
    });
}

#[test]
fn grants_of_levels_are_written_and_read_as_section_6_4_has_them() {
    check_vectors("level-grant", |vector| {
        let named = |input| vector.has(input).then_some(input);
        let class = Class {
            protocol: named("protocol").map(|input| number(vector, input)),
            ports: named("ports").map(|input| vector.text(input).parse().unwrap()),
            dscp: named("dscp").map(|input| number(vector, input)),
            marker: named("marker").map(|input| vector.number(input) == 1),
            pictures: named("pictures")
                .map(|input| Pictures::from_letters(vector.text(input)).unwrap()),
        };
        let grant = LevelGrant {
            class,
            packets: number(vector, "packets"),
            seconds: number(vector, "seconds"),
            renewals: number(vector, "renewals"),
        };
        let data = vector.output("");
        encode_level(&grant) == data && decode_level(&data) == Ok(grant)
    });
}

#[test]
fn grants_are_written_and_read_as_section_9_2_has_them() {
    check_vectors("grant", |vector| {
        let suites: Vec<_> = vector.texts("suites").into_iter().map(suite).collect();
        let offer = GrantOffer {
            csa: CsaId(wide(vector, "csa")),
            line: CsaId(wide(vector, "line")),
            grant: number(vector, "grant"),
            payload_zone: ZoneId(suites.len() as u8),
            window: number(vector, "window"),
            lifetime: Duration::from_secs(vector.number("lifetime")),
            from_gateway: spi(vector, "spi_from_gateway"),
            to_gateway: spi(vector, "spi_to_gateway"),
            suites,
            map: map(vector.text("map")),
        };
        is_written_as(&offer, &vector.output(""))
    });
}

#[test]
fn keys_of_zones_are_written_and_read_as_section_9_3_has_them() {
    check_vectors("secret", |vector| {
        let share = SecretShare {
            direction: KeyDirection(number(vector, "direction")),
            zone: ZoneId(number(vector, "zone")),
            suite: suite(vector.text("suite")),
            key: vector.octets("key").into(),
        };
        is_written_as(&share, &vector.output(""))
    });
}

#[test]
fn answers_to_grants_are_written_and_read_as_section_9_4_has_them() {
    check_vectors("grant-reply", |vector| {
        let reply = GrantReply {
            csa: CsaId(wide(vector, "csa")),
            grant: number(vector, "grant"),
            code: RefusalCode(number(vector, "code")),
        };
        let data = vector.output("");
        reply.encode() == data && GrantReply::decode(&data) == Ok(reply)
    });
}

#[test]
fn probes_are_written_and_read_as_section_5_16_has_them() {
    check_vectors("path-mtu-probe", |vector| {
        let probe = Probe {
            kind: match vector.number("purpose") {
                1 => Kind::Probe,
                2 => Kind::Echo,
                _ => Kind::Notice,
            },
            octets: number(vector, "octets"),
            number: wide(vector, "number"),
        };
        let octets = vector.output("");
        probe.octets()[..] == octets && Probe::read(&octets) == Some(probe)
    });
}

#[test]
fn nodes_are_written_and_read_as_section_9_6_has_them() {
    check_vectors("nodes", |vector| {
        let nodes = vector.texts("nodes").into_iter();
        let nodes: Vec<Identity> = nodes.map(|node| node.parse().unwrap()).collect();
        let data = vector.output("");
        encode_nodes(&nodes) == data && decode_nodes(&data) == Ok(nodes)
    });
}

/// The MAC itself is checked where its key is known, in `ike`.
#[test]
fn tokens_are_written_and_read_as_section_10_3_has_them() {
    check_vectors("token", |vector| {
        let zones = vector.numbers("zones").into_iter();
        let token = Token {
            spis: [spi(vector, "lower_spi"), spi(vector, "higher_spi")],
            nonce: vector.octets("nonce").try_into().unwrap(),
            expiry: number(vector, "expiry"),
            zones: zones.map(|zone| ZoneId(zone as u8)).collect(),
            mac: vector.output("/mac").try_into().unwrap(),
            holder: node(vector, "holder"),
        };
        let (octets, front) = (vector.output("/token"), vector.output("/front"));
        token.encode() == octets
            && octets.starts_with(&front)
            && token.covered(&node(vector, "asker")) == vector.output("/covered")
            && Token::decode(&octets) == Ok(token)
    });
}

fn note<'a>(vector: &Vector, authenticator: &'a [u8]) -> Note<'a> {
    Note {
        previous: vector.text("previous").parse().unwrap(),
        registration: wide(vector, "registration"),
        spi: spi(vector, "spi").0,
        authenticator,
    }
}

#[test]
fn notes_are_written_as_section_12_2_has_them() {
    check_vectors("mobile-ip-note", |vector| {
        let (authenticator, mut message) = (vector.octets("authenticator"), Vec::new());
        note(vector, &authenticator).append(&mut message);
        message == vector.output("")
    });
}

#[test]
fn authenticators_of_notes_cover_what_section_12_2_says() {
    check_vectors("mobile-ip-note-covered", |vector| {
        let [home, care_of] = ["home", "care_of"].map(|input| vector.text(input).parse().unwrap());
        note(vector, &[]).covered(home, care_of)[..] == vector.output("")
    });
}

#[test]
fn enclosures_are_written_as_section_12_3_has_them() {
    check_vectors("mobile-ip-enclosure", |vector| {
        let mut message = Vec::new();
        Enclosure(&vector.octets("enclosed")).append(&mut message);
        message == vector.output("")
    });
}

#[test]
fn notices_are_written_and_read_as_section_12_4_has_them() {
    check_vectors("mobile-ip-notice", |vector| {
        let notice = Notice {
            step: match vector.number("sub_type") {
                1 => Step::Told,
                2 => Step::Answered,
                other => panic!("{other} is no sub-type"),
            },
            lifetime: Lifetime(number(vector, "lifetime")),
            home: vector.text("home").parse().unwrap(),
            identification: wide(vector, "identification"),
        };
        let message = vector.output("");
        notice.encode() == message && Notice::parse(&message).is_ok_and(|(read, _)| read == notice)
    });
}

#[test]
fn tests_of_home_addresses_are_written_as_section_12_5_has_them() {
    check_vectors("mobile-ip-home-test", |vector| {
        let test = HomeTest {
            home: vector.text("home").parse().unwrap(),
            cookie: vector.octets("cookie").try_into().unwrap(),
        };
        test.encode() == vector.output("")
    });
}
