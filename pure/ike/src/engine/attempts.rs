//! Several attempts to establish an IKE SA with one peer.
//!
//! An unauthenticated message that refuses an attempt may be forged, so the attempt continues (RFC
//! 7296 section 2.21.1). It may also be genuine, and outdated soon: a responder repeats its first
//! answer to a retransmitted message, even if its configuration has changed since. A new attempt
//! with another SPI gets another answer, so one may be initiated beside an attempt that was refused
//! like this. The two newest attempts continue, and the first one that is authenticated ends the
//! others. Those that have sent IKE_AUTH continue in any case, up to [`MOST_SENT`]: the peer may
//! have the IKE SA already, and its answer is late. Only its initiator can delete that SA there,
//! and the peer may send on its child SA.
//!
//! The same holds for an attempt whose IKE_SA_INIT was answered and whose next request is not: the
//! responder may have been restarted in between, or may have dropped the half-open SA in favour of
//! others. It does not answer requests on an IKE SA that it does not have.

use super::Engine;
use crate::misuse::ApiMisuse;
use crate::sa::State;
use model::{IkeSaId, Instant, PeerId};

/// Most attempts with a peer that have sent IKE_AUTH.
const MOST_SENT: usize = 4;

impl Engine {
    /// Makes room for another attempt with a peer: of older ones, only the newest stays, and those
    /// that have sent IKE_AUTH; of a race (`race.rs`), none does. An error means that one is in
    /// progress that allows no other. `anew`: the IKE SA replaces another one, so there is no
    /// hurry.
    pub(crate) fn make_room(
        &mut self,
        peer: PeerId,
        anew: bool,
        now: Instant,
    ) -> Result<(), ApiMisuse> {
        let made = self.sas_with(peer).filter(|sa| sa.is_being_made());
        let (mut older, mut raced) = (Vec::new(), Vec::new());
        for sa in made {
            if sa.is_racing() {
                raced.push(sa.core.id);
                continue;
            }
            if anew || !sa.allows_another() {
                return Err(ApiMisuse::AlreadyInitiating);
            }
            older.push((sa.core.id, matches!(sa.state, State::AuthSent(_))));
        }
        raced.into_iter().for_each(|id| self.end_attempt(id, now));
        older.sort_unstable();
        older.reverse();
        let mut sent = 0;
        for (place, (id, has_sent)) in older.into_iter().enumerate() {
            sent += usize::from(has_sent);
            if place > 0 && !(has_sent && sent <= MOST_SENT) {
                self.end_attempt(id, now);
            }
        }
        Ok(())
    }

    /// Ends the other attempts with the peer of an IKE SA that we initiated and that came up. One
    /// that has sent IKE_AUTH stays, as it may be up at the peer, where it replaces this one.
    pub(crate) fn end_other_attempts(&mut self, up: IkeSaId, now: Instant) {
        let Some(core) = self.sas.get(&up).map(|sa| &sa.core) else {
            return;
        };
        let Some(peer) = core.peer.filter(|_| core.initiator) else {
            return;
        };
        let others = self.sas_with(peer);
        let unsent = |state: &State| {
            matches!(
                state,
                State::InitSent(_) | State::ResumeSent(_) | State::KemSent(_)
            )
        };
        let others = others.filter(|sa| unsent(&sa.state));
        let others: Vec<_> = others.map(|sa| sa.core.id).collect();
        for other in others {
            if let Some(sa) = self.sas.get(&up) {
                self.out.attempts.succeed(other, &sa.core);
            }
            self.end_attempt(other, now);
        }
    }

    /// Ends an attempt without an event. The peer has nothing to delete.
    pub(crate) fn end_attempt(&mut self, id: IkeSaId, now: Instant) {
        self.with_sa(id, now, |sa, _| sa.state = State::GONE);
    }
}
