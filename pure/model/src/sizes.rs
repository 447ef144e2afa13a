//! Padding of inner datagrams that hides their length (RFC 4303 section 2.7).

/// The shortest length of [`Sizes::doubling`], in octets.
const SHORTEST: u16 = 128;

/// The lengths that datagrams are padded to. Each length is twice the one before. The last is the
/// longest datagram of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    shortest: u16,
    longest: u16,
}

impl Sizes {
    /// Pads all datagrams to `longest`.
    pub const fn one(longest: u16) -> Self {
        Self {
            shortest: longest,
            longest,
        }
    }

    /// Pads to a few lengths. Except for datagrams below the shortest length, padding at most
    /// doubles a datagram.
    pub const fn doubling(longest: u16) -> Self {
        Self {
            shortest: SHORTEST,
            longest,
        }
    }

    /// Returns the same lengths on a path whose longest datagram is `longest`.
    #[must_use]
    pub fn within(self, longest: u16) -> Self {
        Self {
            shortest: self.shortest.min(longest),
            longest: self.longest.min(longest),
        }
    }

    /// Returns the padded length of a datagram of `len` octets. A datagram beyond the longest
    /// length stays as long as it is.
    pub fn padded(self, len: usize) -> usize {
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
        assert!((0..=1380).all(|len| sizes.padded(len) == 1380));
        assert_eq!(sizes.padded(1381), 1381);
    }

    #[test]
    fn sizes_double_up_to_the_longest() {
        let sizes = Sizes::doubling(1380);
        let seen = [0, 128, 129, 256, 257, 1024, 1025, 1380, 1381].map(|len| sizes.padded(len));
        assert_eq!(seen, [128, 128, 256, 256, 512, 1024, 1380, 1380, 1381]);
        assert_eq!(Sizes::doubling(100).padded(7), 100);
        assert_eq!(Sizes::doubling(u16::MAX).padded(40_000), 65_535);
    }

    #[test]
    fn where_less_gets_through_no_datagram_looks_longer() {
        let narrow = Sizes::one(1380).within(1300);
        assert_eq!(
            [0, 1300, 1350].map(|len| narrow.padded(len)),
            [1300, 1300, 1350]
        );
        assert_eq!(Sizes::doubling(1380).within(1300).padded(1200), 1300);
        assert_eq!(Sizes::doubling(100).within(1300), Sizes::doubling(100));
    }
}
