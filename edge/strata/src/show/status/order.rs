//! The order in which peers are listed: by kind, and by name with numbers by their value.

use control::{Peer, PeerKind};
use std::cmp::Ordering;

/// Returns the peers in their order.
pub fn sorted(peers: &[Peer]) -> Vec<&Peer> {
    let mut sorted: Vec<_> = peers.iter().collect();
    sorted.sort_by(|a, b| {
        let kinds = rank(a.kind).cmp(&rank(b.kind));
        kinds.then_with(|| natural(&a.name, &b.name))
    });
    sorted
}

const fn rank(kind: PeerKind) -> u8 {
    match kind {
        PeerKind::Vpn => 0,
        PeerKind::Licensed => 1,
        PeerKind::Gateway => 2,
        PeerKind::Neighbour => 3,
    }
}

/// Compares names with numbers in them: `u2` comes before `u10`.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let [x, y] = [left, right].map(digits);
        if !x.is_empty() && !y.is_empty() {
            // More digits, without zeros in front, are a greater number.
            let [m, n] = [x, y].map(|digits| digits.trim_start_matches('0'));
            let numbers = m.len().cmp(&n.len()).then_with(|| m.cmp(n));
            if numbers.is_ne() {
                return numbers;
            }
            (left, right) = (&left[x.len()..], &right[y.len()..]);
            continue;
        }
        let (mut rest_x, mut rest_y) = (left.chars(), right.chars());
        match (rest_x.next(), rest_y.next()) {
            (Some(x), Some(y)) if x == y => {
                (left, right) = (rest_x.as_str(), rest_y.as_str());
            }
            // Equal but for zeros in front of numbers.
            (None, None) => return a.cmp(b),
            (x, y) => return x.cmp(&y),
        }
    }
}

/// Returns the digits in front of a text.
fn digits(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit());
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count_by_their_value() {
        let expected = [
            "",
            "1",
            "02",
            "2",
            "10",
            "a",
            "a-2",
            "a-10-b",
            "a2",
            "a10",
            "a10b1",
            "a10b02",
            "a99999999999999999999998",
            "a99999999999999999999999",
            "b",
            "ü",
        ];
        let mut names = expected.to_vec();
        names.reverse();
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, expected);
    }
}
