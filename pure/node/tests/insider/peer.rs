//! A peer that proved who it is, and then says whatever a script of octets makes it say: every
//! message is sealed with the right keys, so all of it reaches what is behind authentication. Also
//! a stranger in the middle of a handshake, who has keys before it has proved anything.
//!
//! The keys come from a twin of the handshake: the same seeds make the same keys, and the twin went
//! on until both ends were up.
//!
//! ```text
//! script  = scene (1) | message, ...
//! message = what (1) | exchange (1) | payloads (1) | payload, ...
//! payload = type (1) | length (2) | body
//! ```

use crate::credential;
use crypto::{Aead, AeadAlgorithm, Secret};
use ike::{
    Addressing, Config, Credential, Engine, KeyLog, Lifetimes, Peer, PeerRole, Stance, ZonePolicy,
};
use model::{
    CsaId, Grant, GrantHalf, Group, IkeSaId, Instant, Licence, Path, Right, Spi, Suite,
    TrafficSelector, ZoneId, ZoneSelector,
};
use std::time::Duration;
use wire::ike::{Datagram, Frame, HEADER_LEN, Header, Message, PayloadType};

/// How many scenes there are.
pub const SCENES: u8 = 10;

/// Their identities are the names in their certificates.
const INSIDER: &str = "mobile.example.net";
const HOST: &str = "gateway.example.net";

const SUITE: Suite = Suite::Aes128Gcm16;
const MOST_MESSAGES: usize = 16;
const RESPONSE: u8 = 1;
const ANY_ID: u8 = 2;
const LATER: u8 = 4;
const WITHOUT_PADDING: u8 = 8;

/// Who is who, and how far they are.
#[derive(Clone, Copy)]
struct Scene {
    /// What the insider is to the host, and the other way round.
    insider: fn() -> PeerRole,
    host: fn() -> PeerRole,
    insider_begins: bool,
    /// Messages that are delivered before the insider speaks.
    delivered: usize,
    then: fn(&mut Engine, IkeSaId),
    /// Whether both prove themselves by certificate.
    certified: bool,
}

const WHOLE: usize = 4;

fn scene(number: u8) -> Scene {
    let tunnel = Scene {
        insider: tunnel_role,
        host: tunnel_role,
        insider_begins: true,
        delivered: WHOLE,
        then: |_, _| {},
        certified: false,
    };
    match number % SCENES {
        0 => Scene {
            delivered: 2,
            ..tunnel
        },
        1 => Scene {
            delivered: 2,
            insider_begins: false,
            ..tunnel
        },
        2 => tunnel,
        3 => Scene {
            insider_begins: false,
            ..tunnel
        },
        // A licensed node, to whom its gateway speaks.
        4 => Scene {
            insider: || PeerRole::Gateway,
            host: || PeerRole::Licensed,
            ..tunnel
        },
        // A gateway that has handed out keys.
        5 => Scene {
            insider: || PeerRole::Licensed,
            host: || PeerRole::Gateway,
            insider_begins: false,
            then: |host, sa| host.distribute(sa, grant(), Instant::ZERO),
            ..tunnel
        },
        6 => Scene {
            then: |host, sa| host.close(sa, Instant::ZERO),
            ..tunnel
        },
        7 => Scene {
            insider_begins: false,
            then: |host, sa| host.close(sa, Instant::ZERO),
            ..tunnel
        },
        // Certificates of somebody who has proved nothing yet.
        8 => Scene {
            delivered: 2,
            certified: true,
            ..tunnel
        },
        _ => Scene {
            delivered: 2,
            insider_begins: false,
            certified: true,
            ..tunnel
        },
    }
}

fn tunnel_role() -> PeerRole {
    let all = || vec![TrafficSelector::from_prefix([10, 0, 0, 0].into(), 8).expect("a prefix")];
    PeerRole::Vpn {
        local: all(),
        remote: all(),
        addressing: Addressing::Fixed,
        zones: ZonePolicy {
            stance: Stance::Accept,
            zones: vec![
                (ZoneSelector::IpTransport, SUITE),
                (ZoneSelector::Rest, SUITE),
            ],
            window: 4096,
            licences: vec![Licence {
                node: "node.example".parse().expect("any text is an identity"),
                zone: ZoneId(1),
                right: Right::Read,
            }],
        },
    }
}

fn grant() -> Grant<Secret> {
    let half = |spi| GrantHalf {
        spi: Spi(spi),
        zones: vec![(ZoneId(1), SUITE, Secret::new(vec![spi as u8; 20]))],
    };
    Grant {
        csa: CsaId(1),
        line: CsaId(1),
        grant: 1,
        payload_zone: ZoneId(2),
        suites: vec![SUITE; 2],
        window: 4096,
        lifetime: Duration::from_secs(60),
        from_gateway: half(0x1000),
        to_gateway: half(0x2000),
    }
}

/// One end, whose name in certificates is this, and who the other one is to it.
fn engine(
    own: &str,
    other: (&str, &str),
    role: PeerRole,
    own_proof: Option<Credential>,
    seed: u8,
) -> Engine {
    let (name, other) = other;
    let identity = |text: &str| text.parse().expect("any text is an identity");
    let psk = own_proof
        .is_none()
        .then(|| Secret::new(b"known to both".to_vec()));
    let peer = Peer {
        name: name.to_owned(),
        address: None,
        identity: identity(other),
        groups: vec![Group::X25519],
        kems: vec![None],
        psk,
        role,
        suites: vec![SUITE],
        liveness: Duration::from_secs(30),
        lifetimes: Lifetimes::default(),
        mobike: true,
        forbids_nat: false,
        key: None,
        ppk: None,
    };
    let config = Config {
        trust: credential::trust(),
        credential: own_proof,
        ..Config::new(identity(own), vec![peer])
    };
    let mut engine = Engine::new(config, [seed; 32], Instant::ZERO);
    engine.set_wall_clock(credential::TODAY);
    engine
}

fn path(local: u8, port: u16) -> Path {
    let end = |last| ([192, 0, 2, last], port).into();
    Path {
        local: end(local),
        remote: end(3 - local),
    }
}

/// An IKE message without the marker, and the port it goes to.
fn sent(engine: &mut Engine) -> Option<(u16, Vec<u8>)> {
    let transmit = engine.poll_transmit()?;
    let port = transmit.path.remote.port();
    let marker = if port == ike::NATT_PORT { 4 } else { 0 };
    Some((port, transmit.payload[marker..].to_vec()))
}

/// The two engines after so many messages; everything that was said, and the host's SA.
struct Talk {
    insider: Engine,
    host: Engine,
    said: Vec<Vec<u8>>,
}

fn talk(scene: Scene, delivered: usize) -> Talk {
    let proofs = scene
        .certified
        .then(|| (credential::mobile(), credential::gateway()));
    let (mobile, gateway) = proofs.unzip();
    let mut insider = engine(INSIDER, ("host", HOST), (scene.host)(), mobile, 1);
    let mut host = engine(HOST, ("insider", INSIDER), (scene.insider)(), gateway, 2);
    let begun = match scene.insider_begins {
        true => insider.initiate("host", path(1, ike::PORT), Instant::ZERO),
        false => host.initiate("insider", path(2, ike::PORT), Instant::ZERO),
    };
    begun.expect("the peer is configured");
    let mut said = Vec::new();
    while said.len() < delivered {
        if let Some((port, message)) = sent(&mut insider) {
            host.handle_datagram(path(2, port), &message, Instant::ZERO);
            said.push(message);
        } else if let Some((port, message)) = sent(&mut host) {
            insider.handle_datagram(path(1, port), &message, Instant::ZERO);
            said.push(message);
        } else {
            break;
        }
    }
    Talk {
        insider,
        host,
        said,
    }
}

fn keys(talk: &Talk) -> KeyLog {
    let sa = talk.insider.sas().next().expect("an SA is up").id;
    talk.insider.key_log(sa).expect("an SA is up")
}

/// Somebody who has the keys of an SA with the host.
pub struct Insider {
    host: Engine,
    keys: KeyLog,
    begun: bool,
    next_id: u32,
    /// The header of the host's newest request.
    asked: Option<Header>,
    iv: u64,
    now: Instant,
}

/// Plays one script to the end; says how many messages of it were acted upon. Panics if the host
/// loses count or time stands still.
pub fn play(script: &[u8]) -> u64 {
    let mut script = Script(script);
    let mut insider = Insider::enter(script.octet());
    let before = insider.host.counters().taken;
    for _ in 0..MOST_MESSAGES {
        if script.0.is_empty() {
            break;
        }
        insider.say(&mut script);
    }
    insider.leave() - before
}

impl Insider {
    fn enter(number: u8) -> Self {
        let scene = scene(number);
        let keys = keys(&talk(scene, WHOLE));
        let mut talk = talk(scene, scene.delivered);
        let sa = talk.host.sas().next().map(|sa| sa.id);
        sa.into_iter()
            .for_each(|sa| (scene.then)(&mut talk.host, sa));
        let mut insider = Self {
            host: talk.host,
            keys,
            begun: scene.insider_begins,
            next_id: if scene.insider_begins {
                scene.delivered as u32 / 2
            } else {
                0
            },
            asked: None,
            iv: 1 << 32,
            now: Instant::ZERO,
        };
        insider.listen();
        insider
    }

    fn say(&mut self, script: &mut Script<'_>) {
        let (what, exchange) = (script.octet(), script.octet());
        let (first, chain) = script.chain();
        let asked = self.asked.filter(|_| what & RESPONSE != 0);
        let id = match asked {
            Some(header) => header.message_id,
            None => self.next_id,
        };
        let id = if what & ANY_ID != 0 {
            id.wrapping_add(exchange.into())
        } else {
            id
        };
        let exchange = match (asked, exchange) {
            (Some(header), 0..128) => header.exchange.0,
            (_, other) => [34, 35, 36, 37, 240, 241, other][usize::from(other) % 7],
        };
        let response = if what & RESPONSE != 0 { 0x20 } else { 0 };
        let message = self.seal(
            exchange,
            response,
            id,
            first,
            &chain,
            what & WITHOUT_PADDING == 0,
        );
        if asked.is_none() && what & ANY_ID == 0 {
            self.next_id += 1;
        }
        self.host
            .handle_datagram(path(2, ike::NATT_PORT), &message, self.now);
        if what & LATER != 0 {
            self.now += Duration::from_millis(1 << (what >> 4));
        }
        self.tick();
        self.listen();
    }

    /// RFC 7296 section 3.14 and RFC 5282 section 3, written down anew.
    fn seal(
        &mut self,
        exchange: u8,
        response: u8,
        id: u32,
        first: u8,
        chain: &[u8],
        padding: bool,
    ) -> Vec<u8> {
        const SK: u8 = 46;
        let initiator = if self.begun { 0x08 } else { 0 };
        let key = if self.begun {
            &self.keys.sk_ei
        } else {
            &self.keys.sk_er
        };
        let (key, salt) = key.expose().split_at(SUITE.key_len());
        let mut text = chain.to_vec();
        text.extend(padding.then_some(0));
        let sealed_len = 4 + 8 + text.len() + 16;
        let mut message = [self.keys.spi_i, self.keys.spi_r]
            .map(u64::to_be_bytes)
            .concat();
        message.extend([SK, 0x20, exchange, initiator | response]);
        message.extend(id.to_be_bytes());
        message.extend(((HEADER_LEN + sealed_len) as u32).to_be_bytes());
        message.extend([first, 0]);
        message.extend((sealed_len as u16).to_be_bytes());
        self.iv += 1;
        let iv = self.iv.to_be_bytes();
        let nonce = [salt, &iv].concat().try_into().expect("4 and 8 octets");
        let aead = Aead::new(AeadAlgorithm::Aes128Gcm, key).expect("the key has its length");
        let icv = aead.seal(&nonce, &message, &mut text);
        [&message[..], &iv, &text, &icv].concat()
    }

    /// Takes what the host says, and looks at its books.
    fn listen(&mut self) {
        while let Some((_, message)) = sent(&mut self.host) {
            let header = Header::peek(&message).expect("the host writes headers");
            if !header.flags.response {
                self.asked = Some(header);
            }
        }
        while self.host.poll_event().is_some() {}
        let counters = self.host.counters();
        let dropped: u64 = counters.drops().map(|(_, count)| count).sum();
        let accounted = counters.taken + counters.answered_again + dropped;
        assert_eq!(accounted, counters.received, "{counters:?}");
        assert!(self.host.sas().count() <= 2);
    }

    fn tick(&mut self) {
        let is_due = |host: &Engine, now| host.poll_timeout().is_some_and(|due| due.at <= now);
        if is_due(&self.host, self.now) {
            self.host.handle_timeout(self.now);
            assert!(!is_due(&self.host, self.now), "due for ever");
        }
    }

    /// The insider falls silent: the host gives it up after a while.
    fn leave(mut self) -> u64 {
        for _ in 0..100 {
            let Some(deadline) = self.host.poll_timeout() else {
                break;
            };
            self.now = self.now.max(deadline.at);
            self.tick();
            self.listen();
        }
        assert_eq!(self.host.sas().count(), 0, "the silent are given up");
        assert_eq!(self.host.poll_timeout(), None);
        self.host.counters().taken
    }
}

/// A script that is being read; where it ends there are zeros.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn octet(&mut self) -> u8 {
        let (&octet, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        octet
    }

    fn take(&mut self, len: usize) -> &[u8] {
        let (front, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        front
    }

    /// The type of the first payload, and the chain with its generic headers (section 3.2).
    fn chain(&mut self) -> (u8, Vec<u8>) {
        let count = self.octet() % 24;
        let payloads: Vec<_> = (0..count)
            .map(|_| {
                let (kind, len) = (self.octet(), [self.octet(), self.octet()]);
                let len = usize::from(u16::from_be_bytes(len)) % 2048;
                (kind, self.take(len).to_vec())
            })
            .collect();
        let mut chain = Vec::new();
        for (index, (_, body)) in payloads.iter().enumerate() {
            let next = payloads.get(index + 1).map_or(0, |(kind, _)| *kind);
            chain.extend([next, 0]);
            chain.extend((body.len() as u16 + 4).to_be_bytes());
            chain.extend(body);
        }
        (payloads.first().map_or(0, |(kind, _)| *kind), chain)
    }
}

/// A script in which both ends' protected messages of an honest handshake are said.
pub fn honest(number: u8) -> Vec<u8> {
    let scene = scene(number);
    let whole = talk(scene, WHOLE);
    let keys = keys(&whole);
    let mut script = vec![number % SCENES];
    for message in &whole.said[2..] {
        let Ok(Datagram::Sealed(sealed)) = Datagram::decode(message) else {
            continue;
        };
        let key = if sealed.header.flags.initiator {
            &keys.sk_ei
        } else {
            &keys.sk_er
        };
        let (key, salt) = key.expose().split_at(SUITE.key_len());
        let aead = Aead::new(AeadAlgorithm::Aes128Gcm, key).expect("the key has its length");
        let opened = sealed.open_with(Frame::AEAD, |iv, aad, text, icv| {
            let nonce = [salt, iv].concat().try_into().expect("4 and 8 octets");
            aead.open(&nonce, aad, text, icv)
        });
        let response = sealed.header.flags.response;
        write(&mut script, &opened.expect("an honest message"), response);
    }
    script
}

fn write(script: &mut Vec<u8>, message: &Message, response: bool) {
    let exchange = match message.header.exchange.0 {
        240 => 4,
        other => other.wrapping_sub(34) % 7,
    };
    script.extend([u8::from(response), exchange, message.payloads.len() as u8]);
    let mut rest = &message.encode()[HEADER_LEN..];
    for payload in &message.payloads {
        let len = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        let PayloadType(kind) = payload.kind();
        script.push(kind);
        script.extend((len as u16 - 4).to_be_bytes());
        script.extend(&rest[4..len]);
        rest = &rest[len..];
    }
}
