//! WireGuard in user space, configured through its cross-platform interface (a socket, `set=1`).

use crate::host::Host;
use crate::process::{DEADLINE, Process};
use crate::testbed::find_command;
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf, absolute};

/// A program with its possible names.
pub(super) struct Program {
    names: &'static [&'static str],
    options: &'static [&'static str],
}

pub(super) const GO: Program = Program {
    // Go's own name comes second.
    names: &["wireguard-go", "wireguard"],
    options: &["-f"],
};

pub(super) const BORINGTUN: Program = Program {
    names: &["boringtun-cli", "boringtun"],
    options: &["--foreground", "--disable-drop-privileges"],
};

/// An end: its keys, its address on the wire, and its inner address with the prefix that is routed
/// to its device.
struct End {
    private: &'static str,
    public: &'static str,
    outside: &'static str,
    inside: &'static str,
}

/// The key pairs of Alice and Bob in RFC 7748 section 6.1: nothing here is secret.
const ENDS: [End; 2] = [
    End {
        private: "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
        public: "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
        outside: "192.0.2.1",
        inside: "10.1.0.1/8",
    },
    End {
        private: "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
        public: "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f",
        outside: "192.0.2.2",
        inside: "10.2.0.1/8",
    },
];

const DEVICE: &str = "wg0";

const PORT: u16 = 51820;

/// MTU that `wg-quick` sets.
const MTU: u32 = 1420;

/// Shell script that starts the program in its `$0` with its own `/run`, because both ends use the
/// same socket path.
const ON_EMPTY_RUN: &str = "mount -t tmpfs none /run && exec \"$0\" \"$@\"";

impl Program {
    /// Returns the path of the program: in `$STRATA_PEERS`, in the folder that `lab/peers`
    /// filled next to this executable or up to two folders above, or in `PATH`.
    pub fn find(&self) -> Option<PathBuf> {
        let named = std::env::var_os("STRATA_PEERS").and_then(|named| absolute(named).ok());
        let executable = std::env::current_exe().unwrap_or_default();
        let above = executable.ancestors().skip(1).take(3);
        let folders = named
            .into_iter()
            .chain(above.map(|folder| folder.join("peers")));
        let folders: Vec<_> = folders.map(|folder| folder.join("bin")).collect();
        let in_folder = |name: &&str| {
            folders
                .iter()
                .map(|folder| folder.join(name))
                .find(|file| file.is_file())
        };
        let in_path = |name: &&str| find_command(name, name).ok();
        let mut names = self.names.iter();
        names
            .clone()
            .find_map(in_folder)
            .or_else(|| names.find_map(in_path))
    }

    /// Starts both ends; the tunnel comes up with the first packet.
    pub fn start(&self, [near, far]: [&Host; 2]) -> Result<[Process; 2]> {
        let program = self.find().context("it is not there any more")?;
        let [alice, bob] = &ENDS;
        let far = self.start_end(&program, far, bob, alice)?;
        Ok([self.start_end(&program, near, alice, bob)?, far])
    }

    fn start_end(&self, program: &Path, host: &Host, own: &End, peer: &End) -> Result<Process> {
        let mut command = host.command(find_command("unshare", "util-linux")?);
        command
            .args(["--mount", "sh", "-c", ON_EMPTY_RUN])
            .arg(program);
        command.args(self.options).arg(DEVICE);
        let mut process = host.start("wireguard", command)?;
        let socket = format!("/proc/{}/root/run/wireguard/{DEVICE}.sock", process.pid());
        let what = format!("the socket of {}", program.display());
        let socket = process.wait_for(&what, DEADLINE, |_| UnixStream::connect(&socket).ok())?;
        configure(socket, own, peer)?;
        let netlink = host.netns().netlink()?;
        netlink.set_mtu(DEVICE, MTU)?;
        netlink.add_address(DEVICE, own.inside.parse()?)?;
        netlink.link_up(DEVICE)?;
        Ok(process)
    }
}

/// Configures an end with its key and its peer's, and routes all inner addresses to the peer.
fn configure(mut socket: UnixStream, own: &End, peer: &End) -> Result<()> {
    socket.set_read_timeout(Some(DEADLINE))?;
    write!(
        socket,
        "set=1\nprivate_key={}\nlisten_port={PORT}\npublic_key={}\nendpoint={}:{PORT}\n\
         allowed_ip=10.0.0.0/8\n\n",
        own.private, peer.public, peer.outside
    )?;
    let mut answer = String::new();
    BufReader::new(socket).read_line(&mut answer)?;
    ensure!(answer == "errno=0\n", "it answers {answer:?}");
    Ok(())
}
