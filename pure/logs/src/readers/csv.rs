//! Tables with a header: a row is a session.

use super::text::{address, name};
use crate::{Clock, Notes, Octets, Reader, Session, Span, Why};
use crypto::UnixTime;
use std::borrow::Cow;
use std::sync::Arc;

/// Meaning of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    /// Name of the user.
    User,
    /// Name of the gateway.
    Gateway,
    /// Address of the client.
    Address,
    /// Time of the begin.
    Begin,
    /// Time of the end.
    End,
    /// Duration in seconds.
    Duration,
    /// Octets that the gateway received.
    Received,
    /// Octets that the gateway sent.
    Sent,
}

/// Columns of FreeRADIUS's `radacct`, and names that need no map.
const USUAL: [(&str, Column); 20] = [
    ("user", Column::User),
    ("username", Column::User),
    ("gateway", Column::Gateway),
    ("nasipaddress", Column::Gateway),
    ("address", Column::Address),
    ("callingstationid", Column::Address),
    ("begin", Column::Begin),
    ("start", Column::Begin),
    ("acctstarttime", Column::Begin),
    ("end", Column::End),
    ("stop", Column::End),
    ("acctstoptime", Column::End),
    ("duration", Column::Duration),
    ("acctsessiontime", Column::Duration),
    ("received", Column::Received),
    ("in", Column::Received),
    ("acctinputoctets", Column::Received),
    ("sent", Column::Sent),
    ("out", Column::Sent),
    ("acctoutputoctets", Column::Sent),
];

/// A column that only tables of FreeRADIUS have.
const OF_RADIUS: &str = "acctuniqueid";

/// Names of columns in addition to the usual ones.
#[derive(Clone, Debug, Default)]
pub struct Columns(Vec<(String, Column)>);

impl Columns {
    /// Gives a column of this name, whatever its case, a meaning.
    pub fn with(mut self, name: &str, column: Column) -> Self {
        self.0.push((name.to_ascii_lowercase(), column));
        self
    }

    /// Creates a reader of tables with these columns.
    pub fn reader(self) -> Box<dyn Reader> {
        Box::new(Csv {
            columns: self,
            ..Csv::default()
        })
    }

    fn meaning(&self, name: &str) -> Option<Column> {
        let name = name.trim().to_ascii_lowercase();
        let own = self.0.iter().find(|(other, _)| *other == name);
        let usual = USUAL.iter().find(|(other, _)| *other == name);
        own.map(|(_, column)| *column)
            .or(usual.map(|(_, column)| *column))
    }
}

/// Reader of tables.
#[derive(Default)]
pub(super) struct Csv {
    columns: Columns,
    layout: Option<Layout>,
    /// The gateway of the last row, as most rows share it.
    gateway: Arc<str>,
}

/// The layout that the header of a file says.
struct Layout {
    separator: u8,
    columns: Vec<Option<Column>>,
    /// True if FreeRADIUS wrote the names, and escaped them for SQL.
    is_escaped: bool,
}

/// The fields of a row that have a meaning.
#[derive(Default)]
struct Row<'a> {
    fields: [Cow<'a, str>; 8],
}

impl Row<'_> {
    /// Returns a field that is there and says something.
    fn get(&self, column: Column) -> Option<&str> {
        let field = self.fields[column as usize].trim();
        let is_empty = ["", "NULL", "\\N", "0000-00-00 00:00:00"].contains(&field);
        (!is_empty).then_some(field)
    }

    fn number(&self, column: Column) -> Result<Option<u64>, Why> {
        let number = self.get(column).map(str::parse);
        number.transpose().map_err(|_| Why::Number)
    }

    fn time(&self, column: Column, clock: &Clock) -> Result<Option<UnixTime>, Why> {
        let Some(field) = self.get(column) else {
            return Ok(None);
        };
        clock.read(field).map(Some).ok_or(Why::Time)
    }

    /// Returns begin and end. `has_end` says whether the table has a column for the end.
    fn span(&self, has_end: bool, clock: &Clock) -> Result<Span, Why> {
        let (begin, end) = (
            self.time(Column::Begin, clock)?,
            self.time(Column::End, clock)?,
        );
        let lasted = self.number(Column::Duration)?;
        match (begin, end, lasted) {
            (Some(begin), Some(end), _) if end < begin => Err(Why::Backwards),
            (Some(begin), Some(end), _) => Ok(Span::Whole { begin, end }),
            // Accounting counts the time of a session that is up.
            (Some(begin), None, Some(_)) if has_end => Ok(Span::NotEnded { begin }),
            (Some(begin), None, Some(lasted)) => {
                let end = UnixTime(begin.0.saturating_add(lasted));
                Ok(Span::Whole { begin, end })
            }
            (None, Some(end), Some(lasted)) => {
                let begin = UnixTime(end.0.saturating_sub(lasted));
                Ok(Span::Whole { begin, end })
            }
            (Some(begin), None, None) => Ok(Span::NotEnded { begin }),
            (None, Some(end), None) => Ok(Span::BeganBefore { end }),
            (None, None, _) => Err(Why::Missing),
        }
    }

    fn octets(&self) -> Result<Option<Octets>, Why> {
        let received = self.number(Column::Received)?;
        let sent = self.number(Column::Sent)?;
        Ok((received.is_some() || sent.is_some()).then(|| Octets {
            received: received.unwrap_or_default(),
            sent: sent.unwrap_or_default(),
        }))
    }
}

impl Layout {
    /// Reads a header. Returns `None` if it lacks the user, or both times.
    fn read(line: &str, columns: &Columns) -> Option<Self> {
        let line = line.trim_start_matches('\u{feff}');
        let separator = [b'\t', b';'].into_iter();
        let mut separator = separator.filter(|separator| line.as_bytes().contains(separator));
        let separator = separator.next().unwrap_or(b',');
        let mut names = Vec::new();
        split(line, separator, |name| names.push(name)).ok()?;
        let columns: Vec<_> = names.iter().map(|name| columns.meaning(name)).collect();
        let is_of_radius = |name: &Cow<'_, str>| name.eq_ignore_ascii_case(OF_RADIUS);
        let layout = Self {
            separator,
            columns,
            is_escaped: names.iter().any(is_of_radius),
        };
        let has_time = layout.has(Column::Begin) || layout.has(Column::End);
        (layout.has(Column::User) && has_time).then_some(layout)
    }

    fn has(&self, column: Column) -> bool {
        self.columns.contains(&Some(column))
    }

    fn row<'a>(&self, line: &'a str) -> Result<Row<'a>, Why> {
        let mut row = Row::default();
        let mut columns = self.columns.iter();
        split(line, self.separator, |field| {
            if let Some(Some(column)) = columns.next() {
                row.fields[*column as usize] = field;
            }
        })?;
        if self.is_escaped {
            for column in [Column::User, Column::Gateway, Column::Address] {
                row.fields[column as usize] = unescape(&row.fields[column as usize]);
            }
        }
        Ok(row)
    }
}

pub(super) fn is_header(line: &str) -> bool {
    Layout::read(line, &Columns::default()).is_some()
}

impl Reader for Csv {
    fn line(&mut self, line: &str, clock: &mut Clock, to: &mut dyn Notes) -> Result<(), Why> {
        if line.is_empty() {
            return Ok(());
        }
        let Some(layout) = &self.layout else {
            let layout = Layout::read(line, &self.columns);
            self.layout = Some(layout.ok_or(Why::Missing)?);
            return Ok(());
        };
        let row = layout.row(line)?;
        let user = name(row.get(Column::User).ok_or(Why::Missing)?)?;
        let gateway = name(row.get(Column::Gateway).unwrap_or_default())?;
        if *self.gateway != *gateway {
            self.gateway = gateway.into();
        }
        to.session(Session {
            user: user.into(),
            gateway: Arc::clone(&self.gateway),
            address: row.get(Column::Address).and_then(address),
            span: row.span(layout.has(Column::End), clock)?,
            octets: row.octets()?,
        });
        Ok(())
    }

    /// Each file has a header of its own.
    fn end_of_file(&mut self, _: &mut Clock, _: &mut dyn Notes) -> Result<(), Why> {
        self.layout = None;
        Ok(())
    }
}

/// Splits a line into fields. A field in quotation marks may contain separators, and doubled
/// quotation marks (RFC 4180 section 2).
fn split<'a>(line: &'a str, separator: u8, mut take: impl FnMut(Cow<'a, str>)) -> Result<(), Why> {
    let separator = char::from(separator);
    let mut rest = Some(line);
    while let Some(text) = rest {
        let (field, after) = match text.strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let end = text.find(separator).unwrap_or(text.len());
                (Cow::Borrowed(&text[..end]), &text[end..])
            }
        };
        take(field);
        rest = after.strip_prefix(separator);
        if rest.is_none() && !after.is_empty() {
            return Err(Why::Quote);
        }
    }
    Ok(())
}

/// Returns a field up to its closing quotation mark, and what follows.
fn unquote(text: &str) -> Result<(Cow<'_, str>, &str), Why> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find('"').ok_or(Why::Quote)?;
        let after = &text[at + 1..];
        if !after.starts_with('"') {
            let field = &text[..at];
            return Ok(match from {
                0 => (Cow::Borrowed(field), after),
                _ => (Cow::Owned(field.replace("\"\"", "\"")), after),
            });
        }
        from = at + 2;
    }
}

/// Undoes the escapes of FreeRADIUS's module `sql`: `=5B` for an octet that might matter in SQL.
fn unescape<'a>(text: &Cow<'a, str>) -> Cow<'a, str> {
    if !text.contains('=') {
        return text.clone();
    }
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((octet, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *octet == b'=');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        octets.push(escaped.unwrap_or(*octet));
        rest = match escaped {
            Some(_) => &after[2..],
            None => after,
        };
    }
    Cow::Owned(String::from_utf8_lossy(&octets).into_owned())
}
