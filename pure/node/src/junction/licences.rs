//! Grants: keys are distributed to licensed nodes, revoked and, as a licensed node, received.

use crate::config::Role;
use crate::grants::Gone;
use crate::node::Node;
use crate::{Dropped, Ending, Event, HeldGrant};
use crypto::Secret;
use esp::Unusable;
use model::{ChildSa, ChildSaId, Grant, Identity, IkeSaId, Instant};
use wire::ike::RefusalCode;

impl Node {
    /// Reports the licences of a child SA, if it has any.
    pub(super) fn licensed(&mut self, child: &ChildSa<Secret>) {
        let agreed = self.grants.of(child.id);
        let Some(csa) = agreed.filter(|csa| !csa.agreement.licences.is_empty()) else {
            return;
        };
        let lifetime = self
            .peer(&child.peer)
            .map_or_else(Default::default, |peer| {
                let mut beside = peer.children.iter();
                let own = beside.find(|policy| child.name.as_ref() == Some(&policy.name));
                own.map_or(peer.lifetimes.child, |policy| policy.lifetime)
            });
        self.events.push_back(Event::Licensed {
            sa: csa.name(),
            agreement: csa.agreement.clone(),
            lifetime,
        });
    }

    /// Reports the licences of ours that the peer does not accept.
    pub(super) fn not_licensed(&mut self, peer: Option<&str>, why: &ike::Refusal) {
        let Some(peer) = peer.and_then(|name| self.peer(name)) else {
            return;
        };
        let Role::Vpn { zones, .. } = &peer.role else {
            return;
        };
        let licences = match why {
            ike::Refusal::LicenceNotAccepted(licence) => std::slice::from_ref(licence),
            ike::Refusal::ZonesNotAgreed => &zones.licences[..],
            _ => return,
        };
        let told = licences.iter().filter_map(|licence| {
            let place = usize::from(licence.zone.0).checked_sub(1)?;
            Some(Event::NotLicensed {
                peer: peer.name.clone(),
                licence: licence.clone(),
                zone: zones.zones.get(place)?.0,
                why: why.to_string(),
            })
        });
        let told: Vec<_> = told.collect();
        self.events.extend(told);
    }

    /// Revokes the keys of a child SA that is gone.
    pub(super) fn revoke(&mut self, child: ChildSaId, why: Ending, now: Instant) {
        if let Some(gone) = self.grants.remove(child) {
            self.take_back(gone, &why, now);
        }
    }

    /// Notifies licensed nodes, and reports events, that licences ended.
    pub(crate) fn take_back(&mut self, gone: Gone, why: &Ending, now: Instant) {
        for name in gone.told {
            if let Some(sa) = self.established(&name) {
                self.ike.revoke(sa, gone.sa.csa, now);
            }
        }
        for (node, given) in gone.licensed {
            self.events.push_back(Event::GrantEnded {
                sa: gone.sa.clone(),
                node,
                given,
                why: why.clone(),
            });
        }
    }

    /// Sends a licensed node all grants that it is owed, if its IKE SA is up.
    pub(crate) fn distribute(&mut self, name: &str, now: Instant) {
        let Some(sa) = self.established(name) else {
            return;
        };
        for due in self.grants.take_pending(name, sa, self.grant_lifetime, now) {
            if !self.recording {
                self.ike.distribute(sa, due.grant, now);
                continue;
            }
            self.events.push_back(Event::Giving {
                sa: due.sa,
                node: due.node,
                rights: due.rights,
                lifetime: due.grant.lifetime,
                grant: due.grant.grant,
            });
            self.unrecorded.push((name.to_owned(), sa, due.grant));
        }
    }

    /// Handles a licensed node's answer to KEY_DISTRIBUTE. `refusal` is the reason if the node
    /// refused.
    pub(super) fn grant_answered(
        &mut self,
        sa: IkeSaId,
        csa: model::CsaId,
        refusal: Option<String>,
        now: Instant,
    ) {
        let Some(name) = self.name(sa) else { return };
        let answered = self.grants.answered(&name, csa, refusal.clone(), now);
        let Some((csa, node)) = answered else {
            return;
        };
        let rights = csa
            .licences(&node)
            .map(|licence| (licence.zone, licence.right))
            .collect();
        let sa = csa.name();
        self.events.push_back(match refusal {
            None => Event::Granted { sa, node, rights },
            Some(why) => Event::GrantRefused { sa, node, why },
        });
    }

    /// Handles KEY_DISTRIBUTE: usable keys take effect at once. If they are unusable, the keys that
    /// they would have renewed stay.
    pub(super) fn granted(
        &mut self,
        sa: IkeSaId,
        identity: Identity,
        grant: Grant<Secret>,
        now: Instant,
    ) {
        let Some(gateway) = self.name(sa) else { return };
        let (csa, number) = (grant.csa, grant.grant);
        let installed = self
            .transit
            .install(sa, gateway.clone(), identity, grant, now);
        let refusal = match installed {
            Ok(held) => {
                self.events.push_back(Event::GrantHeld(held));
                None
            }
            Err(unusable) => {
                self.events.push_back(Event::GrantUnusable {
                    gateway: gateway.clone(),
                    csa,
                    why: unusable.to_string(),
                });
                self.refused(Some(gateway), unusable.to_string(), now);
                Some(refusal_code(unusable))
            }
        };
        self.ike.answer_grant(sa, csa, number, refusal, now);
    }

    /// Handles a revocation by the gateway.
    pub(super) fn revoked(&mut self, sa: IkeSaId, csa: model::CsaId) {
        if let Some(held) = self.transit.revoke(sa, csa) {
            self.dropped(held, Dropped::Revoked);
        }
    }

    /// Handles the expiry of a grant. The gateway is notified, because otherwise it assumes that we
    /// hold the keys.
    pub(crate) fn expired(&mut self, held: HeldGrant, now: Instant) {
        let peer = self.peer(&held.gateway);
        let is_gateway = peer.is_some_and(|peer| peer.role == Role::Gateway);
        let sa = self.established(&held.gateway).filter(|_| is_gateway);
        if let Some(sa) = sa {
            self.ike.revoke(sa, held.csa, now);
        }
        self.dropped(held, Dropped::Expired);
    }

    /// Handles a notification that a licensed node has discarded a grant. The notification does not
    /// prove that the node cannot read any more.
    pub(super) fn given_back(&mut self, sa: IkeSaId, csa: model::CsaId, now: Instant) {
        let name = self.name(sa);
        if name.is_some_and(|name| self.grants.is_held(&name, csa)) {
            let why = "the node discarded the keys, as their lifetime was over there".to_owned();
            self.grant_answered(sa, csa, Some(why), now);
        }
    }

    pub(crate) fn dropped(&mut self, held: HeldGrant, why: Dropped) {
        self.events.push_back(Event::GrantDropped { held, why });
        self.tell_pairs();
    }

    pub(crate) fn tell_pairs(&mut self) {
        let pairs = std::iter::from_fn(|| self.transit.poll_event());
        self.events.extend(pairs);
    }
}

/// Returns the error code for a gateway whose grant cannot be used.
const fn refusal_code(why: Unusable) -> RefusalCode {
    match why {
        Unusable::Crowded => RefusalCode::TOO_MANY_GRANTS,
        Unusable::KeyLength
        | Unusable::NoAead
        | Unusable::Zones
        | Unusable::NoDesignatedZone
        | Unusable::Mode
        | Unusable::Spi => RefusalCode::INVALID_GRANT,
    }
}
