//! SPIs that an end seals in, that a node holds keys for, or that pass a tap.

use crate::daemon::Daemon;
use crate::pair;
use crate::wiretap::{Seen, Wiretap};
use anyhow::Result;
use serde_json::Value;
use std::collections::BTreeSet;

/// Returns the SPIs, inbound first, of the child SA of this slot that an end sends on, by its
/// `strata status`. `None` if the end does not send on this slot.
pub fn sent_on(status: &Value, slot: &str) -> Option<[String; 2]> {
    let children = pair::children(status);
    let mut used = children.iter().filter(|child| {
        child["name"] == slot && child["waiting"] == false && child["draining"] == false
    });
    let child = used.next()?;
    let spi = |key: &str| child[key].as_str().map(str::to_owned);
    Some([spi("spi_in")?, spi("spi_out")?])
}

/// Returns the same SPIs if both ends agree on them, seen from home: the inbound SPI first.
pub fn sealed_in(home: &Value, mobile: &Value, slot: &str) -> Option<[String; 2]> {
    let [inward, outward] = sent_on(mobile, slot)?;
    sent_on(home, slot).filter(|home| *home == [outward, inward])
}

/// Returns true if a node holds the keys of both SPIs.
///
/// # Errors
/// Those of [`Daemon::strata`].
pub fn holds(node: &Daemon, spis: &[String; 2]) -> Result<bool> {
    let held = held(node)?;
    Ok(spis.iter().all(|spi| held.contains(spi)))
}

/// Returns the SPIs whose keys a node holds.
///
/// # Errors
/// Those of [`Daemon::strata`].
pub fn held(node: &Daemon) -> Result<BTreeSet<String>> {
    Ok(held_in(&node.strata("zones")?))
}

/// Returns the SPIs whose keys a node holds, by its `strata zones`.
pub fn held_in(zones: &Value) -> BTreeSet<String> {
    let held = zones["zones"]["held"].as_array();
    let spis = held.into_iter().flatten().flat_map(|held| {
        let keys = ["spi_from_gateway", "spi_to_gateway"];
        keys.map(|key| held[key].as_str().unwrap_or_default().to_owned())
    });
    spis.collect()
}

/// Returns the SPIs of the ESP-in-UDP packets that passed the tap since the last call.
///
/// # Errors
/// Those of [`Wiretap::next`].
pub fn passed(tap: &Wiretap) -> Result<BTreeSet<String>> {
    Ok(tap.rest()?.iter().filter_map(spi).collect())
}

/// Returns the SPI of an ESP packet in UDP, in hexadecimal.
pub fn spi(seen: &Seen) -> Option<String> {
    let spi = *seen.esp()?.first_chunk()?;
    Some(format!("{:08x}", u32::from_be_bytes(spi)))
}
