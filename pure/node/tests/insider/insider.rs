//! A peer that proved who it is, and then says whatever it is made to say: every message is sealed
//! with the right keys, so all of it reaches what is behind authentication. Also a stranger in the
//! middle of a handshake, who has keys before it has proved anything.
//!
//! Whatever it says, the host's books balance, nothing is due for ever, and once the insider is
//! silent nothing is left of it.

use crate::scene::{self, SUITE, Scene, Talk, WHOLE};
use crypto::{Aead, AeadAlgorithm};
use ike::{Engine, Event, KeyLog};
use model::{Instant, Path};
use wire::ike::{Datagram, Frame, HEADER_LEN, Header, Message, PayloadType};

/// IKE_SA_INIT, which is not sealed.
pub const INIT: u8 = 34;

/// The flag of an answer.
pub const RESPONSE: u8 = 0x20;

/// The flag of the original initiator.
const INITIATOR: u8 = 0x08;

/// Whoever was spoken to falls silent after fewer deadlines than these.
const PATIENCE: usize = 1000;

/// Somebody who has the keys of an SA with the host.
pub struct Insider {
    /// Who is spoken to.
    pub host: Engine,
    /// The time, which passes only when the insider lets it.
    pub now: Instant,
    /// The ID of the insider's next request.
    pub next_id: u32,
    /// The header of the host's newest request.
    pub asked: Option<Header>,
    /// What the host said and told since somebody took it.
    pub news: News,
    keys: KeyLog,
    begun: bool,
    iv: u64,
}

/// What came out of the host.
#[derive(Default)]
pub struct News {
    /// IKE messages, and the way each went.
    pub said: Vec<(Path, Vec<u8>)>,
    /// For its owner.
    pub events: Vec<Event>,
}

/// A header, but for the length.
#[derive(Clone, Copy)]
pub struct Head {
    /// The initiator's SPI.
    pub spi_i: u64,
    /// The responder's SPI.
    pub spi_r: u64,
    /// The exchange.
    pub exchange: u8,
    /// The flags, bit for bit.
    pub flags: u8,
    /// The message ID.
    pub id: u32,
}

/// A chain of payloads, or what is sent in its place.
#[derive(Clone)]
pub struct Chain {
    /// The type of its first payload.
    pub first: u8,
    /// The payloads with their generic headers (RFC 7296 section 3.2).
    pub octets: Vec<u8>,
}

impl Insider {
    /// Takes the honest peer's place.
    pub fn enter(scene: Scene) -> Self {
        let keys = Talk::until(scene, WHOLE).keys();
        let mut talk = Talk::until(scene, scene.delivered);
        let sa = talk.host.sas().next().map(|sa| sa.id);
        sa.into_iter()
            .for_each(|sa| (scene.then)(&mut talk.host, sa));
        let mut insider = Self {
            host: talk.host,
            now: Instant::ZERO,
            next_id: if scene.insider_begins {
                scene.delivered as u32 / 2
            } else {
                0
            },
            asked: None,
            news: News::default(),
            keys,
            begun: scene.insider_begins,
            iv: 1 << 32,
        };
        insider.listen();
        insider
    }

    /// The header that an honest peer would write.
    pub const fn head(&self, exchange: u8, response: u8, id: u32) -> Head {
        let initiator = if self.begun { INITIATOR } else { 0 };
        Head {
            spi_i: self.keys.spi_i,
            spi_r: self.keys.spi_r,
            exchange,
            flags: initiator | response,
            id,
        }
    }

    /// Seals a message, or with `piece` a fragment of one: its number, and how many there are. `tail`
    /// is the length of the padding, which is not there. RFC 7296 section 3.14, RFC 5282 section 3
    /// and RFC 7383 section 2.5, written down anew.
    pub fn seal(
        &mut self,
        head: Head,
        chain: &Chain,
        tail: Option<u8>,
        piece: Option<[u16; 2]>,
    ) -> Vec<u8> {
        const SK: u8 = 46;
        const SKF: u8 = 53;
        let numbers = piece.map(|numbers| numbers.map(u16::to_be_bytes).concat());
        let numbers = numbers.unwrap_or_default();
        let key = if self.begun {
            &self.keys.sk_ei
        } else {
            &self.keys.sk_er
        };
        let (key, salt) = key.expose().split_at(SUITE.key_len());
        let mut text = chain.octets.clone();
        text.extend(tail);
        let sealed_len = 4 + numbers.len() + 8 + text.len() + 16;
        let kind = if piece.is_some() { SKF } else { SK };
        let mut message = header(head, kind, sealed_len);
        message.extend([chain.first, 0]);
        message.extend((sealed_len as u16).to_be_bytes());
        message.extend(numbers);
        self.iv += 1;
        let iv = self.iv.to_be_bytes();
        let nonce = [salt, &iv].concat().try_into().expect("4 and 8 octets");
        let aead = Aead::new(AeadAlgorithm::Aes128Gcm, key).expect("the key has its length");
        let icv = aead.seal(&nonce, &message, &mut text);
        [&message[..], &iv, &text, &icv].concat()
    }

    /// Opens a protected message, whichever of the two said it.
    pub fn open(&self, message: &[u8]) -> Option<Message> {
        open(&self.keys, message)
    }

    /// Delivers a message to the host, and takes what it says.
    pub fn deliver(&mut self, path: Path, message: &[u8]) {
        self.host.handle_datagram(path, message, self.now);
        self.listen();
    }

    /// Lets the host do what is due.
    pub fn tick(&mut self) {
        let is_due = |host: &Engine, now| host.poll_timeout().is_some_and(|due| due.at <= now);
        if is_due(&self.host, self.now) {
            self.host.handle_timeout(self.now);
            assert!(!is_due(&self.host, self.now), "due for ever");
        }
        self.listen();
    }

    /// Takes what the host says, and looks at its books.
    pub fn listen(&mut self) {
        while let Some((path, message)) = scene::sent(&mut self.host) {
            let header = Header::peek(&message).expect("the host writes headers");
            match header.flags.response {
                false => self.asked = Some(header),
                true if header.message_id == self.next_id => self.next_id += 1,
                true => {}
            }
            self.news.said.push((path, message));
        }
        while let Some(event) = self.host.poll_event() {
            self.news.events.push(event);
        }
        let counters = self.host.counters();
        let dropped: u64 = counters.drops().map(|(_, count)| count).sum();
        let accounted = counters.taken + counters.answered_again + dropped;
        assert_eq!(accounted, counters.received, "{counters:?}");
        let proved = self.host.sas().filter(|sa| sa.peer.is_some());
        // The one, and clones of it or its successor.
        assert!(proved.count() <= 4);
    }

    /// Falls silent: the host gives it up after a while. Gives how many messages were acted upon.
    pub fn leave(mut self) -> u64 {
        for _ in 0..PATIENCE {
            let Some(deadline) = self.host.poll_timeout() else {
                break;
            };
            self.now = self.now.max(deadline.at);
            self.tick();
        }
        assert_eq!(self.host.sas().count(), 0, "the silent are given up");
        assert_eq!(self.host.poll_timeout(), None);
        self.host.counters().taken
    }
}

/// A message in the clear.
pub fn clear(head: Head, chain: &Chain) -> Vec<u8> {
    let mut message = header(head, chain.first, chain.octets.len());
    message.extend(&chain.octets);
    message
}

/// RFC 7296 section 3.1.
fn header(head: Head, next: u8, rest: usize) -> Vec<u8> {
    let mut octets = [head.spi_i, head.spi_r].map(u64::to_be_bytes).concat();
    octets.extend([next, 0x20, head.exchange, head.flags]);
    octets.extend(head.id.to_be_bytes());
    octets.extend(((HEADER_LEN + rest) as u32).to_be_bytes());
    octets
}

/// Opens a protected message of either end.
pub fn open(keys: &KeyLog, message: &[u8]) -> Option<Message> {
    let Ok(Datagram::Sealed(sealed)) = Datagram::decode(message) else {
        return None;
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
    opened.ok()
}

/// The payloads of a message as they are on the wire: type and body.
pub fn bodies(message: &Message) -> Vec<(u8, Vec<u8>)> {
    let mut bodies = Vec::new();
    let octets = message.encode();
    let mut rest = &octets[HEADER_LEN..];
    for payload in &message.payloads {
        let len = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        let PayloadType(kind) = payload.kind();
        bodies.push((kind, rest[4..len].to_vec()));
        rest = &rest[len..];
    }
    bodies
}
