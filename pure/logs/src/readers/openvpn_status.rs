//! OpenVPN: the status file of a server.
//!
//! The file has the clients that are up, with their begins and octets, and is written again and
//! again: a session has no end there. Version 1 has sections under their titles, versions 2
//! (commas) and 3 (tabulators) have the section at the beginning of each line. Nothing is quoted,
//! so that a name may contain commas.

use super::text::{address, name, number};
use crate::{Clock, Kind, Note, Notes, Octets, Reader, Why};
use crypto::UnixTime;

/// First line of version 1.
const TITLE: &str = "OpenVPN CLIENT LIST";
/// Beginnings of the header of versions 2 and 3, which has a word more than the lines of clients.
const HEADERS: [&str; 2] = ["HEADER,CLIENT_LIST", "HEADER\tCLIENT_LIST"];
/// Beginning of the line of a client.
const CLIENT: &str = "CLIENT_LIST";
/// Header of version 1.
const HEADER: &str = "Common Name,";
/// Title of the section that follows the clients in version 1.
const AFTER: &str = "ROUTING TABLE";
/// Name of a client that has not proved one yet.
const UNKNOWN: &str = "UNDEF";

/// Reader of status files.
#[derive(Default)]
pub(super) struct Status {
    columns: Columns,
    /// True between the header of version 1 and the next section.
    is_section: bool,
}

/// Places of the columns, from the header.
#[derive(Default)]
struct Columns {
    separator: char,
    count: usize,
    user: Option<usize>,
    remote: Option<usize>,
    received: Option<usize>,
    sent: Option<usize>,
    since: Option<usize>,
}

pub(super) fn is_status(line: &str) -> bool {
    line == TITLE || HEADERS.iter().any(|header| line.starts_with(header))
}

impl Reader for Status {
    fn line(&mut self, line: &str, clock: &mut Clock, to: &mut dyn Notes) -> Result<(), Why> {
        let after = |first: &str| {
            let rest = line.strip_prefix(first)?;
            rest.strip_prefix([',', '\t'])
        };
        if let Some(header) = HEADERS.into_iter().find_map(after) {
            self.columns = Columns::read(header);
        } else if line == AFTER {
            self.is_section = false;
        } else if self.is_section {
            return self.columns.client(line, clock, to);
        } else if line.starts_with(HEADER) {
            self.columns = Columns::read(line);
            self.is_section = true;
        } else if let Some(client) = after(CLIENT) {
            return self.columns.client(client, clock, to);
        }
        Ok(())
    }

    /// Each file has a header of its own.
    fn end_of_file(&mut self, _: &mut Clock, _: &mut dyn Notes) -> Result<(), Why> {
        *self = Self::default();
        Ok(())
    }
}

impl Columns {
    fn read(header: &str) -> Self {
        let separator = if header.contains('\t') { '\t' } else { ',' };
        let mut columns = Self {
            separator,
            ..Self::default()
        };
        // In versions 2 and 3, a time in seconds follows the same one as text.
        for (place, column) in header.split(separator).enumerate() {
            columns.count = place + 1;
            match column {
                "Common Name" => columns.user = Some(place),
                "Real Address" => columns.remote = Some(place),
                "Bytes Received" => columns.received = Some(place),
                "Bytes Sent" => columns.sent = Some(place),
                "Connected Since" | "Connected Since (time_t)" => columns.since = Some(place),
                _ => {}
            }
        }
        columns
    }

    fn client(&self, line: &str, clock: &Clock, to: &mut dyn Notes) -> Result<(), Why> {
        let fields: Vec<_> = line.split(self.separator).collect();
        // More fields than columns are those of the name.
        let more = fields.len().checked_sub(self.count).ok_or(Why::Missing)?;
        let read = |more| Some((more, self.rest(&fields, more, clock).ok()?));
        let Some((more, rest)) = (0..=more).find_map(read) else {
            return self.rest(&fields, 0, clock).map(drop);
        };
        let from = self.user.ok_or(Why::Missing)?;
        let user = fields[from..=from + more].join(",");
        if user == UNKNOWN {
            return Ok(());
        }
        to.note(Note {
            user: name(&user)?,
            address: address(rest.remote),
            octets: Some(rest.octets),
            ..Note::new(Kind::Begun, rest.since, rest.remote)
        });
        Ok(())
    }

    /// Reads the fields behind a name that has so many separators.
    fn rest<'a>(&self, fields: &[&'a str], more: usize, clock: &Clock) -> Result<Rest<'a>, Why> {
        let field = |place: Option<usize>| {
            let place = place.ok_or(Why::Missing)? + more;
            fields.get(place).copied().ok_or(Why::Missing)
        };
        let remote = name(field(self.remote)?)?;
        address(remote).ok_or(Why::Missing)?;
        Ok(Rest {
            remote,
            octets: Octets {
                received: number(field(self.received)?)?,
                sent: number(field(self.sent)?)?,
            },
            since: clock.read(field(self.since)?).ok_or(Why::Time)?,
        })
    }
}

/// The fields of a client behind its name.
struct Rest<'a> {
    remote: &'a str,
    octets: Octets,
    since: UnixTime,
}
