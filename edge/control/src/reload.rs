//! `strata reload`: differences between the old and the new configuration, and their effects.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Result of reading the configuration file again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reload {
    /// Path of the file.
    pub file: String,
    /// True if the changes were applied. False if the file has faults, or for a dry run.
    pub applied: bool,
    /// Differences, in the order of the tables.
    pub changes: Vec<Change>,
    /// Errors in the file, in the order of its lines.
    pub faults: Vec<Fault>,
    /// Valid settings that may be a mistake.
    pub warnings: Vec<String>,
    /// Peers whose SAs are set up again because of the changes.
    pub made_anew: Vec<String>,
}

/// One difference. Its `Display` output is a line of a diff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The key in dotted form; the name of a table that was added or removed as a whole.
    pub key: String,
    /// Kind of the difference.
    pub kind: ChangeKind,
    /// Old value; `None` for a secret or a whole table.
    pub before: Option<String>,
    /// New value; `None` for a secret or a whole table.
    pub after: Option<String>,
    /// Effect on running SAs.
    pub effect: Effect,
}

/// Kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The key is new.
    Added,
    /// The key was removed.
    Removed,
    /// The value changed.
    Changed,
}

/// Effect of a change on running SAs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// No SA is touched: the new value applies at once.
    Applied,
    /// SAs are rekeyed and stay up.
    Rekeyed,
    /// SAs are set up again.
    Anew,
    /// The change applies only after a restart of `stratad`.
    Restart,
}

/// One error in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// The key in dotted form.
    pub key: String,
    /// Description of the error.
    pub message: String,
    /// Proposed change.
    pub fix: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match (self.effect, self.kind) {
            (Effect::Restart, _) => '!',
            (_, ChangeKind::Added) => '+',
            (_, ChangeKind::Removed) => '-',
            (_, ChangeKind::Changed) => '~',
        };
        write!(f, "{sign} {}", self.key)?;
        match (self.kind, &self.before, &self.after) {
            (ChangeKind::Added | ChangeKind::Removed, ..) if self.effect != Effect::Restart => {
                return Ok(());
            }
            (ChangeKind::Added, ..) => f.write_str(" added")?,
            (ChangeKind::Removed, ..) => f.write_str(" removed")?,
            (ChangeKind::Changed, Some(before), Some(after)) => write!(f, " {before} -> {after}")?,
            (ChangeKind::Changed, ..) => f.write_str(" changed")?,
        }
        f.write_str(match self.effect {
            Effect::Applied => " (applied)",
            Effect::Rekeyed => " (rekeys)",
            Effect::Anew => " (reconnects)",
            Effect::Restart => " (needs a restart)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(key: &str, kind: ChangeKind, effect: Effect) -> Change {
        Change {
            key: key.to_owned(),
            kind,
            before: None,
            after: None,
            effect,
        }
    }

    #[test]
    fn a_change_is_a_line_of_a_diff() {
        use {ChangeKind::*, Effect::*};
        let values = |before: &str, after: &str, change: Change| Change {
            before: Some(before.to_owned()),
            after: Some(after.to_owned()),
            ..change
        };
        let lines = [
            change("peer.bob", Added, Applied),
            change("peer.eve", Removed, Applied),
            values(
                "30s",
                "10s",
                change("peer.alice.liveness", Changed, Applied),
            ),
            change("peer.alice.psk", Changed, Anew),
            change("peer.alice.licences", Changed, Rekeyed),
            values("500", "501", change("listen.ike", Changed, Restart)),
            change("divert", Added, Restart),
            change("divert", Removed, Restart),
        ]
        .map(|change| change.to_string());
        let expected = [
            "+ peer.bob",
            "- peer.eve",
            "~ peer.alice.liveness 30s -> 10s (applied)",
            "~ peer.alice.psk changed (reconnects)",
            "~ peer.alice.licences changed (rekeys)",
            "! listen.ike 500 -> 501 (needs a restart)",
            "! divert added (needs a restart)",
            "! divert removed (needs a restart)",
        ];
        assert_eq!(lines, expected);
    }
}
