//! Syslog of a Cisco ASA or FTD: messages 113039 and 722051 begin a session, 113019 ends it and has
//! its duration and octets. 722055 names the client's program and says that the session is up.

use super::text::{Prefix, address, between, name, number, prefix};
use crate::{Clock, Kind, Note, Notes, Octets, Reader, Why};
use std::time::Duration;

/// Reader of the syslog.
pub(super) struct Asa;

pub(super) fn is_line(line: &str) -> bool {
    message(line).is_some()
}

impl Reader for Asa {
    fn line(&mut self, line: &str, clock: &mut Clock, to: &mut dyn Notes) -> Result<(), Why> {
        let Some((mark, number, text)) = message(line) else {
            return Ok(());
        };
        let (kind, said) = match number {
            // Two devices behind one NAT are one name: the end of each says how long it was up.
            "113039" | "722051" | "722055" => (Kind::Seen, Said::bracketed(text)),
            "113019" => (Kind::Ended, Said::listed(text)),
            _ => return Ok(()),
        };
        let said = said.ok_or(Why::Missing)?;
        let Prefix { at, host } = prefix(line, mark, clock)?;
        let is_end = kind == Kind::Ended;
        let is_begin = matches!(number, "113039" | "722051");
        let begun = is_begin.then_some(Duration::ZERO);
        to.note(Note {
            gateway: host,
            user: name(said.user)?,
            address: address(said.address),
            lasted: is_end.then(|| duration(text)).transpose()?.or(begun),
            octets: is_end.then(|| octets(text)).transpose()?,
            ..Note::new(kind, at, name(&format!("{}@{}", said.user, said.address))?)
        });
        Ok(())
    }
}

/// The user and the public address of a message.
struct Said<'a> {
    user: &'a str,
    address: &'a str,
}

impl<'a> Said<'a> {
    /// Reads `Group <G> User <U> IP <A> …`. Some versions leave the brackets out.
    fn bracketed(text: &'a str) -> Option<Self> {
        let (_, text) = text.split_once("User ")?;
        let (user, rest) = text.split_once(" IP ")?;
        let address = rest.split(' ').next()?;
        let bare = |text: &'a str| text.trim_start_matches('<').trim_end_matches('>');
        Some(Self {
            user: bare(user),
            address: bare(address),
        })
    }

    /// Reads `Group = G, Username = U, IP = A, …`.
    fn listed(text: &'a str) -> Option<Self> {
        Some(Self {
            user: between(text, "Username = ", ", IP = ")?,
            address: between(text, ", IP = ", ",")?,
        })
    }
}

/// Returns the place of `%ASA-4-113019: `, the number, and the text behind.
fn message(line: &str) -> Option<(usize, &str, &str)> {
    let at = line.find("%ASA-").or_else(|| line.find("%FTD-"))?;
    let rest = line[at + 5..].split_once('-')?.1;
    let (number, text) = rest.split_once(": ")?;
    let is_number = number.len() == 6 && number.bytes().all(|octet| octet.is_ascii_digit());
    is_number.then_some((at, number, text))
}

/// Reads `Duration: 1d 2h:28m:09s`; days are left out if there are none.
fn duration(text: &str) -> Result<Duration, Why> {
    let text = between(text, "Duration: ", ",").ok_or(Why::Missing)?;
    let parts = text.split([' ', ':']).filter(|part| !part.is_empty());
    let mut seconds = 0_u64;
    for part in parts {
        let (unit, length) = match part.as_bytes().last() {
            Some(b'd') => (part.len() - 1, 86_400),
            Some(b'h') => (part.len() - 1, 3600),
            Some(b'm') => (part.len() - 1, 60),
            Some(b's') => (part.len() - 1, 1),
            _ => return Err(Why::Number),
        };
        let stretch = number(&part[..unit])?.saturating_mul(length);
        seconds = seconds.saturating_add(stretch);
    }
    Ok(Duration::from_secs(seconds))
}

fn octets(text: &str) -> Result<Octets, Why> {
    let count = |mark| number(between(text, mark, ",").ok_or(Why::Missing)?);
    Ok(Octets {
        received: count("Bytes rcv: ")?,
        sent: count("Bytes xmt: ")?,
    })
}
