//! The class of service that the packets of a tunnel ask for outside (RFC 2474).

use std::fmt;

/// How the header outside gets its DSCP. The one inside always stays as it is: to the classes of the
/// network between, a tunnel is a pipe (RFC 2983 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dscp {
    /// All packets have this one, 0 to 63.
    Fixed(u8),
    /// Each has that of the datagram in it.
    Copied,
}

impl Dscp {
    /// The highest there is.
    pub const HIGHEST: u8 = 63;

    /// What is outside of a datagram that has another one inside.
    pub const fn outside(self, inside: u8) -> u8 {
        match self {
            Self::Fixed(dscp) => dscp,
            Self::Copied => inside,
        }
    }
}

/// Whoever sees the packets of a tunnel is told nothing of what is in them. RFC 4301 section 5.1.2.1
/// would copy, and section 5.1.2 leaves it to an administrator "whether the covert channel provided by
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

    /// RFC 2983 section 3.1: a pipe has a class of its own, whatever flows through it.
    #[test]
    fn only_a_copied_class_depends_on_the_datagram_inside() {
        let outside = |dscp: Dscp| [0, 10, 46].map(|inside| dscp.outside(inside));
        assert_eq!(outside(Dscp::default()), [0; 3]);
        assert_eq!(outside(Dscp::Fixed(46)), [46; 3]);
        assert_eq!(outside(Dscp::Copied), [0, 10, 46]);
    }
}
