//! Strata and strongSwan with a wire between them, and a plain tunnel that both ends agree on.
//!
//! ```text
//!   ours   192.0.2.1 ------------- 192.0.2.2   theirs
//!   10.1.0.1  stratad                 charon   10.2.0.1
//! ```
//!
//! If charon uses the kernel's ESP, it runs in a [`Guest`]. The guest then has the address on the
//! wire, and `theirs` is a host behind it.

use crate::daemon::Daemon;
use crate::guest::{self, Guest};
use crate::host::{End, Host};
use crate::openssl::{self, GOOD, Order};
use crate::origin::Origin;
use crate::pair::{children, refusal};
pub use crate::process::DEADLINE;
use crate::strongswan::{Charon, Connection};
use crate::testbed::Testbed;
use crate::transfer::transfer;
use crate::wire;
use anyhow::{Result, ensure};
use serde_json::Value;
use std::fs;

/// Pre-shared key of both ends.
pub const PSK: &str = "a key of more than sixteen octets";

/// strongSwan's end, as [`OURS`] expects it.
pub const THEIRS: Connection<'_> = Connection {
    id: "theirs.example",
    peer_id: "ours.example",
    address: "192.0.2.2",
    peer_address: "192.0.2.1",
    psk: Some(PSK),
    raw_keys: false,
    signature_authentication: true,
    ppk: None,
    encap: true,
    local: "10.2.0.0/24",
    remote: "10.1.0.1/32",
    ike: "aes128gcm16-prfsha256-x25519",
    esp: "aes128gcm16",
    mode: "tunnel",
    tfc: "0",
    ike_rekey: "4h",
    reauth: "0",
    rekey: "1h",
    fragment: 1280,
    vips: None,
    pools: &[],
    others: &[],
};

/// Configuration of our end, which waits for `strata up`.
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

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end of Strata.
    Ours,
    /// The end of strongSwan.
    Theirs,
}

/// The two hosts.
pub struct Duo {
    _bed: Testbed,
    /// The NAT between the hosts, if there is one. Its devices are `inside` and `outside`.
    pub nat: Option<Host>,
    /// The host of `stratad`.
    pub ours: Host,
    /// The host of charon, or the host behind charon's guest.
    pub theirs: Host,
}

impl Duo {
    /// Creates two hosts that reach each other, without daemons.
    pub fn new(name: &str) -> Result<Self> {
        Self::with(name, None, None)
    }

    /// Creates the same network with a NAT in front of one host. The NAT takes over the host's
    /// address, and the host gets 10.3.0.2. The NAT changes ports too.
    pub fn behind_nat(name: &str, hidden: Side) -> Result<Self> {
        Self::with(name, Some(hidden), None)
    }

    /// Creates either network, with the guest that charon will run in, if any.
    pub fn with(name: &str, hidden: Option<Side>, guest: Option<&Guest>) -> Result<Self> {
        let bed = Testbed::new(name)?;
        let (ours, theirs) = (bed.host("ours")?, bed.host("theirs")?);
        let address = |side, public| if hidden == Some(side) { HIDDEN } else { public };
        let addresses = [
            [address(Side::Ours, PUBLIC[0])],
            [address(Side::Theirs, PUBLIC[1])],
        ];
        let our_end = ours.end("eth0", &addresses[0]);
        let their_end = match guest {
            Some(guest) => guest.outside(),
            None => theirs.end("eth0", &addresses[1]),
        };
        let nat = match hidden {
            None => wire::veth(our_end, their_end).map(|()| None)?,
            Some(Side::Ours) => Some(translate(&bed, our_end, PUBLIC[0], their_end)?),
            Some(Side::Theirs) => Some(translate(&bed, their_end, PUBLIC[1], our_end)?),
        };
        match guest {
            None => add_inner_address(&theirs, "10.2.0.1/32")?,
            Some(guest) => shelter(&theirs, guest, addresses[1][0])?,
        }
        match (hidden, guest) {
            (None, _) => {}
            (Some(Side::Ours), _) => ours.route("default", TRANSLATOR)?,
            (Some(Side::Theirs), None) => theirs.route("default", TRANSLATOR)?,
            (Some(Side::Theirs), Some(guest)) => {
                guest.run(&format!("ip route add default via {TRANSLATOR}"))?;
            }
        }
        Ok(Self {
            _bed: bed,
            nat,
            ours,
            theirs,
        })
    }

    /// Issues a certificate of one CA to both ends, all with keys of openssl's type `key`: ours as
    /// [`certified`] configures it, theirs in the place that charon reads.
    pub fn certify(&self, key: &str) -> Result<()> {
        let order = Order { key, ..GOOD };
        openssl::authority(&self.ours, key, "Lab CA")?;
        openssl::order(&self.ours, "DNS:theirs.example", order)?;
        for (file, place) in [
            ("end.pem", "x509/end.pem"),
            ("end.key", "private/end.key"),
            ("ca.pem", "x509ca/ca.pem"),
        ] {
            let place = self.theirs.directory().join(place);
            fs::create_dir_all(place.parent().unwrap_or(&place))?;
            fs::copy(self.ours.directory().join(file), place)?;
        }
        openssl::order(&self.ours, "DNS:ours.example", order)
    }

    /// Starts both daemons, not yet connected.
    pub fn start(&self, ours: &str, theirs: &Connection<'_>) -> Result<(Daemon, Charon)> {
        self.start_with(ours, Origin::Installed, theirs)
    }

    /// Starts both daemons, with a charon of this origin.
    pub fn start_with(
        &self,
        ours: &str,
        origin: Origin,
        theirs: &Connection<'_>,
    ) -> Result<(Daemon, Charon)> {
        self.start_told(ours, &[], origin, theirs)
    }

    /// Starts both daemons, with a charon of this origin and additional arguments for our end.
    pub fn start_told(
        &self,
        ours: &str,
        arguments: &[&str],
        origin: Origin,
        theirs: &Connection<'_>,
    ) -> Result<(Daemon, Charon)> {
        self.ours.secret("theirs.psk", PSK)?;
        let strata = self.ours.stratad_with(ours, arguments)?;
        Ok((strata, self.theirs.charon_of(origin, theirs)?))
    }

    /// Carries this many octets each way through the tunnel.
    pub fn carry(&self, octets: u64) -> Result<()> {
        transfer(&self.ours, &self.theirs, "10.2.0.1", octets)?;
        transfer(&self.theirs, &self.ours, "10.1.0.1", octets)
    }

    /// Carries octets each way and checks, by the counters of the guest's kernel, that its ESP
    /// carried them.
    pub fn carry_by_kernel(&self, guest: &Guest, octets: u64) -> Result<()> {
        let before = guest.carried()?;
        self.carry(octets)?;
        let carried = guest::growth(&before, &guest.carried()?);
        ensure!(
            carried.len() == 2 && carried.values().all(|count| *count >= octets),
            "of {octets} octets the kernel's ESP carried {carried:?}"
        );
        Ok(())
    }
}

/// Waits until our end reports, in these words, the reason for which there is no tunnel.
pub fn expect_refusal(strata: &Daemon, words: &[&str]) -> Result<()> {
    let said = |status: &Value| words.iter().all(|word| refusal(status).contains(word));
    let status = strata.wait_until("status", DEADLINE, said)?;
    ensure!(children(&status).is_empty(), "{status}");
    Ok(())
}

/// Returns our configuration with the certificate from [`Duo::certify`] in place of the pre-shared
/// key.
pub fn certified(ours: &str) -> String {
    let node = "cert = \"chain.pem\"\nkey = \"end.key\"\nca = [\"ca.pem\"]\n[tunnel]";
    ours.replace("psk = \"theirs.psk\"\n", "")
        .replace("[tunnel]", node)
}

/// Addresses of our end and their end, or of the NAT in front of it.
const PUBLIC: [&str; 2] = ["192.0.2.1/24", "192.0.2.2/24"];

/// Address of a host behind a NAT, followed by the inner address of the NAT.
const HIDDEN: &str = "10.3.0.2/24";
const TRANSLATOR: &str = "10.3.0.1";

/// Creates a NAT between two ends, with this address on the outside.
fn translate(bed: &Testbed, inside: End<'_>, address: &str, outside: End<'_>) -> Result<Host> {
    let nat = bed.host("nat")?;
    nat.sysctl("net.ipv4.ip_forward", "1")?;
    wire::veth(inside, nat.end("inside", &["10.3.0.1/24"]))?;
    wire::veth(nat.end("outside", &[address]), outside)?;
    nat.file("nat.nft", TRANSLATION)?;
    nat.run("nft -f nat.nft")?;
    Ok(nat)
}

/// Puts a host behind a guest that has this address on its other side.
fn shelter(host: &Host, guest: &Guest, address: &str) -> Result<()> {
    wire::veth(guest.inside(), host.end("eth0", &["10.2.0.1/24"]))?;
    guest.join(address, "10.2.0.254/24")?;
    host.route("default", "10.2.0.254")
}

/// The translated source port is never a port of IKE.
const TRANSLATION: &str = "table ip nat {
  chain out {
    type nat hook postrouting priority 100
    oifname \"outside\" meta l4proto udp masquerade to :20000-30000
  }
}
";

/// Adds to a host an address that is reached only through a tunnel.
pub fn add_inner_address(host: &Host, prefix: &str) -> Result<()> {
    Ok(host.netns().netlink()?.add_address("lo", prefix.parse()?)?)
}
