//! `dns`: programs use the name servers behind the tunnel while it is up, and the former ones at
//! every other time, also after a crash of the daemon.
//!
//! The manager of the server list differs from machine to machine. The file is the mobile node's
//! own; systemd-resolved and resolvconf are scripts that record their arguments and input.

use anyhow::{Context, Result, ensure};
use lab::pair::{self, DEADLINE, Pair, Terms};
use lab::plain;
use lab::process::until;
use lab::testbed::find_binary;
use os::Family;
use os::resolver::aside;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const FORMER: &str = "nameserver 192.0.2.53\nsearch example.net\n";
const SERVER: &str = "10.8.0.53";

/// The mobile node's list of name servers.
struct Bed {
    pair: Pair,
    file: PathBuf,
}

impl Bed {
    fn new() -> Result<Self> {
        let pair = Pair::new("dns")?;
        pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
        let file = pair.mobile.file("resolv.conf", FORMER)?;
        Ok(Self { pair, file })
    }

    fn config(&self, start: &str) -> String {
        let dns = format!(
            "dns = [\"{SERVER}\"]\nresolver = \"{}\"",
            self.file.display()
        );
        with_dns(start, &dns)
    }

    fn text(&self) -> Result<String> {
        fs::read_to_string(&self.file).context("programs find no list of name servers")
    }

    /// Returns true if the list is the former one and no backup is left.
    fn is_restored(&self) -> Result<bool> {
        Ok(self.text()? == FORMER && fs::symlink_metadata(aside(&self.file)).is_err())
    }

    fn until_asked(&self) -> Result<()> {
        until("the name server behind the tunnel", DEADLINE, || {
            let text = self.text()?;
            Ok(text.contains(SERVER).then_some(()))
        })
    }

    fn until_restored(&self) -> Result<()> {
        until("the former name servers", DEADLINE, || {
            Ok(self.is_restored()?.then_some(()))
        })
    }
}

// Works: dns
#[lab::test]
fn names_are_asked_for_behind_the_tunnel_while_it_is_up() -> Result<()> {
    let bed = Bed::new()?;
    let _gateway = bed.pair.start_gateway(Terms::PLAIN)?;
    let mut mobile = bed.pair.mobile.stratad(&bed.config("manual"))?;
    mobile.strata("status")?;
    ensure!(bed.is_restored()?, "changed before there is a tunnel");
    mobile.strata_text("up office --wait")?;
    bed.until_asked()?;
    let text = bed.text()?;
    ensure!(text.contains("search example.net"), "{text}");
    ensure!(!text.contains("192.0.2.53"), "{text}");
    mobile.strata("down office")?;
    bed.until_restored()?;
    mobile.strata_text("up office --wait")?;
    bed.until_asked()?;
    mobile.stop()?;
    ensure!(bed.is_restored()?, "{}", bed.text()?);
    Ok(())
}

/// The gateway dies without a DELETE.
#[lab::test]
fn a_lost_tunnel_gives_the_former_servers_back() -> Result<()> {
    let bed = Bed::new()?;
    let mut gateway = bed.pair.start_gateway(Terms::PLAIN)?;
    let mobile = bed.pair.mobile.stratad(&bed.config("manual"))?;
    mobile.strata_text("up office --wait")?;
    bed.until_asked()?;
    gateway.stop()?;
    bed.until_restored()
}

// Works: dns
#[lab::test]
fn a_reload_changes_whom_programs_ask() -> Result<()> {
    const OTHER: &str = "10.8.0.54";
    let bed = Bed::new()?;
    let _gateway = bed.pair.start_gateway(Terms::PLAIN)?;
    let with = bed.config("manual");
    let without = with.replace(&format!("dns = [\"{SERVER}\"]\n"), "");
    let mut mobile = bed.pair.mobile.stratad(&without)?;
    mobile.strata_text("up office --wait")?;
    ensure!(bed.is_restored()?, "nobody asked for another server");
    mobile.change(&with)?;
    ensure!(bed.text()?.contains(SERVER), "{}", bed.text()?);
    let text = mobile.change(&with.replace(SERVER, OTHER))?;
    let line = "~ tunnel.dns [10.8.0.53] -> [10.8.0.54] (applied)\n";
    ensure!(text.contains(line), "{text}");
    let now = bed.text()?;
    ensure!(now.contains(OTHER) && !now.contains(SERVER), "{now}");
    mobile.change(&without)?;
    ensure!(bed.is_restored()?, "{}", bed.text()?);
    mobile.strata_text("down office")?;
    mobile.wait_until("status", DEADLINE, pair::is_down)?;
    mobile.change(&with)?;
    ensure!(bed.is_restored()?, "asked without a tunnel");
    mobile.strata_text("up office --wait")?;
    bed.until_asked()?;
    mobile.stop()?;
    ensure!(bed.is_restored()?, "{}", bed.text()?);
    Ok(())
}

/// Services and hardened hosts have such a umask.
// Weakness: 197
#[lab::test]
fn every_user_can_read_the_list_whatever_the_umask() -> Result<()> {
    const CLOSED: &str = "umask 077 && touch closed && exec \"$0\" --config \"$1\"";
    let bed = Bed::new()?;
    let _gateway = bed.pair.start_gateway(Terms::PLAIN)?;
    let host = &bed.pair.mobile;
    let socket = host.directory().join("api.sock");
    let control = format!("[control]\nsocket = \"{}\"\n", socket.display());
    let config = host.file("strata.toml", &(bed.config("auto") + &control))?;
    let mut command = host.command("/bin/sh");
    command.args(["-c", CLOSED]);
    command.arg(find_binary("stratad")?).arg(config);
    let _mobile = host.start("stratad", command)?;
    bed.until_asked()?;
    let mode =
        |file: &Path| -> Result<u32> { Ok(fs::metadata(file)?.permissions().mode() & 0o777) };
    ensure!(mode(&bed.file)? == 0o644, "{:o}", mode(&bed.file)?);
    // Control: others are closed.
    ensure!(mode(&host.directory().join("closed"))? == 0o600);
    Ok(())
}

// Recovers: dns
#[lab::test]
fn the_start_after_a_crash_gives_the_former_servers_back() -> Result<()> {
    let bed = Bed::new()?;
    let _gateway = bed.pair.start_gateway(Terms::PLAIN)?;
    let mut mobile = bed.pair.mobile.stratad(&bed.config("auto"))?;
    bed.until_asked()?;
    mobile.process().crash()?;
    ensure!(!bed.is_restored()?, "nothing was left to be restored");
    let mobile = bed.pair.mobile.stratad(&bed.config("manual"))?;
    mobile.strata("status")?;
    ensure!(bed.is_restored()?, "{}", bed.text()?);
    Ok(())
}

#[lab::test]
fn without_the_key_the_list_is_not_touched() -> Result<()> {
    let bed = Bed::new()?;
    let _gateway = bed.pair.start_gateway(Terms::PLAIN)?;
    let resolver = format!("resolver = \"{}\"", bed.file.display());
    let mut mobile = bed.pair.mobile.stratad(&with_dns("auto", &resolver))?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    ensure!(bed.is_restored()?, "{}", bed.text()?);
    mobile.stop()?;
    ensure!(bed.is_restored()?, "{}", bed.text()?);
    Ok(())
}

// Works: failures
// Refuses: dns
#[lab::test]
fn a_file_that_cannot_be_written_does_not_cost_the_tunnel() -> Result<()> {
    let mut bed = Bed::new()?;
    let _gateway = bed.pair.start_gateway(Terms::PLAIN)?;
    bed.file = bed.file.join("below/a/file");
    let mut mobile = bed.pair.mobile.stratad(&bed.config("auto"))?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    mobile
        .process()
        .wait_for_log("cannot set the name servers of `dns`", DEADLINE)?;
    let status = mobile.strata("status")?;
    ensure!(status["status"]["errors"][0]["task"] == "dns", "{status}");
    let text = mobile.strata_text("status")?;
    ensure!(
        text.contains("error: cannot set the name servers"),
        "{text}"
    );
    let file = bed.pair.mobile.directory().join("strata.toml");
    let doctor = format!("doctor {}", file.display());
    let fix = status["status"]["errors"][0]["fix"].as_str();
    for told in [
        "cannot set the name servers of `dns`",
        fix.context("no fix")?,
    ] {
        mobile.refuses(&doctor, told)?;
    }
    mobile.stop()
}

// Works: dns
#[lab::test]
fn resolved_is_told_where_it_runs() -> Result<()> {
    let bed = Bed::new()?;
    let told = told(
        &bed,
        "resolvectl",
        "mount -t tmpfs none /run && mkdir -p /run/systemd/resolve",
    )?;
    ensure!(
        told == "dns strata0 10.8.0.53\ndomain strata0 ~.\nrevert strata0\n",
        "{told}"
    );
    Ok(())
}

// Works: dns
#[lab::test]
fn resolvconf_is_told_where_it_is_installed() -> Result<()> {
    let bed = Bed::new()?;
    let told = told(&bed, "resolvconf", "mount -t tmpfs none /run")?;
    let expected =
        "-d strata0.strata\n-a strata0.strata\nnameserver 10.8.0.53\n-d strata0.strata\n";
    ensure!(told == expected, "{told}");
    Ok(())
}

/// Returns all calls of a program of this name from start to stop, on a machine prepared by a
/// command.
fn told(bed: &Bed, program: &str, prepare: &str) -> Result<String> {
    let mobile = &bed.pair.mobile;
    let _gateway = bed.pair.start_gateway(Terms::PLAIN)?;
    let told = mobile.directory().join("told");
    let script = format!(
        "#!/bin/sh\necho \"$*\" >>{told}\ncat >>{told}\n",
        told = told.display()
    );
    let script = mobile.file(program, &script)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    let config = with_dns("auto", &format!("dns = [\"{SERVER}\"]"));
    let socket = mobile.directory().join("api.sock");
    let control = format!("[control]\nsocket = \"{}\"\n", socket.display());
    let config = mobile.file("strata.toml", &(config + &control))?;
    let start = format!(
        "{prepare} && PATH={}:$PATH exec {} --config {}",
        mobile.directory().display(),
        find_binary("stratad")?.display(),
        config.display()
    );
    let mut command = mobile.command("unshare");
    command.args(["--mount", "sh", "-c", &start]);
    let mut daemon = mobile.start("stratad", command)?;
    let asked = || Ok(fs::read_to_string(&told).unwrap_or_default());
    until("the servers behind the tunnel", DEADLINE, || {
        let asked: String = asked()?;
        Ok(asked.contains(SERVER).then_some(()))
    })?;
    daemon.wait_for_log("tunnel up", DEADLINE)?;
    let status = daemon.terminate(DEADLINE)?;
    ensure!(status.success(), "{status}: {}", daemon.log());
    asked()
}

/// Returns the mobile node's configuration with additional lines in `[tunnel]`.
fn with_dns(start: &str, lines: &str) -> String {
    let config = pair::mobile_config(Family::V4, Terms::PLAIN, start);
    plain::in_table(&config, "[tunnel]", lines)
}
