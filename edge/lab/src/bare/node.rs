//! A licensed node.

use super::ends::{back, forth};
use super::{CSA, SUITE, Shape, WINDOW, each, key};
use anyhow::Result;
use esp::{Licensed, NotOpened, Scratch};
use model::{Grant, GrantHalf, Spi, ZoneId};
use std::time::Duration;

/// One that may read the first zone of the first SA.
pub(crate) struct Node {
    licensed: Licensed,
    scratch: Scratch,
}

impl Node {
    /// `shape` has zones.
    pub fn new(shape: Shape) -> Result<Self> {
        let half = |spi| GrantHalf {
            spi: Spi(spi),
            zones: vec![(ZoneId::DESIGNATED, SUITE.into(), key(spi, 1))],
        };
        let zones = shape.selectors().len();
        let mut licensed = Licensed::new();
        licensed.install(Grant {
            csa: CSA,
            line: CSA,
            grant: 1,
            payload_zone: ZoneId(zones as u8),
            suites: vec![SUITE.into(); zones],
            window: WINDOW,
            lifetime: Duration::from_secs(60),
            from_gateway: half(forth(0)),
            to_gateway: half(back(0)),
        })?;
        let scratch = Scratch::new();
        Ok(Self { licensed, scratch })
    }

    /// Opens what it may of each packet: how long that took, and of how many it read anything.
    pub fn open(&mut self, sealed: &[Vec<u8>]) -> Result<(Duration, usize)> {
        let mut read = 0;
        let time = each(|| {
            for packet in sealed {
                read += usize::from(self.reads(packet) == Ok(true));
            }
        })?;
        Ok((time, read))
    }

    fn reads(&mut self, packet: &[u8]) -> Result<bool, NotOpened> {
        let view = self.licensed.open(packet, &mut self.scratch)?;
        Ok(view.zone(ZoneId::DESIGNATED).is_some())
    }
}
