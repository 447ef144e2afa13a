//! Memory of a process, as the kernel counts it.

use anyhow::{Context, Result};
use std::fs;

/// Returns the octets of anonymous memory: neither code nor mapped files.
pub(super) fn memory(process: u32) -> Result<u64> {
    octets(process, "smaps_rollup", "Anonymous:")
}

/// Returns the largest number of octets so far, with code and mapped files.
pub(super) fn peak(process: u32) -> Result<u64> {
    octets(process, "status", "VmHWM:")
}

/// Reads a number of KiB from a file of `/proc`.
fn octets(process: u32, file: &str, name: &str) -> Result<u64> {
    let file = format!("/proc/{process}/{file}");
    let text = fs::read_to_string(&file).with_context(|| format!("reading {file}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib: u64 = kib
        .with_context(|| format!("{file} lacks {name}"))?
        .parse()?;
    Ok(kib << 10)
}
