//! Sessions that are resumed (`extension/ticket.rs`): requests to the store of entries and their
//! outcomes, and full exchanges in place of attempts that fail.

use super::Engine;
use crate::event::Event;
use crate::sa::turn::NotResumed;
use model::{ChildSaId, Identity, IkeSaId, Instant, PeerId};
use resumption::{Handle, Operation, OperationId, Outcome, ReferenceKey, TicketKeys, Usage};

/// Commands.
impl Engine {
    /// Sets the key of the references that name entries in the store. Without it, references are
    /// good for this engine only.
    pub fn refer_by(&mut self, key: ReferenceKey) {
        self.tickets.refer_by(key);
    }

    /// Sets the keys of tickets by value that an earlier process has kept ([`Operation::Keep`]).
    pub fn seal_by(&mut self, keys: TicketKeys, now: Instant) {
        self.tickets.seal_by(keys, now);
    }

    /// Ends the sessions with a peer that either end may resume, or all. IKE SAs stay up, and the
    /// next one takes a full exchange.
    pub fn end_sessions(&mut self, peer: Option<PeerId>) {
        let known = peer.and_then(|peer| self.config.peer(peer));
        if peer.is_none() || known.is_some() {
            self.tickets.forget(peer);
            self.tickets.revoke(known.map(|peer| &peer.identity));
        }
    }

    /// Ends the sessions of an identity, whether or not a peer has it now.
    pub fn end_sessions_of(&mut self, identity: &Identity) {
        self.tickets.revoke(Some(identity));
    }

    /// Returns the IKE SAs whose traffic has to be metered, because the use of sessions is limited
    /// by it.
    pub fn metered(&self) -> impl Iterator<Item = IkeSaId> {
        let limit = self.config.resumption.data;
        let accounted = limit.map(|_| self.tickets.accounted());
        accounted.into_iter().flatten()
    }

    /// Takes the octets that each child SA of an IKE SA has carried since it was installed. Call it
    /// from time to time, and before one of them is removed.
    pub fn meter(
        &mut self,
        sa: IkeSaId,
        children: impl IntoIterator<Item = (ChildSaId, u64)>,
        now: Instant,
    ) {
        self.tickets
            .meter(sa, children, &self.config.resumption, now);
    }

    /// Returns the use of a session's last full exchange so far, if its IKE SA is up.
    pub fn session_usage(&self, handle: &Handle, now: Instant) -> Option<Usage> {
        self.tickets.usage(handle, now)
    }
}

/// Inputs.
impl Engine {
    /// Handles the outcome of a request to the store. One that comes too late changes nothing.
    pub fn handle_stored(&mut self, outcome: Outcome, now: Instant) {
        match outcome {
            Outcome::Read(OperationId(id), entry) => {
                self.with_sa(IkeSaId(id), now, |sa, ctx| sa.handle_entry(entry, ctx));
            }
            Outcome::Taken(OperationId(id), was_there) => {
                self.advance(IkeSaId(id), now, |sa, ctx| {
                    sa.handle_taken(was_there, ctx);
                    Vec::new()
                });
            }
        }
    }
}

/// Outputs.
impl Engine {
    /// Returns the next request to the store. [`Self::handle_stored`] takes its outcome.
    pub fn poll_store(&mut self) -> Option<Operation> {
        self.tickets.poll()
    }
}

impl Engine {
    /// Begins a full exchange for each attempt to resume a session that failed or is in doubt.
    pub(crate) fn replace_attempts_to_resume(&mut self, now: Instant) {
        for failed in std::mem::take(&mut self.out.not_resumed) {
            let NotResumed {
                old,
                peer,
                path,
                anew,
            } = failed;
            // Another attempt may be in progress already.
            if let Ok(sa) = self.begin_beside(peer, path, anew, now) {
                let event = Event::NotResumed { old, sa, peer };
                self.out.events.push_back(event);
            }
        }
    }
}
