//! Tests of `pure/clippy.toml`, the rules of `pure/`: no clock, no socket, no hidden randomness, no
//! order that changes from run to run. Each test breaks a rule once and expects clippy to refuse
//! it.
//!
//! They are in `crypto` because two of the rules concern a crate that only `crypto` uses.

use std::path::{Path, PathBuf};
use std::process::Command;

const LAW: &str = include_str!("../../clippy.toml");

/// One violation for each rule, under the path that the rule names.
const CRIMES: [(&str, &str); 14] = [
    (
        "std::time::Instant::now",
        "let _ = std::time::Instant::now();",
    ),
    (
        "std::time::SystemTime::now",
        "let _ = std::time::SystemTime::now();",
    ),
    (
        "std::thread::sleep",
        "std::thread::sleep(std::time::Duration::ZERO);",
    ),
    ("std::thread::spawn", "let _ = std::thread::spawn(|| ());"),
    (
        "aws_lc_rs::rand::fill",
        "let _ = aws_lc_rs::rand::fill(&mut [0]);",
    ),
    (
        "aws_lc_rs::rand::SystemRandom::new",
        "let _ = aws_lc_rs::rand::SystemRandom::new();",
    ),
    (
        "std::net::UdpSocket",
        r#"let _ = std::net::UdpSocket::bind("");"#,
    ),
    (
        "std::net::TcpStream",
        r#"let _ = std::net::TcpStream::connect("");"#,
    ),
    (
        "std::net::TcpListener",
        r#"let _ = std::net::TcpListener::bind("");"#,
    ),
    ("std::fs::File", r#"let _ = std::fs::File::open("");"#),
    (
        "std::time::Instant",
        "let _: Option<std::time::Instant> = None;",
    ),
    (
        "std::time::SystemTime",
        "let _: Option<std::time::SystemTime> = None;",
    ),
    (
        "std::collections::HashMap",
        "let _ = std::collections::HashMap::<u8, u8>::new();",
    ),
    (
        "std::collections::HashSet",
        "let _ = std::collections::HashSet::<u8>::new();",
    ),
];

#[test]
fn every_ban_is_tried() {
    let tried: Vec<_> = CRIMES.iter().map(|(path, _)| *path).collect();
    let banned: Vec<_> = LAW
        .lines()
        .filter_map(|line| line.trim().strip_prefix("{ path = \""))
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert_eq!(tried, banned);
}

#[test]
fn every_crime_is_refused_and_lawful_code_is_not() {
    let (lawful, verdict) = judge(
        "lawful",
        "let _ = std::collections::BTreeMap::<u8, u8>::new();",
    );
    assert!(lawful, "{verdict}");
    for (number, (path, crime)) in CRIMES.iter().enumerate() {
        let (lawful, verdict) = judge(&format!("crime_{number}"), crime);
        assert!(!lawful, "{crime} went through");
        assert!(
            verdict.contains(&format!("`{path}`")),
            "{crime} was refused for another reason:\n{verdict}"
        );
    }
}

/// Lints a crate of one function as clippy lints the crates of `pure/`.
fn judge(name: &str, body: &str) -> (bool, String) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = folder.join(name).with_extension("rs");
    let code = format!("//! A sample.\n\n/// One.\npub fn sample() {{\n    {body}\n}}\n");
    std::fs::write(&source, code).expect("a folder for tests to write into");
    let dependencies = dependencies();
    let output = Command::new("clippy-driver")
        .env(
            "CLIPPY_CONF_DIR",
            Path::new(env!("CARGO_MANIFEST_DIR")).join(".."),
        )
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "lib",
            "--emit",
            "metadata",
            "-D",
            "warnings",
        ])
        .arg("--out-dir")
        .arg(folder)
        .arg("-L")
        .arg(format!("dependency={}", dependencies.display()))
        .arg("--extern")
        .arg(format!("aws_lc_rs={}", library(&dependencies).display()))
        .arg(source)
        .output()
        .expect("clippy is installed with the toolchain");
    let verdict = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), verdict)
}

/// Returns the folder of this test, where cargo puts its dependencies.
fn dependencies() -> PathBuf {
    let test = std::env::current_exe().expect("this test is a file");
    test.parent().expect("in a folder").to_owned()
}

/// Returns the newest build; older ones may come from another compiler.
fn library(dependencies: &Path) -> PathBuf {
    let files = std::fs::read_dir(dependencies).expect("a readable folder");
    files
        .flatten()
        .filter(|file| {
            let name = file.file_name();
            let name = name.to_string_lossy();
            name.starts_with("libaws_lc_rs-") && name.ends_with(".rlib")
        })
        .max_by_key(|file| file.metadata().and_then(|data| data.modified()).ok())
        .expect("cargo built aws-lc-rs before this test")
        .path()
}
