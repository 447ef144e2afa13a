//! The simulation of caching strategies, against one in Python that shares nothing with it.

use anyhow::{Context, Result, ensure};
use lab::testbed::{Testbed, find_binary};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The other simulation.
const MODEL: &str = include_str!("caching.py");

/// Entries for which a gateway has room: for all, and for few.
const ROOMS: [u32; 2] = [100_000, 60];

// Works: logs
#[lab::test]
fn two_simulations_count_the_same_exchanges() -> Result<()> {
    let bed = Testbed::new("caching")?;
    let log = bed.directory().join("log.csv");
    let words = [
        "logs",
        "synth",
        &log.display().to_string(),
        "--connections",
        "5000",
    ];
    let made = Command::new(find_binary("strata-lab")?)
        .args(words)
        .status()?;
    ensure!(made.success(), "{made}");
    let mut counted = Vec::new();
    for room in ROOMS {
        let analysis = analysed(&log, &["--entries", &room.to_string()])?;
        let strategies = analysis["strategies"].as_array().context("a list")?;
        ensure!(strategies.len() == 33, "{} strategies", strategies.len());
        let ours: Vec<_> = strategies
            .iter()
            .map(|one| one["exchanges"].clone())
            .collect();
        let theirs = model(&log, &analysis["strategies"], room)?;
        let ours = Value::from(ours);
        ensure!(ours == theirs, "{room} entries: {ours} {theirs}");
        counted.push(theirs);
    }
    // Otherwise any numbers would do.
    ensure!(
        counted[0] != counted[1],
        "room makes no difference: {counted:?}"
    );
    let mut other = analysed(&log, &[])?["strategies"].clone();
    for strategy in other.as_array_mut().context("a list")? {
        strategy["clocked"] = 600.into();
    }
    ensure!(
        model(&log, &other, ROOMS[0])? != counted[0],
        "the clock makes no difference"
    );
    Ok(())
}

fn analysed(log: &Path, options: &[&str]) -> Result<Value> {
    let mut command = Command::new(find_binary("strata-lab")?);
    command
        .args(["--json", "logs", "analyse"])
        .arg(log)
        .args(options);
    let output = command.output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{told}");
    serde_json::from_slice(&output.stdout).context("a document")
}

/// Returns the full exchanges with each strategy, as the other simulation counts them.
fn model(log: &Path, strategies: &Value, room: u32) -> Result<Value> {
    let mut python = Command::new("python3")
        .args(["-c", MODEL])
        .arg(log)
        .arg(room.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = python.stdin.take().context("a pipe")?;
    input.write_all(&serde_json::to_vec(strategies)?)?;
    drop(input);
    let output = python.wait_with_output()?;
    ensure!(output.status.success(), "{}", output.status);
    serde_json::from_slice(&output.stdout).context("a list")
}
