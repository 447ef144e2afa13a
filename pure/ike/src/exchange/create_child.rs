//! CREATE_CHILD_SA (RFC 7296 section 1.3): new keys for an IKE SA or a child of it.

use crate::exchange::{init, key_exchange, nonce, notifies, proposals};
use crate::menu::group_named;
use crypto::{KeyPair, Rng, Secret};
use model::Spi;
use wire::ike::{GroupId, KeyExchange, Message, Notify, NotifyType, Payload, Proposal, Protocol};

/// Our nonces are as long as those of IKE_SA_INIT.
pub(crate) type Nonce = [u8; init::NONCE_LEN];

/// What a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// A successor of the IKE SA.
    Ike,
    /// A successor of a child, named by the SPI its sender receives on.
    Child(Spi),
    /// A child beside the others.
    Another,
}

/// What either message must hold; `rules` saw that it does.
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

    /// What is wanted, for a request.
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

    /// The lower of this message's nonce and another: "an octet-by-octet comparison", in which the
    /// shorter of two that begin alike is the lower one (section 2.8.1).
    pub(crate) fn lower_nonce(&self, other: &Nonce) -> Vec<u8> {
        self.nonce.min(other.as_slice()).to_vec()
    }
}

/// The notify that names the child to be replaced, by the SPI we receive on.
pub(crate) fn rekey_sa(inbound: Spi) -> Payload {
    about(NotifyType::REKEY_SA, inbound)
}

/// A child's payloads with nonce and public value behind the SA payload, as section 1.3.3 has them.
pub(crate) fn renewal(
    mut child: Vec<Payload>,
    nonce: &Nonce,
    public: Option<Payload>,
) -> Vec<Payload> {
    let fresh = std::iter::once(Payload::Nonce(nonce.to_vec())).chain(public);
    child.splice(1..1, fresh);
    child
}

/// A notify about a child.
pub(crate) fn about(kind: NotifyType, spi: Spi) -> Payload {
    Payload::Notify(Notify {
        protocol: Protocol::ESP,
        spi: spi.0.to_be_bytes().to_vec(),
        ..Notify::new(kind, Vec::new())
    })
}

/// What came of a key exchange, with the wire's name of its group.
type Agreed = (GroupId, Secret);

/// Our half of a key exchange, by the wire's name of its group.
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

    /// Answers the peer's half with ours, and gives the shared secret. `None` if its group is none of ours or
    /// its value unacceptable, which costs no key.
    pub(crate) fn answer(theirs: &KeyExchange, rng: &mut Rng) -> Option<(Payload, Agreed)> {
        let group = group_named(theirs.group)?;
        let pair = init::key_pair_for(&theirs.public, group, rng).ok()?;
        let ours = Self {
            group: theirs.group,
            pair,
        };
        Some((ours.payload(), ours.agree(theirs)?))
    }

    /// The shared secret. `None` if the peer's value is of another group or unacceptable.
    pub(crate) fn agree(self, key: &KeyExchange) -> Option<Agreed> {
        let fits = key.group == self.group;
        let shared = fits.then(|| self.pair.agree(&key.public))?.ok()?;
        Some((self.group, shared))
    }
}

/// The group that an INVALID_KE_PAYLOAD asks for (section 1.3).
pub(crate) fn wanted_group(response: &Message) -> Option<GroupId> {
    let refusal = notifies(response).find(|n| n.kind == NotifyType::INVALID_KE_PAYLOAD)?;
    let number = refusal.data.as_slice().try_into().ok()?;
    Some(GroupId(u16::from_be_bytes(number)))
}
