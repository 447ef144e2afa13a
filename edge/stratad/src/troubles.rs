//! Tasks of the daemon that fail and have not succeeded since.
//!
//! A line of the log passes. `strata status` and `strata doctor` show a failure for as long as it
//! lasts.

use control::Trouble;
use model::Instant;
use std::collections::BTreeMap;
use std::fmt::Display;

/// A task that the daemon goes on without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// Setting the name servers of `dns`.
    NameServers,
    /// Storing address leases.
    Leases,
    /// Storing the sessions that peers may resume.
    Sessions,
    /// Writing the audit log.
    Audit,
    /// Writing keys for Wireshark.
    Keys,
    /// Removing the addresses of leases that have ended.
    Addresses,
    /// Restoring routes and rules that another program removed.
    Restore,
    /// Setting the routes into tunnels.
    Routes,
    /// Looking up the paths on which tunnels can move.
    Paths,
    /// Keeping the addresses of peers whose address is a name.
    Names,
    /// Letting answers of name servers pass.
    Resolvers,
}

impl Task {
    /// Returns the name of the task, which is stable across versions.
    const fn name(self) -> &'static str {
        match self {
            Self::NameServers => "dns",
            Self::Leases => "store",
            Self::Sessions => "sessions",
            Self::Audit => "audit",
            Self::Keys => "keylog",
            Self::Addresses => "addresses",
            Self::Restore => "restore",
            Self::Routes => "routes",
            Self::Paths => "paths",
            Self::Names => "names",
            Self::Resolvers => "resolvers",
        }
    }

    /// Returns what cannot be done, and the consequence.
    const fn failure(self) -> &'static str {
        match self {
            Self::NameServers => {
                "cannot set the name servers of `dns`, so names behind the tunnel are not resolved"
            }
            Self::Leases => "cannot store address leases, a restart loses them",
            Self::Sessions => "cannot store sessions, so peers cannot resume them",
            Self::Audit => "cannot write the audit log",
            Self::Keys => "cannot write keys for Wireshark",
            Self::Addresses => "cannot remove addresses whose lease has ended",
            Self::Restore => "cannot restore routes or rules that another program removed",
            Self::Routes => "cannot update the routes into tunnels",
            Self::Paths => "cannot look up paths, so tunnels do not move",
            Self::Names => {
                "cannot store the address of a peer, so it is not found without name servers"
            }
            Self::Resolvers => {
                "cannot let answers of name servers pass, so names of peers are not found"
            }
        }
    }

    const fn fix(self) -> &'static str {
        match self {
            Self::NameServers => {
                "name a file that stratad can replace in `resolver` of [tunnel], or remove `dns`"
            }
            Self::Leases => {
                "make room for `file` in [store], in a folder that stratad may write to"
            }
            Self::Sessions => {
                "make room for `file` in [sessions], in a folder that stratad may write to"
            }
            Self::Audit => "make room for `file` in [audit], then `strata reload`",
            Self::Keys => "make room in that folder, or run `strata keylog off`",
            Self::Addresses => "remove the addresses with `ip address del`, or restart stratad",
            Self::Names => "make room for `file` in [store], in a folder that stratad may write to",
            Self::Restore | Self::Routes | Self::Resolvers => {
                "correct the cause, then `strata reload`"
            }
            Self::Paths => "restart stratad if this lasts",
        }
    }
}

/// The tasks that fail now.
#[derive(Debug, Default)]
pub struct Troubles(BTreeMap<Task, Failure>);

#[derive(Debug)]
struct Failure {
    since: Instant,
    why: String,
}

impl Troubles {
    /// Records the result of a task. Logs a failure that begins or changes, and its end.
    pub fn note(&mut self, task: Task, result: Result<(), impl Display>, now: Instant) {
        let why = match result {
            Ok(()) => return self.succeeded(task),
            Err(why) => why.to_string(),
        };
        let failure = self.0.get(&task);
        if failure.is_some_and(|failure| failure.why == why) {
            return;
        }
        tracing::error!("{}: {why}; {}", task.failure(), task.fix());
        let since = failure.map_or(now, |failure| failure.since);
        self.0.insert(task, Failure { since, why });
    }

    /// Records that a task has succeeded, and logs the end of its failure.
    pub fn succeeded(&mut self, task: Task) {
        if self.0.remove(&task).is_some() {
            tracing::info!("no longer true: {}", task.failure());
        }
    }

    /// Forgets a task that the configuration no longer asks for.
    pub fn forget(&mut self, task: Task) {
        self.0.remove(&task);
    }

    /// Returns all failures.
    pub fn list(&self, now: Instant) -> Vec<Trouble> {
        let trouble = |(task, failure): (&Task, &Failure)| Trouble {
            task: task.name().to_owned(),
            remote: None,
            what: format!("{}: {}", task.failure(), failure.why),
            fix: task.fix().to_owned(),
            seconds: Some(now.since(failure.since).as_secs()),
        };
        self.0.iter().map(trouble).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::tests::lines_of;
    use std::time::Duration;

    const FULL: Result<(), &str> = Err("no space left");

    fn at(seconds: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(seconds))
    }

    // Recovers: failures
    // Weakness: 155
    #[test]
    fn a_failure_is_shown_until_the_task_succeeds() {
        let mut troubles = Troubles::default();
        troubles.note(Task::Leases, FULL, at(1));
        troubles.note(Task::NameServers, Err("it is a mount"), at(2));
        troubles.note(Task::Leases, FULL, at(5));
        let shown = troubles.list(at(9));
        let tasks: Vec<_> = shown
            .iter()
            .map(|one| (&one.task[..], one.seconds))
            .collect();
        assert_eq!(tasks, [("dns", Some(7)), ("store", Some(8))]);
        assert!(
            shown[0].what.ends_with(": it is a mount"),
            "{}",
            shown[0].what
        );
        troubles.succeeded(Task::Leases);
        assert_eq!(troubles.list(at(10)).len(), 1);
    }

    #[test]
    fn a_failure_that_lasts_has_one_line_and_its_end_another() {
        let lines = lines_of(|| {
            let mut troubles = Troubles::default();
            for second in 0..100 {
                troubles.note(Task::Audit, FULL, at(second));
            }
            for second in 100..200 {
                troubles.note(Task::Audit, Ok::<(), &str>(()), at(second));
            }
        });
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("ERROR cannot write the audit log: no space left; make room"));
        assert!(lines[1].contains("INFO no longer true: cannot write the audit log"));
    }
}
