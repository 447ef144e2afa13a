//! Ends that encrypt only some of their packets.

use super::Shape;
use super::ends::{Ends, agreement, child_sa};
use anyhow::{Context, Result};
use crypto::Secret;
use esp::{Spd, Worker};
use model::{
    BesideSa, ChildSa, Class, Half, Keys, LevelChoice, LevelGrant, Signal, Span, Spi,
    ZoneAgreement, ZoneKey,
};

/// Returns a grant for all packets with ports, without an effective limit.
fn grant() -> LevelGrant {
    let class = Class {
        ports: Span::new(0, u16::MAX),
        ..Class::default()
    };
    LevelGrant {
        class,
        packets: u32::MAX,
        seconds: u32::MAX,
        renewals: 0,
    }
}

impl Ends {
    /// Encrypts every n-th packet in this shape, with 0 none, and only authenticates all others.
    /// Plain ESP has no such level, so it encrypts all.
    pub fn with_level(shape: Shape, every: u32) -> Result<Self> {
        let agreement = (shape != Shape::Plain).then(|| ZoneAgreement {
            level: Some(grant()),
            ..agreement(shape)
        });
        Self::with_workers(|end| {
            let mut sa = child_sa(0, end, 0, agreement.as_ref());
            sa.integrity = beside(&sa);
            let choice = LevelChoice {
                signal: Signal::Auto,
                every,
                ..LevelChoice::default()
            };
            let mut worker = Worker::new(Spd::default());
            worker.set_level(sa.peer, choice);
            worker.install(sa).context("an SA that the lab made")?;
            Ok(worker)
        })
    }
}

/// Returns the companion SA for an SA with a grant. Its SPIs differ from those of all other SAs.
fn beside(sa: &ChildSa<Secret>) -> Option<BesideSa<Secret>> {
    let agreed = sa.agreement.as_ref()?.integrity()?;
    let half = |spi: Spi| {
        let spi = Spi(spi.0 + 0x0100_0000);
        let key = agreed.zones.iter().map(|zone| ZoneKey {
            zone: zone.id,
            suite: zone.suite,
            key: Secret::new(vec![spi.0 as u8; zone.suite.keymat_len()]),
        });
        Half {
            spi,
            keys: Keys::Zoned(key.collect()),
            writers: None,
            injectors: None,
        }
    };
    Some(BesideSa {
        inbound: half(sa.inbound.spi),
        outbound: half(sa.outbound.spi),
    })
}
