//! A record of all events in their order, and what follows from them.

use super::call::Direction;
use super::fetch::Fetched;
use super::journey::Step;
use super::network::{CELLULAR, UPLINKS, WIFI};
use super::news::{News, Sight};
use super::wire::Wire;
use control::Chosen;
use std::ops::Range;
use std::time::Duration;

/// Time after which a datagram counts as lost.
const LOST: Duration = Duration::from_millis(500);

/// Silence of the call whose end is worth a message.
const LONG: Duration = Duration::from_millis(300);

/// A span of time since the start.
pub(super) type Span = Range<Duration>;

/// All events so far.
#[derive(Default)]
pub(super) struct Record {
    /// Time of the last event.
    pub now: Duration,
    /// Steps of the walk, each with its beginning.
    pub steps: Vec<(Duration, Step)>,
    /// Loss of the Wi-Fi in per cent, from each time on.
    losses: Vec<(Duration, u8)>,
    /// Answers of the daemon.
    sights: Vec<(Duration, Sight)>,
    calls: [Call; 2],
    /// Octets of the download at times.
    octets: Vec<(Duration, u64)>,
    /// The download, once it has ended.
    pub fetched: Option<Fetched>,
    /// The wire.
    pub wire: Wire,
    /// Packets that the fading Wi-Fi has lost.
    pub faded: u64,
    /// Time at which the walk ended.
    pub over: Option<Duration>,
    /// Messages for readers.
    pub told: Vec<(Duration, String)>,
    /// Failures.
    pub failures: Vec<String>,
}

/// One direction of the call.
#[derive(Default)]
struct Call {
    /// The time at which each datagram was sent, and true if it has arrived.
    datagrams: Vec<(Duration, bool)>,
    /// Times of all arrivals.
    arrivals: Vec<Duration>,
}

impl Record {
    /// Records a failure that no event reports.
    pub fn fail(&mut self, why: String) {
        self.failures.push(why);
    }

    /// Records an event. Returns a message if the event is worth one.
    pub fn note(&mut self, at: Duration, news: News) -> Option<String> {
        self.pass(at);
        let told = self.take(at, news);
        self.told.extend(told.clone().map(|told| (at, told)));
        told
    }

    fn take(&mut self, at: Duration, news: News) -> Option<String> {
        match news {
            News::Step(step) => {
                self.steps.push((at, step));
                return Some(step.text().to_owned());
            }
            News::Loss(percent) => self.losses.push((at, percent)),
            News::Paths(sight) => return self.see(at, sight),
            News::Sent(direction, _) => {
                let datagrams = &mut self.calls[direction as usize].datagrams;
                datagrams.push((at, false));
            }
            News::Came(direction, number) => {
                let silence = self.calls[direction as usize].came(at, number)?;
                return (silence >= LONG).then(|| {
                    let silence = silence.as_millis();
                    format!("the call {} goes on after {silence} ms", direction.text())
                });
            }
            News::Octets(octets) => self.octets.push((at, octets)),
            News::Fetched(fetched) => {
                let whole = fetched.is_whole();
                self.fetched = Some(fetched);
                let what = if whole { "whole" } else { "NOT WHOLE" };
                return Some(format!("the download is {what}, says sha256sum"));
            }
            News::Wire(wire) => self.wire = wire,
            News::Faded(packets) => self.faded = packets,
            News::Over => self.over = Some(at),
            News::Failed(why) => {
                self.failures.push(why.clone());
                return Some(why);
            }
        }
        None
    }

    /// Advances the time.
    pub fn pass(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    fn see(&mut self, at: Duration, sight: Sight) -> Option<String> {
        let before = self.sights.last().map(|(_, sight)| sight.used);
        self.sights.push((at, sight));
        let moved = before.is_some_and(|before| before != sight.used);
        moved.then(|| {
            let path = path(sight.used);
            match reason(&sight) {
                Some(why) => format!("the tunnel is on {path}, because of {why}"),
                None => format!("the tunnel is on {path}"),
            }
        })
    }

    // Results derived from the events.

    /// Returns the last answer of the daemon.
    pub fn sight(&self) -> Sight {
        self.sights.last().map_or(Sight::default(), |last| last.1)
    }

    /// Returns the networks that carried packets at a time.
    pub fn used(&self, at: Duration) -> [bool; 2] {
        let after = self.sights.partition_point(|(time, _)| *time <= at);
        let last = after.checked_sub(1);
        last.map_or([false; 2], |last| self.sights[last].1.used)
    }

    /// Returns the first move of the tunnel within a span: its time, and the answer of the daemon.
    /// A tunnel that is down for a while has not moved.
    pub fn moved(&self, span: &Span) -> Option<(Duration, Sight)> {
        let mut known = self
            .sights
            .iter()
            .filter(|(_, sight)| sight.used != [false; 2]);
        let mut before = known.next()?.1.used;
        known
            .find(|(at, sight)| {
                let differs = before != sight.used;
                before = sight.used;
                differs && span.contains(at)
            })
            .copied()
    }

    /// Returns the loss of the Wi-Fi at a time, in per cent.
    pub fn loss(&self, at: Duration) -> u8 {
        let after = self.losses.partition_point(|(time, _)| *time <= at);
        after.checked_sub(1).map_or(0, |last| self.losses[last].1)
    }

    /// Returns the current step with its beginning.
    pub fn step(&self) -> Option<(Duration, Step)> {
        self.steps.last().copied()
    }

    /// Returns the span of a step. The last one ends with the walk.
    pub fn span(&self, number: usize) -> Span {
        let next = self.steps.get(number + 1).map(|next| next.0);
        let end = next.or(self.over).unwrap_or(self.now);
        self.steps[number].0..end
    }

    /// Returns the longest silence of the call within a span, also of one that goes on. `None` if
    /// nothing has arrived.
    pub fn gap(&self, direction: Direction, span: &Span) -> Option<Duration> {
        let arrivals = &self.calls[direction as usize].arrivals;
        let first = arrivals.partition_point(|&at| at <= span.start);
        let behind = arrivals.partition_point(|&at| at <= span.end);
        // The first gap starts with the last arrival before the span.
        let within = arrivals.get(first.saturating_sub(1)..behind)?;
        let gaps = within.windows(2).map(|pair| pair[1] - pair[0]);
        let open = within.last().map(|last| span.end.saturating_sub(*last));
        gaps.chain(open).max()
    }

    /// Returns the number of datagrams that were sent within a span, and of those lost.
    pub fn lost(&self, direction: Direction, span: &Span) -> (u64, u64) {
        let datagrams = &self.calls[direction as usize].datagrams;
        let until = |time: Duration| datagrams.partition_point(|(sent, _)| *sent < time);
        let sent = datagrams.get(until(span.start)..until(span.end));
        let sent = sent.unwrap_or_default();
        let is_lost = |sent: &Duration, came: bool| !came && *sent + LOST <= self.now;
        let lost = sent.iter().filter(|(at, came)| is_lost(at, *came));
        (sent.len() as u64, lost.count() as u64)
    }

    /// Returns the span of the whole walk.
    pub fn whole(&self) -> Span {
        Duration::ZERO..self.over.unwrap_or(self.now)
    }

    /// Returns the octets of the download that had arrived at a time.
    pub fn octets(&self, at: Duration) -> u64 {
        let after = self.octets.partition_point(|(time, _)| *time <= at);
        after.checked_sub(1).map_or(0, |last| self.octets[last].1)
    }

    /// Returns the goodput of the download within a span, in bits per second. Time after its last
    /// octet does not count.
    pub fn goodput(&self, span: &Span) -> f64 {
        let last = self.octets.last().map_or(Duration::ZERO, |last| last.0);
        let end = match self.fetched {
            Some(_) => span.end.min(last),
            None => span.end,
        };
        let octets = self.octets(end).saturating_sub(self.octets(span.start));
        let seconds = end.saturating_sub(span.start).as_secs_f64();
        match seconds > 0.0 {
            true => octets as f64 * 8.0 / seconds,
            false => 0.0,
        }
    }
}

impl Call {
    /// Records an arrival. Returns the silence before it.
    fn came(&mut self, at: Duration, number: u32) -> Option<Duration> {
        self.datagrams.get_mut(number as usize)?.1 = true;
        let last = self.arrivals.last().copied();
        self.arrivals.push(at.max(last.unwrap_or_default()));
        Some(at.saturating_sub(last?))
    }
}

/// Names the networks in use.
pub(super) const fn path(used: [bool; 2]) -> &'static str {
    match used {
        [true, true] => "both",
        [true, false] => UPLINKS[WIFI].name,
        [false, true] => UPLINKS[CELLULAR].name,
        [false, false] => "none",
    }
}

/// Describes why the tunnel is on its path, in a few words.
pub(super) fn reason(sight: &Sight) -> Option<String> {
    let reason = match (sight.why?, sight.faded) {
        (Chosen::Faded, Some(lost)) => format!("{lost} % loss"),
        (Chosen::Faded, None) => "loss".to_owned(),
        (Chosen::Route, _) => "the route".to_owned(),
        (Chosen::Weak, _) => "a weak signal".to_owned(),
        (Chosen::Silent, _) => "silence".to_owned(),
        (Chosen::Asked, _) => "a command".to_owned(),
        (Chosen::Quicker, _) => "its speed".to_owned(),
    };
    Some(reason)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::demo::moves::wire::Dissected;

    pub fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn on(used: [bool; 2], why: Chosen) -> News {
        let faded = (why == Chosen::Faded).then_some(15);
        News::Paths(Sight {
            used,
            why: Some(why),
            faded,
            ..Sight::default()
        })
    }

    /// Returns a walk of 10 s. The tunnel leaves the Wi-Fi at 3.5 s and returns at 8.5 s. The call
    /// to the host loses the datagrams that are sent from 3 s on for this time.
    pub fn walked(outage: u64) -> Record {
        let mut record = Record::default();
        let mut news: Vec<(u64, News)> = vec![
            (0, News::Step(Step::Home)),
            (10, on([true, false], Chosen::Route)),
            (2000, News::Step(Step::Fading)),
            (2000, News::Loss(20)),
            (3500, on([false, true], Chosen::Faded)),
            (4000, News::Loss(100)),
            (4000, News::Step(Step::Silent)),
            (5000, News::Step(Step::Away)),
            (7000, News::Loss(0)),
            (7000, News::Step(Step::Back)),
            (8500, on([true, false], Chosen::Route)),
        ];
        for number in 0..500_u64 {
            let sent = 20 * number;
            for direction in Direction::ALL {
                let is_lost =
                    direction == Direction::ToHost && (3000..3000 + outage).contains(&sent);
                news.push((sent + 1, News::Sent(direction, number as u32)));
                if !is_lost {
                    news.push((sent + 6, News::Came(direction, number as u32)));
                }
            }
            news.push((sent + 7, News::Octets((number + 1) * 20_000)));
        }
        news.push((9995, News::Fetched(fetched())));
        news.push((9996, News::Wire(wire())));
        news.push((10_000, News::Over));
        news.sort_by_key(|(at, _)| *at);
        for (millis, what) in news {
            record.note(at(millis), what);
        }
        record.pass(at(10_600));
        record
    }

    fn fetched() -> Fetched {
        Fetched {
            octets: 10_000_000,
            size: 10_000_000,
            sha256: "3a7bd3e2360a3d29".repeat(4),
            sha256_of_server: "3a7bd3e2360a3d29".repeat(4),
            tcp_timeouts: 0,
        }
    }

    fn wire() -> Wire {
        Wire {
            packets: 30_000,
            esp: 29_950,
            ike: 50,
            other: 0,
            searched: 3_000_000,
            found: 0,
            found_inside: true,
            tshark: Some(Dissected {
                esp: 29_950,
                isakmp: 50,
                other: 0,
                first_other: None,
            }),
        }
    }

    #[test]
    fn a_gap_begins_with_the_last_arrival_before_and_ends_with_the_first_after() {
        let record = walked(200);
        let all = record.whole();
        assert_eq!(record.gap(Direction::ToHost, &all), Some(at(220)));
        assert_eq!(record.gap(Direction::ToServer, &all), Some(at(20)));
        assert_eq!(record.lost(Direction::ToHost, &all), (500, 10));
        // A silence that goes on.
        let span = at(3000)..at(3100);
        assert_eq!(record.gap(Direction::ToHost, &span), Some(at(114)));
    }

    #[test]
    fn a_step_ends_where_the_next_one_begins_and_the_last_one_with_the_walk() {
        let record = walked(0);
        assert_eq!(record.span(1), at(2000)..at(4000));
        assert_eq!(record.span(4), at(7000)..at(10_000));
        let (moved, sight) = record.moved(&record.span(1)).unwrap();
        assert_eq!((moved, path(sight.used)), (at(3500), "cellular"));
        assert_eq!(reason(&sight).as_deref(), Some("15 % loss"));
        assert!(record.moved(&record.span(3)).is_none());
    }

    #[test]
    fn the_goodput_counts_no_time_after_the_last_octet() {
        let record = walked(0);
        let goodput = record.goodput(&(at(9000)..at(20_000)));
        assert!((7.9e6..8.2e6).contains(&goodput), "{goodput}");
    }

    #[test]
    fn a_reader_hears_of_each_step_and_of_each_move() {
        let record = walked(400);
        let told: Vec<_> = record.told.iter().map(|(_, told)| &**told).collect();
        let expected = [
            "the host is at home, in its Wi-Fi",
            "the Wi-Fi fades: it loses more and more packets",
            "the call to the host goes on after 420 ms",
            "the tunnel is on cellular, because of 15 % loss",
            "the Wi-Fi carries nothing any more; its carrier stays",
            "the interface of the Wi-Fi goes down",
            "the host is back in its Wi-Fi",
            "the tunnel is on Wi-Fi, because of the route",
            "the download is whole, says sha256sum",
        ];
        assert_eq!(told, expected);
    }
}
