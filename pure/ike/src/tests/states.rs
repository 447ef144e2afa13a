//! `docs/states/ike-sa.md`: the states of an IKE SA and the observed transitions between them.
//!
//! The page is made by sending every kind of message to an SA in every state, and from the flows.
//! Every other test of this crate is checked against it: a transition that the page lacks fails the
//! test that observed it.

use super::distribute::grant;
use super::flows::FLOWS;
use super::pair::{Flying, Pair, Side};
use super::trace;
use super::*;
use crate::extension::distribute;
use crate::sa::Sa;
use pages::Machine;
use resumption::{OperationId, Outcome};
use std::fmt::Write;
use wire::ike::{
    AuthMethod, Authentication, Datagram, Delete, ExchangeType, Flags, GroupId, Header,
    KeyExchange, Message, Notify, NotifyType, Payload, PayloadType, Protocol, VERSION_2,
};

const PAGE: &str = "states/ike-sa.md";

const INTRODUCTION: &str = "# An IKE SA\n\n\
    Each state is a struct in `pure/ike/src/sa/`. This is what was seen when the tests of `ike` \
    gave every kind of message to an SA in every state, and held the [flows](../flows/README.md).\n\n\
    | state | what it waits for |\n|---|---|\n\
    | InitSent | initiator: the answer to IKE_SA_INIT |\n\
    | ResumeSent | initiator: the answer to IKE_SESSION_RESUME or SKID_RESUME |\n\
    | KemSent | initiator: the answer to an additional key exchange |\n\
    | AuthSent | initiator: the answer to IKE_AUTH; with whom the keys are shared is not known |\n\
    | AwaitEntry | responder: the store's answer about the session that a stranger resumes |\n\
    | AwaitAuth | responder: IKE_AUTH of a stranger, and what comes before it, for a bounded time |\n\
    | AwaitProof | responder: the third message of SKID3, and the store's answer about its entry |\n\
    | Established | requests of either side |\n\
    | Closing | the answer to our Delete |\n\
    | Retired | the peer's Delete: the peer asked for the successor that took over |\n\
    | Lingering | nothing: it gives its last answer again to who asks again, and has no keys |\n\n\
    ## Changes\n\n";

const MATRIX: &str = "\n## What arrives, and what comes of it\n\n\
    The messages are genuine: sealed with the right keys wherever there are any, with the message \
    ID that is awaited. What is *dropped* is counted under the reason that follows. `Established` \
    has a request of its own under way.\n\n";

/// Fails if the page lacks a state change that a test has observed.
pub(crate) fn assert_documented(seen: &Machine) {
    if std::env::var_os(pages::UPDATE).is_some() {
        return;
    }
    let documented = Machine::read(PAGE);
    let unknown: Vec<_> = seen.without(&documented).collect();
    assert!(
        unknown.is_empty(),
        "docs/{PAGE} does not know {unknown:#?}\nIf the change is right, make it happen in a flow \
         (tests/flows.rs) or an arrival (tests/states.rs), then write the page anew:\n  {}=1 \
         cargo test -p ike tests::states",
        pages::UPDATE
    );
}

/// An SA in some state, and its peer.
struct Stage {
    state: &'static str,
    subject: Side,
    prepare: fn() -> Pair,
}

const STAGES: &[Stage] = &[
    Stage {
        state: "InitSent",
        subject: Side::Left,
        prepare: || {
            let mut pair = Pair::new(mobile(), gateway());
            pair.initiate(Side::Left);
            pair
        },
    },
    Stage {
        state: "ResumeSent",
        subject: Side::Left,
        prepare: || resuming(|_| {}),
    },
    Stage {
        state: "KemSent",
        subject: Side::Left,
        prepare: exchanging,
    },
    Stage {
        state: "AuthSent",
        subject: Side::Left,
        prepare: authenticating,
    },
    Stage {
        state: "AwaitEntry",
        subject: Side::Right,
        prepare: || {
            resuming(|pair| {
                pair.right.store = None;
                pair.deliver_next();
            })
        },
    },
    Stage {
        state: "AwaitAuth",
        subject: Side::Right,
        prepare: authenticating,
    },
    Stage {
        state: "AwaitProof",
        subject: Side::Right,
        prepare: || {
            let mut pair = skid::lost();
            pair.initiate(Side::Left);
            pair.deliver_next();
            pair.deliver_next();
            pair
        },
    },
    Stage {
        state: "Established",
        subject: Side::Left,
        prepare: || {
            let mut pair = Pair::new(mobile(), gateway());
            let id = pair.connect();
            pair.with(Side::Left, |engine, now| {
                engine.revoke(id, model::CsaId(1), now)
            });
            pair
        },
    },
    Stage {
        state: "Closing",
        subject: Side::Left,
        prepare: closing,
    },
    Stage {
        state: "Retired",
        subject: Side::Right,
        prepare: || {
            let mut pair = Pair::new(mobile(), gateway());
            let id = pair.connect();
            pair.with(Side::Left, |engine, now| engine.rekey_ike(id, now));
            pair.deliver_next();
            pair.deliver_next();
            pair
        },
    },
    Stage {
        state: "Lingering",
        subject: Side::Right,
        prepare: || {
            let mut pair = closing();
            pair.deliver_next();
            pair
        },
    },
];

/// Presents a ticket, and continues.
fn resuming(go_on: fn(&mut Pair)) -> Pair {
    let mut pair = ticket::lost();
    pair.initiate(Side::Left);
    go_on(&mut pair);
    pair
}

fn exchanging() -> Pair {
    begun(kem::between(kem::WANTED, kem::WANTED))
}

fn authenticating() -> Pair {
    begun(Pair::new(mobile(), gateway()))
}

/// Delivers both messages of IKE_SA_INIT.
fn begun(mut pair: Pair) -> Pair {
    pair.initiate(Side::Left);
    pair.deliver_next();
    pair.deliver_next();
    pair
}

fn closing() -> Pair {
    let mut pair = Pair::new(mobile(), gateway());
    let id = pair.connect();
    pair.with(Side::Left, |engine, now| engine.close(id, now));
    pair
}

/// An event for an SA.
enum Happening {
    Request(ExchangeType, fn(&Pair) -> Vec<Payload>),
    Response(ExchangeType, fn(&Pair) -> Vec<Payload>),
    /// A genuine message with one bit changed.
    Damaged,
    /// The first of two fragments of a genuine request or, if true, response.
    Fragment(ExchangeType, bool),
    Close,
    /// The store has no session.
    Stored,
    Silence,
}

use Happening::{Close, Damaged, Fragment, Request, Response, Silence, Stored};

const HAPPENINGS: &[(&str, Happening)] = &[
    (
        "IKE_SA_INIT request: SA, KE, Nonce",
        Request(ExchangeType::IKE_SA_INIT, first_payloads),
    ),
    (
        "IKE_SA_INIT response: N(NO_PROPOSAL_CHOSEN)",
        Response(ExchangeType::IKE_SA_INIT, |_| {
            notify(NotifyType::NO_PROPOSAL_CHOSEN)
        }),
    ),
    (
        "IKE_SA_INIT response without NAT detection",
        Response(ExchangeType::IKE_SA_INIT, |_| {
            answer_without_nat_detection()
        }),
    ),
    (
        "IKE_SESSION_RESUME response: N(TICKET_NACK)",
        Response(ExchangeType::IKE_SESSION_RESUME, |_| {
            notify(NotifyType::TICKET_NACK)
        }),
    ),
    (
        "SKID_RESUME request: AUTH that proves nothing",
        Request(ExchangeType::SKID_RESUME, |_| vec![no_proof()]),
    ),
    (
        "IKE_INTERMEDIATE request: KE of another method",
        Request(ExchangeType::IKE_INTERMEDIATE, |_| no_key()),
    ),
    (
        "IKE_INTERMEDIATE response: KE of another method",
        Response(ExchangeType::IKE_INTERMEDIATE, |_| no_key()),
    ),
    (
        "IKE_FOLLOWUP_KE request: KE for no successor",
        Request(ExchangeType::IKE_FOLLOWUP_KE, |_| no_key()),
    ),
    (
        "IKE_AUTH request: IDi, AUTH that proves nothing",
        Request(ExchangeType::IKE_AUTH, |_| {
            let mobile: model::Identity = "mobile.example.net".parse().expect("a name");
            vec![Payload::IdInitiator(mobile.into()), no_proof()]
        }),
    ),
    (
        "IKE_AUTH response: IDr, AUTH that proves nothing",
        Response(ExchangeType::IKE_AUTH, |_| {
            let gateway: model::Identity = "gateway.example.net".parse().expect("a name");
            vec![Payload::IdResponder(gateway.into()), no_proof()]
        }),
    ),
    (
        "IKE_AUTH response: N(AUTHENTICATION_FAILED)",
        Response(ExchangeType::IKE_AUTH, |_| {
            notify(NotifyType::AUTHENTICATION_FAILED)
        }),
    ),
    (
        "INFORMATIONAL request, empty",
        Request(ExchangeType::INFORMATIONAL, |_| Vec::new()),
    ),
    (
        "INFORMATIONAL request: D(IKE)",
        Request(ExchangeType::INFORMATIONAL, |_| {
            vec![Payload::Delete(Delete::IkeSa)]
        }),
    ),
    (
        "INFORMATIONAL request: D(ESP) of the only child",
        Request(ExchangeType::INFORMATIONAL, |pair| {
            let children = pair.right.children();
            let spis = children.iter().map(|child| child.inbound.spi).collect();
            vec![Payload::Delete(Delete::Children {
                protocol: Protocol::ESP,
                spis,
            })]
        }),
    ),
    (
        "INFORMATIONAL request: N(AUTHENTICATION_FAILED)",
        Request(ExchangeType::INFORMATIONAL, |_| {
            notify(NotifyType::AUTHENTICATION_FAILED)
        }),
    ),
    (
        "INFORMATIONAL response, empty",
        Response(ExchangeType::INFORMATIONAL, |_| Vec::new()),
    ),
    (
        "INFORMATIONAL response: N(INVALID_SYNTAX)",
        Response(ExchangeType::INFORMATIONAL, |_| {
            notify(NotifyType::INVALID_SYNTAX)
        }),
    ),
    (
        "CREATE_CHILD_SA request: SA, Nonce",
        Request(ExchangeType::CREATE_CHILD_SA, |_| {
            let proposals = crate::proposal::offer_esp(
                &crate::allowed_suites::AllowedEspSuites::plain(&[Suite::Aes128Gcm16]),
                model::Spi(4096),
            );
            vec![
                Payload::SecurityAssociation(proposals),
                Payload::Nonce(vec![1; 32]),
            ]
        }),
    ),
    (
        "CREATE_CHILD_SA request without payloads",
        Request(ExchangeType::CREATE_CHILD_SA, |_| Vec::new()),
    ),
    (
        "KEY_DISTRIBUTE request: GRANT, 2 SECRET",
        Request(ExchangeType::KEY_DISTRIBUTE, |_| {
            distribute::payloads(&grant(1))
        }),
    ),
    (
        "KEY_REQUEST request without payloads",
        Request(ExchangeType::KEY_REQUEST, |_| Vec::new()),
    ),
    (
        "a request of exchange 99",
        Request(ExchangeType(99), |_| Vec::new()),
    ),
    (
        "a request with a critical payload of type 99",
        Request(ExchangeType::INFORMATIONAL, |_| {
            vec![Payload::Other {
                kind: PayloadType(99),
                critical: true,
                data: vec![1],
            }]
        }),
    ),
    (
        "a response with a critical payload of type 99",
        Response(ExchangeType::INFORMATIONAL, |_| {
            vec![Payload::Other {
                kind: PayloadType(99),
                critical: true,
                data: vec![1],
            }]
        }),
    ),
    ("a request with one bit changed", Damaged),
    (
        "IKE_AUTH request, fragment 1 of 2",
        Fragment(ExchangeType::IKE_AUTH, false),
    ),
    (
        "IKE_AUTH response, fragment 1 of 2",
        Fragment(ExchangeType::IKE_AUTH, true),
    ),
    (
        "INFORMATIONAL request, fragment 1 of 2",
        Fragment(ExchangeType::INFORMATIONAL, false),
    ),
    (
        "INFORMATIONAL response, fragment 1 of 2",
        Fragment(ExchangeType::INFORMATIONAL, true),
    ),
    ("the command `close`", Close),
    ("the store's answer: no session", Stored),
    ("nothing, until every deadline has passed", Silence),
];

fn notify(kind: NotifyType) -> Vec<Payload> {
    vec![Payload::Notify(Notify::new(kind, Vec::new()))]
}

fn no_proof() -> Payload {
    Payload::Authentication(Authentication {
        method: AuthMethod::SHARED_KEY,
        data: vec![0; 32],
    })
}

fn no_key() -> Vec<Payload> {
    vec![Payload::KeyExchange(KeyExchange {
        group: GroupId::ML_KEM_512,
        public: vec![1; 800],
    })]
}

fn first_payloads(pair: &Pair) -> Vec<Payload> {
    match Datagram::decode(&pair.sent[0].message) {
        Ok(Datagram::Clear(message)) => message.payloads,
        // That of SKID3 is another one.
        _ => first_payloads(&authenticating()),
    }
}

/// Returns the genuine answer without NAT detection. A pair has no real randomness, so another pair
/// of the same hosts has that answer.
fn answer_without_nat_detection() -> Vec<Payload> {
    let mut other = Pair::new(mobile(), gateway());
    other.connect();
    let Ok(Datagram::Clear(mut answer)) = Datagram::decode(&other.sent[1].message) else {
        panic!("IKE_SA_INIT is in the clear");
    };
    let kept = |payload: &Payload| payload.kind() != PayloadType::NOTIFY;
    answer.payloads.retain(kept);
    answer.payloads
}

// Weakness: 35
#[test]
fn the_page_tells_every_change_of_state_and_what_comes_of_every_message() {
    let mut machine = Machine::default();
    for flow in FLOWS {
        machine.extend((flow.play)().trace.machine.clone());
    }
    machine.extend(strangers::giving_way().trace.machine.clone());
    for pair in [
        ticket::spent(),
        ticket::restarted(),
        skid::spent(),
        users::refused_by_ticket(),
        resumed::sent_away(),
        resumed::giving_way(),
        bounds::rekeying(true),
        bounds::rekeying(false),
        bounds::beginning(),
    ] {
        machine.extend(pair.trace.machine.clone());
    }
    let mut matrix = format!(
        "| |{}\n|---|{}\n",
        row(STAGES.iter().map(|stage| stage.state)),
        "---|".repeat(STAGES.len())
    );
    for (name, happening) in HAPPENINGS {
        let cells: Vec<_> = STAGES
            .iter()
            .map(|stage| {
                let (cell, seen) = stage.play(happening);
                machine.extend(seen);
                cell
            })
            .collect();
        let _ = writeln!(
            matrix,
            "| {name} |{}",
            row(cells.iter().map(String::as_str))
        );
    }
    let page = [
        pages::HEAD,
        INTRODUCTION,
        &machine.render(),
        MATRIX,
        &matrix,
    ]
    .concat();
    pages::check(PAGE, &page);
}

/// Negative control: the page does not contain everything.
#[test]
fn a_change_of_state_that_cannot_be_is_not_documented() {
    let mut machine = Machine::default();
    machine.note(Some("Lingering"), Some("Established"), "a deadline");
    assert_eq!(machine.without(&Machine::read(PAGE)).count(), 1);
}

/// Returns the IKE SA that the first message began, which may have a successor.
fn first_sa(pair: &mut Pair, side: Side) -> Option<&Sa> {
    let first = Header::peek(&pair.sent[0].message).expect("a message");
    let mut sas = pair.host(side).engine.sas.values();
    sas.find(|sa| sa.core.spi_i == first.spi_i).map(Box::as_ref)
}

fn row<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    cells.map(|cell| format!(" {cell} |")).collect()
}

impl Stage {
    /// Applies an event; returns its description and the state changes.
    fn play(&self, happening: &Happening) -> (String, Machine) {
        let mut pair = (self.prepare)();
        pair.intercept();
        assert_eq!(self.state_of(&mut pair), Some(self.state));
        let drops = self.drops(&mut pair);
        match happening {
            Close => pair.with(self.subject, crate::Engine::shutdown),
            Stored => {
                let sas = pair.host(self.subject).engine.sas.keys();
                let newest = sas.last().map_or(0, |id| id.0);
                let outcome = Outcome::Read(OperationId(newest), None);
                pair.store_answers(self.subject, outcome);
            }
            Silence => {
                pair.hop.lost = 1000;
                pair.run_for(Duration::from_secs(600));
            }
            Request(exchange, payloads) => {
                let message = self.make(&mut pair, *exchange, false, *payloads);
                self.give(&mut pair, message);
            }
            Response(exchange, payloads) => {
                let message = self.make(&mut pair, *exchange, true, *payloads);
                self.give(&mut pair, message);
            }
            Fragment(exchange, response) => {
                let message = self.make(&mut pair, *exchange, *response, |_| Vec::new());
                let header = Header::peek(&message).expect("a message");
                let peer = &mut pair.host(self.subject.other()).engine;
                let fragment = peer.seal_piece(&header, (1, 2), vec![0; 100]);
                self.give(&mut pair, fragment.unwrap_or(message));
            }
            Damaged => {
                let empty = |_: &Pair| Vec::new();
                let mut message = self.make(&mut pair, ExchangeType::INFORMATIONAL, false, empty);
                *message.last_mut().expect("a message has octets") ^= 1;
                self.give(&mut pair, message);
            }
        }
        let state = self.state_of(&mut pair);
        let moved = match state {
            Some(state) if state == self.state => None,
            state => Some(format!("**{}**", state.unwrap_or("gone"))),
        };
        let dropped = self
            .drops(&mut pair)
            .into_iter()
            .zip(drops)
            .find(|(after, before)| after.1 > before.1)
            .map(|(after, _)| format!("dropped: {}", after.0));
        let sent = pair
            .intercept()
            .iter()
            .any(|flying| flying.to != self.subject);
        let sent = sent.then(|| match happening {
            Request(..) | Damaged | Fragment(_, false) | Stored => "answered".to_owned(),
            Response(..) | Fragment(_, true) | Close | Silence => "sends a request".to_owned(),
        });
        let parts: Vec<_> = [dropped, sent, moved].into_iter().flatten().collect();
        let cell = if parts.is_empty() {
            "–".to_owned()
        } else {
            parts.join(", ")
        };
        (cell, pair.trace.machine.clone())
    }

    fn state_of(&self, pair: &mut Pair) -> Option<&'static str> {
        first_sa(pair, self.subject).map(|sa| trace::name(&sa.state))
    }

    fn drops(&self, pair: &mut Pair) -> Vec<(&'static str, u64)> {
        let drops = pair.host(self.subject).engine.counters().drops();
        drops.map(|(why, count)| (why.label(), count)).collect()
    }

    fn give(&self, pair: &mut Pair, message: Vec<u8>) {
        let path = pair.sent.last().expect("something was sent").path;
        let from_peer = pair.sent.last().expect("something was sent").to == self.subject;
        let path = if from_peer { path } else { path.reversed() };
        let to = self.subject;
        pair.deliver(&Flying { to, path, message });
    }

    /// Returns a message as the other end would make it.
    fn make(
        &self,
        pair: &mut Pair,
        exchange: ExchangeType,
        response: bool,
        payloads: impl Fn(&Pair) -> Vec<Payload>,
    ) -> Vec<u8> {
        let payloads = payloads(pair);
        let sas = [self.subject, self.subject.other()].map(|side| {
            first_sa(pair, side).map(|sa| {
                (
                    sa.core.spi_i,
                    sa.core.spi_r,
                    sa.core.initiator,
                    sa.core.requests.oldest_id(),
                )
            })
        });
        let subject = sas[0].expect("the SA is there");
        let (spi_i, spi_r) = (subject.0, sas[1].map_or(subject.1, |peer| peer.1));
        let message_id = match response {
            true => subject.3,
            false => sas[1].map_or(0, |peer| peer.3),
        };
        // The first answer brings the responder's SPI.
        let spi_r = if response { spi_r.max(1) } else { spi_r };
        let header = Header {
            spi_i,
            spi_r,
            version: VERSION_2,
            exchange,
            flags: Flags {
                initiator: !subject.2,
                response,
                ..Flags::default()
            },
            message_id,
        };
        let message = Message { header, payloads };
        let peer = &mut pair.host(self.subject.other()).engine;
        let is_clear = matches!(
            exchange,
            ExchangeType::IKE_SA_INIT | ExchangeType::IKE_SESSION_RESUME
        );
        let sealed = (!is_clear).then(|| peer.seal(&message));
        sealed.flatten().unwrap_or_else(|| message.encode())
    }
}
