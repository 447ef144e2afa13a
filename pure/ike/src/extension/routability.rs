//! Return routability checks (RFC 4555 section 3.7): a request with a COOKIE2 goes to one address.
//! Only a peer that holds the keys *and* receives there can return the cookie.

use crate::exchange::{find_notify, notify};
use crypto::{Rng, equal};
use wire::ike::{Message, NotifyType, Payload};

/// Length of a COOKIE2 in octets (section 4.2.5).
const COOKIE_LEN: std::ops::RangeInclusive<usize> = 8..=64;

/// A COOKIE2 of ours, unpredictable.
pub(crate) type Cookie = [u8; 16];

/// Creates a cookie, and the payload that carries it.
pub(crate) fn cookie(rng: &mut Rng) -> (Cookie, Payload) {
    let cookie: Cookie = rng.array();
    (cookie, cookie_payload(&cookie))
}

/// Returns the payload that carries a cookie.
pub(crate) fn cookie_payload(cookie: &Cookie) -> Payload {
    notify(NotifyType::COOKIE2, cookie.to_vec())
}

/// Returns the peer's own cookie unchanged.
pub(crate) fn echo(request: &Message) -> Option<Payload> {
    let theirs = find_notify(request, NotifyType::COOKIE2)?;
    let allowed = COOKIE_LEN.contains(&theirs.data.len());
    allowed.then(|| notify(NotifyType::COOKIE2, theirs.data.clone()))
}

/// Returns true if a response returns our cookie.
pub(crate) fn is_returned(cookie: &Cookie, response: &Message) -> bool {
    find_notify(response, NotifyType::COOKIE2).is_some_and(|theirs| equal(&theirs.data, cookie))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::saying;

    #[test]
    fn a_cookie_of_a_length_that_must_not_be_is_not_returned() {
        let echoed = |len| echo(&saying(vec![notify(NotifyType::COOKIE2, vec![7; len])]));
        assert_eq!(echoed(8), Some(notify(NotifyType::COOKIE2, vec![7; 8])));
        assert!(echoed(64).is_some());
        assert_eq!((echoed(7), echoed(65)), (None, None));
    }
}
