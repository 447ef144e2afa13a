//! `[divert]`, `[snoop]`, `[regulate]` and `[stand_in]`: the treatment of forwarded packets on a
//! licensed node.

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

impl StandIn {
    pub(crate) fn read(value: &Value<'_>) -> Option<Self> {
        let (milli, second) = (Duration::from_millis(1), Duration::from_secs(1));
        let mut table = value.table()?;
        let after = table.optional("after", |value| value.duration(100 * milli..=60 * second));
        let limit = table.optional("limit", |value| value.duration(second..=86_400 * second));
        table.finish();
        Some(Self {
            after: after.unwrap_or(2 * second),
            limit: limit.unwrap_or(600 * second),
        })
    }
}

impl Divert {
    pub(crate) fn read(value: &Value<'_>) -> Option<Self> {
        let mut table = value.table()?;
        let wired = table.required("wired", "\"eth0\"", Value::interface);
        let wireless = table.required("wireless", "\"wlan0\"", Value::interface);
        let clear_tcp = table.optional("clear_tcp", Value::boolean);
        let offload = table.optional("offload", Offload::read);
        table.finish();
        if wired.is_some() && wired == wireless {
            return value.fault(
                "`wired` and `wireless` are the same device",
                "name the device towards the gateway and the one towards the mobile nodes",
            );
        }
        Some(Self {
            wired: wired?,
            wireless: wireless?,
            clear_tcp: clear_tcp.unwrap_or(false),
            offload: offload.unwrap_or(Offload::Auto),
        })
    }
}

/// Reads `[regulate] window`. The minimum is the smallest window that the largest window scale can
/// express.
pub(crate) fn window(value: &Value<'_>) -> Option<u32> {
    let mut table = value.table()?;
    let window = table.required("window", "\"64KiB\"", |value| {
        value.size(16 << 10..=1 << 30)
    });
    table.finish();
    u32::try_from(window?).ok()
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

impl Snoop {
    pub(crate) fn read(value: &Value<'_>) -> Option<Self> {
        let default = Self::default();
        let mut table = value.table()?;
        let enabled = table.optional("enabled", Value::boolean);
        let flows = table.optional("flows", |value| value.number(64..=65_536));
        let packets = table.optional("packets", |value| value.number(16..=4096));
        let octets = table.optional("octets", |value| value.size(64 << 10..=4 << 30));
        table.finish();
        Some(Self {
            enabled: enabled.unwrap_or(default.enabled),
            flows: flows.unwrap_or(default.flows),
            packets: packets.unwrap_or(default.packets),
            octets: octets.unwrap_or(default.octets),
        })
    }
}
