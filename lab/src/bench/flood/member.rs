//! An authenticated peer that repeats one request, and also sends it damaged.

use super::scene::WAY;
use super::throttle::{Flood, Sent};
use crate::bench::crowd::{self, NON_ESP_MARKER, PEER};
use crate::bench::forge::{self, PORT, drain};
use crate::bench::responder::{self, Place};
use crate::host::Host;
use crate::process::{DEADLINE, until};
use anyhow::Result;
use crypto::Secret;
use ike::{Engine, Event, NATT_PORT};
use model::Path;
use os::{Datagrams, clock, entropy};
use std::io;
use std::net::SocketAddr;

/// One request in this many is intact; the others are damaged.
const WHOLE: u32 = 2;

/// The authenticated peer.
pub(super) struct Member {
    udp: Datagrams,
    path: Path,
    /// Its IKE_AUTH request, which was answered.
    request: Vec<u8>,
    sent: u32,
}

impl Member {
    /// Sets up the peer as the crowd's initiator of this number, and waits until it is up.
    pub fn new(host: &Host, number: u32) -> Result<Self> {
        let mut udp = forge::socket(host)?;
        let path = Path::udp(
            SocketAddr::from(([198, 19, 0, 1], PORT)),
            SocketAddr::from((WAY.to, NATT_PORT)),
        );
        let key = Secret::new(responder::KEY.to_vec());
        let mut engine = Engine::new(
            crowd::config(number, key, PORT, Place::TWO_HOSTS),
            entropy::seed(),
            clock::now(),
        );
        engine.initiate(PEER, path, clock::now())?;
        let mut request = Vec::new();
        until("a peer that is in", DEADLINE, || {
            while let Some(transmit) = engine.poll_transmit() {
                udp.send(transmit.path, 0, &transmit.payload)?;
                request = transmit.payload;
            }
            drain(&mut udp, |path, octets| {
                if let Some(message) = octets.strip_prefix(NON_ESP_MARKER) {
                    engine.handle_datagram(path, message, clock::now());
                }
            })?;
            let mut events = std::iter::from_fn(|| engine.poll_event());
            let up = events.any(|event| matches!(event, Event::ChildUp(_)));
            Ok(up.then_some(()))
        })?;
        Ok(Self {
            udp,
            path,
            request,
            sent: 0,
        })
    }
}

impl Flood for Member {
    fn send(&mut self) -> Result<Sent> {
        self.sent = self.sent.wrapping_add(1);
        let mut octets = self.request.clone();
        if !self.sent.is_multiple_of(WHOLE)
            && let Some(last) = octets.last_mut()
        {
            *last ^= 1;
        }
        let outcome = self.udp.send(self.path, 0, &octets);
        Ok(Sent::datagram(octets.len(), &outcome))
    }

    fn read(&mut self) -> io::Result<u64> {
        let mut answers = 0;
        drain(&mut self.udp, |_, _| answers += 1)?;
        Ok(answers)
    }
}
