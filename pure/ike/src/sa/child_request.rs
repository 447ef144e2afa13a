//! What a request for a child has in common, be it for a new one or for a successor.

use super::established::Established;
use super::{Context, Core};
use crate::child::{self, Offer, Terms};
use crate::config::Peer;
use crate::event::{DownReason, Refusal};
use crate::exchange::create_child::{Nonce, Offered, Renewal, rekey_sa, renewal};
use crate::exchange::notify;
use crate::keys::ProvedKeys;
use crate::menu::groups_of;
use crate::policy::Policy;
use crypto::Rng;
use model::{ChildSaId, InnerAddresses, Spi, ZoneAgreement};
use wire::ike::{GroupId, Message, NotifyType, Payload};

/// Our request, until it is answered.
pub(crate) struct ChildRequest {
    offer: Offer,
    nonce: Nonce,
    key: Option<Offered>,
    pub(super) payloads: Vec<Payload>,
    /// The child that the peer made meanwhile.
    rival: Option<Rival>,
    /// What the peer has deleted meanwhile and we did not know, by the SPIs it receives on.
    deleted: Vec<Spi>,
    /// The group was already corrected once.
    pub(super) corrected: bool,
}

/// A child that the peer asked for while we asked for the same.
struct Rival {
    id: ChildSaId,
    lower_nonce: Vec<u8>,
}

/// What became of a child that the peer agreed to.
pub(super) enum Settled {
    /// It is ours to use.
    Stays(Box<Terms>),
    /// The peer asked for the same at once, and that one stays: of the two the one "created with the
    /// lowest of the four nonces" goes (section 2.8.1).
    Goes,
    /// The peer has deleted it before its answer arrived.
    Deleted,
}

/// So many Deletes are remembered, for an answer that arrives behind them.
const MOST_DELETED: usize = 16;

/// What a request is answered with: the payloads, the child, and the lower nonce of the two.
pub(super) type Agreed = (Vec<Payload>, Terms, Vec<u8>);

impl ChildRequest {
    /// `old` is the child whose place it is to take, by the SPI we receive on.
    pub(super) fn new(
        offer: Offer,
        group: Option<GroupId>,
        old: Option<Spi>,
        terms: (&Peer, &Policy<'_>, Option<InnerAddresses>),
        rng: &mut Rng,
    ) -> Self {
        let (peer, policy, addresses) = terms;
        let nonce: Nonce = rng.array();
        let key = group.and_then(|group| Offered::new(group, rng));
        let public = key.as_ref().map(Offered::payload);
        let named = old.map(rekey_sa).into_iter();
        let child = offer.payloads((peer, policy), addresses);
        Self {
            payloads: named.chain(renewal(child, &nonce, public)).collect(),
            offer,
            nonce,
            key,
            rival: None,
            deleted: Vec::new(),
            corrected: false,
        }
    }

    /// The SPI that we receive on, if it comes about.
    pub(super) const fn spi(&self) -> Spi {
        self.offer.spi
    }

    /// The child that the peer made meanwhile.
    pub(super) fn rival(&self) -> Option<ChildSaId> {
        self.rival.as_ref().map(|rival| rival.id)
    }

    /// The peer has made the same child.
    pub(super) fn meet(&mut self, id: ChildSaId, lower_nonce: Vec<u8>) {
        self.rival = Some(Rival { id, lower_nonce });
    }

    /// The peer has deleted what we do not know yet.
    pub(super) fn note_deleted(&mut self, spi: Spi) {
        if self.deleted.len() < MOST_DELETED {
            self.deleted.push(spi);
        }
    }

    /// What the peer agreed to.
    pub(super) fn settle(
        self,
        (peer, policy, addresses): (&Peer, &Policy<'_>, Option<InnerAddresses>),
        response: &Message,
        keys: &ProvedKeys,
    ) -> Result<Settled, DownReason> {
        let broken = DownReason::NotOffered("a child where one was asked for");
        let theirs = Renewal::read(response).ok_or(broken)?;
        let exchanged = self.key.zip(theirs.key);
        let exchanged = exchanged.and_then(|(ours, theirs)| ours.agree(theirs));
        let keys = keys.child(exchanged, &self.nonce, theirs.nonce);
        let lower = theirs.lower_nonce(&self.nonce);
        let terms = (self.offer).settle((peer, policy), addresses, response, keys)?;
        let stays = self.rival.is_none_or(|rival| lower >= rival.lower_nonce);
        Ok(match self.deleted.contains(&terms.outbound.spi) {
            true => Settled::Deleted,
            false if stays => Settled::Stays(Box::new(terms)),
            false => Settled::Goes,
        })
    }
}

impl Established {
    /// Answers a request for a child. `before` is what was agreed about zones by the one whose place
    /// it takes.
    pub(super) fn agree_on_child(
        &self,
        policy: &Policy<'_>,
        before: Option<Option<&ZoneAgreement>>,
        request: &Message,
        core: &Core,
        ctx: &mut Context<'_>,
    ) -> Result<Agreed, Payload> {
        let refuse = |kind| notify(kind, Vec::new());
        let peer = core.peer(ctx.config);
        let peer = peer.ok_or_else(|| refuse(NotifyType::NO_ADDITIONAL_SAS))?;
        let theirs = Renewal::read(request);
        let theirs = theirs.ok_or_else(|| refuse(NotifyType::INVALID_SYNTAX))?;
        let ours = groups_of(peer);
        if let Some(key) = theirs.key.filter(|key| !ours.contains(&key.group)) {
            let wanted = ours.first().unwrap_or(&key.group).0.to_be_bytes();
            return Err(notify(NotifyType::INVALID_KE_PAYLOAD, wanted.to_vec()));
        }
        let nonce: Nonce = ctx.rng.array();
        let key = theirs.key.and_then(|key| Offered::new(key.group, ctx.rng));
        let public = key.as_ref().map(Offered::payload);
        let exchanged = key.zip(theirs.key).map(|(ours, theirs)| ours.agree(theirs));
        if matches!(exchanged, Some(None)) {
            ctx.refused(Some(peer.name.clone()), Refusal::KeyExchange);
            return Err(refuse(NotifyType::NO_PROPOSAL_CHOSEN));
        }
        let keys = self.keys.child(exchanged.flatten(), theirs.nonce, &nonce);
        let terms = (peer, policy, self.addresses);
        let answer = child::answer(terms, request, self.private, before, keys, ctx.rng);
        let (answer, terms) = answer.map_err(|(kind, why)| {
            ctx.refused(Some(peer.name.clone()), why);
            refuse(kind)
        })?;
        let payloads = renewal(answer, &nonce, public.filter(|_| terms.exchanged));
        Ok((payloads, terms, theirs.lower_nonce(&nonce)))
    }
}
