//! Configurations on the pages: complete files, and parts of the examples.

use super::lesson::SECRET;
use anyhow::{Context, Result, ensure};
use lab::certified::strata;
use lab::testbed::Testbed;
use pages::{Block, Entry, Table, tables};
use std::fs;
use std::path::Path;

/// The repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Commands that make the certificates and public keys that configurations name.
const CREDENTIALS: [&str; 8] = [
    "pki ca --name Root --out ca",
    "pki issue --ca ca --id gw.example.net",
    "pki issue --ca ca --id alice@example.net",
    "pki issue --ca ca --id bob@staff.example.net",
    "pki issue --ca ca --id fa.sat.example.net",
    "pki crl --ca ca",
    "pki key --name gw",
    "pki key --name alice",
];

/// Each configuration on a page passes `strata check`, alone or in the example that it names. It
/// causes a warning exactly if a comment in it says so.
#[lab::test]
fn strata_check_accepts_each_configuration_on_the_pages() -> Result<()> {
    let bed = Testbed::new("pages")?;
    let host = bed.host("reader")?;
    for command in CREDENTIALS {
        strata(&host, command)?;
    }
    host.run("cp ca/ca.pem ca/ca.crl .")?;
    let blocks = pages::configurations();
    for block in &blocks {
        let config = complete(block)?;
        for name in secrets(&config) {
            host.secret(name, SECRET)?;
        }
        host.file("strata.toml", &config)?;
        let place = || format!("{}:{}:\n{config}", block.page.display(), block.line);
        let answer = strata(&host, "check strata.toml").with_context(place)?;
        let is_warned = answer.contains("warning:");
        let is_expected = block.text.contains("`strata check` warns");
        ensure!(is_warned == is_expected, "{answer}\n{}", place());
    }
    ensure!(blocks.len() >= 50, "{} configurations", blocks.len());
    Ok(())
}

/// Returns a block as it is if it is a complete file, else merged into the example that its first
/// line names: `# in gateway.toml`, or `# gateway.toml` for a part of the example itself.
pub fn complete(block: &Block) -> Result<String> {
    let part = block.part_of();
    let part = part.filter(|_| !block.text.contains("\n[node]\nid = "));
    let Some(name) = block.addition_to().or(part) else {
        return Ok(block.text.clone());
    };
    let example = Path::new(ROOT).join(format!("edge/config/examples/{name}.toml"));
    let example = fs::read_to_string(&example).with_context(|| format!("no example {name}"))?;
    Ok(merged(&example, &block.text))
}

/// Returns true if an entry takes the place of a key: its own, or one that a remark names, such as
/// "instead of `psk`" or "without `psk`".
fn replaces(entry: &Entry<'_>, key: &str) -> bool {
    let mut remarks = entry.lines.iter().filter_map(|line| {
        let without = line.split_once("# without");
        line.split_once("# instead of").or(without)
    });
    let named = |(_, keys): (&str, &str)| keys.split('`').any(|word| word == key);
    entry.key == key || remarks.any(named)
}

/// Adds tables and keys to a configuration. A key of the same name is replaced.
pub fn merged<'a>(config: &'a str, part: &'a str) -> String {
    let mut all = tables(config);
    for Table { name, entries } in tables(part) {
        let is_list = name.starts_with("[[");
        match all.iter_mut().find(|other| other.name == name && !is_list) {
            Some(home) => {
                home.entries
                    .retain(|old| !entries.iter().any(|new| replaces(new, old.key)));
                home.entries.extend(entries);
            }
            None => all.push(Table { name, entries }),
        }
    }
    let lines = all.iter().flat_map(|table| {
        let entries = table.entries.iter().flat_map(|entry| &entry.lines);
        [&table.name].into_iter().chain(entries)
    });
    lines.map(|line| format!("{line}\n")).collect()
}

/// Returns the names of the files with secrets that a configuration names.
pub fn secrets(config: &str) -> impl Iterator<Item = &str> {
    let code = config
        .lines()
        .map(|line| line.split(" #").next().unwrap_or_default());
    code.flat_map(|code| {
        let is_secret = code.contains("secret = ");
        let words = code.split('"').skip(1).step_by(2);
        words.filter(move |word| {
            let is_key = word.ends_with(".psk") || word.ends_with(".ppk");
            is_key || is_secret && word.ends_with(".key")
        })
    })
}
