//! Who carries between the two hosts.

use crate::daemon::Daemon;
use crate::duo::{OURS, PSK, THEIRS, add_inner_address};
use crate::host::Host;
use crate::strongswan::Charon;
use crate::testbed::Testbed;
use crate::wire;
use anyhow::Result;
use serde::Serialize;

/// All of them use AES-128-GCM, but for the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Entrant {
    /// Nobody: the wire alone.
    Wire,
    /// Strata with plain ESP.
    Plain,
    /// Strata with headers and payload in zones of their own.
    Zones,
    /// Strata with plain ESP, packets one by one (`offload = "off"`).
    OneByOne,
    /// strongSwan with ESP in user space.
    Strongswan,
}

impl Entrant {
    /// Everybody, in the order of the turns.
    pub const ALL: [Self; 5] = [
        Self::Wire,
        Self::Plain,
        Self::Zones,
        Self::OneByOne,
        Self::Strongswan,
    ];

    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wire => "the wire",
            Self::Plain => "Strata",
            Self::Zones => "Strata, two zones",
            Self::OneByOne => "Strata, one by one",
            Self::Strongswan => "strongSwan",
        }
    }
}

/// The two hosts and who carries between them, until dropped.
pub(super) struct Line {
    _carriers: Carriers,
    /// Who sends.
    pub near: Host,
    /// Who receives.
    pub far: Host,
    /// The receiver's, where the carrier takes what is for it.
    pub address: &'static str,
    _bed: Testbed,
}

enum Carriers {
    Nobody,
    Strata { _ends: [Daemon; 2] },
    Strongswan { _ends: [Charon; 2] },
}

/// The receiver's address on the wire, and behind it.
const OUTSIDE: &str = "192.0.2.2";
const INSIDE: &str = "10.2.0.1";

/// The other end of [`OURS`].
const FAR: &str = r#"
[node]
id = "theirs.example"
[tunnel]
addresses = ["10.2.0.1/32"]
[peer.ours]
id = "ours.example"
psk = "ours.psk"
local = ["10.2.0.0/24"]
remote = ["10.1.0.1/32"]
"#;

impl Line {
    pub fn new(entrant: Entrant) -> Result<Self> {
        Self::with(entrant, [PSK; 2])
    }

    /// Two ends of Strata that have no key in common.
    pub fn strangers() -> Result<Self> {
        Self::with(
            Entrant::Plain,
            [PSK, "another key of more than sixteen octets"],
        )
    }

    fn with(entrant: Entrant, keys: [&str; 2]) -> Result<Self> {
        let bed = Testbed::new("peers")?;
        let (near, far) = (bed.host("near")?, bed.host("far")?);
        let addresses = [["192.0.2.1/24"], ["192.0.2.2/24"]];
        wire::veth(
            near.end("eth0", &addresses[0]),
            far.end("eth0", &addresses[1]),
        )?;
        for host in [&near, &far] {
            // Here nobody looks at what is on the wire, and real devices cut by themselves.
            host.netns()
                .netlink()?
                .set_most_segments("eth0", u16::MAX.into())?;
        }
        let strata = |zones, offload| strata([&near, &far], keys, zones, offload);
        let carriers = match entrant {
            Entrant::Wire => Carriers::Nobody,
            Entrant::Plain => strata("refuse", "auto")?,
            Entrant::Zones => strata("require", "auto")?,
            Entrant::OneByOne => strata("refuse", "off")?,
            Entrant::Strongswan => strongswan([&near, &far])?,
        };
        let address = match carriers {
            Carriers::Nobody => OUTSIDE,
            _ => INSIDE,
        };
        Ok(Self {
            _carriers: carriers,
            near,
            far,
            address,
            _bed: bed,
        })
    }
}

fn strata(hosts: [&Host; 2], keys: [&str; 2], zones: &str, offload: &str) -> Result<Carriers> {
    let psks = ["theirs.psk", "ours.psk"];
    let mut ends = Vec::new();
    for (index, config) in [OURS, FAR].into_iter().enumerate() {
        hosts[index].secret(psks[index], keys[index])?;
        let psk = format!("psk = \"{}\"", psks[index]);
        let config = config
            .replace(&psk, &format!("{psk}\nzones = \"{zones}\""))
            .replace("[tunnel]", &format!("[tunnel]\noffload = \"{offload}\""));
        ends.push(hosts[index].stratad(&config)?);
    }
    let [near, far] = <[Daemon; 2]>::try_from(ends).map_err(|_| anyhow::anyhow!("two ends"))?;
    near.strata_text("up theirs --wait")?;
    Ok(Carriers::Strata { _ends: [near, far] })
}

fn strongswan([near, far]: [&Host; 2]) -> Result<Carriers> {
    add_inner_address(near, "10.1.0.1/32")?;
    add_inner_address(far, "10.2.0.1/32")?;
    let ends = [near.charon(&THEIRS.reversed())?, far.charon(&THEIRS)?];
    ends[0].initiate()?;
    Ok(Carriers::Strongswan { _ends: ends })
}
