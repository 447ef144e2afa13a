//! The peers that `strata status` is about, and the parts in which it gets them.

use crate::{Peer, PeerState};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::str::{Chars, FromStr};

/// A choice of peers. The default is all peers at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Selection {
    /// Names, or patterns in which `*` stands for any characters and `?` for one. Empty for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<String>,
    /// Only peers in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<StateFilter>,
    /// Only peers behind this name: `next` of the answer before. Such an answer has the peers and
    /// the warnings about them alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Number of peers that the daemon visits for one answer, so that packets wait only for a
    /// moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<NonZeroUsize>,
}

/// A state that peers are selected by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateFilter {
    /// The IKE SA is established.
    Up,
    /// An IKE SA is being established.
    Connecting,
    /// There is no IKE SA.
    Down,
    /// The IKE SA is established, and the peer does not answer.
    Silent,
}

impl StateFilter {
    /// The words for all of them.
    pub const WORDS: [&str; 4] = ["up", "connecting", "down", "silent"];
}

impl FromStr for StateFilter {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        Ok(match word {
            "up" => Self::Up,
            "connecting" => Self::Connecting,
            "down" => Self::Down,
            "silent" => Self::Silent,
            _ => return Err(()),
        })
    }
}

impl Selection {
    /// Returns true if a peer with this name is meant.
    pub fn has_name(&self, name: &str) -> bool {
        let is_meant = |pattern: &String| fits(pattern, name);
        self.peers.is_empty() || self.peers.iter().any(is_meant)
    }

    /// Returns true if a peer in its state is meant. A table for many users has no state.
    pub fn has_state(&self, peer: &Peer) -> bool {
        self.state.is_none_or(|state| match state {
            _ if peer.users.is_some() => false,
            StateFilter::Up => peer.state == PeerState::Up,
            StateFilter::Connecting => peer.state == PeerState::Connecting,
            StateFilter::Down => peer.state == PeerState::Down,
            StateFilter::Silent => peer.state == PeerState::Up && peer.silent,
        })
    }

    /// Returns the names among the words, each of which has to exist.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let words = self.peers.iter().map(String::as_str);
        words.filter(|word| !is_pattern(word))
    }

    /// Returns true if peers are named, and each by its whole name.
    pub fn is_by_name(&self) -> bool {
        !self.peers.is_empty() && self.names().count() == self.peers.len()
    }
}

fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?'])
}

/// Compares a name with a pattern. A `*` takes as little as possible, and one character more each
/// time that the rest does not fit. Only the last `*` has to be tried again.
fn fits(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    let mut star: Option<(Chars<'_>, Chars<'_>)> = None;
    loop {
        match (pattern.clone().next(), name.clone().next()) {
            (Some('*'), _) => {
                pattern.next();
                star = Some((pattern.clone(), name.clone()));
            }
            (None, None) => return true,
            (Some(_), None) => return false,
            (Some(wanted), Some(c)) if wanted == '?' || wanted == c => {
                pattern.next();
                name.next();
            }
            (_, Some(_)) => {
                let Some((behind, rest)) = &mut star else {
                    return false;
                };
                rest.next();
                (pattern, name) = (behind.clone(), rest.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(words: &[&str]) -> Selection {
        Selection {
            peers: words.iter().map(|&word| word.to_owned()).collect(),
            ..Selection::default()
        }
    }

    #[test]
    fn a_pattern_stands_for_all_names_that_fit() {
        for (pattern, fitting, others) in [
            ("u1", &["u1"][..], &["u", "u10", "U1", ""][..]),
            ("u1*", &["u1", "u10", "u1*"], &["u2", "au1"]),
            ("*", &["", "u1", "ü"], &[]),
            ("u?", &["u1", "uü"], &["u", "u10"]),
            (
                "*-office",
                &["a-office", "-office", "a-office-office"],
                &["office", "a-offic"],
            ),
            ("*a*b", &["ab", "aab", "xaxb", "abab"], &["a", "ba", "abc"]),
        ] {
            let selection = selected(&[pattern]);
            assert!(
                fitting.iter().all(|name| selection.has_name(name)),
                "{pattern}"
            );
            assert!(
                !others.iter().any(|name| selection.has_name(name)),
                "{pattern}"
            );
        }
    }

    /// The number of comparisons is at most the product of both lengths.
    #[test]
    fn a_pattern_of_many_stars_is_compared_at_once() {
        let pattern = format!("{}b", "a*".repeat(1000));
        assert!(!fits(&pattern, &"a".repeat(4000)));
    }

    #[test]
    fn without_words_all_peers_are_meant_and_names_have_to_exist() {
        let all = Selection::default();
        assert!(all.has_name("office") && !all.is_by_name());
        let named = selected(&["office", "home"]);
        assert!(named.is_by_name() && named.has_name("home") && !named.has_name("u1"));
        let mixed = selected(&["office", "u*"]);
        assert!(!mixed.is_by_name() && mixed.has_name("u1"));
        assert_eq!(mixed.names().collect::<Vec<_>>(), ["office"]);
    }

    #[test]
    fn each_word_for_a_state_is_one() {
        for word in StateFilter::WORDS {
            let state: StateFilter = word.parse().unwrap();
            assert_eq!(
                serde_json::to_string(&state).unwrap(),
                format!("\"{word}\"")
            );
        }
        assert_eq!("gone".parse::<StateFilter>(), Err(()));
    }
}
