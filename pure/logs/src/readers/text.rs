//! Parts of lines that several formats share.

use crate::clock::LAST;
use crate::{Clock, Why};
use crypto::UnixTime;
use std::net::{IpAddr, SocketAddr};

/// Longest name of a user, a gateway or a session, in octets.
const LONGEST: usize = 256;

/// The beginning of a line of syslog or of the journal.
pub(super) struct Prefix<'a> {
    pub(super) at: UnixTime,
    /// Name of the machine, or empty.
    pub(super) host: &'a str,
}

/// Reads the time of a line, and the machine that the words after it begin with, if `mark` is
/// further behind.
pub(super) fn prefix<'a>(line: &'a str, mark: usize, clock: &mut Clock) -> Result<Prefix<'a>, Why> {
    let before = line.get(..mark).ok_or(Why::Time)?;
    let before = match before
        .strip_prefix('<')
        .and_then(|rest| rest.split_once('>'))
    {
        Some((_, rest)) => rest.strip_prefix("1 ").unwrap_or(rest),
        None => before,
    };
    let (at, rest) = clock.split(before.trim_start()).ok_or(Why::Time)?;
    clock.advance(at);
    let words = rest.split_ascii_whitespace();
    let mut words = words.filter(|word| !word.trim_end_matches(':').is_empty());
    // A machine is followed by the name of a program, or by a colon.
    let host = words.next().filter(|word| !word.ends_with("]:"));
    let host = host.map_or("", |host| host.trim_end_matches(':'));
    Ok(Prefix {
        at,
        host: name(host)?,
    })
}

/// Returns a name, unless it is too long.
pub(super) fn name(text: &str) -> Result<&str, Why> {
    match text.len() <= LONGEST {
        true => Ok(text),
        false => Err(Why::Name),
    }
}

/// Returns the part of a text between two others.
pub(super) fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(part, _)| part)
}

/// Reads an address, alone or with a port: `192.0.2.1:500`, `192.0.2.1[500]`, `[2001:db8::1]:500`.
pub(super) fn address(text: &str) -> Option<IpAddr> {
    let alone = || text.parse().ok();
    let with_port = || Some(text.parse::<SocketAddr>().ok()?.ip());
    let in_brackets = || text.split_once('[')?.0.parse().ok();
    let before_colon = || text.rsplit_once(':')?.0.parse().ok();
    alone()
        .or_else(with_port)
        .or_else(in_brackets)
        .or_else(before_colon)
}

/// Reads a time in seconds since 1970, up to the year 9999.
pub(super) fn time(text: &str) -> Result<UnixTime, Why> {
    let seconds = number(text)?;
    let is_possible = seconds <= LAST;
    is_possible.then_some(UnixTime(seconds)).ok_or(Why::Time)
}

/// Reads a number.
pub(super) fn number(text: &str) -> Result<u64, Why> {
    text.trim().parse().map_err(|_| Why::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_with_and_without_a_port() {
        for (text, expected) in [
            ("192.0.2.1", Some("192.0.2.1")),
            ("192.0.2.1:500", Some("192.0.2.1")),
            ("192.0.2.1[4500]", Some("192.0.2.1")),
            ("2001:db8::1", Some("2001:db8::1")),
            ("[2001:db8::1]:500", Some("2001:db8::1")),
            ("2001:db8::1[4500]", Some("2001:db8::1")),
            ("00-11-22-33-44-55", None),
            ("00:11:22:33:44:55", None),
            ("%any", None),
            ("", None),
        ] {
            let expected = expected.map(|text| text.parse().unwrap());
            assert_eq!(address(text), expected, "{text}");
        }
    }
}
