//! `[[policy]]`: exceptions to protection, first match wins (RFC 4301 section 4.4.1).

use crate::reader::Value;
use crate::value::{PROTOCOLS, WITH_PORTS};
use model::TrafficSelector;

/// One exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// `action`.
    pub action: Action,
    /// `remote` with `protocol` and `ports`: the remote end of the matched packets.
    pub remote: TrafficSelector,
}

/// The treatment of matched packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `bypass`: send in clear; the operating system routes them around the tunnel. Fragments have
    /// no ports, so a bypass with ports does not match them and they enter the tunnel.
    Bypass,
    /// `discard`: drop.
    Discard,
}

impl Policy {
    /// Reads all policies, in the file's order.
    ///
    /// Bypassed packets never enter the tunnel, where discards apply. A bypass therefore wins over
    /// every discard that it overlaps, and a bypass after such a discard would break the rule that
    /// the first match wins.
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
                    format!("policy[{before}] discards packets that this entry bypasses, but a bypass applies first"),
                    "move the bypass before the discard, or make the two disjoint",
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
                    "a bypass is a rule of the kernel, and these rules have no ports 0 and 65535",
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

/// Reads a protocol by name or number.
fn protocol(value: &Value<'_>) -> Option<u8> {
    if value.inner.is_integer() {
        return value.number(1..=255).map(|number| number as u8);
    }
    value.choice(&PROTOCOLS)
}
