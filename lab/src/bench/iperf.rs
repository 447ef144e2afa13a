//! iperf3, which sends, receives and counts.

use crate::host::Host;
use crate::process::{DEADLINE, Process};
use crate::testbed::find_command;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;
use std::time::Duration;

/// Starts a server for one client, at an address of its host.
pub(super) fn serve(host: &Host, address: &str) -> Result<Process> {
    let words = format!("--server --one-off --forceflush --bind {address}");
    let mut server = start(host, &words)?;
    server.wait_for_log("Server listening", DEADLINE)?;
    Ok(server)
}

/// Starts a client that sends for this many seconds.
pub(super) fn send(host: &Host, address: &str, seconds: u32, load: &str) -> Result<Process> {
    let words = format!("--json --client {address} --time {seconds} {load}");
    start(host, &words)
}

/// Returns the client's report. The exit status is ignored: it is not zero if the report names an
/// error.
pub(super) fn report(client: &mut Process, seconds: u32) -> Result<Value> {
    client.wait(DEADLINE + Duration::from_secs(seconds.into()))?;
    let told = client.log();
    serde_json::from_str(&told).with_context(|| format!("iperf3's report is no JSON: {told}"))
}

/// Returns a number of a report, by its JSON pointer.
pub(super) fn number(report: &Value, place: &str) -> Result<f64> {
    let number = report.pointer(place).and_then(Value::as_f64);
    number.with_context(|| format!("iperf3's report has no {place}: {report}"))
}

fn start(host: &Host, words: &str) -> Result<Process> {
    // The log of an earlier run would otherwise be read as the log of this one.
    let _ = fs::remove_file(host.directory().join("iperf3.log"));
    let mut command = host.command(find_command("iperf3", "iperf3")?);
    command.args(words.split_whitespace());
    host.start("iperf3", command)
}
