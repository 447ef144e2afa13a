//! Joins the engines and the owners: events of engines go to owners, and effects of owners to
//! engines. This is the only place that polls engines for events, and the only one that carries out
//! effects. What concerns several owners is put together here, step by step.

use crate::config::{Config, Role, bypassed, spd};
use crate::effects::{Effect, IkeCommand, Turn};
use crate::licensing::distribution::report_not_licensed;
use crate::licensing::{Licensed, licensed};
use crate::node::Node;
use crate::owners::Owners;
use crate::path_mtu::{ChildSas, PathMtus};
use crate::ping::Pings;
use crate::status::ChildStatus;
use crate::tunnels::children::Child;
use crate::tunnels::moving::Goal;
use crate::{CannotMove, Cause, Dropped, Ending, Event, HeldGrant};
use crypto::Secret;
use esp::{Command, Report};
use ike::{NotHandedOver, is_slot, path_of};
use model::{ChildSa, ChildSaId, IkeSaId, Instant, Path, PeerId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Node {
    /// Turns the events of the engines into commands for each other.
    pub(crate) fn drain(&mut self, now: Instant) {
        while let Some(report) = self.plane.poll_report() {
            self.handle_report(report, now);
        }
        loop {
            while let Some(event) = self.ike.poll_event() {
                self.handle_ike(event, now);
            }
            let stepped = self.turn(now, |own, turn| own.tunnels.moving().take_steps(turn));
            if stepped || self.hand_over_late(now) {
                continue;
            }
            if self.turn(now, Owners::note_mobile_ip) {
                continue;
            }
            if self.turn(now, Owners::migrate) {
                continue;
            }
            self.switch(now);
            // The slot of the place where a tunnel is now is known before its paths are reviewed.
            if self.turn(now, Owners::follow) {
                continue;
            }
            if !self.turn(now, Owners::review_paths) {
                break;
            }
        }
        while let Some(transmit) = self.ike.poll_transmit() {
            self.transmits.push_back(transmit);
        }
    }

    /// Has owners do something, and carries out the effects.
    pub(crate) fn turn<T>(
        &mut self,
        now: Instant,
        task: impl FnOnce(&mut Owners, &mut Turn<'_>) -> T,
    ) -> T {
        let mut turn = Turn::new(&self.ike, &self.plane, &mut self.rng, now);
        let done = task(&mut self.own, &mut turn);
        for effect in turn.effects {
            self.carry_out(effect, now);
        }
        done
    }

    /// Has path MTU discovery do something, and carries out the effects.
    pub(crate) fn path_mtus<T>(
        &mut self,
        now: Instant,
        task: impl FnOnce(&mut PathMtus, ChildSas<'_>, &mut Turn<'_>) -> T,
    ) -> T {
        self.turn(now, |own, turn| {
            let (path_mtus, sas) = own.path_mtus();
            task(path_mtus, sas, turn)
        })
    }

    /// Has the owner of pings do something, and carries out the effects.
    pub(crate) fn pings<T>(
        &mut self,
        now: Instant,
        task: impl FnOnce(&mut Pings, ChildSas<'_>, &mut Turn<'_>) -> T,
    ) -> T {
        self.turn(now, |own, turn| {
            let (pings, sas) = own.pings();
            task(pings, sas, turn)
        })
    }

    fn carry_out(&mut self, effect: Effect, now: Instant) {
        match effect {
            Effect::Ike(command) => self.command(command, now),
            Effect::Plane(command) => self.plane.apply(command),
            Effect::Event(event) => self.events.push_back(event),
            Effect::Refused(peer, why) => self.refused(peer, why, now),
            Effect::Prefer(child) => self.prefer(child),
            Effect::Check(peer) => self.own.licensing.placement().stir(peer),
            Effect::ReviewPaths(peer) => self.own.tunnels.live().stir(peer),
            Effect::NotStarted(peer, why) => self.own.tunnels.not_started(peer, why, now),
            Effect::NotFollowed(peer, why) => self.not_followed(peer, why, now),
        }
    }

    fn command(&mut self, command: IkeCommand, now: Instant) {
        let ike = &mut self.ike;
        match command {
            IkeCommand::RekeyChild(sa, child) => ike.rekey_child(sa, child, now),
            IkeCommand::ReplaceChild(sa, child) => ike.replace_child(sa, child, now),
            IkeCommand::AnswerGrant {
                sa,
                csa,
                number,
                refusal,
            } => ike.answer_grant(sa, csa, number, refusal, now),
            IkeCommand::Revoke(sa, csa) => ike.revoke(sa, csa, now),
            IkeCommand::Distribute(sa, grant) => ike.distribute(sa, *grant, now),
            IkeCommand::TellNeighbours(sa, nodes) => ike.tell_neighbours(sa, nodes, now),
            IkeCommand::RequestKeys(sa, token) => ike.request_keys(sa, token, now),
            IkeCommand::AnswerRequest(sa, nonce, answer) => {
                ike.answer_request(sa, nonce, &answer, now);
            }
            // An SA that is just being deleted does not move any more.
            IkeCommand::MoveTo(sa, path) => drop(ike.move_to(sa, path, now)),
            IkeCommand::Probe(sa, path) => ike.probe(sa, path, now),
            IkeCommand::Measure(sa, path) => ike.measure(sa, path, now),
            IkeCommand::AddPath(sa, path) => ike.add_path(sa, path, now),
            IkeCommand::RemovePath(sa, number) => ike.remove_path(sa, number, now),
            IkeCommand::AddPathTraffic(sa, number, rule) => {
                ike.add_path_traffic(sa, number, rule, now);
            }
            IkeCommand::RemovePathTraffic(sa, number) => {
                ike.remove_path_traffic(sa, number, now);
            }
            IkeCommand::Hasten => ike.hasten(now),
            IkeCommand::Doubt(sa) => ike.doubt(sa, now),
            IkeCommand::NoteInbound(sa, at) => ike.note_inbound(sa, at),
            IkeCommand::NoteNewest(sa, stray) => ike.note_newest(sa, stray),
            IkeCommand::Meter(sa, children) => ike.meter(sa, children, now),
            IkeCommand::AskPingCounts(sa, question) => ike.ask_ping_counts(sa, question, now),
            IkeCommand::NotePings(sa, more) => ike.note_pings(sa, more),
            // A slot may be gone from the configuration.
            IkeCommand::OpenSlot { peer, slot } => drop(ike.open_child(peer, &slot, now)),
            IkeCommand::ReleaseSlot { peer, slot } => drop(ike.release_child(peer, &slot, now)),
        }
    }

    fn handle_ike(&mut self, event: ike::Event, now: Instant) {
        match event {
            ike::Event::UserEntered { peer, table, name } => {
                Arc::make_mut(&mut self.names).enter_user(peer, &name);
                let settings = self.tables.of(table);
                self.turn(now, |own, turn| own.user_entered(peer, settings, turn));
            }
            ike::Event::UserLeft { peer } => {
                Arc::make_mut(&mut self.names).leave(peer);
                self.turn(now, |own, turn| own.user_left(peer, turn));
            }
            ike::Event::IkeUp {
                sa, peer, resumed, ..
            } => self.turn(now, |own, turn| {
                if resumed {
                    turn.add(Event::Resumed { peer });
                }
                let is_new = own.tunnels.ike_up(sa, peer, turn);
                own.namings()
                    .into_iter()
                    .for_each(|naming| naming.up(peer, sa, turn));
                own.licensing.ike_up(sa, peer, is_new, &own.tunnels, turn);
            }),
            ike::Event::Answered { sa, peer } => self.own.tunnels.answered(peer, sa),
            ike::Event::IkeReplaced {
                old,
                sa,
                peer,
                resumed,
            } => self.turn(now, |own, turn| {
                own.tunnels.keys().ike(sa, turn);
                own.go_by(old, sa, peer, turn);
                turn.add(match resumed {
                    true => Event::Resumed { peer },
                    false => Event::Reauthenticated { peer },
                });
            }),
            ike::Event::IkeCloned { old, sa, peer } => {
                self.turn(now, |own, turn| own.tunnels.ike_cloned(old, sa, peer, turn));
            }
            ike::Event::IkeHandedOver { old, sa, peer } => self.turn(now, |own, turn| {
                own.tunnels.handed_over(old, sa, peer);
                own.go_by(old, sa, peer, turn);
                if let Some(path) = turn.ike.sa(sa).map(|sa| sa.path) {
                    turn.add(Event::HandedOver { peer, path });
                }
            }),
            ike::Event::Redirected { old, sa, peer, to } => {
                self.begun_instead(old, sa, peer, now);
                self.events.push_back(Event::Redirected { peer, to });
            }
            ike::Event::RedirectedToName { peer, name, .. } => {
                self.turn(now, |own, turn| own.redirects.seek(peer, name, turn));
            }
            ike::Event::FellBack { old, sa, peer, to } => {
                self.begun_instead(old, sa, peer, now);
                self.events.push_back(Event::FellBack { peer, to });
            }
            ike::Event::NotResumed { old, sa, peer } => {
                self.begun_instead(old, sa, peer, now);
                self.events.push_back(Event::NotResumed { peer });
            }
            ike::Event::IkeDown { sa, peer, why } => self.ike_down(sa, peer, &why, now),
            ike::Event::Configured { sa, peer, inside } => self.turn(now, |own, turn| {
                own.tunnels.configured(sa, peer, inside, turn);
            }),
            ike::Event::ChildUp(child) => self.child_up(*child, now),
            ike::Event::ChildRekeyed { old, new } => self.child_rekeyed(old, *new, now),
            ike::Event::ChildAssured { child } => self.own.tunnels.confirm(child),
            ike::Event::ChildRetired { child } => self.child_retired(child, now),
            ike::Event::PingCounts {
                sa,
                question,
                counts,
            } => self.pings(now, |pings, _, turn| {
                pings.handle_counts(sa, question, counts, turn);
            }),
            ike::Event::IkeRekeyed { sa, peer } => self.turn(now, |own, turn| {
                own.tunnels.ike_rekeyed(sa, peer, turn);
            }),
            ike::Event::ChildDown { child, why } => {
                let deleted = || Ending::Down("the tunnel was deleted".to_owned().into());
                self.child_down(child, why.as_ref().map_or_else(deleted, Ending::from), now);
            }
            ike::Event::Granted { sa, gateway, grant } => self.turn(now, |own, turn| {
                let Some(peer) = turn.peer(sa) else { return };
                let (csa, number) = (grant.csa, grant.grant);
                let refusal = own.transit.granted(sa, peer, gateway, grant, turn);
                turn.add(IkeCommand::AnswerGrant {
                    sa,
                    csa,
                    number,
                    refusal,
                });
            }),
            ike::Event::Mobile {
                sa,
                decides: true,
                path,
                addresses,
            } => self.turn(now, |own, turn| {
                own.tunnels.moving().mobile(sa, path, addresses, turn);
            }),
            // The other end tracks our addresses.
            ike::Event::Mobile { decides: false, .. } => {}
            ike::Event::PathMoved { sa, children, path } => {
                self.path_moved(sa, &children, path, now);
            }
            ike::Event::PathSilent { sa, .. } => self.own.tunnels.moving().path_silent(sa, now),
            ike::Event::PathAnswers { sa, path } => {
                self.own.tunnels.moving().path_answers(sa, path, now);
            }
            ike::Event::PathMeasured { sa, path, measured } => {
                self.own.tunnels.moving().measured(sa, path, measured, now);
            }
            ike::Event::NotHandedOver { sa, why } => {
                self.own.tunnels.moving().not_handed_over(sa, why, now);
            }
            ike::Event::PathProved { sa, number } => self.turn(now, |own, turn| {
                own.tunnels.path_proved(sa, number, turn);
            }),
            ike::Event::PathNotAdded { sa, path, full } => self.turn(now, |own, turn| {
                if let Some(peer) = turn.peer(sa) {
                    own.tunnels.live().not_added(peer, path, full, turn.now);
                }
            }),
            ike::Event::PathLeft { sa } => self.turn(now, |own, turn| {
                if let Some(peer) = turn.peer(sa) {
                    own.tunnels.live().path_left(peer);
                }
            }),
            ike::Event::MoveRefused { sa, .. } => self.own.tunnels.moving().move_refused(sa, now),
            ike::Event::GrantAccepted { sa, csa, .. } => self.turn(now, |own, turn| {
                let distribution = own.licensing.distribution();
                distribution.answered(sa, csa, None, turn);
            }),
            ike::Event::GrantRefused { sa, csa, why, .. } => self.turn(now, |own, turn| {
                let distribution = own.licensing.distribution();
                distribution.answered(sa, csa, Some(why.into()), turn);
            }),
            ike::Event::Revoked { sa, csa } => {
                self.turn(now, |own, turn| own.transit.revoke(sa, csa, turn));
            }
            ike::Event::GivenBack { sa, csa } => self.turn(now, |own, turn| {
                own.licensing.distribution().given_back(sa, csa, turn);
            }),
            ike::Event::Placed { peer, node, place } => {
                self.own.licensing.placement().learn(peer, node, place);
            }
            ike::Event::Neighbours { node, neighbours } => {
                let placement = self.own.licensing.placement();
                placement.note_neighbours(node, neighbours);
            }
            ike::Event::KeysAsked { sa, node, token } => self.turn(now, |own, turn| {
                let migration = own.licensing.migration();
                migration.keys_asked(sa, node, &token, &own.transit, turn);
            }),
            ike::Event::KeysAnswered { sa, token, answer } => self.turn(now, |own, turn| {
                let migration = own.licensing.migration();
                migration.keys_answered(sa, &token, answer, &mut own.transit, turn);
            }),
            ike::Event::Displaced { peer, old, new } => self.turn(now, |own, turn| {
                own.tunnels.displaced(peer, old, new, turn);
            }),
            ike::Event::Refused { peer, from, why } => self.turn(now, |own, turn| {
                let peer = peer.or_else(|| own.tunnels.claimed(&why, turn.ike));
                if let Some(peer) = peer {
                    report_not_licensed(peer, &why, turn);
                    own.tunnels.retry_beside(peer, turn);
                }
                own.tunnels.refused(peer, from, why.into(), turn);
            }),
        }
    }

    /// Records that a redirect is not followed. The attempt or the IKE SA that it was on continues,
    /// unless the gateway has ended it.
    fn not_followed(&mut self, peer: PeerId, why: Cause, now: Instant) {
        let is_left = |sa: ike::SaStatus| sa.state != ike::SaState::Closing;
        let continues = self.ike.sas_of(peer).any(is_left);
        match continues {
            true => self.refused(Some(peer), why, now),
            false => self.own.tunnels.not_started(peer, why, now),
        }
    }

    /// Records that an initiation continues on another IKE SA.
    fn begun_instead(&mut self, old: IkeSaId, sa: IkeSaId, peer: PeerId, now: Instant) {
        self.own.tunnels.begun_instead(old, sa, peer, now);
        self.own.naming.replaced(peer, old, sa);
    }

    fn handle_report(&mut self, report: Report, now: Instant) {
        let peer_of = |id| {
            let child = self.own.tunnels.children().get(id)?;
            Some((child.ike, child.peer, child.status.name.clone()))
        };
        match report {
            Report::RekeySoon(id) => {
                if let Some((ike, ..)) = peer_of(id) {
                    self.ike.rekey_child(ike, id, now);
                }
            }
            Report::Confirmed(id) => {
                let of = peer_of(id);
                self.own.tunnels.confirm(id);
                if let Some((ike, ..)) = of {
                    self.ike.note_inbound(ike, now);
                }
            }
            // Nothing goes to an address that has not answered, not even an answer.
            Report::Probe(id, _) if self.own.tunnels.is_unproved(id) => {}
            Report::Probe(id, probe) if probe.kind.is_of_mtu() => {
                self.path_mtus(now, |path_mtus, sas, turn| {
                    path_mtus.handle_probe(id, probe, sas, turn);
                });
            }
            Report::Probe(id, ping) => {
                self.pings(now, |pings, sas, turn| pings.handle(id, ping, sas, turn));
            }
            Report::Sends(id) => {
                self.path_mtus(now, |path_mtus, sas, turn| path_mtus.sends(id, sas, turn));
                self.own.tunnels.sends(id, now);
            }
            Report::Strays(id, from, octets) => {
                if let Some((ike, _, name)) = peer_of(id) {
                    match path_of(name.as_deref()) {
                        Some(number @ 2..) => self.ike.note_path_stray(ike, number, from, now),
                        Some(_) | None => self.ike.note_stray(ike, from, octets, now),
                    }
                }
            }
            Report::Unknown(spi, path, octets) => {
                self.ike.handle_unknown_spi(spi, path, octets, now);
            }
            Report::UnusedEcn(id) => {
                let event = peer_of(id).map(|(_, peer, child)| Event::EcnUnused { peer, child });
                self.events.extend(event);
            }
            Report::Unpadded(id) => {
                let event = peer_of(id).map(|(_, peer, child)| Event::Unpadded { peer, child });
                self.events.extend(event);
            }
            Report::LevelSpent(id) => {
                let event = peer_of(id).map(|(_, peer, child)| Event::LevelSpent { peer, child });
                self.events.extend(event);
            }
            Report::ClearLow(peer) => {
                self.events.push_back(Event::UnencryptedLow { peer });
                self.ike.end_unencrypted(peer, now);
            }
            Report::LevelRefused(id) => {
                let event = peer_of(id).map(|(_, peer, child)| Event::LevelRefused { peer, child });
                self.events.extend(event);
            }
        }
    }

    /// Records a refusal or failure of a peer, or of an unknown one.
    pub(crate) fn refused(&mut self, peer: Option<PeerId>, why: impl Into<Cause>, now: Instant) {
        let why = why.into();
        self.turn(now, |own, turn| own.tunnels.refused(peer, None, why, turn));
    }

    fn ike_down(&mut self, sa: IkeSaId, peer: PeerId, why: &ike::DownReason, now: Instant) {
        for child in self.own.tunnels.children_on(peer, sa) {
            self.child_down(child, why.into(), now);
        }
        self.turn(now, |own, turn| {
            own.transit.gateway_lost(sa, turn);
            let distribution = own.licensing.distribution();
            distribution.node_lost(sa, why, &own.tunnels, turn);
            own.tunnels.ike_down(sa, peer, why, turn);
            let is_over = own.tunnels.current(peer).is_none();
            own.naming.failed(peer, sa, is_over);
            distribution.distribute(peer, &own.tunnels, turn);
        });
    }

    fn child_up(&mut self, child: ChildSa<Secret>, now: Instant) {
        let id = child.id;
        let sends = self.turn(now, |own, turn| own.tunnels.child_up(&child, turn));
        self.install(child, None, now);
        if sends {
            self.prefer(id);
        }
    }

    fn child_rekeyed(&mut self, old: ChildSaId, child: ChildSa<Secret>, now: Instant) {
        let id = child.id;
        self.turn(now, |own, turn| {
            own.tunnels.child_rekeyed(old, &child, turn)
        });
        self.install(child, Some(old), now);
        self.turn(now, |own, turn| {
            let distribution = own.licensing.distribution();
            distribution.limit_others(id, &own.tunnels, turn);
        });
    }

    fn child_retired(&mut self, old: ChildSaId, now: Instant) {
        if let Some(new) = self.own.tunnels.heir_of(old) {
            self.prefer(new);
        }
        self.turn(now, |own, turn| own.tunnels.child_retired(old, turn));
    }

    /// Starts sending on the successors that peers and licensed nodes are ready for.
    fn switch(&mut self, now: Instant) {
        let licensing = &self.own.licensing;
        let settled = |id| licensing.settled(id);
        for id in self.own.tunnels.take_ready(settled, now) {
            self.prefer(id);
        }
    }

    /// Returns true if the SA is not deleted, and no node without a licence could read its payload.
    pub(crate) fn may_be_sent_on(&self, id: ChildSaId) -> bool {
        self.own.licensing.may_be_sent_on(id, &self.own.tunnels)
    }

    /// Starts sending on a child SA. A slot sends only where its node is, and then before the first
    /// child.
    fn prefer(&mut self, id: ChildSaId) {
        if self.own.tunnels.is_unproved(id) {
            return;
        }
        self.own.tunnels.settle(id);
        let Some(child) = self.own.tunnels.children().get(id) else {
            return;
        };
        if is_slot(child.status.name.as_deref()) {
            return self.own.licensing.placement().stir(child.peer);
        }
        if self.own.tunnels.is_off(id) {
            return;
        }
        if self.may_be_sent_on(id) {
            self.plane.apply(Command::Prefer(id));
        }
        let is_off = |slot: &ChildSaId| self.own.tunnels.is_off(*slot);
        let slot = self.own.licensing.sent_on(child.peer);
        let slot = slot.filter(|slot| !is_off(slot));
        if let Some(slot) = slot.filter(|slot| self.may_be_sent_on(*slot)) {
            self.plane.apply(Command::Prefer(slot));
        }
    }

    /// Installs a child SA everywhere. Packets that arrive on it are opened from now on.
    fn install(&mut self, child: ChildSa<Secret>, old: Option<ChildSaId>, now: Instant) {
        let nodes = self.turn(now, |own, turn| {
            own.tunnels.keys().child(&child, turn);
            own.licensing.enter(&child, old, turn)
        });
        let status = ChildStatus::new(&child);
        let (id, peer, ike) = (child.id, child.peer, child.ike);
        let zoned = child.agreement.is_some();
        if let Err(unusable) = self.plane.install(child) {
            self.refused(Some(peer), unusable.to_string(), now);
            return self.ike.close(ike, now);
        }
        self.plane.apply(Command::Watch(id));
        let child = Child {
            peer,
            ike,
            heard: None,
            retired: false,
            status,
        };
        self.turn(now, |own, turn| own.tunnels.insert(id, child, turn));
        self.path_mtus(now, |path_mtus, sas, turn| {
            path_mtus.measure(id, None, sas, turn);
        });
        // An SA without zones has no grants.
        if zoned {
            self.turn(now, |own, turn| {
                own.licensing.installed(id, &nodes, &own.tunnels, turn);
            });
        }
    }

    fn child_down(&mut self, id: ChildSaId, why: Ending, now: Instant) {
        let heir = self.own.tunnels.heir_of(id);
        if let Some(new) = heir {
            self.prefer(new);
        }
        let before = self.own.tunnels.end_succession(id);
        self.turn(now, |own, turn| own.tunnels.count_traffic(id, turn));
        self.plane.apply(Command::Remove(id));
        let replaced = self.own.tunnels.is_replaced(id);
        let why = if replaced { Ending::Rekeyed } else { why };
        self.turn(now, |own, turn| {
            let distribution = own.licensing.distribution();
            distribution.revoke(id, &why, &own.tunnels, turn);
        });
        let Some(child) = self.own.tunnels.remove(id) else {
            return;
        };
        let _presumption = self.own.path_mtus.leave(id, child.status.path);
        self.own.licensing.placement().forget(child.peer, id);
        // An SA that was replaced is not missing. Neither is an SA whose predecessor or successor
        // still exists.
        let missed = !replaced && heir.or(before).is_none();
        if missed && !self.own.tunnels.is_relieved(&child) {
            self.events.push_back(Event::ChildDown {
                peer: child.peer,
                child: child.status.name,
            });
        }
    }

    /// Has the children of an IKE SA take another path.
    fn path_moved(&mut self, sa: IkeSaId, children: &[ChildSaId], path: Path, now: Instant) {
        for id in children {
            let before = self.own.tunnels.children().get(*id);
            let before = before.map(|child| child.status.path);
            let presumed = before.and_then(|before| self.own.path_mtus.leave(*id, before));
            self.plane.apply(Command::Move(*id, path));
            self.own.tunnels.move_child(*id, path);
            self.path_mtus(now, |path_mtus, sas, turn| {
                path_mtus.measure(*id, presumed, sas, turn);
            });
        }
        self.turn(now, |own, turn| {
            let Some(peer) = turn.peer(sa) else { return };
            own.tunnels.live().path_moved(peer, children, now);
            turn.check(peer);
            if own.tunnels.are_on_further_path(children) {
                return own.licensing.path_moved(children, &own.tunnels, turn);
            }
            // A clone takes nothing with it yet.
            if own.tunnels.established(peer) == Some(sa) {
                turn.add(Event::PathMoved { peer, path });
            }
        });
    }

    /// Starts a hand-over, or has it wait while another one is under way. Returns its path, and
    /// true if it was started; `None` if it is no longer due.
    pub(crate) fn start_hand_over(
        &mut self,
        sa: IkeSaId,
        goal: Goal,
        now: Instant,
    ) -> Result<Option<(Path, bool)>, CannotMove> {
        let moving = self.own.tunnels.moving();
        let Some((path, next)) = moving.plan(sa, goal, now)? else {
            moving.give_up(sa);
            return Ok(None);
        };
        match self.ike.hand_over(sa, path, now) {
            Err(ike::CannotMove::UnderWay) => {
                moving.wait(sa, goal);
                Ok(Some((path, false)))
            }
            handed_over => {
                handed_over?;
                moving.started(sa, goal, next, now);
                Ok(Some((path, true)))
            }
        }
    }

    /// Starts hand-overs that are due. Returns true if any was started or refused.
    fn hand_over_late(&mut self, now: Instant) -> bool {
        let mut any = false;
        for (sa, goal) in self.own.tunnels.moving().late() {
            any |= match (self.start_hand_over(sa, goal, now), goal) {
                (Ok(started), _) => started.is_some_and(|(_, started)| started),
                (Err(_), Goal::Better(_) | Goal::Asked { or_hard: true, .. }) => {
                    let moving = self.own.tunnels.moving();
                    moving.give_up(sa);
                    moving.not_handed_over(sa, NotHandedOver::Refused, now);
                    true
                }
                (Err(why), Goal::Asked { or_hard: false, .. }) => {
                    self.own.tunnels.moving().give_up(sa);
                    let peer = self.ike.sa(sa).and_then(|sa| sa.peer);
                    self.refused(peer, format!("the tunnel is not handed over: {why}"), now);
                    true
                }
            };
        }
        any
    }

    /// Handles the expiry of a grant. The gateway is notified, because otherwise it assumes that we
    /// hold the keys.
    pub(crate) fn expired(&mut self, held: HeldGrant, now: Instant) {
        self.turn(now, |own, turn| {
            let peer = turn.ike.peer(held.gateway);
            let is_gateway = peer.is_some_and(|peer| peer.role == Role::Gateway);
            let sa = own.tunnels.established(held.gateway);
            if let Some(sa) = sa.filter(|_| is_gateway) {
                turn.add(IkeCommand::Revoke(sa, held.csa));
            }
            own.transit.dropped(held, Dropped::Expired, turn);
        });
    }

    /// Applies another configuration, of which only differences have an effect. Returns the peers
    /// whose SAs are replaced. Ports, the key log and the role in Mobile IPv4 do not change.
    ///
    /// Policies, classes of service, padding, levels, cover traffic, MSS clamping, path MTU
    /// discovery, SNOOP's limits, liveness timers and the list of peers to keep up change in place.
    /// A new peer is initiated as at a start. A removed peer is deleted in an orderly way. A peer
    /// whose terms changed gets new SAs. So does a peer whose keys are held by a licensed node that
    /// was removed. A peer whose licences changed is rekeyed, and a removed licence is unusable at
    /// once. So is the licence of a node whose proof counts no more, until it has proved its
    /// identity again. All other peers are unaffected.
    pub fn reconfigure(&mut self, mut config: Config, now: Instant) -> BTreeSet<PeerId> {
        let (ike, mut settings) = config.take_peers(Arc::make_mut(&mut self.names));
        self.tables = settings.of_tables(&ike.peers);
        settings.add_users(&self.ike.users_under(&ike.peers));
        let bypassed = bypassed(&config.policies);
        self.plane
            .apply(Command::Policies(spd(config.policies, &ike.peers)));
        self.own.tunnels.set_levels(&mut settings.packets);
        let hidden = self.plane.set_peers(&settings.packets);
        self.own.tunnels.set_cover(settings.cover, now);
        self.plane.apply(Command::Clamp(config.clamp));
        self.path_mtus(now, |path_mtus, sas, turn| {
            path_mtus.set_discovery(config.path_mtu, sas, turn);
            for peer in &hidden {
                path_mtus.lengths_changed(*peer, sas, turn);
            }
        });
        self.own.transit.set_snoop(config.snoop);
        self.own.transit.set_window(config.window);
        self.own.transit.set_stand_in(config.stand_in);
        let distribution = self.own.licensing.distribution();
        distribution.set_lifetime(config.grant_lifetime);
        let (old_nodes, nodes) = (licensed(self.ike.peers()), licensed(&ike.peers));
        let gone: Vec<&Licensed> = old_nodes.difference(&nodes).collect();
        let mut replaced = self.own.licensing.dismiss(&gone, &self.own.tunnels);
        let named = settings.hosts.keys().copied().collect();
        self.own.tunnels.set_named(named);
        let none = BTreeMap::new();
        self.own.redirects.set(none, bypassed.clone());
        let mut elsewhere = self.own.naming.set(settings.hosts, bypassed);
        elsewhere.extend(self.own.tunnels.set_ports(settings.ports));
        elsewhere.retain(|peer| {
            let is_kept = ike.peers.iter().any(|new| new.id == *peer);
            is_kept && self.ike.peer(*peer).is_some()
        });
        replaced.extend(elsewhere);
        for peer in &replaced {
            if let Some(sa) = self.own.tunnels.current(*peer) {
                self.ike.renew(sa, now);
            }
        }
        replaced.extend(self.ike.reconfigure(ike, now));
        self.own.tunnels.live().reloaded();
        if let Some(mobile_ip) = &mut self.own.mobile_ip {
            mobile_ip.reserve(&self.ike);
        }
        self.drain(now);
        self.turn(now, |own, turn| own.tunnels.begin_meter(turn));
        self.turn(now, |own, turn| {
            own.licensing.limit_all(&own.tunnels, turn);
        });
        self.turn(now, |own, turn| {
            own.licensing
                .relocate(settings.places, config.neighbours, &own.tunnels, turn);
        });
        let tunnels = &mut self.own.tunnels;
        for peer in tunnels.set_peers(settings.start, &replaced, &self.ike, now) {
            self.ike.bar(peer, false, now);
        }
        for (peer, node) in nodes.difference(&old_nodes) {
            self.own.licensing.admit(*peer, node, &self.ike, now);
        }
        self.initiate_known(now);
        replaced
    }
}
