//! Differences between two configurations, and their effects.

use crate::address::without_link;
use crate::keys::{Effect, Section, Setting, Shown, sections};
use crate::{Config, Listen, Sessions, Tunnel};
use std::collections::BTreeMap;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key in dotted form, or a table's name if the whole table was added or removed.
    pub key: String,
    /// The kind of change.
    pub what: What,
    /// The action that the change needs.
    pub effect: Effect,
}

/// The kind of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The key is new.
    Added,
    /// The key was removed.
    Removed,
    /// The value changed.
    Changed {
        /// The old value.
        before: String,
        /// The new value.
        after: String,
    },
    /// The value of a secret changed.
    SecretChanged,
}

impl Config {
    /// Returns the changes towards `new`, in the order of the tables. Two files with the same
    /// meaning do not differ.
    pub fn diff(&self, new: &Self) -> Vec<Change> {
        let (old, new) = (sections(self), sections(new));
        let (of_old, of_new) = (by_name(&old), by_name(&new));
        let is_gone = |section: &&Section| !of_new.contains_key(section.name.as_str());
        let gone = old.iter().filter(is_gone);
        let gone = gone.map(|section| section.as_a_whole(What::Removed));
        let others = new
            .iter()
            .flat_map(|section| match of_old.get(section.name.as_str()) {
                None => vec![section.as_a_whole(What::Added)],
                Some(old) => old.diff(section),
            });
        gone.chain(others).collect()
    }

    /// Returns this configuration with the running daemon's values for all keys that need a
    /// restart.
    #[must_use]
    pub fn keeping(self, running: &Self) -> Self {
        Self {
            tunnel: Tunnel {
                clamp: self.tunnel.clamp,
                path_mtu: self.tunnel.path_mtu,
                dns: self.tunnel.dns,
                resolve_via: self.tunnel.resolve_via,
                ..running.tunnel.clone()
            },
            aead: running.aead,
            socket: running.socket.clone(),
            readers: running.readers.clone(),
            store: running.store.clone(),
            sessions: Sessions {
                file: running.sessions.file.clone(),
                crash_tokens: running.sessions.crash_tokens,
                ..self.sessions
            },
            listen: Listen {
                fragment: self.listen.fragment,
                ..running.listen.clone()
            },
            divert: running.divert.clone(),
            mobility: running.mobility.clone(),
            ..self
        }
    }
}

/// Returns sections by their names: a file may have 100,000. Of two with one name, the first
/// counts.
fn by_name(sections: &[Section]) -> BTreeMap<&str, &Section> {
    let named = sections.iter().rev();
    named.map(|one| (one.name.as_str(), one)).collect()
}

impl Section {
    fn as_a_whole(&self, what: What) -> Change {
        Change {
            key: self.name.clone(),
            what,
            effect: self.whole.unwrap_or(Effect::Applied),
        }
    }

    /// Compares two sections, which have the same keys in the same order.
    fn diff(&self, new: &Self) -> Vec<Change> {
        let pairs = self.settings.iter().zip(&new.settings);
        let changed = pairs.filter(|(old, new)| old.value != new.value);
        changed
            .map(|(old, new)| Change {
                key: self.dotted(new),
                what: old.value.change(&new.value),
                effect: old.effect_of(new),
            })
            .collect()
    }

    /// Returns the full name of one of the section's keys.
    pub(crate) fn dotted(&self, setting: &Setting) -> String {
        match setting.key {
            "" => self.name.clone(),
            key => format!("{}.{key}", self.name),
        }
    }
}

impl Setting {
    /// Returns the effect of another value. SAs know an address without the interface of its link,
    /// which therefore applies at once.
    fn effect_of(&self, new: &Self) -> Effect {
        match (&self.value, &new.value) {
            (Shown::Text(before), Shown::Text(after))
                if new.key == "address" && without_link(before) == without_link(after) =>
            {
                Effect::Applied
            }
            _ => new.effect,
        }
    }
}

impl Shown {
    fn change(&self, new: &Self) -> What {
        match (self, new) {
            (Self::Text(before), Self::Text(after)) => What::Changed {
                before: before.clone(),
                after: after.clone(),
            },
            _ => What::SecretChanged,
        }
    }
}
