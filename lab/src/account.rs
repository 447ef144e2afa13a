//! Reports of `strata explain` on an attempt: waiting for them, and comparing them with
//! expectations.

use crate::daemon::Daemon;
use crate::pair::DEADLINE;
use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Waits until the last attempt with a peer has this outcome: `up`, `failed` or `trying`.
///
/// # Errors
/// The outcome is not reached in time; the message has the last one.
pub fn wait(daemon: &Daemon, peer: &str, outcome: &str) -> Result<Value> {
    wait_for(daemon, peer, |e| e["attempt"]["outcome"] == outcome)
}

/// Waits until the report on a peer satisfies `enough`.
///
/// # Errors
/// As [`wait`].
pub fn wait_for(daemon: &Daemon, peer: &str, enough: impl Fn(&Value) -> bool) -> Result<Value> {
    let answer = daemon.wait_until(&format!("explain {peer}"), DEADLINE, |answer| {
        enough(&answer["explain"])
    })?;
    Ok(answer["explain"].clone())
}

/// Returns the row about this subject, or null.
pub fn row<'a>(account: &'a Value, what: &str) -> &'a Value {
    let rows = account["rows"].as_array();
    let found = rows.and_then(|rows| rows.iter().find(|row| row["what"] == what));
    found.unwrap_or(&Value::Null)
}

/// Checks that the row about this subject has this verdict: `fits`, `differs`, `suspect` or
/// `unknown`.
///
/// # Errors
/// The row has another verdict, or there is no such row.
pub fn expect_row(account: &Value, what: &str, verdict: &str) -> Result<()> {
    let found = row(account, what);
    ensure!(
        found["verdict"] == verdict,
        "{what} is not {verdict}: {account:#}"
    );
    Ok(())
}

/// Checks for a fix that names this key, points to its line or to that of its table, and proposes
/// this change.
///
/// # Errors
/// There is no such fix, or its line is another.
pub fn expect_fix(account: &Value, key: &str, config: &str, change: &str) -> Result<()> {
    let fixes = account["fixes"].as_array();
    let fix = fixes.and_then(|fixes| fixes.iter().find(|fix| fix["key"] == key));
    let fix = fix.with_context(|| format!("no fix for {key}: {account:#}"))?;
    let says = fix["change"].as_str().unwrap_or("");
    ensure!(says.contains(change), "{fix}");
    let line = fix["line"].as_u64().context("no line")? as usize;
    let line = config.lines().nth(line - 1).unwrap_or("");
    let (table, last) = key.rsplit_once('.').context("a key has a table")?;
    let there = line.starts_with(last) || line.trim() == format!("[{table}]");
    ensure!(there, "{key} is not at {line:?}");
    Ok(())
}
