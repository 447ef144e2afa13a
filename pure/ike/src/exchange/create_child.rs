//! CREATE_CHILD_SA (RFC 7296 section 1.3): rekeys of an IKE SA or child SA, and additional child
//! SAs.

use crate::allowed_suites::group_named;
use crate::exchange::{init, key_exchange, nonce, notifies, proposals};
use crypto::{KeyPair, Rng, Secret};
use model::Spi;
use wire::ike::{GroupId, KeyExchange, Message, Notify, NotifyType, Payload, Proposal, Protocol};

/// A nonce of ours, as long as those of IKE_SA_INIT.
pub(crate) type Nonce = [u8; init::NONCE_LEN];

/// The kind of SA that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// A successor of the IKE SA.
    Ike,
    /// The replacement of a child SA, named by the SPI on which the request's sender receives.
    Child(Spi),
    /// An additional child SA.
    Another,
}

/// The payloads that either message has to contain; `rules` has checked this.
pub(crate) struct Renewal<'a> {
    pub(crate) proposals: &'a [Proposal],
    pub(crate) nonce: &'a [u8],
    pub(crate) key: Option<&'a KeyExchange>,
}

impl<'a> Renewal<'a> {
    pub(crate) fn read(message: &'a Message) -> Option<Self> {
        Some(Self {
            proposals: proposals(message)?,
            nonce: nonce(message)?,
            key: key_exchange(message),
        })
    }

    /// Returns the kind of SA that a request asks for.
    pub(crate) fn wish(&self, request: &Message) -> Wish {
        let ike = |proposal: &Proposal| proposal.protocol == Protocol::IKE;
        if self.proposals.iter().any(ike) {
            return Wish::Ike;
        }
        let rekeys = |notify: &&Notify| {
            notify.kind == NotifyType::REKEY_SA && notify.protocol == Protocol::ESP
        };
        let named = notifies(request).find(rekeys);
        let spi = named.and_then(|notify| notify.spi.as_slice().try_into().ok());
        spi.map_or(Wish::Another, |spi| {
            Wish::Child(Spi(u32::from_be_bytes(spi)))
        })
    }

    /// Returns the lower of this message's nonce and another: "an octet-by-octet comparison", in
    /// which the shorter of two nonces with a common prefix is the lower one (section 2.8.1).
    pub(crate) fn lower_nonce(&self, other: &Nonce) -> Vec<u8> {
        self.nonce.min(other.as_slice()).to_vec()
    }
}

/// Returns the notify that names the child SA to replace, by the SPI on which we receive.
pub(crate) fn rekey_sa(inbound: Spi) -> Payload {
    about(NotifyType::REKEY_SA, inbound)
}

/// Inserts nonce and public value after the SA payload of a child SA, as in section 1.3.3.
pub(crate) fn renewal(
    mut child: Vec<Payload>,
    nonce: &Nonce,
    public: Option<Payload>,
) -> Vec<Payload> {
    let fresh = std::iter::once(Payload::Nonce(nonce.to_vec())).chain(public);
    child.splice(1..1, fresh);
    child
}

/// Returns a notify about a child SA.
pub(crate) fn about(kind: NotifyType, spi: Spi) -> Payload {
    Payload::Notify(Notify {
        protocol: Protocol::ESP,
        spi: spi.0.to_be_bytes().to_vec(),
        ..Notify::new(kind, Vec::new())
    })
}

/// The result of a key exchange, with the wire's number of its group.
type Agreed = (GroupId, Secret);

/// Our half of a key exchange, with the wire's number of its group.
pub(crate) struct Offered {
    group: GroupId,
    pair: KeyPair,
}

impl Offered {
    pub(crate) fn new(group: GroupId, rng: &mut Rng) -> Option<Self> {
        let pair = init::key_pair(group_named(group)?, rng);
        Some(Self { group, pair })
    }

    pub(crate) fn payload(&self) -> Payload {
        Payload::KeyExchange(KeyExchange {
            group: self.group,
            public: self.pair.public().to_vec(),
        })
    }

    /// Answers the peer's half with ours, and returns the shared secret. Returns `None` if we do
    /// not support its group or its value is invalid. An invalid value is refused before a key pair
    /// is generated.
    pub(crate) fn answer(theirs: &KeyExchange, rng: &mut Rng) -> Option<(Payload, Agreed)> {
        let group = group_named(theirs.group)?;
        let pair = init::key_pair_for(&theirs.public, group, rng).ok()?;
        let ours = Self {
            group: theirs.group,
            pair,
        };
        Some((ours.payload(), ours.agree(theirs)?))
    }

    /// Returns the shared secret, or `None` if the peer's value is of another group or invalid.
    pub(crate) fn agree(&self, key: &KeyExchange) -> Option<Agreed> {
        let fits = key.group == self.group;
        let shared = fits.then(|| self.pair.agree(&key.public))?.ok()?;
        Some((self.group, shared))
    }
}

/// Returns the group that an INVALID_KE_PAYLOAD asks for (section 1.3).
pub(crate) fn wanted_group(response: &Message) -> Option<GroupId> {
    let refusal = notifies(response).find(|n| n.kind == NotifyType::INVALID_KE_PAYLOAD)?;
    let number = refusal.data.as_slice().try_into().ok()?;
    Some(GroupId(u16::from_be_bytes(number)))
}
