//! `[sessions]`: how long peers may resume their sessions.

use std::path::PathBuf;
use std::time::Duration;

/// Limits of the sessions that peers may resume. All of them count from the last full exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sessions {
    /// `clocked`: longest time since, 60 s to 30 days. Default 8 h.
    pub clocked: Duration,
    /// `established`: longest time for which tunnels were up since, 60 s to 30 days. Default no
    /// limit.
    pub established: Option<Duration>,
    /// `data`: most octets of packets that tunnels carried since, 1 MiB to 1 TiB. Default no limit.
    pub data: Option<u64>,
    /// `tickets_by_value`: tickets have the session in them, encrypted, instead of its name in our
    /// store. Default false.
    pub tickets_by_value: bool,
    /// `file`: the file that keeps sessions if the daemon is killed. Default none: they end with
    /// it.
    pub file: Option<PathBuf>,
    /// `crash_tokens`: peers are given tokens that prove, after this daemon was killed and started
    /// again, that their tunnels are lost. Default true.
    pub crash_tokens: bool,
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            clocked: Duration::from_secs(8 * 3600),
            established: None,
            data: None,
            tickets_by_value: false,
            file: None,
            crash_tokens: true,
        }
    }
}
