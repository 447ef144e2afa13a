//! Gain from a second worker. Workers share nothing, so the gain should equal that of a second core
//! for any work. The latter is measured as well, with threads that only make AEAD calls.

use crate::bare::{Ends, Raw, Shape, segment};
use anyhow::Result;
use serde::Serialize;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Wall-clock duration of each measurement.
const LASTING: Duration = Duration::from_millis(20);

/// Number of rounds for one [`Gain`].
const ROUNDS_PER_GAIN: u32 = 10;

const OCTETS: usize = 1400;

/// Throughput of two threads over that of one.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Gain {
    /// Gain of workers that seal and open packets of two zones.
    pub workers: f64,
    /// Gain of threads that make the AEAD calls alone.
    pub raw: f64,
}

/// Measures the gain several times.
pub(super) fn gains(rounds: u32) -> Result<Vec<Gain>> {
    let workers = || {
        let mut ends = Ends::new(Shape::Two, 1)?.between_devices();
        let datagrams = segment::row(OCTETS, 0);
        Ok(move || ends.pass(&datagrams))
    };
    let raw = || {
        let mut raw = Raw::new(Shape::Two, &[OCTETS])?;
        Ok(move || raw.time().map(|_| ()))
    };
    let gain = |_| {
        Ok(Gain {
            raw: batches(2, &raw)? / batches(1, &raw)?,
            workers: batches(2, &workers)? / batches(1, &workers)?,
        })
    };
    (0..rounds.div_ceil(ROUNDS_PER_GAIN)).map(gain).collect()
}

/// Returns the batches per second that all threads process together. Each thread runs the work that
/// `make` returns.
fn batches<W: FnMut() -> Result<()>>(
    threads: usize,
    make: &(impl Fn() -> Result<W> + Sync),
) -> Result<f64> {
    let begin = &Barrier::new(threads);
    thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(move || {
                    let work = make();
                    begin.wait();
                    again(work?)
                })
            })
            .collect();
        all.into_iter()
            .map(|thread| thread.join().expect("a worker returns its errors"))
            .sum()
    })
}

/// Returns the number of times per second that `work` can run.
fn again(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let (begun, mut done) = (Instant::now(), 0);
    while begun.elapsed() < LASTING {
        work()?;
        done += 1;
    }
    Ok(f64::from(done) / begun.elapsed().as_secs_f64())
}
