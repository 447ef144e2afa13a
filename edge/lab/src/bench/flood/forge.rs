//! Datagrams that are ready beforehand, from addresses that wait for no answer.

use super::scene::PLACE;
use super::throttle::{Flood, Sent};
use crate::bench::crowd::{self, NON_ESP_MARKER, PEER};
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

/// The gateway, as the flooder sees it.
pub(super) const GATEWAY: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// The port of IKE without a marker.
const IKE_PORT: u16 = 500;

/// Octets of an SPI, with which a message begins.
const SPI: usize = 8;

/// Different datagrams without a meaning, before they come again.
const MALFORMED: usize = 512;

/// Datagrams in turn, each from another address.
pub(super) struct Forged {
    udp: Datagrams,
    ready: Vec<Ready>,
    next: usize,
    rng: Rng,
}

struct Ready {
    port: u16,
    octets: Vec<u8>,
    /// Where the initiator's SPI is, which is drawn each time.
    spi: Option<usize>,
}

impl Forged {
    /// First messages with a public value that is none, of every group.
    pub fn public_values(host: &Host) -> Result<Self> {
        let requests = Group::ALL.map(|group| Ok(Ready::first(bad_value(group, request(group)?))));
        Self::new(host, requests.into_iter().collect::<Result<_>>()?)
    }

    /// A first message that is as good as any.
    pub fn good(host: &Host) -> Result<Self> {
        let message = request(Group::X25519)?;
        Self::new(host, vec![Ready::first(message)])
    }

    /// Octets of any length for IKE, for IKE behind a marker, and for ESP.
    pub fn malformed(host: &Host) -> Result<Self> {
        let mut rng = Rng::from_seed(entropy::seed());
        let ready = |number: usize| {
            let mut octets = vec![0; 28 + rng.u32() as usize % 300];
            octets.iter_mut().for_each(|octet| *octet = rng.u32() as u8);
            let port = match number % 3 {
                0 => IKE_PORT,
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
        Self::new(host, ready)
    }

    fn new(host: &Host, ready: Vec<Ready>) -> Result<Self> {
        Ok(Self {
            udp: socket(host)?,
            ready,
            next: 0,
            rng: Rng::from_seed(entropy::seed()),
        })
    }
}

impl Flood for Forged {
    fn send(&mut self) -> Result<Sent> {
        let Self {
            udp,
            ready,
            next,
            rng,
        } = self;
        *next = (*next + 1) % ready.len();
        let Ready { port, octets, spi } = &mut ready[*next];
        if let Some(at) = *spi {
            octets[at..at + SPI].copy_from_slice(&rng.array::<SPI>());
        }
        let path = Path::udp(
            SocketAddr::from((anywhere(rng), PORT)),
            SocketAddr::from((GATEWAY, *port)),
        );
        let outcome = udp.send(path, 0, octets);
        Ok(Sent::datagram(octets.len(), &outcome))
    }

    fn read(&mut self) -> io::Result<u64> {
        let mut answers = 0;
        drain(&mut self.udp, |_, _| answers += 1)?;
        Ok(answers)
    }
}

impl Ready {
    /// A first message, whose SPI of the initiator is drawn each time.
    fn first(message: Message) -> Self {
        Self {
            port: IKE_PORT,
            octets: message.encode(),
            spi: Some(0),
        }
    }
}

/// A socket of the flooder, for all its addresses of IPv4.
pub(super) fn socket(host: &Host) -> Result<Datagrams> {
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT));
    host.inside(|| Ok(Datagrams::udp(any, None)?))
}

/// Reads everything that is there.
pub(super) fn drain(udp: &mut Datagrams, mut each: impl FnMut(Path, &[u8])) -> io::Result<()> {
    loop {
        match udp.recv(|arrival, octets| each(arrival.path, octets)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Of 198.19.0.0/16.
pub(super) fn anywhere(rng: &mut Rng) -> Ipv4Addr {
    let [third, fourth] = rng.array();
    Ipv4Addr::new(198, 19, third, fourth)
}

/// A first message with a good value of this group.
pub(super) fn request(group: Group) -> Result<Message> {
    let key = Secret::new(b"a key that proves nothing".to_vec());
    let mut config = crowd::config(0, key, PORT, PLACE);
    config.peers[0].groups = vec![group];
    let now = clock::now();
    let mut engine = Engine::new(config, entropy::seed(), now);
    let path = Path::udp(
        SocketAddr::from((Ipv4Addr::new(198, 19, 0, 1), PORT)),
        SocketAddr::from((GATEWAY, IKE_PORT)),
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

/// Zero on Curve25519, a point beside the others, and 1 of the integers.
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
