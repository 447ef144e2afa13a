//! One TCP connection that always has data to send, with the arrival times of its octets.

use super::watch::now;
use crate::host::Host;
use crate::pair::MOBILE;
use crate::transfer::connect;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Receive buffer of the reader, in octets. It limits the octets under way, so that no queue on the
/// path is ever full and only moves lose packets.
const WINDOW: usize = 32 << 10;

/// Time before a change that a curve shows, and the distance of its points.
const BEFORE: Duration = Duration::from_millis(100);
const STEP: Duration = Duration::from_millis(5);

/// Arrivals: the time since the epoch, and the octets so far.
type Arrivals = Arc<Mutex<Vec<(Duration, u64)>>>;

/// A running download; it ends when dropped.
pub(super) struct Download {
    ends: [TcpStream; 2],
    arrivals: Arrivals,
    threads: Vec<JoinHandle<()>>,
}

/// A download around a change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::figures) struct Curve {
    /// Longest time without an octet that ended after the change, in microseconds.
    pub gap: Option<f64>,
    /// Octets that arrived from 100 ms before the change on, at distances of 5 ms.
    pub octets: Vec<u64>,
}

impl Curve {
    /// Time after the change that a curve shows.
    pub const AFTER: Duration = Duration::from_millis(300);

    /// Returns the points, as milliseconds since the change and octets.
    pub fn points(&self) -> impl Iterator<Item = (f64, u64)> {
        let first = -(BEFORE.as_secs_f64() * 1e3);
        let step = STEP.as_secs_f64() * 1e3;
        let octets = self.octets.iter().enumerate();
        octets.map(move |(place, octets)| (first + step * place as f64, *octets))
    }
}

impl Download {
    /// Starts a download from one host to the other.
    pub fn start(from: &Host, to: &Host) -> Result<Self> {
        let (out, inward) = connect(from, to, MOBILE[0])?;
        SockRef::from(&inward).set_recv_buffer_size(WINDOW)?;
        // A move may take as long as it does.
        out.set_write_timeout(None)?;
        inward.set_read_timeout(None)?;
        let ends = [out.try_clone()?, inward.try_clone()?];
        let arrivals = Arrivals::default();
        let noted = Arc::clone(&arrivals);
        Ok(Self {
            ends,
            arrivals,
            threads: vec![
                thread::spawn(move || send(out)),
                thread::spawn(move || receive(inward, &noted)),
            ],
        })
    }

    /// Returns the download around a change at this time.
    pub fn curve(&self, change: Duration) -> Curve {
        let arrivals = self.arrivals.lock();
        curve(&arrivals.unwrap_or_else(PoisonError::into_inner), change)
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        for end in &self.ends {
            // It fails if the connection is gone, and then no thread waits for it.
            let _ = end.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            // The thread's panic has already been printed.
            let _ = thread.join();
        }
    }
}

fn send(mut out: TcpStream) {
    while out.write_all(&[0; WINDOW]).is_ok() {}
}

fn receive(mut inward: TcpStream, arrivals: &Mutex<Vec<(Duration, u64)>>) {
    let mut chunk = [0; WINDOW];
    let mut all = 0;
    while let Ok(count @ 1..) = inward.read(&mut chunk) {
        all += count as u64;
        let mut arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        arrivals.push((now(), all));
    }
}

fn curve(arrivals: &[(Duration, u64)], change: Duration) -> Curve {
    let pairs = arrivals.windows(2).filter(|pair| pair[1].0 > change);
    let gaps = pairs.map(|pair| pair[1].0.saturating_sub(pair[0].0));
    let by = |time: Duration| {
        let after = arrivals.partition_point(|(at, _)| *at <= time);
        after.checked_sub(1).map_or(0, |last| arrivals[last].1)
    };
    let first = change.saturating_sub(BEFORE);
    let steps = (BEFORE + Curve::AFTER).as_millis() / STEP.as_millis();
    let times = (0..=steps as u32).map(|step| first + STEP * step);
    Curve {
        gap: gaps.max().map(|gap| gap.as_secs_f64() * 1e6),
        octets: times.map(|time| by(time) - by(first)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_begins_before_the_change_and_shows_the_gap() {
        let change = Duration::from_secs(10);
        let at = |ms: i64| Duration::from_millis((10_000 + ms) as u64);
        let arrivals = [(at(-200), 5), (at(-50), 15), (at(40), 35), (at(42), 45)];
        let curve = curve(&arrivals, change);
        assert_eq!(curve.gap, Some(90_000.0));
        let points: Vec<_> = curve.points().collect();
        assert_eq!(points.len(), 81);
        assert_eq!(points[0], (-100.0, 0));
        assert_eq!(points[10], (-50.0, 10));
        assert_eq!(points[28], (40.0, 30));
        assert_eq!(points[80], (300.0, 40));
    }

    #[test]
    fn a_download_without_octets_has_no_gap() {
        let curve = curve(&[], Duration::from_secs(10));
        assert_eq!((curve.gap, curve.octets[80]), (None, 0));
    }
}
