//! The group of readers and the folders of `stratad`, as systemd makes them below another root.

use super::{Folder, text};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

fn read(file: &str) -> String {
    fs::read_to_string(pages::repository().join("pack").join(file)).unwrap()
}

/// Gives these lines to a command of systemd, whose root is a folder.
fn carry_out(folder: &Folder, command: &[&str], lines: &str) -> Output {
    let file = folder.0.join("lines");
    fs::create_dir_all(folder.0.join("etc")).unwrap();
    fs::write(&file, lines).unwrap();
    let mut child = Command::new(command[0]);
    child
        .args(&command[1..])
        .arg("-")
        .stdin(File::open(&file).unwrap());
    let output = child.arg(format!("--root={}", folder.0.display())).output();
    output.unwrap_or_else(|error| panic!("{} (packages.txt): {error}", command[0]))
}

// Works: service
#[test]
fn systemd_makes_the_group_of_readers() {
    let folder = Folder::new("sysusers");
    let make = |lines: &str| carry_out(&folder, &["systemd-sysusers"], lines);
    let output = make(&read("systemd/stratad.sysusers"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let groups = fs::read_to_string(folder.0.join("etc/group")).unwrap();
    let names: Vec<_> = groups
        .lines()
        .filter_map(|line| line.split(':').next())
        .collect();
    assert_eq!(names, ["strata"]);
    // A group without a user: the daemon has none of its own.
    assert!(!folder.0.join("etc/passwd").exists());
    // Negative control.
    assert!(!make("x strata -\n").status.success());
}

// Works: service
#[test]
fn systemd_makes_the_folders_with_the_rights_of_the_unit() {
    let folder = Folder::new("tmpfiles");
    let make = |lines: &str| carry_out(&folder, &["systemd-tmpfiles", "--create"], lines);
    let output = make(&read("systemd/stratad.tmpfiles"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let unit = read("systemd/stratad.service");
    for (key, path) in [
        ("Configuration", "etc"),
        ("State", "var/lib"),
        ("Logs", "var/log"),
        ("Runtime", "run"),
    ] {
        let made = fs::metadata(folder.0.join(path).join("strata")).unwrap();
        let mode = format!(
            "{key}DirectoryMode={:04o}\n",
            made.permissions().mode() & 0o7777
        );
        assert!(unit.contains(&mode), "{mode}");
        assert!(unit.contains(&format!("{key}Directory=strata\n")), "{key}");
    }
    // Negative control.
    assert!(!make("? /run/strata\n").status.success());
}

/// Returns the commands of a text, which are indented there.
fn commands(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix("    "))
}

#[test]
fn the_page_has_the_commands_of_the_archive() {
    let page = pages::read("operate/upgrade.md");
    let install = read("static/INSTALL");
    assert!(commands(&install).count() > 10);
    for command in commands(&install) {
        assert!(page.contains(&format!("\n{command}\n")), "{command}");
    }
}
