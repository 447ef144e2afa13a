//! Finds all keys and verbs by querying the programs, so that none can be forgotten.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A name that resembles no key.
const NOBODY: &str = "qqqq";

/// Returns every configuration key, in dotted form and without the names of peers.
pub fn keys() -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    walk("@", "", &mut keys);
    keys
}

/// Returns every verb; a subcommand has its parents' names in front. A verb that also works without
/// a subcommand has its own entry.
pub fn verbs(words: &[&str]) -> BTreeSet<String> {
    let help = help(words);
    let below = help.split("Commands:\n").nth(1).unwrap_or_default();
    let names = below.lines().take_while(|line| line.starts_with("  "));
    // Continuation lines of descriptions are indented further.
    let names = names.filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let mut verbs = BTreeSet::new();
    // The library adds `help` to each command that has others. At the top, it is ours.
    for name in names.filter(|name| *name != "help" || words.is_empty()) {
        let words = [words, &[name]].concat();
        let below = self::verbs(&words);
        match below.is_empty() {
            true => verbs.insert(words.join(" ")),
            false => {
                verbs.extend(below);
                is_enough(&words) && verbs.insert(words.join(" "))
            }
        };
    }
    verbs
}

/// Returns every verb of `strata-lab`, with its name in front, from the reference page that a test
/// of the lab writes. Tests of this package cannot rely on another package's program.
pub fn lab_verbs() -> BTreeSet<String> {
    let page = pages::read("reference/strata-lab.md");
    let sections = page.split("\n## ").skip(1);
    let verb = |section: &str| {
        let (name, rest) = section.split_once('\n')?;
        let mut usages = rest.split("```").nth(1)?.trim().lines();
        let is_enough = usages.any(|line| !line.contains("COMMAND"));
        is_enough.then(|| name.to_owned())
    };
    sections.filter_map(verb).collect()
}

/// Returns true if these words form a complete command. Its help then has a usage without
/// `COMMAND`.
fn is_enough(words: &[&str]) -> bool {
    let help = help(words);
    let usage = help.split("Usage:").nth(1).unwrap_or_default();
    let mut usages = usage.lines().take_while(|line| !line.is_empty());
    usages.any(|line| !line.contains("COMMAND"))
}

fn help(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_strata"))
        .args(words)
        .arg("--help")
        .output()
        .expect("strata runs");
    String::from_utf8(output.stdout).expect("help is text")
}

/// Adds the keys that are valid at the `@` of a file.
fn walk(file: &str, name: &str, keys: &mut BTreeSet<String>) {
    for key in possible(file).unwrap_or_default() {
        let dotted = if name.is_empty() {
            key.clone()
        } else {
            format!("{name}.{key}")
        };
        // A table, a table of named tables, a list of tables; or no table.
        let forms = ["{ @ }", "{ x = { @ } }", "[{ @ }]"];
        let inner = forms.map(|form| file.replace('@', &format!("{key} = {form}")));
        match inner.iter().find(|file| possible(file).is_some()) {
            Some(table) => walk(table, &dotted, keys),
            None => {
                keys.insert(dotted);
            }
        }
    }
}

/// Returns the valid keys, as listed by the error about an unknown key; `None` where no key is
/// valid.
fn possible(file: &str) -> Option<Vec<String>> {
    let text = file.replace('@', &format!("{NOBODY} = 1"));
    let faults = match load(&text) {
        Err(config::Error::Invalid(faults)) => faults.faults,
        other => panic!("`{NOBODY}` is a key? {other:?}"),
    };
    let unknown = faults.into_iter().find(|fault| {
        fault.problem == "unknown key" && fault.key.rsplit('.').next() == Some(NOBODY)
    })?;
    let list = unknown
        .fix
        .strip_prefix("possible here: ")
        .expect("nothing is like it");
    Some(
        list.split(", ")
            .map(|key| key.trim_matches('`').to_owned())
            .collect(),
    )
}

fn load(text: &str) -> Result<config::Config, config::Error> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let unique = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("strata-status-{}-{unique}.toml", std::process::id());
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, text).expect("a temporary file can be written");
    let config = config::load(&file);
    let _ = std::fs::remove_file(&file);
    config
}
