//! The log of `stratad`: a session is a peer that is up.
//!
//! A line is `TIME LEVEL TEXT`, after the prefix of the journal if it comes from there. The audit
//! log is about licences, and has no sessions.

use super::text::{Prefix, name, prefix};
use crate::{Clock, Kind, Note, Notes, Reader, Why};

/// Reader of the log.
pub(super) struct Strata;

const LEVELS: [&str; 2] = [" INFO peer ", " WARN peer "];

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
    let mut levels = LEVELS.iter();
    levels.find_map(|level| Some((line.find(level)?, line.split_once(level)?.1)))
}
