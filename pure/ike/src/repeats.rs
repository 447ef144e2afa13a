//! How often each ticket of ours was presented of late. Whoever has overheard a ticket can present
//! it in any number of first messages, from any address.

use model::Instant;
use resumption::Handle;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time after which counting begins anew.
const WINDOW: Duration = Duration::from_secs(10);

/// First messages with one ticket that are answered without a cookie within [`WINDOW`]: that of the
/// client, and those with which it begins again.
const FREE: u32 = 3;

/// Most tickets that are counted. Any more begin a new window: so many clients return at once.
const MOST: usize = 4096;

#[derive(Default)]
pub(crate) struct Repeats {
    counts: BTreeMap<Handle, u32>,
    ends: Option<Instant>,
}

impl Repeats {
    /// Counts a ticket that is presented. Returns true if its sender has to return a cookie.
    pub(crate) fn count(&mut self, handle: Handle, now: Instant) -> bool {
        let is_over = self.ends.is_none_or(|ends| ends <= now);
        if is_over || self.counts.len() >= MOST && !self.counts.contains_key(&handle) {
            self.counts.clear();
            self.ends = Some(now + WINDOW);
        }
        let count = self.counts.entry(handle).or_default();
        *count = count.saturating_add(1);
        *count > FREE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::Rng;

    #[test]
    fn each_ticket_is_free_three_times_in_a_window() {
        let mut rng = Rng::from_seed([1; 32]);
        let (one, other) = (Handle::draw(&mut rng), Handle::draw(&mut rng));
        let (mut repeats, start) = (Repeats::default(), Instant::ZERO);
        let mut counted = |handle, now| repeats.count(handle, now);
        let asked: Vec<_> = (0..5).map(|_| counted(one, start)).collect();
        assert_eq!(asked, [false, false, false, true, true]);
        assert!(!counted(other, start));
        assert!(counted(one, start + (WINDOW - Duration::from_millis(1))));
        assert!(!counted(one, start + WINDOW));
    }

    #[test]
    fn many_tickets_take_a_limited_room() {
        let mut rng = Rng::from_seed([2; 32]);
        let (mut repeats, now) = (Repeats::default(), Instant::ZERO);
        for _ in 0..3 * MOST {
            assert!(!repeats.count(Handle::draw(&mut rng), now));
            assert!(repeats.counts.len() <= MOST);
        }
    }
}
