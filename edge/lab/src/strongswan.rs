//! charon, strongSwan's IKEv2 daemon, as a peer that is not ours.
//!
//! Its ESP is in user space too (plugin `kernel-libipsec`), always inside UDP port 4500, so the
//! kernel needs none; unless it runs in a [`Guest`], whose kernel has ESP. A charon wants `/run` for itself: each gets an empty one in a mount
//! namespace of its own. All its other files are in the host's folder, and named relative to it:
//! the empty `/run` may hide the folder's absolute path, and the path of a unix socket is short.

use crate::guest::Guest;
use crate::host::Host;
use crate::origin::Origin;
use crate::process::{DEADLINE, Process, until};
use crate::testbed::find_command;
use anyhow::{Context, Result, ensure};
use std::ffi::OsStr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The daemon as Debian installs it (package `strongswan-charon`).
const CHARON: &str = "/usr/lib/ipsec/charon";

/// `aesni` comes before `aes gcm`: the first plugin that offers an algorithm serves it, and the
/// portable code has a tenth of the speed. `curve25519` and `kernel-libipsec` are in Debian's
/// extra packages. `kernel-netlink` sets the routes into the tunnel, and ESP where that is the kernel's.
const PLUGINS: &str = "random nonce aesni aes gcm sha1 sha2 hmac kdf curve25519 \
                       openssl pem pkcs1 pkcs8 pubkey x509 constraints kernel-libipsec kernel-netlink socket-default vici";

/// ESP in user space.
const LIBIPSEC: &str = "kernel-libipsec ";

/// Starts the program that is named next.
const ON_EMPTY_RUN: &str = "mount -t tmpfs none /run && exec \"$0\"";

/// Starts the program in the root that is named next: with our files in its `/mnt`, where it begins.
const IN_ANOTHER_ROOT: &str = "for dir in dev proc sys; do mount --rbind /$dir \"$1/$dir\"; done && \
                               mount --bind . \"$1/mnt\" && mount -t tmpfs none \"$1/run\" && \
                               exec unshare --root \"$1\" --wd /mnt \"$0\"";

/// What finds charon's files in a guest, where they are in `/mnt`.
const IN_GUEST: &str = "cd /mnt && export STRONGSWAN_CONF=strongswan.conf SWANCTL_DIR=/mnt &&";

/// Ends charon in a guest, and with the line its process.
const END_IN_GUEST: &str = "pid=$(cat /run/charon.pid) && kill \"$pid\" && while kill -0 \"$pid\" 2>&-; do sleep 0.1; done";

/// One connection with one child, both ends as charon sees them. It answers, and connects when
/// told to ([`Charon::initiate`]).
#[derive(Clone, Copy, Debug)]
pub struct Connection<'a> {
    /// Our identity.
    pub id: &'a str,
    /// Who the peer must be.
    pub peer_id: &'a str,
    /// Our outer address.
    pub address: &'a str,
    /// The peer's outer address.
    pub peer_address: &'a str,
    /// The key: any octets but quotes and newlines. Without it both ends prove themselves by
    /// certificate: charon's is `x509/end.pem`, its key in `private`, its CAs in `x509ca`.
    pub psk: Option<&'a str>,
    /// Without certificates either: charon's public key is `pubkey/own.pub`, its private one in
    /// `private`, the peer's `pubkey/peer.pub`.
    pub raw_keys: bool,
    /// Whether it names hash algorithms (RFC 7427), without which signatures are of the methods before that.
    pub signature_authentication: bool,
    /// A post-quantum pre-shared key (RFC 8784) besides.
    pub ppk: Option<Ppk<'a>>,
    /// Whether it says that it is behind a NAT, so that ESP is in UDP: `kernel-libipsec` has no other.
    pub encap: bool,
    /// Our traffic selectors, separated by commas.
    pub local: &'a str,
    /// The peer's traffic selectors.
    pub remote: &'a str,
    /// Proposals for the IKE SA, in strongSwan's words; `default` for its own.
    pub ike: &'a str,
    /// Proposals for the child SA.
    pub esp: &'a str,
    /// The mode of the child SA: `tunnel`, `transport` or `beet`.
    pub mode: &'a str,
    /// How long packets of the child SA are to be by padding, in octets; `mtu` is as long as can be, `0` as
    /// they are.
    pub tfc: &'a str,
    /// How long keys of the IKE SA are used.
    pub ike_rekey: &'a str,
    /// After how long it makes another IKE SA that takes the place of this one; `0` is never.
    pub reauth: &'a str,
    /// How long keys of the child SA are used.
    pub rekey: &'a str,
    /// The longest IP datagram that IKE messages are sent in, if the peer can do with fragments.
    pub fragment: u16,
    /// Addresses inside that it asks for: `0.0.0.0` and `::` are any.
    pub vips: Option<&'a str>,
    /// What it lends addresses of.
    pub pools: &'a [Pool<'a>],
    /// Children beside the first.
    pub others: &'a [Child<'a>],
}

/// A child beside the first, with the proposals, mode and times of that.
#[derive(Clone, Copy, Debug)]
pub struct Child<'a> {
    /// What charon calls it.
    pub name: &'a str,
    /// Our traffic selectors.
    pub local: &'a str,
    /// The peer's traffic selectors.
    pub remote: &'a str,
}

/// Addresses that charon lends.
#[derive(Clone, Copy, Debug)]
pub struct Pool<'a> {
    /// A prefix of them.
    pub addresses: &'a str,
    /// A name server that it tells of.
    pub dns: &'a str,
    /// What it says is behind it.
    pub subnets: Option<&'a str>,
}

/// A post-quantum pre-shared key.
#[derive(Clone, Copy, Debug)]
pub struct Ppk<'a> {
    /// Its name.
    pub id: &'a str,
    /// The key: any octets but quotes and newlines.
    pub secret: &'a str,
    /// Whether it is for this connection: who begins names it, and who answers takes no other.
    pub named: bool,
    /// Whether there is no connection without it.
    pub required: bool,
}

/// The name of a connection's child in charon's messages.
pub const CHILD: &str = "net";

/// A running charon. Killed when dropped; [`Charon::stop`] ends it as an operator would.
pub struct Charon(Seat);

/// What a charon runs on.
enum Seat {
    Host(Host, Process),
    Guest(Guest),
}

impl Host {
    /// Starts charon with one connection and waits until it has taken it.
    ///
    /// # Errors
    /// strongSwan is not installed (the message names the package), or charon ended or refused
    /// the connection; the message has its log.
    pub fn charon(&self, connection: &Connection<'_>) -> Result<Charon> {
        self.charon_of(Origin::Installed, connection)
    }

    /// The same with a charon from elsewhere. One in a guest has copies of this host's files.
    ///
    /// # Errors
    /// As [`Host::charon`].
    pub fn charon_of(&self, origin: Origin, connection: &Connection<'_>) -> Result<Charon> {
        let plugins = match origin {
            Origin::Installed | Origin::Unpacked(_) => PLUGINS.to_owned(),
            Origin::Guest(_) => PLUGINS.replace(LIBIPSEC, ""),
        };
        let settings = daemon_settings(&plugins, connection);
        self.file("strongswan.conf", &settings)?;
        self.secret("swanctl.conf", &connection.settings())?;
        let charon = match origin {
            Origin::Installed => {
                self.start_charon(&[ON_EMPTY_RUN.as_ref(), find_charon()?.as_os_str()])?
            }
            Origin::Unpacked(root) => {
                let words = [IN_ANOTHER_ROOT.as_ref(), CHARON.as_ref(), root.as_os_str()];
                self.start_charon(&words)?
            }
            Origin::Guest(guest) => start_in(guest, self.directory())?,
        };
        charon.swanctl("--load-all --noprompt --file swanctl.conf")?;
        Ok(charon)
    }

    /// `words` are a script for the shell and what it is told.
    fn start_charon(&self, words: &[&OsStr]) -> Result<Charon> {
        let mut command = self.command(find_command("unshare", "util-linux")?);
        command.args(["--mount", "sh", "-c"]).args(words);
        command.env("STRONGSWAN_CONF", "strongswan.conf");
        // One of an earlier run would accept nothing, but be there.
        let socket = self.directory().join("vici");
        let _ = std::fs::remove_file(&socket);
        let mut process = self.start("charon", command)?;
        let what = format!("the API of charon on {}", self.name());
        process.wait_for(&what, DEADLINE, |_| UnixStream::connect(&socket).ok())?;
        Ok(Charon(Seat::Host(self.clone(), process)))
    }
}

fn start_in(guest: Guest, folder: &Path) -> Result<Charon> {
    let charon = find_charon()?;
    guest.run(&format!("cp -r '{}/.' /mnt", folder.display()))?;
    let start = format!("{{ {} >charon.log 2>&1 & }}", charon.display());
    guest.run(&format!("{IN_GUEST} {start}"))?;
    let charon = Charon(Seat::Guest(guest));
    let answers = until("the API of charon in the guest", DEADLINE, || {
        Ok(charon.version().ok())
    });
    answers.with_context(|| charon.log())?;
    Ok(charon)
}

impl Charon {
    /// Connects, and returns once the child SA is up. The answer tells the exchanges.
    ///
    /// # Errors
    /// It did not come up; the message has charon's account of it.
    pub fn initiate(&self) -> Result<String> {
        self.initiate_child(CHILD)
    }

    /// The same with a child of another name, in the same IKE SA if there is one.
    ///
    /// # Errors
    /// As [`Charon::initiate`].
    pub fn initiate_child(&self, name: &str) -> Result<String> {
        self.swanctl(&format!("--initiate --child {name}"))
    }

    /// Deletes one child, and returns once the peer has acknowledged.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn terminate_child(&self, name: &str) -> Result<String> {
        self.swanctl(&format!("--terminate --child {name}"))
    }

    /// Deletes the IKE SA and its child, and returns once the peer has acknowledged.
    ///
    /// # Errors
    /// There is none.
    pub fn terminate(&self) -> Result<String> {
        self.swanctl("--terminate --ike peer")
    }

    /// Makes new keys for the child and for its IKE SA, and returns once they are asked for.
    ///
    /// # Errors
    /// There are none to be replaced.
    pub fn rekey(&self) -> Result<()> {
        // In this order: while an IKE SA is replaced, its children belong to neither.
        self.swanctl(&format!("--rekey --child {CHILD}"))?;
        self.swanctl("--rekey --ike peer").map(drop)
    }

    /// Its version: `5.9.8`.
    ///
    /// # Errors
    /// charon does not answer.
    pub fn version(&self) -> Result<String> {
        let said = self.swanctl("--version --daemon")?;
        let version = said
            .split_whitespace()
            .find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        version
            .map(str::to_owned)
            .with_context(|| format!("no version: {said}"))
    }

    /// Asks for another IKE SA that takes the place of the one there is, and returns once it is asked
    /// for.
    ///
    /// # Errors
    /// There is none.
    pub fn reauthenticate(&self) -> Result<()> {
        self.swanctl("--rekey --ike peer --reauth").map(drop)
    }

    /// Its SAs, in swanctl's format for machines: `state=ESTABLISHED`, `bytes-in=1234`.
    ///
    /// # Errors
    /// charon does not answer.
    pub fn sas(&self) -> Result<String> {
        self.swanctl("--list-sas --raw")
    }

    /// Waits until `enough` likes what [`Charon::sas`] answers.
    ///
    /// # Errors
    /// The deadline passed; the message has the last answer and charon's log.
    pub fn wait_until(&self, deadline: Duration, enough: impl Fn(&str) -> bool) -> Result<String> {
        let mut last = String::new();
        let waited = until("SAs of charon", deadline, || {
            last = self.sas()?;
            Ok(enough(&last).then(|| last.clone()))
        });
        waited.with_context(|| format!("last: {last}\n{}", self.log()))
    }

    /// The process, for its log and signals; of one in a guest, the guest.
    pub fn process(&mut self) -> &mut Process {
        match &mut self.0 {
            Seat::Host(_, process) => process,
            Seat::Guest(guest) => guest.process(),
        }
    }

    /// Runs a command line where it is.
    ///
    /// # Errors
    /// Those of [`Host::run`] or [`Guest::run`].
    pub fn run(&self, line: &str) -> Result<String> {
        match &self.0 {
            Seat::Host(host, _) => host.run(line),
            Seat::Guest(guest) => guest.run(line),
        }
    }

    /// What it runs in, if that is a machine of its own.
    pub fn guest(&self) -> Option<&Guest> {
        match &self.0 {
            Seat::Host(..) => None,
            Seat::Guest(guest) => Some(guest),
        }
    }

    /// The same, for another peer: this one ends there.
    pub fn into_guest(self) -> Option<Guest> {
        match self.0 {
            Seat::Host(..) => None,
            Seat::Guest(guest) => Some(guest),
        }
    }

    /// Sends SIGTERM and waits until it has told the peer and ended.
    ///
    /// # Errors
    /// It did not end.
    pub fn stop(&mut self) -> Result<()> {
        match &mut self.0 {
            Seat::Host(_, process) => process.terminate(DEADLINE).map(drop),
            Seat::Guest(guest) => guest.run(END_IN_GUEST).map(drop),
        }
    }

    fn swanctl(&self, words: &str) -> Result<String> {
        let swanctl = find_command("swanctl", "strongswan-swanctl")?;
        let host = match &self.0 {
            Seat::Host(host, _) => host,
            Seat::Guest(guest) => {
                let swanctl = swanctl.display();
                return guest.run(&format!("{IN_GUEST} {swanctl} {words} --uri unix://vici"));
            }
        };
        let mut command = host.command(swanctl);
        command.env("STRONGSWAN_CONF", "strongswan.conf");
        command.env("SWANCTL_DIR", host.directory());
        command.args(words.split_whitespace());
        command.args(["--uri", "unix://vici"]);
        host.run_command(command, DEADLINE)
    }

    fn log(&self) -> String {
        match &self.0 {
            Seat::Host(_, process) => process.log(),
            Seat::Guest(guest) => guest
                .run("cat /mnt/charon.log")
                .unwrap_or_else(|error| format!("{error:#}")),
        }
    }
}

impl Connection<'_> {
    /// The same seen from its other end.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            id: self.peer_id,
            peer_id: self.id,
            address: self.peer_address,
            peer_address: self.address,
            local: self.remote,
            remote: self.local,
            ..self
        }
    }

    fn settings(&self) -> String {
        let (auth, own, peers) = match (self.psk, self.raw_keys) {
            (Some(_), _) => ("psk", "", ""),
            (None, false) => ("pubkey", "certs = end.pem", ""),
            (None, true) => ("pubkey", "pubkeys = own.pub", "pubkeys = peer.pub"),
        };
        let psk = self.psk.map_or_else(String::new, |psk| {
            format!("  ike {{\n    secret = \"{psk}\"\n  }}\n")
        });
        let (ppk, ppk_secret) = self.ppk.map_or_else(Default::default, |ppk| {
            let Ppk {
                id,
                secret,
                named,
                required,
            } = ppk;
            let required = if required { "yes" } else { "no" };
            let named = if named {
                format!("ppk_id = {id}\n    ")
            } else {
                String::new()
            };
            (
                format!("{named}ppk_required = {required}"),
                format!("  ppk {{\n    id = {id}\n    secret = \"{secret}\"\n  }}\n"),
            )
        });
        let Self {
            id,
            peer_id,
            address,
            peer_address,
            psk: _,
            raw_keys: _,
            signature_authentication: _,
            ppk: _,
            encap,
            local,
            remote,
            ike,
            esp,
            mode,
            tfc,
            ike_rekey,
            reauth,
            rekey,
            fragment: _,
            vips,
            pools,
            others,
        } = self;
        let encap = if *encap { "yes" } else { "no" };
        let first = Child {
            name: CHILD,
            local,
            remote,
        };
        let children = std::iter::once(&first).chain(others.iter());
        let children: String = children
            .map(|child| child.settings(esp, (mode, tfc), rekey))
            .collect();
        let vips = vips.map_or_else(String::new, |vips| format!("vips = {vips}"));
        let names: Vec<_> = (0..pools.len())
            .map(|index| format!("pool{index}"))
            .collect();
        let lends = match names.is_empty() {
            true => String::new(),
            false => format!("pools = {}", names.join(", ")),
        };
        let pools = names.iter().zip(pools.iter());
        let pools = pools.map(|(name, pool)| {
            let Pool { addresses, dns, .. } = pool;
            let subnets = pool.subnets.map(|all| format!("    subnet = {all}\n"));
            let subnets = subnets.unwrap_or_default();
            format!("  {name} {{\n    addrs = {addresses}\n    dns = {dns}\n{subnets}  }}\n")
        });
        let pools: String = pools.collect();
        format!(
            r#"connections {{
  peer {{
    version = 2
    local_addrs = {address}
    remote_addrs = {peer_address}
    proposals = {ike}
    encap = {encap}
    fragmentation = yes
    {vips}
    {lends}
    {ppk}
    rekey_time = {ike_rekey}
    reauth_time = {reauth}
    over_time = 1h
    rand_time = 0
    local {{
      auth = {auth}
      {own}
      id = {id}
    }}
    remote {{
      auth = {auth}
      {peers}
      id = {peer_id}
    }}
    children {{
{children}    }}
  }}
}}
secrets {{
{psk}{ppk_secret}}}
pools {{
{pools}}}
"#
        )
    }
}

impl Child<'_> {
    fn settings(&self, esp: &str, (mode, tfc): (&str, &str), rekey: &str) -> String {
        let Self {
            name,
            local,
            remote,
        } = self;
        format!(
            "      {name} {{
        local_ts = {local}
        remote_ts = {remote}
        esp_proposals = {esp}
        mode = {mode}
        tfc_padding = {tfc}
        rekey_time = {rekey}
        life_time = 2h
        rand_time = 0
      }}
"
        )
    }
}

/// Level 1 of the log tells every exchange and what was refused, and nothing of packets.
fn daemon_settings(plugins: &str, connection: &Connection<'_>) -> String {
    let Connection { fragment, .. } = connection;
    let signatures = if connection.signature_authentication {
        "yes"
    } else {
        "no"
    };
    format!(
        "charon {{
  load_modular = no
  load = {plugins}
  fragment_size = {fragment}
  signature_authentication = {signatures}
  make_before_break = yes
  plugins {{
    vici {{
      socket = unix://vici
    }}
  }}
  filelog {{
    stderr {{
      default = 1
      flush_line = yes
    }}
  }}
}}
swanctl {{
  load = random openssl pem pkcs1 pkcs8 x509
}}
"
    )
}

fn find_charon() -> Result<PathBuf> {
    let plugins = "/usr/lib/ipsec/plugins/libstrongswan-";
    let needed = [
        (CHARON.to_owned(), "strongswan-charon"),
        (
            format!("{plugins}kernel-libipsec.so"),
            "libcharon-extra-plugins",
        ),
        (format!("{plugins}gcm.so"), "libstrongswan-standard-plugins"),
        (
            format!("{plugins}curve25519.so"),
            "libstrongswan-extra-plugins",
        ),
    ];
    for (file, package) in needed {
        let fix = format!("run `sudo apt-get install {package}`");
        ensure!(Path::new(&file).is_file(), "{file} is missing: {fix}");
    }
    Ok(PathBuf::from(CHARON))
}
