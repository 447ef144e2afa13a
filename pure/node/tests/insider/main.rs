//! Input from behind authentication is as hostile as input from before it.
//!
//! There are two kinds of insider. One sends anything. The other follows a file in `scenarios/`
//! (`scenario.rs` describes the format). The first also runs under a fuzzer: `./x fuzz peer`, `./x
//! fuzz packet`.

#[path = "../../../esp/tests/data_plane/bench.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "shared with the tests of esp; what a test sets up has to work"
)]
mod bench;
mod bystander;
mod credential;
mod insider;
mod mangle;
#[path = "../memory/mod.rs"]
mod memory;
mod notation;
mod packet;
mod peer;
mod scenario;
mod scene;
mod stage;
mod twin;

use ike::{Engine, PeerRole};
use insider::Insider;
use model::{IkeSaId, Instant};
use proptest::collection::vec;
use proptest::prelude::*;
use scenario::Scenario;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// A position in a script as a fraction of the whole, with the edit there.
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

    // Weakness: 33
    #[test]
    fn a_peer_that_says_anything_confuses_nobody(
        scene in 0..scene::SCRIPTED,
        sources in vec(0..scene::SCRIPTED, 1..4),
        edits in edits(),
    ) {
        let said = sources.into_iter().flat_map(|source| peer::honest(source).split_off(1));
        let script = std::iter::once(scene).chain(said).collect();
        let mut script = edited(script, &edits);
        script[0] = scene;
        peer::play(&script);
    }

    // Weakness: 13
    // Weakness: 70
    #[test]
    fn a_peer_that_speaks_at_random_confuses_nobody(script in vec(any::<u8>(), 1..300)) {
        peer::play(&script);
    }

    // Weakness: 73
    #[test]
    fn packets_with_any_content_are_delivered_or_dropped(
        source in 0..8_usize,
        edits in edits(),
    ) {
        packet::play(&edited(packet::honest().swap_remove(source), &edits));
    }
}

#[test]
fn an_honest_script_is_understood() {
    for scene in 0..scene::SCRIPTED {
        assert!(peer::play(&peer::honest(scene)) > 0, "scene {scene}");
    }
    let delivered = packet::honest()
        .into_iter()
        .map(|script| packet::play(&script));
    assert!(delivered.eq([1, 1, 1, 1, 1, 1, 1, 2]));
}

/// Seeds are honest scripts of an earlier version. `UPDATE_SEEDS=1` writes those of the current
/// one.
#[test]
fn the_fuzzers_start_from_scripts_that_can_be_played() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    if std::env::var_os("UPDATE_SEEDS").is_some() {
        for scene in 0..scene::SCRIPTED {
            let file = seeds.join(format!("peer/scene-{scene}"));
            fs::write(file, peer::honest(scene)).unwrap();
        }
        for (number, script) in packet::honest().into_iter().enumerate() {
            fs::write(seeds.join(format!("packet/kind-{number}")), script).unwrap();
        }
    }
    for (folder, play, least) in [
        (
            "peer",
            peer::play as fn(&[u8]) -> u64,
            scene::SCRIPTED.into(),
        ),
        ("packet", packet::play, 8),
    ] {
        let files = fs::read_dir(seeds.join(folder)).unwrap();
        let played = files.map(|file| play(&fs::read(file.unwrap().path()).unwrap()));
        assert!(played.count() >= least, "{folder}");
    }
}

/// Returns every scenario with its file name.
fn scenarios() -> Vec<(String, Scenario)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/insider/scenarios");
    let files = fs::read_dir(folder)
        .expect("the folder is there")
        .map(|file| file.expect("it can be listed").path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    let read = |file: &std::path::PathBuf| {
        let name = file
            .file_stem()
            .expect("a file has a name")
            .to_string_lossy()
            .into_owned();
        let text = fs::read_to_string(file).expect("it can be read");
        let scenario = toml::from_str(&text).unwrap_or_else(|why| panic!("{name}: {why}"));
        (name, scenario)
    };
    files.iter().map(read).collect()
}

/// The bystander of each scene is unaffected as well.
// Weakness: 177
#[test]
fn an_insider_that_misbehaves_as_a_file_says_gets_what_the_file_says() {
    let mut wrong = Vec::new();
    for (name, scenario) in scenarios() {
        match catch_unwind(AssertUnwindSafe(|| stage::play(&scenario))) {
            Ok(Ok(())) => {}
            Ok(Err(why)) => wrong.push(format!("{name}: {why}\n{}", scenario.story)),
            Err(_) => wrong.push(format!("{name}: the panic is told above")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Negative control: every expectation of every file can fail.
#[test]
fn a_file_that_expects_anything_else_is_found_wrong() {
    for (name, scenario) in scenarios() {
        for (what, distorted) in scenario.distorted() {
            let played = stage::play(&distorted);
            assert!(played.is_err(), "{name}: nobody noticed {what}");
        }
    }
}

/// A deed that touches the bystander, and its description.
type HostDeed = (&'static str, fn(&mut Engine, IkeSaId));
type Deed = (&'static str, fn(&mut Insider));

/// Negative control: the bystander's part of the verdict can fail in every file, whatever touches
/// the bystander.
// Weakness: 177
#[test]
fn a_bystander_that_is_touched_is_found_whatever_the_file_does() {
    let deeds: [HostDeed; 2] = [
        ("closed", |host, sa| host.close(sa, Instant::ZERO)),
        ("rekeyed", |host, sa| host.rekey_ike(sa, Instant::ZERO)),
    ];
    for (name, scenario) in scenarios() {
        for (what, deed) in deeds {
            let played = stage::play_after(&scenario, deed);
            let found = played.is_err_and(|why| why.contains("the bystander"));
            assert!(found, "{name}: its SA was {what}");
        }
    }
}

/// Negative control: in every scene, each part of the bystander's state is compared.
// Weakness: 177
#[test]
fn each_part_of_a_bystanders_state_is_compared() {
    let deeds: [Deed; 4] = [
        ("its children are rekeyed", |insider| {
            let (host, sa) = (&mut insider.host, insider.bystander.sa);
            for child in host.children(sa) {
                host.rekey_child(sa, child, Instant::ZERO);
            }
        }),
        ("its grant is revoked", |insider| {
            let sa = insider.bystander.sa;
            insider.host.revoke(sa, scene::grant().csa, Instant::ZERO);
        }),
        ("it gets a message that it drops", |insider| {
            let path = scene::between(2, 9, ike::NATT_PORT);
            insider.bystander.hear(path, &[7; 60], Instant::ZERO);
        }),
        ("it falls silent", |insider| {
            insider.bystander.is_silent = true
        }),
    ];
    for scene in scene::SCENES {
        let mut found = Vec::new();
        for (what, deed) in deeds {
            let mut insider = Insider::enter(scene);
            deed(&mut insider);
            insider.listen();
            found.extend(insider.check_bystander().is_err().then_some(what));
        }
        let expected = deeds
            .map(|(what, _)| what)
            .into_iter()
            .filter(|what| match *what {
                "its children are rekeyed" => matches!(scene.insider(), PeerRole::Vpn { .. }),
                "its grant is revoked" => {
                    matches!(scene.insider(), PeerRole::Licensed | PeerRole::Gateway)
                }
                _ => true,
            });
        assert_eq!(found, expected.collect::<Vec<_>>(), "{}", scene.name);
        assert_eq!(Insider::enter(scene).check_bystander(), Ok(()));
    }
}

#[test]
fn a_file_that_cannot_be_played_is_refused_with_a_reason() {
    let faults = [
        ("scene = \"nowhere\"", "there is no scene `nowhere`"),
        ("says = \"asks NOTHING {}\"", "`NOTHING` is neither"),
        (
            "says = \"wants INFORMATIONAL {}\"",
            "is not `asks` or `answers`",
        ),
        ("says = \"asks INFORMATIONAL\"", "no {payloads}"),
        ("says = \"asks INFORMATIONAL {X}\"", "`X` is no payload"),
        ("says = \"asks INFORMATIONAL {KE}\"", "has none there"),
        ("says = \"asks INFORMATIONAL {V=0}\"", "not made of octets"),
        ("says = \"answers INFORMATIONAL {}\"", "has asked nothing"),
        (
            "says = \"asks INFORMATIONAL {}\"\nwaits = 1",
            "one of `says`",
        ),
        ("does = \"reflects\"", "has said nothing"),
    ];
    for (fault, told) in faults {
        let scene = if fault.starts_with("scene") {
            fault
        } else {
            "scene = \"responder\""
        };
        let step = if fault == scene { "waits = 1" } else { fault };
        let text = format!("story = \"\"\n{scene}\n[[step]]\n{step}\n[end]\nsa = \"up\"\n");
        let scenario = toml::from_str(&text).unwrap();
        let why = stage::play(&scenario).unwrap_err();
        assert!(why.contains(told), "{fault}: {why}");
    }
}
