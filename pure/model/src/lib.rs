//! Types that all other crates share: time, paths, identities, traffic selectors, zones and the
//! parameters of security associations.
//!
//! The crate compares and counts values. It does no I/O and defines no key type: in generic types,
//! `K` is the key material of its holder, complete at an endpoint and partial at a licensed node.

mod allowance;
mod bucket;
mod crowd;
mod crowding;
mod dscp;
mod esp_suite;
mod features;
mod frame;
mod host_name;
mod identity;
mod lease;
mod level;
mod path;
mod peer;
mod sa;
mod selector;
mod shared;
mod sizes;
mod suite;
mod time;
mod unique;
mod unknown_peers;
mod wildcard;
mod zone;
mod zone_suite;

pub use allowance::Allowance;
pub use bucket::Bucket;
pub use crowd::{Crowd, Entry, Room, site_of};
pub use crowding::most_crowded;
pub use dscp::Dscp;
pub use esp_suite::EspSuite;
pub use features::Features;
pub use frame::Frame;
pub use host_name::is_host_name;
pub use identity::Identity;
pub use lease::{InnerAddresses, Lease, LeaseChange};
pub use level::{Class, Level, LevelChoice, LevelGrant, Pictures, Signal, UnknownSignal};
pub use path::{Carrier, Df, Encapsulation, Path, Stray, Transmit};
pub use peer::{PeerId, PeerNames};
pub use sa::{
    BesideSa, ChildSa, ChildSaId, CsaId, Exchanges, Grant, GrantHalf, Group, Half, IkeSaId, Kem,
    Keys, MOST_PATHS, MOST_RESOURCES, Mode, NODE_SUITE, Onward, Spi, ZoneKey,
};
pub use selector::{Breadth, Flow, Selectors, TrafficSelector, one_pair};
pub use shared::{Shared, Shares};
pub use sizes::Sizes;
pub use suite::{Sha2, Suite};
pub use time::{Deadline, Instant};
pub use unique::Unique;
pub use unknown_peers::{Origin, UnknownPeers};
pub use wildcard::Wildcard;
pub use zone::{
    Licence, MapKind, Right, Run, Span, UnknownZone, Zone, ZoneAgreement, ZoneId, ZoneSelector,
};
pub use zone_suite::{Hmac, ZoneSuite};
