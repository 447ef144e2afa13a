//! Which packets go without encryption, and which are accepted so (DESIGN section 3, "dynamic levels").
//!
//! The sender chooses for each packet. What the grant covers goes on the SA beside whose packets are only
//! authenticated, but for every so many-th, and all else in zones as ever; an operator may want another level,
//! and gets none that was not agreed on. The receiver asks of each packet of that SA, once it is
//! authentic, whether the grant covers it, and drops it otherwise.
//!
//! Nothing is lost where the grant ends. Packets are counted by their numbers, which both ends see, so that
//! the last one is the same to both. Seconds begin with the first packet, at the receiver when that comes,
//! which is after it was sent; and the sender stops an eighth early for those that take longer than it did.

use crate::drop::DropReason;
use crate::inbound::Inbound;
use crate::key::Unusable;
use crate::outbound::Outbound;
use crate::pair::Pair;
use crypto::Secret;
use model::{ChildSa, Instant, Level, LevelChoice, LevelGrant, Signal};
use std::time::Duration;
use wire::class;

/// The sender stops no earlier than this before the receiver does: nothing is under way for so long.
const LONGEST_UNDER_WAY: Duration = Duration::from_secs(10);

/// Both directions of the SA beside for what goes without encryption.
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

/// A grant, and since when it is used.
struct Bound {
    grant: LevelGrant,
    /// For how long, from the first packet on.
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

    /// Whether a packet of this number is within it now. The first one begins its time.
    fn has(&mut self, seq: u32, now: Instant) -> bool {
        let until = *self.until.get_or_insert(now + self.lasts);
        seq <= self.grant.packets && now < until
    }
}

/// The opening direction of the SA beside.
pub(crate) struct Opening {
    pub inbound: Inbound,
    bound: Bound,
    /// Whether a refusal was told.
    told: bool,
}

impl Opening {
    /// Whether the datagram of an authentic packet may have come without encryption.
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

    /// Whether this is the first refusal.
    pub fn tell(&mut self) -> bool {
        !std::mem::replace(&mut self.told, true)
    }
}

/// The sealing direction of the SA beside.
pub(crate) struct Sealing {
    pub outbound: Outbound,
    bound: Bound,
    /// Datagrams of the class.
    counted: u32,
    /// Whether the end of the grant was told.
    told: bool,
}

/// What becomes of a datagram.
#[derive(Clone, Copy)]
pub(crate) enum Choice {
    Encrypted,
    /// Encrypted, though it need not be: there is nothing left of the grant. The first time this is told.
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

    /// Whether a datagram goes without encryption.
    pub fn choose(&mut self, datagram: &[u8], choice: LevelChoice, now: Instant) -> Choice {
        let class = &self.bound.grant.class;
        // The receiver would not find a class of service that stays behind.
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

    /// Packets sealed. Their numbers are not extended, for they are in a zone.
    fn used(&self) -> u32 {
        self.outbound.used() as u32
    }

    /// Whether this is the one of so many that is encrypted all the same.
    fn is_turn(&mut self, every: u32) -> bool {
        self.counted = self.counted.wrapping_add(1);
        self.counted.checked_rem(every) == Some(0)
    }
}

/// What goes and came without encryption on an SA, and what is left of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelStatus {
    /// What was agreed on.
    pub grant: LevelGrant,
    /// Packets sealed.
    pub sealed: u32,
    /// Packets opened.
    pub opened: u64,
    /// Until when it may be sealed, once that has begun.
    pub until: Option<Instant>,
}

impl LevelStatus {
    /// Packets that may still be sealed.
    pub fn packets_left(&self) -> u32 {
        self.grant.packets.saturating_sub(self.sealed)
    }

    /// For how many seconds they may.
    pub fn seconds_left(&self, now: Instant) -> u64 {
        let all = u64::from(self.grant.seconds);
        self.until.map_or(all, |until| until.since(now).as_secs())
    }
}

/// How the SA beside stands.
pub(crate) fn status(opening: &Opening, sealing: &Sealing) -> LevelStatus {
    LevelStatus {
        grant: sealing.bound.grant,
        sealed: sealing.used(),
        opened: opening.inbound.traffic.packets,
        until: sealing.bound.until,
    }
}
