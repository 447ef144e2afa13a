//! A TCP connection that was lost (RFC 9329 section 6).

use super::liveness::Check;
use crate::extension::tcp::another;
use crate::sa::protected;
use crate::sa::turn::Turn;
use crate::session::Session;

/// Replaces a lost connection at once, and sends a message on the new one. If that is lost as
/// well before anything arrived, the next attempt waits for a retransmission.
pub(crate) fn reconnect(session: &mut Session, turn: &mut Turn<'_, '_>) {
    if std::mem::replace(&mut turn.core.lost, true) {
        return;
    }
    turn.core.port = 0;
    let path = another(turn.core.path, turn.ctx.rng);
    // "The Initiator MUST retransmit its request over this connection" (section 6.2).
    protected::switch_to(turn, path);
    turn.carry(session.children.on_path_of_ike());
    session.announce_path();
    // "It is suggested that the TCP Originator send an UPDATE_SA_ADDRESSES message" or "an empty
    // informational message" (section 6.1).
    if !session.announces_moves() && turn.core.requests.is_idle() {
        session.ask(Check::Liveness, turn);
    }
}
