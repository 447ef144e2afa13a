//! Problems of a machine that keep it from running the lab, each with a fix.

use std::fmt;

/// A problem of the machine, not of the software under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Description of the problem.
    pub message: String,
    /// Instruction that fixes the problem.
    pub fix: String,
}

impl Obstacle {
    /// Creates an obstacle from a problem and its fix.
    pub fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            fix: fix.into(),
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.message, self.fix)
    }
}

impl std::error::Error for Obstacle {}

/// An error of `os` with a known cause ends with its fix, after a colon.
impl From<os::Error> for Obstacle {
    fn from(error: os::Error) -> Self {
        let text = error.to_string();
        match (&error, text.split_once(": ")) {
            (os::Error::Os { .. }, _) | (_, None) => Self::new(
                text,
                "run it as root, or on a machine that lets users make namespaces",
            ),
            (_, Some((message, fix))) => Self::new(message, fix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_with_a_known_cause_is_split_into_problem_and_fix() {
        let obstacle = Obstacle::from(os::Error::NoTunRight);
        assert_eq!(obstacle.message, "no permission to open /dev/net/tun");
        assert!(
            obstacle.fix.contains("`chmod 666 /dev/net/tun`"),
            "{obstacle}"
        );
        assert_eq!(obstacle.to_string(), os::Error::NoTunRight.to_string());
    }

    #[test]
    fn a_refusal_with_an_unknown_cause_stays_whole() {
        let error = os::Error::Os {
            doing: "making namespaces".to_owned(),
            source: std::io::Error::from_raw_os_error(28),
        };
        let obstacle = Obstacle::from(error);
        assert!(
            obstacle.message.starts_with("making namespaces: No space"),
            "{obstacle}"
        );
        assert!(obstacle.fix.contains("root"), "{obstacle}");
    }
}
