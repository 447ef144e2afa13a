//! Keys for licensed nodes: distribution, revocation, and requests of neighbours
//! (`extension/{distribute,migration}.rs`).

use super::Engine;
use crate::event::Event;
use crate::refusal::GrantRefusal;
use crate::task::{grant, token};
use crypto::Secret;
use model::{CsaId, Grant, Identity, IkeSaId, Instant};
use wire::ike::{RefusalCode, Token};

/// Commands.
impl Engine {
    /// Gateway: distributes the keys of a composite SA to a licensed node. Ends in
    /// [`Event::GrantAccepted`], [`Event::GrantRefused`] or the IKE SA's [`Event::IkeDown`].
    pub fn distribute(&mut self, sa: IkeSaId, grant: Grant<Secret>, now: Instant) {
        let (csa, number) = (grant.csa, grant.grant);
        let sent = self.with_established(sa, now, |state, turn| {
            grant::distribute(state, grant, turn);
        });
        if sent.is_none() {
            self.out.events.push_back(Event::GrantRefused {
                sa,
                csa,
                grant: number,
                why: GrantRefusal::NotEstablished,
            });
        }
    }

    /// Gateway: revokes a grant, without depending on the acknowledgement (invariant 5). Licensed
    /// node: reports that it has dropped a grant on its own, which frees the place of the grant.
    pub fn revoke(&mut self, sa: IkeSaId, csa: CsaId, now: Instant) {
        self.with_established(sa, now, |state, turn| {
            state.grants.held.remove(&csa);
            grant::revoke(state, csa, turn);
        });
    }

    /// Licensed node: announces to a gateway the nodes that mobile nodes may move to from us, from
    /// now on.
    pub fn tell_neighbours(&mut self, sa: IkeSaId, nodes: Vec<Identity>, now: Instant) {
        self.with_established(sa, now, |state, turn| {
            grant::tell_neighbours(state, nodes, turn);
        });
    }

    /// Licensed node: answers [`Event::Granted`], by the grant's composite SA and number. `refusal`
    /// is `None` if the grant is in use.
    pub fn answer_grant(
        &mut self,
        sa: IkeSaId,
        csa: CsaId,
        grant: u16,
        refusal: Option<RefusalCode>,
        now: Instant,
    ) {
        self.with_established(sa, now, |state, turn| {
            grant::answer(state, csa, grant, refusal, turn);
        });
    }
}

/// Commands.
impl Engine {
    /// Licensed node: requests keys from a neighbour, with a token of a mobile node that has moved
    /// to us. Ends in [`Event::KeysAnswered`], or in the IKE SA's
    /// [`Event::IkeDown`].
    pub fn request_keys(&mut self, sa: IkeSaId, token: Token, now: Instant) {
        self.with_established(sa, now, |state, turn| {
            token::request(state, token, turn);
        });
    }

    /// Licensed node: answers [`Event::KeysAsked`], by the nonce of its
    /// token.
    pub fn answer_request(
        &mut self,
        sa: IkeSaId,
        nonce: [u8; 16],
        answer: &Result<Grant<Secret>, RefusalCode>,
        now: Instant,
    ) {
        self.with_established(sa, now, |state, turn| {
            token::answer(state, nonce, answer, turn);
        });
    }
}
