//! The data plane bare: the code that `stratad` runs for each packet, in memory, without a device or a
//! socket, with replay window, policies and counters. Whoever times it does so in turns with what it
//! is compared with, so that what else a machine does meets all of it alike.
//!
//! Datagrams go from a server to mobile nodes (`segment`); an endpoint of each seals and opens them
//! (`Ends`); a licensed node between them reads what it may (`Node`); and the AEAD calls that this needs are
//! made alone (`Raw`). The ends and the node may have the algorithms of a paper in place of ours (`Legacy`), whose
//! calls are made alone as well (`Calls`).

mod ends;
mod legacy;
mod level;
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

/// Packets that are timed together. SNOOP keeps as many of a connection, and they fit a cache.
pub(crate) const BATCH: usize = 64;

/// What everything is sealed with.
const SUITE: Suite = Suite::Aes128Gcm16;
const KEY_LEN: usize = 16;

/// The composite SA of the first mobile node, and the window of all.
pub(crate) const CSA: CsaId = CsaId(1);
pub(crate) const WINDOW: u32 = 4096;

/// How packets are sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Plain ESP.
    Plain,
    /// Opaque: all of it is in the payload zone.
    One,
    /// Headers and the rest.
    Two,
    /// The IP header, the transport header, and the rest.
    Three,
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Plain, Self::One, Self::Two, Self::Three];

    /// What the zones of the SA are, of which an opaque packet has only the last.
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

/// The key of a zone under an SPI.
fn key(spi: u32, zone: u8) -> Secret {
    let spi = spi.to_be_bytes();
    let octets = (0..SUITE.keymat_len()).map(|place| spi[place % 4] ^ zone << 4 ^ place as u8);
    Secret::new(octets.collect())
}

/// The time of this thread for one packet of a batch.
pub(crate) fn each(work: impl FnOnce()) -> Result<Duration> {
    let begun = spent_here()?;
    work();
    Ok((spent_here()? - begun) / BATCH as u32)
}

/// What the time stamp counter counts for one packet of a batch.
pub(crate) fn cycles(work: impl FnOnce()) -> Result<f64> {
    let now = || os::cycles::now().context("this processor has no time stamp counter");
    let begun = now()?;
    work();
    Ok((now()? - begun) as f64 / BATCH as f64)
}
