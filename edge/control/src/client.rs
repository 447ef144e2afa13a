//! The client side of the API: sends a request and waits for the answer, up to a deadline.

use crate::line::Lines;
use crate::{Request, Response};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Limit on an answer, in octets. The configuration bounds real answers far below; this limit
/// guards against a broken server.
const LONGEST_ANSWER: usize = 16 << 20;

/// Error of a request that got no answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// No daemon listens on the socket.
    #[error("no stratad listens on {}", .0.display())]
    NotRunning(PathBuf),
    /// Permission to open the socket was denied.
    #[error("not allowed to use {}", .0.display())]
    NotAllowed(PathBuf),
    /// The deadline passed.
    #[error("stratad did not answer within {} s", .0.as_secs())]
    TooLate(Duration),
    /// The daemon closed the connection without an answer.
    #[error("stratad closed the connection without an answer")]
    Closed,
    /// The answer does not follow this API.
    #[error("stratad sent an unreadable answer: {0}")]
    Garbled(String),
    /// Any other error of the operating system.
    #[error("cannot communicate with stratad on {}: {source}", path.display())]
    Failed {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl NoAnswer {
    /// Returns the advice for the user.
    pub const fn fix(&self) -> &'static str {
        match self {
            Self::NotRunning(_) => {
                "start it (`systemctl start stratad`, or `stratad --config FILE`), or correct `--socket`"
            }
            Self::NotAllowed(_) => {
                "run as the user of stratad, usually root; members of the `group` in [control] may read"
            }
            Self::TooLate(_) => "check the log of stratad; if it hangs, restart it",
            Self::Closed => "check the log of stratad; it may have been stopped",
            Self::Garbled(_) => "use strata and stratad of the same release",
            Self::Failed { .. } => "set `--socket` to the `socket` of [control]",
        }
    }
}

/// Returns the path of the socket for readers, which is beside that of the daemon.
pub fn for_readers(path: &Path) -> PathBuf {
    path.with_extension("read.sock")
}

/// A connection to the daemon.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    path: PathBuf,
    lines: Lines,
}

impl Client {
    /// Connects to the daemon's socket or, if that is not allowed, to the one for readers.
    pub fn connect(path: &Path) -> Result<Self, NoAnswer> {
        match Self::open(path) {
            Err(refused @ NoAnswer::NotAllowed(_)) => {
                Self::open(&for_readers(path)).map_err(|_| refused)
            }
            connected => connected,
        }
    }

    fn open(path: &Path) -> Result<Self, NoAnswer> {
        let stream = UnixStream::connect(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                NoAnswer::NotRunning(path.to_owned())
            }
            io::ErrorKind::PermissionDenied => NoAnswer::NotAllowed(path.to_owned()),
            _ => NoAnswer::Failed {
                path: path.to_owned(),
                source,
            },
        })?;
        Ok(Self {
            stream,
            path: path.to_owned(),
            lines: Lines::new(LONGEST_ANSWER),
        })
    }

    /// Sends a request and waits for its answer, both within `patience`. After an error the
    /// connection is unusable.
    pub fn ask(&mut self, request: &Request, patience: Duration) -> Result<Response, NoAnswer> {
        let deadline = Instant::now() + patience;
        let mut line = request.to_line();
        line.push('\n');
        let sent = self.send(line.as_bytes(), deadline);
        sent.map_err(|error| self.explain(error, patience))?;
        let mut buffer = [0; 64 << 10];
        loop {
            if let Some(line) = self.lines.pop() {
                return Response::from_line(&line).map_err(|f| NoAnswer::Garbled(f.message));
            }
            let count = self.receive(&mut buffer, deadline);
            let count = count.map_err(|error| self.explain(error, patience))?;
            let fits = self.lines.push(&buffer[..count]);
            fits.map_err(|_| NoAnswer::Garbled("the line does not end".to_owned()))?;
        }
    }

    fn send(&mut self, line: &[u8], deadline: Instant) -> io::Result<()> {
        self.stream.set_write_timeout(Some(left(deadline)?))?;
        self.stream.write_all(line)
    }

    fn receive(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        loop {
            self.stream.set_read_timeout(Some(left(deadline)?))?;
            match self.stream.read(buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                // A read on a socket with a timeout is not restarted after the process was stopped
                // and continued.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    fn explain(&self, source: io::Error, patience: Duration) -> NoAnswer {
        match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => NoAnswer::TooLate(patience),
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset => NoAnswer::Closed,
            _ => NoAnswer::Failed {
                path: self.path.clone(),
                source,
            },
        }
    }
}

/// Returns the time until the deadline, never zero: a socket takes a zero timeout for "forever".
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    Ok(left)
}
