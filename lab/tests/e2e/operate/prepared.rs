//! Files for keys and evidence that another user of the machine has prepared.

use anyhow::{Context, Result, ensure};
use lab::pair::{DEADLINE, GATEWAY, Pair};
use lab::plain;
use lab::transfer::transfer;
use nix::unistd::chown;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

/// Another user.
const NOBODY: u32 = 65_534;

/// The table of a capture's keys.
const TABLE: &str = "ikev2_decryption_table";

/// What nobody prepares: a file of theirs, a file that all may read, a link.
// Refuses: keylog
// Weakness: 204
#[lab::test]
fn keys_go_to_no_file_that_somebody_else_has_prepared() -> Result<()> {
    let pair = Pair::new("prepared")?;
    let [mobile, gateway] = plain::configs("", "");
    let tunnel = plain::start_with(&pair, &[mobile, gateway])?;
    let folder = pair.mobile.directory().join("keys");
    let file = folder.join(TABLE);
    let bait = pair.mobile.directory().join("bait");
    for (what, says) in [
        ("of nobody", "belongs to user 65534"),
        ("for all", "other users have access to it (mode 0666)"),
        ("link", "is a symbolic link"),
    ] {
        fs::create_dir(&folder)?;
        fs::set_permissions(&folder, Permissions::from_mode(0o777))?;
        match what {
            "link" => symlink(&bait, &file)?,
            _ => fs::write(&file, "")?,
        }
        if what == "of nobody" {
            chown(&file, Some(NOBODY.into()), None)?;
        }
        if what == "for all" {
            fs::set_permissions(&file, Permissions::from_mode(0o666))?;
        }
        let keylog = tunnel
            .mobile
            .strata_text(&format!("keylog {}", folder.display()));
        let refused = format!("{:#}", keylog.err().context("it is refused")?);
        ensure!(
            refused.contains(says) && refused.contains(TABLE),
            "{what}: {refused}"
        );
        let written = fs::read_to_string(&file).unwrap_or_default();
        ensure!(written.is_empty() && !bait.exists(), "{what}: {written}");
        fs::remove_dir_all(&folder)?;
    }
    // Without anything there, the same folder has the keys.
    tunnel
        .mobile
        .strata_text(&format!("keylog {}", folder.display()))?;
    tunnel.up()?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 10_000)?;
    ensure!(fs::read_to_string(&file)?.lines().count() == 1);
    let mode = fs::metadata(&file)?.permissions().mode() & 0o777;
    ensure!(mode == 0o600, "{mode:o}");
    Ok(())
}

/// Evidence may be read by others, not be written by them.
// Refuses: audit
#[lab::test]
fn evidence_goes_to_no_file_that_somebody_else_can_write() -> Result<()> {
    let pair = Pair::new("prepared")?;
    let file = pair.mobile.directory().join("audit.jsonl");
    fs::write(&file, "")?;
    fs::set_permissions(&file, Permissions::from_mode(0o666))?;
    let audit = format!("[audit]\nfile = \"{}\"\nrequired = true\n", file.display());
    let [mobile, gateway] = plain::configs("", "");
    let tunnel = plain::start_with(&pair, &[format!("{mobile}{audit}"), gateway])?;
    let is_told = |status: &Value| status.to_string().contains("(mode 0666)");
    tunnel.mobile.wait_until("status", DEADLINE, is_told)?;
    // Others may read what the operator lets them read.
    fs::set_permissions(&file, Permissions::from_mode(0o640))?;
    tunnel.mobile.strata("reload")?;
    tunnel
        .mobile
        .wait_until("status", DEADLINE, |status| !is_told(status))?;
    Ok(())
}
