//! `strata reload`: what the file says otherwise than before, and what became of it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A file that was read again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reload {
    /// The file.
    pub file: String,
    /// Whether the changes were carried out: not if there are faults, and not if nobody asked.
    pub applied: bool,
    /// What is different, in the order of the tables.
    pub changes: Vec<Change>,
    /// What is wrong with the file, in the order of its lines.
    pub faults: Vec<Fault>,
    /// What is legal, but may not be meant.
    pub warnings: Vec<String>,
    /// Peers whose SAs are being made anew for it.
    pub made_anew: Vec<String>,
}

/// One difference. Its text is a line of a diff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The key in dotted form; a table's name if it came or went as a whole.
    pub key: String,
    /// What happened to it.
    pub kind: ChangeKind,
    /// What it was; left out if it is a secret.
    pub before: Option<String>,
    /// What it is; left out if it is a secret.
    pub after: Option<String>,
    /// What it needs.
    pub effect: Effect,
}

/// What happened to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It has another value.
    Changed,
}

/// What a change needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing: it holds at once.
    Applied,
    /// SAs get new keys, and go on.
    Rekeyed,
    /// SAs are made anew.
    Anew,
    /// stratad has to be started again.
    Restart,
}

/// One thing that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// The key in dotted form.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to change.
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
            Effect::Rekeyed => " (by new keys)",
            Effect::Anew => " (made anew)",
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
            "~ peer.alice.psk changed (made anew)",
            "~ peer.alice.licences changed (by new keys)",
            "! listen.ike 500 -> 501 (needs a restart)",
            "! divert added (needs a restart)",
            "! divert removed (needs a restart)",
        ];
        assert_eq!(lines, expected);
    }
}
