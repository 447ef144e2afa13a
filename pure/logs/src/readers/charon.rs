//! strongSwan's charon: a session is an IKE SA.
//!
//! A line is `TIME 04[IKE] TEXT` in a file, or `TIME HOST charon[PID]: 04[IKE] TEXT` from syslog
//! and `journalctl -o short`. With `ike_name`, the text begins with `<NAME|NUMBER>`, and only then
//! do lines say which session was given up, which one its client replaced, and whose octets a child
//! SA counts. An IKE SA that is re-authenticated is
//! another session, as that takes a full key exchange; one that is rekeyed is the same.

use super::text::{Prefix, address, between, name, number, prefix};
use crate::{Clock, Kind, Note, Notes, Octets, Reader, Why};

/// Reader of charon's log.
pub(super) struct Charon;

pub(super) fn is_line(line: &str) -> bool {
    group(line).is_some()
}

impl Reader for Charon {
    fn line(&mut self, line: &str, clock: &mut Clock, to: &mut dyn Notes) -> Result<(), Why> {
        let Some((mark, text)) = group(line) else {
            return Ok(());
        };
        let Some(said) = Said::read(text)? else {
            return Ok(());
        };
        let Prefix { at, host } = prefix(line, mark, clock)?;
        to.note(Note {
            gateway: host,
            user: said.user,
            address: address(said.host),
            octets: said.octets,
            ..Note::new(said.kind, at, said.id)
        });
        Ok(())
    }
}

/// What a line says about an IKE SA.
struct Said<'a> {
    kind: Kind,
    /// Number of the IKE SA.
    id: &'a str,
    user: &'a str,
    /// Address of the remote host.
    host: &'a str,
    octets: Option<Octets>,
}

impl<'a> Said<'a> {
    const fn new(kind: Kind, id: &'a str) -> Self {
        Self {
            kind,
            id,
            user: "",
            host: "",
            octets: None,
        }
    }

    fn read(text: &'a str) -> Result<Option<Self>, Why> {
        if text.starts_with("Starting IKE charon daemon") {
            return Ok(Some(Self::new(Kind::Restarted, "")));
        }
        let (prefixed, text) = match text
            .strip_prefix('<')
            .and_then(|rest| rest.split_once("> "))
        {
            Some((name, text)) => (name.rsplit_once('|').map(|(_, id)| id), text),
            None => (None, text),
        };
        if let Some(text) = text.strip_prefix("IKE_SA ") {
            let kind = match text {
                _ if text.contains("] established between ") => Kind::Begun,
                _ if text.contains("] rekeyed between ") => Kind::Continued,
                _ => return Ok(None),
            };
            return Self::between(kind, text).map(Some);
        }
        if let Some(text) = text.strip_prefix("deleting IKE_SA ")
            && text.contains("] between ")
        {
            return Self::between(Kind::Ended, text).map(Some);
        }
        let Some(id) = prefixed else {
            return Ok(None);
        };
        let is_given_up = text.starts_with("giving up after ") && text.ends_with(" retransmits");
        let is_replaced = text.starts_with("destroying duplicate IKE_SA for peer ");
        if is_given_up || is_replaced {
            return Ok(Some(Self::new(Kind::Lost, id)));
        }
        match text.strip_prefix("closing CHILD_SA ") {
            Some(text) => Self::carried(id, text),
            None => Ok(None),
        }
    }

    /// Reads `NAME[NUMBER] … between ADDRESS[IDENTITY]...ADDRESS[IDENTITY]`, ours first.
    fn between(kind: Kind, text: &'a str) -> Result<Self, Why> {
        let (sa, ends) = text.split_once(" between ").ok_or(Why::Missing)?;
        let id = between(sa, "[", "]").ok_or(Why::Missing)?;
        let (_, remote) = ends.split_once("]...").ok_or(Why::Missing)?;
        let (host, user) = remote.split_once('[').ok_or(Why::Missing)?;
        let user = user.strip_suffix(']').ok_or(Why::Missing)?;
        Ok(Self {
            user: name(user)?,
            host,
            ..Self::new(kind, name(id)?)
        })
    }

    /// Reads `NAME{1} with SPIs c1_i (123 bytes) c2_o (456 bytes) and TS …`.
    fn carried(id: &'a str, text: &'a str) -> Result<Option<Self>, Why> {
        let octets = |mark| {
            let text = between(text, mark, " bytes)");
            text.map(number).transpose()
        };
        let (Some(received), Some(sent)) = (octets("_i (")?, octets("_o (")?) else {
            return Ok(None);
        };
        Ok(Some(Self {
            octets: Some(Octets { received, sent }),
            ..Self::new(Kind::Carried, name(id)?)
        }))
    }
}

/// Returns the place of `04[IKE]` in a line, and the text behind it.
fn group(line: &str) -> Option<(usize, &str)> {
    // The first group is charon's: what follows may be the words of a client.
    let is_group = |at: &usize| {
        let thread = at.checked_sub(2).and_then(|from| line.get(from..*at));
        let is_thread = thread.is_some_and(|text| text.bytes().all(|octet| octet.is_ascii_digit()));
        is_thread && line.get(at + 4..at + 6) == Some("] ")
    };
    let mut places = line.match_indices('[').map(|(at, _)| at);
    let at = places.find(is_group)?;
    let (group, text) = (line.get(at + 1..at + 4)?, line.get(at + 6..)?);
    ["IKE", "DMN", "CHD"]
        .contains(&group)
        .then_some((at - 2, text))
}
