//! The words every other crate shares: time, paths, identities, selectors, zones and the
//! parameters of a security association. No logic beyond comparing and counting them, no I/O, no keys of its
//! own (`K` is whatever a holder has: full keys at an endpoint, a share at a licensed node).

mod crowd;
mod dscp;
mod frame;
mod identity;
mod lease;
mod level;
mod path;
mod sa;
mod selector;
mod sizes;
mod strangers;
mod time;
mod zone;
mod zone_suite;

pub use crowd::{Crowd, Entry, Room, site_of};
pub use dscp::Dscp;
pub use frame::Frame;
pub use identity::Identity;
pub use lease::{InnerAddresses, Lease, LeaseChange};
pub use level::{Class, Level, LevelChoice, LevelGrant, Pictures, Signal, UnknownSignal};
pub use path::{Carrier, Encapsulation, Path, Transmit};
pub use sa::{
    BesideSa, ChildSa, ChildSaId, CsaId, Exchanges, Grant, GrantHalf, Group, Half, IkeSaId, Kem,
    Keys, MOST_RESOURCES, Mode, NODE_SUITE, Onward, Sha2, Spi, Suite, ZoneKey,
};
pub use selector::{Flow, TrafficSelector, one_pair};
pub use sizes::Sizes;
pub use strangers::{Origin, Strangers};
pub use time::{Deadline, Instant};
pub use zone::{
    Licence, MapKind, Right, Run, Span, UnknownZone, Zone, ZoneAgreement, ZoneId, ZoneSelector,
};
pub use zone_suite::{Hmac, ZoneSuite};
