//! Cores: the responder on one and everything else on another, if there are at least two.

use anyhow::{Context, Result};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use std::fs;
use std::time::Duration;

/// The calling thread, in the kernel's notation.
const THIS: Pid = Pid::from_raw(0);

/// Pins this thread to its own core, until dropped. Threads that it starts inherit the core.
pub(crate) struct OwnCore {
    before: Option<CpuSet>,
}

impl OwnCore {
    /// Moves all threads of processes to the first core, and this thread to the last. With a single
    /// core, all stay.
    pub fn apart_from(processes: &[u32]) -> Result<Self> {
        let allowed = sched_getaffinity(THIS)?;
        let cores = (0..CpuSet::count()).filter(|core| allowed.is_set(*core) == Ok(true));
        let [first, .., last] = cores.collect::<Vec<_>>()[..] else {
            return Ok(Self { before: None });
        };
        for process in processes {
            for thread in threads(*process)? {
                sched_setaffinity(thread, &only(first)?)?;
            }
        }
        sched_setaffinity(THIS, &only(last)?)?;
        let before = Some(allowed);
        Ok(Self { before })
    }

    /// Returns true if the process and this thread have different cores.
    pub const fn is_apart(&self) -> bool {
        self.before.is_some()
    }
}

impl Drop for OwnCore {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // The mask was allowed a moment ago. If it no longer is, this thread stays on its core.
            let _ = sched_setaffinity(THIS, before);
        }
    }
}

fn only(core: usize) -> Result<CpuSet> {
    let mut set = CpuSet::new();
    set.set(core)?;
    Ok(set)
}

/// Returns the current threads of a process.
pub(super) fn threads(process: u32) -> Result<Vec<Pid>> {
    let folder = format!("/proc/{process}/task");
    let mut threads = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("reading {folder}"))? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        threads.extend(number.map(Pid::from_raw));
    }
    Ok(threads)
}

/// Returns the processor time of a process's threads so far.
pub(crate) fn spent_by(process: u32) -> Result<Duration> {
    let mut spent = Duration::ZERO;
    for thread in threads(process)? {
        // "time spent on the cpu (in nanoseconds)" comes first
        // (Documentation/scheduler/sched-stats.rst).
        let file = format!("/proc/{process}/task/{thread}/schedstat");
        let text = fs::read_to_string(&file).with_context(|| format!("reading {file}"))?;
        let nanos = text.split_whitespace().next().unwrap_or_default();
        spent += Duration::from_nanos(nanos.parse().with_context(|| format!("{file}: {text}"))?);
    }
    Ok(spent)
}

/// Returns the processor time of this thread so far.
pub(crate) fn spent_here() -> Result<Duration> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(Duration::from(time))
}
