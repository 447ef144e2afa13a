//! Fuzz targets, listed in [`READERS`] and `ENGINES`. Both a coverage-guided fuzzer and the stable
//! runner in `src/bin/stable.rs` call them.
//!
//! Targets in [`READERS`] depend on `wire` only. The others are behind the feature `engines`, so
//! that the readers can be built without them.

#[cfg(feature = "engines")]
#[path = "../../pure/esp/tests/data_plane/bench.rs"]
#[allow(dead_code, reason = "shared with the tests of esp")]
mod bench;
#[cfg(feature = "engines")]
#[path = "../../pure/node/tests/insider/bystander.rs"]
pub mod bystander;
#[cfg(feature = "engines")]
pub mod certificate;
pub mod classify;
#[cfg(feature = "engines")]
pub mod config_file;
#[cfg(feature = "engines")]
pub mod control_line;
#[cfg(feature = "engines")]
#[path = "../../pure/node/tests/insider/credential.rs"]
mod credential;
#[path = "../../edge/os/src/cut.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with os")]
mod cut;
pub mod device;
pub mod dns;
pub mod headers;
#[cfg(feature = "engines")]
pub mod http_head;
pub mod ike_message;
pub mod ike_payload;
#[cfg(feature = "engines")]
pub mod import;
#[cfg(feature = "engines")]
#[path = "../../pure/node/tests/insider/insider.rs"]
pub mod insider;
#[path = "../../edge/os/src/join.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with os")]
mod join;
#[cfg(feature = "engines")]
pub mod logs;
#[cfg(feature = "engines")]
pub mod mobile_agents;
pub mod mobile_ip;
#[cfg(feature = "engines")]
#[path = "../../pure/node/tests/insider/packet.rs"]
pub mod packet;
#[cfg(feature = "engines")]
#[path = "../../pure/node/tests/insider/peer.rs"]
pub mod peer;
#[cfg(feature = "engines")]
#[path = "../../pure/node/tests/insider/scene.rs"]
pub mod scene;
#[cfg(feature = "engines")]
pub mod session;
#[cfg(feature = "engines")]
pub mod snoop;
pub mod stream;
#[path = "../../edge/os/src/virtio.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with os")]
mod virtio;
pub mod zone_map;

/// The name of a target, and the function that runs it on octets.
pub type Target = (&'static str, fn(&[u8]));

/// Targets that depend on `wire` only.
pub const READERS: &[Target] = &[
    ("classify", classify::run),
    ("device", device::run),
    ("dns", dns::run),
    ("headers", headers::run),
    ("ike_message", ike_message::run),
    ("ike_payload", ike_payload::run),
    ("mobile_ip", mobile_ip::run),
    ("stream", stream::run),
    ("zone_map", zone_map::run),
];

/// Targets that depend on the engines.
#[cfg(feature = "engines")]
pub const ENGINES: &[Target] = &[
    ("certificate", certificate::run),
    ("config_file", config_file::run),
    ("control_line", control_line::run),
    ("http_head", http_head::run),
    ("import", import::run),
    ("logs", logs::run),
    ("mobile_agents", mobile_agents::run),
    ("packet", |octets| _ = packet::play(octets)),
    ("peer", |octets| _ = peer::play(octets)),
    ("session", session::run),
    ("snoop", snoop::run),
];
