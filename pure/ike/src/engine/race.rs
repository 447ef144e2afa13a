//! Attempts at several addresses of one peer, of which some may be dead.
//!
//! The caller decides when the next one begins (RFC 8305 section 5). All of them retransmit. The
//! first that is answered ends the others that are not, because the peer behind two addresses needs
//! one IKE SA. An answer that refuses without proof ends none (RFC 7296 section 2.21.1).

use super::Engine;
use crate::allowed_suites::AllowedIkeSuites;
use crate::event::Event;
use crate::extension::tcp;
use crate::misuse::ApiMisuse;
use crate::sa::State;
use crate::sa::init_sent::InitSent;
use model::{IkeSaId, Instant, Path, PeerId};

/// Most attempts of a race. The oldest one ends before another begins.
const MOST: usize = 8;

/// Commands.
impl Engine {
    /// Initiates an IKE SA by a full exchange, beside attempts at other addresses of the peer.
    /// [`Event::Answered`] reports the attempt that continues alone. An error means that one of
    /// them is answered already and in progress.
    pub fn initiate_beside(
        &mut self,
        peer: PeerId,
        path: Path,
        now: Instant,
    ) -> Result<IkeSaId, ApiMisuse> {
        let known = self.config.peer(peer).ok_or(ApiMisuse::UnknownPeer)?;
        let menu = AllowedIkeSuites::of(known);
        let path = tcp::first(known, path, &mut self.rng);
        self.join_race(peer, now)?;
        let id = self.insert_begun(peer, path, false, now, |turn| {
            InitSent::begin(menu, None, turn)
        });
        self.mark_raced(id);
        Ok(id)
    }
}

impl Engine {
    /// Returns true if several attempts with a peer wait for the first answer.
    pub(crate) fn is_racing(&self, peer: PeerId) -> bool {
        let mut sas = self.sas_with(peer);
        sas.any(|sa| sa.is_racing())
    }

    /// Ends the other attempts of a race in which one is answered.
    pub(crate) fn conclude_race(&mut self, id: IkeSaId, now: Instant) {
        let Some(sa) = self.sas.get_mut(&id).filter(|sa| sa.core.raced) else {
            return;
        };
        let wins = matches!(
            sa.state,
            State::KemSent(_) | State::AuthSent(_) | State::Established(_)
        );
        let Some(peer) = sa.core.peer.filter(|_| wins) else {
            return;
        };
        sa.core.raced = false;
        let others = self.sas_with(peer).filter(|sa| sa.is_racing());
        let others: Vec<_> = others.map(|sa| sa.core.id).collect();
        for other in others {
            self.end_attempt(other, now);
        }
        self.out.events.push_back(Event::Answered { sa: id, peer });
    }

    /// Makes room for another attempt of a race.
    pub(super) fn join_race(&mut self, peer: PeerId, now: Instant) -> Result<(), ApiMisuse> {
        let mut waiting = Vec::new();
        for sa in self.sas_with(peer).filter(|sa| sa.is_being_made()) {
            match sa.is_unanswered() {
                true => waiting.push(sa.core.id),
                false if sa.allows_another() => {}
                false => return Err(ApiMisuse::AlreadyInitiating),
            }
        }
        waiting.sort_unstable();
        let surplus = (waiting.len() + 1).saturating_sub(MOST);
        for id in waiting.drain(..surplus) {
            self.end_attempt(id, now);
        }
        waiting.into_iter().for_each(|id| self.mark_raced(id));
        Ok(())
    }

    pub(super) fn mark_raced(&mut self, id: IkeSaId) {
        if let Some(sa) = self.sas.get_mut(&id) {
            sa.core.raced = true;
        }
    }
}
