//! What the README shows under "Day to day" is what is printed: each command there is run, and each
//! line below it is one of its answer.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::pair::{self, DEADLINE, Pair, Terms};
use lab::runner;
use lab::testbed::find_binary;
use os::Family;
use std::process::ExitCode;

fn main() -> ExitCode {
    runner::run(lab::tests![what_is_shown_is_what_is_printed])
}

const README: &str = include_str!("../../../README.md");

/// The wire is short and the gateway wants another suite, until the file is changed.
fn what_is_shown_is_what_is_printed() -> Result<()> {
    let pair = Pair::new("readme")?;
    pair.set_mtu(1400)?;
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
    for (command, shown) in commands()? {
        if command == "reload" {
            mobile.configure(&after)?;
        }
        mobile.wait_until("status", DEADLINE, |status| {
            match command.starts_with("rekey") {
                true => pair::is_up(status),
                false => !pair::refusal(status).is_empty(),
            }
        })?;
        let answer = answer(&pair, &mobile, command)?;
        for line in shown {
            let printed = answer.lines().any(|printed| printed == line);
            ensure!(printed, "{command} does not print {line:?}: {answer}");
        }
    }
    Ok(())
}

/// The commands, without remarks, and what is shown below them.
fn commands() -> Result<Vec<(&'static str, Vec<&'static str>)>> {
    let section = README.split("\n## Day to day\n").nth(1);
    let block = section.and_then(|section| section.split("```\n").nth(1));
    let mut commands = Vec::new();
    for line in block.context("no block of commands")?.lines() {
        match line.strip_prefix("$ strata ") {
            Some(command) => {
                let command = command.split('#').next().unwrap_or_default();
                commands.push((command.trim_end(), Vec::new()));
            }
            None => commands.last_mut().context("no command")?.1.push(line),
        }
    }
    ensure!(commands.len() >= 4, "{commands:?}");
    Ok(commands)
}

fn answer(pair: &Pair, mobile: &Daemon, words: &str) -> Result<String> {
    let mut command = pair.mobile.command(find_binary("strata")?);
    command.arg("--socket").arg(mobile.socket());
    command.args(words.split_whitespace());
    // Its default is not in this folder.
    command.args((words == "doctor").then_some("strata.toml"));
    pair.mobile.run_command(command, DEADLINE)
}
