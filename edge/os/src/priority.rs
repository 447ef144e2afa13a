//! Real-time priority, and a processor of its own, for a thread with exact timing.

use crate::Error;
use nix::errno::Errno;
use nix::libc;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::thread;

/// Real-time priority above every ordinary thread and below all other real-time ones.
const LEVEL: libc::c_int = 1;

/// Schedules the calling thread before all ordinary ones (SCHED_FIFO). Threads and programs that it
/// starts later are ordinary again. The thread must sleep by itself: no ordinary thread runs on its
/// processor until then.
pub fn make_real_time() -> Result<(), Error> {
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    let level = LEVEL;
    #[allow(
        unsafe_code,
        reason = "no crate has this call, and that of musl always fails"
    )]
    // SAFETY: 0 is the calling thread, and the pointer is to the one number of `sched_param`.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const level) };
    Errno::result(result)
        .map(drop)
        .map_err(Error::os("setting real-time priority"))
}

/// Returns the number of processors that the calling thread may run on; 1 if unknown.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Pins the calling thread to one of the processors that it may run on, counted from 0.
pub fn stay_on(number: usize) -> Result<(), Error> {
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this).map_err(Error::os("reading the processor affinity"))?;
    let is_allowed = |&core: &usize| allowed.is_set(core).unwrap_or(false);
    let mut chosen = CpuSet::new();
    (0..CpuSet::count())
        .filter(is_allowed)
        .nth(number)
        .ok_or(Errno::EINVAL)
        .and_then(|core| chosen.set(core))
        .and_then(|()| sched_setaffinity(this, &chosen))
        .map_err(Error::os("setting the processor affinity"))
}

#[cfg(test)]
#[allow(unsafe_code, reason = "no crate at hand has this call")]
mod tests {
    use super::*;

    #[test]
    fn real_time_priority_is_taken_or_refused_for_lack_of_rights() {
        // SAFETY: the call queries the calling thread and changes nothing.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        match make_real_time() {
            Ok(()) => assert_eq!(policy(), libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK),
            Err(Error::NoRight { .. }) => assert_eq!(policy(), libc::SCHED_OTHER),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_thread_stays_on_a_processor_that_there_is() {
        stay_on(0).unwrap();
        let cores = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let count = (0..CpuSet::count()).filter(|&core| cores.is_set(core).unwrap());
        assert_eq!(count.count(), 1);
        assert!(stay_on(1).is_err());
    }
}
