//! IKE_SA_INIT (RFC 7296 section 1.2): algorithms, public values and nonces, unencrypted.

use crate::allowed_suites::group_id;
use crate::exchange::{key_exchange, nonce, proposals};
use crypto::{BadPublicValue, KeyPair, Rng};
use model::Group;
use wire::ike::{KeyExchange, Message, Payload, Proposal};

/// Length of our nonces in octets: that of the PRF's key (RFC 7296 section 2.10).
pub(crate) const NONCE_LEN: usize = 32;

/// The payloads that either message has to contain; `rules` has checked this.
pub(crate) struct Init<'a> {
    pub(crate) proposals: &'a [Proposal],
    pub(crate) key: &'a KeyExchange,
    pub(crate) nonce: &'a [u8],
}

impl<'a> Init<'a> {
    pub(crate) fn read(message: &'a Message) -> Option<Self> {
        Some(Self {
            proposals: proposals(message)?,
            key: key_exchange(message)?,
            nonce: nonce(message)?,
        })
    }
}

/// Generates a key pair of a group.
pub(crate) fn key_pair(group: Group, rng: &mut Rng) -> KeyPair {
    KeyPair::generate(of(group), rng)
}

/// Generates a key pair to answer a peer's public value. An invalid value is refused first, so that
/// it costs no key pair.
pub(crate) fn key_pair_for(
    theirs: &[u8],
    group: Group,
    rng: &mut Rng,
) -> Result<KeyPair, BadPublicValue> {
    check(group, theirs)?;
    Ok(key_pair(group, rng))
}

/// Refuses a public value that no honest peer sends.
pub(crate) fn check(group: Group, theirs: &[u8]) -> Result<(), BadPublicValue> {
    of(group).check(theirs)
}

const fn of(group: Group) -> crypto::Group {
    match group {
        Group::X25519 => crypto::Group::X25519,
        Group::P256 => crypto::Group::P256,
        Group::P384 => crypto::Group::P384,
        Group::Modp3072 => crypto::Group::Modp3072,
        Group::Modp2048 => crypto::Group::Modp2048,
    }
}

/// Replaces the public value of a message that begins with [`payloads`].
pub(crate) fn set_public(message: &mut Message, public: &[u8]) {
    if let Some(Payload::KeyExchange(key)) = message.payloads.get_mut(1) {
        key.public = public.to_vec();
    }
}

/// Returns the three payloads with which every message of the exchange begins.
pub(crate) fn payloads(
    proposals: Vec<Proposal>,
    group: Group,
    public: &[u8],
    nonce: &[u8],
) -> Vec<Payload> {
    vec![
        Payload::SecurityAssociation(proposals),
        Payload::KeyExchange(KeyExchange {
            group: group_id(group),
            public: public.to_vec(),
        }),
        Payload::Nonce(nonce.to_vec()),
    ]
}
