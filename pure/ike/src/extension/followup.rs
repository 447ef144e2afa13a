//! IKE_FOLLOWUP_KE (RFC 9370 section 2.2.4): the additional key exchanges after CREATE_CHILD_SA, be it
//! for the successor of the IKE SA or for a child.
//!
//! ```text
//!  CREATE_CHILD_SA   SK {SA(ADDKE1 = ML-KEM-768), Ni, KEi, ...}  -->
//!                         <--  SK {SA, Nr, KEr, ..., N(ADDITIONAL_KEY_EXCHANGE)}
//!  IKE_FOLLOWUP_KE   SK {KE(public key), N(ADDITIONAL_KEY_EXCHANGE)}  -->
//!                         <--  SK {KE(ciphertext)}
//! ```
//!
//! The SA is there after the last answer and not before. Each request names what it goes on with by what
//! the last answer had in ADDITIONAL_KEY_EXCHANGE. An end that does not know it any more says
//! STATE_NOT_FOUND; then all of it has failed, and may be begun anew.

use crate::down_reason::PeerMisbehaved;
use crate::exchange::{find_notify, key_exchange, notify};
use crate::extension::intermediate::{self, Asked};
use crypto::Secret;
use model::Kem;
use std::collections::VecDeque;
use wire::ike::{Message, NotifyType, Payload};

/// "If the initiator continues to receive STATE_NOT_FOUND notifications after several retries, it MUST
/// treat this situation as a fatal error": so many in a row.
pub(crate) const MOST_FORGOTTEN: u8 = 5;

/// The additional key exchanges of one CREATE_CHILD_SA.
pub(crate) struct Series {
    /// Those that are still to come, and what the others gave.
    left: VecDeque<Kem>,
    secrets: Vec<(Kem, Secret)>,
}

impl Series {
    pub(crate) fn new(kems: Vec<Kem>) -> Self {
        Self {
            left: kems.into(),
            secrets: Vec::new(),
        }
    }

    /// Whether all of them took place.
    pub(crate) fn is_complete(&self) -> bool {
        self.left.is_empty()
    }

    /// What they gave, in their order.
    pub(crate) fn secrets(self) -> Vec<(Kem, Secret)> {
        self.secrets
    }

    /// Begins the next one, as its initiator: our half, and the request with it. The notify of the peer's
    /// last answer is sent back to it as it is. `None` if there was none.
    pub(crate) fn ask(&mut self, answer: &Message) -> Option<(Asked, Vec<Payload>)> {
        let link = find_notify(answer, NotifyType::ADDITIONAL_KEY_EXCHANGE)?;
        let asked = Asked::new(self.left.pop_front()?)?;
        let payloads = vec![asked.payload(), Payload::Notify(link.clone())];
        Some((asked, payloads))
    }

    /// The peer answered it.
    pub(crate) fn conclude(
        &mut self,
        asked: Asked,
        answer: &Message,
    ) -> Result<(), PeerMisbehaved> {
        let agreed = key_exchange(answer).and_then(|value| asked.agree(value).ok());
        self.secrets.push(agreed.ok_or(PeerMisbehaved::BadKem)?);
        Ok(())
    }

    /// Answers the next one. `None` if the request is not for the one agreed, or its value is none.
    pub(crate) fn answer(&mut self, request: &Message) -> Option<Payload> {
        let kem = self.left.pop_front()?;
        let (payload, secret) = intermediate::answer(kem, key_exchange(request)?).ok()?;
        self.secrets.push((kem, secret));
        Some(payload)
    }

    /// What tells the peer to ask for the next one, by a name of ours.
    pub(crate) fn link(&self, name: &[u8]) -> Option<Payload> {
        let link = || notify(NotifyType::ADDITIONAL_KEY_EXCHANGE, name.to_vec());
        (!self.is_complete()).then(link)
    }
}

/// Whether a request goes on with what has this name.
pub(crate) fn is_for(request: &Message, name: &[u8]) -> bool {
    let named = find_notify(request, NotifyType::ADDITIONAL_KEY_EXCHANGE);
    named.is_some_and(|notify| notify.data == name)
}
