//! What `strata explain` tells of an attempt: waiting for it, and holding it against what is expected.

use crate::daemon::Daemon;
use crate::pair::DEADLINE;
use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Waits until the last attempt with a peer came to this: `up`, `failed` or `trying`.
///
/// # Errors
/// It does not in time; the message has what it came to.
pub fn wait(daemon: &Daemon, peer: &str, outcome: &str) -> Result<Value> {
    wait_for(daemon, peer, |e| e["attempt"]["outcome"] == outcome)
}

/// Waits until what is told of a peer is enough.
///
/// # Errors
/// As [`wait`].
pub fn wait_for(daemon: &Daemon, peer: &str, enough: impl Fn(&Value) -> bool) -> Result<Value> {
    let answer = daemon.wait_until(&format!("explain {peer}"), DEADLINE, |answer| {
        enough(&answer["explain"])
    })?;
    Ok(answer["explain"].clone())
}

/// The row about this, or null.
pub fn row<'a>(account: &'a Value, what: &str) -> &'a Value {
    let rows = account["rows"].as_array();
    let found = rows.and_then(|rows| rows.iter().find(|row| row["what"] == what));
    found.unwrap_or(&Value::Null)
}

/// The row about this has this verdict: `fits`, `differs`, `suspect` or `unknown`.
///
/// # Errors
/// It has another, or there is none.
pub fn expect_row(account: &Value, what: &str, verdict: &str) -> Result<()> {
    let found = row(account, what);
    ensure!(
        found["verdict"] == verdict,
        "{what} is not {verdict}: {account:#}"
    );
    Ok(())
}

/// A fix that names this key, on its line or on that of its table, and says to write this.
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
