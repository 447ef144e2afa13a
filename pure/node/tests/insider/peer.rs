//! An insider that reads its messages from an arbitrary script of octets.
//!
//! ```text
//! script  = scene (1) | message, ...
//! message = what (1) | exchange (1) | payloads (1) | payload, ...
//! payload = type (1) | length (2) | body
//! ```

use crate::insider::{Chain, Insider, RESPONSE, bodies, open};
use crate::scene::{SCENES, SCRIPTED, Scene, Talk, WHOLE, path};
use std::time::Duration;
use wire::ike::Message;

const MOST_MESSAGES: usize = 16;
const ANSWER: u8 = 1;
const ANY_ID: u8 = 2;
const LATER: u8 = 4;
const WITHOUT_PADDING: u8 = 8;

/// Plays one script to the end. Returns the number of messages that were acted upon. Panics if the
/// host miscounts or a timer never ends.
pub fn play(script: &[u8]) -> u64 {
    let mut script = Script(script);
    let mut insider = Insider::enter(scene(script.octet()));
    let before = insider.host.counters().taken;
    for _ in 0..MOST_MESSAGES {
        if script.0.is_empty() {
            break;
        }
        say(&mut insider, &mut script);
    }
    let checked = insider.check_bystander();
    assert_eq!(checked, Ok(()));
    insider.leave() - before
}

fn scene(number: u8) -> Scene {
    SCENES[usize::from(number % SCRIPTED)]
}

fn say(insider: &mut Insider, script: &mut Script<'_>) {
    let (what, exchange) = (script.octet(), script.octet());
    let chain = script.chain();
    let asked = insider.asked.filter(|_| what & ANSWER != 0);
    let id = asked.map_or(insider.next_id, |header| header.message_id);
    let id = if what & ANY_ID != 0 {
        id.wrapping_add(exchange.into())
    } else {
        id
    };
    let exchange = match (asked, exchange) {
        (Some(header), 0..128) => header.exchange.0,
        (_, other) => [34, 35, 36, 37, 240, 241, other][usize::from(other) % 7],
    };
    let response = if what & ANSWER != 0 { RESPONSE } else { 0 };
    let head = insider.head(exchange, response, id);
    let tail = (what & WITHOUT_PADDING == 0).then_some(0);
    let message = insider.seal(head, &chain, tail, None);
    insider.deliver(path(2, ike::NATT_PORT), &message);
    if what & LATER != 0 {
        insider.now += Duration::from_millis(1 << (what >> 4));
    }
    insider.tick();
}

/// A script being read; zeros follow its end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn octet(&mut self) -> u8 {
        let (&octet, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        octet
    }

    fn take(&mut self, len: usize) -> &[u8] {
        let (front, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        front
    }

    fn chain(&mut self) -> Chain {
        let count = self.octet() % 24;
        let payloads: Vec<_> = (0..count)
            .map(|_| {
                let (kind, len) = (self.octet(), [self.octet(), self.octet()]);
                let len = usize::from(u16::from_be_bytes(len)) % 2048;
                (kind, self.take(len).to_vec())
            })
            .collect();
        let mut octets = Vec::new();
        for (index, (_, body)) in payloads.iter().enumerate() {
            let next = payloads.get(index + 1).map_or(0, |(kind, _)| *kind);
            octets.extend([next, 0]);
            octets.extend((body.len() as u16 + 4).to_be_bytes());
            octets.extend(body);
        }
        let first = payloads.first().map_or(0, |(kind, _)| *kind);
        Chain { first, octets }
    }
}

/// Returns a script with both ends' protected messages of an honest handshake.
pub fn honest(number: u8) -> Vec<u8> {
    let whole = Talk::until(scene(number), WHOLE);
    let keys = whole.keys();
    let mut script = vec![number % SCRIPTED];
    for message in &whole.said[2..] {
        let opened = open(&keys, message).expect("an honest message");
        write(&mut script, &opened);
    }
    script
}

fn write(script: &mut Vec<u8>, message: &Message) {
    let exchange = match message.header.exchange.0 {
        240 => 4,
        other => other.wrapping_sub(34) % 7,
    };
    let answer = u8::from(message.header.flags.response);
    script.extend([answer, exchange, message.payloads.len() as u8]);
    for (kind, body) in bodies(message) {
        script.push(kind);
        script.extend((body.len() as u16).to_be_bytes());
        script.extend(body);
    }
}
