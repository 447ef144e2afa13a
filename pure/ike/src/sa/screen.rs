//! Datagrams that change nothing in their IKE SA: reflections, and, once the SA has been up,
//! retransmissions, messages outside the windows, and forgeries.
//!
//! A host that has seen one message of an SA can send copies and forgeries at any rate and from any
//! address. Therefore the state runs only for a new, authentic message. Any other costs a hash or
//! an integrity check; it changes no deadline and no index, and no other SA is looked at.
//!
//! Integrity checks have no limit of their own. A source address can be forged, so a limit by SA
//! and source would let forgeries use up what the peer's next message needs (DESIGN section 4,
//! invariants 2 and 12). A check costs no more than the delivery of the datagram by the kernel.

use super::arrived::Arrived;
use super::closing::{Ending, Lingering};
use super::turn::{Context, Turn};
use super::{Sa, State, protected};
use crate::counters::DropReason;
use wire::ike::Header;

impl Sa {
    /// Returns true if the state has to handle a datagram whose SPI on our side is that of this SA.
    /// Any other was dropped and counted, or answered with the previous response.
    pub(crate) fn screen(&mut self, arrived: &Arrived<'_>, ctx: &mut Context<'_>) -> bool {
        if let Some(why) = self.misfit(arrived.datagram.header()) {
            ctx.drop(why);
            return false;
        }
        let core = &mut self.core;
        let turn = &mut Turn { core, ctx };
        let keys = match &mut self.state {
            State::Established(state) => &mut state.keys,
            State::Ending(Ending::Closing(state)) => &mut state.keys,
            State::Ending(Ending::Retired(state)) => &mut state.keys,
            State::Ending(Ending::Lingering(_)) => {
                Lingering::answer(arrived, turn);
                return false;
            }
            // Messages of unauthenticated peers have a share of the time instead.
            State::InitSent(_) | State::ResumeSent(_) => return true,
            State::KemSent(_) | State::AuthSent(_) => return true,
            State::AwaitEntry(_)
            | State::AwaitAuth(_)
            | State::AwaitProof(_)
            | State::Ending(Ending::Gone) => return true,
        };
        protected::admits(turn, &mut keys.cipher, arrived)
    }

    /// Returns the reason for which a message is not for this SA.
    fn misfit(&self, header: &Header) -> Option<DropReason> {
        if header.flags.initiator == self.core.initiator {
            return Some(DropReason::Reflected);
        }
        let first_answer = matches!(self.state, State::InitSent(_) | State::ResumeSent(_));
        let spis_fit =
            header.spi_i == self.core.spi_i && (header.spi_r == self.core.spi_r || first_answer);
        (!spis_fit).then_some(DropReason::UnknownSa)
    }
}
