//! Which SPIs an end seals in, a node holds the keys of, and pass by.

use crate::daemon::Daemon;
use crate::pair;
use crate::wiretap::{Seen, Wiretap};
use anyhow::Result;
use serde_json::Value;
use std::collections::BTreeSet;

/// The SPIs of the slot that an end sends on, if it is this one, by what its `strata status` says: first the one that it
/// receives on.
pub fn sent_on(status: &Value, slot: &str) -> Option<[String; 2]> {
    let children = pair::children(status);
    let mut used = children.iter().filter(|child| {
        child["name"] == slot && child["waiting"] == false && child["draining"] == false
    });
    let child = used.next()?;
    let spi = |key: &str| child[key].as_str().map(str::to_owned);
    Some([spi("spi_in")?, spi("spi_out")?])
}

/// The same of both ends, by what they say, if they agree: of home first the one that it receives on.
pub fn sealed_in(home: &Value, mobile: &Value, slot: &str) -> Option<[String; 2]> {
    let [inward, outward] = sent_on(mobile, slot)?;
    sent_on(home, slot).filter(|home| *home == [outward, inward])
}

/// Whether a node holds the keys of both these.
///
/// # Errors
/// Those of [`Daemon::strata`].
pub fn holds(node: &Daemon, spis: &[String; 2]) -> Result<bool> {
    let held = held(node)?;
    Ok(spis.iter().all(|spi| held.contains(spi)))
}

/// The SPIs whose keys a node holds.
///
/// # Errors
/// Those of [`Daemon::strata`].
pub fn held(node: &Daemon) -> Result<BTreeSet<String>> {
    Ok(held_in(&node.strata("zones")?))
}

/// The same by what its `strata zones` says.
pub fn held_in(zones: &Value) -> BTreeSet<String> {
    let held = zones["zones"]["held"].as_array();
    let spis = held.into_iter().flatten().flat_map(|held| {
        let keys = ["spi_from_gateway", "spi_to_gateway"];
        keys.map(|key| held[key].as_str().unwrap_or_default().to_owned())
    });
    spis.collect()
}

/// The SPIs of ESP in UDP in what has passed by since this was last asked.
///
/// # Errors
/// Those of [`Wiretap::next`].
pub fn passed(tap: &Wiretap) -> Result<BTreeSet<String>> {
    Ok(tap.rest()?.iter().filter_map(spi).collect())
}

/// The SPI of ESP in UDP.
pub fn spi(seen: &Seen) -> Option<String> {
    let spi = *seen.esp()?.first_chunk()?;
    Some(format!("{:08x}", u32::from_be_bytes(spi)))
}
