//! Accounting at a real FreeRADIUS: its detail files, and its table in SQL.

use super::{OCTETS, analysed};
use anyhow::{Context, Result, ensure};
use lab::duo::{DEADLINE, Duo, OURS, PSK, THEIRS};
use lab::freeradius::{self, ADDRESS, FreeRadius, SECRET};
use lab::process::until;
use lab::strongswan::OPERATORS_LOG;
use lab::testbed::Testbed;
use lab::transfer::transfer;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// charon accounts three tunnels, and is killed with a fourth one up.
// Works: logs
#[lab::test]
fn accounting_has_the_sessions_of_the_gateway_that_accounts() -> Result<()> {
    let duo = Duo::new("logs")?;
    let radius = FreeRadius::start(&duo.theirs)?;
    duo.ours.secret("theirs.psk", PSK)?;
    let strata = duo.ours.stratad_with(OURS, &[])?;
    let mut charon = duo.theirs.charon_that_accounts(&THEIRS, ADDRESS, SECRET)?;
    for tunnels in 1..=3 {
        strata.strata("up theirs --wait")?;
        transfer(&duo.theirs, &duo.ours, "10.1.0.1", OCTETS)?;
        strata.strata("down theirs")?;
        wait_for(&radius, "Stop", tunnels)?;
    }
    let theirs = analysed(&[&duo.theirs.directory().join(OPERATORS_LOG)])?;
    let ours = analysed(&[strata.log_path()])?;
    let [detail, table] = both(&radius)?;
    for analysis in [&theirs, &ours, &detail, &table] {
        expect(analysis, 3, 0)?;
    }
    let octets = |analysis: &Value| {
        ["received", "sent"].map(|way| analysis["table"][way]["sum"].as_f64().unwrap_or_default())
    };
    ensure!(octets(&detail) == octets(&table), "{detail}\n{table}");
    ensure!(octets(&detail)[1] >= 3.0 * OCTETS as f64, "{detail}");
    // The table has the times of records, to a second, and charon's duration apart.
    let seconds = |analysis: &Value| analysis["table"]["seconds"]["sum"].as_f64();
    let [one, other] = [&detail, &table].map(|analysis| seconds(analysis).unwrap_or(f64::MAX));
    ensure!((one - other).abs() <= 2.0 * 3.0, "{one} and {other}");

    strata.strata("up theirs --wait")?;
    wait_for(&radius, "Start", 4)?;
    charon.process().crash()?;
    for analysis in both(&radius)? {
        expect(&analysis, 4, 1)?;
    }
    Ok(())
}

/// A server that is killed leaves a session without its end, and a record that is cut off is told.
// Recovers: logs
#[lab::test]
fn accounting_of_a_server_that_was_killed_is_analysed_as_far_as_it_goes() -> Result<()> {
    let bed = Testbed::new("logs")?;
    let host = bed.host("radius")?;
    let mut radius = FreeRadius::start(&host)?;
    let account = |radius: &FreeRadius, status: &str, session: &str, user: &str| {
        let counters = match status {
            "Stop" => "Acct-Session-Time = 60\nAcct-Input-Octets = 10\n",
            _ => "",
        };
        radius.account(&format!(
            "Acct-Status-Type = {status}\nAcct-Session-Id = \"{session}\"\n\
             User-Name = \"{user}\"\nNAS-IP-Address = 192.0.2.2\n\
             Calling-Station-Id = \"2001:db8::1[4500]\"\n{counters}"
        ))
    };
    account(&radius, "Start", "1", "C=CH, O=x \\\"y\\\", CN=ann")?;
    account(&radius, "Start", "2", "bob\\\\\\\"")?;
    radius.process().crash()?;
    let radius = FreeRadius::start(&host)?;
    account(&radius, "Stop", "1", "C=CH, O=x \\\"y\\\", CN=ann")?;
    for analysis in both(&radius)? {
        expect_users(&analysis, 2, 2, 1)?;
    }

    let files = radius.detail()?;
    let text = fs::read_to_string(files.last().context("no detail file")?)?;
    let cut = host.file(
        "cut",
        &text[..text.rfind("\tUser-Name").context("no name")?],
    )?;
    let told = analysed(&[&cut])?;
    expect_users(&told, 2, 2, 2)?;
    ensure!(told["source"]["unreadable"] == 1, "{}", told["source"]);
    Ok(())
}

/// Returns the analyses of the detail files and of the exported table.
fn both(radius: &FreeRadius) -> Result<[Value; 2]> {
    let files = radius.detail()?;
    let files: Vec<_> = files.iter().map(PathBuf::as_path).collect();
    let table = radius.export()?;
    let analyses = [analysed(&files)?, analysed(&[&table])?];
    for (analysis, format) in analyses.iter().zip(["freeradius-detail", "csv"]) {
        let found = &analysis["source"]["files"][0]["format"];
        ensure!(*found == format, "{found}");
    }
    Ok(analyses)
}

/// Checks the connections of one user, and that all lines were read.
fn expect(analysis: &Value, connections: u64, not_ended: u64) -> Result<()> {
    ensure!(analysis["source"]["unreadable"] == 0, "{analysis}");
    expect_users(analysis, connections, 1, not_ended)
}

fn expect_users(analysis: &Value, connections: u64, users: u64, not_ended: u64) -> Result<()> {
    let table = &analysis["table"];
    ensure!(table["connections"] == connections, "{table}");
    ensure!(table["users"] == users, "{table}");
    ensure!(table["not_ended"] == not_ended, "{table}");
    Ok(())
}

fn wait_for(radius: &FreeRadius, status: &str, records: usize) -> Result<()> {
    let what = format!("{records} records of {status}");
    until(&what, DEADLINE, || {
        let files = radius.detail().unwrap_or_default();
        let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        Ok((freeradius::count(&files, status)? >= records).then_some(()))
    })
}
