//! charon, strongSwan's IKEv2 daemon, as a foreign peer.
//!
//! Its ESP is in user space too (plugin `kernel-libipsec`), always inside UDP port 4500, so the
//! kernel needs no ESP. A charon in a [`Guest`] uses the ESP of the guest's kernel instead. Each
//! charon requires a `/run` of its own: it gets an empty one in a mount namespace. All its other
//! files are in the host's folder and named relative to it, because the empty `/run` may hide the
//! folder's absolute path, and because the path of a Unix socket must be short.

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

/// Plugins of charon. `aesni` comes before `aes gcm`: the first plugin that offers an algorithm
/// provides it, and the portable code has a tenth of the speed. `curve25519` and `kernel-libipsec`
/// are in Debian's extra packages. `kernel-netlink` installs the routes into the tunnel, and the
/// SAs if ESP is the kernel's.
pub(crate) const PLUGINS: &str = "random nonce aesni aes gcm sha1 sha2 hmac kdf curve25519 \
                       openssl pem pkcs1 pkcs8 pubkey x509 constraints kernel-libipsec kernel-netlink socket-default vici";

/// The plugin for ESP in user space.
const LIBIPSEC: &str = "kernel-libipsec ";

/// Shell script that starts the program in its `$0`, with an empty `/run`. A file `hosts` in the
/// host's folder is its `/etc/hosts`.
const ON_EMPTY_RUN: &str = "mount -t tmpfs none /run && \
                            { test ! -e hosts || mount --bind hosts /etc/hosts; } && exec \"$0\"";

/// Shell script that starts the program in its `$0`, which reads `ipsec.conf`, with an empty
/// `/run`.
const STARTER_ON_EMPTY_RUN: &str =
    "mount -t tmpfs none /run && exec \"$0\" --nofork --conf ipsec.conf";

/// The daemon that reads `ipsec.conf` and drives charon (package `strongswan-starter`).
const STARTER: &str = "/usr/lib/ipsec/starter";

/// Shell script that starts the program in its `$0` inside the root in `$1`, with our files in
/// `/mnt` of that root as the working directory.
const IN_ANOTHER_ROOT: &str = "for dir in dev proc sys; do mount --rbind /$dir \"$1/$dir\"; done && \
                               mount --bind . \"$1/mnt\" && mount -t tmpfs none \"$1/run\" && \
                               exec unshare --root \"$1\" --wd /mnt \"$0\"";

/// Environment of charon's tools in a guest, where its files are in `/mnt`.
const IN_GUEST: &str = "cd /mnt && export STRONGSWAN_CONF=strongswan.conf SWANCTL_DIR=/mnt &&";

/// Ends charon in a guest, and returns only once its process has ended.
const END_IN_GUEST: &str = "pid=$(cat /run/charon.pid) && kill \"$pid\" && while kill -0 \"$pid\" 2>&-; do sleep 0.1; done";

/// One connection with one child, both ends as charon sees them. It responds, and initiates only on
/// request ([`Charon::initiate`]).
#[derive(Clone, Copy, Debug)]
pub struct Connection<'a> {
    /// Identity of charon.
    pub id: &'a str,
    /// Identity that the peer must prove.
    pub peer_id: &'a str,
    /// Outer address of charon.
    pub address: &'a str,
    /// Outer address of the peer.
    pub peer_address: &'a str,
    /// Pre-shared key: any octets but quotes and newlines. Without it, both ends authenticate with
    /// certificates: charon's is `x509/end.pem`, its key in `private`, its CAs in `x509ca`.
    pub psk: Option<&'a str>,
    /// True for raw public keys instead of certificates: charon's public key is `pubkey/own.pub`,
    /// its private key is in `private`, the peer's public key is `pubkey/peer.pub`.
    pub raw_keys: bool,
    /// True if charon announces hash algorithms (RFC 7427). Otherwise signatures use the older
    /// methods.
    pub signature_authentication: bool,
    /// A post-quantum pre-shared key (RFC 8784) in addition.
    pub ppk: Option<Ppk<'a>>,
    /// True if charon claims to be behind a NAT, so that ESP is in UDP. `kernel-libipsec` supports
    /// no other encapsulation.
    pub encap: bool,
    /// Traffic selectors of charon, separated by commas.
    pub local: &'a str,
    /// Traffic selectors of the peer.
    pub remote: &'a str,
    /// Proposals for the IKE SA, in strongSwan's syntax; `default` for its own.
    pub ike: &'a str,
    /// Proposals for the child SA.
    pub esp: &'a str,
    /// The mode of the child SA: `tunnel`, `transport` or `beet`.
    pub mode: &'a str,
    /// Length to which packets of the child SA are padded, in octets; `mtu` is the longest
    /// possible, `0` disables padding.
    pub tfc: &'a str,
    /// Time until the IKE SA is rekeyed.
    pub ike_rekey: &'a str,
    /// Time until charon re-authenticates with a new IKE SA that replaces this one; `0` is never.
    pub reauth: &'a str,
    /// Time until the child SA is rekeyed.
    pub rekey: &'a str,
    /// Largest IP datagram that carries IKE messages, in octets, if the peer supports
    /// fragmentation.
    pub fragment: u16,
    /// Inner addresses that charon requests: `0.0.0.0` and `::` are any.
    pub vips: Option<&'a str>,
    /// Pools that charon leases addresses from.
    pub pools: &'a [Pool<'a>],
    /// Additional children.
    pub others: &'a [Child<'a>],
}

/// An additional child, with the proposals, mode and times of the first.
#[derive(Clone, Copy, Debug)]
pub struct Child<'a> {
    /// Name of the child in charon's configuration.
    pub name: &'a str,
    /// Traffic selectors of charon.
    pub local: &'a str,
    /// Traffic selectors of the peer.
    pub remote: &'a str,
}

/// A pool of addresses that charon leases.
#[derive(Clone, Copy, Debug)]
pub struct Pool<'a> {
    /// Prefix of the addresses.
    pub addresses: &'a str,
    /// Name server that charon announces.
    pub dns: &'a str,
    /// Subnets that charon announces as reachable behind it.
    pub subnets: Option<&'a str>,
}

/// A post-quantum pre-shared key.
#[derive(Clone, Copy, Debug)]
pub struct Ppk<'a> {
    /// Name of the key.
    pub id: &'a str,
    /// The key: any octets but quotes and newlines.
    pub secret: &'a str,
    /// True if the key belongs to this connection: as initiator charon names it, as responder it
    /// accepts no other.
    pub named: bool,
    /// True if the connection fails without the key.
    pub required: bool,
}

/// Name of a connection's first child in charon's configuration.
pub const CHILD: &str = "net";

/// A running charon. It is killed when dropped; [`Charon::stop`] ends it as an operator would.
pub struct Charon(Place);

/// The machine that a charon runs on.
enum Place {
    Host(Host, Process),
    Guest(Guest),
}

impl Host {
    /// Starts charon with one connection and waits until charon has loaded it.
    ///
    /// # Errors
    /// strongSwan is not installed (the message names the package), or charon ended or refused the
    /// connection; the message has its log.
    pub fn charon(&self, connection: &Connection<'_>) -> Result<Charon> {
        self.charon_of(Origin::Installed, connection)
    }

    /// Starts a charon of this origin. A charon in a guest gets copies of this host's files.
    ///
    /// # Errors
    /// As [`Host::charon`].
    pub fn charon_of(&self, origin: Origin, connection: &Connection<'_>) -> Result<Charon> {
        let plugins = match origin {
            Origin::Installed | Origin::Unpacked(_) => PLUGINS.to_owned(),
            Origin::Guest(_) => PLUGINS.replace(LIBIPSEC, ""),
        };
        let settings = daemon_settings(&plugins, connection, "");
        let connection = connection.settings();
        self.file("strongswan.conf", &settings)?;
        self.secret("swanctl.conf", &connection)?;
        let charon = match origin {
            Origin::Installed => self.start_installed()?,
            Origin::Unpacked(root) => {
                let words = [IN_ANOTHER_ROOT.as_ref(), CHARON.as_ref(), root.as_os_str()];
                self.start_charon(&words)?
            }
            Origin::Guest(guest) => start_in(guest, self.directory())?,
        };
        charon.swanctl("--load-all --noprompt --file swanctl.conf")?;
        Ok(charon)
    }

    /// Starts the installed charon, which accounts its IKE SAs at a RADIUS server.
    ///
    /// # Errors
    /// As [`Host::charon`].
    pub fn charon_that_accounts(
        &self,
        connection: &Connection<'_>,
        server: &str,
        secret: &str,
    ) -> Result<Charon> {
        let plugins = format!("{PLUGINS} md5 eap-radius");
        let radius = format!(
            "    eap-radius {{
      accounting = yes
      servers {{
        lab {{
          address = {server}
          secret = \"{secret}\"
        }}
      }}
    }}
"
        );
        let settings = daemon_settings(&plugins, connection, &radius);
        self.charon_with(&settings, &connection.settings())
    }

    /// Starts the installed charon with these files, `strongswan.conf` and `swanctl.conf`. The
    /// first has the API at `unix://vici`, and loads `PLUGINS`.
    ///
    /// # Errors
    /// As [`Host::charon`].
    pub fn charon_with(&self, settings: &str, connections: &str) -> Result<Charon> {
        self.file("strongswan.conf", settings)?;
        self.secret("swanctl.conf", connections)?;
        let charon = self.start_installed()?;
        charon.swanctl("--load-all --noprompt --file swanctl.conf")?;
        Ok(charon)
    }

    /// Starts the installed charon as `ipsec start` does, with these files, `ipsec.conf` and
    /// `ipsec.secrets`. A connection with `auto=start` comes up by itself.
    ///
    /// # Errors
    /// As [`Host::charon`].
    pub fn starter(&self, conf: &str, secrets: &str) -> Result<Process> {
        find_charon()?;
        let plugins = PLUGINS.replace("vici", "stroke");
        self.file("strongswan.conf", &starter_settings(&plugins))?;
        self.file("ipsec.conf", conf)?;
        self.secret("ipsec.secrets", secrets)?;
        let mut command = self.command(find_command("unshare", "util-linux")?);
        command.args(["--mount", "sh", "-c", STARTER_ON_EMPTY_RUN, STARTER]);
        command.env("STRONGSWAN_CONF", "strongswan.conf");
        self.start("starter", command)
    }

    fn start_installed(&self) -> Result<Charon> {
        self.start_charon(&[ON_EMPTY_RUN.as_ref(), find_charon()?.as_os_str()])
    }

    /// Starts charon from a shell script; `words` are the script and its arguments.
    fn start_charon(&self, words: &[&OsStr]) -> Result<Charon> {
        let mut command = self.command(find_command("unshare", "util-linux")?);
        command.args(["--mount", "sh", "-c"]).args(words);
        command.env("STRONGSWAN_CONF", "strongswan.conf");
        // The socket of an earlier run would exist without accepting connections.
        let socket = self.directory().join("vici");
        let _ = std::fs::remove_file(&socket);
        let mut process = self.start("charon", command)?;
        let what = format!("the API of charon on {}", self.name());
        process.wait_for(&what, DEADLINE, |_| UnixStream::connect(&socket).ok())?;
        Ok(Charon(Place::Host(self.clone(), process)))
    }
}

fn start_in(guest: Guest, folder: &Path) -> Result<Charon> {
    let charon = find_charon()?;
    guest.run(&format!("cp -r '{}/.' /mnt", folder.display()))?;
    let start = format!("{{ {} >charon.log 2>&1 & }}", charon.display());
    guest.run(&format!("{IN_GUEST} {start}"))?;
    let charon = Charon(Place::Guest(guest));
    let answers = until("the API of charon in the guest", DEADLINE, || {
        Ok(charon.version().ok())
    });
    answers.with_context(|| charon.log())?;
    Ok(charon)
}

impl Charon {
    /// Initiates the connection, and returns once the child SA is up. The answer lists the
    /// exchanges.
    ///
    /// # Errors
    /// The child SA did not come up; the message has charon's report.
    pub fn initiate(&self) -> Result<String> {
        self.initiate_child(CHILD)
    }

    /// Initiates a child of another name, in the same IKE SA if there is one.
    ///
    /// # Errors
    /// As [`Charon::initiate`].
    pub fn initiate_child(&self, name: &str) -> Result<String> {
        self.swanctl(&format!("--initiate --child {name}"))
    }

    /// Deletes one child, and returns once the peer has acknowledged.
    ///
    /// # Errors
    /// There is no child of that name.
    pub fn terminate_child(&self, name: &str) -> Result<String> {
        self.swanctl(&format!("--terminate --child {name}"))
    }

    /// Deletes the IKE SA and its child, and returns once the peer has acknowledged.
    ///
    /// # Errors
    /// There is no IKE SA.
    pub fn terminate(&self) -> Result<String> {
        self.swanctl("--terminate --ike peer")
    }

    /// Rekeys the child SA and its IKE SA, and returns once the rekeys are requested.
    ///
    /// # Errors
    /// There are no SAs to rekey.
    pub fn rekey(&self) -> Result<()> {
        // The child comes first: while an IKE SA is replaced, its children belong to neither SA.
        self.swanctl(&format!("--rekey --child {CHILD}"))?;
        self.swanctl("--rekey --ike peer").map(drop)
    }

    /// Returns the version: `5.9.8`.
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

    /// Re-authenticates with a new IKE SA that replaces the existing one, and returns once it is
    /// requested.
    ///
    /// # Errors
    /// There is no IKE SA.
    pub fn reauthenticate(&self) -> Result<()> {
        self.swanctl("--rekey --ike peer --reauth").map(drop)
    }

    /// Redirects the peer to another gateway: an address or a name (RFC 5685 section 5).
    ///
    /// # Errors
    /// There is no IKE SA, or the peer does not support it.
    pub fn redirect(&self, gateway: &str) -> Result<()> {
        let redirected = self.swanctl(&format!("--redirect --ike peer --gateway {gateway}"));
        redirected.map(drop)
    }

    /// Returns charon's SAs, in swanctl's raw format: `state=ESTABLISHED`, `bytes-in=1234`.
    ///
    /// # Errors
    /// charon does not answer.
    pub fn sas(&self) -> Result<String> {
        self.swanctl("--list-sas --raw")
    }

    /// Waits until the answer of [`Charon::sas`] satisfies `enough`.
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

    /// Returns the process, for its log and signals. For a charon in a guest, this is the guest's
    /// process.
    pub fn process(&mut self) -> &mut Process {
        match &mut self.0 {
            Place::Host(_, process) => process,
            Place::Guest(guest) => guest.process(),
        }
    }

    /// Runs a command line on charon's machine.
    ///
    /// # Errors
    /// Those of [`Host::run`] or [`Guest::run`].
    pub fn run(&self, line: &str) -> Result<String> {
        match &self.0 {
            Place::Host(host, _) => host.run(line),
            Place::Guest(guest) => guest.run(line),
        }
    }

    /// Returns the guest that charon runs in, if it runs in one.
    pub fn guest(&self) -> Option<&Guest> {
        match &self.0 {
            Place::Host(..) => None,
            Place::Guest(guest) => Some(guest),
        }
    }

    /// Ends this charon and returns its guest, for use by another peer.
    pub fn into_guest(self) -> Option<Guest> {
        match self.0 {
            Place::Host(..) => None,
            Place::Guest(guest) => Some(guest),
        }
    }

    /// Sends SIGTERM and waits until charon has notified the peer and ended.
    ///
    /// # Errors
    /// charon did not end.
    pub fn stop(&mut self) -> Result<()> {
        match &mut self.0 {
            Place::Host(_, process) => process.terminate(DEADLINE).map(drop),
            Place::Guest(guest) => guest.run(END_IN_GUEST).map(drop),
        }
    }

    fn swanctl(&self, words: &str) -> Result<String> {
        let swanctl = find_command("swanctl", "strongswan-swanctl")?;
        let host = match &self.0 {
            Place::Host(host, _) => host,
            Place::Guest(guest) => {
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
            Place::Host(_, process) => process.log(),
            Place::Guest(guest) => guest
                .run("cat /mnt/charon.log")
                .unwrap_or_else(|error| format!("{error:#}")),
        }
    }
}

impl Connection<'_> {
    /// Returns the same connection as seen from its other end.
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

/// The log that operators have of charon, in the folder of its host: with times, and with the name
/// and the number of the IKE SA in each line.
pub const OPERATORS_LOG: &str = "charon-operators.log";

/// Returns charon's settings, with additional sections of plugins. Level 1 of the log shows every
/// exchange and every refusal, and nothing about packets.
fn daemon_settings(plugins: &str, connection: &Connection<'_>, sections: &str) -> String {
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
{sections}  }}
  filelog {{
    stderr {{
      default = 1
      flush_line = yes
    }}
    operators {{
      path = {OPERATORS_LOG}
      time_format = %Y-%m-%dT%H:%M:%S%z
      ike_name = yes
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

/// Returns the settings of a charon that `starter` drives.
fn starter_settings(plugins: &str) -> String {
    format!(
        "charon {{
  load_modular = no
  load = {plugins}
  plugins {{
    stroke {{
      secrets_file = ipsec.secrets
    }}
  }}
  filelog {{
    stderr {{
      default = 1
      flush_line = yes
    }}
  }}
}}
starter {{
  load_warning = no
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
