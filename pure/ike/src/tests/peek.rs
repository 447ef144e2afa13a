//! Access to the keys of any state, for tests that read messages or make genuine ones.

use crate::Engine;
use crate::cipher::Cipher;
use crate::sa::closing::Ending;
use crate::sa::{Sa, State, protected};
use model::{IkeSaId, Instant};
use std::time::Duration;
use wire::ike::{Content, Datagram, ExchangeType, Fragment, Header, Message, Payload, PayloadType};

impl Engine {
    /// Returns the content of a protected message for one of this engine's IKE SAs.
    pub(crate) fn peek(&self, octets: &[u8]) -> Option<Message> {
        let Ok(Datagram::Sealed(sealed)) = Datagram::decode(octets) else {
            return None;
        };
        let (spi_i, spi_r) = (sealed.header.spi_i, sealed.header.spi_r);
        let mut sas = self.sas.values();
        let sa = sas.find(|sa| (sa.core.spi_i, sa.core.spi_r) == (spi_i, spi_r))?;
        let content = cipher(sa)?.open(&sealed).ok()?;
        content.message(sealed.header).ok()
    }

    /// Seals a message with any content under this engine's keys for its SPIs.
    pub(crate) fn seal(&mut self, message: &Message) -> Option<Vec<u8>> {
        let spis = (message.header.spi_i, message.header.spi_r);
        let mut sas = self.sas.values_mut();
        let sa = sas.find(|sa| (sa.core.spi_i, sa.core.spi_r) == spis)?;
        Some(cipher_mut(sa)?.seal(message))
    }

    /// Sends a protected request as no task would.
    pub(crate) fn request_raw(
        &mut self,
        sa: IkeSaId,
        exchange: ExchangeType,
        payloads: Vec<Payload>,
        now: Instant,
    ) {
        self.with_established(sa, now, |state, turn| {
            let allowed = Duration::from_millis(500);
            protected::request(turn, &mut state.keys.cipher, exchange, payloads, allowed);
        })
        .expect("the SA is up");
    }

    /// Opens a protected message without handling it.
    pub(crate) fn open_raw(&self, sa: IkeSaId, message: &[u8]) -> Message {
        let up = self.sas[&sa].established().expect("the SA is up");
        match Datagram::decode(message) {
            Ok(Datagram::Sealed(sealed)) => {
                let content = up.keys.cipher.open(&sealed).expect("genuine");
                content.message(sealed.header).expect("readable")
            }
            other => panic!("not protected: {other:?}"),
        }
    }
}

impl Engine {
    /// Seals one fragment with any content.
    pub(crate) fn seal_piece(
        &mut self,
        header: &Header,
        (number, total): (u16, u16),
        octets: Vec<u8>,
    ) -> Option<Vec<u8>> {
        let spis = (header.spi_i, header.spi_r);
        let mut sas = self.sas.values_mut();
        let sa = sas.find(|sa| (sa.core.spi_i, sa.core.spi_r) == spis)?;
        let content = Content {
            first: PayloadType::NONCE,
            octets: octets.into(),
        };
        let at = Fragment { number, total };
        Some(cipher_mut(sa)?.seal_content(&content, header, Some(at)))
    }
}

impl Engine {
    /// Returns the number of child SAs that peers are creating.
    pub(crate) fn openings(&self) -> usize {
        let up = self.sas.values().filter_map(|sa| sa.established());
        up.map(|up| up.openings.incomplete.len()).sum()
    }

    /// Returns SK_d of the only IKE SA.
    pub(crate) fn sk_d(&self) -> &[u8] {
        let mut up = self.sas.values().filter_map(|sa| sa.established());
        up.next().expect("one is up").keys.sk_d()
    }

    /// Treats all peers as if they had not sent our vendor ID.
    pub(crate) fn forget_vendor(&mut self) {
        for sa in self.sas.values_mut() {
            match &mut sa.state {
                State::Established(up) => up.terms.private = false,
                State::AwaitAuth(state) => state.private = false,
                _ => {}
            }
        }
    }
}

fn cipher(sa: &Sa) -> Option<&Cipher> {
    match &sa.state {
        State::KemSent(state) => Some(&state.proof.handshake.keys.cipher),
        State::AuthSent(state) => Some(&state.proof.handshake.keys.cipher),
        State::AwaitAuth(state) => Some(&state.proof.handshake.keys.cipher),
        State::Established(state) => Some(&state.keys.cipher),
        State::Ending(Ending::Closing(state)) => Some(&state.keys.cipher),
        State::Ending(Ending::Retired(state)) => Some(&state.keys.cipher),
        State::AwaitProof(state) => Some(state.cipher()),
        State::InitSent(_) | State::ResumeSent(_) | State::AwaitEntry(_) | State::Ending(_) => None,
    }
}

fn cipher_mut(sa: &mut Sa) -> Option<&mut Cipher> {
    match &mut sa.state {
        State::KemSent(state) => Some(&mut state.proof.handshake.keys.cipher),
        State::AuthSent(state) => Some(&mut state.proof.handshake.keys.cipher),
        State::AwaitAuth(state) => Some(&mut state.proof.handshake.keys.cipher),
        State::Established(state) => Some(&mut state.keys.cipher),
        State::Ending(Ending::Closing(state)) => Some(&mut state.keys.cipher),
        State::Ending(Ending::Retired(state)) => Some(&mut state.keys.cipher),
        State::AwaitProof(state) => Some(state.cipher_mut()),
        State::InitSent(_) | State::ResumeSent(_) | State::AwaitEntry(_) | State::Ending(_) => None,
    }
}
