//! A record of the messages with their content, events and states of two engines, in order.
//!
//! The pair keeps a trace of every test. `flows` turns some traces into sequence diagrams. `states`
//! compares the state changes of all traces with the documented ones.

use super::pair::{Flying, Side};
use crate::sa::State;
use crate::sa::closing::Ending;
use crate::{Engine, Event};
use model::{IkeSaId, Instant};
use pages::Machine;
use std::collections::BTreeMap;
use wire::ike::{Datagram, Delete, ExchangeType, Fragment, Message, Payload, PayloadType, Sealed};

#[derive(Default)]
pub(crate) struct Trace {
    pub(crate) steps: Vec<Step>,
    /// Start of the story: later than the start of the test if the story is about an SA that is up.
    pub(crate) begun: Instant,
    /// All state changes of IKE SAs, at either end.
    pub(crate) machine: Machine,
    /// States by the SPI at that end: a rekeyed SA and its successor have one each.
    states: [BTreeMap<u64, Seen>; 2],
}

/// One step of a trace.
pub(crate) struct Step {
    pub(crate) at: Instant,
    pub(crate) side: Side,
    pub(crate) what: What,
}

pub(crate) enum What {
    /// A message left for the other end.
    Sent { text: String, lost: bool },
    /// The state of an IKE SA changed.
    State {
        sa: IkeSaId,
        from: Option<&'static str>,
        to: Option<&'static str>,
    },
    /// The engine reported an event.
    Told(String),
}

/// The last observed state of an IKE SA.
#[derive(Clone, Copy)]
struct Seen {
    state: &'static str,
    sa: IkeSaId,
}

/// The input that an engine processed.
#[derive(Clone, Copy)]
pub(crate) enum Cause<'a> {
    Command,
    Timeout,
    /// The outcome of a request to the store.
    Stored,
    Arrived(&'a [u8]),
}

impl Trace {
    /// Records the state changes of one end. Call this before recording the messages that the end
    /// sends.
    pub(crate) fn look(&mut self, at: Instant, side: Side, engine: &Engine, cause: Cause<'_>) {
        let before = std::mem::take(&mut self.states[side as usize]);
        let now = states(engine);
        let spis: std::collections::BTreeSet<_> = before.keys().chain(now.keys()).collect();
        for spi in spis {
            let (old, new) = (before.get(spi), now.get(spi));
            let (from, to) = (old.map(|seen| seen.state), new.map(|seen| seen.state));
            if from != to
                && let Some(Seen { sa, .. }) = old.or(new)
            {
                self.machine.note(from, to, &cause.of(*spi, from));
                self.push(at, side, What::State { sa: *sa, from, to });
            }
        }
        self.states[side as usize] = now;
    }

    pub(crate) fn told(&mut self, at: Instant, side: Side, event: &Event) {
        self.push(at, side, What::Told(event_name(event)));
    }

    /// Records a message; `receiver` opens it for the description.
    pub(crate) fn sent(&mut self, at: Instant, flying: &Flying, receiver: &Engine, lost: bool) {
        let text = describe(&flying.message, receiver);
        self.push(at, flying.to.other(), What::Sent { text, lost });
    }

    /// Starts the story here and drops the steps so far.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.steps.clear();
        self.begun = now;
    }

    /// Forgets a host's states, because the host has restarted without ending its SAs.
    pub(crate) fn forget(&mut self, side: Side) {
        self.states[side as usize].clear();
    }

    /// Continues with another host at one end, whose states are no changes.
    pub(crate) fn adopt(&mut self, side: Side, engine: &Engine) {
        self.states[side as usize] = states(engine);
    }

    /// Marks the last `count` messages as lost.
    pub(crate) fn lose(&mut self, count: usize) {
        let sent = self
            .steps
            .iter_mut()
            .rev()
            .filter_map(|step| match &mut step.what {
                What::Sent { lost, .. } => Some(lost),
                What::State { .. } | What::Told(_) => None,
            });
        sent.take(count).for_each(|lost| *lost = true);
    }

    fn push(&mut self, at: Instant, side: Side, what: What) {
        self.steps.push(Step { at, side, what });
    }
}

impl Cause<'_> {
    /// Describes the cause as seen by the IKE SA with this SPI.
    fn of(self, own_spi: u64, from: Option<&str>) -> String {
        let begins = from.is_none();
        let awaits_store = matches!(from, Some("AwaitEntry" | "AwaitAuth"));
        let message = match self {
            Self::Command if begins => return "`initiate`".to_owned(),
            Self::Command => return "`close` or `shutdown`".to_owned(),
            Self::Timeout => return "a deadline".to_owned(),
            Self::Stored if awaits_store => return "the store's answer".to_owned(),
            Self::Stored => return "another IKE SA of the same peer".to_owned(),
            Self::Arrived(message) => message,
        };
        let Ok(header) = wire::ike::Header::peek(message) else {
            return "an unreadable message".to_owned();
        };
        let named = [header.spi_i, header.spi_r].contains(&own_spi);
        let first = header.exchange == ExchangeType::IKE_SA_INIT && !header.flags.response;
        if !named && !begins && first {
            return "another initiator, if too many have proved nothing".to_owned();
        }
        if !named && !begins {
            return "another IKE SA of the same peer".to_owned();
        }
        let kind = if header.flags.response {
            "response"
        } else {
            "request"
        };
        format!("{} {kind}", header.exchange)
    }
}

/// Returns the states of all SAs, by our SPI.
fn states(engine: &Engine) -> BTreeMap<u64, Seen> {
    let sas = engine.sas.iter().map(|(sa, of)| {
        let state = name(&of.state);
        (of.core.own_spi(), Seen { state, sa: *sa })
    });
    sas.collect()
}

pub(crate) const fn name(state: &State) -> &'static str {
    match state {
        State::InitSent(_) => "InitSent",
        State::ResumeSent(_) => "ResumeSent",
        State::KemSent(_) => "KemSent",
        State::AuthSent(_) => "AuthSent",
        State::AwaitEntry(_) => "AwaitEntry",
        State::AwaitAuth(_) => "AwaitAuth",
        State::AwaitProof(_) => "AwaitProof",
        State::Established(_) => "Established",
        State::Ending(Ending::Closing(_)) => "Closing",
        State::Ending(Ending::Retired(_)) => "Retired",
        State::Ending(Ending::Lingering(_)) => "Lingering",
        State::Ending(Ending::Gone) => "Gone",
    }
}

/// Returns the name of an event, with its reason if it has one.
fn event_name(event: &Event) -> String {
    let variant = |debug: String| {
        let end = debug
            .find(|c: char| !c.is_alphanumeric())
            .unwrap_or(debug.len());
        debug[..end].to_owned()
    };
    let reason = match event {
        Event::IkeDown { why, .. } => Some(format!("{why:?}")),
        Event::Refused { why, .. } => Some(format!("{why:?}")),
        Event::GrantRefused { why, .. } => Some(format!("{why:?}")),
        _ => None,
    };
    let name = variant(format!("{event:?}"));
    match reason.map(variant) {
        Some(reason) => format!("{name}({reason})"),
        None => name,
    }
}

/// Returns the names of the exchange and its payloads, without anything secret or random.
fn describe(octets: &[u8], receiver: &Engine) -> String {
    let header = wire::ike::Header::peek(octets).expect("we made it");
    let kind = if header.flags.response {
        "response"
    } else {
        "request"
    };
    let head = format!("{} {kind} {}", header.exchange, header.message_id);
    match Datagram::decode(octets).expect("we made it") {
        Datagram::Clear(message) => format!("{head}: {}", payloads(&message)),
        Datagram::Sealed(Sealed {
            fragment: Some(Fragment { number, total }),
            ..
        }) => format!("{head}: SKF {number} of {total}"),
        Datagram::Sealed(_) => match receiver.peek(octets) {
            Some(message) if message.payloads.is_empty() => format!("{head}: SK {{}}"),
            Some(message) => format!("{head}: SK {{ {} }}", payloads(&message)),
            None => format!("{head}: SK (the receiver has no key)"),
        },
    }
}

fn payloads(message: &Message) -> String {
    let names: Vec<_> = message.payloads.iter().map(payload_name).collect();
    names.join(", ")
}

/// Returns the payload's name as in RFC 7296 section 1.2.
fn payload_name(payload: &Payload) -> String {
    match payload {
        Payload::KeyExchange(exchange) => format!("KE({})", exchange.group),
        Payload::Authentication(proof) => format!("AUTH({})", proof.method),
        Payload::IdInitiator(_) => "IDi".to_owned(),
        Payload::IdResponder(_) => "IDr".to_owned(),
        Payload::Nonce(_) => "Nonce".to_owned(),
        Payload::Notify(notify) => format!("N({})", notify.kind),
        Payload::Delete(Delete::IkeSa) => "D(IKE)".to_owned(),
        Payload::Delete(Delete::Children { protocol, .. }) => format!("D({protocol})"),
        Payload::VendorId(_) => "V".to_owned(),
        Payload::TsInitiator(_) => "TSi".to_owned(),
        Payload::TsResponder(_) => "TSr".to_owned(),
        other => match other.kind() {
            PayloadType::SA => "SA".to_owned(),
            kind => kind.to_string(),
        },
    }
}
