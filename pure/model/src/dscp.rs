//! Differentiated services code point of a tunnel's outer header (RFC 2474).

use std::fmt;

/// Source of the DSCP in the outer header. The DSCP of the inner header never changes: a tunnel is
/// a pipe through the traffic classes of the networks on its path (RFC 2983 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dscp {
    /// All packets carry this value, 0 to 63.
    Fixed(u8),
    /// Each packet carries the DSCP of its inner header.
    Copied,
}

impl Dscp {
    /// The highest value of a DSCP.
    pub const HIGHEST: u8 = 63;

    /// Returns the outer DSCP of a datagram with this inner DSCP.
    pub const fn outside(self, inside: u8) -> u8 {
        match self {
            Self::Fixed(dscp) => dscp,
            Self::Copied => inside,
        }
    }
}

/// By default, the DSCP reveals nothing about the inner packet. RFC 4301 section 5.1.2.1 would copy
/// it, and section 5.1.2 leaves it to an administrator "whether the covert channel provided by
/// copying these bits outweighs the benefits".
impl Default for Dscp {
    fn default() -> Self {
        Self::Fixed(0)
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(0) => f.write_str("zero"),
            Self::Fixed(dscp) => dscp.fmt(f),
            Self::Copied => f.write_str("copy"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 2983 section 3.1: a pipe has a class of its own, independent of the traffic inside.
    #[test]
    fn only_a_copied_class_depends_on_the_datagram_inside() {
        let outside = |dscp: Dscp| [0, 10, 46].map(|inside| dscp.outside(inside));
        assert_eq!(outside(Dscp::default()), [0; 3]);
        assert_eq!(outside(Dscp::Fixed(46)), [46; 3]);
        assert_eq!(outside(Dscp::Copied), [0, 10, 46]);
    }
}
