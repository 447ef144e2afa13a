//! Unencrypted traffic (DESIGN section 3, "dynamic levels").
//!
//! If both ends grant it, a composite SA has a companion SA whose packets are authenticated and not
//! encrypted. With its ZONE_MAP, the initiator offers the class of datagrams for it, the number of
//! packets per direction, the number of seconds from the first packet on, and the number of rekeys
//! that renew these amounts. The responder answers with what both ends allow: the same class, and
//! the smaller numbers. The initiator accepts nothing that it did not offer. Without an offer and
//! an answer there is no such SA, and everything is encrypted.
//!
//! The answer enters H in its canonical form, with the SPIs of the companion SA (`zones.rs`). Two
//! ends that understood it differently share no key, neither of that SA nor of the zones.
//!
//! The bound applies to a line of SAs: each successor has one renewal less than its predecessor,
//! and after the last there is no companion SA. An end therefore gets no more by rekeying more
//! often.

use crate::exchange::find_notify;
use model::{LevelGrant, Spi};
use wire::esp::FIRST_SPI;
use wire::ike::{Message, Notify, NotifyType, Payload, Protocol, decode_level, encode_level};

/// Returns the notify for an offer or an answer: the grant, and the SPI on which its sender
/// receives.
pub(crate) fn payload(grant: &LevelGrant, spi: Spi) -> Payload {
    Payload::Notify(Notify {
        protocol: Protocol::ESP,
        spi: spi.0.to_be_bytes().to_vec(),
        ..Notify::new(NotifyType::LEVEL_GRANT, encode_level(grant))
    })
}

/// Reads the grant of a message. A malformed one counts as absent.
pub(crate) fn read(message: &Message) -> Option<(LevelGrant, Spi)> {
    let notify = find_notify(message, NotifyType::LEVEL_GRANT)?;
    let grant = decode_level(&notify.data).ok()?;
    let spi = <[u8; 4]>::try_from(notify.spi.as_slice()).ok()?;
    let spi = Spi(u32::from_be_bytes(spi));
    (spi >= FIRST_SPI).then_some((grant, spi))
}

/// Returns the grant that both ends allow.
pub(crate) fn common(ours: Option<LevelGrant>, theirs: Option<LevelGrant>) -> Option<LevelGrant> {
    ours.zip(theirs)
        .and_then(|(ours, theirs)| ours.narrowed(&theirs))
}

/// Returns the grant after a rekey: no more than before, and one renewal less.
pub(crate) fn renewed(
    agreed: Option<LevelGrant>,
    before: Option<LevelGrant>,
) -> Option<LevelGrant> {
    common(agreed, before.and_then(|before| before.renewed()))
}

/// Returns true if an answer does not exceed the offer.
pub(crate) fn is_within(answered: Option<&LevelGrant>, offered: Option<&LevelGrant>) -> bool {
    answered.is_none_or(|answered| offered.is_some_and(|offered| answered.is_within(offered)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{grant, saying};

    #[test]
    fn an_spi_that_is_reserved_or_missing_makes_it_no_grant() {
        let read_with = |spi: &[u8]| {
            let mut payload = payload(&grant(), Spi(256));
            if let Payload::Notify(notify) = &mut payload {
                notify.spi = spi.to_vec();
            }
            read(&saying(vec![payload]))
        };
        assert_eq!(read_with(&[0, 0, 1, 0]), Some((grant(), Spi(256))));
        for spi in [&[0, 0, 0, 255][..], &[], &[0, 0, 1], &[0, 0, 0, 1, 0]] {
            assert_eq!(read_with(spi), None);
        }
    }

    #[test]
    fn an_answer_may_be_less_than_the_offer_and_never_more() {
        let offered = grant();
        let within = |change: fn(&mut LevelGrant)| {
            let mut answered = offered;
            change(&mut answered);
            is_within(Some(&answered), Some(&offered))
        };
        assert!(within(|_| {}));
        assert!(within(|grant| grant.packets -= 1));
        assert!(!within(|grant| grant.packets += 1));
        assert!(!within(|grant| grant.seconds += 1));
        assert!(!within(|grant| grant.renewals += 1));
        assert!(!within(|grant| grant.class.ports = None));
        assert!(is_within(None, Some(&offered)));
        assert!(!is_within(Some(&offered), None));
    }

    #[test]
    fn new_keys_have_one_renewal_less_whatever_both_policies_would_allow() {
        let renewals = |before: Option<LevelGrant>| {
            renewed(Some(grant()), before).map(|renewed| renewed.renewals)
        };
        let with = |renewals| LevelGrant {
            renewals,
            ..grant()
        };
        assert_eq!(renewals(Some(with(2))), Some(1));
        assert_eq!(renewals(Some(with(1))), Some(0));
        assert_eq!(renewals(Some(with(0))), None);
        assert_eq!(renewals(None), None, "there was nothing to renew");
    }
}
