//! Golden vectors, which an independent decoder in Python made and checks, and random packets that
//! it has to open and to seal to the same octets. Needs Debian's `python3-cryptography`.

use crate::bench::*;
use crate::datagram::{ICMP, TCP, UDP, segment, tcp, udp, udp_between, v4, v6};
use crypto::{Rng, Secret};
use esp::{Packet, Worker};
use model::{Half, Instant, Keys, Sizes, Spi, Suite, ZoneId, ZoneKey, ZoneSelector, ZoneSuite};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const GOLDEN: [(&str, &str); 2] = [
    ("zoned.txt", include_str!("../vectors/zoned.txt")),
    ("plain.txt", include_str!("../vectors/plain.txt")),
];

/// One vector of a file; the decoder's text says what the fields are.
struct Vector {
    fields: BTreeMap<String, String>,
}

impl Vector {
    fn all(file: &str) -> impl Iterator<Item = Self> + '_ {
        file.split("\n\n").filter_map(|block| {
            let lines = block.lines().filter(|line| !line.starts_with('#'));
            let pairs = lines.filter_map(|line| line.split_once(':'));
            let own = |(name, value): (&str, &str)| (name.to_owned(), value.trim().to_owned());
            let fields: BTreeMap<_, _> = pairs.map(own).collect();
            (!fields.is_empty()).then_some(Self { fields })
        })
    }

    fn octets(&self, name: &str) -> Vec<u8> {
        let text = &self.fields[name];
        let octet = |i| u8::from_str_radix(&text[i..i + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(octet).collect()
    }

    fn seq(&self) -> u32 {
        self.fields["seq"].parse().unwrap()
    }

    fn zone_keys(&self) -> Vec<(u8, ZoneSuite, Secret)> {
        let names = self
            .fields
            .keys()
            .filter_map(|name| name.strip_prefix("key "));
        let zone_key = |zone: &str| {
            let key = self.octets(&format!("key {zone}"));
            let cipher = self.fields.get(&format!("cipher {zone}"));
            let cipher = cipher.map_or("aes128gcm16", String::as_str);
            let suite = ZoneSuite::all().find(|suite| suite.to_string() == cipher);
            (zone.parse().unwrap(), suite.unwrap(), Secret::new(key))
        };
        names.map(zone_key).collect()
    }

    /// The selectors that give the vector's runs: those of its `layout`, or as many headers as there are
    /// zones for.
    fn zones(&self) -> Vec<(ZoneSelector, ZoneSuite)> {
        let keys = self.zone_keys();
        let layout = match (self.fields.get("layout"), keys.len()) {
            (Some(layout), _) => layout,
            (None, 2) => "headers, payload",
            (None, _) => "ip, transport, payload",
        };
        let selectors = layout.split(", ").map(|zone| zone.parse().unwrap());
        selectors
            .zip(keys)
            .map(|(selector, key)| (selector, key.1))
            .collect()
    }

    fn half(&self) -> Half<Secret> {
        let spi = u32::from_str_radix(self.fields["spi"].trim_start_matches("0x"), 16);
        let mut keys = self.zone_keys();
        let keys = match self.fields["kind"].as_str() {
            "zoned" => Keys::Zoned(
                keys.into_iter()
                    .map(|(zone, suite, key)| ZoneKey {
                        zone: ZoneId(zone),
                        suite,
                        key,
                    })
                    .collect(),
            ),
            kind => {
                let (_, zone_suite, key) = keys.remove(0);
                let suite = Suite::ALL.into_iter();
                let mut suite = suite.filter(|suite| ZoneSuite::from(*suite) == zone_suite);
                Keys::Plain {
                    suite: suite.next().unwrap(),
                    implicit_iv: kind == "implicit",
                    key,
                }
            }
        };
        Half {
            spi: Spi(spi.unwrap()),
            keys,
        }
    }

    /// The vector's sender and receiver.
    fn pair(&self) -> (Worker, Worker) {
        let (mut alice, mut bob) = (alices_sa(&EXPLICIT), bobs_sa(&EXPLICIT));
        alice.outbound = self.half();
        bob.inbound = self.half();
        if self.fields["kind"] == "zoned" {
            for sa in [&mut alice, &mut bob] {
                sa.agreement = Some(agreement(&self.zones()));
            }
            alice.inbound.keys = alice.outbound.keys.clone();
            bob.outbound.keys = bob.inbound.keys.clone();
        }
        let (mut alice, bob) = (endpoint(alice), endpoint(bob));
        if let Some(size) = self.fields.get("sizes") {
            let sizes = Sizes::one(size.parse().unwrap());
            alice.set_sizes(BTreeMap::from([("bob".to_owned(), sizes)]));
        }
        (alice, bob)
    }
}

/// Seals so many packets that the next one has the number that is wanted.
fn seal_as(worker: &mut Worker, seq: u32, datagram: &[u8]) -> Vec<u8> {
    for _ in 1..seq {
        seal(worker, datagram).unwrap();
    }
    seal(worker, datagram).unwrap()
}

#[test]
fn golden_vectors_seal_and_open_to_the_octet() {
    let mut runs_seen = BTreeMap::new();
    for vector in GOLDEN.iter().flat_map(|(_, file)| Vector::all(file)) {
        let name = &vector.fields["name"];
        let (mut alice, mut bob) = vector.pair();
        let (datagram, packet) = (vector.octets("datagram"), vector.octets("packet"));
        let sealed = seal_as(&mut alice, vector.seq(), &datagram);
        assert_eq!(sealed, packet, "{name}");
        assert_eq!(open(&mut bob, &packet), Ok(datagram), "{name}");
        if vector.fields["kind"] == "zoned" {
            *runs_seen.entry(packet[8] & 15).or_insert(0) += 1;
        }
    }
    assert!(
        (1..=4).chain([7]).all(|runs| runs_seen.contains_key(&runs)),
        "{runs_seen:?}"
    );
}

#[test]
fn the_independent_decoder_confirms_the_golden_vectors() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let files = GOLDEN.map(|(name, _)| folder.join(name));
    assert!(decoder_says(&files).contains("vectors are right"));
}

#[test]
fn the_independent_decoder_finds_a_changed_vector() {
    let changed = GOLDEN[0].1.replacen("seq: 1\n", "seq: 2\n", 1);
    let said = decoder_says(&[written("changed.txt", &changed)]);
    assert!(!said.contains("vectors are right"), "{said}");
}

#[test]
fn the_independent_decoder_opens_and_seals_random_packets_alike() {
    let mut rng = Rng::from_seed([7; 32]);
    let mut text = String::new();
    let chacha = |implicit_iv| Kind::Plain {
        suite: Suite::ChaCha20Poly1305,
        implicit_iv,
    };
    let suites: Vec<_> = ZoneSuite::all().map(zones_of).collect();
    let kinds = [
        EXPLICIT,
        IMPLICIT,
        chacha(false),
        chacha(true),
        two_zones(),
        mixed_zones(),
        three_zones(),
        eight_zones(),
        old_zones(),
    ];
    for kind in kinds.into_iter().chain(suites) {
        let (mut alice, mut bob) = pair(&kind);
        for number in 1..=40_u32 {
            let datagram = random_datagram(&mut rng);
            let packet = seal(&mut alice, &datagram).unwrap();
            let mut batch = [Packet::from_slice(&packet)];
            bob.open(&mut batch, &mut Outcome::default(), Instant::ZERO);
            write_vector(&mut text, &kind, number, &datagram, &packet);
        }
        assert_eq!(bob.counters().opened.packets, 40);
    }
    let said = decoder_says(&[written("random.txt", &text)]);
    assert_eq!(said.trim(), "1520 vectors are right");
}

fn random_datagram(rng: &mut Rng) -> Vec<u8> {
    let mut payload = vec![0; usize::from(rng.u16() % 1200)];
    rng.fill(&mut payload);
    let cookie = [34, 6, 1, 2, 3, 4, 1, 1];
    let timestamps = [1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9];
    match rng.u16() % 8 {
        0 => v4(TCP, &tcp(&[], &payload)),
        1 => v4(TCP, &tcp(&[&timestamps[..], &cookie].concat(), &payload)),
        2 => v6(TCP, &tcp(&[&cookie[..], &timestamps].concat(), &payload)),
        3 => v4(UDP, &udp(&payload)),
        4 => v6(UDP, &udp(&payload)),
        5 => v4(ICMP, &payload),
        6 => v4(
            UDP,
            &udp_between([5004, 5006], &[&[0x81, 96], &payload[..]].concat()),
        ),
        _ => segment(),
    }
}

fn write_vector(text: &mut String, kind: &Kind, number: u32, datagram: &[u8], packet: &[u8]) {
    let (name, zones) = match kind {
        Kind::Plain { suite, implicit_iv } => {
            let name = if *implicit_iv { "implicit" } else { "explicit" };
            (name, vec![(0, ZoneSuite::from(*suite))])
        }
        Kind::Zoned(zones) => (
            "zoned",
            (1..).zip(zones.iter().map(|zone| zone.1)).collect(),
        ),
    };
    writeln!(
        text,
        "name: {name} {number}\nkind: {name}\nspi: {TO_BOB:#x}\nseq: {number}"
    )
    .unwrap();
    for (zone, suite) in zones {
        writeln!(text, "cipher {zone}: {suite}").unwrap();
        writeln!(
            text,
            "key {zone}: {}",
            hex(key(TO_BOB, zone, suite).expose())
        )
        .unwrap();
    }
    if name == "zoned" {
        let words = usize::from(packet[8] & 15) - 1;
        let word = |i: usize| &packet[8 + 4 * i..12 + 4 * i];
        let run = |w: &[u8]| format!("{}:{}", w[1], u16::from_be_bytes([w[2], w[3]]));
        let runs: Vec<_> = (0..words).map(|i| run(word(i))).collect();
        writeln!(text, "runs: {}", runs.join(" ")).unwrap();
    }
    writeln!(
        text,
        "datagram: {}\npacket: {}\n",
        hex(datagram),
        hex(packet)
    )
    .unwrap();
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn written(name: &str, text: &str) -> std::path::PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn decoder_says(files: &[std::path::PathBuf]) -> String {
    let decoder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/decoder/decode.py");
    let output = Command::new("/usr/bin/python3")
        .arg(decoder)
        .arg("check")
        .args(files)
        .output()
        .expect("the decoder needs /usr/bin/python3 with the package python3-cryptography");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}
