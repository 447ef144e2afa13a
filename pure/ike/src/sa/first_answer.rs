//! The answer to an initiator's first message: what it settles in either exchange that begins an
//! IKE SA, IKE_SA_INIT and IKE_SESSION_RESUME.

use super::arrived::Arrived;
use super::core::Core;
use super::turn::Turn;
use crate::extension::fragment;
use crate::extension::nat::{self, Nat};
use wire::ike::Message;

/// Detects NATs by the hashes of an answer. With an unspecified local address our own hash was
/// random, so the peer sees a NAT here.
pub(super) fn detect_nat(response: &Message, arrived: &Arrived<'_>, core: &Core) -> Option<Nat> {
    let mut nat = nat::detect(response, arrived.path);
    let open = core.path.local.ip().is_unspecified();
    nat.iter_mut().for_each(|nat| nat.theirs |= open);
    nat
}

/// Continues with the SPI of an acceptable answer, and on the path for IKE_AUTH. It goes to the
/// address of the request, even if the unauthenticated answer came from another one.
pub(super) fn accept(
    response: &Message,
    arrived: &Arrived<'_>,
    nat: Option<Nat>,
    turn: &mut Turn<'_, '_>,
) {
    turn.ctx.count_taken();
    turn.core.requests.answered(0, turn.ctx.now);
    turn.core.refused = false;
    turn.core.spi_r = response.header.spi_r;
    turn.core.limit = fragment::agreed(response, turn.ctx.config);
    turn.core.nat = nat;
    let mut path = arrived.path;
    path.remote = turn.core.path.remote;
    turn.core.path = match nat {
        // "No change should be made for encapsulation" (RFC 9329 section 6.5).
        _ if path.is_stream() => path,
        Some(_) => nat::float(path, turn.ctx.config.natt_port),
        None => path,
    };
}
