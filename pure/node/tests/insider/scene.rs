//! The roles and the progress of a handshake when the insider starts to send: the observed host,
//! and the honest peer that the insider replaces.
//!
//! The insider's keys come from a twin of the handshake: the same seeds make the same keys, and the
//! twin continued until both ends were up. Each host has a second peer, the bystander.

use crate::bystander::{self, Bystander};
use crate::credential;
use crypto::Secret;
use ike::{
    Addressing, Config, Credential, Domain, Engine, FRAGMENT, KeyLog, Peer, PeerRole, PeerTerms,
    Pool, SaStatus, Slot, Stance, ZonePolicy,
};
use model::{
    CsaId, Features, Grant, GrantHalf, Identity, IkeSaId, Instant, Kem, Licence, Mode, Path,
    PeerId, Right, Selectors, Shared, Spi, Suite, TrafficSelector, Wildcard, ZoneId, ZoneSelector,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// Number of scenes at the start of the list that have keys, so that a script of octets can use
/// them.
pub const SCRIPTED: u8 = 10;

/// Suite of both ends, for IKE and ESP.
pub const SUITE: Suite = Suite::Aes128Gcm16;

/// Number of messages in a whole handshake.
pub const WHOLE: usize = 4;

/// Identity of the insider, equal to the name in its certificate.
const INSIDER: &str = "mobile.example.net";

/// The host, to its peers.
pub const HOST_ID: PeerId = PeerId(0);

/// The insider, to the host.
const INSIDER_ID: PeerId = PeerId(1);

/// Identity of the host, equal to the name in its certificate.
pub const HOST: &str = "gateway.example.net";

/// Name of the pool of addresses.
pub const POOL: &str = "office";

/// The roles, and the progress of the handshake.
#[derive(Clone, Copy)]
pub struct Scene {
    /// Name: the host's role and progress.
    pub name: &'static str,
    /// Roles of the insider and the host towards each other.
    insider: fn() -> PeerRole,
    host: fn() -> PeerRole,
    /// True if the insider is the initiator.
    pub insider_begins: bool,
    /// Number of messages delivered before the insider sends.
    pub delivered: usize,
    /// Command of the host's operator at that point.
    pub then: fn(&mut Engine, IkeSaId),
    /// True if both authenticate by certificate.
    certified: bool,
    /// Maximum datagram size of the host; zero without support for fragments.
    fragment: u16,
    /// True if the IKE SA may be cloned.
    clones: bool,
    /// Number of requests that may be outstanding.
    window: u8,
    /// Number of paths that carry packets at the same time.
    paths: u8,
    /// Additional key exchanges that the host supports. An honest peer requests none, because their
    /// secrets would be random.
    kems: &'static [Option<Kem>],
}

const TUNNEL: Scene = Scene {
    name: "responder",
    insider: tunnel_role,
    host: tunnel_role,
    insider_begins: true,
    delivered: WHOLE,
    then: |_, _| {},
    certified: false,
    fragment: FRAGMENT,
    clones: false,
    window: 1,
    paths: 1,
    kems: &[None],
};

/// All scenes. Scripts refer to the first ones by position.
pub const SCENES: [Scene; 21] = [
    Scene {
        name: "half-open responder",
        delivered: 2,
        ..TUNNEL
    },
    Scene {
        name: "authenticating initiator",
        delivered: 2,
        insider_begins: false,
        ..TUNNEL
    },
    TUNNEL,
    Scene {
        name: "initiator",
        insider_begins: false,
        ..TUNNEL
    },
    Scene {
        name: "licensed node",
        insider: || PeerRole::Gateway,
        host: || PeerRole::Licensed,
        ..TUNNEL
    },
    Scene {
        name: "gateway that hands out keys",
        insider: || PeerRole::Licensed,
        host: || PeerRole::Gateway,
        insider_begins: false,
        then: |host, sa| host.distribute(sa, grant(), Instant::ZERO),
        ..TUNNEL
    },
    Scene {
        name: "closing responder",
        then: |host, sa| host.close(sa, Instant::ZERO),
        ..TUNNEL
    },
    Scene {
        name: "closing initiator",
        insider_begins: false,
        then: |host, sa| host.close(sa, Instant::ZERO),
        ..TUNNEL
    },
    // Certificates of an unauthenticated peer.
    Scene {
        name: "half-open responder with certificates",
        delivered: 2,
        certified: true,
        ..TUNNEL
    },
    Scene {
        name: "authenticating initiator with certificates",
        delivered: 2,
        insider_begins: false,
        certified: true,
        ..TUNNEL
    },
    // From here on, scenes for scenario files only.
    Scene {
        name: "untouched responder",
        delivered: 0,
        ..TUNNEL
    },
    Scene {
        name: "connecting initiator",
        delivered: 0,
        insider_begins: false,
        ..TUNNEL
    },
    Scene {
        name: "half-open lender",
        insider: || lending(Addressing::Lent(pool().into())),
        host: || lending(Addressing::Requested),
        delivered: 2,
        ..TUNNEL
    },
    Scene {
        name: "lender",
        insider: || lending(Addressing::Lent(pool().into())),
        host: || lending(Addressing::Requested),
        ..TUNNEL
    },
    Scene {
        name: "authenticating borrower",
        insider: || lending(Addressing::Requested),
        host: || lending(Addressing::Lent(pool().into())),
        insider_begins: false,
        delivered: 2,
        ..TUNNEL
    },
    Scene {
        name: "responder without fragments",
        fragment: 0,
        ..TUNNEL
    },
    Scene {
        name: "responder with a window of four",
        window: 4,
        ..TUNNEL
    },
    Scene {
        name: "responder with two paths",
        paths: 2,
        ..TUNNEL
    },
    Scene {
        name: "responder with ML-KEM",
        kems: &[Some(Kem::MlKem512), None],
        ..TUNNEL
    },
    Scene {
        name: "responder that may be cloned",
        clones: true,
        ..TUNNEL
    },
    Scene {
        name: "neighbour",
        insider: || PeerRole::Neighbour,
        host: || PeerRole::Neighbour,
        ..TUNNEL
    },
];

/// Returns selectors for all inner addresses.
fn ten() -> Selectors {
    let ten = TrafficSelector::from_prefix([10, 0, 0, 0].into(), 8);
    ten.into_iter().collect()
}

fn tunnel_role() -> PeerRole {
    lending(Addressing::Fixed)
}

fn lending(addressing: Addressing) -> PeerRole {
    PeerRole::Vpn {
        local: ten(),
        remote: ten(),
        addressing,
        zones: ZonePolicy {
            map: model::MapKind::Changeable,
            stance: Stance::Accept,
            zones: vec![
                (ZoneSelector::IpTransport, SUITE.into()),
                (ZoneSelector::Rest, SUITE.into()),
            ],
            window: 4096,
            level: None,
            licences: vec![Licence {
                node: "node.example".parse().expect("any text is an identity"),
                zone: ZoneId(1),
                right: Right::Read,
            }],
        }
        .into(),
        mode: Mode::Tunnel,
    }
}

/// Returns a pool whose first address is already leased.
fn pool() -> Pool {
    let network = [10, 9, 0, 0].into();
    Pool {
        name: POOL.to_owned(),
        addresses: TrafficSelector::from_prefix(network, 24)
            .into_iter()
            .collect(),
        reserved: vec![network, [10, 9, 0, 1].into()],
        dns: Vec::new(),
        subnets: Vec::new(),
        lease: Duration::from_secs(3600),
    }
}

/// Returns a grant for the header zone of a composite SA.
pub fn grant() -> Grant<Secret> {
    let half = |spi| GrantHalf {
        spi: Spi(spi),
        zones: vec![(ZoneId(1), SUITE.into(), Secret::new(vec![spi as u8; 20]))],
        overlay: None,
        injection: None,
    };
    Grant {
        map: model::MapKind::Changeable,
        csa: CsaId(1),
        line: CsaId(1),
        grant: 1,
        payload_zone: ZoneId(2),
        suites: vec![SUITE.into(); 2],
        window: 4096,
        lifetime: Duration::from_secs(60),
        onward: None,
        from_gateway: half(0x1000),
        to_gateway: half(0x2000),
    }
}

/// Returns the path as seen by 192.0.2.`local`: the host is 2, the insider 1.
pub fn path(local: u8, port: u16) -> Path {
    between(local, 3 - local, port)
}

/// Returns a path between two addresses in 192.0.2.0/24, by their last octets.
pub fn between(local: u8, remote: u8, port: u16) -> Path {
    let end = |last| ([192, 0, 2, last], port).into();
    Path::udp(end(local), end(remote))
}

/// Returns the IKE SAs of an end that are not with the bystander.
pub fn insiders(engine: &Engine) -> impl Iterator<Item = SaStatus> {
    let sas = engine.sas();
    sas.filter(|sa| sa.peer != Some(bystander::ID))
}

impl Scene {
    /// Returns the role of the insider towards the host.
    pub fn insider(self) -> PeerRole {
        (self.insider)()
    }

    /// Returns the role of the host towards the insider.
    pub fn host(self) -> PeerRole {
        (self.host)()
    }

    /// Returns the configuration of a peer with this role, and its pre-shared key unless it has a
    /// certificate.
    pub fn peer(
        self,
        id: PeerId,
        identity: &str,
        role: PeerRole,
        kems: &[Option<Kem>],
        psk: Option<&str>,
    ) -> Peer {
        let slots = slots(&role);
        let mut peer = Peer::new(id, named(identity), role);
        peer.psk = psk.map(|psk| Secret::new(psk.into()));
        peer.terms = Shared::from(PeerTerms {
            suites: vec![SUITE],
            features: Features {
                mobike: true,
                clones: self.clones,
                paths: self.paths,
                ..Features::default()
            },
            window: self.window,
            kems: kems.to_vec(),
            slots,
            ..PeerTerms::default()
        });
        peer
    }
}

/// Returns slots for a domain of licensed nodes.
fn slots(role: &PeerRole) -> Vec<Slot> {
    let PeerRole::Vpn { zones, .. } = role else {
        return Vec::new();
    };
    let pattern = named("*.sat.example.net");
    let domain = Domain {
        names: Wildcard::read(&pattern).expect("it is a pattern"),
        named: BTreeSet::new(),
        rights: vec![(ZoneId::DESIGNATED, Right::Read)],
    };
    let slot = |number| Slot::of_domain(&pattern, number, domain.clone(), zones);
    (1..=2).map(slot).collect()
}

fn named(identity: &str) -> Identity {
    identity.parse().expect("any text is an identity")
}

/// Returns the next IKE message without the marker, with its path.
pub fn sent(engine: &mut Engine) -> Option<(Path, Vec<u8>)> {
    let transmit = engine.poll_transmit()?;
    let shared = transmit.path.local.port() == ike::NATT_PORT;
    let marker = if shared { 4 } else { 0 };
    Some((transmit.path, transmit.payload[marker..].to_vec()))
}

/// The host and the honest peer after some messages, with all messages so far.
pub struct Talk {
    /// The honest peer, which the insider replaces.
    pub peer: Engine,
    /// The host under observation.
    pub host: Engine,
    /// The other peer of the host.
    pub bystander: Bystander,
    /// The messages in order.
    pub said: Vec<Vec<u8>>,
}

impl Talk {
    /// Runs the handshake until a number of messages was delivered, or no message is left.
    pub fn until(scene: Scene, delivered: usize) -> Self {
        let proofs = scene
            .certified
            .then(|| (credential::mobile(), credential::gateway()));
        let (mobile, gateway) = proofs.unzip();
        let psk = (!scene.certified).then_some("known to both");
        let peer = scene.peer(HOST_ID, HOST, scene.host(), &[None], psk);
        let of_host = [
            (INSIDER_ID, INSIDER, psk),
            (bystander::ID, bystander::IDENTITY, Some(bystander::PSK)),
        ];
        let of_host = of_host
            .map(|(id, identity, psk)| scene.peer(id, identity, scene.insider(), scene.kems, psk));
        let mut host = engine(HOST, of_host.into(), gateway, scene.fragment, 2);
        let mut talk = Self {
            peer: engine(INSIDER, vec![peer], mobile, FRAGMENT, 1),
            bystander: Bystander::join(scene, &mut host),
            host,
            said: Vec::new(),
        };
        let begun = match scene.insider_begins {
            true => talk
                .peer
                .initiate(HOST_ID, path(1, ike::PORT), Instant::ZERO),
            false => talk
                .host
                .initiate(INSIDER_ID, path(2, ike::PORT), Instant::ZERO),
        };
        begun.expect("the peer is configured");
        talk.go_on(delivered);
        talk
    }

    /// Delivers the next messages.
    pub fn go_on(&mut self, messages: usize) {
        for _ in 0..messages {
            let message = if let Some((path, message)) = sent(&mut self.peer) {
                let path = path.reversed();
                self.host.handle_datagram(path, &message, Instant::ZERO);
                message
            } else if let Some((path, message)) = sent(&mut self.host) {
                let path = path.reversed();
                self.peer.handle_datagram(path, &message, Instant::ZERO);
                message
            } else {
                return;
            };
            self.said.push(message);
        }
    }

    /// Returns the keys of both ends.
    pub fn keys(&self) -> KeyLog {
        self.peer.key_log(self.sa()).expect("an SA is up")
    }

    /// Returns the peer's ID of the IKE SA.
    pub fn sa(&self) -> IkeSaId {
        self.peer.sas().next().expect("there is an SA").id
    }
}

/// Creates an end with this name in its certificate, if it has one.
pub fn engine(
    own: &str,
    peers: Vec<Peer>,
    proof: Option<Credential>,
    fragment: u16,
    seed: u8,
) -> Engine {
    let config = Config {
        trust: credential::trust(),
        credential: proof,
        fragment,
        ..Config::new(named(own), peers)
    };
    let mut engine = Engine::new(config, [seed; 32], Instant::ZERO);
    engine.set_wall_clock(credential::TODAY);
    engine
}
