//! Cargo compiles a package again for each set of features, and the set depends on the other
//! packages of a command. All commands of the test suite result in the same sets.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// A package as compiled: name and version, kind of target, and `build` or `check`.
type Unit = (String, String, String);

/// Feature sets of each unit.
type Built = BTreeMap<Unit, BTreeSet<String>>;

/// Returns the units that cargo would compile, from its unstable `--unit-graph`.
fn units(arguments: &str) -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .env("RUSTC_BOOTSTRAP", "1")
        .args(arguments.split(' '))
        .args(["--offline", "--unit-graph", "-Zunstable-options"])
        .output()
        .expect("cargo runs this test");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut graph: Value = serde_json::from_slice(&output.stdout).expect("the graph is JSON");
    let units = graph["units"].as_array_mut().expect("a graph has units");
    std::mem::take(units)
}

/// Adds the libraries that cargo would compile.
fn compiled(built: &mut Built, arguments: &str) {
    let units = units(arguments);
    let libraries = units.iter().filter(|unit| {
        let kinds = unit["target"]["kind"].to_string();
        let mode = &unit["mode"];
        (mode == "build" || mode == "check") && kinds.contains("lib")
    });
    for unit in libraries {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let key = (
            text(&unit["pkg_id"]),
            unit["target"]["kind"].to_string(),
            text(&unit["mode"]),
        );
        let set = format!("{} {}", unit["features"], unit["profile"]["opt_level"]);
        built.entry(key).or_default().insert(set);
    }
}

/// Returns the packages with more than one feature set, by name and version.
fn twice(commands: &[&str]) -> Vec<String> {
    let mut built = Built::new();
    commands
        .iter()
        .for_each(|command| compiled(&mut built, command));
    let several = built.into_iter().filter(|(_, sets)| sets.len() > 1);
    let name = |(id, ..): Unit| id.rsplit(['/', '#']).next().unwrap_or_default().to_owned();
    several.map(|(unit, _)| name(unit)).collect()
}

/// Packages that build scripts and macros share with programs, with other features or optimization.
const ALLOWED: [&str; 3] = ["libc@", "num-conv@", "time-core@"];

/// Commands of `.ci/phases`, without options that have no effect on features.
const COMMANDS: [&str; 6] = [
    "build --workspace --bins --tests",
    "test --workspace --exclude fuzz --lib --bins",
    "test --workspace --exclude fuzz --test network",
    "test --workspace --test e2e",
    "clippy --workspace --bins --tests",
    "doc --workspace --no-deps",
];

#[test]
fn these_are_the_commands_of_the_suite() {
    let phases = include_str!("../../../.ci/phases")
        .replace(" --locked", "")
        .replace(" --no-fail-fast", "");
    for command in COMMANDS {
        assert!(phases.contains(command), "{command}");
    }
}

#[test]
fn no_library_is_compiled_twice() {
    // Clippy compiles the same units as `check`.
    let commands = COMMANDS.map(|command| command.replace("clippy", "check"));
    let commands: Vec<_> = commands.iter().map(String::as_str).collect();
    let mut twice = twice(&commands);
    twice.retain(|name| !ALLOWED.iter().any(|allowed| name.starts_with(allowed)));
    assert!(
        twice.is_empty(),
        "commands of the suite compile these with different features: {twice:?}. \
         Add the missing features to `edge/pages/Cargo.toml`"
    );
}

/// Negative control: a part of the workspace has fewer features.
#[test]
fn a_part_of_the_workspace_is_compiled_again() {
    let twice = twice(&[
        "build --workspace --bins --tests",
        "build -p strata -p stratad -p lab",
    ]);
    assert!(
        twice.iter().any(|name| name.starts_with("bitflags@")),
        "{twice:?}"
    );
}

/// The command of `./x build`.
const PROGRAMS: &str = "build --release -p strata -p stratad -p lab";

/// Crates of the lab alone: itself, with its drivers of other daemons; plotters and progress bars;
/// ciphers and hashes that papers measured with.
const LAB_ONLY: [&str; 10] = [
    "lab",
    "plotters",
    "indicatif",
    "maud",
    "inventory",
    "aes",
    "cbc",
    "des",
    "rc5",
    "sha1",
];

/// Returns those crates of the lab that a program of `./x build` is made of.
fn crates_of_the_lab_in(program: &str) -> Vec<&'static str> {
    let units = units(PROGRAMS);
    let is_program =
        |unit: &Value| unit["target"]["name"] == program && unit["target"]["kind"][0] == "bin";
    let root = units.iter().position(is_program).expect("a program");
    let (mut seen, mut next) = (BTreeSet::new(), vec![root]);
    while let Some(place) = next.pop() {
        if seen.insert(place) {
            let below = units[place]["dependencies"]
                .as_array()
                .into_iter()
                .flatten();
            let places = below.filter_map(|unit| unit["index"].as_u64());
            next.extend(places.map(|place| place as usize));
        }
    }
    let names: BTreeSet<_> = seen
        .iter()
        .filter_map(|&place| units[place]["target"]["name"].as_str())
        .collect();
    assert!(names.contains("crypto"), "{names:?}");
    LAB_ONLY
        .into_iter()
        .filter(|name| names.contains(name))
        .collect()
}

#[test]
fn this_is_the_command_of_the_programs() {
    let x = include_str!("../../../x").replace(" --locked", "");
    assert!(x.contains(&format!("cargo {PROGRAMS}\n")));
}

/// Those that `strata` has, too. Phones read bundles (PKCS #12) with such ciphers only.
const OF_BUNDLES: [&str; 4] = ["aes", "cbc", "des", "sha1"];

#[test]
fn programs_that_carry_tunnels_have_nothing_of_the_lab() {
    assert_eq!(crates_of_the_lab_in("stratad"), [""; 0]);
    assert_eq!(crates_of_the_lab_in("strata"), OF_BUNDLES);
    // Negative control.
    assert_eq!(crates_of_the_lab_in("strata-lab"), LAB_ONLY);
}
