//! FreeRADIUS accounting, as module `detail` writes it.
//!
//! A record is a line with a time, attributes in indented lines, and an empty line. `Timestamp` is
//! when the server received the record; it comes last, so that a record without it was cut off.
//! `Acct-Delay-Time` says how long the record was on its way (RFC 2866 section 5.2).
//! `Event-Timestamp` (RFC 2869 section 5.3) is by the clock of the gateway, and is not used. A
//! counter of octets is continued in `Acct-*-Gigawords` (RFC 2869 section 5.1). Gateways are told
//! apart by their addresses: charon's `NAS-Identifier` is the same everywhere, unless set.

use super::text::{address, name, number, time};
use crate::{Clock, Kind, Note, Notes, Octets, Reader, Why};
use crypto::UnixTime;
use std::borrow::Cow;
use std::time::Duration;

/// Reader of `detail` files.
#[derive(Default)]
pub(super) struct Detail {
    record: Record,
}

/// The attributes of a record so far.
#[derive(Default)]
struct Record {
    kind: Option<Kind>,
    timestamp: Option<UnixTime>,
    delay: u64,
    session: String,
    unique: String,
    user: String,
    gateway: String,
    identifier: String,
    client: String,
    lasted: Option<Duration>,
    input: Counter,
    output: Counter,
    fault: Option<Why>,
}

/// A counter in two attributes.
#[derive(Default)]
struct Counter {
    low: Option<u64>,
    wraps: u64,
}

impl Counter {
    fn octets(&self) -> Option<u64> {
        let high = self.wraps.min(1 << 31) << 32;
        self.low.map(|low| low.saturating_add(high))
    }
}

pub(super) fn is_line(line: &str) -> bool {
    line.starts_with('\t') && line.trim_start().starts_with("Acct-Status-Type = ")
}

impl Reader for Detail {
    fn line(&mut self, line: &str, clock: &mut Clock, to: &mut dyn Notes) -> Result<(), Why> {
        if line.starts_with(['\t', ' ']) {
            if let Some((attribute, value)) = line.trim().split_once(" = ") {
                let taken = self.record.take(attribute, &unquote(value));
                self.record.fault = self.record.fault.or(taken.err());
            }
            return Ok(());
        }
        self.end_of_file(clock, to)
    }

    /// The last record need not be followed by an empty line.
    fn end_of_file(&mut self, clock: &mut Clock, to: &mut dyn Notes) -> Result<(), Why> {
        std::mem::take(&mut self.record).tell(clock, to)
    }
}

impl Record {
    fn take(&mut self, attribute: &str, value: &str) -> Result<(), Why> {
        match attribute {
            "Acct-Status-Type" => {
                self.kind = match value {
                    "Start" => Some(Kind::Begun),
                    "Interim-Update" | "Alive" => Some(Kind::Seen),
                    "Stop" => Some(Kind::Ended),
                    "Accounting-On" | "Accounting-Off" => Some(Kind::Restarted),
                    _ => None,
                };
            }
            "Timestamp" => self.timestamp = Some(time(value)?),
            "Acct-Delay-Time" => self.delay = number(value)?,
            "Acct-Session-Time" => self.lasted = Some(Duration::from_secs(number(value)?)),
            "Acct-Session-Id" => self.session = name(value)?.to_owned(),
            "Acct-Unique-Session-Id" => self.unique = name(value)?.to_owned(),
            "User-Name" => self.user = name(value)?.to_owned(),
            "NAS-IP-Address" | "NAS-IPv6-Address" if self.gateway.is_empty() => {
                self.gateway = name(value)?.to_owned();
            }
            "NAS-Identifier" => self.identifier = name(value)?.to_owned(),
            "Calling-Station-Id" => self.client = name(value)?.to_owned(),
            "Framed-IP-Address" | "Framed-IPv6-Address" if self.client.is_empty() => {
                self.client = name(value)?.to_owned();
            }
            "Acct-Input-Octets" => self.input.low = Some(number(value)?),
            "Acct-Output-Octets" => self.output.low = Some(number(value)?),
            "Acct-Input-Gigawords" => self.input.wraps = number(value)?,
            "Acct-Output-Gigawords" => self.output.wraps = number(value)?,
            _ => {}
        }
        Ok(())
    }

    /// Leaves a note. A record about something else, such as a request to authenticate, has no
    /// status.
    fn tell(self, clock: &mut Clock, to: &mut dyn Notes) -> Result<(), Why> {
        if let Some(why) = self.fault {
            return Err(why);
        }
        let Some(kind) = self.kind else {
            return Ok(());
        };
        let received = self.timestamp.ok_or(Why::Time)?;
        let at = UnixTime(received.0.saturating_sub(self.delay));
        clock.advance(received);
        let id = match self.unique.is_empty() {
            true => &self.session,
            false => &self.unique,
        };
        if id.is_empty() && kind != Kind::Restarted {
            return Err(Why::Missing);
        }
        let gateway = match self.gateway.is_empty() {
            true => &self.identifier,
            false => &self.gateway,
        };
        let (received, sent) = (self.input.octets(), self.output.octets());
        let octets = (received.is_some() || sent.is_some()).then(|| Octets {
            received: received.unwrap_or_default(),
            sent: sent.unwrap_or_default(),
        });
        to.note(Note {
            gateway,
            user: &self.user,
            address: address(&self.client),
            lasted: self.lasted,
            octets,
            ..Note::new(kind, at, id)
        });
        Ok(())
    }
}

/// Returns a value without its quotation marks and escapes: `\"`, `\\`, `\t`, `\r`, `\n`, and other
/// octets as three octal digits.
fn unquote(value: &str) -> Cow<'_, str> {
    let quoted = value.strip_prefix('"');
    let Some(text) = quoted.and_then(|rest| rest.strip_suffix('"')) else {
        return Cow::Borrowed(value);
    };
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((octet, after)) = rest.split_first() {
        let (octet, after) = match octet {
            b'\\' => escaped(after),
            _ => (*octet, after),
        };
        octets.push(octet);
        rest = after;
    }
    Cow::Owned(String::from_utf8_lossy(&octets).into_owned())
}

/// Returns the octet that an escape stands for, and what follows the escape.
fn escaped(text: &[u8]) -> (u8, &[u8]) {
    let is_octal = |octet: &u8| (b'0'..=b'7').contains(octet);
    if let Some((digits, rest)) = text.split_first_chunk::<3>()
        && digits.iter().all(is_octal)
    {
        let add = |sum: u8, digit: &u8| sum.wrapping_mul(8).wrapping_add(digit - b'0');
        return (digits.iter().fold(0, add), rest);
    }
    match text.split_first() {
        Some((b't', rest)) => (b'\t', rest),
        Some((b'n', rest)) => (b'\n', rest),
        Some((b'r', rest)) => (b'\r', rest),
        Some((other, rest)) => (*other, rest),
        None => (b'\\', text),
    }
}
