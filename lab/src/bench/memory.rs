//! Memory of a process, as the kernel counts it.

use anyhow::{Context, Result};
use std::fs;

/// Returns the octets of anonymous memory: neither code nor mapped files.
pub(super) fn memory(process: u32) -> Result<u64> {
    let file = format!("/proc/{process}/smaps_rollup");
    let text = fs::read_to_string(&file).with_context(|| format!("reading {file}"))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Anonymous:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib: u64 = kib.context("the kernel tells anonymous memory")?.parse()?;
    Ok(kib << 10)
}
