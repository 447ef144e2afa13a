//! Deleting SAs (RFC 7296 section 1.4.1).

use wire::ike::{Delete, Message, Payload, Protocol};

/// Returns the payload of the request that closes the IKE SA.
pub(crate) fn ike_sa() -> Payload {
    Payload::Delete(Delete::IkeSa)
}

/// Returns the payload of the request that deletes a child SA, by the SPI on which we receive.
pub(crate) fn child(inbound: model::Spi) -> Payload {
    Payload::Delete(Delete::Children {
        protocol: Protocol::ESP,
        spis: vec![inbound],
    })
}

/// Returns true if a request closes the IKE SA. Its child SAs are deleted too.
pub(crate) fn closes_ike_sa(request: &Message) -> bool {
    request.payloads.contains(&ike_sa())
}

/// Returns the ESP SAs that a request deletes, by the SPIs on which its sender receives. The caller
/// ignores SPIs that are unknown or occur twice.
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

/// Returns the payload for the other direction of deleted child SAs: "the response in the
/// INFORMATIONAL exchange will contain Delete payloads for the paired SAs going in the other
/// direction".
pub(crate) fn paired(spis: Vec<model::Spi>) -> Option<Payload> {
    let protocol = Protocol::ESP;
    (!spis.is_empty()).then_some(Payload::Delete(Delete::Children { protocol, spis }))
}
