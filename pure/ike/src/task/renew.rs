//! New keys with ML-KEM for a session that SKID3 has resumed with a key exchange
//! (`extension/skid.rs`).
//!
//! The public values of additional key exchanges are too long for the messages of SKID3, which are
//! not fragmented. The initiator therefore rekeys the IKE SA as soon as it is up at both ends, and
//! its child SAs after that: all keys then come from an SK_d that includes a new exchange. Until
//! then, the entry and the group protect the packets.

use crate::sa::turn::Turn;
use crate::session::Session;
use crate::session::children::Life;
use model::Instant;

/// Rekeys the IKE SA at once, and its child SAs after it, if the lost IKE SA had an additional key
/// exchange that our configuration still allows.
pub(crate) fn begin(session: &mut Session, turn: &Turn<'_, '_>) {
    let Some(peer) = turn.core.peer(turn.ctx.config) else {
        return;
    };
    let mut kems = session.keys.kems.iter();
    if kems.any(|kem| peer.kems.contains(&Some(*kem))) {
        session.replacement.renews_children = true;
        session.lifetime.keys.hasten(false, turn.ctx.now);
    }
}

/// Rekeys the child SAs of an IKE SA that a successor has replaced, if they wait for it.
pub(crate) fn proceed(session: &mut Session, now: Instant) {
    if !std::mem::take(&mut session.replacement.renews_children) {
        return;
    }
    for child in session.children.all_current_mut() {
        if let Life::Current(age) = &mut child.life {
            age.hasten(false, now);
        }
    }
}
