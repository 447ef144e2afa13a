//! Selection of packets that may be sent unencrypted, and acceptance of such packets (DESIGN
//! section 3, "dynamic levels").
//!
//! The sender decides for each packet. Packets that the grant covers use a companion SA, which
//! authenticates but does not encrypt; every n-th of them, if configured, is encrypted anyway. All
//! others are sent in zones as usual. An operator may select another level, but only an agreed one.
//! The receiver checks each authentic packet of the companion SA against the grant, and drops it if
//! the grant does not cover it.
//!
//! No packet is lost at the end of a grant. Packets are counted by sequence number, so both ends
//! agree on the last one. The time limit starts with the first packet. The receiver starts it on
//! arrival, later than the sender, and the sender stops an eighth early to allow for packets that
//! take longer than the first.

use crate::drop::DropReason;
use crate::inbound::Inbound;
use crate::key::Unusable;
use crate::outbound::Outbound;
use crate::pair::Pair;
use crypto::Secret;
use model::{ChildSa, Instant, Level, LevelChoice, LevelGrant, Signal};
use std::time::Duration;
use wire::class;

/// Upper limit of the margin by which the sender stops before the receiver. No packet is in transit
/// for longer.
const LONGEST_UNDER_WAY: Duration = Duration::from_secs(10);

/// Builds both directions of the companion SA for unencrypted packets, if one was agreed.
pub(crate) fn beside(
    sa: &ChildSa<Secret>,
    pair: Option<Pair>,
) -> Result<Option<(Opening, Sealing)>, Unusable> {
    let agreement = sa.agreement.as_ref();
    let agreed = agreement.and_then(|agreement| agreement.integrity());
    let grant = agreement.and_then(|agreement| agreement.level);
    match (&sa.integrity, &agreed, grant) {
        (None, None, None) => Ok(None),
        (Some(beside), Some(_), Some(grant)) => {
            let inbound = Inbound::new(&beside.inbound, agreed.as_ref())?;
            let outbound = Outbound::new(&beside.outbound, agreed.as_ref())?;
            Ok(Some((
                Opening {
                    inbound,
                    bound: Bound::new(grant, Duration::ZERO),
                    told: false,
                },
                Sealing::new(outbound.between(pair), grant),
            )))
        }
        _ => Err(Unusable::Zones),
    }
}

/// A grant, with the time limit that its first packet starts.
struct Bound {
    grant: LevelGrant,
    /// Duration of the grant from the first packet.
    lasts: Duration,
    until: Option<Instant>,
}

impl Bound {
    fn new(grant: LevelGrant, margin: Duration) -> Self {
        let lasts = Duration::from_secs(grant.seconds.into()).saturating_sub(margin);
        Self {
            grant,
            lasts,
            until: None,
        }
    }

    /// Returns true if a packet with this number is within the grant now. The first call starts the
    /// time limit.
    fn has(&mut self, seq: u32, now: Instant) -> bool {
        let until = *self.until.get_or_insert(now + self.lasts);
        seq <= self.grant.packets && now < until
    }
}

/// The opening direction of the companion SA.
pub(crate) struct Opening {
    pub inbound: Inbound,
    bound: Bound,
    /// True if a refusal was reported.
    told: bool,
}

impl Opening {
    /// Checks if the grant covers the datagram of an authentic packet.
    pub fn admit(&mut self, seq: u32, datagram: &[u8], now: Instant) -> Result<(), DropReason> {
        let within = self.bound.has(seq, now);
        if !class::covers(&self.bound.grant.class, datagram) {
            return Err(DropReason::LevelClass);
        }
        match within {
            true => Ok(()),
            false => Err(DropReason::LevelSpent),
        }
    }

    /// Returns true on the first call only, to report the first refusal.
    pub fn tell(&mut self) -> bool {
        !std::mem::replace(&mut self.told, true)
    }
}

/// The sealing direction of the companion SA.
pub(crate) struct Sealing {
    pub outbound: Outbound,
    bound: Bound,
    /// Datagrams of the granted class.
    counted: u32,
    /// True if the end of the grant was reported.
    told: bool,
}

/// The decision on a datagram.
#[derive(Clone, Copy)]
pub(crate) enum Choice {
    Encrypted,
    /// Encrypted because the grant is used up. The first occurrence is reported.
    Spent {
        first: bool,
    },
    InClear,
}

impl Sealing {
    fn new(outbound: Outbound, grant: LevelGrant) -> Self {
        let eighth = Duration::from_secs(grant.seconds.into()) / 8;
        Self {
            outbound,
            bound: Bound::new(grant, eighth.min(LONGEST_UNDER_WAY)),
            counted: 0,
            told: false,
        }
    }

    /// Decides whether a datagram is sent unencrypted.
    pub fn choose(&mut self, datagram: &[u8], choice: LevelChoice, now: Instant) -> Choice {
        let class = &self.bound.grant.class;
        // The IP header is not sent in this mode, so the receiver could not check a DSCP.
        let lost = self.outbound.is_bare() && class.dscp.is_some();
        if lost || !class::covers(class, datagram) {
            return Choice::Encrypted;
        }
        let may = match choice.signal {
            Signal::Auto => !self.is_turn(choice.every),
            Signal::Only(level) => level == Level::Integrity,
        };
        let next = self.used().saturating_add(1);
        if !may {
            Choice::Encrypted
        } else if self.bound.has(next, now) {
            Choice::InClear
        } else {
            let first = !std::mem::replace(&mut self.told, true);
            Choice::Spent { first }
        }
    }

    /// Returns the packets sealed. Composite SAs have no extended numbers, so 32 bits suffice.
    fn used(&self) -> u32 {
        self.outbound.used() as u32
    }

    /// Counts a datagram, and returns true for every n-th one, which is encrypted anyway.
    fn is_turn(&mut self, every: u32) -> bool {
        self.counted = self.counted.wrapping_add(1);
        self.counted.checked_rem(every) == Some(0)
    }
}

/// The unencrypted traffic of an SA, and the remaining grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelStatus {
    /// The agreed grant.
    pub grant: LevelGrant,
    /// Packets sealed.
    pub sealed: u32,
    /// Packets opened.
    pub opened: u64,
    /// The end of the time limit for sealing, once it has started.
    pub until: Option<Instant>,
}

impl LevelStatus {
    /// Returns the packets that may still be sealed.
    pub fn packets_left(&self) -> u32 {
        self.grant.packets.saturating_sub(self.sealed)
    }

    /// Returns the seconds left for sealing.
    pub fn seconds_left(&self, now: Instant) -> u64 {
        let all = u64::from(self.grant.seconds);
        self.until.map_or(all, |until| until.since(now).as_secs())
    }
}

/// Returns the state of the companion SA.
pub(crate) fn status(opening: &Opening, sealing: &Sealing) -> LevelStatus {
    LevelStatus {
        grant: sealing.bound.grant,
        sealed: sealing.used(),
        opened: opening.inbound.traffic.packets,
        until: sealing.bound.until,
    }
}
