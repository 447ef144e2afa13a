//! The twin of a conversation, in which the peer is honest: what it says is what the insider would.

use crate::insider::{bodies, open};
use crate::notation::Bodies;
use crate::scene::{Scene, Talk, WHOLE, grant};
use ike::Engine;
use model::Instant;
use wire::ike::{Datagram, ExchangeType};

/// What an honest peer would say in the insider's place; of CREATE_CHILD_SA, about the child or about
/// the IKE SA.
pub fn honest(scene: Scene, exchange: u8, response: bool, about_ike: bool) -> Bodies {
    // In it there is nothing that everybody says.
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

/// Has new keys asked for, if there is something to renew.
pub fn renew(engine: &mut Engine, about_ike: bool, now: Instant) {
    let Some(sa) = engine.sas().next() else {
        return;
    };
    match (about_ike, sa.children.first()) {
        (true, _) => engine.rekey_ike(sa.id, now),
        (false, Some(child)) => engine.rekey_child(sa.id, *child, now),
        (false, None) => {}
    }
}
