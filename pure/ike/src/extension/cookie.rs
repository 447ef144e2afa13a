//! Cookies (RFC 7296 section 2.6): a responder under load asks the initiator to repeat its request
//! with a cookie in front, and keeps no state until then.
//!
//! As initiator we comply. An attacker can send such a notify as well, so the number of times is
//! bounded. As responder we ask for cookies once a number of initiators are half open. A cookie can
//! be recomputed from the request that returns it, so issuing one costs no memory. An initiator
//! with a forged source address never has a cookie. The half-open SAs are therefore left to real
//! addresses, each of which has its share.
//!
//! ```text
//! cookie = version of the secret | HMAC-SHA-256(secret, Ni | IPi | port | SPIi)
//! ```
//!
//! RFC 7296 section 2.6 does not include the port. Behind a NAT the port distinguishes initiators;
//! otherwise one of them could spend the cookie of another.

use crate::exchange::{find_notify, has, notify};
use crypto::{Prf, Rng, Secret, equal};
use model::Instant;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::ike::{First, Message, NotifyType, Payload, PayloadType};

/// Time for which a secret makes cookies. They stay valid for as long again.
const FRESH: Duration = Duration::from_secs(60);

/// Maximum number of times that one request is repeated with a cookie.
pub(crate) const MAX_ROUNDS: u32 = 3;

/// Cookies are 1 to 64 octets.
const LENGTH: std::ops::RangeInclusive<usize> = 1..=64;

/// Returns the cookie that a response asks for.
pub(crate) fn asked(response: &Message) -> Option<&[u8]> {
    let cookie = find_notify(response, NotifyType::COOKIE)?;
    let alone = !has(response, PayloadType::SA);
    (alone && LENGTH.contains(&cookie.data.len())).then_some(cookie.data.as_slice())
}

/// Returns the first payload of the repeated request, "all other payloads unchanged".
pub(crate) fn payload(cookie: &[u8]) -> Payload {
    notify(NotifyType::COOKIE, cookie.to_vec())
}

/// Returns true if two first messages differ only in their cookies.
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

/// The responder's secrets: the current one, and the previous one.
#[derive(Default)]
pub(crate) struct Jar {
    newest: Option<(Secret, Instant)>,
    before: Option<Secret>,
    version: u8,
}

impl Jar {
    /// Creates a cookie for the sender of a first message.
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

    /// Returns true if a first message has a cookie that was made for it.
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
            // No MAC is computed for a cookie of another version.
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
