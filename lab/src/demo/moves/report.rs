//! The result of a walk, for programs and readers, and the verdict on the claims.

use super::call::Direction;
use super::fetch::Fetched;
use super::journey::Step;
use super::network::{CELLULAR, UPLINKS, WIFI};
use super::record::{Record, Span, path, reason};
use super::wire::Wire;
use super::{Options, Way};
use serde::Serialize;
use std::time::Duration;

/// Longest silence of the call that passes, in milliseconds.
const GAP_ALLOWED: u64 = 300;

/// Largest loss of the call that passes, in per cent. Most of it is the fading radio's.
const LOSS_ALLOWED: f64 = 8.0;

/// Least share of the cellular network's rate that the download gets there.
const SHARE_NEEDED: f64 = 0.25;

/// Interval of the samples.
const SAMPLE: Duration = Duration::from_millis(250);

/// The walk's result.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// True if all claims hold.
    pub passed: bool,
    /// Claims that do not hold.
    pub reasons: Vec<String>,
    /// How the tunnel got from one network to the other.
    pub way: Way,
    /// Length of each stay, in seconds.
    pub stay_seconds: u64,
    /// Seed of the losses.
    pub seed: u64,
    /// Longest silence of the call that passes, in milliseconds.
    pub gap_allowed_ms: u64,
    /// Largest loss of the call that passes, in per cent.
    pub loss_allowed_percent: f64,
    /// The call.
    pub call: Both<Stream>,
    /// The download, if it came to an end.
    pub download: Option<Fetched>,
    /// Steps of the walk.
    pub phases: Vec<Phase>,
    /// Packets that the fading Wi-Fi lost.
    pub faded: u64,
    /// Packets between host and gateway.
    pub wire: Wire,
    /// The walk in steps of 250 ms.
    pub timeline: Vec<Sample>,
}

/// Both directions of the call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Both<T> {
    /// To the host.
    pub to_host: T,
    /// To the server.
    pub to_server: T,
}

/// One direction of the call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stream {
    /// Datagrams that were sent.
    pub sent: u64,
    /// Datagrams that did not arrive.
    pub lost: u64,
    /// Longest silence, in milliseconds; `None` if nothing arrived.
    pub gap_ms: Option<u64>,
}

/// A step of the walk.
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    /// The step.
    pub step: Step,
    /// Its beginning, in milliseconds since the start.
    pub at_ms: u64,
    /// Networks that carried packets at its end: `Wi-Fi`, `cellular`, `both` or `none`.
    pub path: &'static str,
    /// Time from its beginning until the tunnel moved, in milliseconds.
    pub moved_after_ms: Option<u64>,
    /// Reason for that, by the daemon.
    pub why: Option<String>,
    /// The call.
    pub call: Both<Stream>,
    /// Goodput of the download, in bits per second.
    pub goodput: f64,
}

/// A part of the walk, 250 ms long.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Its beginning, in milliseconds since the start.
    pub at_ms: u64,
    /// Networks that carried packets.
    pub path: &'static str,
    /// Loss of the Wi-Fi, in per cent.
    pub wifi_lost_percent: u8,
    /// Goodput of the download, in bits per second.
    pub goodput: f64,
    /// The call.
    pub call: Both<Stream>,
}

impl Report {
    /// Judges the events of a record.
    pub(super) fn new(options: &Options, record: &Record) -> Self {
        let mut report = Self {
            passed: false,
            reasons: record.failures.clone(),
            way: options.way,
            stay_seconds: options.stay.as_secs(),
            seed: options.seed,
            gap_allowed_ms: GAP_ALLOWED,
            loss_allowed_percent: LOSS_ALLOWED,
            call: both(record, &record.whole()),
            download: record.fetched.clone(),
            phases: (0..record.steps.len())
                .map(|number| phase(record, number))
                .collect(),
            faded: record.faded,
            wire: record.wire.clone(),
            timeline: timeline(record),
        };
        let claims = [
            report.of_call(),
            report.of_download(),
            report.of_moves(),
            report.of_wire(),
        ];
        report.reasons.extend(claims.into_iter().flatten());
        report.passed = report.reasons.is_empty();
        report
    }

    /// Returns the reasons why the call was disturbed.
    fn of_call(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let streams = [self.call.to_host, self.call.to_server];
        for (direction, stream) in Direction::ALL.into_iter().zip(streams) {
            let name = direction.text();
            match stream.gap_ms {
                None => reasons.push(format!("nothing of the call {name} arrived")),
                Some(gap) if gap > GAP_ALLOWED => {
                    reasons.push(format!("the call {name} was silent for {gap} ms"));
                }
                Some(_) => {}
            }
            let loss = stream.loss();
            if loss > LOSS_ALLOWED {
                reasons.push(format!("the call {name} lost {loss:.1} %"));
            }
        }
        reasons
    }

    fn of_download(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        match &self.download {
            None => reasons.push("the download did not come to an end".to_owned()),
            Some(fetched) if !fetched.is_whole() => {
                let Fetched { octets, size, .. } = fetched;
                let what = format!("{octets} octets, the server's file {size}");
                reasons.push(format!("the downloaded file differs: it has {what}"));
            }
            Some(_) => {}
        }
        let rate = UPLINKS[CELLULAR].hop.rate.map_or(0, |rate| rate.get()) as f64;
        if let Some(away) = self.phase(Step::Away)
            && away.goodput < SHARE_NEEDED * rate
        {
            let goodput = away.goodput / 1e6;
            reasons.push(format!("away, the download had {goodput:.1} Mb/s only"));
        }
        reasons
    }

    /// Returns the reasons why the tunnel was not where the host was.
    fn of_moves(&self) -> Vec<String> {
        let ends = |step: Step| self.phase(step).map(|phase| phase.path);
        let mut reasons = Vec::new();
        if ends(Step::Away) != Some(UPLINKS[CELLULAR].name) {
            reasons.push("away, the tunnel was not on the cellular network".to_owned());
        }
        let returned = ends(Step::Back) == Some(UPLINKS[WIFI].name);
        if !returned && self.way != Way::Paths {
            reasons.push("back at home, the tunnel was not in the Wi-Fi".to_owned());
        }
        reasons
    }

    fn of_wire(&self) -> Vec<String> {
        let wire = &self.wire;
        let mut reasons = Vec::new();
        let mut claim = |holds: bool, what: &str| {
            if !holds {
                reasons.push(what.to_owned());
            }
        };
        claim(wire.esp > 0, "no ESP was seen on the wire");
        claim(wire.other == 0, "not only ESP and IKE was on the wire");
        claim(wire.found == 0, "octets of the download were on the wire");
        let blind = "the search for the download does not find it inside the host either";
        claim(wire.found_inside, blind);
        if let Some(tshark) = &wire.tshark {
            let first = tshark.first_other.as_deref().unwrap_or_default();
            let what = format!("tshark sees {first} on the wire");
            claim(tshark.other == 0, &what);
            claim(tshark.esp > 0, "tshark sees no ESP on the wire");
        }
        reasons
    }

    /// Returns a step of the walk, if it was reached.
    pub fn phase(&self, step: Step) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.step == step)
    }
}

impl Stream {
    /// Returns the loss, in per cent.
    pub fn loss(&self) -> f64 {
        match self.sent {
            0 => 0.0,
            sent => self.lost as f64 * 100.0 / sent as f64,
        }
    }
}

fn both(record: &Record, span: &Span) -> Both<Stream> {
    let stream = |direction: Direction| {
        let (sent, lost) = record.lost(direction, span);
        let gap = record.gap(direction, span);
        Stream {
            sent,
            lost,
            gap_ms: gap.map(|gap| gap.as_millis() as u64),
        }
    };
    Both {
        to_host: stream(Direction::ToHost),
        to_server: stream(Direction::ToServer),
    }
}

fn phase(record: &Record, number: usize) -> Phase {
    let span = record.span(number);
    let moved = record.moved(&span);
    let after = moved.map(|(at, _)| at.saturating_sub(span.start).as_millis() as u64);
    Phase {
        step: record.steps[number].1,
        at_ms: span.start.as_millis() as u64,
        path: path(record.used(span.end)),
        moved_after_ms: after,
        why: moved.and_then(|(_, sight)| reason(&sight)),
        call: both(record, &span),
        goodput: record.goodput(&span),
    }
}

fn timeline(record: &Record) -> Vec<Sample> {
    let end = record.whole().end;
    let beginnings = (0_u32..).map(|number| SAMPLE * number);
    let sample = |at: Duration| {
        let span = at..at + SAMPLE;
        Sample {
            at_ms: at.as_millis() as u64,
            path: path(record.used(span.end)),
            wifi_lost_percent: record.loss(at),
            goodput: record.goodput(&span),
            call: both(record, &span),
        }
    };
    let whole = beginnings.take_while(|at| *at + SAMPLE <= end);
    whole.map(sample).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::news::News;
    use super::super::record::tests::walked;
    use super::*;

    /// Returns the report of a walk with an outage of the call, in milliseconds.
    pub fn report(outage: u64) -> Report {
        Report::new(&Options::default(), &walked(outage))
    }

    #[test]
    fn what_is_claimed_passes() {
        let report = report(200);
        assert!(report.passed, "{:?}", report.reasons);
        let stream = report.call.to_host;
        assert_eq!((stream.sent, stream.lost), (500, 10));
        let fading = report.phase(Step::Fading).unwrap();
        assert_eq!(fading.moved_after_ms, Some(1500));
        assert_eq!((fading.path, fading.call.to_host.lost), ("cellular", 10));
        assert_eq!(report.timeline.len(), 40);
    }

    #[test]
    fn a_call_that_is_silent_for_long_fails() {
        let reasons = report(1000).reasons;
        let silent = "the call to the host was silent for 1020 ms";
        assert_eq!(reasons, [silent, "the call to the host lost 10.0 %"]);
    }

    #[test]
    fn what_was_not_seen_fails() {
        let reasons = Report::new(&Options::default(), &Record::default()).reasons;
        assert_eq!(reasons.len(), 7, "{reasons:?}");
    }

    #[test]
    fn anything_but_esp_on_the_wire_fails() {
        let mut record = walked(0);
        record.wire.other = 1;
        record.wire.found = 1;
        let tshark = record.wire.tshark.get_or_insert_default();
        (tshark.other, tshark.first_other) = (1, Some("raw:ip:tcp:http".to_owned()));
        let reasons = Report::new(&Options::default(), &record).reasons;
        assert_eq!(reasons.len(), 3, "{reasons:?}");
        assert!(reasons[2].contains("raw:ip:tcp:http"), "{reasons:?}");
    }

    #[test]
    fn a_tunnel_that_is_not_where_the_host_is_fails() {
        let mut record = walked(0);
        record.steps.retain(|(_, step)| *step != Step::Back);
        record.note(Duration::from_secs(10), News::Step(Step::Back));
        let options = Options {
            way: Way::Paths,
            ..Options::default()
        };
        // The tunnel returned before, so that it was not on the cellular network at the end.
        let reasons = Report::new(&options, &record).reasons;
        let expected = "away, the tunnel was not on the cellular network";
        assert!(reasons.contains(&expected.to_owned()), "{reasons:?}");
    }
}
