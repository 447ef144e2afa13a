//! Deliberate faults, for tests: `stratad --faults SPEC`, an option that `--help` does not list.
//!
//! Datagrams that enter or leave the daemon are dropped, duplicated, followed by an old one, or
//! corrupted in one bit. Steps of the installation of a tunnel fail. The seed alone determines the
//! fault of each datagram, and every fault is counted, so a test can compare the daemon's own
//! counters with them.
//!
//! ```text
//! SPEC = word,...   seed=N   only=esp   drop=P  duplicate=P  replay=P  corrupt=P   fail=STEP:N   numbers=N
//! ```
//!
//! `P` is a percentage in both directions or, as `in.drop` or `out.drop`, in one. With `only=esp`,
//! IKE has no faults. `fail` makes a step fail its first `N` times. With `numbers`, every SA
//! continues after that sequence number, as if the packets had been sent.

use crypto::Rng;
use model::Path;
use os::Error;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use wire::esp::Datagram;

/// Datagrams remembered for replays.
const REMEMBERED: usize = 64;

/// The steps that install a tunnel in the system and store its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Set up the filter of unencrypted packets with addresses from inside a tunnel.
    Guard,
    /// Permit an assigned address in the lock.
    Lock,
    /// Add an assigned address to the device.
    Address,
    /// Make routes prefer an assigned address.
    Route,
    /// Install a child SA.
    Child,
    /// Set the system's name servers to those behind the tunnel.
    Resolver,
    /// Store the lease of a peer's address.
    Lease,
}

const STEPS: [(&str, Step); 7] = [
    ("guard", Step::Guard),
    ("lock", Step::Lock),
    ("address", Step::Address),
    ("route", Step::Route),
    ("child", Step::Child),
    ("resolver", Step::Resolver),
    ("lease", Step::Lease),
];

/// The direction of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Towards us.
    In,
    /// From us.
    Out,
}

/// The faults that were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    seed: u64,
    only_esp: bool,
    inward: Rates,
    outward: Rates,
    failures: BTreeMap<Step, u32>,
    numbers: Option<u64>,
}

/// Rates of faults in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rates {
    drop: u32,
    duplicate: u32,
    replay: u32,
    corrupt: u32,
}

/// Counters of faults, by direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    inward: Done,
    outward: Done,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Done {
    dropped: u64,
    duplicated: u64,
    replayed: u64,
    corrupted: u64,
}

/// The faults of a daemon.
pub struct Faults {
    only_esp: bool,
    /// Local port that carries no ESP.
    ike_port: u16,
    inward: Wire,
    outward: Wire,
    failures: BTreeMap<Step, u32>,
    numbers: Option<u64>,
}

/// The state of one direction.
struct Wire {
    rates: Rates,
    rng: Rng,
    past: VecDeque<(Path, Vec<u8>)>,
    done: Done,
}

/// Passes a datagram on, unchanged if no faults were asked for.
pub fn pass(
    faults: &mut Option<Faults>,
    way: Way,
    path: Path,
    payload: &[u8],
    mut each: impl FnMut(Path, &[u8]),
) {
    match faults {
        None => each(path, payload),
        Some(faults) => faults.pass(way, path, payload, each),
    }
}

/// Passes a step.
///
/// # Errors
/// The step should fail.
pub fn step(faults: &mut Option<Faults>, step: Step) -> Result<(), Error> {
    let left = faults
        .as_mut()
        .and_then(|faults| faults.failures.get_mut(&step));
    match left.filter(|left| **left > 0) {
        None => Ok(()),
        Some(left) => {
            *left -= 1;
            Err(Error::Os {
                doing: format!("the step {step:?}"),
                source: io::Error::other("a fault on purpose, by `--faults`"),
            })
        }
    }
}

impl Faults {
    /// Prepares the faults of a specification, in a daemon that speaks only IKE on this port.
    pub fn new(spec: Spec, ike_port: u16) -> Self {
        let wire = |rates, number| {
            let mut seed = [number; 32];
            seed[..8].copy_from_slice(&spec.seed.to_be_bytes());
            Wire {
                rates,
                rng: Rng::from_seed(seed),
                past: VecDeque::new(),
                done: Done::default(),
            }
        };
        Self {
            only_esp: spec.only_esp,
            ike_port,
            inward: wire(spec.inward, 1),
            outward: wire(spec.outward, 2),
            failures: spec.failures,
            numbers: spec.numbers,
        }
    }

    /// Returns the sequence number after which every SA continues.
    pub const fn numbers(&self) -> Option<u64> {
        self.numbers
    }

    /// Returns the counters of faults so far.
    pub const fn counts(&self) -> Counts {
        Counts {
            inward: self.inward.done,
            outward: self.outward.done,
        }
    }

    fn pass(&mut self, way: Way, path: Path, payload: &[u8], mut each: impl FnMut(Path, &[u8])) {
        let shared = path.local.port() != self.ike_port;
        let is_esp = shared && matches!(Datagram::parse(payload), Datagram::Esp(_));
        if self.only_esp && !is_esp {
            return each(path, payload);
        }
        match way {
            Way::In => self.inward.pass(path, payload, each),
            Way::Out => self.outward.pass(path, payload, each),
        }
    }
}

impl Wire {
    /// Passes a datagram on. A dropped or corrupted datagram never arrives intact, so it is not
    /// remembered for replays.
    fn pass(&mut self, path: Path, payload: &[u8], mut each: impl FnMut(Path, &[u8])) {
        if self.happens(self.rates.drop) {
            self.done.dropped += 1;
            return;
        }
        if !payload.is_empty() && self.happens(self.rates.corrupt) {
            let mut damaged = payload.to_vec();
            let bit = self.draw(8 * damaged.len());
            damaged[bit / 8] ^= 1 << (bit % 8);
            self.done.corrupted += 1;
            return each(path, &damaged);
        }
        each(path, payload);
        if self.happens(self.rates.duplicate) {
            self.done.duplicated += 1;
            each(path, payload);
        }
        if !self.past.is_empty() && self.happens(self.rates.replay) {
            let at = self.draw(self.past.len());
            let (path, old) = &self.past[at];
            self.done.replayed += 1;
            each(*path, old);
        }
        if self.rates.replay > 0 {
            self.past.truncate(REMEMBERED - 1);
            self.past.push_front((path, payload.to_vec()));
        }
    }

    fn happens(&mut self, percent: u32) -> bool {
        percent > 0 && self.draw(100) < percent as usize
    }

    fn draw(&mut self, below: usize) -> usize {
        self.rng.u32() as usize % below
    }
}

impl Counts {
    /// Returns every counter with its metric label.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let (inward, outward) = (self.inward, self.outward);
        let kinds = [
            ("fault_in_dropped", inward.dropped),
            ("fault_in_duplicated", inward.duplicated),
            ("fault_in_replayed", inward.replayed),
            ("fault_in_corrupted", inward.corrupted),
            ("fault_out_dropped", outward.dropped),
            ("fault_out_duplicated", outward.duplicated),
            ("fault_out_replayed", outward.replayed),
            ("fault_out_corrupted", outward.corrupted),
        ];
        kinds.into_iter()
    }
}

impl Spec {
    /// Reads the argument of `--faults`.
    ///
    /// # Errors
    /// An unknown word, with the list of known ones.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut spec = Self::default();
        for word in text.split(',') {
            spec.take(word).ok_or_else(|| {
                let steps = STEPS.map(|(name, _)| name).join(", ");
                format!(
                    "`{word}` is not a fault: write seed=N, only=esp, drop=P, duplicate=P, replay=P, corrupt=P \
                     (percent, of one way as in.drop=P or out.drop=P), fail=STEP:N with a step of {steps}, or numbers=N"
                )
            })?;
        }
        Ok(spec)
    }

    fn take(&mut self, word: &str) -> Option<()> {
        match word.split_once('=')? {
            ("seed", seed) => self.seed = seed.parse().ok()?,
            ("only", "esp") => self.only_esp = true,
            ("numbers", number) => self.numbers = Some(number.parse().ok()?),
            ("fail", failure) => {
                let (name, times) = failure.split_once(':')?;
                let (_, step) = STEPS.iter().find(|(known, _)| *known == name)?;
                self.failures.insert(*step, times.parse().ok()?);
            }
            (kind, percent) => {
                let percent = percent.parse().ok().filter(|percent| *percent <= 100)?;
                let (ways, kind) = match kind.split_once('.') {
                    Some(("in", kind)) => (vec![&mut self.inward], kind),
                    Some(("out", kind)) => (vec![&mut self.outward], kind),
                    Some(_) => return None,
                    None => (vec![&mut self.inward, &mut self.outward], kind),
                };
                for rates in ways {
                    *rates.rate(kind)? = percent;
                }
            }
        }
        Some(())
    }
}

impl Rates {
    fn rate(&mut self, kind: &str) -> Option<&mut u32> {
        Some(match kind {
            "drop" => &mut self.drop,
            "duplicate" => &mut self.duplicate,
            "replay" => &mut self.replay,
            "corrupt" => &mut self.corrupt,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IKE: u16 = 500;

    fn faults(spec: &str) -> Option<Faults> {
        Some(Faults::new(Spec::parse(spec).unwrap(), IKE))
    }

    fn path(port: u16) -> Path {
        let end = |last| ([192, 0, 2, last], port).into();
        Path::udp(end(1), end(2))
    }

    /// Passes a thousand distinct datagrams, and returns those that arrive.
    fn passed(faults: &mut Option<Faults>) -> Vec<Vec<u8>> {
        let mut passed = Vec::new();
        for number in 1000..2000_u32 {
            let payload = [number.to_be_bytes(), [0; 4]].concat();
            pass(faults, Way::In, path(4500), &payload, |_, octets| {
                passed.push(octets.to_vec());
            });
        }
        passed
    }

    fn count(faults: &Option<Faults>, kind: &str) -> u64 {
        let counts = faults.as_ref().unwrap().counts();
        counts.iter().find(|(name, _)| *name == kind).unwrap().1
    }

    #[test]
    fn the_same_seed_makes_the_same_faults_and_another_makes_others() {
        let run = |seed: &str| {
            passed(&mut faults(&format!(
                "seed={seed},drop=10,duplicate=10,replay=10,corrupt=10"
            )))
        };
        assert_eq!(run("1"), run("1"));
        assert_ne!(run("1"), run("2"));
    }

    #[test]
    fn each_fault_is_counted_and_comes_about_as_often_as_is_asked_for() {
        let mut faults = faults("drop=10,duplicate=10,replay=10,corrupt=10");
        let datagrams = passed(&mut faults).len() as u64;
        let of = |kind: &str| count(&faults, &format!("fault_in_{kind}"));
        let more = of("duplicated") + of("replayed");
        assert_eq!(datagrams, 1000 - of("dropped") + more);
        for kind in ["dropped", "duplicated", "replayed", "corrupted"] {
            assert!((50..150).contains(&of(kind)), "{kind}: {}", of(kind));
        }
        assert_eq!(count(&faults, "fault_out_dropped"), 0, "nothing was sent");
    }

    #[test]
    fn without_faults_everything_passes_as_it_is() {
        let datagrams = passed(&mut None);
        assert_eq!(datagrams.len(), 1000);
        assert_eq!(datagrams, passed(&mut faults("out.drop=100,seed=3")));
        assert!(step(&mut None, Step::Child).is_ok());
    }

    #[test]
    fn a_damaged_datagram_differs_in_one_bit() {
        let before = passed(&mut None);
        let after = passed(&mut faults("in.corrupt=100"));
        for (before, after) in before.iter().zip(&after) {
            let bits = before.iter().zip(after).map(|(a, b)| (a ^ b).count_ones());
            assert_eq!(bits.sum::<u32>(), 1);
        }
    }

    #[test]
    fn ike_can_be_left_alone() {
        let mut faults = faults("only=esp,drop=100");
        let mut passes = |port, payload: &[u8]| {
            let mut passed = false;
            pass(&mut faults, Way::Out, path(port), payload, |_, _| {
                passed = true
            });
            passed
        };
        assert!(passes(IKE, &[1; 40]), "there is no ESP on that port");
        assert!(passes(4500, &[0; 40]), "it has the marker of IKE");
        assert!(!passes(4500, &[1; 40]));
    }

    #[test]
    fn a_step_fails_as_often_as_is_asked_for() {
        let mut faults = faults("fail=address:2");
        for _ in 0..2 {
            let why = step(&mut faults, Step::Address).unwrap_err();
            assert!(why.to_string().contains("a fault on purpose"), "{why}");
            assert!(step(&mut faults, Step::Route).is_ok());
        }
        assert!(step(&mut faults, Step::Address).is_ok());
    }

    #[test]
    fn a_word_that_is_none_is_refused_with_those_that_are() {
        let bad = [
            "",
            "drop",
            "drop=101",
            "drop=-1",
            "up.drop=1",
            "in.fail=1",
            "fail=nothing:1",
            "fail=route",
            "only=ike",
            "drop=1,,",
            "seed=x",
        ];
        for text in bad {
            let why = Spec::parse(text).unwrap_err();
            assert!(
                why.contains("is not a fault") && why.contains("resolver"),
                "{why}"
            );
        }
    }
}
