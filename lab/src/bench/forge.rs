//! Datagrams prepared in advance, from addresses that wait for no answer.

use super::crowd::{self, NON_ESP_MARKER, PEER};
use super::responder::Place;
use crate::host::Host;
use anyhow::{Context, Result, bail};
use crypto::{Rng, Secret};
use ike::{Engine, NATT_PORT};
use model::{Group, Path};
use os::{Datagrams, clock, entropy};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use wire::ike::{Datagram, Message, Payload};

/// Source port of every datagram.
pub(super) const PORT: u16 = 15_500;

/// Octets of an SPI, with which an IKE message begins.
const SPI: usize = 8;

/// Number of different meaningless datagrams before they repeat.
const MALFORMED: usize = 512;

/// Sources and destination of forged datagrams.
#[derive(Clone, Copy)]
pub(super) struct Way {
    /// Network of the sources, and the length of its prefix.
    pub network: Ipv4Addr,
    pub prefix: u8,
    /// Address of the responder.
    pub to: Ipv4Addr,
    /// Port of the responder for first messages.
    pub port: u16,
}

impl Way {
    /// Returns a random source.
    pub fn source(self, rng: &mut Rng) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.network.to_bits() | rng.u32() >> self.prefix)
    }

    /// Returns a path from a random source to a port of the responder.
    fn path(self, port: u16, rng: &mut Rng) -> Path {
        Path::udp(
            SocketAddr::from((self.source(rng), PORT)),
            SocketAddr::from((self.to, port)),
        )
    }
}

/// A sequence of forged datagrams, each from another address.
pub(super) struct Forged {
    udp: Datagrams,
    way: Way,
    ready: Vec<Ready>,
    next: usize,
    rng: Rng,
}

struct Ready {
    port: u16,
    octets: Vec<u8>,
    /// Offset of the initiator's SPI, which is random in each datagram.
    spi: Option<usize>,
}

impl Forged {
    /// Prepares first messages with invalid public values, for every group.
    pub fn public_values(host: &Host, way: Way) -> Result<Self> {
        let requests = Group::ALL.map(|group| {
            let message = bad_value(group, request(group)?);
            Ok(Ready::first(&message, way.port))
        });
        Self::new(host, way, requests.into_iter().collect::<Result<_>>()?)
    }

    /// Prepares a valid first message.
    pub fn good(host: &Host, way: Way) -> Result<Self> {
        let message = request(Group::X25519)?;
        Self::new(host, way, vec![Ready::first(&message, way.port)])
    }

    /// Prepares random octets of any length for IKE, for IKE with a marker, and for ESP.
    pub fn malformed(host: &Host, way: Way) -> Result<Self> {
        let mut rng = Rng::from_seed(entropy::seed());
        let ready = |number: usize| {
            let mut octets = vec![0; 28 + rng.u32() as usize % 300];
            octets.iter_mut().for_each(|octet| *octet = rng.u32() as u8);
            let port = match number % 3 {
                0 => ike::PORT,
                1 => {
                    octets[..NON_ESP_MARKER.len()].copy_from_slice(NON_ESP_MARKER);
                    NATT_PORT
                }
                _ => NATT_PORT,
            };
            Ready {
                port,
                octets,
                spi: None,
            }
        };
        let ready = (0..MALFORMED).map(ready).collect();
        Self::new(host, way, ready)
    }

    fn new(host: &Host, way: Way, ready: Vec<Ready>) -> Result<Self> {
        Ok(Self {
            udp: socket(host)?,
            way,
            ready,
            next: 0,
            rng: Rng::from_seed(entropy::seed()),
        })
    }

    /// Sends the next datagram. Returns its length, and whether the kernel accepted it: a buffer
    /// may be full, or the random source may be an address that is not allowed.
    pub fn send_next(&mut self) -> (usize, io::Result<()>) {
        let Self {
            udp,
            way,
            ready,
            next,
            rng,
        } = self;
        *next = (*next + 1) % ready.len();
        let Ready { port, octets, spi } = &mut ready[*next];
        if let Some(at) = *spi {
            octets[at..at + SPI].copy_from_slice(&rng.array::<SPI>());
        }
        (octets.len(), udp.send(way.path(*port, rng), 0, octets))
    }

    /// Reads all pending answers.
    pub fn read_answers(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        drain(&mut self.udp, |_, answer| each(answer))
    }
}

impl Ready {
    /// Prepares a first message, which gets a random initiator's SPI each time.
    fn first(message: &Message, port: u16) -> Self {
        let marker: &[u8] = if port == NATT_PORT {
            NON_ESP_MARKER
        } else {
            &[]
        };
        Self {
            port,
            octets: [marker, &message.encode()].concat(),
            spi: Some(marker.len()),
        }
    }
}

/// Opens a socket for all IPv4 addresses of a host.
pub(super) fn socket(host: &Host) -> Result<Datagrams> {
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT));
    host.inside(|| Ok(Datagrams::udp(any, None)?))
}

/// Reads all pending datagrams.
pub(super) fn drain(udp: &mut Datagrams, mut each: impl FnMut(Path, &[u8])) -> io::Result<()> {
    loop {
        match udp.recv(|arrival, octets| each(arrival.path, octets)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Returns a first message with a valid public value of this group, usable from any source.
pub(super) fn request(group: Group) -> Result<Message> {
    let key = Secret::new(b"a key that proves nothing".to_vec());
    let mut config = crowd::config(0, key, PORT, Place::ONE_HOST);
    config.peers[0].groups = vec![group];
    let now = clock::now();
    let mut engine = Engine::new(config, entropy::seed(), now);
    let path = Path::udp(
        SocketAddr::new(Place::ONE_HOST.address_of(0), PORT),
        SocketAddr::new(Place::ONE_HOST.responder, ike::PORT),
    );
    engine.initiate(PEER, path, now)?;
    let sent = engine
        .poll_transmit()
        .context("an initiator sends a request")?;
    let octets = sent.payload.strip_prefix(NON_ESP_MARKER);
    match Datagram::decode(octets.unwrap_or(&sent.payload))? {
        Datagram::Clear(message) => Ok(message),
        Datagram::Sealed(_) => bail!("the first message is sealed"),
    }
}

/// Replaces the public value by an invalid one: zero on Curve25519, a point off the curve, or 1
/// modulo a prime.
fn bad_value(group: Group, mut message: Message) -> Message {
    for payload in &mut message.payloads {
        if let Payload::KeyExchange(exchange) = payload {
            let filler = u8::from(matches!(group, Group::P256 | Group::P384));
            exchange.public.fill(filler);
            if matches!(group, Group::Modp2048 | Group::Modp3072)
                && let Some(last) = exchange.public.last_mut()
            {
                *last = 1;
            }
        }
    }
    message
}
