//! Cookies (RFC 7296 section 2.6): a responder under load asks for the same request again with a
//! cookie in front, and keeps nothing until it comes.
//!
//! As initiator we comply, but anybody can send such a notify, so the number of times is bounded.
//! As responder we ask as soon as some initiators have not proved who they are. A cookie can be
//! computed again from the request that brings it back, so it costs no memory to give one, and
//! whoever does not receive at the address it sends from never has one: the places of half-open SAs
//! are left to real addresses, of which each has its share.
//!
//! ```text
//! cookie = version of the secret | HMAC-SHA-256(secret, Ni | IPi | port | SPIi)
//! ```
//!
//! RFC 7296 section 2.6 does not name the port. Behind a NAT it tells one initiator from another, who could
//! spend a cookie that the first has asked for.

use crate::exchange::{find_notify, has, notify};
use crypto::{Prf, Rng, Secret, equal};
use model::Instant;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::ike::{First, Message, NotifyType, Payload, PayloadType};

/// A secret makes cookies for so long; they are taken for as long again, and not longer.
const FRESH: Duration = Duration::from_secs(60);

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

/// What comes first in the request then, "all other payloads unchanged".
pub(crate) fn payload(cookie: &[u8]) -> Payload {
    notify(NotifyType::COOKIE, cookie.to_vec())
}

/// Whether two first messages are the same behind their cookies.
pub(crate) fn is_all_that_differs(one: &Message, other: &Message) -> bool {
    let rest = |message: &Message| {
        let payloads = message.payloads.iter();
        payloads
            .filter(|payload| !is_cookie(payload))
            .cloned()
            .collect::<Vec<_>>()
    };
    one.header == other.header && rest(one) == rest(other)
}

fn is_cookie(payload: &Payload) -> bool {
    matches!(payload, Payload::Notify(notify) if notify.kind == NotifyType::COOKIE)
}

/// The responder's secrets: the one that makes cookies, and the one before it.
#[derive(Default)]
pub(crate) struct Jar {
    newest: Option<(Secret, Instant)>,
    before: Option<Secret>,
    version: u8,
}

impl Jar {
    /// A cookie for the sender of a first message.
    pub(crate) fn ask(
        &mut self,
        request: &First<'_>,
        from: SocketAddr,
        rng: &mut Rng,
        now: Instant,
    ) -> Option<Vec<u8>> {
        self.renew(rng, now);
        let (secret, _) = self.newest.as_ref()?;
        Some(bake(secret, self.version, request, from))
    }

    /// Whether a first message has a cookie that was made for it.
    pub(crate) fn is_paid(&self, request: &First<'_>, from: SocketAddr, now: Instant) -> bool {
        let (Some(paid), Some((newest, since))) = (request.cookie, &self.newest) else {
            return false;
        };
        let age = now - *since;
        let newest = (age < FRESH * 2).then_some(newest);
        let before = self.before.as_ref().filter(|_| age < FRESH);
        let versions = [self.version, self.version.wrapping_sub(1)];
        let mut secrets = [newest, before].into_iter().zip(versions);
        secrets.any(|(secret, version)| {
            // A cookie of another version costs no MAC.
            let secret = secret.filter(|_| paid.first() == Some(&version));
            secret.is_some_and(|secret| equal(&bake(secret, version, request, from), paid))
        })
    }

    fn renew(&mut self, rng: &mut Rng, now: Instant) {
        let stale = |(_, since): &(Secret, Instant)| now - *since >= FRESH;
        if self.newest.as_ref().is_none_or(stale) {
            self.before = self.newest.take().map(|(secret, _)| secret);
            self.newest = Some((Secret::new(rng.array::<32>().to_vec()), now));
            self.version = self.version.wrapping_add(1);
        }
    }
}

fn bake(secret: &Secret, version: u8, request: &First<'_>, from: SocketAddr) -> Vec<u8> {
    let address = match from.ip() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let spi_i = request.header.spi_i.to_be_bytes();
    let port = from.port().to_be_bytes();
    let said = [request.nonce, &address, &port, &spi_i];
    let mac = Prf::HmacSha256.mac(secret.expose(), &said);
    [&[version], mac.expose()].concat()
}
