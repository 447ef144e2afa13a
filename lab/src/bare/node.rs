//! A licensed node.

use super::ends::{back, forth};
use super::{CSA, Legacy, SUITE, Shape, WINDOW, cycles, each, key};
use anyhow::Result;
use esp::{Licensed, NotOpened, Scratch};
use model::{Grant, GrantHalf, MapKind, Spi, ZoneId};
use std::time::Duration;

/// A licensed node that may read the first zone of the first SA.
pub(crate) struct Node {
    licensed: Licensed,
    scratch: Scratch,
}

impl Node {
    /// Creates a node. `shape` must have zones.
    pub fn new(shape: Shape) -> Result<Self> {
        let half = |spi| GrantHalf {
            spi: Spi(spi),
            zones: vec![(ZoneId::DESIGNATED, SUITE.into(), key(spi, 1))],
            overlay: None,
            injection: None,
        };
        let zones = shape.selectors().len();
        let mut licensed = Licensed::new();
        licensed.install(Grant {
            csa: CSA,
            line: CSA,
            grant: 1,
            payload_zone: ZoneId(zones as u8),
            suites: vec![SUITE.into(); zones],
            map: MapKind::Changeable,
            window: WINDOW,
            lifetime: Duration::from_secs(60),
            onward: None,
            from_gateway: half(forth(0)),
            to_gateway: half(back(0)),
        })?;
        let scratch = Scratch::new();
        Ok(Self { licensed, scratch })
    }

    /// Creates a node with the algorithms of a paper in all zones.
    pub fn with_legacy(legacy: &Legacy) -> Result<Self> {
        let mut node = Self::new(Shape::Two)?;
        node.licensed.make_foreign(CSA, |zone| legacy.cipher(zone));
        Ok(node)
    }

    /// Opens the licensed zones of each packet. Returns the time per packet, and the number of
    /// packets with a zone that was read.
    pub fn open(&mut self, sealed: &[Vec<u8>]) -> Result<(Duration, usize)> {
        self.measure(sealed, |work| each(work))
    }

    /// Opens the licensed zones of each packet, as [`Self::open`] does, with the time in cycles.
    pub fn open_in_cycles(&mut self, sealed: &[Vec<u8>]) -> Result<(f64, usize)> {
        self.measure(sealed, |work| cycles(work))
    }

    fn measure<T>(
        &mut self,
        sealed: &[Vec<u8>],
        each: impl Fn(&mut dyn FnMut()) -> Result<T>,
    ) -> Result<(T, usize)> {
        let mut read = 0;
        let time = each(&mut || {
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
