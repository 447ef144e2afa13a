//! Child SAs that the operator opened or closed, whether the IKE SA is up or not.
//!
//! Without a command of the operator, the configuration applies. Opening a child SA requests it,
//! even if the peer initiated the IKE SA. Closing one deletes it and refuses it to the peer.

use std::collections::BTreeMap;

/// Overrides, by the names of peer and child SA.
#[derive(Default)]
pub(crate) struct ChildOverrides(BTreeMap<(String, String), Override>);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Override {
    /// Keep it up.
    Open,
    /// Keep it down, and refuse it to the peer.
    Closed,
    /// We do not need it. The peer may request it.
    Released,
}

impl ChildOverrides {
    /// Returns true if the operator opened a child SA, false if closed or released, and `None`
    /// without a command. The first child SA alone has no commands.
    pub(crate) fn of(&self, peer: &str, child: Option<&str>) -> Option<bool> {
        self.get(peer, child)
            .map(|command| command == Override::Open)
    }

    /// Returns true if the peer may not have it either.
    pub(crate) fn is_closed(&self, peer: &str, child: Option<&str>) -> bool {
        self.get(peer, child) == Some(Override::Closed)
    }

    fn get(&self, peer: &str, child: Option<&str>) -> Option<Override> {
        let key = (peer.to_owned(), child?.to_owned());
        self.0.get(&key).copied()
    }

    pub(crate) fn insert(&mut self, peer: &str, child: &str, command: Override) {
        let key = (peer.to_owned(), child.to_owned());
        self.0.insert(key, command);
    }

    /// Reverts closed child SAs to the configuration.
    pub(crate) fn let_in(&mut self, peer: &str) {
        self.0
            .retain(|(of, _), command| of != peer || *command != Override::Closed);
    }

    pub(crate) fn retain(&mut self, keeps: impl Fn(&str, &str) -> bool) {
        self.0.retain(|(peer, child), _| keeps(peer, child));
    }
}
