//! Golden vectors, generated and checked by an independent decoder in Python, and random packets
//! that the decoder must open and seal to the same octets. Needs Debian's `python3-cryptography`.

use crate::bench::*;
use crate::datagram::{ICMP, TCP, UDP, segment, tcp, udp, udp_between, v4, v6};
use crate::mode::{V4, V6, moded, set_mode};
use crypto::{Rng, Secret};
use esp::{Direction, Licensed, Packet, Scratch, Worker};
use model::{
    ChildSaId, EspSuite, Half, Instant, Keys, Mode, Sizes, Spi, Suite, ZoneId, ZoneKey,
    ZoneSelector, ZoneSuite,
};
use pages::check_vectors;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;
use wire::zoned::mark;

const GOLDEN: [(&str, &str); 5] = [
    ("zoned.txt", include_str!("../vectors/zoned.txt")),
    ("fixed.txt", include_str!("../vectors/fixed.txt")),
    ("plain.txt", include_str!("../vectors/plain.txt")),
    ("overlay.txt", include_str!("../vectors/overlay.txt")),
    ("bare.txt", include_str!("../vectors/bare.txt")),
];

/// Packets that a licensed node originates; no endpoint seals such packets.
const INJECTED: &str = include_str!("../vectors/injected.txt");

const V6_PAIR: &str = "fd000001000000000000000000000001 fd000008000000000000000000000001";

/// One vector of a file; section 17.2 of `docs/protocol.md` describes the fields.
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

    fn seq(&self) -> u64 {
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

    /// The root of the writer's key, if there is a writer.
    fn root(&self) -> Option<Secret> {
        let root = self.fields.contains_key("root");
        root.then(|| Secret::new(self.octets("root")))
    }

    /// Passes a packet of the endpoint through the licensed node.
    fn passed(&self, packet: Vec<u8>) -> Vec<u8> {
        let Some(root) = self.root() else {
            return packet;
        };
        let number = |name: &str| self.fields[name].parse::<u64>().unwrap();
        let kind = Kind::Zoned(self.zones());
        let mut grant = crate::licensed::grant(&kind, &[]);
        grant.grant = number("grant") as u16;
        let (_, suite, key) = self.zone_keys().remove(0);
        for half in [&mut grant.from_gateway, &mut grant.to_gateway] {
            half.zones = vec![(ZoneId(1), suite, key.clone())];
            half.overlay = Some(esp::grant_key(&root, grant.grant));
        }
        grant.to_gateway.spi = self.half().spi;
        let mut node = Licensed::new();
        node.install(grant).unwrap();
        let mut scratch = Scratch::new();
        let mut last = None;
        for _ in 0..number("ctr") {
            let view = node.open(&packet, &mut scratch).unwrap();
            last = node
                .lower_window(&view, &packet, number("window") as u16)
                .ok();
        }
        let mut passed = packet;
        mark(&mut passed, true);
        last.unwrap().append(&mut passed);
        passed
    }

    /// A node's injected packet with the headers of a datagram without payload.
    fn injected(&self, datagram: &[u8]) -> Vec<u8> {
        let mut grant = crate::licensed::grant(&two_zones(), &[1]);
        grant.grant = self.fields["grant"].parse().unwrap();
        for half in [&mut grant.from_gateway, &mut grant.to_gateway] {
            half.injection = Some(esp::grant_key(&self.root().unwrap(), grant.grant));
        }
        let csa = grant.csa;
        let mut node = Licensed::new();
        node.install(grant).unwrap();
        let header = wire::ip::Header::parse(datagram).unwrap();
        let mut headers = datagram.to_vec();
        headers[header.header_len() + 16..][..2].fill(0);
        let (headers, first) = match (self.addresses(), header.version()) {
            (Some(_), _) => (&headers[header.header_len()..], TCP),
            (None, 4) => (&headers[..], 4),
            (None, _) => (&headers[..], 41),
        };
        let made = (0..self.seq()).map(|_| {
            let made = node.inject(csa, Direction::ToGateway, (headers, first));
            made.unwrap()
        });
        made.last().unwrap()
    }

    /// The selectors that produce the vector's runs: those of its `layout`, or one header per zone.
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
            "zoned" | "fixed" => Keys::Zoned(
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
                    suite: suite.next().unwrap().into(),
                    implicit_iv: kind == "implicit",
                    esn: self.fields.contains_key("esn"),
                    key,
                }
            }
        };
        Half {
            spi: Spi(spi.unwrap()),
            keys,
            writers: self.root(),
            injectors: None,
        }
    }

    fn runs(&self) -> Vec<(u8, u16)> {
        let run = |text: &str| {
            let (zone, len) = text.split_once(':').unwrap();
            (zone.parse().unwrap(), len.parse().unwrap())
        };
        self.fields["runs"].split_whitespace().map(run).collect()
    }

    /// The addresses of a mode that does not send the IP header.
    fn addresses(&self) -> Option<[IpAddr; 2]> {
        let pair = self.fields.get("pair")?;
        let mut ends = pair.split(' ').map(|end| match end.len() {
            8 => IpAddr::V4(u32::from_str_radix(end, 16).unwrap().into()),
            _ => IpAddr::V6(u128::from_str_radix(end, 16).unwrap().into()),
        });
        Some([(); 2].map(|()| ends.next().unwrap()))
    }

    /// Sender and receiver of an opaque companion SA, of an SA whose map fits no datagram.
    fn opaque_pair(&self) -> (Worker, Worker) {
        let (mut alice, mut bob) = fixed_sas(&[(1, 999)]);
        alice.opaque.as_mut().unwrap().outbound = self.half();
        bob.opaque.as_mut().unwrap().inbound = self.half();
        (endpoint(alice), endpoint(bob))
    }

    /// Sender and receiver of unencrypted packets.
    fn clear_pair(&self) -> (Worker, Worker) {
        let sas = (alices_sa(&two_zones()), bobs_sa(&two_zones()));
        let (mut alice, mut bob) = granting(sas, crate::level::everything());
        alice.integrity.as_mut().unwrap().outbound = self.half();
        bob.integrity.as_mut().unwrap().inbound = self.half();
        (endpoint(alice), endpoint(bob))
    }

    /// The vector's sender and receiver.
    fn pair(&self) -> (Worker, Worker) {
        let kind = self.fields["kind"].as_str();
        if kind == "fixed" && self.runs().is_empty() {
            return match self.zone_keys()[0].1.encrypts() {
                true => self.opaque_pair(),
                false => self.clear_pair(),
            };
        }
        let (mut alice, mut bob) = (alices_sa(&EXPLICIT), bobs_sa(&EXPLICIT));
        alice.outbound = self.half();
        bob.inbound = self.half();
        if ["zoned", "fixed"].contains(&kind) {
            for sa in [&mut alice, &mut bob] {
                sa.agreement = Some(agreement(&self.zones()));
            }
            alice.inbound.keys = alice.outbound.keys.clone();
            bob.outbound.keys = bob.inbound.keys.clone();
        }
        if let Some(addresses) = self.addresses() {
            set_mode([&mut alice, &mut bob], Mode::Beet, addresses);
        }
        if kind == "fixed" {
            (alice, bob) = fix(alice, bob, &self.runs());
        }
        let (mut alice, bob) = (endpoint(alice), endpoint(bob));
        if let Some(size) = self.fields.get("sizes") {
            let sizes = Sizes::one(size.parse().unwrap());
            alice.set_peers(padded(BOB, sizes));
        }
        (alice, bob)
    }
}

/// Advances both ends close to an extended number, whose upper half a packet does not carry.
fn approach(alice: &mut Worker, bob: &mut Worker, seq: u64) {
    for number in (1 << 31..seq.saturating_sub(10)).step_by(1 << 31) {
        alice.skip_to(ChildSaId(1), number);
        let packet = seal(alice, &segment()).unwrap();
        open(bob, &packet).unwrap();
    }
}

/// Seals packets up to the one with number `seq`, at most ten.
fn seal_as(worker: &mut Worker, seq: u64, datagram: &[u8]) -> Vec<u8> {
    let few = seq.min(10);
    worker.skip_to(ChildSaId(1), seq - few);
    for _ in 1..few {
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
        approach(&mut alice, &mut bob, vector.seq());
        let sealed = seal_as(&mut alice, vector.seq(), &datagram);
        assert_eq!(vector.passed(sealed), packet, "{name}");
        let written = match vector.root() {
            Some(_) => vector.octets("written"),
            None => datagram,
        };
        assert_eq!(open(&mut bob, &packet), Ok(written), "{name}");
        if vector.fields["kind"] == "zoned" {
            *runs_seen.entry(packet[8] & 15).or_insert(0) += 1;
        }
    }
    assert!(
        (1..=4).chain([7]).all(|runs| runs_seen.contains_key(&runs)),
        "{runs_seen:?}"
    );
}

/// The receiver has received the same datagram from the peer before. A node's counter starts at 1,
/// so the vector with the last counter is not made here.
#[test]
fn golden_vectors_of_what_is_injected_are_made_and_opened_to_the_octet() {
    let kind = two_zones();
    for vector in Vector::all(INJECTED) {
        let name = &vector.fields["name"];
        let (datagram, packet) = (vector.octets("datagram"), vector.octets("packet"));
        let (mut alice, mut bob) = (alices_sa(&kind), bobs_sa(&kind));
        bob.inbound.injectors = vector.root();
        if let Some(addresses) = vector.addresses() {
            set_mode([&mut alice, &mut bob], Mode::Transport, addresses);
        }
        let (mut alice, mut bob) = (endpoint(alice), endpoint(bob));
        let said = seal(&mut alice, &datagram).unwrap();
        assert_eq!(open(&mut bob, &said), Ok(datagram.clone()), "{name}");
        assert_eq!(open(&mut bob, &packet), Ok(datagram.clone()), "{name}");
        assert_eq!(bob.counters().injected, 1, "{name}");
        if vector.seq() < 10 {
            assert_eq!(vector.injected(&datagram), packet, "{name}");
        }
    }
}

#[test]
fn the_independent_decoder_confirms_the_golden_vectors() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut files: Vec<_> = GOLDEN.iter().map(|(name, _)| folder.join(name)).collect();
    files.push(folder.join("injected.txt"));
    assert!(decoder_says(&files).contains("vectors are right"));
}

/// Section 17 of `docs/protocol.md` lists all files.
#[test]
fn the_page_lists_the_vectors_of_each_file() {
    let page = pages::read("protocol.md");
    for (name, file) in GOLDEN.into_iter().chain([("injected.txt", INJECTED)]) {
        let count = Vector::all(file).count();
        let row = format!("[{name}](../pure/esp/tests/vectors/{name}) | {count} |");
        assert!(page.contains(&row), "{row}");
    }
    let count = pages::read("protocol-vectors.json")
        .matches("\"kind\"")
        .count();
    let row = format!("[protocol-vectors.json](protocol-vectors.json) | {count} |");
    assert!(page.contains(&row), "{row}");
}

#[test]
fn keys_of_grants_are_those_of_section_7_3() {
    check_vectors("grant-key", |vector| {
        let (root, grant) = (Secret::new(vector.octets("root")), vector.number("grant"));
        esp::grant_key(&root, grant as u16).expose() == vector.output("")
    });
}

/// The crates that own the keys, payloads and notify data check the same vectors.
#[test]
fn the_independent_implementation_yields_all_vectors_of_the_protocol() {
    let path = pages::repository().join("docs/protocol-vectors.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let said = python_says("protocol.py", &[path]);
    let count = text.matches("\"kind\"").count();
    assert_eq!(said.trim(), format!("{count} vectors are right"));
    // Negative control: a flipped bit in a key of KEYMAT.
    let (front, key) = text.split_once("\"root_tok\": \"").unwrap();
    let flipped = if key.starts_with('0') { '1' } else { '0' };
    let changed = format!("{front}\"root_tok\": \"{flipped}{}", &key[1..]);
    let said = python_says("protocol.py", &[written("protocol-changed.json", &changed)]);
    assert!(said.contains("another output"), "{said}");
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
    let plain = |suite: EspSuite| {
        let kind = move |(implicit_iv, esn)| Kind::Plain {
            suite,
            implicit_iv,
            esn,
        };
        let forms = match suite.may_omit_iv() {
            true => vec![(false, false), (true, false), (false, true), (true, true)],
            false => vec![(false, false), (false, true)],
        };
        forms.into_iter().map(kind)
    };
    let suites: Vec<_> = ZoneSuite::all().map(zones_of).collect();
    let kinds = [
        two_zones(),
        mixed_zones(),
        three_zones(),
        eight_zones(),
        old_zones(),
    ];
    let plain = EspSuite::all().flat_map(plain);
    for kind in plain.chain(kinds).chain(suites) {
        let (mut alice, mut bob) = pair(&kind);
        // Half of the extended numbers have an upper half.
        let before = match kind {
            Kind::Plain { esn: true, .. } => (1 << 32) - 21,
            _ => 0,
        };
        alice.skip_to(ChildSaId(1), before);
        for number in before + 1..=before + 40 {
            let datagram = random_datagram(&mut rng);
            let packet = seal(&mut alice, &datagram).unwrap();
            let mut batch = [Packet::from_slice(&packet)];
            bob.open(&mut batch, &mut Outcome::default(), Instant::ZERO);
            write_vector(&mut text, &kind, number, &datagram, &packet);
        }
        assert_eq!(bob.counters().opened.packets, 40);
    }
    let said = decoder_says(&[written("random.txt", &text)]);
    assert_eq!(said.trim(), "2720 vectors are right");
}

/// Scapy supports all of plain ESP except GMAC, implicit IVs and extended numbers with an HMAC.
#[test]
fn scapy_opens_and_seals_random_plain_packets_alike() {
    let mut rng = Rng::from_seed([10; 32]);
    let mut text = String::new();
    let gmacs = [EspSuite::Aes128Gmac, EspSuite::Aes256Gmac];
    for (suite, esn) in EspSuite::all().flat_map(|suite| [(suite, false), (suite, true)]) {
        if esn && suite.hash().is_some() || gmacs.contains(&suite) {
            continue;
        }
        let kind = Kind::Plain {
            suite,
            implicit_iv: false,
            esn,
        };
        let (mut alice, _) = pair(&kind);
        let before = if esn { (1 << 32) - 6 } else { 0 };
        alice.skip_to(ChildSaId(1), before);
        for number in before + 1..=before + 10 {
            let datagram = random_datagram(&mut rng);
            let packet = seal(&mut alice, &datagram).unwrap();
            write_vector(&mut text, &kind, number, &datagram, &packet);
        }
    }
    let said = python_says("scapy_peer.py", &[written("scapy.txt", &text)]);
    assert_eq!(said.trim(), "150 vectors are right");
    // A changed octet of an ICV, and the number of another packet.
    let (kept, last) = text.trim_end().split_at(text.trim_end().len() - 1);
    let other = if last == "0" { "1" } else { "0" };
    for changed in [
        format!("{kept}{other}\n"),
        text.replacen("seq: 1\n", "seq: 2\n", 1),
    ] {
        let said = python_says("scapy_peer.py", &[written("scapy-changed.txt", &changed)]);
        assert!(!said.contains("vectors are right"), "{said}");
    }
}

/// A fixed map fits some of the datagrams; all others use the companion SA.
#[test]
fn the_independent_decoder_opens_and_seals_random_packets_that_carry_no_map_alike() {
    let mut rng = Rng::from_seed([8; 32]);
    let (mut text, mut fitting) = (String::new(), 0);
    let (alice, bob) = fixed_sas(&[(1, 40)]);
    let agreed = alice.agreement.clone().unwrap();
    let (mut alice, mut bob) = (endpoint(alice), endpoint(bob));
    for number in 1..=80 {
        let datagram = random_datagram(&mut rng);
        let packet = seal(&mut alice, &datagram).unwrap();
        assert_eq!(open(&mut bob, &packet), Ok(datagram.clone()));
        let word = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().unwrap());
        let (spi, seq, fits) = (word(0), word(4), word(0) == TO_BOB);
        fitting += u32::from(fits);
        writeln!(
            text,
            "name: {number}\nkind: fixed\nspi: {spi:#x}\nseq: {seq}"
        )
        .unwrap();
        let opaque = agreed.opaque().unwrap();
        for zone in if fits { &agreed.zones } else { &opaque.zones } {
            let key = key(spi, zone.id.0, zone.suite);
            write_key(&mut text, zone.id.0, &zone.suite.to_string(), &key);
        }
        writeln!(text, "runs: {}", if fits { "1:40" } else { "" }).unwrap();
        write_datagram(&mut text, &datagram, &packet);
    }
    assert!((5..75).contains(&fitting), "{fitting}");
    let said = decoder_says(&[written("random-fixed.txt", &text)]);
    assert_eq!(said.trim(), "80 vectors are right");
}

/// Without IP headers, packets of both IP versions look the same.
#[test]
fn the_independent_decoder_opens_and_seals_random_packets_without_an_ip_header_alike() {
    let mut rng = Rng::from_seed([9; 32]);
    let mut text = String::new();
    let datagrams: Vec<_> = (0..80).map(|_| random_datagram(&mut rng)).collect();
    for kind in [two_zones(), eight_zones(), zones_of(ZoneSuite::Aes256Gmac)] {
        for (version, pair) in [(4, "0a010001 0a080001"), (6, V6_PAIR)] {
            let addresses = if version == 4 { V4 } else { V6 };
            let [mut alice, mut bob] = moded(Mode::Transport, &kind, addresses).map(endpoint);
            let of_version = datagrams.iter().filter(|d| d[0] >> 4 == version);
            for (number, datagram) in (1..).zip(of_version) {
                let packet = seal(&mut alice, datagram).unwrap();
                let opened = open(&mut bob, &packet).unwrap();
                writeln!(text, "pair: {pair}").unwrap();
                write_vector(&mut text, &kind, number, &opened, &packet);
            }
        }
    }
    let said = decoder_says(&[written("random-bare.txt", &text)]);
    assert_eq!(said.trim(), "240 vectors are right");
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

fn write_vector(text: &mut String, kind: &Kind, number: u64, datagram: &[u8], packet: &[u8]) {
    let (name, zones) = match kind {
        Kind::Plain {
            suite,
            implicit_iv,
            esn,
        } => {
            if *esn {
                text.push_str("esn: yes\n");
            }
            let name = if *implicit_iv { "implicit" } else { "explicit" };
            let key = key_of(TO_BOB, 0, suite.keymat_len());
            (name, vec![(0, suite.to_string(), key)])
        }
        Kind::Zoned(zones) => (
            "zoned",
            (1..)
                .zip(zones)
                .map(|(zone, (_, suite))| (zone, suite.to_string(), key(TO_BOB, zone, *suite)))
                .collect(),
        ),
    };
    writeln!(
        text,
        "name: {name} {number}\nkind: {name}\nspi: {TO_BOB:#x}\nseq: {number}"
    )
    .unwrap();
    for (zone, suite, key) in zones {
        write_key(text, zone, &suite, &key);
    }
    if name == "zoned" {
        let words = usize::from(packet[8] & 15) - 1;
        let word = |i: usize| &packet[8 + 4 * i..12 + 4 * i];
        let run = |w: &[u8]| format!("{}:{}", w[1], u16::from_be_bytes([w[2], w[3]]));
        let runs: Vec<_> = (0..words).map(|i| run(word(i))).collect();
        writeln!(text, "runs: {}", runs.join(" ")).unwrap();
    }
    write_datagram(text, datagram, packet);
}

fn write_key(text: &mut String, zone: u8, suite: &str, key: &Secret) {
    let key = hex(key.expose());
    writeln!(text, "cipher {zone}: {suite}\nkey {zone}: {key}").unwrap();
}

fn write_datagram(text: &mut String, datagram: &[u8], packet: &[u8]) {
    let (datagram, packet) = (hex(datagram), hex(packet));
    writeln!(text, "datagram: {datagram}\npacket: {packet}\n").unwrap();
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
    python_says("decode.py", files)
}

fn python_says(program: &str, files: &[std::path::PathBuf]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/decoder");
    let output = Command::new("/usr/bin/python3")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(folder.join(program))
        .arg("check")
        .args(files)
        .output()
        .expect(
            "it needs /usr/bin/python3 with the packages python3-cryptography and python3-scapy",
        );
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}
