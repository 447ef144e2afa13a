//! Two endpoints with an SA between them, and functions that write packets without any of the code
//! under test.

use crypto::{Aead, AeadAlgorithm, Secret};
use esp::{DropReason, Packet, PeerSettings, Protected, Sink, Spd, Worker};
use model::{
    BesideSa, ChildSa, ChildSaId, EspSuite, Half, Hmac, IkeSaId, Instant, Keys, LevelGrant,
    MapKind, Mode, Path, PeerId, Run, Sha2, Sizes, Span, Spi, Suite, TrafficSelector, Zone,
    ZoneAgreement, ZoneId, ZoneKey, ZoneSelector, ZoneSuite,
};
use std::collections::BTreeMap;
use wire::ecn::Ecn;

/// The SPI of packets from Alice to Bob.
pub const TO_BOB: u32 = 0x1000_0b0b;
/// The SPI of packets from Bob to Alice.
pub const TO_ALICE: u32 = 0x1000_0a0a;

/// The protection of the SA.
#[derive(Clone, Debug)]
pub enum Kind {
    Plain {
        suite: EspSuite,
        implicit_iv: bool,
        esn: bool,
    },
    Zoned(Vec<(ZoneSelector, ZoneSuite)>),
}

pub const EXPLICIT: Kind = Kind::Plain {
    suite: EspSuite::Encrypted(Suite::Aes128Gcm16),
    implicit_iv: false,
    esn: false,
};

pub const IMPLICIT: Kind = Kind::Plain {
    suite: EspSuite::Encrypted(Suite::Aes128Gcm16),
    implicit_iv: true,
    esn: false,
};

/// Both headers and the rest: the zones that SNOOP needs.
pub fn two_zones() -> Kind {
    Kind::Zoned(vec![
        (ZoneSelector::IpTransport, ZoneSuite::Aes128Gcm16),
        (ZoneSelector::Rest, ZoneSuite::Aes256Gcm16),
    ])
}

/// The zones of [`two_zones`], with each zone's kind of cipher exchanged.
pub fn mixed_zones() -> Kind {
    Kind::Zoned(vec![
        (ZoneSelector::IpTransport, ZoneSuite::ChaCha20Poly1305),
        (ZoneSelector::Rest, ZoneSuite::Aes128Gcm16),
    ])
}

/// A zone for each header.
pub fn three_zones() -> Kind {
    Kind::Zoned(vec![
        (ZoneSelector::Ip, ZoneSuite::Aes128Gcm16),
        (ZoneSelector::Transport, ZoneSuite::Aes256Gcm16),
        (ZoneSelector::Rest, ZoneSuite::Aes128Gcm16),
    ])
}

/// The fields of both headers that a firewall needs, RTP's header, and every suite.
pub fn eight_zones() -> Kind {
    let span = |first, last| Span::new(first, last).unwrap();
    Kind::Zoned(vec![
        (ZoneSelector::Octets(span(0, 8)), ZoneSuite::Aes256Gcm16),
        (ZoneSelector::Octets(span(12, 19)), ZoneSuite::Aes128Gcm16),
        (ZoneSelector::Ip, ZoneSuite::ChaCha20Poly1305),
        (ZoneSelector::Octets(span(20, 23)), ZoneSuite::Aes128Gcm16),
        (ZoneSelector::Transport, ZoneSuite::Aes256Gcm16),
        (
            ZoneSelector::Rtp(span(5004, 5007)),
            ZoneSuite::ChaCha20Poly1305,
        ),
        (ZoneSelector::Rtp(span(53, 5000)), ZoneSuite::Aes128Gcm16),
        (ZoneSelector::Rest, ZoneSuite::ChaCha20Poly1305),
    ])
}

/// A zone that is readable without a key, and suites as in the papers.
pub fn old_zones() -> Kind {
    let hmac = |hash, whole| Hmac { hash, whole };
    Kind::Zoned(vec![
        (ZoneSelector::Ip, ZoneSuite::Aes128Gmac),
        (
            ZoneSelector::Transport,
            ZoneSuite::Aes256Ctr(hmac(Sha2::Sha256, false)),
        ),
        (
            ZoneSelector::Rest,
            ZoneSuite::Aes128Cbc(hmac(Sha2::Sha512, true)),
        ),
    ])
}

/// Two zones with the same suite.
pub fn zones_of(suite: ZoneSuite) -> Kind {
    Kind::Zoned(vec![
        (ZoneSelector::IpTransport, suite),
        (ZoneSelector::Rest, suite),
    ])
}

pub fn agreement(zones: &[(ZoneSelector, ZoneSuite)]) -> ZoneAgreement {
    let zone = |(i, (selector, suite)): (usize, &(ZoneSelector, ZoneSuite))| Zone {
        id: ZoneId(i as u8 + 1),
        selector: *selector,
        suite: *suite,
    };
    ZoneAgreement {
        zones: zones.iter().enumerate().map(zone).collect(),
        map: MapKind::Changeable,
        window: 4096,
        licences: vec![],
        level: None,
    }
}

/// The key material of a zone in the direction of an SPI.
pub fn key(spi: u32, zone: u8, suite: impl Into<ZoneSuite>) -> Secret {
    key_of(spi, zone, suite.into().keymat_len())
}

pub fn key_of(spi: u32, zone: u8, len: usize) -> Secret {
    Secret::new(
        (0..len as u8)
            .map(|i| i ^ (spi as u8) ^ zone.wrapping_mul(37))
            .collect(),
    )
}

pub fn half(spi: u32, kind: &Kind) -> Half<Secret> {
    let keys = match kind {
        Kind::Plain {
            suite,
            implicit_iv,
            esn,
        } => Keys::Plain {
            suite: *suite,
            implicit_iv: *implicit_iv,
            esn: *esn,
            key: key_of(spi, 0, suite.keymat_len()),
        },
        Kind::Zoned(zones) => Keys::Zoned(
            (1..)
                .zip(zones)
                .map(|(zone, (_, suite))| ZoneKey {
                    zone: ZoneId(zone),
                    suite: *suite,
                    key: key(spi, zone, *suite),
                })
                .collect(),
        ),
    };
    Half {
        spi: Spi(spi),
        keys,
        writers: None,
        injectors: None,
    }
}

pub fn path() -> Path {
    Path::udp(
        "192.0.2.1:4500".parse().unwrap(),
        "198.51.100.1:4500".parse().unwrap(),
    )
}

pub fn prefixes(texts: &[&str]) -> Vec<TrafficSelector> {
    let prefix = |text: &&str| {
        let (address, len) = text.split_once('/').unwrap();
        TrafficSelector::from_prefix(address.parse().unwrap(), len.parse().unwrap()).unwrap()
    };
    texts.iter().map(prefix).collect()
}

pub fn alices() -> Vec<TrafficSelector> {
    prefixes(&["10.1.0.0/16", "fd00:1::/32"])
}

pub fn bobs() -> Vec<TrafficSelector> {
    prefixes(&["10.8.0.0/16", "fd00:8::/32"])
}

/// Bob, to Alice.
pub const BOB: PeerId = PeerId(1);

/// Alice, to Bob.
pub const ALICE: PeerId = PeerId(2);

/// The peer of a policy.
pub const PEER: PeerId = PeerId(3);

/// Settings of a peer to whom datagrams are padded.
pub fn padded(peer: PeerId, sizes: Sizes) -> BTreeMap<PeerId, PeerSettings> {
    let settings = PeerSettings {
        sizes: Some(sizes),
        ..PeerSettings::default()
    };
    BTreeMap::from([(peer, settings)])
}

pub fn alices_sa(kind: &Kind) -> ChildSa<Secret> {
    ChildSa {
        id: ChildSaId(1),
        ike: IkeSaId(1),
        peer: BOB,
        name: None,
        resource: None,
        narrowed: false,
        mode: Mode::Tunnel,
        path: path(),
        local: alices(),
        remote: bobs(),
        inbound: half(TO_ALICE, kind),
        outbound: half(TO_BOB, kind),
        agreement: match kind {
            Kind::Plain { .. } => None,
            Kind::Zoned(zones) => Some(agreement(zones)),
        },
        opaque: None,
        integrity: None,
        tokens: None,
        takes_padding: true,
        allowance: None,
        exchanges: model::Exchanges::default(),
        initiator: true,
    }
}

/// The SPIs of the opaque companion SA of an SA with a fixed map.
pub const OPAQUE_TO_ALICE: u32 = 0x2000_0002;
pub const OPAQUE_TO_BOB: u32 = 0x1000_0002;

/// Alice's and Bob's SA of two zones with a fixed map of these runs.
pub fn fixed_sas(runs: &[(u8, u16)]) -> (ChildSa<Secret>, ChildSa<Secret>) {
    fix(alices_sa(&two_zones()), bobs_sa(&two_zones()), runs)
}

/// Fixes the map of both ends' SA, and adds an opaque companion SA.
pub fn fix(
    mut alice: ChildSa<Secret>,
    mut bob: ChildSa<Secret>,
    runs: &[(u8, u16)],
) -> (ChildSa<Secret>, ChildSa<Secret>) {
    let run = |(zone, len): &(u8, u16)| Run {
        zone: ZoneId(*zone),
        len: *len,
    };
    for sa in [&mut alice, &mut bob] {
        let agreement = sa.agreement.as_mut().unwrap();
        agreement.map = MapKind::Fixed(runs.iter().map(run).collect());
        let payload = agreement.zones.last().unwrap().suite;
        let kind = Kind::Zoned(vec![(ZoneSelector::Rest, payload)]);
        sa.opaque = Some(BesideSa {
            inbound: half(OPAQUE_TO_ALICE, &kind),
            outbound: half(OPAQUE_TO_BOB, &kind),
        });
    }
    let bobs = bob.opaque.as_mut().unwrap();
    std::mem::swap(&mut bobs.inbound, &mut bobs.outbound);
    (alice, bob)
}

/// The SPIs of unencrypted packets.
pub const CLEAR_TO_ALICE: u32 = 0x2000_0003;
pub const CLEAR_TO_BOB: u32 = 0x1000_0003;

/// Grants unencrypted packets on both ends' SA, with a companion SA.
pub fn granting(
    (mut alice, mut bob): (ChildSa<Secret>, ChildSa<Secret>),
    grant: LevelGrant,
) -> (ChildSa<Secret>, ChildSa<Secret>) {
    let kind = Kind::Zoned(vec![(ZoneSelector::Rest, ZoneSuite::Aes256Gmac)]);
    for sa in [&mut alice, &mut bob] {
        sa.agreement.as_mut().unwrap().level = Some(grant);
        sa.integrity = Some(BesideSa {
            inbound: half(CLEAR_TO_ALICE, &kind),
            outbound: half(CLEAR_TO_BOB, &kind),
        });
    }
    let bobs = bob.integrity.as_mut().unwrap();
    std::mem::swap(&mut bobs.inbound, &mut bobs.outbound);
    (alice, bob)
}

pub fn bobs_sa(kind: &Kind) -> ChildSa<Secret> {
    let alices = alices_sa(kind);
    ChildSa {
        peer: ALICE,
        local: alices.remote,
        remote: alices.local,
        inbound: alices.outbound,
        outbound: alices.inbound,
        initiator: false,
        ..alices
    }
}

pub fn endpoint(sa: ChildSa<Secret>) -> Worker {
    let protected = Protected {
        local: sa.local.clone().into(),
        remote: sa.remote.clone().into(),
    };
    let mut worker = Worker::new(Spd::new(vec![], vec![(PEER, protected)]));
    worker.install(sa).unwrap();
    worker
}

pub fn pair(kind: &Kind) -> (Worker, Worker) {
    (endpoint(alices_sa(kind)), endpoint(bobs_sa(kind)))
}

/// Records all packets.
#[derive(Default)]
pub struct Outcome {
    pub sent: Vec<Vec<u8>>,
    /// The outer ECN field of each.
    pub marks: Vec<Ecn>,
    pub delivered: Vec<Vec<u8>>,
    pub dropped: Vec<DropReason>,
}

impl Sink for Outcome {
    fn transmit(&mut self, packet: &mut Packet, to: Path) {
        assert_eq!(to, path());
        self.sent.push(packet.octets().to_vec());
        self.marks.push(packet.ecn);
    }

    fn deliver(&mut self, packet: &mut Packet) {
        self.delivered.push(packet.octets().to_vec());
    }

    fn dropped(&mut self, _packet: &mut Packet, why: DropReason) {
        self.dropped.push(why);
    }
}

/// Buffer space for padding.
const ROOM: usize = 2000;

pub fn seal(worker: &mut Worker, datagram: &[u8]) -> Result<Vec<u8>, DropReason> {
    let mut packet = Packet::with_capacity(datagram.len().max(ROOM));
    packet.fill(datagram);
    seal_in(worker, &mut packet)
}

/// Seals a datagram in a buffer of the caller's.
pub fn seal_in(worker: &mut Worker, packet: &mut Packet) -> Result<Vec<u8>, DropReason> {
    seal_at(worker, packet, Instant::ZERO)
}

/// Seals a datagram in a buffer of the caller's, at a given time.
pub fn seal_at(
    worker: &mut Worker,
    packet: &mut Packet,
    now: Instant,
) -> Result<Vec<u8>, DropReason> {
    let mut outcome = Outcome::default();
    worker.seal(std::slice::from_mut(packet), &mut outcome, now);
    outcome.sent.pop().ok_or_else(|| outcome.dropped[0])
}

/// Opens one packet. If it is dropped, checks that exactly one drop with its reason is counted.
pub fn open(worker: &mut Worker, packet: &[u8]) -> Result<Vec<u8>, DropReason> {
    open_marked(worker, packet, Ecn::NotEct)
}

/// Opens one packet under an outer header with this ECN field.
pub fn open_marked(worker: &mut Worker, packet: &[u8], ecn: Ecn) -> Result<Vec<u8>, DropReason> {
    open_at(worker, packet, ecn, Instant::ZERO)
}

/// Opens one packet with this ECN field, at a given time.
pub fn open_at(
    worker: &mut Worker,
    packet: &[u8],
    ecn: Ecn,
    now: Instant,
) -> Result<Vec<u8>, DropReason> {
    let before = worker.counters().clone();
    let mut outcome = Outcome::default();
    let mut packet = Packet::from_slice(packet);
    packet.ecn = ecn;
    worker.open(&mut [packet], &mut outcome, now);
    for (why, count) in worker.counters().drops() {
        let now = u64::from(outcome.dropped.contains(&why));
        assert_eq!(count - before.dropped(why), now, "{why:?}");
    }
    outcome.delivered.pop().ok_or_else(|| outcome.dropped[0])
}

/// Seals `text` as in DESIGN section 3: salt, four zeros and the sequence number form the nonce.
pub fn encrypt(key: &Secret, seq: u32, aad: &[u8], text: &[u8]) -> Vec<u8> {
    let (cipher, salt) = key.expose().split_at(key.len() - 4);
    let algorithm = match cipher.len() {
        16 => AeadAlgorithm::Aes128Gcm,
        _ => AeadAlgorithm::Aes256Gcm,
    };
    let nonce = [salt, &[0; 4], &seq.to_be_bytes()].concat();
    let mut body = text.to_vec();
    let aead = Aead::new(algorithm, cipher).unwrap();
    let icv = aead.seal(&nonce.try_into().unwrap(), aad, &mut body);
    body.extend(icv);
    body
}

/// A zoned packet from Alice to Bob, with arbitrary map and texts. Only the AAD follows the rules.
pub fn zoned_packet(keys: &[(u8, Secret)], seq: u32, map: &[u8], texts: &[&[u8]]) -> Vec<u8> {
    mapped_packet(keys, seq, (map, true), texts)
}

/// A zoned packet, with a map that is on the wire or not.
pub fn mapped_packet(
    keys: &[(u8, Secret)],
    seq: u32,
    (map, is_carried): (&[u8], bool),
    texts: &[&[u8]],
) -> Vec<u8> {
    let bodies: usize = texts.iter().map(|text| text.len() + 16).sum();
    let carried = if is_carried { map } else { &[] };
    let len = (8 + carried.len() + bodies) as u32;
    let mut packet = [&TO_BOB.to_be_bytes()[..], &seq.to_be_bytes(), carried].concat();
    let head = packet.len();
    for (i, ((zone, key), text)) in keys.iter().zip(texts).enumerate() {
        let mut aad = aad0(seq, map, len);
        aad.push(*zone);
        if i + 1 == keys.len() {
            aad.extend(&packet[head..]);
        }
        packet.extend(encrypt(key, seq, &aad, text));
    }
    packet
}

pub fn aad0(seq: u32, map: &[u8], len: u32) -> Vec<u8> {
    let numbers = [TO_BOB, 0, seq].map(u32::to_be_bytes).concat();
    [&numbers, map, &len.to_be_bytes()].concat()
}

/// The root of the overlay keys in the direction of an SPI.
pub fn root(spi: u32) -> Secret {
    Secret::new(vec![spi as u8 ^ 0x5a; 32])
}

/// Adds an agreed writer to an SA.
pub fn with_writers(mut sa: ChildSa<Secret>) -> ChildSa<Secret> {
    for half in [&mut sa.inbound, &mut sa.outbound] {
        half.writers = Some(root(half.spi.0));
    }
    sa
}

/// The root of the injection keys in the direction of an SPI.
pub fn root_inj(spi: u32) -> Secret {
    Secret::new(vec![spi as u8 ^ 0xa5; 32])
}

/// Adds an agreed injector to an SA.
pub fn with_injectors(mut sa: ChildSa<Secret>) -> ChildSa<Secret> {
    for half in [&mut sa.inbound, &mut sa.outbound] {
        half.injectors = Some(root_inj(half.spi.0));
    }
    sa
}

/// A packet to Bob that is injected under a grant, with an arbitrary text.
pub fn injected(root: &Secret, (grant, counter): (u16, u32), text: &[u8]) -> Vec<u8> {
    let len = (12 + text.len() + 16) as u32;
    let named = [&[0, 0][..], &grant.to_be_bytes()].concat();
    let aad = aad0(counter, &named, len);
    let body = encrypt(&esp::grant_key(root, grant), counter, &aad, text);
    let front = [TO_BOB, counter].map(u32::to_be_bytes).concat();
    [front, named, body].concat()
}

/// A packet to Bob whose first zone has an AEAD, with an overlay of arbitrary content. Grant and
/// counter are its first eight octets. Only the data that the ICV covers follows the rules.
pub fn overlaid(packet: &[u8], root: &Secret, number: u64, text: &[u8]) -> Vec<u8> {
    let words = usize::from(packet[8] & 15).saturating_sub(1).max(1);
    let map = &packet[8..packet.len().min(8 + 4 * words)];
    let len = |word: &[u8]| usize::from(u16::from_be_bytes([word[2], word[3]]));
    let first = map.chunks_exact(4).filter(|word| word[1] == 1).map(len);
    let end = match packet[8] & 15 {
        1 => packet.len(),
        _ => 8 + map.len() + first.sum::<usize>() + 1 + 16,
    };
    let icv = packet.get(end.saturating_sub(16)..end);
    let icv = icv.unwrap_or_default();
    let overlay_len = (text.len() + 26) as u16;
    let seq = u32::from_be_bytes([packet[4], packet[5], packet[6], packet[7]]);
    let mut aad = aad0(seq, map, packet.len() as u32);
    aad.push(255);
    aad.extend(icv);
    aad.extend(overlay_len.to_be_bytes());
    let key = esp::grant_key(root, (number >> 48) as u16);
    let (cipher, salt) = key.expose().split_at(32);
    let nonce = [salt, &number.to_be_bytes()].concat();
    let mut body = text.to_vec();
    let aead = Aead::new(AeadAlgorithm::Aes256Gcm, cipher).unwrap();
    let icv = aead.seal(&nonce.try_into().unwrap(), &aad, &mut body);
    let mut written = packet.to_vec();
    written[8] |= 0x80;
    let number = number.to_be_bytes();
    written.extend([&number[..], &body, &icv, &overlay_len.to_be_bytes()].concat());
    written
}

/// A plain packet from Alice to Bob with an arbitrary text.
pub fn plain_packet(seq: u32, text: &[u8]) -> Vec<u8> {
    let header = [TO_BOB, seq].map(u32::to_be_bytes).concat();
    let key = key(TO_BOB, 0, Suite::Aes128Gcm16);
    let body = encrypt(&key, seq, &header, text);
    let iv = u64::from(seq).to_be_bytes();
    [&header[..], &iv, &body].concat()
}
