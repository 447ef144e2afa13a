//! Completions and manual pages, as the shells and groff read them.

use super::{Folder, text};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn strata(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strata"));
    command.args(words).output().unwrap()
}

fn script(shell: &str) -> String {
    let output = strata(&["completions", shell]);
    assert!(output.status.success());
    text(&output.stdout)
}

/// Returns true if the shell can parse this script.
fn is_parsed(shell: &str, script: &str) -> bool {
    let folder = Folder::new(&format!("parse-{shell}"));
    let file = folder.0.join("script");
    fs::write(&file, script).unwrap();
    let output = Command::new(shell).arg("-n").arg(&file).output();
    let output = output.unwrap_or_else(|error| panic!("{shell} (packages.txt): {error}"));
    output.status.success() && output.stderr.is_empty()
}

/// Returns what bash offers for the last of these words.
fn offered(words: &[&str]) -> Vec<String> {
    const ASK: &str = "source /dev/stdin; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1))\n\
        _strata strata \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"\n\
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let folder = Folder::new(&format!("offer-{}", words.join("-")));
    let file = folder.0.join("script");
    fs::write(&file, script("bash")).unwrap();
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", ASK, "bash"]).args(words);
    let output = bash.stdin(fs::File::open(&file).unwrap()).output().unwrap();
    let offered = text(&output.stdout);
    offered.split_whitespace().map(str::to_owned).collect()
}

// Works: completions
#[test]
fn bash_completes_commands_and_options() {
    assert_eq!(offered(&["strata", "rel"]), ["reload"]);
    assert_eq!(offered(&["strata", "reload", "--dry"]), ["--dry-run"]);
    assert_eq!(offered(&["strata", "pki", "iss"]), ["issue"]);
    // Negative control.
    assert_eq!(offered(&["strata", "qqqq"]), [""; 0]);
}

// Works: completions
#[test]
fn each_shell_can_parse_its_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let script = script(shell);
        assert!(script.contains("keylog"), "{shell}");
        assert!(is_parsed(shell, &script), "{shell}");
        // Negative control.
        assert!(
            !is_parsed(shell, &format!("{script}\nif true; (")),
            "{shell}"
        );
    }
}

// Refuses: completions
#[test]
fn a_shell_without_completions_is_refused_with_those_that_have_some() {
    let output = strata(&["completions", "ksh"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("bash, zsh, fish"), "{said}");
}

#[test]
fn json_has_the_script_and_the_pages() {
    let output = strata(&["completions", "zsh", "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["completions"]["script"], script("zsh"));
    let folder = Folder::new("man-json");
    let output = strata(&["man", folder.0.to_str().unwrap(), "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let pages = answer["man"]["pages"].as_array().unwrap();
    assert_eq!(pages.len(), fs::read_dir(&folder.0).unwrap().count());
}

/// Returns the complaints of groff about a page.
fn complaints(page: &Path) -> String {
    let mut groff = Command::new("groff");
    groff.args(["-man", "-Tutf8", "-ww", "-z"]).arg(page);
    let output = groff
        .output()
        .unwrap_or_else(|error| panic!("groff: {error}"));
    text(&output.stderr)
}

/// Returns the commands of the reference page, as their pages are named.
fn commands() -> BTreeSet<String> {
    let page = pages::read("reference/strata.md");
    let titles = page.lines().filter_map(|line| line.strip_prefix("## "));
    titles
        .map(|title| format!("{}.1", title.replace(' ', "-")))
        .collect()
}

// Works: completions
#[test]
fn each_command_has_a_page_that_groff_formats_without_a_warning() {
    let folder = Folder::new("man");
    let output = strata(&["man", folder.0.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let entries = fs::read_dir(&folder.0).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let mut names: BTreeSet<_> = names.collect();
    for name in &names {
        let complaints = complaints(&folder.0.join(name));
        assert!(complaints.is_empty(), "{name}: {complaints}");
    }
    assert!(names.remove("stratad.8") && names.remove("strata.toml.5"));
    assert_eq!(names, commands());
    // Negative control.
    let page = folder.0.join("strata.1");
    let broken = fs::read_to_string(&page).unwrap() + "\n.nosuchrequest\n";
    fs::write(&page, broken).unwrap();
    assert!(complaints(&page).contains("nosuchrequest"));
}

#[test]
fn the_page_of_the_file_has_every_key() {
    let folder = Folder::new("man-keys");
    strata(&["man", folder.0.to_str().unwrap()]);
    let mut groff = Command::new("groff");
    groff.args(["-man", "-Tascii", "-P-cbou", "-rLL=400n"]);
    let output = groff.arg(folder.0.join("strata.toml.5")).output().unwrap();
    let page = text(&output.stdout);
    for key in config::described() {
        let example = format!("Example: {} = {}", key.key, key.example);
        assert!(page.contains(&example), "{example}");
        assert!(page.contains(&format!("[{}]", key.table)), "{}", key.table);
    }
}

// Refuses: completions
#[test]
fn a_folder_that_cannot_be_written_is_refused_with_the_fix() {
    let output = strata(&["man", "/proc/strata"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("/proc/strata") && said.contains("may write to"),
        "{said}"
    );
}
