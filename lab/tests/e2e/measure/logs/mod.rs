//! `strata-lab logs` as users run it, on the logs of real gateways.

mod freeradius;
mod openvpn;

use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use lab::duo::{DEADLINE, Duo, OURS, THEIRS};
use lab::process::until;
use lab::strongswan::OPERATORS_LOG;
use lab::testbed::{Testbed, find_binary};
use lab::transfer::transfer;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

/// Octets of each transfer.
const OCTETS: u64 = 100_000;

/// Three tunnels one after the other, as charon and stratad have logged them.
// Works: logs
#[lab::test]
fn the_logs_of_both_ends_have_the_same_sessions() -> Result<()> {
    let duo = Duo::new("logs")?;
    let (strata, charon) = duo.start(OURS, &THEIRS)?;
    let log = duo.theirs.directory().join(OPERATORS_LOG);
    for tunnels in 1..=3 {
        strata.strata("up theirs --wait")?;
        transfer(&duo.theirs, &duo.ours, "10.1.0.1", OCTETS)?;
        // charon logs the octets of a child SA that ends before its IKE SA.
        strata.strata("rekey theirs")?;
        let closed = || {
            let log = fs::read_to_string(&log)?;
            Ok((log.matches("> closing CHILD_SA ").count() >= tunnels).then_some(()))
        };
        until("the old child SA to be closed", DEADLINE, closed)?;
        strata.strata("down theirs")?;
        charon.wait_until(DEADLINE, |sas| !sas.contains("ESTABLISHED"))?;
    }
    let theirs = analysed(&[&log])?;
    let ours = analysed(&[strata.log_path()])?;
    for (analysis, format) in [(&theirs, "charon"), (&ours, "strata")] {
        ensure!(
            analysis["source"]["files"][0]["format"] == format,
            "{analysis}"
        );
        ensure!(analysis["source"]["unreadable"] == 0, "{analysis}");
        let table = &analysis["table"];
        ensure!(table["connections"] == 3, "{table}");
        ensure!(table["users"] == 1, "{table}");
        ensure!(table["not_ended"] == 0, "{table}");
        // The first takes a full exchange, the others would be resumed.
        let strategies = analysis["strategies"].as_array().context("a list")?;
        let day = strategies.iter().find(|one| one["name"] == "clocked 24 h");
        ensure!(
            day.context("a strategy")?["exchanges"] == 1,
            "{strategies:?}"
        );
    }
    let sent = theirs["table"]["sent"]["sum"].as_f64();
    ensure!(sent >= Some(3.0 * OCTETS as f64), "{}", theirs["table"]);
    Ok(())
}

// Recovers: logs
#[lab::test]
fn a_log_that_is_damaged_is_analysed_as_far_as_it_goes_and_says_where_it_ends() -> Result<()> {
    let bed = Testbed::new("logs")?;
    let folder = bed.directory();
    let whole = folder.join("whole.csv");
    let made = lab(&["logs", "synth", &text(&whole), "--connections", "20000"])?;
    ensure!(made.status.success(), "{made:?}");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&fs::read(&whole)?)?;
    let packed = encoder.finish()?;
    let cut = folder.join("cut.csv.gz");
    fs::write(&cut, &packed[..packed.len() / 2])?;
    let [all, half] = [&whole, &cut].map(|file| analysed(&[file]));
    let (all, half) = (all?, half?);
    let connections = |analysis: &Value| analysis["table"]["connections"].as_u64();
    let (some, every) = (connections(&half), connections(&all));
    ensure!(some > Some(1000) && some < every, "{some:?} of {every:?}");
    ensure!(
        all["source"]["cut"] == serde_json::json!([]),
        "{}",
        all["source"]
    );
    let told = half["source"]["cut"][0].as_str().unwrap_or_default();
    ensure!(told.contains("cut.csv.gz"), "{}", half["source"]);
    let output = lab(&["logs", "analyse", &text(&cut)])?;
    ensure!(String::from_utf8(output.stdout)?.contains("ends early: "));
    Ok(())
}

// Refuses: logs
#[lab::test]
fn what_is_no_log_is_refused_with_the_fix() -> Result<()> {
    let bed = Testbed::new("logs")?;
    let file = bed.directory().join("notes.txt");
    fs::write(&file, "milk\neggs\n")?;
    let file = text(&file);
    for (words, fix) in [
        (vec!["logs", "analyse", file.as_str()], "--format"),
        (
            vec!["logs", "analyse", file.as_str(), "--format", "csv"],
            "no session",
        ),
        (vec!["logs", "analyse", "/nonexistent"], "that exist"),
        (
            vec!["logs", "analyse", file.as_str(), "--column", "a=b"],
            "no column means b",
        ),
        (
            vec!["logs", "analyse", file.as_str(), "--zone", "noon"],
            "+hh",
        ),
        (vec!["logs", "synth", "/nonexistent/log"], "does not exist"),
    ] {
        let output = lab(&words)?;
        let told = String::from_utf8(output.stderr)?;
        ensure!(output.status.code() == Some(2), "{words:?}: {told}");
        ensure!(told.contains(fix), "{words:?}: {told}");
    }
    Ok(())
}

fn analysed(files: &[&Path]) -> Result<Value> {
    let files: Vec<_> = files.iter().map(|file| text(file)).collect();
    let mut words = vec!["--json", "logs", "analyse"];
    words.extend(files.iter().map(String::as_str));
    let output = lab(&words)?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{told}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn lab(words: &[&str]) -> Result<Output> {
    let mut command = Command::new(find_binary("strata-lab")?);
    Ok(command.args(words).output()?)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
