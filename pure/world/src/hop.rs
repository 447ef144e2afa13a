//! What happens to packets between two hosts.

use std::time::Duration;

/// The conditions of a hop. Probabilities are in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Time that every packet takes.
    pub delay: Duration,
    /// Packets that are lost.
    pub lost: u16,
    /// Packets that arrive twice.
    pub repeated: u16,
    /// Packets that arrive `late`, so that newer ones overtake them.
    pub delayed: u16,
    /// Additional time of a delayed packet.
    pub late: Duration,
    /// Most milliseconds that a packet takes in addition, drawn evenly.
    pub jitter: u16,
}

impl Default for Hop {
    fn default() -> Self {
        Self::PERFECT
    }
}

impl Hop {
    /// A hop on which each packet arrives once, after 5 ms.
    pub const PERFECT: Self = Self {
        delay: Duration::from_millis(5),
        lost: 0,
        repeated: 0,
        delayed: 0,
        late: Duration::from_millis(30),
        jitter: 0,
    };

    /// The conditions under which nothing arrives.
    pub const DEAD: Self = Self {
        lost: 1000,
        ..Self::PERFECT
    };

    /// Returns this hop with another probability of loss.
    #[must_use]
    pub const fn losing(self, lost: u16) -> Self {
        Self { lost, ..self }
    }

    /// Returns this hop with another probability of repetition.
    #[must_use]
    pub const fn repeating(self, repeated: u16) -> Self {
        Self { repeated, ..self }
    }

    /// Returns this hop with another probability of a delay.
    #[must_use]
    pub const fn delaying(self, delayed: u16) -> Self {
        Self { delayed, ..self }
    }

    /// Returns this hop without losses, repetitions and delays.
    #[must_use]
    pub const fn healed(self) -> Self {
        self.losing(0).repeating(0).delaying(0)
    }

    /// Draws the fate of a packet: the time that each copy takes. A lost packet has no copy.
    /// `roll` returns random numbers.
    pub(crate) fn fate(&self, mut roll: impl FnMut() -> u32) -> Vec<Duration> {
        let mut happens = |per_mille: u16| roll() % 1000 < per_mille.into();
        if happens(self.lost) {
            return Vec::new();
        }
        let copies = 1 + usize::from(happens(self.repeated));
        let takes = |_| {
            let late = happens(self.delayed).then_some(self.late);
            self.delay + late.unwrap_or_default()
        };
        let mut copies: Vec<_> = (0..copies).map(takes).collect();
        if self.jitter > 0 {
            for takes in &mut copies {
                *takes += Duration::from_millis((roll() % (u32::from(self.jitter) + 1)).into());
            }
        }
        copies
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::Rng;

    fn dice() -> impl FnMut() -> u32 {
        let mut rng = Rng::from_seed([1; 32]);
        move || rng.u32()
    }

    #[test]
    fn each_condition_is_met_as_often_as_it_says() {
        let hop = Hop {
            jitter: 3,
            ..Hop::PERFECT.losing(250).repeating(100).delaying(500)
        };
        let mut dice = dice();
        let fates: Vec<_> = (0..10_000).map(|_| hop.fate(&mut dice)).collect();
        let lost = fates.iter().filter(|copies| copies.is_empty()).count();
        let twice = fates.iter().filter(|copies| copies.len() == 2).count();
        let all: Vec<_> = fates.concat();
        let late = |took: &&Duration| **took >= hop.delay + hop.late;
        assert!((2400..2600).contains(&lost), "{lost}");
        assert!((650..850).contains(&twice), "{twice} of 7,500");
        let delayed = all.iter().filter(late).count();
        assert!((45..55).contains(&(delayed * 100 / all.len())), "{delayed}");
        let [least, most] = [all.iter().min(), all.iter().max()].map(|took| *took.unwrap());
        assert_eq!(least, hop.delay);
        assert_eq!(most, hop.delay + hop.late + Duration::from_millis(3));
    }

    #[test]
    fn a_perfect_hop_delivers_everything_once() {
        let mut dice = dice();
        for _ in 0..5000 {
            assert_eq!(Hop::PERFECT.fate(&mut dice), [Duration::from_millis(5)]);
        }
    }

    #[test]
    fn a_dead_hop_delivers_nothing() {
        let mut dice = dice();
        assert!((0..5000).all(|_| Hop::DEAD.fate(&mut dice).is_empty()));
    }
}
