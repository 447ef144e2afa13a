//! System programs that are run instead of speaking their protocol: `nft`, and the manager of the
//! list of resolvers.

use crate::Error;
use std::env;
use std::io::{self, Write};
use std::process::{Command, Stdio};

/// Directories of administrators' programs, which an ordinary user's `PATH` lacks.
const SYSTEM: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Returns true if a program can be found.
pub(crate) fn exists(name: &str) -> bool {
    let path = path();
    env::split_paths(&path).any(|directory| directory.join(name).is_file())
}

/// Runs a program with this input to its end and returns its output. The program runs in the
/// network namespace of the calling thread.
pub(crate) fn run(name: &str, arguments: &[&str], input: &str) -> Result<String, Error> {
    let doing = || format!("running `{name} {}`", arguments.join(" "));
    let output = spawn(name, arguments, input).map_err(Error::os(doing()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match (output.status.success(), said.lines().next()) {
        (true, _) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        (false, said) if said.is_some_and(|said| said.contains("not permitted")) => {
            Err(Error::NoRight { doing: doing() })
        }
        (false, said) => {
            let said = said.map_or_else(|| output.status.to_string(), str::to_owned);
            Err(Error::os(doing())(io::Error::other(said)))
        }
    }
}

fn spawn(name: &str, arguments: &[&str], input: &str) -> io::Result<std::process::Output> {
    let mut child = Command::new(name)
        .env("PATH", path())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ended without reading explains that by its exit status.
        let _ended = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output()
}

fn path() -> std::ffi::OsString {
    let path = env::var_os("PATH").unwrap_or_default();
    let all = env::split_paths(&path).chain(SYSTEM.map(Into::into));
    env::join_paths(all).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// Arguments with a meaning to a shell.
    const HOSTILE: [&str; 7] = ["$(id)", "`id`", "; id", "| id", "> x", "*", "'\"\\\n&"];

    // Weakness: 26
    #[test]
    fn arguments_and_input_reach_a_program_as_they_are() {
        let words = [&["%s "][..], &HOSTILE].concat();
        let shown = HOSTILE.map(|word| format!("{word} ")).concat();
        assert_eq!(run("printf", &words, "").unwrap(), shown);
        assert_eq!(run("cat", &[], &shown).unwrap(), shown);
    }

    /// Returns the files with these words, in the crates of the daemon.
    fn files_with(words: &str) -> Vec<String> {
        let edge = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let crates = ["config", "control", "os", "store", "stratad"];
        let mut folders = crates.map(|name| edge.join(name).join("src")).to_vec();
        let mut found = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if fs::read_to_string(&path).unwrap().contains(words) {
                    found.push(path.strip_prefix(&edge).unwrap().display().to_string());
                }
            }
        }
        found.sort();
        found
    }

    /// The arguments of programs are fixed words, names of devices and tables from the
    /// configuration, and addresses, prefixes and ports, which are numbers by type. None is text
    /// from a peer.
    // Weakness: 26
    #[test]
    fn the_lock_and_the_list_of_resolvers_alone_run_programs() {
        let running = concat!("program", "::run(");
        assert_eq!(
            files_with(running),
            ["os/src/lock.rs", "os/src/resolver.rs"]
        );
        // `netns.rs` uses it for the lab, and tests for a process that ends.
        let starting = concat!("Command", "::new(");
        assert_eq!(
            files_with(starting),
            [
                "os/src/netns.rs",
                "os/src/program.rs",
                "store/src/tests/endurance.rs",
                "stratad/src/panics.rs"
            ]
        );
    }
}
