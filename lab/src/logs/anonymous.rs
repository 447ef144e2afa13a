//! Sessions without names and addresses, for logs that leave the house.

use crate::obstacle::Obstacle;
use crypto::{Prf, UnixTime};
use logs::{Session, Span};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A table of sessions. A user has the same random name in all rows: an HMAC of the real one, with
/// a key that is drawn for this file and forgotten.
pub(super) struct Anonymous {
    file: BufWriter<File>,
    path: PathBuf,
    key: [u8; 32],
    written: io::Result<()>,
}

impl Anonymous {
    pub fn create(path: &Path) -> Result<Self, Obstacle> {
        // It could be one of the logs.
        let file = File::create_new(path).map_err(|error| refused(path, &error))?;
        let mut table = Self {
            file: BufWriter::new(file),
            path: path.to_owned(),
            key: os::entropy::seed(),
            written: Ok(()),
        };
        table.line(format_args!("user,gateway,begin,end,received,sent"));
        Ok(table)
    }

    /// Writes a session. An error is returned in the end.
    pub fn write(&mut self, session: &Session) {
        let user = self.name("user", &session.user);
        let gateway = match session.gateway.is_empty() {
            true => String::new(),
            false => self.name("gateway", &session.gateway),
        };
        let (begin, end) = match session.span {
            Span::Whole { begin, end } => (Some(begin), Some(end)),
            Span::NotEnded { begin } => (Some(begin), None),
            Span::BeganBefore { end } => (None, Some(end)),
        };
        let [begin, end] = [begin, end].map(|time| time.map_or(String::new(), UnixTime::rfc3339));
        let octets = session.octets;
        let octets = octets.map(|octets| [octets.received, octets.sent].map(|o| o.to_string()));
        let [received, sent] = octets.unwrap_or_default();
        self.line(format_args!(
            "{user},{gateway},{begin},{end},{received},{sent}"
        ));
    }

    pub fn finish(mut self) -> Result<(), Obstacle> {
        let written = self.written.and_then(|()| self.file.flush());
        written.map_err(|error| refused(&self.path, &error))
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        if self.written.is_ok() {
            self.written = writeln!(self.file, "{line}");
        }
    }

    fn name(&self, kind: &str, name: &str) -> String {
        let mac = Prf::HmacSha256.mac(&self.key, &[kind.as_bytes(), name.as_bytes()]);
        let octets = mac.expose().iter().take(8);
        let digits = octets.map(|octet| format!("{octet:02x}"));
        format!("{kind}-{}", digits.collect::<String>())
    }
}

fn refused(path: &Path, error: &io::Error) -> Obstacle {
    let message = format!("cannot write {}: {error}", path.display());
    Obstacle::new(
        message,
        "name a file that does not exist and can be written",
    )
}
