//! Initial messages at a glance: the fields that a responder needs to request or verify a cookie
//! (RFC 7296 section 2.6).

use super::message::Generic;
use super::{ExchangeType, Header, MAX_PAYLOADS, NotifyType, PayloadType};
use crate::codec::{Codec, Reader};

/// An initiator's first message. Only the nonce and the cookie are read, without copying them. They
/// are clear, also where an Encrypted payload ends the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct First<'a> {
    /// The header.
    pub header: Header,
    /// The nonce.
    pub nonce: &'a [u8],
    /// The data of the COOKIE notify, if there is one.
    pub cookie: Option<&'a [u8]>,
}

impl<'a> First<'a> {
    /// Reads a datagram (without a non-ESP marker). `None` if it is not a first message, if its
    /// payloads do not end with it, or if it has no nonce.
    pub fn peek(octets: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new("the message", octets);
        let (header, mut kind, length) = Header::read_with_chain(&mut reader).ok()?;
        if usize::try_from(length) != Ok(octets.len()) || !header.is_first() {
            return None;
        }
        let (mut nonce, mut cookie) = (None, None);
        for _ in 0..MAX_PAYLOADS {
            if matches!(kind, PayloadType::NONE | PayloadType::SKF) {
                break;
            }
            let generic = Generic::read(&mut reader).ok()?;
            match kind {
                PayloadType::NONCE => nonce = nonce.or(Some(generic.body)),
                PayloadType::NOTIFY => cookie = cookie.or_else(|| cookie_in(generic.body)),
                _ => {}
            }
            kind = match kind {
                // Its generic header names what is inside.
                PayloadType::SK => PayloadType::NONE,
                _ => generic.next,
            };
        }
        let is_whole = kind == PayloadType::NONE && reader.is_empty();
        Some(Self {
            header,
            nonce: nonce.filter(|_| is_whole)?,
            cookie,
        })
    }
}

impl Header {
    /// Returns true for the header of an initiator's first message, which has no SPI of the
    /// responder. "The SPI values and Message ID fields behave similarly" in all exchanges that
    /// begin an IKE SA (RFC 5723 section 4.3.2).
    pub fn is_first(&self) -> bool {
        let begins = matches!(
            self.exchange,
            ExchangeType::IKE_SA_INIT
                | ExchangeType::IKE_SESSION_RESUME
                | ExchangeType::SKID_RESUME
        );
        self.major_version() == 2
            && begins
            && self.flags.initiator
            && !self.flags.response
            && self.message_id == 0
            && self.spi_i != 0
            && self.spi_r == 0
    }
}

/// Returns the data of a notify (RFC 7296 section 3.10), if it is a COOKIE.
fn cookie_in(body: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new("a Notify payload", body);
    reader.u8().ok()?;
    let spi_len = reader.u8().ok()?;
    let kind = NotifyType::read(&mut reader).ok()?;
    reader.take(spi_len.into()).ok()?;
    (kind == NotifyType::COOKIE).then(|| reader.rest())
}

#[cfg(test)]
mod tests {
    use super::super::{Content, Datagram, Flags, Frame, Message, Notify, Payload, VERSION_2};
    use super::*;

    fn message(payloads: Vec<Payload>) -> Message {
        let flags = Flags {
            initiator: true,
            ..Flags::default()
        };
        let header = Header {
            spi_i: 7,
            spi_r: 0,
            version: VERSION_2,
            exchange: ExchangeType::IKE_SA_INIT,
            flags,
            message_id: 0,
        };
        Message { header, payloads }
    }

    fn notify(kind: NotifyType, data: &[u8]) -> Payload {
        Payload::Notify(Notify::new(kind, data.to_vec()))
    }

    #[test]
    fn nonce_and_cookie_are_those_that_the_whole_message_has() {
        let payloads = vec![
            notify(NotifyType::COOKIE, b"cookie"),
            Payload::VendorId(vec![1; 9]),
            notify(NotifyType::NAT_DETECTION_SOURCE_IP, &[3; 20]),
            Payload::Nonce(vec![5; 32]),
        ];
        let message = message(payloads);
        let octets = message.encode();
        let first = First::peek(&octets).unwrap();
        assert_eq!(first.header, message.header);
        assert_eq!(first.nonce, [5; 32]);
        assert_eq!(first.cookie, Some(&b"cookie"[..]));
        let without = self::message(message.payloads[1..].to_vec()).encode();
        assert_eq!(First::peek(&without).unwrap().cookie, None);
    }

    #[test]
    fn what_is_no_whole_first_message_is_none() {
        let whole = message(vec![Payload::Nonce(vec![5; 32])]);
        let octets = whole.encode();
        assert!(First::peek(&octets).is_some());
        for len in 0..octets.len() {
            assert_eq!(First::peek(&octets[..len]), None, "{len} octets");
        }
        assert_eq!(First::peek(&[&octets[..], &[0]].concat()), None);
        assert_eq!(First::peek(&message(Vec::new()).encode()), None);
        let changes: [fn(&mut Header); 5] = [
            |header| header.spi_r = 1,
            |header| header.spi_i = 0,
            |header| header.message_id = 1,
            |header| header.flags.response = true,
            |header| header.exchange = ExchangeType::IKE_AUTH,
        ];
        for change in changes {
            let mut other = whole.clone();
            change(&mut other.header);
            assert_eq!(First::peek(&other.encode()), None);
        }
    }

    #[test]
    fn a_session_that_is_resumed_begins_with_a_first_message_too() {
        let mut resumed = message(vec![Payload::Nonce(vec![5; 32])]);
        resumed.header.exchange = ExchangeType::IKE_SESSION_RESUME;
        let octets = resumed.encode();
        assert_eq!(First::peek(&octets).unwrap().nonce, [5; 32]);
    }

    #[test]
    fn nonce_and_cookie_are_read_before_an_encrypted_payload() {
        let mut sent = message(Vec::new());
        sent.header.exchange = ExchangeType::SKID_RESUME;
        let clear = [
            notify(NotifyType::COOKIE, b"cookie"),
            Payload::Nonce(vec![5; 32]),
        ];
        let content = Content::new(&[Payload::VendorId(vec![1; 9])]);
        let octets = content.seal_with(
            &sent.header,
            &clear,
            None,
            Frame::AEAD,
            &[0; 8],
            |_, _, _| (),
        );
        let first = First::peek(&octets).unwrap();
        assert_eq!(
            (first.nonce, first.cookie),
            (&[5; 32][..], Some(&b"cookie"[..]))
        );
        assert_eq!(First::peek(&octets[..octets.len() - 1]), None);
        assert_eq!(First::peek(&[&octets[..], &[0]].concat()), None);
    }

    /// A chain that never ends costs no more than a chain of [`MAX_PAYLOADS`].
    #[test]
    fn a_message_with_more_payloads_than_are_read_is_none() {
        let fits = |count| {
            let mut payloads = vec![Payload::VendorId(Vec::new()); count - 1];
            payloads.push(Payload::Nonce(vec![5; 32]));
            let octets = message(payloads).encode();
            (
                First::peek(&octets).is_some(),
                Datagram::decode(&octets).is_ok(),
            )
        };
        assert_eq!(fits(MAX_PAYLOADS), (true, true));
        assert_eq!(fits(MAX_PAYLOADS + 1), (false, false));
    }
}
