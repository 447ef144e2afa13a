//! `[divert]`, `[snoop]`, `[regulate]` and `[stand_in]`: the treatment of forwarded packets on a
//! licensed node.

use crate::keys::DIVERT;
use crate::reader::Value;
use crate::tunnel::Offload;
use std::time::Duration;

/// The two sides between which packets are diverted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divert {
    /// `wired`: device towards the gateway.
    pub wired: String,
    /// `wireless`: device towards the mobile node, where packets get lost.
    pub wireless: String,
    /// `clear_tcp`: true to inspect unprotected TCP too. Default false.
    pub clear_tcp: bool,
    /// `offload`: as [`crate::Tunnel::offload`], for forwarded packets.
    pub offload: Offload,
}

/// Limits of local retransmission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snoop {
    /// `enabled`. Default true.
    pub enabled: bool,
    /// `flows`: most flows at once, 64 to 65,536. Default 4,096.
    pub flows: u32,
    /// `packets`: most cached packets per flow, 16 to 4,096. Default 256.
    pub packets: u32,
    /// `octets`: most cached octets of all flows together, 64 KiB to 4 GiB. Default 16 MiB.
    pub octets: u64,
}

/// The conditions under which a licensed node stands in for a silent mobile node, if licences allow
/// injection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandIn {
    /// `after`: time for which the mobile node has owed an answer, 100 ms to 1 minute. Default 2 s.
    pub after: Duration,
    /// `limit`: longest time of standing in, 1 s to 1 day. Default 10 minutes.
    pub limit: Duration,
}

impl Default for StandIn {
    fn default() -> Self {
        Self {
            after: Duration::from_secs(2),
            limit: Duration::from_secs(600),
        }
    }
}

impl Divert {
    pub(crate) fn read(value: &Value<'_>) -> Option<Self> {
        let mut divert = Self {
            wired: String::new(),
            wireless: String::new(),
            clear_tcp: false,
            offload: Offload::Auto,
        };
        let mut table = value.table()?;
        let is_whole = table.read(DIVERT, &mut divert);
        table.finish();
        if !divert.wired.is_empty() && divert.wired == divert.wireless {
            return value.fault(
                "`wired` and `wireless` are the same device",
                "name the device towards the gateway and the one towards the mobile nodes",
            );
        }
        is_whole.then_some(divert)
    }
}

/// Reads `[regulate] window`. The minimum is the smallest window that the largest window scale can
/// express.
pub(crate) fn window(value: &Value<'_>) -> Option<u32> {
    u32::try_from(value.size(16 << 10..=1 << 30)?).ok()
}

impl Default for Snoop {
    fn default() -> Self {
        Self {
            enabled: true,
            flows: 4096,
            packets: 256,
            octets: 16 << 20,
        }
    }
}
