//! Payloads that each message has to contain (RFC 7296 sections 1.2 to 1.4 and appendix C, DESIGN
//! section 5). The check precedes all handlers, so that a handler finds each payload that it needs
//! exactly once. Payloads that are not listed may occur in any number and are ignored.

use crate::down_reason::PeerMisbehaved;
use wire::ike::{ExchangeType, MAX_PAYLOADS, Message, Payload, PayloadType};

/// The rule for one kind of message.
struct Rule {
    exchange: ExchangeType,
    response: bool,
    /// Type, minimum and maximum number of payloads.
    payloads: &'static [(PayloadType, usize, usize)],
}

const RULES: &[Rule] = &[
    Rule {
        exchange: ExchangeType::IKE_SA_INIT,
        response: false,
        payloads: &[
            (PayloadType::SA, 1, 1),
            (PayloadType::KE, 1, 1),
            (PayloadType::NONCE, 1, 1),
        ],
    },
    Rule {
        exchange: ExchangeType::IKE_SA_INIT,
        response: true,
        payloads: &[
            (PayloadType::SA, 1, 1),
            (PayloadType::KE, 1, 1),
            (PayloadType::NONCE, 1, 1),
        ],
    },
    Rule {
        exchange: ExchangeType::IKE_SESSION_RESUME,
        response: false,
        payloads: &[
            (PayloadType::NONCE, 1, 1),
            (PayloadType::NOTIFY, 1, MAX_PAYLOADS),
        ],
    },
    Rule {
        exchange: ExchangeType::IKE_SESSION_RESUME,
        response: true,
        payloads: &[(PayloadType::NONCE, 1, 1)],
    },
    // The first message has a nonce, the third one AUTH. Their handlers look for these.
    Rule {
        exchange: ExchangeType::SKID_RESUME,
        response: false,
        payloads: &[
            (PayloadType::KE, 0, 1),
            (PayloadType::NONCE, 0, 1),
            (PayloadType::IDI, 0, 1),
            (PayloadType::IDR, 0, 1),
            (PayloadType::AUTH, 0, 1),
            (PayloadType::CP, 0, 1),
            (PayloadType::SA, 0, 1),
            (PayloadType::TSI, 0, 1),
            (PayloadType::TSR, 0, 1),
        ],
    },
    Rule {
        exchange: ExchangeType::SKID_RESUME,
        response: true,
        payloads: &[
            (PayloadType::KE, 0, 1),
            (PayloadType::NONCE, 0, 1),
            (PayloadType::IDR, 0, 1),
            (PayloadType::CP, 0, 1),
            (PayloadType::SA, 0, 1),
            (PayloadType::TSI, 0, 1),
            (PayloadType::TSR, 0, 1),
        ],
    },
    Rule {
        exchange: ExchangeType::IKE_INTERMEDIATE,
        response: false,
        payloads: &[(PayloadType::KE, 1, 1)],
    },
    Rule {
        exchange: ExchangeType::IKE_INTERMEDIATE,
        response: true,
        payloads: &[(PayloadType::KE, 1, 1)],
    },
    Rule {
        exchange: ExchangeType::IKE_AUTH,
        response: false,
        payloads: &[
            (PayloadType::IDI, 1, 1),
            (PayloadType::IDR, 0, 1),
            (PayloadType::AUTH, 0, 1),
            (PayloadType::CP, 0, 1),
            (PayloadType::SA, 0, 1),
            (PayloadType::TSI, 0, 1),
            (PayloadType::TSR, 0, 1),
        ],
    },
    Rule {
        exchange: ExchangeType::IKE_AUTH,
        response: true,
        payloads: &[
            (PayloadType::IDR, 1, 1),
            (PayloadType::AUTH, 1, 1),
            (PayloadType::CP, 0, 1),
            (PayloadType::SA, 0, 1),
            (PayloadType::TSI, 0, 1),
            (PayloadType::TSR, 0, 1),
        ],
    },
    Rule {
        exchange: ExchangeType::CREATE_CHILD_SA,
        response: false,
        payloads: &[
            (PayloadType::SA, 1, 1),
            (PayloadType::NONCE, 1, 1),
            (PayloadType::KE, 0, 1),
            (PayloadType::TSI, 0, 1),
            (PayloadType::TSR, 0, 1),
        ],
    },
    Rule {
        exchange: ExchangeType::CREATE_CHILD_SA,
        response: true,
        payloads: &[
            (PayloadType::SA, 1, 1),
            (PayloadType::NONCE, 1, 1),
            (PayloadType::KE, 0, 1),
            (PayloadType::TSI, 0, 1),
            (PayloadType::TSR, 0, 1),
        ],
    },
    Rule {
        exchange: ExchangeType::IKE_FOLLOWUP_KE,
        response: false,
        payloads: &[(PayloadType::KE, 1, 1)],
    },
    Rule {
        exchange: ExchangeType::IKE_FOLLOWUP_KE,
        response: true,
        payloads: &[(PayloadType::KE, 1, 1)],
    },
    Rule {
        exchange: ExchangeType::INFORMATIONAL,
        response: false,
        payloads: &[],
    },
    Rule {
        exchange: ExchangeType::INFORMATIONAL,
        response: true,
        payloads: &[],
    },
    Rule {
        exchange: ExchangeType::KEY_DISTRIBUTE,
        response: false,
        // Two directions of at most eight zones, of overlays and of injected packets, and tokens.
        payloads: &[(PayloadType::GRANT, 1, 1), (PayloadType::SECRET, 2, 21)],
    },
    Rule {
        exchange: ExchangeType::KEY_DISTRIBUTE,
        response: true,
        payloads: &[(PayloadType::NOTIFY, 1, MAX_PAYLOADS)],
    },
    Rule {
        exchange: ExchangeType::KEY_REQUEST,
        response: false,
        payloads: &[(PayloadType::NOTIFY, 1, MAX_PAYLOADS)],
    },
    Rule {
        exchange: ExchangeType::KEY_REQUEST,
        response: true,
        // No more than a right to read needs.
        payloads: &[(PayloadType::GRANT, 1, 1), (PayloadType::SECRET, 2, 16)],
    },
];

/// Returns `Ok` if a message has the payloads that its exchange requires, in the allowed numbers. A
/// response that reports an error about the whole exchange may lack everything else.
pub(crate) fn check(message: &Message) -> Result<(), PeerMisbehaved> {
    let header = &message.header;
    let rule = RULES
        .iter()
        .find(|rule| rule.exchange == header.exchange && rule.response == header.flags.response);
    let rule = rule.ok_or(PeerMisbehaved::WrongPayloads)?;
    let may_lack = header.flags.response && only_notifies(message);
    let right = rule.payloads.iter().all(|&(kind, min, max)| {
        let count = message.payloads.iter().filter(|p| p.kind() == kind).count();
        count <= max && (count >= min || may_lack)
    });
    right.then_some(()).ok_or(PeerMisbehaved::WrongPayloads)
}

fn only_notifies(message: &Message) -> bool {
    let substance = [PayloadType::SA, PayloadType::KE, PayloadType::AUTH];
    let kinds = || message.payloads.iter().map(Payload::kind);
    kinds().any(|kind| kind == PayloadType::NOTIFY)
        && !kinds().any(|kind| substance.contains(&kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::ike::{Flags, Header, Notify, NotifyType, VERSION_2};

    fn message(exchange: ExchangeType, response: bool, payloads: Vec<Payload>) -> Message {
        let flags = Flags {
            response,
            ..Flags::default()
        };
        Message {
            header: Header {
                spi_i: 1,
                spi_r: 2,
                version: VERSION_2,
                exchange,
                flags,
                message_id: 0,
            },
            payloads,
        }
    }

    fn notify() -> Payload {
        Payload::Notify(Notify::new(NotifyType::NO_PROPOSAL_CHOSEN, Vec::new()))
    }

    #[test]
    fn a_lone_error_may_answer_any_request() {
        let exchanges = [
            ExchangeType::IKE_SA_INIT,
            ExchangeType::IKE_AUTH,
            ExchangeType::CREATE_CHILD_SA,
        ];
        for exchange in exchanges {
            assert_eq!(check(&message(exchange, true, vec![notify()])), Ok(()));
            assert!(check(&message(exchange, true, Vec::new())).is_err());
            assert!(check(&message(exchange, false, vec![notify()])).is_err());
        }
    }

    /// CVE-2013-6467 and similar ones: each mandatory payload left out, each unique one doubled.
    // Weakness: 14
    #[test]
    fn a_payload_that_is_missing_or_doubled_is_noticed() {
        let nonce = || Payload::Nonce(vec![0; 16]);
        let sa = || Payload::SecurityAssociation(Vec::new());
        let exchange = ExchangeType::CREATE_CHILD_SA;
        assert_eq!(
            check(&message(exchange, false, vec![sa(), nonce()])),
            Ok(())
        );
        for bad in [vec![sa()], vec![nonce()], vec![sa(), nonce(), nonce()]] {
            assert!(check(&message(exchange, false, bad)).is_err());
        }
    }

    #[test]
    fn an_unknown_exchange_has_no_rule() {
        assert!(check(&message(ExchangeType(99), false, Vec::new())).is_err());
    }
}
