//! Faults on purpose, for tests: `stratad --faults SPEC`, which `--help` does not tell of.
//!
//! Datagrams on their way into the daemon or out of it are dropped, sent twice, followed by an old
//! one, or damaged in one bit; steps by which a tunnel is put into the system fail. What happens to
//! which datagram hangs on the seed alone, and each fault is counted, so that a test can hold the
//! daemon's own counts against it.
//!
//! ```text
//! SPEC = word,...   seed=N   only=esp   drop=P  duplicate=P  replay=P  corrupt=P   fail=STEP:N   numbers=N
//! ```
//!
//! `P` is a percentage, of both ways or, written `in.drop` or `out.drop`, of one. With `only=esp` IKE is
//! left alone. `fail` lets a step fail its first `N` times. With `numbers` every SA goes on after that number, as if
//! so many packets had been sent.

use crypto::Rng;
use model::Path;
use os::Error;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use wire::esp::Datagram;

/// Datagrams that are remembered, to be replayed.
const REMEMBERED: usize = 64;

/// The steps by which a tunnel is put into the system, and by which it is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// What drops packets in clear that claim to come out of a tunnel is set up.
    Guard,
    /// A lent address is let through the lock.
    Lock,
    /// A lent address is given to the device.
    Address,
    /// Routes are made to prefer it.
    Route,
    /// A child SA is taken up.
    Child,
    /// Programs are told to ask the name servers behind the tunnel.
    Resolver,
    /// An address that was lent to a peer is remembered.
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

/// Which way a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To us.
    In,
    /// From us.
    Out,
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    seed: u64,
    only_esp: bool,
    inward: Rates,
    outward: Rates,
    failures: BTreeMap<Step, u32>,
    numbers: Option<u64>,
}

/// Percentages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rates {
    drop: u32,
    duplicate: u32,
    replay: u32,
    corrupt: u32,
}

/// What was done to datagrams, by way.
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
    /// The port on which there is no ESP.
    ike_port: u16,
    inward: Wire,
    outward: Wire,
    failures: BTreeMap<Step, u32>,
    numbers: Option<u64>,
}

/// One way.
struct Wire {
    rates: Rates,
    rng: Rng,
    past: VecDeque<(Path, Vec<u8>)>,
    done: Done,
}

/// Passes a datagram on: as it is, if no faults are asked for.
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
/// It is to fail.
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
    /// What a specification asks for, in a daemon that speaks IKE alone on this port.
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

    /// After which number every SA is to go on.
    pub const fn numbers(&self) -> Option<u64> {
        self.numbers
    }

    /// What was done so far.
    pub const fn counts(&self) -> Counts {
        Counts {
            inward: self.inward.done,
            outward: self.outward.done,
        }
    }

    fn pass(&mut self, way: Way, path: Path, payload: &[u8], mut each: impl FnMut(Path, &[u8])) {
        let shared = path.local.port() != self.ike_port;
        let is_esp = shared && matches!(Datagram::of(payload), Datagram::Esp(_));
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
    /// A datagram that is dropped or damaged never arrives as it was, so it is none to be replayed.
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
    /// Every kind with its metric label.
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
    /// Reads what follows `--faults`.
    ///
    /// # Errors
    /// A word that is none, with those that are.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut spec = Self::default();
        for word in text.split(',') {
            spec.take(word).ok_or_else(|| {
                let steps = STEPS.map(|(name, _)| name).join(", ");
                format!(
                    "`{word}` is no fault: write seed=N, only=esp, drop=P, duplicate=P, replay=P, corrupt=P \
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
                    *rates.of(kind)? = percent;
                }
            }
        }
        Some(())
    }
}

impl Rates {
    fn of(&mut self, kind: &str) -> Option<&mut u32> {
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

    /// What becomes of a thousand datagrams, of which each is told from the others.
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
                why.contains("is no fault") && why.contains("resolver"),
                "{why}"
            );
        }
    }
}
