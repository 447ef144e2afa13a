//! Tests of engines against each other on virtual time.

mod addresses;
mod agreement;
mod attack;
mod attempt;
mod attempts;
mod auth;
mod bounds;
mod by_value;
mod certificate_terms;
mod certificates;
mod childless;
mod children;
mod clone;
mod cookie;
mod crash;
mod crossing;
mod distribute;
mod domain;
mod encapsulation;
mod ending;
mod errors;
mod esn;
mod flows;
mod followup;
mod fragment;
mod groups;
mod handshake;
mod kem;
mod level;
mod licences;
mod lifetimes;
mod live_paths;
mod liveness;
mod loss;
mod measure;
mod methods;
mod migration;
mod mobike;
mod mode;
mod names;
mod nat;
mod negotiation;
mod overheard;
pub(crate) mod pair;
mod path_licences;
mod path_traffic;
mod peek;
mod ping;
mod ppk;
mod proposal;
mod raw_keys;
mod reauth;
mod reconfigure;
mod redirect;
mod redirect_name;
mod refusal;
mod rekey;
mod resource;
mod restarts;
mod resumed;
mod revocation;
mod round_trip;
mod screen;
mod skid;
mod skid_pfs;
mod slot;
mod states;
mod stolen;
mod strangers;
mod suites;
mod tcp;
mod ticket;
mod trace;
mod transport;
mod unencrypted;
mod users;
mod vectors;
mod walk;
mod weaknesses;
mod window;
mod zones;

use crate::{Addressing, ChildPolicy, Config, Peer, PeerRole, PeerTerms, Stance, ZonePolicy};
use crypto::Secret;
use model::{
    Class, Group, LevelGrant, Licence, MapKind, Mode, PeerId, Right, Run, Span, Suite,
    TrafficSelector, ZoneId, ZoneSelector, ZoneSuite,
};
use std::time::Duration;
use world::Hosts;

/// Returns an unencrypted IKE_AUTH message with these payloads.
pub(crate) fn saying(payloads: Vec<wire::ike::Payload>) -> wire::ike::Message {
    use wire::ike::{ExchangeType, Flags, Header, Message, VERSION_2};
    let header = Header {
        spi_i: 1,
        spi_r: 2,
        version: VERSION_2,
        exchange: ExchangeType::IKE_AUTH,
        flags: Flags::default(),
        message_id: 1,
    };
    Message { header, payloads }
}

pub(crate) fn prefix(text: &str) -> TrafficSelector {
    let (address, length) = text.split_once('/').unwrap();
    TrafficSelector::from_prefix(address.parse().unwrap(), length.parse().unwrap()).unwrap()
}

/// Returns a policy with a header zone and a payload zone, and one licence for the header zone.
pub(crate) fn two_zones(stance: Stance, node: &str) -> ZonePolicy {
    ZonePolicy {
        map: MapKind::Changeable,
        stance,
        zones: vec![
            (ZoneSelector::IpTransport, ZoneSuite::Aes128Gcm16),
            (ZoneSelector::Rest, ZoneSuite::Aes256Gcm16),
        ],
        window: 8192,
        licences: vec![licence(node)],
        level: None,
    }
}

/// Returns a fixed map whose headers have `len` octets.
pub(crate) fn fixed_map(len: u16) -> MapKind {
    let zone = ZoneId::DESIGNATED;
    MapKind::Fixed(vec![Run { zone, len }])
}

/// Returns a grant of traffic that may be sent unencrypted.
pub(crate) fn grant() -> LevelGrant {
    LevelGrant {
        class: Class {
            ports: Span::new(5004, 5005),
            ..Class::default()
        },
        packets: 1000,
        seconds: 60,
        renewals: 1,
    }
}

pub(crate) fn licence(node: &str) -> Licence {
    Licence {
        node: node.parse().unwrap(),
        zone: ZoneId::DESIGNATED,
        right: Right::Read,
    }
}

/// Returns one end's configuration of the other end.
pub(crate) fn peer(name: &str, role: PeerRole) -> Peer {
    let identity = format!("{name}.example.net").parse().unwrap();
    let terms = PeerTerms {
        suites: vec![Suite::Aes128Gcm16, Suite::Aes256Gcm16],
        groups: vec![Group::X25519, Group::P256],
        liveness: Duration::ZERO,
        lifetimes: crate::Lifetimes {
            child: Duration::ZERO,
            ike: Duration::ZERO,
            ..crate::Lifetimes::default()
        },
        ..PeerTerms::default()
    };
    Peer {
        psk: Some(Secret::new(b"a secret that both ends know".to_vec())),
        terms: terms.into(),
        ..Peer::new(peer_id(name), identity, role)
    }
}

pub(crate) fn vpn(local: &str, remote: &str, zones: ZonePolicy) -> PeerRole {
    PeerRole::Vpn {
        local: vec![prefix(local)].into(),
        remote: vec![prefix(remote)].into(),
        addressing: Addressing::Fixed,
        zones: zones.into(),
        mode: Mode::Tunnel,
    }
}

/// Returns the policy of an additional child.
pub(crate) fn child(name: &str, local: &str, remote: &str) -> ChildPolicy {
    ChildPolicy {
        name: name.to_owned(),
        local: vec![prefix(local)],
        remote: vec![prefix(remote)],
        mode: Mode::Tunnel,
        lifetime: Duration::ZERO,
        pfs: true,
        auto: true,
    }
}

/// Returns the identifier of a peer, which is the same in all tests.
pub(crate) fn peer_id(name: &str) -> PeerId {
    let octets = name.bytes().map(u32::from);
    let id = octets.fold(0_u32, |id, octet| id.wrapping_mul(31).wrapping_add(octet));
    PeerId(id % PeerId::FIRST_USER.0)
}

/// Returns the configuration of a host with one peer.
pub(crate) fn host(name: &str, peer: Peer) -> Config {
    let identity = format!("{name}.example.net").parse().unwrap();
    Config::new(identity, vec![peer])
}

/// Returns the configuration of a mobile node, without zones. [`gateway`] is its peer.
pub(crate) fn mobile() -> Config {
    let role = vpn("10.8.0.2/32", "10.0.0.0/8", ZonePolicy::default());
    host("mobile", peer("gateway", role))
}

pub(crate) fn gateway() -> Config {
    let role = vpn("10.0.0.0/16", "10.8.0.0/24", ZonePolicy::default());
    host("gateway", peer("mobile", role))
}

/// Returns the zone policy of a configuration's only peer.
pub(crate) fn zones_of(config: &mut Config) -> &mut ZonePolicy {
    match &mut config.peers[0].role {
        PeerRole::Vpn { zones, .. } => zones,
        PeerRole::Licensed | PeerRole::Gateway | PeerRole::Neighbour => panic!("a VPN peer"),
    }
}
