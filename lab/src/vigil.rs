//! Keeps the processors of a virtual machine awake while something is timed.
//!
//! A hypervisor puts an idle virtual processor to sleep and assigns the real one to another guest.
//! The guest, whose timer fires, then waits until it gets a processor back, often for 5 to 20
//! milliseconds. So one process per processor spins and yields to everything else. With twenty
//! networks at once on two virtual processors, this reduced the packets that were more than 5 ms
//! late from five in 1000 to one in 2000.
//!
//! The spinner must be a process in a session of its own. If the kernel shares out time among
//! sessions (sched(7), autogroup), an idle thread counts as much as its session, and the kernel's
//! own threads waited behind it: taking a device down took 20 s instead of 0.04 s.

use os::{NetNs, priority};
use std::process::{Child, Stdio};

/// The loop repeats because the kernel accepts a new weight only every tenth of a second, counted
/// over all processes.
const SPIN: &str = "until echo 19 > /proc/self/autogroup || ! test -e /proc/self/autogroup
                    do :; done 2> /dev/null
                    while :; do :; done";

/// One process for each processor. They end when the vigil is dropped, or with the thread that
/// started it.
pub struct Vigil(Vec<Child>);

impl Vigil {
    /// Starts the spinners if util-linux is installed. They are an improvement, and no caller
    /// depends on them.
    pub fn start() -> Self {
        Self((0..priority::processors()).filter_map(spinner).collect())
    }
}

fn spinner(core: usize) -> Option<Child> {
    let mut command = NetNs::current().ok()?.command("chrt");
    command.args(["--idle", "0", "setsid", "taskset", "--cpu-list"]);
    command.args([&core.to_string(), "sh", "-c", SPIN]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::null()).spawn().ok()
}

impl Drop for Vigil {
    fn drop(&mut self) {
        for spinner in &mut self.0 {
            // Fails only for a process that has already ended.
            let _ = spinner.kill();
            let _ = spinner.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::until;
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    /// Returns the policy (SCHED_IDLE is 5) and the session of a process, from `stat` (proc(5)).
    fn policy_and_session(pid: u32) -> Option<(u32, u32)> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        let fields: Vec<_> = fields.split(' ').collect();
        Some((fields[38].parse().ok()?, fields[3].parse().ok()?))
    }

    #[test]
    fn who_keeps_vigil_is_idle_in_a_session_of_its_own_and_gone_afterwards() {
        let vigil = Vigil::start();
        let pids: Vec<_> = vigil.0.iter().map(Child::id).collect();
        assert!(!pids.is_empty());
        for &pid in &pids {
            until("an idle spinner", Duration::from_secs(30), || {
                Ok((policy_and_session(pid) == Some((5, pid))).then_some(()))
            })
            .unwrap();
        }
        drop(vigil);
        let is_there = |pid: &u32| Path::new(&format!("/proc/{pid}")).exists();
        assert!(!pids.iter().any(is_there));
    }
}
