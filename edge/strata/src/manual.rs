//! `strata man`: manual pages from the definition of the command line and from the rows of the
//! configuration's keys.
//!
//! The page of `stratad` comes from a test there: this program does not have its options.

use crate::args::Args;
use clap::CommandFactory;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use config::Described;
use control::Failure;
use serde_json::json;
use std::fs;
use std::io;
use std::path::Path;
use terminal::{Exit, Output};

const STRATAD: &str = include_str!("../../../pack/man/stratad.8");

/// Writes all pages into a folder, which is created if necessary.
pub fn run(folder: &Path, output: &Output) -> Exit {
    match write(folder) {
        Ok(pages) if output.json => {
            let line = json!({"man": {"folder": folder, "pages": pages}});
            output.print_json(&line.to_string());
            Exit::Done
        }
        Ok(pages) => {
            output.print(&format!("{}: {} pages\n", folder.display(), pages.len()));
            Exit::Done
        }
        Err(error) => {
            let message = format!("cannot write manual pages to {}: {error}", folder.display());
            let fix = "name a folder that you may write to";
            output.fail(Exit::No, &Failure::new(message, fix))
        }
    }
}

/// Writes all pages; returns their names, sorted.
fn write(folder: &Path) -> io::Result<Vec<String>> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Args::command(), folder)?;
    fs::write(folder.join("strata.toml.5"), of_the_file())?;
    fs::write(folder.join("stratad.8"), STRATAD)?;
    let mut names: Vec<_> = fs::read_dir(folder)?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("strata"))
        .collect();
    names.sort();
    Ok(names)
}

/// Returns the page of the configuration file: a section for each table.
fn of_the_file() -> String {
    let version = concat!("strata ", env!("CARGO_PKG_VERSION"));
    let mut page = Roff::new();
    page.control("TH", ["strata.toml", "5", "", version, ""]);
    section(&mut page, "NAME");
    page.text([roman("strata.toml - configuration of stratad(8)")]);
    section(&mut page, "DESCRIPTION");
    page.text([
        roman("The file "),
        bold(config::DEFAULT_FILE),
        roman(" configures the daemon. "),
        bold("strata check"),
        roman(" finds every fault in it, "),
        bold("strata reload"),
        roman(" applies changes. The sections below are its tables."),
    ]);
    let keys = config::described();
    for table in keys.chunk_by(|a, b| a.table == b.table) {
        section(&mut page, &format!("[{}]", table[0].table));
        table.iter().for_each(|key| describe(&mut page, key));
    }
    section(&mut page, "SEE ALSO");
    page.text([
        bold("strata"),
        roman("(1), "),
        bold("stratad"),
        roman("(8)"),
    ]);
    page.render()
}

fn section(page: &mut Roff, title: &str) {
    page.control("SH", [title]);
}

/// Adds a key, its purpose, an example and what a changed value does.
fn describe(page: &mut Roff, key: &Described) {
    page.control("TP", []);
    page.text([bold(key.key)]);
    page.text(marked(&format!("{}.", key.about.trim_end_matches('.'))));
    page.control("RS", []);
    page.text([
        roman("Example: "),
        bold(format!("{} = {}", key.key, key.example)),
    ]);
    page.control("br", []);
    page.text(marked(&format!("A changed value {}.", key.effect.about())));
    page.control("RE", []);
}

/// Returns text with the words between backticks in bold.
fn marked(text: &str) -> Vec<Inline> {
    let words = text.split('`').enumerate();
    let words = words.filter(|(_, words)| !words.is_empty());
    let words = words.map(|(number, words)| match number % 2 {
        0 => roman(words),
        _ => bold(words),
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_between_backticks_are_bold() {
        let expected = vec![roman("use "), bold("x"), roman(" or "), bold("y")];
        assert_eq!(marked("use `x` or `y`"), expected);
    }
}
