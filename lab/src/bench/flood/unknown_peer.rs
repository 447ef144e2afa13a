//! Initiators that answer the gateway's requests but never authenticate.

use super::scene::WAY;
use super::throttle::{Flood, Sent};
use crate::bench::crowd::{self, NON_ESP_MARKER, PEER};
use crate::bench::forge::{self, PORT, drain};
use crate::bench::responder::{self, Place};
use crate::host::Host;
use crate::openssl::{self, EC, GOOD};
use anyhow::{Context, Result};
use crypto::{Certificate, RawKey, Rng, Secret};
use ike::{Credential, Engine, NATT_PORT, Signer};
use model::{Group, Path, Transmit};
use os::{Datagrams, clock, entropy};
use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use wire::ike::{Datagram, Message, NotifyType, Payload};

/// Network of all half-open SAs, and the gateway's address towards it.
const NETWORK: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 0);
const GATEWAY_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xe, 0, 0, 0, 0, 1);

/// Number of CA certificates with the same name that accompany each end certificate.
const AUTHORITIES: usize = 10;

/// First messages from one /64, repeated with the cookie that the gateway requests.
pub(super) struct HalfOpen {
    udp: Datagrams,
    request: Message,
    /// First messages that carry their cookie.
    paid: VecDeque<(Path, Vec<u8>)>,
    rng: Rng,
}

impl HalfOpen {
    pub fn new(host: &Host) -> Result<Self> {
        let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT));
        Ok(Self {
            udp: host.inside(|| Ok(Datagrams::udp(any, None)?))?,
            request: forge::request(Group::X25519)?,
            paid: VecDeque::new(),
            rng: Rng::from_seed(entropy::seed()),
        })
    }

    fn unpaid(&mut self) -> (Path, Vec<u8>) {
        let host = u128::from(u64::from_be_bytes(self.rng.array()));
        let source = Ipv6Addr::from_bits(NETWORK.to_bits() | host);
        let path = Path::udp(
            SocketAddr::from((source, PORT)),
            SocketAddr::from((GATEWAY_V6, ike::PORT)),
        );
        self.request.header.spi_i = u64::from_be_bytes(self.rng.array());
        (path, self.request.encode())
    }
}

impl Flood for HalfOpen {
    fn send(&mut self) -> Result<Sent> {
        let (path, octets) = match self.paid.pop_front() {
            Some(paid) => paid,
            None => self.unpaid(),
        };
        let outcome = self.udp.send(path, 0, &octets);
        Ok(Sent::datagram(octets.len(), &outcome))
    }

    fn read(&mut self) -> io::Result<u64> {
        let Self {
            udp, request, paid, ..
        } = self;
        let mut answers = 0;
        drain(udp, |path, octets| {
            answers += 1;
            paid.extend(with_cookie(request, octets).map(|message| (path, message)));
        })?;
        Ok(answers)
    }
}

/// Returns the request with the cookie from an answer, if the answer asks for one.
fn with_cookie(request: &Message, answer: &[u8]) -> Option<Vec<u8>> {
    let Ok(Datagram::Clear(answer)) = Datagram::decode(answer) else {
        return None;
    };
    let is_cookie = |payload: &&Payload| matches!(payload, Payload::Notify(notify) if notify.kind == NotifyType::COOKIE);
    let cookie = answer.payloads.iter().find(is_cookie)?.clone();
    let mut message = request.clone();
    message.header.spi_i = answer.header.spi_i;
    message.payloads.insert(0, cookie);
    Some(message.encode())
}

/// IKE_AUTH with a certificate chain of ambiguous order, from every address of a /24.
pub(super) struct Chains {
    udp: Datagrams,
    credential: Credential,
    /// The newest initiator of each address.
    engines: HashMap<SocketAddr, Engine>,
    outbox: VecDeque<Transmit>,
    rng: Rng,
}

impl Chains {
    pub fn new(host: &Host) -> Result<Self> {
        Ok(Self {
            udp: forge::socket(host)?,
            credential: credential(host)?,
            engines: HashMap::new(),
            outbox: VecDeque::new(),
            rng: Rng::from_seed(entropy::seed()),
        })
    }

    fn begin(&mut self) -> Result<Transmit> {
        let [last] = self.rng.array();
        let source = SocketAddr::from(([198, 19, 0, last], PORT));
        let path = Path::udp(source, SocketAddr::from((WAY.to, NATT_PORT)));
        let mut config = crowd::config(0, Secret::new(Vec::new()), PORT, Place::TWO_HOSTS);
        config.identity = responder::named("certified.bench");
        config.credential = Some(self.credential.clone());
        config.peers[0].psk = None;
        let now = clock::now();
        let mut engine = Engine::new(config, self.rng.array(), now);
        engine.initiate(PEER, path, now)?;
        let first = engine.poll_transmit();
        self.engines.insert(source, engine);
        first.context("an initiator sends a request")
    }
}

impl Flood for Chains {
    fn send(&mut self) -> Result<Sent> {
        let transmit = match self.outbox.pop_front() {
            Some(transmit) => transmit,
            None => self.begin()?,
        };
        let outcome = self.udp.send(transmit.path, 0, &transmit.payload);
        Ok(Sent::datagram(transmit.payload.len(), &outcome))
    }

    fn read(&mut self) -> io::Result<u64> {
        let Self {
            udp,
            engines,
            outbox,
            ..
        } = self;
        let (now, mut answers) = (clock::now(), 0);
        drain(udp, |path, octets| {
            answers += 1;
            let message = octets.strip_prefix(NON_ESP_MARKER);
            if let (Some(engine), Some(message)) = (engines.get_mut(&path.local), message) {
                engine.handle_datagram(path, message, now);
                outbox.extend(std::iter::from_fn(|| engine.poll_transmit()));
            }
        })?;
        Ok(answers)
    }
}

/// Returns a credential with an end certificate, CAs that all have its issuer's name, and
/// signatures of zeros.
fn credential(host: &Host) -> Result<Credential> {
    let mut authorities = Vec::new();
    for _ in 0..AUTHORITIES {
        openssl::authority(host, EC, "A")?;
        authorities.extend(certificates(host, "ca.pem")?);
    }
    openssl::order(host, "DNS:certified.bench", GOOD)?;
    let mut chain = certificates(host, "chain.pem")?;
    host.run("openssl pkey -in end.key -pubout -out end.pub")?;
    let key = RawKey::from_pem(&fs::read(host.directory().join("end.pub"))?)?;
    chain.extend(authorities);
    Ok(Credential {
        algorithm: key.key().kind.signs_with(),
        key,
        chain: chain.into_iter().map(|one| one.der).collect(),
        signer: Arc::new(Zeros),
    })
}

fn certificates(host: &Host, file: &str) -> Result<Vec<Certificate>> {
    let text = fs::read(host.directory().join(file))?;
    Ok(Certificate::all_from_pem(&text)?)
}

/// A signer that returns zeros, which costs the flooder nothing.
#[derive(Debug)]
struct Zeros;

impl Signer for Zeros {
    fn sign(&self, _: &[u8]) -> Option<Vec<u8>> {
        Some(vec![0; 64])
    }
}
