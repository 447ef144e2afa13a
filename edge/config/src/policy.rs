//! `[[policy]]`: exceptions to protection, first match wins (RFC 4301 section 4.4.1).

use crate::reader::Value;
use crate::value::{PROTOCOLS, WITH_PORTS};
use model::TrafficSelector;

/// One exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// `action`.
    pub action: Action,
    /// `remote` with `protocol` and `ports`: the far end of the packets meant.
    pub remote: TrafficSelector,
}

/// What happens to the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `bypass`: they go in clear, led around the tunnel by the operating system. Fragments of what is meant by
    /// its ports go into the tunnel, for they have none.
    Bypass,
    /// `discard`: they go nowhere.
    Discard,
}

impl Policy {
    /// All of them, in the file's order.
    ///
    /// What is bypassed never enters the tunnel, where discards are looked for: so a bypass takes
    /// what it names from every discard, and one that comes after such a discard would be the
    /// second match that wins.
    pub(crate) fn read_all(value: &Value<'_>) -> Option<Vec<Self>> {
        let policies = value.list(Self::read)?;
        for (index, (policy, place)) in policies.iter().zip(value.elements()).enumerate() {
            let before = policies[..index].iter().position(|before| {
                before.action == Action::Discard
                    && policy.action == Action::Bypass
                    && before.remote.intersection(&policy.remote).is_some()
            });
            if let Some(before) = before {
                place.fault::<()>(
                    format!("policy[{before}] discards some of what this bypasses, and routes would not ask it"),
                    "put the bypass first, where it wins, or let the two have nothing in common",
                );
            }
        }
        Some(policies)
    }

    fn read(value: &Value<'_>) -> Option<Self> {
        let mut table = value.table()?;
        let choices = [("bypass", Action::Bypass), ("discard", Action::Discard)];
        let action = table.required("action", "\"discard\"", |value| value.choice(&choices));
        let remote = table.required("remote", "\"10.8.9.0/24\"", Value::prefix);
        let protocol = table.optional("protocol", protocol);
        let bypassed = action == Some(Action::Bypass);
        let ports = table.optional("ports", |value| match (bypassed, value.ports()?) {
            (true, ports) if !(1..u16::MAX).contains(ports.start()) || *ports.end() == u16::MAX => {
                value.fault(
                    "the kernel's rules, which lead around the tunnel, have no ports 0 and 65535",
                    "name ports from 1 to 65534",
                )
            }
            (_, ports) => Some(ports),
        });
        table.finish();
        if ports.is_some() && !protocol.is_some_and(|protocol| WITH_PORTS.contains(&protocol)) {
            return value.fault(
                "only tcp, udp and sctp have ports",
                "add `protocol = \"tcp\"`, or remove `ports`",
            );
        }
        Some(Self {
            action: action?,
            remote: TrafficSelector {
                protocol: protocol.unwrap_or(0),
                ports: ports.unwrap_or(0..=u16::MAX),
                ..remote?.selector()
            },
        })
    }
}

/// A protocol by name or number.
fn protocol(value: &Value<'_>) -> Option<u8> {
    if value.inner.is_integer() {
        return value.number(1..=255).map(|number| number as u8);
    }
    value.choice(&PROTOCOLS)
}
