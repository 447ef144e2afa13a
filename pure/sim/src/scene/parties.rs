//! Configurations of the nodes of a download, as `stratad` would have them for the demo.

use super::Configuration;
use crypto::Secret;
use model::{
    Class, Features, Identity, LevelChoice, LevelGrant, Licence, Mode, Right, Span,
    TrafficSelector, ZoneId, ZoneSelector, ZoneSuite,
};
use node::{Addressing, Config, Peer, Role, SnoopConfig, Stance, ZonePolicy};
use std::net::{IpAddr, Ipv4Addr};

/// Address of the mobile node, and its inner address.
pub(super) const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
pub(super) const INNER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
/// Addresses of the licensed node, towards the gateway and towards the mobile node.
pub(super) const LICENSED: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 2, 0, 1), Ipv4Addr::new(10, 1, 0, 1)];
/// Addresses of the gateway, towards the licensed node and towards the server.
pub(super) const GATEWAY: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 2, 0, 2), Ipv4Addr::new(10, 3, 0, 1)];
pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 2);

/// Names of the peers.
pub(super) const GATEWAY_PEER: &str = "gateway";
const MOBILE_PEER: &str = "mobile";
const NODE: &str = "node";

/// Policies of a download.
#[derive(Clone, Copy)]
pub(super) struct Parties {
    pub configuration: Configuration,
    pub every: Option<u32>,
    pub licence: bool,
    pub snoop: bool,
}

impl Parties {
    pub fn mobile(self) -> Config {
        let role = self.vpn(INNER, 32, Ipv4Addr::new(10, 3, 0, 0), 24);
        let mut peers = vec![peer(GATEWAY_PEER, GATEWAY_PEER, Some(GATEWAY[0]), role)];
        peers[0].level = self.level();
        Config {
            start: vec![GATEWAY_PEER.to_owned()],
            ..config(MOBILE_PEER, peers, None)
        }
    }

    pub fn gateway(self) -> Config {
        let role = self.vpn(Ipv4Addr::new(10, 3, 0, 0), 24, INNER, 32);
        let mut peers = vec![peer(MOBILE_PEER, MOBILE_PEER, None, role)];
        peers[0].level = self.level();
        if self.configuration.is_zoned() {
            peers.push(peer(NODE, NODE, Some(LICENSED[0]), Role::Licensed));
        }
        config(GATEWAY_PEER, peers, None)
    }

    pub fn licensed(self) -> Config {
        let mut peers = Vec::new();
        if self.configuration.is_zoned() {
            peers.push(peer(GATEWAY_PEER, GATEWAY_PEER, None, Role::Gateway));
        }
        let snoop = self.snoop && self.configuration.has_snoop();
        config(NODE, peers, snoop.then(SnoopConfig::default))
    }

    fn vpn(self, local: Ipv4Addr, local_length: u8, remote: Ipv4Addr, remote_length: u8) -> Role {
        Role::Vpn {
            local: vec![selector(local, local_length)].into(),
            remote: vec![selector(remote, remote_length)].into(),
            addressing: Addressing::Fixed,
            zones: self.zones().into(),
            mode: Mode::Tunnel,
        }
    }

    fn level(self) -> LevelChoice {
        let usual = LevelChoice::default();
        LevelChoice {
            every: self.every.unwrap_or(usual.every),
            ..usual
        }
    }

    fn zones(self) -> ZonePolicy {
        let licence = Licence {
            node: identity(NODE),
            zone: ZoneId(1),
            right: Right::Read,
        };
        ZonePolicy {
            map: model::MapKind::Changeable,
            stance: match self.configuration.is_zoned() {
                true => Stance::Require,
                false => Stance::Refuse,
            },
            zones: vec![
                (ZoneSelector::IpTransport, ZoneSuite::Aes128Gcm16),
                (ZoneSelector::Rest, ZoneSuite::Aes128Gcm16),
            ],
            window: 4096,
            level: self.every.map(|_| everything()),
            licences: self.licence.then_some(licence).into_iter().collect(),
        }
    }
}

/// Returns a grant for all packets with ports, which outlasts any download.
fn everything() -> LevelGrant {
    let class = Class {
        ports: Span::new(0, u16::MAX),
        ..Class::default()
    };
    LevelGrant {
        class,
        packets: u32::MAX,
        seconds: u32::MAX,
        renewals: 0,
    }
}

fn config(name: &str, peers: Vec<Peer>, snoop: Option<SnoopConfig>) -> Config {
    Config {
        snoop,
        ..Config::new(identity(name), peers)
    }
}

fn peer(name: &str, who: &str, address: Option<Ipv4Addr>, role: Role) -> Peer {
    let mut peer = Peer::new(name, identity(who), role);
    peer.ike.address = address.map(IpAddr::V4);
    peer.ike.psk = Some(Secret::new(b"a key for simulations only".to_vec()));
    peer.ike.features = Features::offered();
    peer
}

fn identity(who: &str) -> Identity {
    format!("{who}.demo")
        .parse()
        .expect("a name is an identity")
}

fn selector(address: Ipv4Addr, length: u8) -> TrafficSelector {
    TrafficSelector::from_prefix(address.into(), length).expect("the lengths above fit IPv4")
}
