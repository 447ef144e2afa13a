//! OpenVPN: the log of a server.
//!
//! A line is `TIME TEXT` in a file, or `TIME HOST PROGRAM[PID]: TEXT` from syslog and `journalctl
//! -o short`. A text about a client begins with the address and port of its connection (IPv6
//! addresses without the port), and with its name before them once the server has admitted it:
//! `192.0.2.1:51514`, `ann/192.0.2.1:51514`. A client whose address changes keeps its session, and
//! only the beginnings of later lines show it. A new connection of a client silently ends its
//! earlier one, unless the server has `duplicate-cn`. A rekey leaves no line that is read here.

use super::text::{address, name, number, time};
use crate::{Clock, Kind, Note, Notes, Reader, Why};
use crypto::UnixTime;

const BEGUN: &str = "] Peer Connection Initiated with ";
const ENDED: [&str; 2] = [
    " received, client-instance exiting",
    " received, client-instance restarting",
];
const STOPPED: [&str; 2] = [
    " received, process exiting",
    " received, process restarting",
];
const UP: &str = "Initialization Sequence Completed";
const REPLACED: [&str; 2] = [
    "MULTI: new connection by client '",
    "' will cause previous active sessions by this client to be dropped.",
];

/// A line with what a client says about itself.
const PEER_INFO: &str = " peer info: ";

/// Reader of the log.
pub(super) struct Log;

pub(super) fn is_line(line: &str) -> bool {
    line.contains(BEGUN) || ENDED.iter().any(|end| line.ends_with(end))
}

impl Reader for Log {
    fn line(&mut self, line: &str, clock: &mut Clock, to: &mut dyn Notes) -> Result<(), Why> {
        let concerns = is_line(line)
            || line.ends_with(UP)
            || line.contains(REPLACED[0])
            || STOPPED.iter().any(|end| line.ends_with(end));
        if !concerns || line.contains(PEER_INFO) {
            return Ok(());
        }
        let Line { at, host, text } = Line::split(line, clock)?;
        let Some(said) = Said::read(text) else {
            return Ok(());
        };
        clock.advance(at);
        let note = Note {
            gateway: name(host)?,
            user: name(said.user)?,
            address: address(said.remote),
            ..Note::new(said.kind, at, name(said.remote)?)
        };
        if said.kind == Kind::Ended {
            // The session may have begun at another address.
            let kind = Kind::Continued;
            to.note(Note { kind, ..note });
        }
        to.note(note);
        Ok(())
    }
}

/// The parts of a line.
struct Line<'a> {
    at: UnixTime,
    /// Name of the machine, or empty.
    host: &'a str,
    text: &'a str,
}

impl<'a> Line<'a> {
    fn split(line: &'a str, clock: &Clock) -> Result<Self, Why> {
        let line = match line.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
            Some((_, rest)) => rest,
            None => line,
        };
        let (at, rest) = match clock.split(line) {
            Some(found) => found,
            None => machine_readable(line)?,
        };
        let rest = without_fraction(rest.trim_start());
        let (host, text) = syslog(rest).unwrap_or(("", rest));
        Ok(Self { at, host, text })
    }
}

/// Reads `SECONDS.MICROSECONDS FLAGS TEXT`, as with `machine-readable-output`.
fn machine_readable(line: &str) -> Result<(UnixTime, &str), Why> {
    let (seconds, rest) = line.split_once('.').ok_or(Why::Time)?;
    let at = time(seconds).map_err(|_| Why::Time)?;
    let mut parts = rest.splitn(3, ' ');
    let fraction = parts.next().ok_or(Why::Time)?;
    number(fraction).map_err(|_| Why::Time)?;
    let text = parts.nth(1).ok_or(Why::Missing)?;
    Ok((at, text))
}

/// Removes `us=123456 `, which follows the time from `verb 4` on.
fn without_fraction(text: &str) -> &str {
    let rest = text
        .strip_prefix("us=")
        .and_then(|rest| rest.split_once(' '));
    let is_number = |text: &str| text.bytes().all(|octet| octet.is_ascii_digit());
    rest.filter(|(fraction, _)| is_number(fraction))
        .map_or(text, |(_, rest)| rest)
}

/// Reads `HOST PROGRAM[PID]: TEXT`.
fn syslog(text: &str) -> Option<(&str, &str)> {
    let (host, rest) = text.split_once(' ')?;
    let (program, text) = rest.split_once(": ")?;
    let (program, pid) = program.strip_suffix(']')?.split_once('[')?;
    let is_program = |c: char| c.is_ascii_alphanumeric() || "-_.@/".contains(c);
    let is_prefix = program.chars().all(is_program) && pid.bytes().all(|c| c.is_ascii_digit());
    is_prefix.then_some((host, text))
}

/// What a text says about a client, or about all of them.
struct Said<'a> {
    kind: Kind,
    user: &'a str,
    /// Address of the client, with the port if it is IPv4.
    remote: &'a str,
}

impl<'a> Said<'a> {
    /// Reads a text. One that only contains the words is that of a client.
    fn read(text: &'a str) -> Option<Self> {
        let of_all = |kind| Self {
            kind,
            user: "",
            remote: "",
        };
        if text == UP {
            return Some(of_all(Kind::Restarted));
        }
        if let Some(signal) = without_end(text, STOPPED) {
            return is_signal(signal).then(|| of_all(Kind::Stopped));
        }
        if let Some(rest) = text.strip_prefix(REPLACED[0]) {
            let (user, _) = rest.rsplit_once(REPLACED[1])?;
            return Some(Self {
                user,
                ..of_all(Kind::Replaced)
            });
        }
        match without_end(text, ENDED) {
            Some(before) => Self::ended(before),
            None => Self::begun(text),
        }
    }

    /// Reads `192.0.2.1:51514 [ann] Peer Connection Initiated with [AF_INET]192.0.2.1:51514`.
    fn begun(text: &'a str) -> Option<Self> {
        let (remote, rest) = text.split_once(" [")?;
        let (user, connection) = rest.rsplit_once(BEGUN)?;
        let is_same = connection.starts_with("[AF_INET") && connection.contains(remote);
        (is_same && !remote.contains(' ')).then_some(Self {
            kind: Kind::Begun,
            user,
            remote,
        })
    }

    /// Reads `ann/192.0.2.1:51514 SIGTERM[soft,remote-exit]`. A client that was not admitted has no
    /// name before its address.
    fn ended(text: &'a str) -> Option<Self> {
        let (client, signal) = text.rsplit_once(' ')?;
        let (kind, user, remote) = match client.rsplit_once('/') {
            Some((user, remote)) => (Kind::Ended, user, remote),
            None => (Kind::Refused, "", client),
        };
        let is_client = is_signal(signal) && !remote.contains(' ');
        is_client.then_some(Self { kind, user, remote })
    }
}

fn without_end<'a>(text: &'a str, ends: [&str; 2]) -> Option<&'a str> {
    ends.iter().find_map(|end| text.strip_suffix(end))
}

/// Returns true for `SIGUSR1[soft,ping-restart]`.
fn is_signal(text: &str) -> bool {
    let name = text
        .strip_prefix("SIG")
        .and_then(|text| text.split_once('['));
    name.is_some_and(|(name, reason)| !name.contains(' ') && reason.ends_with(']'))
}
