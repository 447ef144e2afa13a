//! The owners of a node's state. None of them knows the node.

use crate::Event;
use crate::config::PeerSettings;
use crate::effects::Turn;
use crate::licensing::Licensing;
use crate::mobile_ip::MobileIp;
use crate::naming::Naming;
use crate::path_mtu::{ChildSas, PathMtus};
use crate::ping::Pings;
use crate::transit::Transit;
use crate::tunnels::Tunnels;
use esp::Command;
use model::{IkeSaId, PeerId};

/// The owners.
pub(crate) struct Owners {
    pub tunnels: Tunnels,
    pub naming: Naming,
    /// The names of gateways to which peers redirected us.
    pub redirects: Naming,
    pub licensing: Licensing,
    pub transit: Transit,
    pub mobile_ip: Option<MobileIp>,
    pub path_mtus: PathMtus,
    pub pings: Pings,
}

impl Owners {
    /// Returns the owners of names: of peers, and of gateways to which they redirected us.
    pub const fn namings(&mut self) -> [&mut Naming; 2] {
        [&mut self.naming, &mut self.redirects]
    }

    /// Returns the owner of path MTUs, and the child SAs that it reads.
    pub const fn path_mtus(&mut self) -> (&mut PathMtus, ChildSas<'_>) {
        let sas = ChildSas {
            tunnels: &self.tunnels,
            licensing: &self.licensing,
        };
        (&mut self.path_mtus, sas)
    }

    /// Returns the owner of pings, and the child SAs that it reads.
    pub const fn pings(&mut self) -> (&mut Pings, ChildSas<'_>) {
        let sas = ChildSas {
            tunnels: &self.tunnels,
            licensing: &self.licensing,
        };
        (&mut self.pings, sas)
    }

    /// Passes on an event of Mobile IP. Returns true if there was one.
    pub fn note_mobile_ip(&mut self, turn: &mut Turn<'_>) -> bool {
        let part = self.mobile_ip.as_mut();
        let Some(event) = part.and_then(|part| part.poll_event(turn)) else {
            return false;
        };
        self.licensing.note_mobile_ip(&event);
        turn.add(Event::MobileIp(event));
        true
    }

    /// Has an IKE SA take the place of another with the same peer: everything goes by it, except
    /// the old SA's children and grants. Those stay until the old SA is down.
    pub fn go_by(&mut self, old: IkeSaId, sa: IkeSaId, peer: PeerId, turn: &mut Turn<'_>) {
        self.tunnels.go_by(sa, peer, turn);
        let distribution = self.licensing.distribution();
        distribution.go_by(old, peer, &self.tunnels, turn);
    }

    /// Adds a user with the settings of its table.
    pub fn user_entered(&mut self, peer: PeerId, settings: PeerSettings, turn: &mut Turn<'_>) {
        let PeerSettings {
            packets,
            cover,
            places,
            // A user is not initiated.
            host: _,
            port: _,
        } = settings;
        turn.add(Command::Settings(peer, packets));
        self.tunnels.user_entered(peer, cover, packets.level);
        self.licensing.placement().set_place(peer, places);
    }

    /// Forgets a user.
    pub fn user_left(&mut self, peer: PeerId, turn: &mut Turn<'_>) {
        turn.add(Command::Settings(peer, esp::PeerSettings::default()));
        self.tunnels.user_left(peer);
        self.licensing.placement().set_place(peer, None);
    }

    /// Reviews live paths, and asks for signs of life there. Returns true if there is anything to
    /// carry out.
    pub fn review_paths(&mut self, turn: &mut Turn<'_>) -> bool {
        let licensing = &self.licensing;
        let slots = |peer| licensing.slots(peer);
        let any = self.tunnels.review_paths(slots, turn);
        let due = self.tunnels.live().take_pings();
        let (pings, sas) = self.pings();
        due.into_iter().for_each(|child| pings.check(child, sas));
        any
    }

    /// Issues pending tokens and presents received ones. Returns true if there were any.
    pub fn migrate(&mut self, turn: &mut Turn<'_>) -> bool {
        let Some(mobile_ip) = &mut self.mobile_ip else {
            return false;
        };
        self.licensing.migrate(mobile_ip, &self.tunnels, turn)
    }

    /// Follows the tunnels that may have moved. Returns true if there was any.
    pub fn follow(&mut self, turn: &mut Turn<'_>) -> bool {
        self.licensing
            .follow(&self.tunnels, self.mobile_ip.as_ref(), turn)
    }
}
