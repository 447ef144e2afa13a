//! pluto, libreswan's IKEv2 daemon, as another foreign peer. Its only ESP is the kernel's, so it
//! runs in a [`Guest`], from packages of another Debian release that `lab/unpack` unpacked.

use crate::guest::Guest;
use crate::host::Host;
use crate::origin;
use anyhow::Result;

/// The connection that [`crate::duo::OURS`] expects, given the same pre-shared key. The guest has
/// its own routes.
const CONNECTION: &str = "config setup
	logtime=no
	uniqueids=no
conn peer
	keyexchange=ikev2
	left=192.0.2.2
	leftid=@theirs.example
	leftsubnet=10.2.0.0/24
	leftupdown=%disabled
	right=192.0.2.1
	rightid=@ours.example
	rightsubnet=10.1.0.1/32
	authby=secret
	ike=aes_gcm128-sha2_256-dh31
	esp=aes_gcm128
	pfs=no
	encapsulation=yes
	auto=add
";

/// Commands that start pluto in its root, in this order.
const START: [&str; 4] = [
    "certutil -N -d sql:/run/nss --empty-password",
    "/usr/libexec/ipsec/pluto --config /run/ipsec.conf --secretsfile /run/ipsec.secrets --nssdir /run/nss \
     --logfile /run/pluto.log --rundir /run",
    "/usr/libexec/ipsec/addconn --config /run/ipsec.conf --ctlsocket /run/pluto.ctl peer",
    "/usr/libexec/ipsec/whack --ctlsocket /run/pluto.ctl --listen",
];

/// A running pluto. It is killed with its guest when dropped.
pub struct Pluto {
    guest: Guest,
    root: String,
}

impl Pluto {
    /// Starts a pluto that responds, and initiates only on request, with one more `option` of the
    /// connection. The guest must already be on its wires.
    ///
    /// # Errors
    /// pluto is not unpacked, or does not start.
    pub fn start(guest: Guest, files: &Host, psk: &str, option: &str) -> Result<Self> {
        files.file("ipsec.conf", &format!("{CONNECTION}\t{option}\n"))?;
        let secret = format!("@theirs.example @ours.example : PSK \"{psk}\"\n");
        files.secret("ipsec.secrets", &secret)?;
        let root = origin::unpacked()?.display().to_string();
        let folder = files.directory().display();
        for line in [
            format!("for dir in dev proc sys; do mount --rbind /$dir '{root}'/$dir; done"),
            format!("for dir in run var; do mount -t tmpfs none '{root}'/$dir; done"),
            format!("mkdir '{root}/run/nss' && cp '{folder}'/ipsec.* '{root}/run'"),
            "ip route add 10.1.0.1 via 192.0.2.1".to_owned(),
        ] {
            guest.run(&line)?;
        }
        let pluto = Self { guest, root };
        START
            .iter()
            .try_for_each(|line| pluto.run(line).map(drop))?;
        Ok(pluto)
    }

    /// Initiates the connection, and returns once the child SA is up. The answer lists the
    /// exchanges.
    ///
    /// # Errors
    /// The child SA did not come up; the message has pluto's report.
    pub fn initiate(&self) -> Result<String> {
        self.whack("--initiate")
    }

    /// Gives the IKE SA up without a Delete, and keeps the ticket for it.
    ///
    /// # Errors
    /// There is no IKE SA.
    pub fn suspend(&self) -> Result<()> {
        self.whack("--suspend").map(drop)
    }

    /// Rekeys the child SA, then its IKE SA.
    ///
    /// # Errors
    /// There are no SAs to rekey.
    pub fn rekey(&self) -> Result<()> {
        self.whack("--rekey-child")?;
        self.whack("--rekey-ike").map(drop)
    }

    /// Deletes the IKE SA and its child.
    ///
    /// # Errors
    /// pluto does not answer.
    pub fn terminate(&self) -> Result<String> {
        self.whack("--terminate")
    }

    /// Returns the version: `Libreswan 5.2`.
    ///
    /// # Errors
    /// pluto does not answer.
    pub fn version(&self) -> Result<String> {
        Ok(self.whack("--version")?.trim().to_owned())
    }

    /// Returns the guest that pluto runs in.
    pub fn guest(&self) -> &Guest {
        &self.guest
    }

    fn whack(&self, words: &str) -> Result<String> {
        self.run(&format!(
            "/usr/libexec/ipsec/whack --ctlsocket /run/pluto.ctl --name peer {words}"
        ))
    }

    fn run(&self, line: &str) -> Result<String> {
        self.guest.run(&format!("chroot '{}' {line}", self.root))
    }
}
