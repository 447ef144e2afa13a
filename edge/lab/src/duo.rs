//! Strata and strongSwan with a wire between them, and a plain tunnel that both ends agree on.
//!
//! ```text
//!   ours   192.0.2.1 ------------- 192.0.2.2   theirs
//!   10.1.0.1  stratad                 charon   10.2.0.1
//! ```

use crate::daemon::Daemon;
use crate::host::Host;
use crate::strongswan::{Charon, Connection};
use crate::testbed::Testbed;
use crate::wire;
use anyhow::Result;

/// The secret of both ends.
pub const PSK: &str = "a key of more than sixteen octets";

/// strongSwan's end, as [`OURS`] expects it.
pub const THEIRS: Connection<'_> = Connection {
    id: "theirs.example",
    peer_id: "ours.example",
    address: "192.0.2.2",
    peer_address: "192.0.2.1",
    psk: Some(PSK),
    ppk: None,
    local: "10.2.0.0/24",
    remote: "10.1.0.1/32",
    ike: "aes128gcm16-prfsha256-x25519",
    esp: "aes128gcm16",
    ike_rekey: "4h",
    rekey: "1h",
    fragment: 1280,
    vips: None,
    pools: &[],
};

/// Our end, which waits for `strata up`.
pub const OURS: &str = r#"
[node]
id = "ours.example"
[tunnel]
addresses = ["10.1.0.1/32"]
[peer.theirs]
address = "192.0.2.2"
id = "theirs.example"
psk = "theirs.psk"
local = ["10.1.0.1/32"]
remote = ["10.2.0.0/24"]
start = "manual"
"#;

/// The two hosts.
pub struct Duo {
    _bed: Testbed,
    /// Where `stratad` runs.
    pub ours: Host,
    /// Where charon runs.
    pub theirs: Host,
}

impl Duo {
    /// Two hosts that reach each other, without daemons.
    pub fn new(name: &str) -> Result<Self> {
        let bed = Testbed::new(name)?;
        let (ours, theirs) = (bed.host("ours")?, bed.host("theirs")?);
        wire::veth(
            ours.end("eth0", &["192.0.2.1/24"]),
            theirs.end("eth0", &["192.0.2.2/24"]),
        )?;
        add_inner_address(&theirs, "10.2.0.1/32")?;
        Ok(Self {
            _bed: bed,
            ours,
            theirs,
        })
    }

    /// Both daemons, not yet connected.
    pub fn start(&self, ours: &str, theirs: &Connection<'_>) -> Result<(Daemon, Charon)> {
        self.ours.secret("theirs.psk", PSK)?;
        Ok((self.ours.stratad(ours)?, self.theirs.charon(theirs)?))
    }
}

/// Gives a host an address that is reached through a tunnel only.
pub fn add_inner_address(host: &Host, prefix: &str) -> Result<()> {
    Ok(host.netns().netlink()?.add_address("lo", prefix.parse()?)?)
}
