//! What is different between two configurations, and what that needs.

use crate::setting::{Effect, Section, Setting, Value, sections};
use crate::{Config, Listen, Tunnel};

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key in dotted form; a table's name if it came or went as a whole.
    pub key: String,
    /// What happened to it.
    pub what: What,
    /// What that needs.
    pub effect: Effect,
}

/// What happened to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It has another value.
    Changed {
        /// What it was.
        before: String,
        /// What it is.
        after: String,
    },
    /// It has another value that nobody is shown.
    SecretChanged,
}

impl Config {
    /// What is different in `new`, in the order of the tables. Two files that say the same in other
    /// words do not differ.
    pub fn diff(&self, new: &Self) -> Vec<Change> {
        let (old, new) = (sections(self), sections(new));
        let find = |name: &str, among: &[Section]| among.iter().position(|s| s.name == name);
        let gone = old
            .iter()
            .filter(|section| find(&section.name, &new).is_none());
        let gone = gone.map(|section| section.as_a_whole(What::Removed));
        let others = new
            .iter()
            .flat_map(|section| match find(&section.name, &old) {
                None => vec![section.as_a_whole(What::Added)],
                Some(index) => old[index].diff(section),
            });
        gone.chain(others).collect()
    }

    /// This configuration as far as it can hold without a restart of a daemon that runs with
    /// another one.
    #[must_use]
    pub fn keeping(self, running: &Self) -> Self {
        Self {
            tunnel: Tunnel {
                clamp: self.tunnel.clamp,
                path_mtu: self.tunnel.path_mtu,
                dns: self.tunnel.dns,
                ..running.tunnel.clone()
            },
            aead: running.aead,
            socket: running.socket.clone(),
            store: running.store.clone(),
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

impl Section {
    fn as_a_whole(&self, what: What) -> Change {
        Change {
            key: self.name.clone(),
            what,
            effect: self.whole.unwrap_or(Effect::Applied),
        }
    }

    /// Both have the same keys, in the same order.
    fn diff(&self, new: &Self) -> Vec<Change> {
        let pairs = self.settings.iter().zip(&new.settings);
        let changed = pairs.filter(|(old, new)| old.value != new.value);
        changed
            .map(|(old, new)| Change {
                key: self.dotted(new),
                what: old.value.change(&new.value),
                effect: new.effect,
            })
            .collect()
    }

    /// The whole name of one of its keys.
    pub(crate) fn dotted(&self, setting: &Setting) -> String {
        match setting.key.as_str() {
            "" => self.name.clone(),
            key => format!("{}.{key}", self.name),
        }
    }
}

impl Value {
    fn change(&self, new: &Self) -> What {
        match (self, new) {
            (Self::Shown(before), Self::Shown(after)) => What::Changed {
                before: before.clone(),
                after: after.clone(),
            },
            _ => What::SecretChanged,
        }
    }
}
