//! Re-authentication (RFC 7296 section 2.8.3), and the lifetime of an authentication (RFC 4478).
//!
//! A rekey proves no identity: an authenticated peer stays so while the IKE SA lives, even if its
//! key or certificate becomes invalid. "Reauthentication is done by creating a new IKE SA from
//! scratch (using IKE_SA_INIT/IKE_AUTH exchanges, without any REKEY_SA Notify payloads), creating
//! new Child SAs within the new IKE SA (without REKEY_SA Notify payloads), and finally deleting the
//! old IKE SA". Only the original initiator can do this, because the responder cannot request inner
//! addresses. The responder can announce the lifetime of an authentication, and closes an SA that
//! exceeds it.
//!
//! The new SA is established in parallel to the old one, on the same path, and the old one stays
//! until the new one works. The new SA's child SAs replace the old ones like the successors of a
//! rekey. If it cannot be established, the old SA stays until its lifetime is over, and
//! re-authentication is tried again. `task/leave.rs` describes the end of the old SA.

use crate::exchange::{find_notify, notify};
use crypto::UnixTime;
use std::time::Duration;
use wire::ike::{Message, NotifyType, Payload};

/// Minimum lifetime of an authentication, regardless of the peer's announcement.
const LEAST: Duration = Duration::from_secs(10);

/// Returns what is left of the lifetime of an authentication, at least a second; zero if it is
/// unlimited.
pub(crate) fn left(lifetime: Duration, since: UnixTime, today: UnixTime) -> Duration {
    let age = Duration::from_secs(today.0.saturating_sub(since.0));
    match lifetime.is_zero() {
        true => Duration::ZERO,
        false => lifetime.saturating_sub(age).max(Duration::from_secs(1)),
    }
}

/// Returns the notify for IKE_AUTH by which a responder limits the lifetime of an authentication.
pub(crate) fn announcement(lifetime: Duration) -> Option<Payload> {
    let seconds = u32::try_from(lifetime.as_secs()).unwrap_or(u32::MAX);
    let data = seconds.max(1).to_be_bytes().to_vec();
    (!lifetime.is_zero()).then(|| notify(NotifyType::AUTH_LIFETIME, data))
}

/// Returns the time after which to re-authenticate, as announced by a responder: nine tenths of the
/// lifetime, because the responder may delete the IKE SA as soon as that is over.
pub(crate) fn announced(message: &Message) -> Option<Duration> {
    let notify = find_notify(message, NotifyType::AUTH_LIFETIME)?;
    let octets = notify.data.as_slice().try_into().ok()?;
    let lifetime = Duration::from_secs(u32::from_be_bytes(octets).into());
    Some((lifetime * 9 / 10).max(LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::saying;

    #[test]
    fn what_a_responder_announces_is_used_for_nine_tenths_of_it() {
        let hours = Duration::from_secs(8 * 3600);
        let said = announcement(hours).map(|said| saying(vec![said]));
        assert_eq!(said.as_ref().and_then(announced), Some(hours * 9 / 10));
        assert_eq!(announcement(Duration::ZERO), None);
    }

    #[test]
    fn an_announcement_that_is_too_short_or_misshapen_makes_nobody_hurry() {
        let said = |data: &[u8]| saying(vec![notify(NotifyType::AUTH_LIFETIME, data.to_vec())]);
        assert_eq!(announced(&said(&[0; 4])), Some(LEAST));
        assert!(announced(&said(&[0xff; 4])) > Some(LEAST));
        for misshapen in [&[][..], &[0, 0, 1], &[0, 0, 0, 1, 0]] {
            assert_eq!(announced(&said(misshapen)), None);
        }
    }
}
