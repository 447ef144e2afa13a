//! Deleting SAs (RFC 7296 section 1.4.1).

use wire::ike::{Delete, Message, Payload, Protocol};

/// The request that closes the IKE SA.
pub(crate) fn ike_sa() -> Payload {
    Payload::Delete(Delete::IkeSa)
}

/// The request that deletes a child, by the SPI we receive on.
pub(crate) fn child(inbound: model::Spi) -> Payload {
    Payload::Delete(Delete::Children {
        protocol: Protocol::ESP,
        spis: vec![inbound],
    })
}

/// Whether a request closes the IKE SA. Children go with it.
pub(crate) fn closes_ike_sa(request: &Message) -> bool {
    request.payloads.contains(&ike_sa())
}

/// The ESP SAs that a request deletes, by the SPIs its sender receives on. A number that names
/// nothing, or comes twice, is simply not found by who looks it up.
pub(crate) fn children(request: &Message) -> impl Iterator<Item = model::Spi> + '_ {
    request
        .payloads
        .iter()
        .filter_map(|payload| match payload {
            Payload::Delete(Delete::Children {
                protocol: Protocol::ESP,
                spis,
            }) => Some(spis),
            _ => None,
        })
        .flatten()
        .copied()
}

/// The other direction of what the peer deleted: "the response in the INFORMATIONAL exchange will
/// contain Delete payloads for the paired SAs going in the other direction".
pub(crate) fn paired(spis: Vec<model::Spi>) -> Option<Payload> {
    let protocol = Protocol::ESP;
    (!spis.is_empty()).then_some(Payload::Delete(Delete::Children { protocol, spis }))
}
