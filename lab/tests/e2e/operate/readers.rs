//! The socket for a group: another user of the machine reads, and changes nothing.

use anyhow::{Context, Result, ensure};
use lab::host::Host;
use lab::pair::{DEADLINE, Pair, children};
use lab::plain;
use lab::testbed::find_binary;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A group of every Debian, and its number.
const GROUP: (&str, u32) = ("games", 60);

/// A user without any right.
const NOBODY: u32 = 65_534;

/// A folder that every user can reach, with the command and the sockets.
struct Open(PathBuf);

impl Open {
    fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("strata-readers-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        fs::set_permissions(&folder, Permissions::from_mode(0o755))?;
        fs::copy(find_binary("strata")?, folder.join("strata"))?;
        Ok(Self(folder))
    }

    fn socket(&self) -> String {
        self.0.join("strata.sock").display().to_string()
    }

    /// Runs `strata` as a user without rights, who is a member of a group.
    fn strata(&self, host: &Host, group: u32, words: &str) -> Result<String> {
        host.run(&format!(
            "setpriv --reuid {NOBODY} --regid {NOBODY} --groups {group} {}/strata --socket {} {words}",
            self.0.display(),
            self.socket(),
        ))
    }

    /// Runs `strata` as [`Self::strata`], and returns how it is refused.
    fn refused(&self, host: &Host, group: u32, words: &str) -> Result<String> {
        let refused = self.strata(host, group, words).err();
        refused
            .map(|error| format!("{error:#}"))
            .with_context(|| format!("`{words}` is allowed"))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

// Works: readers
// Refuses: readers
#[lab::test]
fn a_member_of_the_group_reads_and_changes_nothing_and_others_do_neither() -> Result<()> {
    let open = Open::new()?;
    let pair = Pair::new("readers")?;
    let control = format!(
        "\n[control]\nsocket = \"{}\"\ngroup = \"{}\"\n",
        open.socket(),
        GROUP.0
    );
    let [mobile, gateway] = plain::configs("", "");
    let tunnel = plain::start_with(&pair, &[mobile, format!("{gateway}{control}")])?;
    tunnel.up()?;
    let host = &pair.gateway;
    for words in [
        "status", "paths", "zones", "flows", "leases", "sessions", "version",
    ] {
        let answer = open.strata(host, GROUP.1, &format!("{words} --json"))?;
        let answer: Value = serde_json::from_str(&answer)?;
        ensure!(answer["error"].is_null(), "{words}: {answer}");
    }
    let metrics = open.strata(host, GROUP.1, "metrics")?;
    ensure!(metrics.contains("strata_peers_up 1\n"), "{metrics}");
    let explained = open.strata(host, GROUP.1, "explain alice")?;
    ensure!(explained.contains("alice"), "{explained}");
    for words in [
        "up",
        "up --wait",
        "down",
        "down alice",
        "rekey alice",
        "rekey alice --ike",
        "reauth alice",
        "redirect alice 192.0.2.9",
        "move alice",
        "level alice opaque",
        "ping alice",
        "sessions --end alice",
        "sessions --end-all",
        "keylog /tmp",
        "keylog off",
        "reload",
        "reload --dry-run",
    ] {
        let refused = open.refused(host, GROUP.1, words)?;
        let expected = "members of the `group` in [control] may only read";
        ensure!(refused.contains(expected), "{words}: {refused}");
        ensure!(
            refused.contains("run it as the user of stratad, usually root"),
            "{refused}"
        );
    }
    // Negative control: a user outside the group, who is told who may.
    for words in ["status", "down"] {
        let refused = open.refused(host, NOBODY, words)?;
        ensure!(refused.contains("not allowed to use"), "{words}: {refused}");
        ensure!(
            refused.contains("members of the `group` in [control] may read"),
            "{refused}"
        );
    }
    // Nothing has changed.
    let status = tunnel.gateway.strata("status")?;
    ensure!(children(&status).len() == 1, "{status}");
    tunnel
        .gateway
        .wait_until("status", DEADLINE, lab::pair::is_up)?;
    let mode =
        |path: &str| Ok::<_, anyhow::Error>(fs::metadata(path)?.permissions().mode() & 0o777);
    ensure!(mode(&open.socket())? == 0o600);
    ensure!(mode(&open.socket().replace(".sock", ".read.sock"))? == 0o660);
    Ok(())
}

// Refuses: readers
#[lab::test]
fn a_group_that_does_not_exist_is_refused() -> Result<()> {
    let pair = Pair::new("readers")?;
    let [_, gateway] = plain::configs("", "");
    let open = Open::new()?;
    let control = format!(
        "\n[control]\nsocket = \"{}\"\ngroup = \"nowhere\"\n",
        open.socket()
    );
    plain::give_keys(&pair)?;
    let log = match pair.gateway.stratad(&format!("{gateway}{control}")) {
        Ok(_) => anyhow::bail!("stratad started"),
        Err(error) => format!("{error:#}"),
    };
    ensure!(log.contains("this machine has no group nowhere"), "{log}");
    ensure!(log.contains("groupadd --system nowhere"), "{log}");
    Ok(())
}
