//! Cookies, the initiator's half (RFC 7296 section 2.6): a responder under load asks for the same
//! request again with a cookie in front. Anybody can send such a notify, so the number of times we
//! comply is bounded.

use crate::exchange::{find_notify, has, notify};
use wire::ike::{Message, NotifyType, Payload, PayloadType};

/// How often one request is sent anew.
pub(crate) const MAX_ROUNDS: u32 = 3;

/// Cookies are 1 to 64 octets.
const LENGTH: std::ops::RangeInclusive<usize> = 1..=64;

/// The cookie a response asks for.
pub(crate) fn asked(response: &Message) -> Option<&[u8]> {
    let cookie = find_notify(response, NotifyType::COOKIE)?;
    let alone = !has(response, PayloadType::SA);
    (alone && LENGTH.contains(&cookie.data.len())).then_some(cookie.data.as_slice())
}

/// The request with a cookie in front, "all other payloads unchanged".
pub(crate) fn prepend(cookie: &[u8], payloads: &[Payload]) -> Vec<Payload> {
    let first = notify(NotifyType::COOKIE, cookie.to_vec());
    std::iter::once(first)
        .chain(payloads.iter().cloned())
        .collect()
}
