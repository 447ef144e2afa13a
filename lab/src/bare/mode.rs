//! Ends whose SA is in a mode of its own.

use super::ends::{Ends, child_sa};
use anyhow::{Context, Result};
use esp::{Spd, Worker};
use model::{ChildSa, Mode};

impl Ends {
    /// Creates ends with one SA of plain ESP in this mode, between devices with checksum offload.
    pub fn in_mode(mode: Mode) -> Result<Self> {
        let ends = Self::with_workers(|end| {
            let sa = ChildSa {
                mode,
                ..child_sa(0, end, 0, None)
            };
            let mut worker = Worker::new(Spd::default());
            worker.install(sa).context("an SA that the lab made")?;
            Ok(worker)
        })?;
        Ok(ends.between_devices())
    }
}
