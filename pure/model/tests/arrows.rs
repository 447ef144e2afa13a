//! The dependencies between our crates are exactly the ones that ARCHITECTURE.md draws.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const ARCHITECTURE: &str = include_str!("../../../ARCHITECTURE.md");

/// "`ike` uses `wire`", or "the tests of `ike` use `sim`".
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Arrow {
    from: String,
    to: String,
    tests_only: bool,
}

#[test]
fn the_arrows_are_the_drawn_ones() {
    let (drawn, real) = (drawn(ARCHITECTURE), real(&metadata()));
    let undrawn: Vec<_> = real.difference(&drawn).collect();
    let gone: Vec<_> = drawn.difference(&real).collect();
    assert!(
        undrawn.is_empty(),
        "ARCHITECTURE.md does not draw {undrawn:#?}"
    );
    assert!(
        gone.is_empty(),
        "ARCHITECTURE.md draws, but nothing uses {gone:#?}"
    );
}

#[test]
fn every_crate_is_in_the_drawing() {
    let metadata = metadata();
    let real: BTreeSet<_> = packages(&metadata)
        .map(|package| text(&package["name"]))
        .collect();
    let drawn: BTreeSet<_> = drawing(ARCHITECTURE).map(|(from, ..)| from).collect();
    assert_eq!(drawn, real);
}

/// The drawing lists crates from bottom to top, so a crate depends only on crates in lines above
/// its own.
#[test]
fn no_arrow_points_up() {
    let order: Vec<_> = drawing(ARCHITECTURE).map(|(from, ..)| from).collect();
    let height = |name: &str| order.iter().position(|other| *other == name);
    for arrow in drawn(ARCHITECTURE)
        .into_iter()
        .filter(|arrow| !arrow.tests_only)
    {
        assert!(
            height(&arrow.to) < height(&arrow.from),
            "{arrow:?} points up"
        );
    }
}

/// A crate can call only crates that it depends on. This keeps I/O out of the engines.
#[test]
fn pure_crates_use_pure_crates_and_these_libraries() {
    let libraries = [
        "aws-lc-rs",
        "crypto-bigint",
        "hmac",
        "sha2",
        "md-5",
        "rand_chacha",
        "rand_core",
        "rustc-hash",
        "rustls-pki-types",
        "rustls-webpki",
        "smallvec",
        "thiserror",
        "x509-parser",
        "zeroize",
    ];
    let metadata = metadata();
    let folder = format!("{}/pure/", text(&metadata["workspace_root"]));
    let pure = |package: &&Value| text(&package["manifest_path"]).starts_with(&folder);
    let names: BTreeSet<_> = packages(&metadata)
        .filter(pure)
        .map(|package| text(&package["name"]))
        .chain(libraries)
        .collect();
    assert!(names.len() > libraries.len());
    for package in packages(&metadata).filter(pure) {
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        for dependency in dependencies.filter(|dependency| dependency["kind"] != "dev") {
            let (from, to) = (text(&package["name"]), text(&dependency["name"]));
            assert!(names.contains(to), "{from} uses {to}");
        }
    }
}

/// Ciphers that were not negotiated exist only for figures of the lab. `node` and the daemon cannot
/// select them.
#[test]
fn foreign_ciphers_are_brought_by_the_lab_alone() {
    let metadata = metadata();
    let callers: BTreeSet<_> = packages(&metadata)
        .filter(|package| {
            let manifest = Path::new(text(&package["manifest_path"]));
            names(&manifest.with_file_name("src"), "make_foreign(")
        })
        .map(|package| text(&package["name"]))
        .collect();
    assert_eq!(callers, BTreeSet::from(["esp", "lab"]));
}

/// Returns true if a source file below a folder contains `what`.
fn names(folder: &Path, what: &str) -> bool {
    let entries = std::fs::read_dir(folder).expect("a folder of sources");
    let mut paths = entries.flatten().map(|entry| entry.path());
    paths.any(|path| match path.is_dir() {
        true => names(&path, what),
        false => std::fs::read_to_string(&path).is_ok_and(|source| source.contains(what)),
    })
}

/// Negative control: an added, missing or changed arrow is noticed.
#[test]
fn a_wrong_drawing_is_noticed() {
    let right = drawn(ARCHITECTURE);
    let fence = "```arrows\n";
    let with = |line: &str| drawn(&ARCHITECTURE.replacen(fence, &format!("{fence}{line}\n"), 1));
    assert_eq!(with(""), right);
    assert_ne!(with("model → stratad"), right);
    assert_ne!(with("wire ⇢ model"), right);
    assert_ne!(drawn(&ARCHITECTURE.replacen("→ model", "→", 1)), right);
    assert_ne!(
        drawn(&ARCHITECTURE.replacen("→ model", "⇢ model", 1)),
        right
    );
}

/// Returns the lines of the drawing: a crate, its dependencies after `→`, and those of its tests
/// after `⇢`. A crate without any stands alone.
fn drawing(page: &str) -> impl Iterator<Item = (&str, bool, &str)> {
    let block = page.split("```arrows\n").nth(1).expect("a block of arrows");
    let block = block.split("```").next().unwrap_or_default();
    let lines = block.lines().filter(|line| !line.trim().is_empty());
    lines.flat_map(|line| {
        let (line, of_tests) = line.split_once('⇢').unwrap_or((line, ""));
        let (from, to) = line.split_once('→').unwrap_or((line, ""));
        [(from.trim(), false, to), (from.trim(), true, of_tests)]
    })
}

fn drawn(page: &str) -> BTreeSet<Arrow> {
    let arrows = drawing(page).flat_map(|(from, tests_only, to)| {
        to.split_whitespace().map(move |to| Arrow {
            from: from.to_owned(),
            to: to.to_owned(),
            tests_only,
        })
    });
    arrows.collect()
}

fn real(metadata: &Value) -> BTreeSet<Arrow> {
    let ours = |dependency: &&Value| dependency["path"].is_string();
    let arrows = packages(metadata).flat_map(|package| {
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        dependencies.filter(ours).map(|dependency| Arrow {
            from: text(&package["name"]).to_owned(),
            to: text(&dependency["name"]).to_owned(),
            tests_only: dependency["kind"] == "dev",
        })
    });
    arrows.collect()
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("cargo writes names as strings")
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .output()
        .expect("cargo runs this test");
    serde_json::from_slice(&output.stdout).expect("cargo metadata writes JSON")
}
