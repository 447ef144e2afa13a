//! A gateway with its crowd.

use super::super::raw::Raw;
use super::report::Turn;
use crate::bench::certificates::Certificates;
use crate::bench::cores;
use crate::bench::crowd::{Crowd, Pace};
use crate::bench::memory::memory;
use crate::bench::responder::{KEY, Place, Responder, Terms};
use crate::host::Host;
use crate::process::{DEADLINE, until};
use crate::strongswan::{Charon, PLUGINS};
use crate::testbed::Testbed;
use crate::wire;
use anyhow::{Result, ensure};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use std::{fs, mem, thread};

/// Addresses of the gateway and of the first client.
const PLACE: Place = Place {
    responder: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)),
    first: Ipv4Addr::new(10, 64, 0, 2),
};

/// Address on a loopback device, whose whole network is local to the host.
const CROWD: &str = "10.64.0.1/14";

/// Set-ups under way at once: few enough that neither program asks for cookies.
const AT_ONCE: usize = 16;

/// Tunnels that are set up before an echo passes through each: few enough that the crowd soon
/// answers the gateway's questions again.
const PORTION: usize = 1000;

/// Time without a message after which the gateway has no question left. A gateway that has sent and
/// hears nothing asks after 3 s, and again after 1, 2 and 4 s without an answer.
const ANSWERED: Duration = Duration::from_secs(5);

/// Time in which a program at rest after its start uses less than a fiftieth of a core. Longer than
/// the pause of stratad before it compares its routes with the kernel's.
const REST: Duration = Duration::from_millis(1500);

/// The same after the end of tunnels.
const SHORT_REST: Duration = Duration::from_millis(100);

/// Most tunnels that charon has. In user space, its SAs and policies are lists (`libipsec`), so the
/// time of a set-up grows with their number: with 4,000, to 15 times that with 16.
pub(super) const MOST_OF_STRONGSWAN: usize = 1000;

/// The program of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    Strata,
    Strongswan,
}

/// A gateway and its crowd.
pub(super) struct Contender {
    name: String,
    gateway: Gateway,
    crowd: Crowd,
    /// Octets of the gateway's memory without tunnels.
    empty: u64,
}

/// The running program.
enum Gateway {
    Strata(Responder),
    Strongswan(Box<Charon>),
}

impl Contender {
    /// Starts a gateway that knows this many peers.
    pub fn start(bed: &Testbed, program: Program, terms: Terms, peers: usize) -> Result<Self> {
        let name = format!("{program:?}-{terms:?}").to_lowercase();
        let [near, far] = ["near", "far"].map(|end| bed.host(&format!("{name}-{end}")));
        let (near, far) = (near?, far?);
        connect(&near, &far)?;
        let certificates = Certificates::for_terms(terms, &far)?;
        let gateway = match program {
            Program::Strata => Gateway::Strata(Responder::start_on(&far, peers, terms)?),
            Program::Strongswan => strongswan(&far, terms)?,
        };
        let mut contender = Self {
            name,
            crowd: Crowd::on(terms, &near, PLACE, certificates)?,
            gateway,
            empty: 0,
        };
        let pid = contender.pid();
        rest(pid, REST)?;
        contender.empty = memory(pid)?;
        Ok(contender)
    }

    pub fn name(&self) -> String {
        self.name.clone()
    }

    pub fn pid(&mut self) -> u32 {
        match &mut self.gateway {
            Gateway::Strata(responder) => responder.pid(),
            Gateway::Strongswan(charon) => charon.process().pid(),
        }
    }

    pub fn forget_the_key(&mut self) {
        self.crowd.forget_the_key();
    }

    /// Sets up tunnels until this many are up, each of which carries a packet and its answer, and
    /// waits until the gateway asks nothing more, if that takes as long as a round.
    pub fn fill(&mut self, tunnels: usize) -> Result<()> {
        let most = match &self.gateway {
            Gateway::Strata(_) => tunnels,
            Gateway::Strongswan(_) => MOST_OF_STRONGSWAN,
        };
        let wanted = tunnels.min(most);
        while self.crowd.up() < wanted {
            self.set_up(PORTION.min(wanted - self.crowd.up()))?;
            self.crowd.echo()?;
        }
        match wanted > PORTION {
            true => self.crowd.settle(ANSWERED),
            false => Ok(()),
        }
    }

    /// Measures set-ups, and ends the tunnels again.
    pub fn turn(&mut self, setups: usize) -> Result<Turn> {
        let before = cores::spent_by(self.pid())?;
        let lasted = self.set_up(setups)?;
        let spent = cores::spent_by(self.pid())?.saturating_sub(before);
        self.crowd.echo()?;
        self.crowd.leave(setups)?;
        rest(self.pid(), SHORT_REST)?;
        let each = |time: Duration| time.as_secs_f64() * 1e6 / setups as f64;
        Ok(Turn {
            cpu_us: each(spent),
            wall_us: each(lasted),
        })
    }

    /// Returns the processor time of the cryptography of a set-up with a pre-shared key.
    pub fn cryptography(&self) -> Result<Duration> {
        Raw::new(self.crowd.dialogue()?).time()
    }

    /// Returns the octets that each tunnel takes at the gateway.
    pub fn octets(&mut self) -> Result<f64> {
        let grown = memory(self.pid())?.saturating_sub(self.empty);
        Ok(grown as f64 / self.crowd.up().max(1) as f64)
    }

    fn set_up(&mut self, count: usize) -> Result<Duration> {
        let run = self.crowd.run(count, Pace::Queue(AT_ONCE))?;
        let why = run.failure.unwrap_or_default();
        ensure!(
            run.up == count,
            "{}: {} of {count} are up: {why}",
            self.name,
            run.up
        );
        Ok(run.lasted)
    }
}

/// Returns the octets of resident memory that stratad takes for each configured peer that is not
/// up.
pub(super) fn octets_of_a_peer(bed: &Testbed, peers: usize) -> Result<f64> {
    let host = bed.host("configured")?;
    let taken = |peers| {
        let responder = Responder::start(&host, peers)?;
        rest(responder.pid(), REST)?;
        memory(responder.pid())
    };
    let (one, all) = (taken(1)?, taken(1 + peers)?);
    Ok(all.saturating_sub(one) as f64 / peers.max(1) as f64)
}

/// Waits until a program has nothing left to do for this time.
fn rest(process: u32, time: Duration) -> Result<()> {
    let mut spent = cores::spent_by(process)?;
    until("a program at rest", DEADLINE, || {
        thread::sleep(time);
        let before = mem::replace(&mut spent, cores::spent_by(process)?);
        Ok((spent.saturating_sub(before) < time / 50).then_some(()))
    })
}

fn connect(near: &Host, far: &Host) -> Result<()> {
    wire::veth(
        near.end("eth0", &["192.0.2.1/24"]),
        far.end("eth0", &["192.0.2.2/24"]),
    )?;
    near.netns().netlink()?.add_address("lo", CROWD.parse()?)?;
    far.route("10.64.0.0/14", "192.0.2.1")
}

/// Starts a charon that admits every initiator. Its tables of IKE SAs have room for all: by default
/// they are lists. Its inner address is on a loopback device.
fn strongswan(host: &Host, terms: Terms) -> Result<Gateway> {
    host.netns()
        .netlink()?
        .add_address("lo", "10.8.0.1/32".parse()?)?;
    let (proof, own, theirs) = match terms {
        Terms::Psk | Terms::Leased => ("psk", "", ""),
        Terms::Ecdsa => ("pubkey", "certs = end.pem", "cacerts = ca.pem"),
    };
    let (remote, lends, pools) = match terms {
        Terms::Psk | Terms::Ecdsa => ("172.16.0.0/12", "", ""),
        Terms::Leased => (
            "dynamic",
            "pools = bench",
            "bench {\n addrs = 172.16.0.0/12\n }",
        ),
    };
    if terms == Terms::Ecdsa {
        for (file, folder) in [
            ("end.pem", "x509"),
            ("ca.pem", "x509ca"),
            ("end.key", "private"),
        ] {
            let folder = host.directory().join(folder);
            fs::create_dir(&folder)?;
            fs::copy(host.directory().join(file), folder.join(file))?;
        }
    }
    let key = std::str::from_utf8(KEY)?;
    let connections = format!(
        "connections {{
  crowd {{
    version = 2
    local_addrs = 192.0.2.2
    proposals = aes128gcm16-prfsha256-x25519
    encap = yes
    rekey_time = 0
    {lends}
    local {{
      auth = {proof}
      {own}
      id = responder.bench
    }}
    remote {{
      auth = {proof}
      {theirs}
      id = %any
    }}
    children {{
      net {{
        local_ts = 10.8.0.0/16
        remote_ts = {remote}
        esp_proposals = aes128gcm16
        rekey_time = 0
      }}
    }}
  }}
}}
secrets {{
  ike-crowd {{
    secret = \"{key}\"
  }}
}}
pools {{
  {pools}
}}
"
    );
    let settings = format!(
        "charon {{
  load_modular = no
  load = {PLUGINS}
  ikesa_table_size = 131072
  ikesa_table_segments = 16
  plugins {{
    vici {{
      socket = unix://vici
    }}
  }}
  filelog {{
    stderr {{
      default = 1
    }}
  }}
}}
swanctl {{
  load = random openssl pem pkcs1 pkcs8 x509
}}
"
    );
    let charon = host.charon_with(&settings, &connections)?;
    Ok(Gateway::Strongswan(Box::new(charon)))
}
