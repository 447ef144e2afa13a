//! Cargo compiles a package again for each set of features, and the set depends on the other
//! packages of a command. All commands of the test suite result in the same sets.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// A package as compiled: name and version, kind of target, and `build` or `check`.
type Unit = (String, String, String);

/// Feature sets of each unit.
type Built = BTreeMap<Unit, BTreeSet<String>>;

/// Adds the units that cargo would compile, from its unstable `--unit-graph`.
fn compiled(built: &mut Built, arguments: &str) {
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
    let graph: Value = serde_json::from_slice(&output.stdout).expect("the graph is JSON");
    let units = graph["units"].as_array().expect("a graph has units");
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
const COMMANDS: [&str; 5] = [
    "build --workspace --bins --tests",
    "test --workspace --exclude fuzz --lib --bins",
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
        "build -p strata -p stratad",
    ]);
    assert!(
        twice.iter().any(|name| name.starts_with("bitflags@")),
        "{twice:?}"
    );
}
