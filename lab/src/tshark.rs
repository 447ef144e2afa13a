//! tshark, reading a capture with the keys that `strata keylog` has written.

use crate::host::Host;
use crate::process::DEADLINE;
use crate::testbed::find_command;
use anyhow::Result;
use std::path::Path;

/// Returns a field of the packets that pass a filter, one value per packet that has the field. The
/// capture is a file in the host's folder, `keys` is the folder of the keys. `preferences` are
/// Wireshark preferences in addition to the one that enables ESP decryption.
///
/// # Errors
/// tshark is missing, or refuses.
pub fn fields(
    host: &Host,
    keys: &Path,
    capture: &str,
    preferences: &[&str],
    filter: &str,
    field: &str,
) -> Result<Vec<String>> {
    let mut command = host.command(find_command("tshark", "tshark")?);
    command.env("WIRESHARK_CONFIG_DIR", keys);
    for preference in ["esp.enable_encryption_decode:TRUE"]
        .iter()
        .chain(preferences)
    {
        command.args(["-o", preference]);
    }
    command.args(["-r", capture, "-Y", filter, "-T", "fields", "-e", field]);
    let output = host.run_command(command, DEADLINE)?;
    let lines = output
        .lines()
        .filter(|line| !line.starts_with("Running as user"));
    Ok(lines.map(str::to_owned).collect())
}
