//! Private extensions (DESIGN sections 3 and 5): the data of ZONE_MAP, and the payloads of
//! KEY_DISTRIBUTE. They are sent only after both ends sent the vendor ID in IKE_SA_INIT.
//!
//! ```text
//!  ZONE_MAP   Version (1) = 1 | Zones (1) | Licences (1) | Window (4) | Map
//!    zone     Serial (1) | Selector (1) | [First (2) | Last (2)] | Suite
//!    licence  Zone (1) | Right (1) | ID Type (1) | Fields (1) | Length (2) | Identity
//!  GRANT      CSA (8) | First of its line (8) | Grant (2) | Payload zone (1) | Zones (1) | Window (4)
//!             Lifetime, s (4) | SPI from gateway (4) | SPI to gateway (4) | Map
//!             per zone: Suite
//!  SECRET     Direction (1) | Zone (1), 255 for overlays, 254 for what is injected, 253 for tokens | Suite | encryption key | HMAC key | salt
//!  ONWARD     any number of licences: who may have what of a grant from the node that gets it
//!  TOKEN      SPI (4) | SPI (4) | Nonce (16) | Expiry (4) | Zones (1) | of each: Zone (1)
//!             MAC (16) | the node that is asked
//!  KEY_ACCEPTED, KEY_REFUSED   CSA (8) | Grant (2) | Refusal code (2, 0 if accepted); of a KEY_REQUEST CSA and grant are 0
//!  REVOKE     CSA (8)
//!  PING_COUNTS  nothing in a request; Received (8) | Answered (8) | Withheld (8) in a response
//!  OFFER      one node
//!  PLACE      traffic selectors, as in a payload of them: where the node of an OFFER is
//!  NEIGHBOURS any number of nodes
//!    node     ID Type (1) | Length (2) | Identity
//!  Suite      Cipher (2) | Key bits (2) | [Integrity (2)]
//!  Map        Kind (1) = 1: each packet carries its own
//!             Kind (1) = 2: fixed | Runs but the last (1) | of each: Zone (1) | Length (2)
//! ```
//!
//! With a fixed map, the SPI of the ZONE_MAP notify is its sender's inbound SPI of the opaque
//! companion SA.
//!
//! Selectors: 1 `ip`, 2 `transport`, 3 `headers`, 4 `octets`, 5 `rtp`, 255 `payload`. First and
//! Last are present for 4 and 5: octets counted from the front of the sealed part of the datagram,
//! or ports. Integrity is present for AES-CBC and AES-CTR. Rights: 1 `read`, 2 `write`, 3 `inject`.
//! Fields is a mask of the fields that may be written: with `write` bit 0, TCP's window, and
//! otherwise none.
//!
//! The encoding of ZONE_MAP is canonical: zones ascend from 1 without gaps, licences are sorted and
//! without duplicates, reserved octets are zero. It enters the key derivation, so an agreement has
//! exactly one form, and any other form of it is refused.

use super::identification::{data_of, from_parts, kind_of};
use super::{EncryptionId, IdType, IntegrityId, KeyDirection, RefusalCode, TrafficSelectors};
use crate::codec::{Codec, Malformed, Reader};
use crate::zoned::{MAX_RUNS, MAX_ZONES, Map};
use model::{
    CsaId, Hmac, Identity, Licence, MapKind, Right, Run, Sha2, Span, Spi, TrafficSelector, Zone,
    ZoneAgreement, ZoneId, ZoneSelector, ZoneSuite,
};
use std::time::Duration;
use zeroize::Zeroizing;

/// Text of the vendor ID, which is the first 16 octets of its SHA-256.
pub const VENDOR_ID_TEXT: &str = "Strata IKEv2 extensions 1";

/// Version of the ZONE_MAP encoding.
pub const ZONE_MAP_VERSION: u8 = 1;

/// Most licences of an agreement that is read.
pub const MAX_LICENCES: usize = 32;

/// Most ranges of addresses of a place that is read.
pub const MAX_RANGES: usize = 32;

/// Most nodes of a list that is read.
pub const MAX_NODES: usize = 32;

/// Replay windows that may be negotiated, in packets.
pub const WINDOWS: std::ops::RangeInclusive<u32> = 4096..=65536;

const WHAT: &str = "the ZONE_MAP notify";

/// Returns the canonical octets of an agreement.
pub fn encode_zone_map(agreement: &ZoneAgreement) -> Vec<u8> {
    let mut out = vec![
        ZONE_MAP_VERSION,
        agreement.zones.len() as u8,
        agreement.licences.len() as u8,
    ];
    out.extend_from_slice(&agreement.window.to_be_bytes());
    encode_map(&agreement.map, &mut out);
    for zone in &agreement.zones {
        out.push(zone.id.0);
        encode_selector(zone.selector, &mut out);
        encode_suite(zone.suite, &mut out);
    }
    for licence in &agreement.licences {
        encode_licence(licence, &mut out);
    }
    out
}

fn encode_licence(licence: &Licence, out: &mut Vec<u8>) {
    let data = data_of(&licence.node);
    let kind = kind_of(&licence.node);
    let right = licence.right;
    out.extend_from_slice(&[licence.zone.0, right as u8, kind.0, fields(right)]);
    out.extend_from_slice(&(data.len() as u16).to_be_bytes());
    out.extend_from_slice(&data);
}

/// Reads an agreement, and checks every rule of the canonical form.
pub fn decode_zone_map(data: &[u8]) -> Result<ZoneAgreement, Malformed> {
    let mut r = Reader::new(WHAT, data);
    if r.u8()? != ZONE_MAP_VERSION {
        return Err(Malformed::Value(WHAT));
    }
    let (zones, licences) = (usize::from(r.u8()?), usize::from(r.u8()?));
    if !(2..=MAX_ZONES).contains(&zones) || licences > MAX_LICENCES {
        return Err(Malformed::TooMany(WHAT));
    }
    let agreement = ZoneAgreement {
        window: r.u32()?,
        map: read_map(&mut r, zones)?,
        zones: (0..zones)
            .map(|_| read_zone(&mut r))
            .collect::<Result<_, _>>()?,
        licences: (0..licences)
            .map(|_| read_licence(&mut r))
            .collect::<Result<_, _>>()?,
        // The LEVEL_GRANT notify carries the grant of unencrypted packets.
        level: None,
    };
    r.finish()?;
    match is_canonical(&agreement) {
        true => Ok(agreement),
        false => Err(Malformed::Value(WHAT)),
    }
}

fn is_canonical(agreement: &ZoneAgreement) -> bool {
    let payload = agreement.payload_zone();
    let zones_in_order = agreement.zones.iter().zip(1..).all(|(zone, serial)| {
        zone.id.0 == serial && (zone.selector == ZoneSelector::Rest) == (zone.id == payload)
    });
    let licences_sorted = agreement.licences.is_sorted_by(|a, b| a < b);
    let licences_inside = agreement
        .licences
        .iter()
        .all(|licence| agreement.may_have(licence.zone, licence.right));
    WINDOWS.contains(&agreement.window) && zones_in_order && licences_sorted && licences_inside
}

fn encode_map(map: &MapKind, out: &mut Vec<u8>) {
    match map {
        MapKind::Changeable => out.push(1),
        MapKind::Fixed(runs) => {
            out.extend_from_slice(&[2, runs.len() as u8]);
            for run in runs {
                out.push(run.zone.0);
                out.extend_from_slice(&run.len.to_be_bytes());
            }
        }
    }
}

/// Reads the place of the map for an SA with `zones` zones. A fixed map has to be well-formed, and
/// to show at least one zone.
fn read_map(r: &mut Reader<'_>, zones: usize) -> Result<MapKind, Malformed> {
    match r.u8()? {
        1 => return Ok(MapKind::Changeable),
        2 => {}
        _ => return Err(Malformed::Value(WHAT)),
    }
    let mut runs = Vec::with_capacity(MAX_RUNS);
    for _ in 0..r.u8()? {
        if runs.len() == MAX_RUNS {
            return Err(Malformed::TooMany(WHAT));
        }
        let (zone, len) = (ZoneId(r.u8()?), r.u16()?);
        runs.push(Run { zone, len });
    }
    match Map::fixed(ZoneId(zones as u8), &runs) {
        Ok(map) if !map.is_opaque() => Ok(MapKind::Fixed(runs)),
        _ => Err(Malformed::Value(WHAT)),
    }
}

fn read_zone(r: &mut Reader<'_>) -> Result<Zone, Malformed> {
    let id = ZoneId(r.u8()?);
    Ok(Zone {
        id,
        selector: read_selector(r)?,
        suite: read_suite(r)?,
    })
}

fn encode_selector(selector: ZoneSelector, out: &mut Vec<u8>) {
    let (number, span) = match selector {
        ZoneSelector::Ip => (1, None),
        ZoneSelector::Transport => (2, None),
        ZoneSelector::IpTransport => (3, None),
        ZoneSelector::Octets(places) => (4, Some(places)),
        ZoneSelector::Rtp(ports) => (5, Some(ports)),
        ZoneSelector::Rest => (255, None),
    };
    out.push(number);
    for number in span
        .into_iter()
        .flat_map(|span| [span.first(), span.last()])
    {
        out.extend_from_slice(&number.to_be_bytes());
    }
}

fn read_selector(r: &mut Reader<'_>) -> Result<ZoneSelector, Malformed> {
    match r.u8()? {
        1 => Ok(ZoneSelector::Ip),
        2 => Ok(ZoneSelector::Transport),
        3 => Ok(ZoneSelector::IpTransport),
        4 => read_span(r).map(ZoneSelector::Octets),
        5 => read_span(r).map(ZoneSelector::Rtp),
        255 => Ok(ZoneSelector::Rest),
        _ => Err(Malformed::Value(WHAT)),
    }
}

fn read_span(r: &mut Reader<'_>) -> Result<Span, Malformed> {
    Span::new(r.u16()?, r.u16()?).ok_or(Malformed::Value(WHAT))
}

fn read_licence(r: &mut Reader<'_>) -> Result<Licence, Malformed> {
    let zone = ZoneId(r.u8()?);
    let right = match r.u8()? {
        1 => Right::Read,
        2 => Right::Write,
        3 => Right::Inject,
        _ => return Err(Malformed::Value(WHAT)),
    };
    let kind = IdType::read(r)?;
    if r.u8()? != fields(right) {
        return Err(Malformed::Value(WHAT));
    }
    let length = r.u16()?;
    let node: Identity = from_parts(kind, r.take(length.into())?);
    Ok(Licence { node, zone, right })
}

/// Returns the mask of fields that a right may change. Bit 0 is TCP's window.
const fn fields(right: Right) -> u8 {
    match right {
        Right::Read | Right::Inject => 0,
        Right::Write => 1,
    }
}

fn encode_suite(suite: ZoneSuite, out: &mut Vec<u8>) {
    let id = match suite {
        ZoneSuite::Aes128Gcm16 | ZoneSuite::Aes256Gcm16 => EncryptionId::AES_GCM_16,
        ZoneSuite::ChaCha20Poly1305 => EncryptionId::CHACHA20_POLY1305,
        ZoneSuite::Aes128Gmac | ZoneSuite::Aes256Gmac => EncryptionId::AES_GMAC_IIV,
        ZoneSuite::Aes128Ctr(_) | ZoneSuite::Aes256Ctr(_) => EncryptionId::AES_CTR_IIV,
        ZoneSuite::Aes128Cbc(_) | ZoneSuite::Aes256Cbc(_) => EncryptionId::AES_CBC,
    };
    id.encode(out);
    out.extend_from_slice(&(suite.key_len() as u16 * 8).to_be_bytes());
    if let Some(hmac) = suite.hmac() {
        integrity(hmac).encode(out);
    }
}

const fn integrity(hmac: Hmac) -> IntegrityId {
    match (hmac.hash, hmac.whole) {
        (Sha2::Sha256, false) => IntegrityId::HMAC_SHA2_256_128,
        (Sha2::Sha384, false) => IntegrityId::HMAC_SHA2_384_192,
        (Sha2::Sha512, false) => IntegrityId::HMAC_SHA2_512_256,
        (Sha2::Sha256, true) => IntegrityId::HMAC_SHA2_256_256,
        (Sha2::Sha384, true) => IntegrityId::HMAC_SHA2_384_384,
        (Sha2::Sha512, true) => IntegrityId::HMAC_SHA2_512_512,
    }
}

fn read_suite(r: &mut Reader<'_>) -> Result<ZoneSuite, Malformed> {
    match (EncryptionId::read(r)?, r.u16()?) {
        (EncryptionId::AES_GCM_16, 128) => Ok(ZoneSuite::Aes128Gcm16),
        (EncryptionId::AES_GCM_16, 256) => Ok(ZoneSuite::Aes256Gcm16),
        (EncryptionId::CHACHA20_POLY1305, 256) => Ok(ZoneSuite::ChaCha20Poly1305),
        (EncryptionId::AES_GMAC_IIV, 128) => Ok(ZoneSuite::Aes128Gmac),
        (EncryptionId::AES_GMAC_IIV, 256) => Ok(ZoneSuite::Aes256Gmac),
        (EncryptionId::AES_CTR_IIV, 128) => read_hmac(r).map(ZoneSuite::Aes128Ctr),
        (EncryptionId::AES_CTR_IIV, 256) => read_hmac(r).map(ZoneSuite::Aes256Ctr),
        (EncryptionId::AES_CBC, 128) => read_hmac(r).map(ZoneSuite::Aes128Cbc),
        (EncryptionId::AES_CBC, 256) => read_hmac(r).map(ZoneSuite::Aes256Cbc),
        _ => Err(Malformed::Value("a cipher suite")),
    }
}

fn read_hmac(r: &mut Reader<'_>) -> Result<Hmac, Malformed> {
    let id = IntegrityId::read(r)?;
    let hmac = Hmac::all().find(|hmac| integrity(*hmac) == id);
    hmac.ok_or(Malformed::Value("a cipher suite"))
}

/// The GRANT payload: a [`model::Grant`] without its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantOffer {
    /// Identifier of the composite SA.
    pub csa: CsaId,
    /// Identifier of the first composite SA in its chain of rekeys.
    pub line: CsaId,
    /// Number of the grant.
    pub grant: u16,
    /// Serial of the payload zone.
    pub payload_zone: ZoneId,
    /// Replay window of the endpoints, in packets.
    pub window: u32,
    /// Time for which the node may keep the keys, in whole seconds.
    pub lifetime: Duration,
    /// SPI of packets from the gateway.
    pub from_gateway: Spi,
    /// SPI of packets to the gateway.
    pub to_gateway: Spi,
    /// Suites of all agreed zones, in ascending serial from 1.
    pub suites: Vec<ZoneSuite>,
    /// Place of the zone map.
    pub map: MapKind,
}

impl Codec for GrantOffer {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.csa.0.to_be_bytes());
        out.extend_from_slice(&self.line.0.to_be_bytes());
        out.extend_from_slice(&self.grant.to_be_bytes());
        out.extend_from_slice(&[self.payload_zone.0, self.suites.len() as u8]);
        out.extend_from_slice(&self.window.to_be_bytes());
        let seconds = u32::try_from(self.lifetime.as_secs()).unwrap_or(u32::MAX);
        out.extend_from_slice(&seconds.to_be_bytes());
        out.extend_from_slice(&self.from_gateway.0.to_be_bytes());
        out.extend_from_slice(&self.to_gateway.0.to_be_bytes());
        encode_map(&self.map, out);
        self.suites
            .iter()
            .for_each(|suite| encode_suite(*suite, out));
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (csa, line, grant) = (CsaId(r.u64()?), CsaId(r.u64()?), r.u16()?);
        let (payload_zone, zones) = (ZoneId(r.u8()?), r.u8()?);
        if !(2..=MAX_ZONES).contains(&zones.into()) || payload_zone.0 != zones {
            return Err(Malformed::Value("the GRANT payload"));
        }
        Ok(Self {
            csa,
            line,
            grant,
            payload_zone,
            window: r.u32()?,
            lifetime: Duration::from_secs(r.u32()?.into()),
            from_gateway: Spi(r.u32()?),
            to_gateway: Spi(r.u32()?),
            map: read_map(r, zones.into())?,
            suites: (0..zones)
                .map(|_| read_suite(r))
                .collect::<Result<_, _>>()?,
        })
    }
}

/// The SECRET payload: one zone's key in one direction.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretShare {
    /// Direction of the packets that the key opens.
    pub direction: KeyDirection,
    /// Zone that the key protects.
    pub zone: ZoneId,
    /// Cipher suite of the zone.
    pub suite: ZoneSuite,
    /// Encryption key, HMAC key and salt, wiped when dropped.
    pub key: Zeroizing<Vec<u8>>,
}

impl std::fmt::Debug for SecretShare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SecretShare({:?} zone {})", self.direction, self.zone)
    }
}

impl Codec for SecretShare {
    fn encode(&self, out: &mut Vec<u8>) {
        self.direction.encode(out);
        out.push(self.zone.0);
        encode_suite(self.suite, out);
        out.extend_from_slice(&self.key);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (direction, zone, suite) = (KeyDirection::read(r)?, ZoneId(r.u8()?), read_suite(r)?);
        let key = r.take(suite.keymat_len())?;
        Ok(Self {
            direction,
            zone,
            suite,
            key: Zeroizing::new(key.to_vec()),
        })
    }
}

/// Data of KEY_ACCEPTED and KEY_REFUSED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantReply {
    /// Identifier of the composite SA.
    pub csa: CsaId,
    /// Number of the grant.
    pub grant: u16,
    /// Reason of a refusal; 0 if the grant was accepted.
    pub code: RefusalCode,
}

impl GrantReply {
    /// Returns the data of the notify.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = encode_csa(self.csa);
        out.extend_from_slice(&self.grant.to_be_bytes());
        self.code.encode(&mut out);
        out
    }

    /// Reads the data of the notify.
    pub fn decode(data: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new("the answer to KEY_DISTRIBUTE", data);
        let reply = Self {
            csa: CsaId(r.u64()?),
            grant: r.u16()?,
            code: RefusalCode::read(&mut r)?,
        };
        r.finish().map(|()| reply)
    }
}

/// Returns the data of REVOKE.
pub fn encode_csa(csa: CsaId) -> Vec<u8> {
    csa.0.to_be_bytes().to_vec()
}

/// Reads the data of REVOKE.
pub fn decode_csa(data: &[u8]) -> Result<CsaId, Malformed> {
    let mut r = Reader::new("the REVOKE notify", data);
    let csa = CsaId(r.u64()?);
    r.finish().map(|()| csa)
}

/// What an end has counted of the pings on an IKE SA's children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PingCounts {
    /// Pings that arrived.
    pub received: u64,
    /// Answers that this end's system has accepted for sending.
    pub answered: u64,
    /// Pings without an answer, because it would show that lengths are hidden.
    pub withheld: u64,
}

impl PingCounts {
    /// Returns the data of PING_COUNTS in a response.
    pub fn encode(&self) -> Vec<u8> {
        let counts = [self.received, self.answered, self.withheld];
        counts
            .iter()
            .flat_map(|count| count.to_be_bytes())
            .collect()
    }

    /// Reads the data of PING_COUNTS in a response.
    pub fn decode(data: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new("the PING_COUNTS notify", data);
        let counts = Self {
            received: r.u64()?,
            answered: r.u64()?,
            withheld: r.u64()?,
        };
        r.finish().map(|()| counts)
    }
}

/// Returns the data of OFFER or NEIGHBOURS.
pub fn encode_nodes<'a>(nodes: impl IntoIterator<Item = &'a Identity>) -> Vec<u8> {
    let mut out = Vec::new();
    nodes
        .into_iter()
        .for_each(|node| encode_node(node, &mut out));
    out
}

pub(super) fn encode_node(node: &Identity, out: &mut Vec<u8>) {
    let data = data_of(node);
    out.push(kind_of(node).0);
    out.extend_from_slice(&(data.len() as u16).to_be_bytes());
    out.extend_from_slice(&data);
}

pub(super) fn read_node(r: &mut Reader<'_>) -> Result<Identity, Malformed> {
    let kind = IdType::read(r)?;
    let length = r.u16()?;
    Ok(from_parts(kind, r.take(length.into())?))
}

/// Reads the data of OFFER or NEIGHBOURS.
pub fn decode_nodes(data: &[u8]) -> Result<Vec<Identity>, Malformed> {
    const WHAT: &str = "a list of licensed nodes";
    let mut r = Reader::new(WHAT, data);
    let mut nodes = Vec::new();
    while !r.is_empty() {
        if nodes.len() == MAX_NODES {
            return Err(Malformed::TooMany(WHAT));
        }
        nodes.push(read_node(&mut r)?);
    }
    Ok(nodes)
}

/// Returns the data of PLACE.
pub fn encode_place(place: &[TrafficSelector]) -> Vec<u8> {
    let mut out = Vec::new();
    TrafficSelectors(place.to_vec()).encode(&mut out);
    out
}

/// Reads the data of PLACE: addresses, of any protocol and port.
pub fn decode_place(data: &[u8]) -> Result<Vec<TrafficSelector>, Malformed> {
    const WHAT: &str = "the PLACE notify";
    let mut r = Reader::new(WHAT, data);
    let TrafficSelectors(mut place) = TrafficSelectors::read(&mut r)?;
    r.finish()?;
    if place.len() > MAX_RANGES {
        return Err(Malformed::TooMany(WHAT));
    }
    for range in &mut place {
        (range.protocol, range.ports) = (0, 0..=u16::MAX);
    }
    Ok(place)
}

/// Returns the data of ONWARD.
pub fn encode_licences(licences: &[Licence]) -> Vec<u8> {
    let mut out = Vec::new();
    licences
        .iter()
        .for_each(|licence| encode_licence(licence, &mut out));
    out
}

/// Reads the data of ONWARD.
pub fn decode_licences(data: &[u8]) -> Result<Vec<Licence>, Malformed> {
    const WHAT: &str = "the ONWARD notify";
    let mut r = Reader::new(WHAT, data);
    let mut licences = Vec::new();
    while !r.is_empty() {
        if licences.len() == MAX_LICENCES {
            return Err(Malformed::TooMany(WHAT));
        }
        licences.push(read_licence(&mut r)?);
    }
    Ok(licences)
}
