//! Tests of the messages that `./x` prints on a machine without a toolchain.

use std::process::{Command, Output};

/// Runs the script as on a machine whose `PATH` is `path`.
fn x(path: &str, arguments: &[&str]) -> Output {
    Command::new("/bin/bash")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../x"))
        .args(arguments)
        .env("PATH", path)
        .output()
        .expect("bash is a part of Debian")
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

#[test]
fn where_no_toolchain_can_be_fetched_x_prints_the_one_command_and_exits_2() {
    for path in ["", "/nonexistent"] {
        for verb in ["demo", "build", "test", "check"] {
            let output = x(path, &[verb]);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{verb}: {said}");
            assert_eq!(
                said.matches("https://sh.rustup.rs | sh").count(),
                1,
                "{said}"
            );
            assert!(output.stdout.is_empty());
        }
    }
}

#[test]
fn the_command_installs_the_version_that_the_workspace_asks_for() {
    let said = text(&x("", &["demo"]).stderr);
    let version = env!("CARGO_PKG_RUST_VERSION");
    assert!(
        said.contains(&format!("--default-toolchain {version}")),
        "{said}"
    );
}

#[test]
fn x_alone_lists_its_verbs_with_a_sentence_each() {
    let output = x("", &[]);
    assert!(output.status.success());
    let listed = text(&output.stdout);
    for verb in [
        "demo", "build", "package", "test", "bench", "figures", "interop", "check", "formal",
        "fuzz", "mutants",
    ] {
        let line = listed
            .lines()
            .find(|line| line.split_whitespace().next() == Some(verb));
        assert!(
            line.is_some_and(|line| line.len() > 40),
            "{verb} in\n{listed}"
        );
    }
}

#[test]
fn an_unknown_verb_is_refused_with_the_list() {
    let output = x("", &["destroy"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("no verb 'destroy'") && said.contains("demo"),
        "{said}"
    );
}
