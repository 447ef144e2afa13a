//! The pings of one command, without packets, randomness or a clock.
//!
//! First the peer tells its counters, which shows that IKE passes. Then pings are sent at equal
//! distances. If an answer to one of them is missing, the peer tells its counters again, and the
//! differences tell where pings were lost. A peer whose IKE does not pass either is pinged all the
//! same, in case that it answers.

use super::report::{NotPinged, PingReport, RoundTrips};
use model::{IkeSaId, Instant};
use std::num::NonZeroU16;
use std::time::Duration;
use wire::ike::PingCounts;

/// Time from one ping to the next. A peer answers at most eight in a second.
const INTERVAL: Duration = Duration::from_millis(250);

/// Time after the last ping for its answer: over two satellites.
const REST: Duration = Duration::from_secs(2);

/// Time for an answer by IKE, which is repeated if it is lost.
const PATIENCE: Duration = Duration::from_secs(4);

/// The next action of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Ask for the peer's counters.
    Ask,
    /// Send the ping with this number.
    Ping(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The first question is to be answered until this time.
    Before(Instant),
    /// The next ping is sent at this time.
    Pinging(Instant),
    /// Answers to the last pings may arrive until this time.
    Rest(Instant),
    /// The second question is to be answered until this time.
    After(Instant),
    Over,
}

/// One ping.
struct Ping {
    number: u64,
    sent: Instant,
    fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Sent,
    NotSent(NotPinged),
    /// Answered, after this time.
    Answered(Duration),
}

/// The pings of one command.
pub(super) struct Run {
    /// The IKE SA that is asked, whose child SA carries the pings.
    pub(super) sa: IkeSaId,
    count: usize,
    is_ours: bool,
    begun: Instant,
    /// No ping is sent before this time.
    from: Instant,
    phase: Phase,
    pings: Vec<Ping>,
    ike: Option<Duration>,
    before: Option<PingCounts>,
    after: Option<PingCounts>,
}

impl Run {
    /// Begins with the question for the counters of a peer, which the caller asks. Others than
    /// ours are sent no pings.
    pub fn begin(sa: IkeSaId, count: NonZeroU16, is_ours: bool, now: Instant) -> Self {
        Self {
            sa,
            count: count.get().into(),
            is_ours,
            begun: now,
            from: now,
            phase: Phase::Before(now + PATIENCE),
            pings: Vec::new(),
            ike: None,
            before: None,
            after: None,
        }
    }

    /// Sends no ping before a time: the peer answers only some in a second, whichever command sends
    /// them.
    pub fn not_before(self, from: Option<Instant>) -> Self {
        let from = from.unwrap_or(self.from);
        Self { from, ..self }
    }

    /// Returns the time before which no other run should ping the peer.
    pub fn pauses_until(&self) -> Option<Instant> {
        let last = self.pings.last()?;
        Some(last.sent + INTERVAL)
    }

    /// Ends the run where it is.
    pub const fn end(&mut self) {
        self.phase = Phase::Over;
    }

    /// Handles the peer's counters.
    pub fn handle_counts(&mut self, counts: Option<PingCounts>, now: Instant) {
        match self.phase {
            Phase::Before(_) => {
                self.ike = Some(now.since(self.begun));
                self.before = counts;
                self.begin_pings(now);
            }
            Phase::After(_) => {
                self.after = counts;
                self.phase = Phase::Over;
            }
            Phase::Pinging(_) | Phase::Rest(_) | Phase::Over => {}
        }
    }

    /// Handles the answer to a ping. One that is repeated has no effect.
    pub fn handle_answer(&mut self, number: u64, now: Instant) {
        if let Some(ping) = self.ping(number)
            && ping.fate == Fate::Sent
        {
            ping.fate = Fate::Answered(now.since(ping.sent));
        }
    }

    /// Handles a ping that could not be sent.
    pub fn handle_not_sent(&mut self, number: u64, why: NotPinged) {
        if let Some(ping) = self.ping(number) {
            ping.fate = Fate::NotSent(why);
        }
    }

    fn ping(&mut self, number: u64) -> Option<&mut Ping> {
        self.pings.iter_mut().find(|ping| ping.number == number)
    }

    /// Returns the next step that is due. `number` draws the number of a ping.
    pub fn step(&mut self, number: impl FnOnce() -> u64, now: Instant) -> Option<Step> {
        loop {
            match self.phase {
                Phase::Before(until) if until <= now => self.begin_pings(now),
                Phase::Pinging(_) if self.pings.len() == self.count => {
                    self.phase = Phase::Rest(now + REST);
                }
                Phase::Pinging(next) if next <= now => {
                    self.phase = Phase::Pinging(now + INTERVAL);
                    let number = number();
                    self.pings.push(Ping {
                        number,
                        sent: now,
                        fate: Fate::Sent,
                    });
                    return Some(Step::Ping(number));
                }
                Phase::Rest(until) if until <= now => {
                    if self.is_any_open() && self.before.is_some() {
                        self.phase = Phase::After(now + PATIENCE);
                        return Some(Step::Ask);
                    }
                    self.phase = Phase::Over;
                }
                Phase::After(until) if until <= now => self.phase = Phase::Over,
                _ => return None,
            }
        }
    }

    fn begin_pings(&mut self, now: Instant) {
        self.phase = match self.is_ours {
            true => Phase::Pinging(now.max(self.from)),
            false => Phase::Over,
        };
    }

    /// Returns true if a ping was sent and is not answered.
    fn is_any_open(&self) -> bool {
        self.pings.iter().any(|ping| ping.fate == Fate::Sent)
    }

    /// Returns true if nothing is awaited any more.
    pub fn is_over(&self) -> bool {
        match self.phase {
            Phase::Rest(_) => !self.is_any_open(),
            Phase::Over => true,
            Phase::Before(_) | Phase::Pinging(_) | Phase::After(_) => false,
        }
    }

    /// Returns the time of the next call of [`Self::step`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            _ if self.is_over() => None,
            Phase::Before(at) | Phase::Pinging(at) | Phase::Rest(at) | Phase::After(at) => Some(at),
            Phase::Over => None,
        }
    }

    /// Returns the outcome.
    pub fn report(&self) -> PingReport {
        let count = |of: fn(&Fate) -> bool| {
            let counted = self.pings.iter().filter(|ping| of(&ping.fate));
            counted.count() as u64
        };
        let times = self.pings.iter().filter_map(|ping| match ping.fate {
            Fate::Answered(time) => Some(time),
            Fate::Sent | Fate::NotSent(_) => None,
        });
        let why = self.pings.iter().rev().find_map(|ping| match ping.fate {
            Fate::NotSent(why) => Some(why),
            Fate::Sent | Fate::Answered(_) => None,
        });
        let counts = self.before.zip(self.after);
        let more = |of: fn(&PingCounts) -> u64| {
            counts.map(|(before, after)| of(&after).saturating_sub(of(&before)))
        };
        PingReport {
            is_ours: self.is_ours,
            pings: self.pings.len() as u64,
            not_sent: count(|fate| matches!(fate, Fate::NotSent(_))),
            why_not_sent: why,
            received: more(|counts| counts.received),
            answered: more(|counts| counts.answered),
            withheld: more(|counts| counts.withheld),
            returned: count(|fate| matches!(fate, Fate::Answered(_))),
            round_trips: RoundTrips::new(&times.collect::<Vec<_>>()),
            ike: self.ike,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(millis: u32) -> Instant {
        Instant::ZERO + millis * MS
    }

    fn run(count: u16) -> Run {
        let count = NonZeroU16::new(count).unwrap();
        Run::begin(IkeSaId(1), count, true, Instant::ZERO)
    }

    fn counts(received: u64, answered: u64) -> Option<PingCounts> {
        Some(PingCounts {
            received,
            answered,
            withheld: 0,
        })
    }

    #[test]
    fn pings_follow_the_first_answer_and_end_with_the_last() {
        let mut run = run(2);
        assert_eq!(run.step(|| 1, at(10)), None);
        run.handle_counts(counts(5, 5), at(30));
        assert_eq!(run.step(|| 1, at(30)), Some(Step::Ping(1)));
        assert_eq!(run.step(|| 2, at(30)), None);
        run.handle_answer(1, at(40));
        assert_eq!(run.step(|| 2, at(280)), Some(Step::Ping(2)));
        assert_eq!(run.step(|| 3, at(280)), None);
        run.handle_answer(2, at(300));
        run.handle_answer(2, at(310));
        run.handle_answer(3, at(310));
        assert_eq!(run.step(|| 3, at(310)), None);
        assert!(run.is_over());
        let report = run.report();
        assert_eq!(
            (report.pings, report.returned, report.received),
            (2, 2, None)
        );
        let times = RoundTrips {
            least: 10 * MS,
            mean: 15 * MS,
            most: 20 * MS,
        };
        assert_eq!(
            (report.ike, report.round_trips),
            (Some(30 * MS), Some(times))
        );
    }

    #[test]
    fn a_ping_without_an_answer_asks_again_and_the_differences_count() {
        let mut run = run(1);
        run.handle_counts(counts(5, 4), at(1));
        assert_eq!(run.step(|| 1, at(1)), Some(Step::Ping(1)));
        assert_eq!(run.step(|| 2, at(1)), None);
        assert_eq!(run.step(|| 2, at(2001)), Some(Step::Ask));
        run.handle_counts(counts(6, 4), at(2010));
        assert!(run.is_over());
        let report = run.report();
        assert_eq!((report.received, report.answered), (Some(1), Some(0)));
        assert_eq!((report.not_sent, report.returned), (0, 0));
    }

    #[test]
    fn without_any_answer_a_run_ends_by_itself() {
        let mut run = run(3);
        let (mut now, mut steps) = (Instant::ZERO, Vec::new());
        while !run.is_over() {
            let number = steps.len() as u64;
            match run.step(|| number, now) {
                Some(step) => steps.push(step),
                None => now = now.max(run.poll_timeout().unwrap_or(now)),
            }
        }
        // The peer has told nothing, so that another question would tell nothing either.
        assert_eq!(steps, [Step::Ping(0), Step::Ping(1), Step::Ping(2)]);
        assert_eq!(now, Instant::ZERO + PATIENCE + 2 * INTERVAL + REST);
        assert_eq!((run.report().ike, run.report().received), (None, None));
    }

    #[test]
    fn a_run_after_another_keeps_the_distance_of_pings() {
        let mut first = run(1);
        first.handle_counts(counts(0, 0), at(1));
        assert_eq!(first.step(|| 1, at(1)), Some(Step::Ping(1)));
        assert_eq!(first.pauses_until(), Some(at(251)));
        let mut second = run(1).not_before(first.pauses_until());
        second.handle_counts(counts(1, 1), at(20));
        assert_eq!(second.step(|| 2, at(20)), None);
        assert_eq!(second.poll_timeout(), Some(at(251)));
        assert_eq!(second.step(|| 2, at(251)), Some(Step::Ping(2)));
    }

    #[test]
    fn a_foreign_peer_is_asked_and_not_pinged() {
        let count = NonZeroU16::MIN;
        let mut run = Run::begin(IkeSaId(1), count, false, Instant::ZERO);
        run.handle_counts(None, at(7));
        assert!(run.is_over() && run.step(|| 1, at(8)).is_none());
        assert_eq!((run.report().pings, run.report().ike), (0, Some(7 * MS)));
    }

    #[test]
    fn what_is_not_sent_is_not_waited_for() {
        let mut run = run(1);
        run.handle_counts(counts(0, 0), at(1));
        assert_eq!(run.step(|| 1, at(1)), Some(Step::Ping(1)));
        run.handle_not_sent(1, NotPinged::Refused);
        assert_eq!(run.step(|| 2, at(1)), None);
        assert!(run.is_over());
        let report = run.report();
        assert_eq!(
            (report.not_sent, report.why_not_sent),
            (1, Some(NotPinged::Refused))
        );
    }
}
