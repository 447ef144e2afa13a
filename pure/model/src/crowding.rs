//! Which member of a full table gives way to a newcomer.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Returns the oldest member of the owner that has the most members, and their number. Of owners
/// with equally many, the one with the oldest member counts.
///
/// `members` are the owners of all members of a small table and their keys, oldest first. A table
/// with many members is a [`Crowd`](crate::Crowd), which keeps the order.
pub fn most_crowded<O: Ord, K>(members: impl IntoIterator<Item = (O, K)>) -> Option<(K, usize)> {
    let mut owners = BTreeMap::new();
    for (place, (owner, key)) in members.into_iter().enumerate() {
        let (count, ..) = owners.entry(owner).or_insert((0, Reverse(place), key));
        *count += 1;
    }
    let most = owners
        .into_values()
        .max_by_key(|(count, place, _)| (*count, *place));
    most.map(|(count, _, key)| (key, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_member_of_the_owner_with_the_most_gives_way() {
        let of = |owners: &str| most_crowded(owners.chars().zip(0..));
        for (owners, expected) in [
            ("", None),
            ("a", Some((0, 1))),
            ("abc", Some((0, 1))),
            ("abbc", Some((1, 2))),
            ("bacab", Some((0, 2))),
            ("cabab", Some((1, 2))),
            ("abcccab", Some((2, 3))),
        ] {
            assert_eq!(of(owners), expected, "{owners}");
        }
    }
}
