//! The peers that a request selects, a part of them at a time: the main loop carries packets
//! between two parts.

use super::{peer, two_machines};
use crate::config_view::ConfigView;
use control::{Peer, Selection};
use model::Instant;
use node::Node;
use std::num::NonZeroUsize;

/// Some of the selected peers, sorted by name.
pub struct Selected {
    pub peers: Vec<Peer>,
    /// Warnings about these peers.
    pub warnings: Vec<String>,
    /// Name of the last peer that was visited, if others follow.
    pub next: Option<String>,
}

/// Returns the next part of the selected peers.
pub fn selected(view: &ConfigView, node: &Node, selection: &Selection, now: Instant) -> Selected {
    let names = node.peer_names();
    let after = selection.after.as_deref();
    let from = after.map_or(0, |after| names.partition_point(|name| *name <= after));
    let mut meant = names[from..].iter().filter(|name| selection.has_name(name));
    let most = selection.most.map_or(usize::MAX, NonZeroUsize::get);
    let visited: Vec<_> = meant.by_ref().take(most).collect();
    let next = meant.next().and(visited.last());
    let mut part = Selected {
        peers: Vec::new(),
        warnings: Vec::new(),
        next: next.map(|name| (**name).to_owned()),
    };
    for status in visited.iter().filter_map(|name| node.peer_named(name)) {
        let peer = peer(view, &status, now);
        if selection.has_state(&peer) {
            part.peers.push(peer);
            part.warnings.extend(two_machines(&status, now));
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Folder;
    use crate::setup;
    use control::StateFilter;
    use std::sync::Arc;

    /// Peers of a gateway: `u0` to `u9`, `u10` and so on, none of which is up.
    const PEERS: usize = 1200;

    struct Gateway {
        view: ConfigView,
        node: Node,
    }

    /// Creates a gateway from a folder of this name.
    fn gateway(folder: &str) -> Gateway {
        let folder = Folder::new(folder);
        folder.write_key("u.psk", "a key of the usual length, 43 letters or so");
        let mut text = "[node]\nid = \"gw.example.net\"\n".to_owned();
        for number in 0..PEERS {
            let (high, low) = (number / 250, number % 250);
            text += &format!(
                "[peer.u{number}]\nid = \"u{number}@example.net\"\npsk = \"u.psk\"\n\
                 local = [\"10.8.0.0/16\"]\nremote = [\"10.1.{high}.{low}/32\"]\n"
            );
        }
        let config = Arc::new(folder.load(&text));
        let node = Node::new(setup::node(&config), [7; 32], Instant::ZERO);
        let view = ConfigView::new(&config, Instant::ZERO);
        Gateway { view, node }
    }

    /// Asks for all parts. Returns the names, and the number of requests.
    fn all(gateway: &Gateway, mut selection: Selection) -> (Vec<String>, usize) {
        let (mut names, mut requests) = (Vec::new(), 0);
        loop {
            let part = selected(&gateway.view, &gateway.node, &selection, Instant::ZERO);
            assert!(part.peers.len() <= selection.most.map_or(PEERS, NonZeroUsize::get));
            names.extend(part.peers.into_iter().map(|peer| peer.name));
            requests += 1;
            selection.after = part.next;
            if selection.after.is_none() {
                return (names, requests);
            }
        }
    }

    #[test]
    fn the_parts_of_an_answer_have_each_peer_once() {
        let gateway = gateway("parts");
        let (whole, requests) = all(&gateway, Selection::default());
        assert_eq!((whole.len(), requests), (PEERS, 1));
        assert!(whole.is_sorted());
        for (most, requests) in [(500, 3), (600, 2), (PEERS, 1), (PEERS - 1, 2)] {
            let selection = Selection {
                most: NonZeroUsize::new(most),
                ..Selection::default()
            };
            assert_eq!(
                all(&gateway, selection),
                (whole.clone(), requests),
                "{most}"
            );
        }
    }

    #[test]
    fn names_patterns_and_states_select_peers() {
        let gateway = gateway("patterns");
        let count = |words: &[&str], state| {
            let selection = Selection {
                peers: words.iter().map(|&word| word.to_owned()).collect(),
                state,
                most: NonZeroUsize::new(50),
                ..Selection::default()
            };
            all(&gateway, selection).0.len()
        };
        assert_eq!(count(&["u7", "u1199"], None), 2);
        assert_eq!(count(&["u11?"], None), 10);
        assert_eq!(count(&["u11*", "u7"], None), 112);
        assert_eq!(count(&["u11*"], Some(StateFilter::Down)), 111);
        assert_eq!(count(&["u11*"], Some(StateFilter::Up)), 0);
        assert_eq!(count(&["x*"], None), 0);
    }
}
