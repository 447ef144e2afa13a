//! Checks the README against real output: runs each command of a block, and finds each line below
//! the command in its output.

use anyhow::{Context, Result, ensure};
use lab::certified::{GATEWAY_CONFIG, strata};
use lab::daemon::Daemon;
use lab::pair::{self, DEADLINE, Pair, Terms};
use lab::testbed::find_binary;
use os::Family;

const README: &str = include_str!("../../../../../README.md");

/// The README's gateway runs on the same machine.
#[lab::test]
fn certificates_are_made_as_shown_and_a_host_starts_with_them() -> Result<()> {
    let pair = Pair::new("readme")?;
    let host = &pair.gateway;
    for (command, shown) in commands("Certificates")? {
        holds(command, &shown, &strata(host, command)?)?;
    }
    host.run("cp ca/ca.pem .")?;
    let keys = blocks("Certificates").nth(1);
    let keys = keys.and_then(|block| block.strip_prefix("toml\n"));
    let (id, rest) = GATEWAY_CONFIG.split_once("cert =").context("a cert")?;
    let (_, rest) = rest.split_once("[tunnel]").context("a tunnel")?;
    let config = format!("{id}{}[tunnel]{rest}", keys.context("no keys")?);
    let gateway = host.stratad(&config)?;
    let status = gateway.strata("status")?;
    ensure!(
        status["status"]["warnings"] == serde_json::json!([]),
        "{status}"
    );
    Ok(())
}

/// The wire has a small MTU, and the gateway requires another suite until the file is changed.
#[lab::test]
fn what_is_shown_is_what_is_printed() -> Result<()> {
    let pair = Pair::new("readme")?;
    pair.set_mtu(1400)?;
    pair.add_second_wire()?;
    for (host, name) in [
        (&pair.mobile, "tunnel.psk"),
        (&pair.gateway, "tunnel.psk"),
        (&pair.gateway, "node.psk"),
    ] {
        host.secret(name, pair::TUNNEL_KEY)?;
    }
    let wants = "suite = \"aes256gcm16\"\npsk = \"tunnel.psk\"";
    let gateway = pair::gateway_config(Terms::PLAIN).replace("psk = \"tunnel.psk\"", wants);
    let _gateway = pair.gateway.stratad(&gateway)?;
    let config = pair::mobile_config(Family::V4, Terms::PLAIN, "auto");
    let before = format!("{config}suite = \"aes128gcm16\"\n");
    let after = format!("{config}suite = \"aes256gcm16\"\nleak = \"never\"\n");
    let mobile = pair.mobile.stratad(&before)?;
    let commands = commands("Day to day")?;
    ensure!(commands.len() >= 4, "{commands:?}");
    let mut is_changed = false;
    for (command, shown) in commands {
        mobile.wait_until("status", DEADLINE, |status| match is_changed {
            true => pair::is_up(status),
            false => !pair::refusal(status).is_empty(),
        })?;
        if command == "reload" {
            mobile.configure(&after)?;
            is_changed = true;
        }
        holds(command, &shown, &answer(&pair, &mobile, command)?)?;
    }
    Ok(())
}

/// Fails unless each line shown is printed.
fn holds(command: &str, shown: &[&str], answer: &str) -> Result<()> {
    for line in shown {
        let printed = answer.lines().any(|printed| printed == *line);
        ensure!(printed, "{command} does not print {line:?}: {answer}");
    }
    Ok(())
}

/// Returns the code blocks of a section, with their language tags.
fn blocks(section: &str) -> impl Iterator<Item = &'static str> {
    let section = README.split("\n## ").find(|part| part.starts_with(section));
    let parts = section.unwrap_or_default().split("```");
    parts.skip(1).step_by(2)
}

/// Returns the commands of a section, without remarks, each with the lines shown below it.
fn commands(section: &str) -> Result<Vec<(&'static str, Vec<&'static str>)>> {
    let block = blocks(section).next().context("no block of commands")?;
    let mut commands = Vec::new();
    for line in block.lines().skip(1) {
        match line.strip_prefix("$ strata ") {
            Some(command) => {
                let command = command.split('#').next().unwrap_or_default();
                commands.push((command.trim_end(), Vec::new()));
            }
            None => commands.last_mut().context("no command")?.1.push(line),
        }
    }
    ensure!(commands.len() >= 3, "{commands:?}");
    Ok(commands)
}

fn answer(pair: &Pair, mobile: &Daemon, words: &str) -> Result<String> {
    let mut command = pair.mobile.command(find_binary("strata")?);
    command.arg("--socket").arg(mobile.socket());
    command.args(words.split_whitespace());
    // The default path is not in this folder.
    command.args((words == "doctor").then_some("strata.toml"));
    pair.mobile.run_command(command, DEADLINE)
}
