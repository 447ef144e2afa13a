//! What a request for a child has in common, be it for a new one or for a successor.

use super::established::Established;
use super::{Context, Core};
use crate::child::{self, Agreed, Offer, Terms};
use crate::config::Peer;
use crate::down_reason::DownReason;
use crate::exchange::create_child::{Nonce, Offered, Renewal, rekey_sa, renewal};
use crate::exchange::notify;
use crate::extension::followup::Series;
use crate::extension::intermediate::Asked;
use crate::keys::ProvedKeys;
use crate::menu::groups_of;
use crate::policy::Policy;
use crate::refusal::Refusal;
use crypto::Rng;
use model::{ChildSaId, InnerAddresses, Spi, ZoneAgreement};
use wire::ike::{ExchangeType, GroupId, Message, NotifyType, Payload};

/// Our request, until all of it is answered.
pub(crate) struct ChildRequest {
    stage: Stage,
    pub(super) payloads: Vec<Payload>,
    /// The SPI that we receive on, if it comes about.
    pub(super) spi: Spi,
    /// What the peer asked for meanwhile.
    rival: Option<Rival>,
    /// What the peer has deleted meanwhile and we did not know, by the SPIs it receives on.
    deleted: Vec<Spi>,
    /// The group was already corrected once.
    pub(super) corrected: bool,
}

/// How far it is.
enum Stage {
    /// CREATE_CHILD_SA.
    Asked {
        offer: Offer,
        nonce: Nonce,
        key: Option<Offered>,
    },
    /// IKE_FOLLOWUP_KE.
    Following {
        agreed: Box<Agreed>,
        series: Series,
        asked: Asked,
    },
}

/// The same child, as the peer asked for it.
struct Rival {
    /// If it is there.
    made: Option<ChildSaId>,
    lower_nonce: Vec<u8>,
}

/// What became of a child that the peer agreed to.
pub(super) enum Settled {
    /// It is ours to use.
    Stays(Box<Terms>),
    /// It is after one more key exchange.
    Follows(Box<ChildRequest>),
    /// The peer asked for the same at once, and that one stays: of the two the one "created with the
    /// lowest of the four nonces" goes (section 2.8.1).
    Goes,
    /// The same, and there is nothing to delete, as not all key exchanges took place.
    Stops,
    /// The peer has deleted it before its answer arrived.
    Deleted,
}

/// So many Deletes are remembered, for an answer that arrives behind them.
const MOST_DELETED: usize = 16;

/// What a request is answered with: the payloads, the child, and the lower nonce of the two.
pub(super) type Answer = (Vec<Payload>, Agreed, Vec<u8>);

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
            spi: offer.spi,
            stage: Stage::Asked { offer, nonce, key },
            rival: None,
            deleted: Vec::new(),
            corrected: false,
        }
    }

    pub(super) const fn exchange(&self) -> ExchangeType {
        match self.stage {
            Stage::Asked { .. } => ExchangeType::CREATE_CHILD_SA,
            Stage::Following { .. } => ExchangeType::IKE_FOLLOWUP_KE,
        }
    }

    /// Whether the peer agreed, and it goes on with another key exchange.
    pub(super) const fn is_following(&self) -> bool {
        matches!(self.stage, Stage::Following { .. })
    }

    /// Whether another key exchange may follow.
    pub(super) fn is_hybrid(&self) -> bool {
        match &self.stage {
            Stage::Asked { offer, .. } => offer.is_hybrid(),
            Stage::Following { .. } => true,
        }
    }

    /// The child that the peer made meanwhile.
    pub(super) fn rival(&self) -> Option<ChildSaId> {
        self.rival.as_ref()?.made
    }

    /// Whether the peer asked for the same meanwhile.
    pub(super) const fn is_contested(&self) -> bool {
        self.rival.is_some()
    }

    /// The peer asked for the same child, and has made it if no key exchange is to follow.
    pub(super) fn meet(&mut self, made: Option<ChildSaId>, lower_nonce: Vec<u8>) {
        self.rival = Some(Rival { made, lower_nonce });
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
        terms: (&Peer, &Policy<'_>, Option<InnerAddresses>),
        response: &Message,
        keys: &ProvedKeys,
    ) -> Result<Settled, DownReason> {
        let rival = self.rival.as_ref();
        let (agreed, series, stays) = match self.stage {
            Stage::Asked { offer, nonce, key } => {
                let (agreed, lower) = agree((offer, nonce, key), terms, response, keys)?;
                let series = Series::new(agreed.kems());
                let stays = rival.is_none_or(|rival| lower >= rival.lower_nonce);
                (Box::new(agreed), series, stays)
            }
            Stage::Following {
                agreed,
                series,
                asked,
            } => {
                let series = go_on(&agreed, series, asked, terms.1, response)?;
                (agreed, series, true)
            }
        };
        Ok(match (series.is_complete(), stays) {
            (true, _) if self.deleted.contains(&agreed.peer_spi()) => Settled::Deleted,
            (true, true) => Settled::Stays(Box::new(agreed.terms(series.secrets()))),
            (true, false) => Settled::Goes,
            (false, false) => Settled::Stops,
            (false, true) => {
                let rest = (self.rival, self.deleted);
                let next = follow(agreed, series, rest, response);
                let unnamed = DownReason::NotOffered("the name of a key exchange");
                Settled::Follows(Box::new(next.ok_or(unnamed)?))
            }
        })
    }
}

/// The peer answered a key exchange that followed. The policy may be another one by now.
fn go_on(
    agreed: &Agreed,
    mut series: Series,
    asked: Asked,
    policy: &Policy<'_>,
    response: &Message,
) -> Result<Series, DownReason> {
    let concluded = series.conclude(asked, response);
    concluded.map_err(DownReason::Misbehaved)?;
    let allowed = agreed.is_within(policy).then_some(series);
    allowed.ok_or(DownReason::NotOffered("traffic selectors"))
}

/// The child that the peer agreed to in CREATE_CHILD_SA, and the lower nonce of the two.
fn agree(
    (offer, nonce, key): (Offer, Nonce, Option<Offered>),
    (peer, policy, addresses): (&Peer, &Policy<'_>, Option<InnerAddresses>),
    response: &Message,
    keys: &ProvedKeys,
) -> Result<(Agreed, Vec<u8>), DownReason> {
    let broken = DownReason::NotOffered("a child where one was asked for");
    let theirs = Renewal::read(response).ok_or(broken)?;
    let exchanged = key.zip(theirs.key);
    let exchanged = exchanged.and_then(|(ours, theirs)| ours.agree(theirs));
    let keys = keys.child(exchanged, &nonce, theirs.nonce);
    let agreed = offer.settle((peer, policy), addresses, response, keys)?;
    Ok((agreed, theirs.lower_nonce(&nonce)))
}

/// The request for the next key exchange. `None` if the peer did not say what names it.
fn follow(
    agreed: Box<Agreed>,
    mut series: Series,
    (rival, deleted): (Option<Rival>, Vec<Spi>),
    response: &Message,
) -> Option<ChildRequest> {
    let (asked, payloads) = series.ask(response)?;
    Some(ChildRequest {
        payloads,
        spi: agreed.spi,
        stage: Stage::Following {
            agreed,
            series,
            asked,
        },
        rival,
        deleted,
        corrected: true,
    })
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
    ) -> Result<Answer, Payload> {
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
        let known = (self.ground(core), self.private);
        let spis = ctx.spis(core.id, policy.name);
        let answer = child::answer(terms, request, known, before, keys, spis);
        let (answer, agreed) = answer.map_err(|(kind, why)| {
            ctx.refused(Some(peer.name.clone()), why);
            refuse(kind)
        })?;
        let payloads = renewal(answer, &nonce, public.filter(|_| agreed.is_exchanged()));
        Ok((payloads, agreed, theirs.lower_nonce(&nonce)))
    }
}
