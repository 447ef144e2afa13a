//! Real-time priority, and a processor of its own, for a thread that must act at a moment, not soon
//! after it.

use crate::Error;
use nix::errno::Errno;
use nix::libc;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::thread;

/// Above every ordinary thread, below everything else that is real-time.
const LEVEL: libc::c_int = 1;

/// Puts the calling thread ahead of all ordinary ones (SCHED_FIFO). Threads and programs it starts
/// later are ordinary again. It has to sleep by itself: nothing ordinary runs while it does not.
pub fn make_real_time() -> Result<(), Error> {
    let level = libc::sched_param {
        sched_priority: LEVEL,
    };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    #[allow(unsafe_code, reason = "no crate at hand has this call")]
    // SAFETY: 0 is the calling thread, and the pointer is to a live `sched_param`.
    let result = unsafe { libc::sched_setscheduler(0, policy, &raw const level) };
    Errno::result(result)
        .map(drop)
        .map_err(Error::os("asking for real-time priority"))
}

/// How many processors the calling thread may run on; one if the system does not say.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Keeps the calling thread on one of the processors it may run on: the first is 0.
pub fn stay_on(number: usize) -> Result<(), Error> {
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this).map_err(Error::os("asking for the processors"))?;
    let is_allowed = |&core: &usize| allowed.is_set(core).unwrap_or(false);
    let mut chosen = CpuSet::new();
    (0..CpuSet::count())
        .filter(is_allowed)
        .nth(number)
        .ok_or(Errno::EINVAL)
        .and_then(|core| chosen.set(core))
        .and_then(|()| sched_setaffinity(this, &chosen))
        .map_err(Error::os("staying on a processor"))
}

#[cfg(test)]
#[allow(unsafe_code, reason = "no crate at hand has this call")]
mod tests {
    use super::*;

    #[test]
    fn real_time_priority_is_taken_or_refused_for_lack_of_rights() {
        // SAFETY: it asks about the calling thread and changes nothing.
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
