//! The twin of a conversation, with an honest peer in the insider's place.

use crate::insider::{bodies, open};
use crate::notation::Bodies;
use crate::scene::{Scene, Talk, WHOLE, grant, insiders};
use ike::Engine;
use model::Instant;
use wire::ike::{Datagram, ExchangeType};

/// Returns the payloads that an honest peer would send in the insider's place. For CREATE_CHILD_SA
/// they concern the child or the IKE SA.
pub fn honest(scene: Scene, exchange: u8, response: bool, about_ike: bool) -> Bodies {
    // An honest INFORMATIONAL message is empty.
    if exchange == ExchangeType::INFORMATIONAL.0 {
        return Bodies::new();
    }
    let mut talk = Talk::until(scene, WHOLE);
    let keys = talk.keys();
    match ExchangeType(exchange) {
        ExchangeType::CREATE_CHILD_SA => {
            let asks = if response {
                &mut talk.host
            } else {
                &mut talk.peer
            };
            renew(asks, about_ike, Instant::ZERO);
        }
        ExchangeType::KEY_DISTRIBUTE if !response => {
            let sa = talk.sa();
            talk.peer.distribute(sa, grant(), Instant::ZERO);
        }
        _ => {}
    }
    talk.go_on(2);
    let mut said = talk.said.iter().rev().filter_map(|octets| {
        let message = match Datagram::decode(octets) {
            Ok(Datagram::Clear(message)) => message,
            _ => open(&keys, octets)?,
        };
        let header = &message.header;
        let from_peer = header.flags.initiator == scene.insider_begins;
        let fits = header.exchange.0 == exchange && header.flags.response == response;
        (from_peer && fits).then(|| bodies(&message))
    });
    said.next().unwrap_or_default()
}

/// Requests a rekey of an SA between host and insider, if there is one.
pub fn renew(engine: &mut Engine, about_ike: bool, now: Instant) {
    let Some(sa) = insiders(engine).next() else {
        return;
    };
    match (about_ike, sa.children.first()) {
        (true, _) => engine.rekey_ike(sa.id, now),
        (false, Some(child)) => engine.rekey_child(sa.id, *child, now),
        (false, None) => {}
    }
}
