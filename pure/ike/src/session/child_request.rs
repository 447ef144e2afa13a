//! The common part of requests for a new child SA and for the replacement of one.

use crate::allowed_suites::groups_of;
use crate::child::{Agreed, ChildConfig, ChildTerms, Offer};
use crate::config::Peer;
use crate::down_reason::DownReason;
use crate::exchange::create_child::{Nonce, Offered, Renewal, rekey_sa, renewal, wanted_group};
use crate::extension::followup::Series;
use crate::extension::intermediate::Asked;
use crate::keys::ProvedKeys;
use crate::policy::Policy;
use crypto::Rng;
use model::{ChildSaId, Spi};
use wire::ike::{ExchangeType, GroupId, Message, NotifyType, Payload};

/// Our request for a child SA, until the last exchange is answered.
pub(crate) struct ChildRequest {
    stage: Stage,
    pub(crate) payloads: Vec<Payload>,
    /// Our inbound SPI of the child SA.
    pub(crate) spi: Spi,
    /// The peer's competing request.
    rival: Option<Rival>,
    /// Outbound SPIs of unknown child SAs that the peer has deleted meanwhile.
    deleted: Vec<Spi>,
    attempt: Attempt,
}

/// The initial key exchange of a request, and the changes that a refusal may still cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// Its group, if there is a key exchange.
    pub(crate) group: Option<GroupId>,
    /// True if the peer may name another group.
    correctable: bool,
    /// True if the key exchange may be omitted.
    omissible: bool,
    /// True if the key exchange was omitted.
    omitted: bool,
}

impl Attempt {
    /// Creates the parameters of the first request for a child SA.
    pub(crate) fn first(peer: &Peer, policy: &Policy<'_>) -> Self {
        let group = groups_of(peer).first().copied();
        Self {
            group: group.filter(|_| policy.pfs),
            correctable: true,
            // If an additional key exchange is required, the group is not offered together with
            // NONE.
            omissible: policy.pfs && peer.kems.contains(&None),
            omitted: false,
        }
    }

    /// Returns the groups to offer.
    pub(crate) fn groups(self, peer: &Peer) -> Vec<GroupId> {
        self.group.map_or_else(Vec::new, |_| groups_of(peer))
    }

    /// Returns the parameters of the next request after a refusal: in the group that the peer
    /// names, or without a key exchange, which the refused request offered too. `None` if neither
    /// is left.
    fn after(self, error: NotifyType, response: &Message, peer: &Peer) -> Option<Self> {
        let is_other = |group: &GroupId| Some(*group) != self.group;
        let ours = groups_of(peer);
        let wanted = wanted_group(response).filter(|group| ours.contains(group) && is_other(group));
        match error {
            NotifyType::INVALID_KE_PAYLOAD if self.correctable && wanted.is_some() => Some(Self {
                group: wanted,
                correctable: false,
                ..self
            }),
            NotifyType::INVALID_KE_PAYLOAD | NotifyType::NO_PROPOSAL_CHOSEN if self.omissible => {
                Some(Self {
                    group: None,
                    omissible: false,
                    omitted: true,
                    ..self
                })
            }
            _ => None,
        }
    }
}

/// The stage of a request.
enum Stage {
    /// CREATE_CHILD_SA was sent, or is about to be.
    Asked {
        offer: Offer,
        nonce: Nonce,
        key: Option<Offered>,
    },
    /// IKE_FOLLOWUP_KE was sent, or is about to be.
    Following {
        agreed: Box<Agreed>,
        series: Series,
        asked: Asked,
    },
}

/// The peer's request for the same child SA.
struct Rival {
    /// The child SA, if it exists already.
    made: Option<ChildSaId>,
    lower_nonce: Vec<u8>,
}

/// Outcome of a child SA that the peer agreed to.
pub(crate) enum Settled {
    /// The child SA is usable.
    Stays(Box<ChildTerms>),
    /// Another key exchange has to follow.
    Follows(Box<ChildRequest>),
    /// The peer requested the same child SA at the same time, and that one stays: the one "created
    /// with the lowest of the four nonces" has to be deleted (section 2.8.1).
    Goes,
    /// The same, but nothing has to be deleted, because not all key exchanges took place.
    Stops,
    /// The peer deleted the child SA before its answer arrived.
    Deleted,
}

/// Maximum number of remembered Deletes, for an answer that arrives after one of them.
const MOST_DELETED: usize = 16;

impl ChildRequest {
    /// Creates a request. `old` is the inbound SPI of the child SA to replace.
    pub(crate) fn new(
        offer: Offer,
        attempt: Attempt,
        old: Option<Spi>,
        config: ChildConfig<'_>,
        rng: &mut Rng,
    ) -> Self {
        let nonce: Nonce = rng.array();
        let key = attempt.group.and_then(|group| Offered::new(group, rng));
        let public = key.as_ref().map(Offered::payload);
        let named = old.map(rekey_sa).into_iter();
        let child = offer.payloads(config);
        Self {
            payloads: named.chain(renewal(child, &nonce, public)).collect(),
            spi: offer.spi,
            stage: Stage::Asked { offer, nonce, key },
            rival: None,
            deleted: Vec::new(),
            attempt,
        }
    }

    /// Returns the parameters of the next request after a refusal.
    pub(crate) fn after(
        &self,
        error: NotifyType,
        response: &Message,
        peer: &Peer,
    ) -> Option<Attempt> {
        let asked = !self.is_following();
        asked.then(|| self.attempt.after(error, response, peer))?
    }

    pub(crate) const fn exchange(&self) -> ExchangeType {
        match self.stage {
            Stage::Asked { .. } => ExchangeType::CREATE_CHILD_SA,
            Stage::Following { .. } => ExchangeType::IKE_FOLLOWUP_KE,
        }
    }

    /// Returns true if the request has no key exchange because the peer refused it with one.
    pub(crate) const fn is_without_exchange(&self) -> bool {
        self.attempt.omitted && self.attempt.group.is_none()
    }

    /// Returns true if the peer has agreed, and another key exchange is in progress.
    pub(crate) const fn is_following(&self) -> bool {
        matches!(self.stage, Stage::Following { .. })
    }

    /// Returns true if another key exchange may follow.
    pub(crate) fn is_hybrid(&self) -> bool {
        match &self.stage {
            Stage::Asked { offer, .. } => offer.is_hybrid(),
            Stage::Following { .. } => true,
        }
    }

    /// Returns the child SA that resulted from the peer's competing request.
    pub(crate) fn rival(&self) -> Option<ChildSaId> {
        self.rival.as_ref()?.made
    }

    /// Returns true if the peer sent a competing request.
    pub(crate) const fn is_contested(&self) -> bool {
        self.rival.is_some()
    }

    /// Records the peer's competing request, with its child SA unless key exchanges have to follow.
    pub(crate) fn meet(&mut self, made: Option<ChildSaId>, lower_nonce: Vec<u8>) {
        self.rival = Some(Rival { made, lower_nonce });
    }

    /// Records the Delete of a child SA that we do not know yet.
    pub(crate) fn note_deleted(&mut self, spi: Spi) {
        if self.deleted.len() < MOST_DELETED {
            self.deleted.push(spi);
        }
    }

    /// Evaluates the peer's answer.
    pub(crate) fn conclude(
        self,
        config: ChildConfig<'_>,
        response: &Message,
        keys: &ProvedKeys,
    ) -> Result<Settled, DownReason> {
        let rival = self.rival.as_ref();
        let attempt = self.attempt;
        let (agreed, series, stays) = match self.stage {
            Stage::Asked { offer, nonce, key } => {
                let (agreed, lower) = agree(&offer, &nonce, key, config, response, keys)?;
                let series = Series::new(agreed.kems());
                let stays = rival.is_none_or(|rival| lower >= rival.lower_nonce);
                (Box::new(agreed), series, stays)
            }
            Stage::Following {
                agreed,
                series,
                asked,
            } => {
                let series = go_on(&agreed, series, asked, config.policy, response)?;
                (agreed, series, true)
            }
        };
        Ok(match (series.is_complete(), stays) {
            (true, _) if self.deleted.contains(&agreed.peer_spi()) => Settled::Deleted,
            (true, true) => Settled::Stays(Box::new(agreed.terms(series.secrets()))),
            (true, false) => Settled::Goes,
            (false, false) => Settled::Stops,
            (false, true) => {
                let mut series = series;
                let unnamed = DownReason::NotOffered("no link to the next key exchange");
                let (asked, payloads) = series.ask(response).ok_or(unnamed)?;
                Settled::Follows(Box::new(Self {
                    payloads,
                    spi: agreed.spi,
                    stage: Stage::Following {
                        agreed,
                        series,
                        asked,
                    },
                    rival: self.rival,
                    deleted: self.deleted,
                    attempt,
                }))
            }
        })
    }
}

/// Evaluates the answer to a follow-up key exchange. The policy may have changed since the request.
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

/// Evaluates the CREATE_CHILD_SA response. Returns the child SA and the lower of both nonces.
fn agree(
    offer: &Offer,
    nonce: &Nonce,
    key: Option<Offered>,
    config: ChildConfig<'_>,
    response: &Message,
    keys: &ProvedKeys,
) -> Result<(Agreed, Vec<u8>), DownReason> {
    let broken = DownReason::NotOffered("no child SA");
    let theirs = Renewal::read(response).ok_or(broken)?;
    let exchanged = key.zip(theirs.key);
    let exchanged = exchanged.and_then(|(ours, theirs)| ours.agree(theirs));
    let keys = keys.child(exchanged, nonce, theirs.nonce);
    let agreed = offer.conclude(config, response, keys)?;
    Ok((agreed, theirs.lower_nonce(nonce)))
}
