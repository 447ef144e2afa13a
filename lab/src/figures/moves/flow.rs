//! The packets at a mobile node around a change.

use super::trace::{AT_GATEWAY, AT_MOBILE, Change, Content, Packet, Request, Trace, micros};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Time before the change that a flow shows, and the distance of its points.
const BEFORE: Duration = Duration::from_millis(100);
const STEP: Duration = Duration::from_millis(10);

/// A message of IKE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::figures) struct Message {
    /// Time since the change, in microseconds.
    pub at: f64,
    pub name: String,
}

/// Packets around a change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::figures) struct Flow {
    /// Messages of IKE after the change.
    pub messages: Vec<Message>,
    /// Packets of ESP each way by the old address and by the new one, in each step.
    pub esp: [Vec<u64>; 2],
    /// Datagrams that have come out of the tunnel, in each step.
    pub datagrams: Vec<u64>,
}

impl Flow {
    /// Time after the change that a flow shows.
    pub const AFTER: Duration = Duration::from_millis(500);

    /// Returns the packets of a trace.
    ///
    /// # Errors
    /// There was no change.
    pub(super) fn from_trace(trace: &Trace) -> Result<Self> {
        let change = trace.change.context("nothing was changed")?;
        let packets = &trace.packets[AT_MOBILE];
        let is_new =
            |packet: &Packet| [packet.source, packet.destination].contains(&change.address);
        let esp = |new: bool| {
            let all = packets.iter().filter(|one| one.content == Content::Esp);
            counts(all.filter(|one| is_new(one) == new), change.event)
        };
        let datagrams = packets.iter().filter(|one| one.is_arrival_at(AT_MOBILE));
        let messages = packets.iter().filter_map(|one| message(one, &change));
        Ok(Self {
            messages: messages.collect(),
            esp: [esp(false), esp(true)],
            datagrams: counts(datagrams, change.event),
        })
    }

    /// Returns points of counts, as milliseconds since the change and packets in 10 ms.
    pub fn points(counts: &[u64]) -> impl Iterator<Item = (f64, u64)> {
        let first = -(BEFORE.as_secs_f64() * 1e3);
        let step = STEP.as_secs_f64() * 1e3;
        let counts = counts.iter().enumerate();
        counts.map(move |(place, count)| (first + step * place as f64, *count))
    }

    /// Returns the datagrams that arrived within this time of the change.
    pub fn datagrams_within(&self, time: Duration) -> u64 {
        let limit = time.as_secs_f64() * 1e3;
        let within = Self::points(&self.datagrams).filter(|(at, _)| (0.0..limit).contains(at));
        within.map(|(_, count)| count).sum()
    }

    /// Returns the time of the first message of this name, in microseconds since the change.
    pub fn time_of(&self, name: &str) -> Option<f64> {
        let mut messages = self.messages.iter();
        messages.find(|one| one.name == name).map(|one| one.at)
    }
}

/// Counts packets in each step.
fn counts<'a>(packets: impl Iterator<Item = &'a Packet>, event: Duration) -> Vec<u64> {
    let steps = (BEFORE + Flow::AFTER).as_millis() / STEP.as_millis();
    let mut counts = vec![0; steps as usize];
    let first = event.saturating_sub(BEFORE);
    for packet in packets {
        let since = packet.at.checked_sub(first);
        let step = since.map(|since| (since.as_millis() / STEP.as_millis()) as usize);
        if let Some(count) = step.and_then(|step| counts.get_mut(step)) {
            *count += 1;
        }
    }
    counts
}

/// Names a message after the change by what its exchange is for, and its direction.
fn message(packet: &Packet, change: &Change) -> Option<Message> {
    let at = packet.at.checked_sub(change.event)?;
    if at > Flow::AFTER {
        return None;
    }
    let out = packet.is_sent_by(AT_MOBILE);
    let exchange = match packet.content {
        Content::Informational { id, response } => {
            // A request leaves the end that begins the exchange, and the response comes to it.
            let end = if out != response {
                AT_MOBILE
            } else {
                AT_GATEWAY
            };
            let request = Some(Request { end, id });
            let name = if request == change.requests.update {
                "UPDATE_SA_ADDRESSES"
            } else if request == change.requests.check {
                "routability check"
            } else {
                "INFORMATIONAL"
            };
            let kind = if response { "response" } else { "request" };
            format!("{name}, {kind}")
        }
        Content::Ike => "IKE".to_owned(),
        Content::Esp | Content::Datagram { .. } => return None,
    };
    let direction = if out { "from the node" } else { "to the node" };
    Some(Message {
        at: micros(at),
        name: format!("{exchange} {direction}"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::trace::tests::moved;
    use super::*;

    #[test]
    fn messages_are_named_by_what_their_exchange_is_for() {
        let flow = Flow::from_trace(&moved()).unwrap();
        let update = "UPDATE_SA_ADDRESSES, request from the node";
        let answer = "UPDATE_SA_ADDRESSES, response to the node";
        let names: Vec<_> = flow.messages.iter().map(|one| &*one.name).collect();
        assert_eq!(names, [update, update, answer]);
        assert_eq!(flow.time_of(update), Some(2000.0));
        assert_eq!(flow.time_of("IKE to the node"), None);
    }

    #[test]
    fn packets_are_counted_by_address_and_time() {
        let flow = Flow::from_trace(&moved()).unwrap();
        let sum = |counts: &[u64]| counts.iter().sum::<u64>();
        assert_eq!(flow.esp.each_ref().map(|counts| sum(counts)), [11, 11]);
        assert_eq!(sum(&flow.datagrams), 21);
        assert_eq!(flow.datagrams_within(Duration::from_millis(20)), 1);
        assert_eq!(flow.datagrams_within(Duration::from_millis(30)), 11);
        let first = Flow::points(&flow.datagrams).next();
        assert_eq!(first, Some((-100.0, 0)));
    }
}
