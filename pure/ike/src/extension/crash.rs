//! Quick crash detection (RFC 6290), and hints that a peer has lost its SAs.
//!
//! A responder (the "token maker") gives each initiator (the "token taker") a token of their IKE
//! SA. A responder that was started again knows nothing of that SA, but makes the token again:
//!
//! ```text
//!  HDR(IKE_AUTH), SK { IDi, AUTH, ... }   -->
//!                                         <--  HDR(IKE_AUTH), SK { ..., N(QCD_TOKEN) }
//!                 the responder crashes, and is started again
//!  ESP                                    -->
//!                                         <--  HDR(0,0), N(INVALID_SPI)
//!  HDR(INFORMATIONAL), SK {}              -->
//!                                         <--  HDR, N(INVALID_IKE_SPI), N(QCD_TOKEN)
//!  the first message of another IKE SA    -->
//! ```
//!
//! SPIs are sent in clear, so anybody may ask for a token. One leaves only for an SPI of an earlier
//! process of the node (`ike_spi.rs`): the SA that it belongs to is gone. The initiator heeds a
//! token only as the answer to a request of its own, once, and sets up another IKE SA beside; the
//! old one stays until that is authenticated. Without a token the error may be forged, and is
//! heeded rarely (`task/liveness.rs`).
//!
//! An IKE SA that is rekeyed, cloned or resumed has other SPIs, and so another token. After a rekey
//! and for a clone the responder gives it in an INFORMATIONAL request of its own (section 4.3).
//!
//! INVALID_SPI (RFC 7296 section 1.5) is a hint that anybody may forge. It leads to one liveness
//! check, and shortens the silence after which an initiator asks anyway.

use crate::exchange::{find_notify, notify};
use crypto::equal;
use model::Spi;
use wire::ike::{ExchangeType, Flags, Header, Message, NotifyType, Payload, VERSION_2};

/// Lengths of a token (RFC 6290 section 4.1).
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=128;

/// Returns the notify that gives or presents a token.
pub(crate) const fn payload(token: Vec<u8>) -> Payload {
    notify(NotifyType::QCD_TOKEN, token)
}

/// Returns the token that an authentic message gives.
pub(crate) fn given(message: &Message) -> Option<Box<[u8]>> {
    let notify = find_notify(message, NotifyType::QCD_TOKEN)?;
    let is_sound = LENGTHS.contains(&notify.data.len());
    is_sound.then(|| notify.data.as_slice().into())
}

/// Returns true if an error in clear presents the token that its SA was given.
pub(crate) fn is_proved(error: &Message, token: Option<&[u8]>) -> bool {
    let presented = find_notify(error, NotifyType::QCD_TOKEN);
    presented
        .zip(token)
        .is_some_and(|(presented, token)| equal(&presented.data, token))
}

/// Returns the message that tells a peer that the SPI of its ESP packet is unknown here.
pub(crate) fn unknown_spi(spi: Spi) -> Message {
    let header = Header {
        spi_i: 0,
        spi_r: 0,
        version: VERSION_2,
        exchange: ExchangeType::INFORMATIONAL,
        flags: Flags {
            initiator: true,
            ..Flags::default()
        },
        message_id: 0,
    };
    let payloads = vec![notify(
        NotifyType::INVALID_SPI,
        spi.0.to_be_bytes().to_vec(),
    )];
    Message { header, payloads }
}

/// Returns the SPI that a message outside any IKE SA calls unknown.
pub(crate) fn told_unknown(message: &Message) -> Option<Spi> {
    let Header {
        exchange, flags, ..
    } = message.header;
    if exchange != ExchangeType::INFORMATIONAL || flags.response {
        return None;
    }
    let notify = find_notify(message, NotifyType::INVALID_SPI)?;
    let spi = notify.data.as_slice().try_into().ok()?;
    Some(Spi(u32::from_be_bytes(spi)))
}
