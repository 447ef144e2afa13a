//! The announcement of our window size on a new IKE SA (`extension/overlap.rs`).

use crate::extension::overlap;
use crate::peer_table::PeerTable;
use crate::sa::core::Core;
use crate::sa::turn::Turn;
use crate::session::Session;
use crate::session::task::Task;
use wire::ike::Payload;

struct Window(u8);

impl Task for Window {
    fn payloads(&self, _: &Session, _: &mut Turn<'_, '_>) -> Vec<Payload> {
        vec![overlap::payload(self.0)]
    }

    fn ends_with_keys(&self) -> bool {
        true
    }
}

/// Announces our window to the peer: "When rekeying an IKE SA, the new IKE SA starts with
/// window size 1 until it is explicitly increased by sending a new SET_WINDOW_SIZE
/// notification" (section 2.3).
pub(crate) fn tell(session: &mut Session, next: &mut Core, config: &PeerTable) {
    let window = next.own_window(config);
    if window > 1 {
        next.responses.widen(window);
        session.queue.push_first(Box::new(Window(window)));
    }
}
