//! The units of systemd: valid, closed as far as the daemon allows, and named as every message
//! names them.

use super::{Folder, text};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const UNITS: [&str; 2] = ["stratad.service", "stratad-lock.service"];

/// A unit of which nothing is closed.
const BARE: &str = "[Unit]\nDescription=Bare\n[Service]\nExecStart=/bin/true\n";

fn unit(name: &str) -> String {
    fs::read_to_string(pages::repository().join("pack/systemd").join(name)).unwrap()
}

/// Writes a unit whose programs exist: those of the package are installed nowhere.
fn written(folder: &Folder, name: &str, unit: &str) -> PathBuf {
    let file = folder.0.join(name);
    let present = unit.replace("/usr/sbin/stratad", "/bin/true");
    let present = present.replace("/usr/bin/strata ", "/bin/true ");
    fs::write(&file, present).unwrap();
    file
}

fn analyze(words: &[&str], file: &Path) -> Output {
    let mut command = Command::new("systemd-analyze");
    let output = command.args(words).arg(file).output();
    output.unwrap_or_else(|error| panic!("systemd-analyze (packages.txt): {error}"))
}

#[test]
fn systemd_accepts_the_units() {
    let folder = Folder::new("verify");
    let complaints = |name: &str, unit: &str| {
        let output = analyze(&["verify", "--man=no"], &written(&folder, name, unit));
        // Units of other packages, which are read as well, have complaints of their own.
        let told = text(&output.stderr);
        let theirs = |line: &str| line.starts_with("/lib/") || line.starts_with("/usr/lib/");
        let ours = told
            .lines()
            .filter(|line| !line.is_empty() && !theirs(line));
        ours.collect::<Vec<_>>().join("\n")
    };
    for name in UNITS {
        let complaints = complaints(name, &unit(name));
        assert!(complaints.is_empty(), "{name}: {complaints}");
    }
    // Negative control.
    let broken = unit(UNITS[0]).replace("WatchdogSec", "WatchdogSecs");
    assert!(complaints(UNITS[0], &broken).contains("WatchdogSecs"));
}

/// Of 10, the exposure of a service that may do everything.
#[test]
fn the_exposure_of_the_units_is_at_most_2_5() {
    let folder = Folder::new("security");
    let security = ["security", "--offline=yes", "--threshold=25", "--no-pager"];
    let verdict = |name: &str, unit: &str| analyze(&security, &written(&folder, name, unit));
    for name in UNITS {
        let output = verdict(name, &unit(name));
        assert!(output.status.success(), "{name}: {}", text(&output.stdout));
    }
    // Negative control.
    assert!(!verdict("bare.service", BARE).status.success());
}

#[test]
fn the_units_start_what_the_package_has() {
    let manifest = include_str!("../../Cargo.toml");
    for (program, folder) in [("strata", "usr/bin/"), ("stratad", "usr/sbin/")] {
        let asset = format!("[\"target/release/{program}\", \"{folder}\", \"755\"]");
        assert!(manifest.contains(&asset), "{asset}");
    }
    let service = unit(UNITS[0]);
    for line in [
        "Type=notify",
        "ExecStart=/usr/sbin/stratad\n",
        "ExecReload=/usr/bin/strata reload",
        "Restart=always",
    ] {
        assert!(service.contains(line), "{line}");
    }
    for name in UNITS {
        assert!(manifest.contains(&format!("unit-name = \"{}\"", &name[..name.len() - 8])));
        let condition = format!("ConditionPathExists={}\n", config::DEFAULT_FILE);
        assert!(unit(name).contains(&condition), "{name}");
    }
}

/// Units of others that messages may name.
const OTHERS: [&str; 1] = ["strongswan-starter"];

/// Adds the units that the files below a folder tell people to start, with the files.
fn named(folder: &Path, found: &mut Vec<(String, PathBuf)>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            named(&path, found);
        } else if let Ok(text) = fs::read_to_string(&path) {
            let units = units(&text).into_iter();
            found.extend(units.map(|unit| (unit, path.clone())));
        }
    }
}

/// Returns the units after the verbs of `systemctl` in a text.
fn units(text: &str) -> Vec<String> {
    const VERBS: [&str; 6] = ["start", "stop", "restart", "reload", "status", "enable"];
    let commands = text.split("systemctl ").skip(1);
    let named = commands.filter_map(|words| {
        let (verb, rest) = words.split_once(' ')?;
        let mut unit = rest.split(|c: char| !(c.is_ascii_alphanumeric() || "-@.".contains(c)));
        VERBS
            .contains(&verb)
            .then(|| unit.next().unwrap_or_default().to_owned())
    });
    named.collect()
}

#[test]
fn every_message_and_page_names_a_unit_that_exists() {
    let mut found = Vec::new();
    for folder in [
        "edge/control/src",
        "edge/os/src",
        "edge/strata/src",
        "edge/stratad/src",
        "docs",
    ] {
        named(&pages::repository().join(folder), &mut found);
    }
    assert!(
        found
            .iter()
            .any(|(_, file)| file.ends_with("edge/control/src/client.rs"))
    );
    for (unit, file) in found {
        let is_ours = UNITS
            .iter()
            .any(|name| name.trim_end_matches(".service") == unit);
        assert!(
            is_ours || OTHERS.contains(&unit.as_str()),
            "{unit:?} in {}",
            file.display()
        );
    }
    // Negative control: a name from before.
    assert_eq!(units("run `systemctl restart strata`"), ["strata"]);
}
