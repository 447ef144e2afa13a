//! The owners of a node's state. None of them knows the node.

use crate::effects::Turn;
use crate::licensing::Licensing;
use crate::mobile_ip::MobileIp;
use crate::transit::Transit;
use crate::tunnels::Tunnels;
use crypto::Rng;
use model::IkeSaId;

/// The owners, and the randomness that they share.
pub(crate) struct Owners {
    pub tunnels: Tunnels,
    pub licensing: Licensing,
    pub transit: Transit,
    pub mobile_ip: Option<MobileIp>,
    pub rng: Rng,
}

impl Owners {
    /// Has an IKE SA take the place of another with the same peer: everything goes by it, except
    /// the old SA's children and grants. Those stay until the old SA is down.
    pub fn go_by(&mut self, old: IkeSaId, sa: IkeSaId, peer: &str, turn: &mut Turn<'_>) {
        self.tunnels.go_by(sa, peer, turn);
        let distribution = self.licensing.distribution();
        distribution.go_by(old, peer, &self.tunnels, turn);
    }

    /// Issues pending tokens and presents received ones. Returns true if there were any.
    pub fn migrate(&mut self, turn: &mut Turn<'_>) -> bool {
        let Some(mobile_ip) = &mut self.mobile_ip else {
            return false;
        };
        self.licensing
            .migrate(mobile_ip, &self.tunnels, &mut self.rng, turn)
    }

    /// Follows the tunnels that may have moved. Returns true if there was any.
    pub fn follow(&mut self, turn: &mut Turn<'_>) -> bool {
        self.licensing
            .follow(&self.tunnels, self.mobile_ip.as_ref(), turn)
    }
}
