//! The log of `stratad`: a session is a peer that is up.
//!
//! A line is `TIME LEVEL TEXT`, after the prefix of the journal if it comes from there. The audit
//! log is about licences, and has no sessions.

use super::text::{Prefix, name, prefix};
use crate::{Clock, Kind, Note, Notes, Reader, Why};

/// Reader of the log.
pub(super) struct Strata;

const LEVELS: [&str; 5] = [" INFO ", " WARN ", " ERROR ", " DEBUG ", " TRACE "];

pub(super) fn is_line(line: &str) -> bool {
    text(line).is_some()
}

impl Reader for Strata {
    fn line(&mut self, line: &str, clock: &mut Clock, to: &mut dyn Notes) -> Result<(), Why> {
        let Some((mark, text)) = text(line) else {
            return Ok(());
        };
        let (peer, said) = text.split_once(": ").ok_or(Why::Missing)?;
        let kind = match said {
            "up" => Kind::Begun,
            _ if said.starts_with("down: ") => Kind::Lost,
            _ => return Ok(()),
        };
        let Prefix { at, host } = prefix(line, mark, clock)?;
        let peer = name(peer)?;
        to.note(Note {
            gateway: host,
            user: peer,
            ..Note::new(kind, at, peer)
        });
        Ok(())
    }
}

/// Returns the place of the level of a line about a peer, and the text behind it.
fn text(line: &str) -> Option<(usize, &str)> {
    // The first level is ours: what follows may be the words of a peer.
    let found = LEVELS
        .iter()
        .filter_map(|level| Some((line.find(level)?, level.len())));
    let (at, length) = found.min()?;
    let text = line.get(at + length..)?.strip_prefix("peer ")?;
    Some((at, text))
}
