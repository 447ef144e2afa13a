//! The bare data plane: the code that `stratad` runs for each packet, in memory, without a device
//! or socket, but with replay window, policies and counters. Benchmarks time it in turns with the
//! code that it is compared with, so that other load on the machine affects both alike.
//!
//! Datagrams go from a server to mobile nodes (`segment`). An endpoint on each side seals or opens
//! them (`Ends`), a licensed node between them reads its zones (`Node`), and the AEAD calls that
//! this needs are timed alone (`Raw`). The ends and the node may use the algorithms of a paper in
//! place of ours (`Legacy`); their calls are timed alone as well (`Calls`).

mod ends;
mod legacy;
mod level;
mod mode;
mod node;
mod raw;
pub(crate) mod segment;

pub(crate) use ends::Ends;
pub(crate) use legacy::{Calls, Legacy};
pub(crate) use node::Node;
pub(crate) use raw::{Alone, Raw};

use crate::bench::spent_here;
use anyhow::{Context, Result};
use crypto::Secret;
use model::{CsaId, Suite, ZoneSelector};
use serde::Serialize;
use std::time::Duration;

/// Packets that are timed together. SNOOP caches as many per connection, and they fit into the
/// processor's cache.
pub(crate) const BATCH: usize = 64;

/// Suite of all SAs.
const SUITE: Suite = Suite::Aes128Gcm16;
const KEY_LEN: usize = 16;

/// The composite SA of the first mobile node, and the replay window of all, in packets.
pub(crate) const CSA: CsaId = CsaId(1);
pub(crate) const WINDOW: u32 = 4096;

/// Division of a packet into zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Plain ESP.
    Plain,
    /// Opaque: the whole packet is in the payload zone.
    One,
    /// Headers and the rest.
    Two,
    /// IP header, transport header, and the rest.
    Three,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Self; 4] = [Self::Plain, Self::One, Self::Two, Self::Three];

    /// Returns the zones of the SA. An opaque packet has only the last of them.
    const fn selectors(self) -> &'static [ZoneSelector] {
        match self {
            Self::Plain => &[],
            Self::One | Self::Two => &[ZoneSelector::IpTransport, ZoneSelector::Rest],
            Self::Three => &[
                ZoneSelector::Ip,
                ZoneSelector::Transport,
                ZoneSelector::Rest,
            ],
        }
    }
}

/// Returns the key of a zone under an SPI.
fn key(spi: u32, zone: u8) -> Secret {
    let spi = spi.to_be_bytes();
    let octets = (0..SUITE.keymat_len()).map(|place| spi[place % 4] ^ zone << 4 ^ place as u8);
    Secret::new(octets.collect())
}

/// Returns the processor time of this thread per packet of a batch.
pub(crate) fn each(work: impl FnOnce()) -> Result<Duration> {
    let begun = spent_here()?;
    work();
    Ok((spent_here()? - begun) / BATCH as u32)
}

/// Returns the cycles of the time stamp counter per packet of a batch.
pub(crate) fn cycles(work: impl FnOnce()) -> Result<f64> {
    let now = || os::cycles::now().context("this processor has no time stamp counter");
    let begun = now()?;
    work();
    Ok((now()? - begun) as f64 / BATCH as f64)
}
