//! How long the datagrams in a tunnel look from outside (RFC 4303 section 2.7).

/// The shortest of [`Sizes::doubling`].
const SHORTEST: u16 = 128;

/// The lengths that datagrams are padded to: each is twice the one before, and the last is the longest
/// that a datagram can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    shortest: u16,
    longest: u16,
}

impl Sizes {
    /// All look like the longest one.
    pub const fn one(longest: u16) -> Self {
        Self {
            shortest: longest,
            longest,
        }
    }

    /// Few lengths, of which none is more than twice as long as what is in it, but for the shortest
    /// datagrams.
    pub const fn doubling(longest: u16) -> Self {
        Self {
            shortest: SHORTEST,
            longest,
        }
    }

    /// The same where no datagram may be longer than this.
    #[must_use]
    pub fn within(self, longest: u16) -> Self {
        Self {
            shortest: self.shortest.min(longest),
            longest: self.longest.min(longest),
        }
    }

    /// How long a datagram looks. One that is longer than all of them looks as it is.
    pub fn of(self, len: usize) -> usize {
        let (mut size, longest) = (usize::from(self.shortest), usize::from(self.longest));
        while size < len && size < longest {
            size = (2 * size).min(longest);
        }
        size.min(longest).max(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_datagrams_look_like_the_longest() {
        let sizes = Sizes::one(1380);
        assert!((0..=1380).all(|len| sizes.of(len) == 1380));
        assert_eq!(sizes.of(1381), 1381);
    }

    #[test]
    fn sizes_double_up_to_the_longest() {
        let sizes = Sizes::doubling(1380);
        let seen = [0, 128, 129, 256, 257, 1024, 1025, 1380, 1381].map(|len| sizes.of(len));
        assert_eq!(seen, [128, 128, 256, 256, 512, 1024, 1380, 1380, 1381]);
        assert_eq!(Sizes::doubling(100).of(7), 100);
        assert_eq!(Sizes::doubling(u16::MAX).of(40_000), 65_535);
    }

    #[test]
    fn where_less_gets_through_no_datagram_looks_longer() {
        let narrow = Sizes::one(1380).within(1300);
        assert_eq!(
            [0, 1300, 1350].map(|len| narrow.of(len)),
            [1300, 1300, 1350]
        );
        assert_eq!(Sizes::doubling(1380).within(1300).of(1200), 1300);
        assert_eq!(Sizes::doubling(100).within(1300), Sizes::doubling(100));
    }
}
