//! Tickets: what a client presents to resume a session.
//!
//! A ticket *by reference* names an entry in the store. A ticket *by value* has the entry in it,
//! and the store knows only which of them are void:
//!
//! ```text
//! by reference = reference (32)
//! by value     = reference (32) | hour (4) | sealed entry (`sealed.rs`)
//! ```
//!
//! Whoever has the key of a ticket by value has the secret in it, and makes tickets of any peer. So
//! each hour has a key of its own, which is forgotten once its last ticket has ended, and an entry
//! that claims an authentication after the hour of its key is none.

use crate::{Handle, Kept, Sealer};
use crypto::{Rng, Secret, UnixTime};
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest ticket by value in octets. The message that presents it cannot be fragmented. Longer
/// ones would be those of peers with several certificates.
pub const LONGEST: usize = 1000;

const HOUR: u64 = 3600;

/// What a ticket says, once it is known to be one of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ticket {
    /// The name of an entry in the store.
    Reference(Handle),
    /// The entry itself.
    Value(Box<Kept>),
}

impl Ticket {
    /// Returns the name of the entry.
    pub const fn handle(&self) -> &Handle {
        match self {
            Self::Reference(handle) => handle,
            Self::Value(kept) => &kept.handle,
        }
    }
}

impl From<Handle> for Ticket {
    fn from(handle: Handle) -> Self {
        Self::Reference(handle)
    }
}

/// Keys of tickets by value, by the hours since 1970 in which they seal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TicketKeys(BTreeMap<u32, Secret>);

impl TicketKeys {
    /// Length of a key in octets.
    pub const LEN: usize = 32;

    /// Restores keys of an earlier process. Those of another length than [`Self::LEN`] are left
    /// out.
    pub fn restored(keys: impl IntoIterator<Item = (u32, Secret)>) -> Self {
        let keys = keys.into_iter();
        Self(keys.filter(|(_, key)| key.len() == Self::LEN).collect())
    }

    /// Returns the keys with their hours.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Secret)> {
        self.0.iter().map(|(hour, key)| (*hour, key))
    }

    /// Draws the key of this hour, and forgets those of hours whose tickets have ended, as they are
    /// good for at most `life`. Returns true if there is a change.
    pub fn turn(&mut self, life: Duration, rng: &mut Rng, now: UnixTime) -> bool {
        let oldest = hour(UnixTime(now.0.saturating_sub(life.as_secs())));
        let (current, before) = (hour(now), self.0.len());
        self.0.retain(|hour, _| (oldest..=current).contains(hour));
        let forgets = self.0.len() < before;
        let draws = !self.0.contains_key(&current);
        if draws {
            let key = Secret::new(rng.array::<{ Self::LEN }>().to_vec());
            self.0.insert(current, key);
        }
        forgets || draws
    }

    /// Returns the ticket that has this entry behind its reference. `None`: it would be longer than
    /// [`LONGEST`], or this hour has no key.
    pub fn seal(
        &self,
        reference: &[u8],
        kept: &Kept,
        rng: &mut Rng,
        now: UnixTime,
    ) -> Option<Vec<u8>> {
        let hour = hour(now);
        let mut sealer = Sealer::new(self.0.get(&hour)?, Rng::from_seed(rng.array()));
        let sealed = sealer.seal(&kept.handle, &kept.entry);
        let ticket = [reference, &hour.to_be_bytes(), &sealed].concat();
        (ticket.len() <= LONGEST).then_some(ticket)
    }

    /// Opens what is behind the reference of a ticket by value.
    pub fn open(&self, handle: Handle, behind: &[u8]) -> Option<Kept> {
        let (number, sealed) = behind.split_first_chunk()?;
        let number = u32::from_be_bytes(*number);
        // Nothing is sealed.
        let sealer = Sealer::new(self.0.get(&number)?, Rng::from_seed([0; 32]));
        let entry = sealer.open(&handle, sealed).ok()?;
        (hour(entry.usage.since) <= number).then_some(Kept { handle, entry })
    }
}

fn hour(time: UnixTime) -> u32 {
    u32::try_from(time.0 / HOUR).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, Keys, Proof, ReferenceKey, Usage, Way};
    use crypto::Prf;
    use model::{Group, Suite};

    const NOW: UnixTime = UnixTime(500_000 * HOUR + 10);
    const LIFE: Duration = Duration::from_secs(8 * HOUR);

    fn rng() -> Rng {
        Rng::from_seed([1; 32])
    }

    fn later(hours: u64) -> UnixTime {
        UnixTime(NOW.0 + hours * HOUR)
    }

    fn kept(chain: Vec<Vec<u8>>) -> Kept {
        let entry = Entry {
            identity: "alice@example.net".parse().unwrap(),
            proof: Proof::Psk,
            chain,
            group: Group::X25519,
            credential: [3; 8],
            keys: Keys {
                way: Way::Ticket,
                suite: Suite::Aes128Gcm16,
                prf: Prf::HmacSha256,
                kems: Vec::new(),
                ppk: false,
                secret: Secret::new(vec![9; 32]),
            },
            usage: Usage::new(NOW),
            ends: later(8),
        };
        Kept {
            handle: Handle::from([4; 16]),
            entry,
        }
    }

    /// Returns keys that have sealed in each of these hours.
    fn keys(hours: u64) -> TicketKeys {
        let (mut keys, mut rng) = (TicketKeys::default(), rng());
        for hour in 0..=hours {
            keys.turn(LIFE, &mut rng, later(hour));
        }
        keys
    }

    fn sealed(keys: &TicketKeys, kept: &Kept, now: UnixTime) -> Option<Vec<u8>> {
        let references = ReferenceKey::draw(&mut rng());
        keys.seal(&references.issue(&kept.handle), kept, &mut rng(), now)
    }

    fn open(keys: &TicketKeys, ticket: &[u8]) -> Option<Kept> {
        keys.open(Handle::from([4; 16]), &ticket[32..])
    }

    #[test]
    fn a_ticket_by_value_is_opened_as_it_was_sealed_and_in_no_other_form() {
        let keys = keys(1);
        let now = later(1);
        let ticket = sealed(&keys, &kept(Vec::new()), now).unwrap();
        assert_eq!(open(&keys, &ticket), Some(kept(Vec::new())));
        for at in 32..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(open(&keys, &changed), None, "octet {at}");
            assert_eq!(open(&keys, &ticket[..at]), None, "{at} octets");
        }
        let of_another = keys.open(Handle::from([5; 16]), &ticket[32..]);
        assert_eq!(of_another, None);
        let mut others = TicketKeys::default();
        others.turn(LIFE, &mut Rng::from_seed([2; 32]), now);
        assert_eq!(open(&others, &ticket), None);
    }

    #[test]
    fn a_ticket_is_opened_until_its_hour_is_forgotten_and_never_again() {
        let (mut keys, mut rng) = (TicketKeys::default(), rng());
        let mut tickets = Vec::new();
        for now in 0..20 {
            assert!(keys.turn(LIFE, &mut rng, later(now)));
            assert!(!keys.turn(LIFE, &mut rng, later(now)));
            tickets.push(sealed(&keys, &kept(Vec::new()), later(now)).unwrap());
            for (sealed, ticket) in tickets.iter().enumerate() {
                let opened = open(&keys, ticket).is_some();
                assert_eq!(opened, sealed as u64 + 8 >= now, "{sealed} after {now}");
            }
        }
        assert_eq!(keys.iter().count(), 9);
    }

    #[test]
    fn the_keys_of_a_process_are_those_of_the_next() {
        let keys = keys(2);
        let ticket = sealed(&keys, &kept(Vec::new()), later(1)).unwrap();
        let all = keys.iter().map(|(hour, key)| (hour, key.clone()));
        let restored = TicketKeys::restored(all);
        assert_eq!(restored, keys);
        assert_eq!(open(&restored, &ticket), Some(kept(Vec::new())));
        let short = TicketKeys::restored([(1, Secret::new(vec![1; 31]))]);
        assert_eq!(short, TicketKeys::default());
    }

    /// A key of the future would seal again once its hour comes, as that of a clock that was ahead.
    #[test]
    fn a_clock_that_goes_back_forgets_the_keys_of_hours_to_come() {
        let mut keys = keys(5);
        let ahead = sealed(&keys, &kept(Vec::new()), later(5)).unwrap();
        assert!(keys.turn(LIFE, &mut rng(), later(3)));
        assert_eq!(open(&keys, &ahead), None);
        assert!(sealed(&keys, &kept(Vec::new()), later(3)).is_some());
        assert_eq!(sealed(&keys, &kept(Vec::new()), later(4)), None);
    }

    /// Whoever steals a key could otherwise play peers for as long as they like.
    #[test]
    fn a_key_seals_no_authentication_after_its_hour() {
        let keys = keys(8);
        let mut of_later = kept(Vec::new());
        of_later.entry.usage = Usage::new(UnixTime(later(1).0 - 11));
        let ticket = sealed(&keys, &of_later, NOW).unwrap();
        assert_eq!(open(&keys, &ticket), Some(of_later.clone()));
        of_later.entry.usage = Usage::new(UnixTime(later(1).0 - 10));
        let ticket = sealed(&keys, &of_later, NOW).unwrap();
        assert_eq!(open(&keys, &ticket), None);
    }

    #[test]
    fn certificates_that_are_too_long_for_a_message_have_no_ticket_by_value() {
        let keys = keys(0);
        let of = |len: usize| sealed(&keys, &kept(vec![vec![0x30; len]]), NOW);
        assert!(of(700).is_some_and(|ticket| ticket.len() <= LONGEST));
        assert_eq!(of(1000), None);
    }
}
