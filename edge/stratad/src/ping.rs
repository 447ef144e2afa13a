//! `strata ping`: the requests that wait for their pings, and what the counters of both ends mean.

use control::{ClientId, Failure, Loss, LossPlace, Ping, Response, RoundTrip};
use model::Instant;
use node::{CannotPing, Node, NotPinged, PingId, PingReport, RoundTrips};
use std::num::NonZeroU16;
use std::time::Duration;

/// Pings of a request that names no number.
const COUNT: NonZeroU16 = NonZeroU16::new(4).expect("it is not zero");

/// The most pings of a request.
const MOST: u16 = 100;

/// The requests that wait.
#[derive(Default)]
pub struct Pings(Vec<Waiting>);

struct Waiting {
    client: ClientId,
    id: PingId,
    peer: String,
}

impl Pings {
    /// Begins to ping a peer.
    pub fn begin(
        &mut self,
        client: ClientId,
        peer: String,
        count: Option<NonZeroU16>,
        node: &mut Node,
        now: Instant,
    ) -> Result<(), Failure> {
        let count = count.unwrap_or(COUNT);
        if count.get() > MOST {
            let message = format!("{count} pings are too many");
            return Err(Failure::new(message, format!("write at most {MOST}")));
        }
        let begun = node.ping(&peer, count, now);
        let id = begun.map_err(|why| refusal(&peer, why))?;
        self.0.push(Waiting { client, id, peer });
        Ok(())
    }

    /// Returns the answers to requests whose pings are over.
    pub fn take_ended(&mut self, node: &mut Node, now: Instant) -> Vec<(ClientId, Response)> {
        let mut ended = Vec::new();
        self.0.retain(|waiting| {
            let report = node.take_ping(waiting.id);
            let answer = report.map(|report| answer(&waiting.peer, &report, node, now));
            let is_open = answer.is_none();
            ended.extend(answer.map(|answer| (waiting.client, Response::Ping(answer))));
            is_open
        });
        ended
    }
}

fn refusal(peer: &str, why: CannotPing) -> Failure {
    let fix = match why {
        CannotPing::UnknownPeer => "name a peer that `strata status` shows".to_owned(),
        CannotPing::NotUp => format!("bring it up first: `strata up {peer}`"),
        CannotPing::NoChild => "name the other end of a tunnel, a [peer.NAME]".to_owned(),
        CannotPing::UnderWay => "wait until it is over".to_owned(),
    };
    Failure::new(format!("cannot ping {}: {why}", peer.escape_debug()), fix)
}

fn answer(peer: &str, report: &PingReport, node: &Node, now: Instant) -> Ping {
    let status = node.peer_named(peer);
    let children = status.iter().flat_map(|status| &status.children);
    let heard = children.filter_map(|child| child.heard).max();
    Ping {
        name: peer.to_owned(),
        strata: report.is_ours,
        pings: report.pings,
        sent: report.pings - report.not_sent,
        received: report.received,
        answered: report.answered,
        returned: report.returned,
        round_trip: report.round_trips.map(round_trip),
        ike_micros: report.ike.map(micros),
        heard_seconds: heard.map(|heard| now.since(heard).as_secs()),
        lost: losses(report, peer),
    }
}

fn round_trip(times: RoundTrips) -> RoundTrip {
    RoundTrip {
        min_micros: micros(times.least),
        mean_micros: micros(times.mean),
        max_micros: micros(times.most),
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Returns the places at which packets were lost. Each is told by two counters: those of the same
/// end, or one of each.
fn losses(report: &PingReport, peer: &str) -> Vec<Loss> {
    let sent = report.pings - report.not_sent;
    let mut losses = vec![not_sent(report, peer)];
    match report.received.zip(report.answered) {
        Some((received, answered)) => {
            // The network may repeat packets.
            let received = received.min(sent);
            let answered = answered.min(received);
            losses.extend([
            Loss {
                place: LossPlace::NotReceived,
                packets: sent - received,
                why: "sent here, and not received by the peer".to_owned(),
                fix: "IKE passes and ESP does not: look for a firewall on the path or at the peer \
                      (UDP port 4500, or IP protocol 50)"
                    .to_owned(),
            },
            not_answered(report, received - answered),
            Loss {
                place: LossPlace::AnswerLost,
                packets: answered.saturating_sub(report.returned),
                why: "answered by the peer, and the answer was not received here".to_owned(),
                fix: "IKE passes and ESP does not: look for a firewall on the path or of this host \
                      (UDP port 4500, or IP protocol 50)"
                    .to_owned(),
            },
            ]);
        }
        None => losses.push(unknown(report, sent.saturating_sub(report.returned), peer)),
    }
    losses.retain(|loss| loss.packets > 0);
    losses
}

fn not_sent(report: &PingReport, peer: &str) -> Loss {
    let (why, fix) = match report.why_not_sent {
        Some(NotPinged::Hidden) => (
            "`tfc` hides lengths here, which a ping would show",
            format!("remove `tfc` from [peer.{peer}] to ping it"),
        ),
        Some(NotPinged::Refused) => (
            "this host's system does not accept the packet",
            "look for a firewall of this host (`nft list ruleset`), and run `strata doctor`"
                .to_owned(),
        ),
        Some(NotPinged::NoSa) | None => (
            "no SA sends to the peer",
            format!("run `strata explain {peer}`"),
        ),
    };
    Loss {
        place: LossPlace::NotSent,
        packets: report.not_sent,
        why: format!("not sent: {why}"),
        fix,
    }
}

fn not_answered(report: &PingReport, packets: u64) -> Loss {
    let (why, fix) = match report.withheld.unwrap_or(0) > 0 {
        true => (
            "it hides lengths (`tfc`), which an answer would show",
            "data may pass all the same; to ping, remove `tfc` at the peer",
        ),
        false => (
            "its system does not accept the answer",
            "look for a firewall of the peer's host (`nft list ruleset` there)",
        ),
    };
    Loss {
        place: LossPlace::NotAnswered,
        packets,
        why: format!("received by the peer, and not answered: {why}"),
        fix: fix.to_owned(),
    }
}

fn unknown(report: &PingReport, packets: u64, peer: &str) -> Loss {
    let (why, fix) = match report.ike {
        None => (
            "IKE is not answered either",
            format!("run `strata explain {peer}` and `strata paths`: nothing passes"),
        ),
        Some(_) => (
            "the peer did not tell its counters",
            format!("run `strata ping {peer}` again"),
        ),
    };
    Loss {
        place: LossPlace::Unknown,
        packets,
        why: format!("lost on one of the two ways: {why}"),
        fix,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(not_sent: u64, peer: Option<(u64, u64)>, returned: u64) -> PingReport {
        PingReport {
            is_ours: true,
            pings: 4,
            not_sent,
            why_not_sent: (not_sent > 0).then_some(NotPinged::Refused),
            received: peer.map(|(received, _)| received),
            answered: peer.map(|(_, answered)| answered),
            returned,
            ike: Some(Duration::from_millis(1)),
            ..PingReport::default()
        }
    }

    fn places(report: &PingReport) -> Vec<(LossPlace, u64)> {
        let losses = losses(report, "office");
        losses
            .iter()
            .map(|loss| (loss.place, loss.packets))
            .collect()
    }

    #[test]
    fn two_counters_tell_each_place() {
        use LossPlace::{AnswerLost, NotAnswered, NotReceived, NotSent, Unknown};
        for (report, expected) in [
            (report(0, None, 4), &[][..]),
            (report(4, None, 0), &[(NotSent, 4)]),
            (report(0, Some((0, 0)), 0), &[(NotReceived, 4)]),
            (report(0, Some((4, 0)), 0), &[(NotAnswered, 4)]),
            (report(0, Some((4, 4)), 0), &[(AnswerLost, 4)]),
            (report(0, None, 1), &[(Unknown, 3)]),
            (
                report(1, Some((2, 1)), 0),
                &[
                    (NotSent, 1),
                    (NotReceived, 1),
                    (NotAnswered, 1),
                    (AnswerLost, 1),
                ],
            ),
            // Packets that the network repeats.
            (report(0, Some((5, 5)), 4), &[]),
        ] {
            assert_eq!(places(&report), expected, "{report:?}");
        }
    }

    #[test]
    fn a_peer_that_withholds_answers_is_not_taken_for_one_with_a_firewall() {
        let mut report = report(0, Some((4, 0)), 0);
        report.withheld = Some(4);
        let losses = losses(&report, "office");
        assert!(losses[0].why.contains("`tfc`"), "{losses:?}");
    }
}
