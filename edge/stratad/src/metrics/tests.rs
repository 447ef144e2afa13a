//! The text of a daemon with more peers than have metrics of their own.

use super::peers::MOST_PEERS;
use super::reference::{EXAMPLES, example, metrics};
use crate::sample::Folder;
use crate::setup;
use model::Instant;
use node::Node;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Returns a gateway with this many peers, for one test.
fn gateway(test: &str, peers: usize) -> Node {
    let folder = Folder::new(&format!("metrics-{test}-{peers}"));
    folder.write_key("a.psk", "a key of the usual length, 43 letters or so");
    let mut text = "[node]\nid = \"hub.example.net\"\n".to_owned();
    for number in 0..peers {
        let [high, low] = (number as u16).to_be_bytes();
        let _ = write!(
            text,
            "[peer.u{number}]\nid = \"{number}.example\"\npsk = \"a.psk\"\n\
             local = [\"10.8.0.0/16\"]\nremote = [\"172.16.{high}.{low}/32\"]\n"
        );
    }
    Node::new(setup::node(&folder.load(&text)), [1; 32], Instant::ZERO)
}

fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix(&format!("strata_{name} ")))
}

#[test]
fn the_first_thousand_peers_have_metrics_and_the_others_are_counted() {
    for (peers, others) in [(3, 0), (MOST_PEERS, 0), (MOST_PEERS + 1, 1), (2500, 1500)] {
        let text = metrics(&gateway("first", peers));
        let of_peers = text.lines().filter(|line| line.contains("{peer=\""));
        let named: BTreeSet<_> = of_peers.map(|line| line.split('"').nth(1)).collect();
        assert_eq!(named.len(), peers - others);
        assert_eq!(value(&text, "peers_unlabelled"), Some(&*others.to_string()));
        assert_eq!(value(&text, "peers"), Some(&*peers.to_string()));
    }
}

#[test]
fn a_text_has_each_sample_once_and_always_in_the_same_order() {
    for node in EXAMPLES.map(example).iter().chain([&gateway("order", 100)]) {
        let text = metrics(node);
        assert_eq!(text, metrics(node));
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let names: Vec<_> = samples.filter_map(|line| line.rsplit_once(' ')).collect();
        let unique: BTreeSet<_> = names.iter().map(|(name, _)| name).collect();
        assert_eq!(unique.len(), names.len(), "{text}");
    }
}

/// The work for peers without metrics of their own is to count them.
#[test]
fn ten_thousand_peers_cost_little_more_than_a_thousand() {
    let cost = |peers| {
        let node = gateway("cost", peers);
        let spent = (0..20).map(|_| {
            let began = std::time::Instant::now();
            let text = metrics(&node);
            assert!(text.contains("strata_peers_unlabelled "));
            began.elapsed()
        });
        spent.min().expect("it ran")
    };
    let (few, many) = (cost(MOST_PEERS), cost(10 * MOST_PEERS));
    println!("{few:?} for 1000 peers, {many:?} for 10000");
    assert!(many < few * 3, "{few:?}, {many:?}");
}
