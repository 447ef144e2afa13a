//! Child SAs that the operator opened or closed, whether the IKE SA is up or not.
//!
//! Without a command of the operator, the configuration applies. Opening a child SA requests it,
//! even if the peer initiated the IKE SA. Closing one deletes it and refuses it to the peer.

use model::PeerId;
use std::collections::BTreeMap;

/// Overrides, by the peer and the name of the child SA.
#[derive(Default)]
pub(crate) struct ChildOverrides(BTreeMap<(PeerId, String), Override>);

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
    pub(crate) fn of(&self, peer: PeerId, child: Option<&str>) -> Option<bool> {
        self.get(peer, child)
            .map(|command| command == Override::Open)
    }

    /// Returns true if the peer may not have it either.
    pub(crate) fn is_closed(&self, peer: PeerId, child: Option<&str>) -> bool {
        self.get(peer, child) == Some(Override::Closed)
    }

    fn get(&self, peer: PeerId, child: Option<&str>) -> Option<Override> {
        self.0.get(&(peer, child?.to_owned())).copied()
    }

    pub(crate) fn insert(&mut self, peer: PeerId, child: &str, command: Override) {
        self.0.insert((peer, child.to_owned()), command);
    }

    /// Reverts closed child SAs to the configuration.
    pub(crate) fn let_in(&mut self, peer: PeerId) {
        self.0
            .retain(|(of, _), command| *of != peer || *command != Override::Closed);
    }

    pub(crate) fn retain(&mut self, keeps: impl Fn(PeerId, &str) -> bool) {
        self.0.retain(|(peer, child), _| keeps(*peer, child));
    }
}
