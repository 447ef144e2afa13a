//! OpenVPN: the log of a server, and its status file.
//!
//! The log names a client by the address and port of its connection. The status file has the
//! clients that are up, with their begins and octets, and is written again and again: a session has
//! no end there.

use super::text::{Prefix, address, name, number, prefix, time};
use crate::{Clock, Kind, Note, Notes, Octets, Reader, Why};

const BEGUN: &str = "] Peer Connection Initiated with ";

/// Reader of the log.
pub(super) struct Log;

pub(super) fn is_line(line: &str) -> bool {
    line.contains(BEGUN) || is_end(line)
}

fn is_end(line: &str) -> bool {
    line.contains(" received, client-instance ")
}

impl Reader for Log {
    fn line(&mut self, line: &str, clock: &mut Clock, to: &mut dyn Notes) -> Result<(), Why> {
        if line.contains(BEGUN) {
            return begun(line, clock, to);
        }
        if is_end(line) {
            return ended(line, clock, to);
        }
        if line.ends_with("Initialization Sequence Completed") {
            let Prefix { at, .. } = prefix(line, line.len(), clock)?;
            to.note(Note::new(Kind::Restarted, at, ""));
        }
        Ok(())
    }
}

/// Reads `TIME 198.51.100.44:51514 [alice] Peer Connection Initiated with …`.
fn begun(line: &str, clock: &mut Clock, to: &mut dyn Notes) -> Result<(), Why> {
    let (before, _) = line.split_once(BEGUN).ok_or(Why::Missing)?;
    let (before, user) = before.rsplit_once(" [").ok_or(Why::Missing)?;
    let remote = before.rsplit(' ').next().ok_or(Why::Missing)?;
    let Prefix { at, .. } = prefix(line, line.len(), clock)?;
    to.note(Note {
        user: name(user)?,
        address: address(remote),
        ..Note::new(Kind::Begun, at, name(remote)?)
    });
    Ok(())
}

/// Reads `TIME alice/198.51.100.44:51514 SIGTERM[soft,remote-exit] received, client-instance …`.
/// A client that has not proved its name has none before its address.
fn ended(line: &str, clock: &mut Clock, to: &mut dyn Notes) -> Result<(), Why> {
    let (before, _) = line.split_once(" SIG").ok_or(Why::Missing)?;
    let Prefix { at, .. } = prefix(line, line.len(), clock)?;
    let (kind, user, remote) = match before.rsplit_once('/') {
        Some((user, remote)) => (Kind::Ended, user.rsplit(' ').next(), remote),
        None => (Kind::Lost, None, before.rsplit(' ').next().unwrap_or("")),
    };
    to.note(Note {
        user: name(user.unwrap_or_default())?,
        address: address(remote),
        ..Note::new(kind, at, name(remote)?)
    });
    Ok(())
}

/// Reader of status files of version 2 (commas) and 3 (tabulators).
#[derive(Default)]
pub(super) struct Status {
    columns: Columns,
}

/// Places of the columns, from the header.
#[derive(Default)]
struct Columns {
    user: Option<usize>,
    remote: Option<usize>,
    received: Option<usize>,
    sent: Option<usize>,
    since: Option<usize>,
}

pub(super) fn is_status(line: &str) -> bool {
    line.starts_with("HEADER,CLIENT_LIST,") || line.starts_with("HEADER\tCLIENT_LIST\t")
}

impl Reader for Status {
    fn line(&mut self, line: &str, _: &mut Clock, to: &mut dyn Notes) -> Result<(), Why> {
        if is_status(line) {
            self.columns = Columns::read(line);
        } else if line.starts_with("CLIENT_LIST") {
            to.note(self.columns.client(line)?);
        }
        Ok(())
    }
}

impl Columns {
    fn read(line: &str) -> Self {
        let mut columns = Self::default();
        // The header has a word more than the lines.
        for (place, column) in line.split([',', '\t']).skip(1).enumerate() {
            match column {
                "Common Name" => columns.user = Some(place),
                "Real Address" => columns.remote = Some(place),
                "Bytes Received" => columns.received = Some(place),
                "Bytes Sent" => columns.sent = Some(place),
                "Connected Since (time_t)" => columns.since = Some(place),
                _ => {}
            }
        }
        columns
    }

    fn client<'a>(&self, line: &'a str) -> Result<Note<'a>, Why> {
        let field = |place: Option<usize>| {
            let place = place.ok_or(Why::Missing)?;
            line.split([',', '\t']).nth(place).ok_or(Why::Missing)
        };
        let remote = name(field(self.remote)?)?;
        let since = time(field(self.since)?)?;
        Ok(Note {
            user: name(field(self.user)?)?,
            address: address(remote),
            octets: Some(Octets {
                received: number(field(self.received)?)?,
                sent: number(field(self.sent)?)?,
            }),
            ..Note::new(Kind::Begun, since, remote)
        })
    }
}
