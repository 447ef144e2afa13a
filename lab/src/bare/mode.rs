//! Ends whose SA is in a mode of its own.

use super::BATCH;
use super::ends::{Ends, child_sa};
use anyhow::{Context, Result};
use esp::{Packet, Spd, Worker};
use model::{ChildSa, Mode};
use wire::checksum::Checksum;

impl Ends {
    /// Creates ends with one SA of plain ESP in this mode, between devices with checksum offload.
    pub fn in_mode(mode: Mode) -> Result<Self> {
        let worker = |end| {
            let sa = ChildSa {
                mode,
                ..child_sa(0, end, 0, None)
            };
            let mut worker = Worker::new(Spd::default());
            worker.install(sa).context("an SA that the lab made")?;
            Ok::<_, anyhow::Error>(worker)
        };
        Ok(Self {
            sender: worker(0)?,
            receiver: worker(1)?,
            batch: vec![Packet::with_capacity(2000); BATCH],
            checksum: Checksum::Left,
        })
    }
}
