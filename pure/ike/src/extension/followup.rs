//! IKE_FOLLOWUP_KE (RFC 9370 section 2.2.4): the additional key exchanges after CREATE_CHILD_SA,
//! for the successor of the IKE SA or for a child SA.
//!
//! ```text
//!  CREATE_CHILD_SA   SK {SA(ADDKE1 = ML-KEM-768), Ni, KEi, ...}  -->
//!                         <--  SK {SA, Nr, KEr, ..., N(ADDITIONAL_KEY_EXCHANGE)}
//!  IKE_FOLLOWUP_KE   SK {KE(public key), N(ADDITIONAL_KEY_EXCHANGE)}  -->
//!                         <--  SK {KE(ciphertext)}
//! ```
//!
//! The SA is created with the last answer and not before. Each request repeats the
//! ADDITIONAL_KEY_EXCHANGE data of the previous answer, which identifies the state. A responder
//! that no longer has this state answers STATE_NOT_FOUND. The whole exchange has then failed, and
//! may be started again.

use crate::down_reason::PeerMisbehaved;
use crate::exchange::{find_notify, key_exchange, notify};
use crate::extension::intermediate::{self, Asked};
use crypto::Secret;
use model::Kem;
use std::collections::VecDeque;
use wire::ike::{Message, NotifyType, Payload};

/// Number of failures in a row that is fatal: "If the initiator continues to receive
/// STATE_NOT_FOUND notifications after several retries, it MUST treat this situation as a fatal
/// error".
pub(crate) const MOST_FORGOTTEN: u8 = 5;

/// The follow-up key exchanges of one CREATE_CHILD_SA.
pub(crate) struct Series {
    /// The key exchanges that are still to come.
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

    /// Returns true if all key exchanges have taken place.
    pub(crate) fn is_complete(&self) -> bool {
        self.left.is_empty()
    }

    /// Returns the shared secrets, in the order of the exchanges.
    pub(crate) fn secrets(self) -> Vec<(Kem, Secret)> {
        self.secrets
    }

    /// Starts the next key exchange as its initiator. Returns our half and the request's payloads.
    /// The notify of the peer's last answer is sent back unchanged; returns `None` if there was
    /// none.
    pub(crate) fn ask(&mut self, answer: &Message) -> Option<(Asked, Vec<Payload>)> {
        let link = find_notify(answer, NotifyType::ADDITIONAL_KEY_EXCHANGE)?;
        let asked = Asked::new(self.left.pop_front()?)?;
        let payloads = vec![asked.payload(), Payload::Notify(link.clone())];
        Some((asked, payloads))
    }

    /// Processes the peer's answer to a key exchange.
    pub(crate) fn conclude(
        &mut self,
        asked: Asked,
        answer: &Message,
    ) -> Result<(), PeerMisbehaved> {
        let agreed = key_exchange(answer).and_then(|value| asked.agree(value).ok());
        self.secrets.push(agreed.ok_or(PeerMisbehaved::BadKem)?);
        Ok(())
    }

    /// Answers the next key exchange. Returns `None` if the request is for another method than
    /// negotiated, or its value is invalid.
    pub(crate) fn answer(&mut self, request: &Message) -> Option<Payload> {
        let kem = self.left.pop_front()?;
        let (payload, secret) = intermediate::answer(kem, key_exchange(request)?).ok()?;
        self.secrets.push((kem, secret));
        Some(payload)
    }

    /// Returns the notify that makes the peer request the next key exchange, with our name of the
    /// state.
    pub(crate) fn link(&self, name: &[u8]) -> Option<Payload> {
        let link = || notify(NotifyType::ADDITIONAL_KEY_EXCHANGE, name.to_vec());
        (!self.is_complete()).then(link)
    }
}

/// Returns true if a request continues the state with this name.
pub(crate) fn is_for(request: &Message, name: &[u8]) -> bool {
    let named = find_notify(request, NotifyType::ADDITIONAL_KEY_EXCHANGE);
    named.is_some_and(|notify| notify.data == name)
}
