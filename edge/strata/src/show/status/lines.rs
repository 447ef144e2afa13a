//! A line for each peer, and how many are in which state.

use super::order::sorted;
use super::{of_users, reason, unencrypted};
use crate::show::paths::by;
use crate::show::state;
use crate::text::{Paint, clean, count, plural, rate, span};
use control::{Peer, PeerKind, PeerState, place_on};
use std::fmt::Write;
use terminal::{cut, padded, width};

const HEADINGS: [&str; COLUMNS] = ["peer", "state", "address", "in", "out", "heard"];
const COLUMNS: usize = 6;

/// Formats peers. Writing to a `String` cannot fail.
pub fn show(text: &mut String, peers: &[Peer], columns: Option<usize>, paint: Paint) {
    text.push('\n');
    if !peers.is_empty() {
        let rows: Vec<_> = sorted(peers)
            .into_iter()
            .map(|peer| row(peer, paint))
            .collect();
        let headings = HEADINGS.map(|heading| paint.bold(heading));
        let widths: [usize; COLUMNS] = std::array::from_fn(|at| {
            let longest = rows.iter().map(|row| width(&row[at])).max();
            longest.unwrap_or(0).max(HEADINGS[at].len())
        });
        for row in std::iter::once(&headings).chain(&rows) {
            let line = line(row, &widths);
            let _ = writeln!(text, "{}", cut(line.trim_end(), columns));
        }
    }
    let _ = writeln!(text, "{}", summary(peers));
}

fn line(row: &[String; COLUMNS], widths: &[usize; COLUMNS]) -> String {
    let cells: Vec<_> = row
        .iter()
        .zip(widths)
        .map(|(cell, to)| padded(cell, *to))
        .collect();
    cells.join("  ")
}

fn row(peer: &Peer, paint: Paint) -> [String; COLUMNS] {
    let none = || "-".to_owned();
    let is_up = peer.state == PeerState::Up;
    let sum = |octets: fn(&control::Child) -> u64| match is_up {
        true => rate(peer.children.iter().map(octets).sum()),
        false => none(),
    };
    [
        name(peer),
        words(peer, paint),
        peer.remote.map_or_else(none, |remote| {
            let remote = place_on(remote, peer.interface.as_deref());
            format!("{}{}", clean(&remote), by(peer.carrier))
        }),
        sum(|child| child.received_per_second),
        sum(|child| child.sent_per_second),
        last(peer),
    ]
}

/// Returns the name, with the kind of its table if that is not `[peer.NAME]`.
fn name(peer: &Peer) -> String {
    let name = clean(&peer.name);
    match peer.kind {
        PeerKind::Vpn => name.into_owned(),
        PeerKind::Licensed => format!("{name} (licensed)"),
        PeerKind::Gateway => format!("{name} (gateway)"),
        PeerKind::Neighbour => format!("{name} (neighbour)"),
    }
}

fn words(peer: &Peer, paint: Paint) -> String {
    if let Some(users) = peer.users {
        return of_users(users);
    }
    match (peer.state, peer.silent) {
        (PeerState::Up, true) => paint.doubtful("silent"),
        (PeerState::Up, false) if unencrypted(peer).is_some() => paint.bad("up, in clear"),
        (PeerState::Connecting, true) => paint.doubtful("no answer yet"),
        (other, _) => state(other, paint),
    }
}

/// Returns the time since the peer was heard, or the reason why it is not up.
fn last(peer: &Peer) -> String {
    let heard = peer.heard_seconds;
    let mut text = match (&peer.last_refusal, heard) {
        (Some(refusal), _) => format!("failed: {}", reason(refusal)),
        (None, Some(heard)) => format!("{} ago", span(heard)),
        (None, None) => "-".to_owned(),
    };
    if !peer.missing.is_empty() {
        let missing: Vec<_> = peer.missing.iter().map(|child| clean(child)).collect();
        let _ = write!(text, ", without {}", missing.join(", "));
    }
    text
}

/// Counts the peers in each state. A table for many users is not one of them.
fn summary(peers: &[Peer]) -> String {
    let peers: Vec<_> = peers.iter().filter(|peer| peer.users.is_none()).collect();
    let among = |state: PeerState| peers.iter().filter(move |peer| peer.state == state);
    let silent = among(PeerState::Up).filter(|peer| peer.silent).count();
    let states = [
        (PeerState::Up, "up"),
        (PeerState::Connecting, "connecting"),
        (PeerState::Down, "down"),
    ];
    let mut counts = Vec::new();
    for (state, word) in states {
        let number = among(state).count() as u64;
        let more = match state {
            PeerState::Up if silent > 0 => format!(" ({silent} silent)"),
            _ => String::new(),
        };
        counts.extend((number > 0).then(|| format!("{} {word}{more}", count(number))));
    }
    if counts.is_empty() {
        return "no peers".to_owned();
    }
    let all = plural(peers.len() as u64, "peer");
    format!("{all}: {}", counts.join(", "))
}
