//! A peer that has authenticated and then sends arbitrary messages. Every message is sealed with
//! the right keys, so all of it reaches the code behind authentication. The insider can also be an
//! unauthenticated initiator in the middle of a handshake, which already has keys.
//!
//! Whatever the insider sends, the host's counters add up, no timer fires forever, and no state is
//! left once the insider is silent.

use crate::bystander::Bystander;
use crate::scene::{self, SUITE, Scene, Talk, WHOLE, insiders};
use crypto::{Aead, AeadAlgorithm};
use ike::{Engine, Event, KeyLog};
use model::{Instant, Path};
use wire::ike::{Datagram, Frame, HEADER_LEN, Header, Message, PayloadType};

/// Number of the IKE_SA_INIT exchange, which is not sealed.
pub const INIT: u8 = 34;

/// The response flag.
pub const RESPONSE: u8 = 0x20;

/// The flag of the original initiator.
const INITIATOR: u8 = 0x08;

/// Limit of deadlines after which a host falls silent.
const PATIENCE: usize = 1000;

/// A peer that has the keys of an SA with the host.
pub struct Insider {
    /// The host under test.
    pub host: Engine,
    /// Current time, which only the insider advances.
    pub now: Instant,
    /// Message ID of the insider's next request.
    pub next_id: u32,
    /// Header of the host's latest request.
    pub asked: Option<Header>,
    /// Output of the host since it was last collected, without that for the bystander.
    pub news: News,
    /// The host's other peer.
    pub bystander: Bystander,
    keys: KeyLog,
    begun: bool,
    iv: u64,
}

/// The output of the host.
#[derive(Default)]
pub struct News {
    /// IKE messages with their paths.
    pub said: Vec<(Path, Vec<u8>)>,
    /// Events for the host's driver.
    pub events: Vec<Event>,
}

/// An IKE header without its length.
#[derive(Clone, Copy)]
pub struct Head {
    /// SPI of the initiator.
    pub spi_i: u64,
    /// SPI of the responder.
    pub spi_r: u64,
    /// Exchange type.
    pub exchange: u8,
    /// All flags.
    pub flags: u8,
    /// Message ID.
    pub id: u32,
}

/// A chain of payloads, or octets in their place.
#[derive(Clone)]
pub struct Chain {
    /// Type of the first payload.
    pub first: u8,
    /// Payloads with their generic headers (RFC 7296 section 3.2).
    pub octets: Vec<u8>,
}

impl Insider {
    /// Takes the place of the honest peer.
    pub fn enter(scene: Scene) -> Self {
        let keys = Talk::until(scene, WHOLE).keys();
        let mut talk = Talk::until(scene, scene.delivered);
        let sa = insiders(&talk.host).next().map(|sa| sa.id);
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
            bystander: talk.bystander,
            keys,
            begun: scene.insider_begins,
            iv: 1 << 32,
        };
        insider.listen();
        insider
    }

    /// Returns the header that an honest peer would write.
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

    /// Seals a message or, with `piece`, a fragment with its number and the total. `tail` is the
    /// stated length of the padding, which is absent. An independent implementation of RFC 7296
    /// section 3.14, RFC 5282 section 3 and RFC 7383 section 2.5.
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

    /// Opens a protected message of either end.
    pub fn open(&self, message: &[u8]) -> Option<Message> {
        open(&self.keys, message)
    }

    /// Delivers a message to the host, and collects the output.
    pub fn deliver(&mut self, path: Path, message: &[u8]) {
        self.host.handle_datagram(path, message, self.now);
        self.listen();
    }

    /// Returns the next time at which the host or the bystander has something to do.
    pub fn due(&self) -> Option<Instant> {
        let host = self.host.poll_timeout().map(|deadline| deadline.at);
        host.into_iter().chain(self.bystander.due()).min()
    }

    /// Lets the host and the bystander handle their due timeouts.
    pub fn tick(&mut self) {
        let is_due = |host: &Engine, now| host.poll_timeout().is_some_and(|due| due.at <= now);
        if is_due(&self.host, self.now) {
            self.host.handle_timeout(self.now);
            assert!(!is_due(&self.host, self.now), "due for ever");
        }
        self.bystander.tick(self.now);
        self.listen();
    }

    /// Collects the output of the host, lets the bystander answer, and checks the counters.
    pub fn listen(&mut self) {
        loop {
            if let Some((path, message)) = scene::sent(&mut self.host) {
                self.hear(path, message);
            } else if !self.bystander.speak(&mut self.host, self.now) {
                break;
            }
        }
        while let Some(event) = self.host.poll_event() {
            if !self.bystander.note(&event) {
                self.news.events.push(event);
            }
        }
        let counters = self.host.counters();
        let dropped: u64 = counters.drops().map(|(_, count)| count).sum();
        let accounted = counters.taken + counters.answered_again + dropped;
        assert_eq!(accounted, counters.received, "{counters:?}");
        let proved = insiders(&self.host).filter(|sa| sa.peer.is_some());
        // The SA, and clones of it or of its successor.
        assert!(proved.count() <= 4);
    }

    fn hear(&mut self, path: Path, message: Vec<u8>) {
        if Bystander::is_at(path) {
            return self.bystander.hear(path, &message, self.now);
        }
        let header = Header::peek(&message).expect("the host writes headers");
        match header.flags.response {
            false => self.asked = Some(header),
            true if header.message_id == self.next_id => self.next_id += 1,
            true => {}
        }
        self.news.said.push((path, message));
    }

    /// Errors if the bystander was affected.
    pub fn check_bystander(&mut self) -> Result<(), String> {
        self.bystander.check(&mut self.host, self.now)
    }

    /// Falls silent, and the bystander too, until the host gives up. Returns the number of the
    /// insider's messages that the host acted upon.
    pub fn leave(mut self) -> u64 {
        self.bystander.is_silent = true;
        for _ in 0..PATIENCE {
            let Some(deadline) = self.host.poll_timeout() else {
                break;
            };
            self.now = self.now.max(deadline.at);
            self.tick();
        }
        assert_eq!(self.host.sas().count(), 0, "the silent are given up");
        assert_eq!(self.host.poll_timeout(), None);
        self.host.counters().taken - self.bystander.taken()
    }
}

/// Returns an unencrypted message.
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

/// Returns the payloads of a message as on the wire: type and body.
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
