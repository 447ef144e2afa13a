//! What comes from behind authentication is as hostile as what comes before it. The same harness
//! runs under a fuzzer: `./x fuzz peer`, `./x fuzz packet`.

#[path = "../../../esp/tests/data_plane/bench.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "shared with the tests of esp; what a test sets up has to work"
)]
mod bench;
mod credential;
mod packet;
mod peer;

use proptest::collection::vec;
use proptest::prelude::*;
use std::fs;
use std::path::Path;

/// A place in a script as a part of the whole, and what is done there.
type Edit = (u16, u8, u8);

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    vec(any::<Edit>(), 0..12)
}

fn edited(mut script: Vec<u8>, edits: &[Edit]) -> Vec<u8> {
    for &(place, kind, value) in edits {
        let at = (usize::from(place) * script.len()) >> 16;
        match kind % 6 {
            0 => script[at] = value,
            1 => script[at] ^= 1 << (value % 8),
            2 => script.insert(at, value),
            3 => drop(script.drain(at..(at + usize::from(value)).min(script.len() - 1))),
            4 => {
                let end = (at + usize::from(value)).min(script.len());
                script.extend_from_within(at..end);
            }
            _ => script[at] = script[at].wrapping_add(value),
        }
    }
    script
}

fn cases() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(1500)
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_peer_that_says_anything_confuses_nobody(
        scene in 0..peer::SCENES,
        sources in vec(0..peer::SCENES, 1..4),
        edits in edits(),
    ) {
        let said = sources.into_iter().flat_map(|source| peer::honest(source).split_off(1));
        let script = std::iter::once(scene).chain(said).collect();
        let mut script = edited(script, &edits);
        script[0] = scene;
        peer::play(&script);
    }

    #[test]
    fn a_peer_that_speaks_at_random_confuses_nobody(script in vec(any::<u8>(), 1..300)) {
        peer::play(&script);
    }

    #[test]
    fn packets_with_any_content_are_delivered_or_dropped(
        source in 0..3_usize,
        edits in edits(),
    ) {
        packet::play(&edited(packet::honest().swap_remove(source), &edits));
    }
}

#[test]
fn an_honest_script_is_understood() {
    for scene in 0..peer::SCENES {
        assert!(peer::play(&peer::honest(scene)) > 0, "scene {scene}");
    }
    for script in packet::honest() {
        assert_eq!(packet::play(&script), 1);
    }
}

/// Seeds are honest scripts of some day; `UPDATE_SEEDS=1` writes those of today.
#[test]
fn the_fuzzers_start_from_scripts_that_can_be_played() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    if std::env::var_os("UPDATE_SEEDS").is_some() {
        for scene in 0..peer::SCENES {
            let file = seeds.join(format!("peer/scene-{scene}"));
            fs::write(file, peer::honest(scene)).unwrap();
        }
        for (number, script) in packet::honest().into_iter().enumerate() {
            fs::write(seeds.join(format!("packet/kind-{number}")), script).unwrap();
        }
    }
    for (folder, play, least) in [
        ("peer", peer::play as fn(&[u8]) -> u64, peer::SCENES.into()),
        ("packet", packet::play, 3),
    ] {
        let files = fs::read_dir(seeds.join(folder)).unwrap();
        let played = files.map(|file| play(&fs::read(file.unwrap().path()).unwrap()));
        assert!(played.count() >= least, "{folder}");
    }
}
