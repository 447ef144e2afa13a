//! A machine with its own kernel, for peers that use the kernel's ESP: user-mode Linux, which is a
//! process.
//!
//! ```text
//!   wire ---- outside [ eth0  guest  eth1 ] inside ---- wire to who is behind it
//! ```
//!
//! Its root is this machine's, read-only, so it has every program that is installed here. Its
//! writes stay in memory. Each of its two devices is a raw socket on one end of a wire, in a
//! namespace of ours without addresses. The devices corrupt packets that still need segmentation,
//! so no sender on these wires may leave segmentation to its device. [`crate::wire::veth`] ensures
//! this.
//!
//! Commands and answers are files in a folder of ours that is mounted in the guest (`init`). A
//! console device would not do: it may lose an interrupt, and the guest then waits for ever.
//!
//! The guest is the first process of a PID namespace. Killing it kills everything that it has
//! started: those programs are processes on our side too.

use crate::host::{End, Host};
use crate::process::{DEADLINE, Process};
use crate::testbed::{Testbed, find_command};
use anyhow::{Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// First process of the guest.
const INIT: &str = include_str!("init");

/// A preloaded library that the kernel needs on processors with a large register state (AMX).
const XSTATE: &str = include_str!("xstate.c");

/// Shell line that starts the kernel in its `$0`, with the library preloaded.
const PRELOADED: &str = "export LD_PRELOAD=\"$PWD/xstate.so\" && exec \"$0\" \"$@\"";

/// Command line of the kernel. `init` runs without new privileges: the set-user-ID program `mount`
/// would otherwise give the process the identity of its owner, which is not root in the guest if
/// the lab's user is not root here.
const WORDS: &str = "mem=256M root=/dev/root rootfstype=hostfs rootflags=/ ro quiet \
                     con=null con0=null,fd:1 ssl=null \
                     vec0:transport=raw,ifname=outside vec1:transport=raw,ifname=inside \
                     init=/usr/bin/setpriv";

/// Echo server on port 7, one connection at a time. The command that starts it returns once it
/// listens.
const ECHO: &str = "import os, socket
listener = socket.create_server(('', 7))
if os.fork(): os._exit(0)
while True:
    peer, _ = listener.accept()
    while octets := peer.recv(65536): peer.sendall(octets)
    peer.close()
";

/// A running machine. Killed when dropped.
pub struct Guest {
    // Dropped first: the guest is dead before its files are removed.
    machine: Mutex<Machine>,
    host: Host,
    _bed: Testbed,
}

struct Machine {
    process: Process,
    orders: PathBuf,
    given: usize,
}

impl Guest {
    /// Starts a guest and waits until it accepts commands.
    ///
    /// # Errors
    /// A program is missing (the message names the package), or the kernel ended; the message has
    /// its last output.
    pub fn boot() -> Result<Self> {
        let bed = Testbed::new("guest")?;
        let host = bed.host("guest")?;
        host.file("init", INIT)?;
        host.file("xstate.c", XSTATE)?;
        host.run("cc -shared -fPIC -O2 -o xstate.so xstate.c -ldl")?;
        let orders = host.directory().join("orders");
        fs::create_dir(&orders)?;
        let machine = Machine {
            process: host.start("linux", kernel(&host)?)?,
            orders,
            given: 0,
        };
        let mut guest = Self {
            machine: Mutex::new(machine),
            host,
            _bed: bed,
        };
        guest.process().wait_for_log("up: ", DEADLINE)?;
        Ok(guest)
    }

    /// Runs a shell line to its end, and returns its output. Lines run one at a time.
    ///
    /// # Errors
    /// The line failed (the message has its output) or did not end in time.
    pub fn run(&self, line: &str) -> Result<String> {
        let machine = self.machine.lock();
        machine.unwrap_or_else(PoisonError::into_inner).run(line)
    }

    /// Returns the process of the guest, for its log and signals.
    pub fn process(&mut self) -> &mut Process {
        let machine = self.machine.get_mut();
        &mut machine.unwrap_or_else(PoisonError::into_inner).process
    }

    /// Ends all programs in the guest, and removes the guest from its wires.
    ///
    /// # Errors
    /// The guest does not answer.
    pub fn clear(&self) -> Result<()> {
        self.run("clear")?;
        let netlink = self.host.netns().netlink()?;
        for end in [self.outside(), self.inside()] {
            // The device does not exist, or disappears with the wire's other end.
            let _ = netlink.delete_link(end.device);
        }
        Ok(())
    }

    /// Returns its end of a wire to the peer.
    pub fn outside(&self) -> End<'_> {
        self.host.end("outside", &[])
    }

    /// Returns its end of a wire to the host behind it.
    pub fn inside(&self) -> End<'_> {
        self.host.end("inside", &[])
    }

    /// Brings up the devices on its wires, with an address on each.
    ///
    /// # Errors
    /// There is no wire.
    pub fn join(&self, outside: &str, inside: &str) -> Result<()> {
        for (device, address) in [("eth0", outside), ("eth1", inside)] {
            self.run(&format!(
                "ip link set {device} up && ip addr add {address} dev {device}"
            ))?;
        }
        Ok(())
    }

    /// Starts an echo server on its TCP port 7.
    ///
    /// # Errors
    /// The port is in use.
    pub fn echo(&self) -> Result<()> {
        let words = format!("python3 -c \"{ECHO}\" >/dev/null");
        self.run(&words).map(drop)
    }

    /// Returns the version of its kernel.
    ///
    /// # Errors
    /// The guest does not answer.
    pub fn version(&self) -> Result<String> {
        Ok(self.run("uname -r")?.trim().to_owned())
    }

    /// Returns the octets that its kernel's ESP has carried with each existing SA.
    ///
    /// # Errors
    /// The guest does not answer.
    pub fn carried(&self) -> Result<Carried> {
        Ok(octets(&self.run("ip -s xfrm state")?))
    }
}

/// Octets by SA. An SA is named by its addresses (`src 192.0.2.1 dst 192.0.2.2`) and its SPI.
pub type Carried = BTreeMap<(String, String), u64>;

/// Returns the octets carried since `before`, for each direction. An SA that has gone since counts
/// as zero.
pub fn growth(before: &Carried, after: &Carried) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (sa, octets) in after {
        let more = octets.saturating_sub(before.get(sa).copied().unwrap_or_default());
        *sums.entry(sa.0.clone()).or_default() += more;
    }
    sums
}

fn kernel(host: &Host) -> Result<Command> {
    find_command("modprobe", "kmod")?;
    let folder = host.directory().display();
    let mut command = host.command(find_command("unshare", "util-linux")?);
    command.args(["--pid", "--kill-child", "sh", "-c", PRELOADED]);
    command.arg(find_command("linux.uml", "user-mode-linux")?);
    command.arg(format!("uml_dir={folder}/"));
    command.args(WORDS.split_whitespace());
    command.args(["--", "--no-new-privs", "sh"]);
    command.arg(format!("{folder}/init"));
    // The kernel's memory is a file there, which it maps as executable.
    command.env("TMPDIR", "/dev/shm");
    Ok(command)
}

impl Machine {
    fn run(&mut self, line: &str) -> Result<String> {
        self.given += 1;
        let order = self.orders.join(self.given.to_string());
        // The guest looks for that name, and must not find a partial line.
        let draft = order.with_extension("draft");
        fs::write(&draft, format!("{line}\n"))?;
        fs::rename(&draft, &order)?;
        let answer = |_: &str| fs::read_to_string(order.with_extension("status")).ok();
        let status = self.process.wait_for(line, DEADLINE, answer)?;
        let said = fs::read(order.with_extension("said"))?;
        let said = String::from_utf8_lossy(&said).into_owned();
        ensure!(
            status.trim() == "0",
            "{line:?} in the guest: exit status {status}{said}"
        );
        Ok(said)
    }
}

/// Parses the output of `ip -s xfrm state`.
fn octets(states: &str) -> Carried {
    let mut carried = Carried::new();
    let (mut way, mut spi) = ("", "");
    for line in states.lines() {
        if line.starts_with("src ") {
            way = line.trim();
        }
        if let Some((_, after)) = line.split_once(" spi ") {
            spi = after.split_whitespace().next().unwrap_or_default();
        }
        // Limits have their numbers in brackets.
        let count = line.trim().split_once("(bytes), ");
        if let Some(count) = count.and_then(|(count, _)| count.parse().ok()) {
            carried.insert((way.to_owned(), spi.to_owned()), count);
        }
    }
    carried
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADS: [&str; 3] = [
        "src 192.0.2.2 dst 192.0.2.1\n\tproto esp spi 0x926eaf68(2456727400) reqid 1(0x00000001) mode tunnel",
        "src 192.0.2.1 dst 192.0.2.2\n\tproto esp spi 0xcac4a591(3401885073) reqid 1(0x00000001) mode tunnel",
        "src 192.0.2.1 dst 192.0.2.2\n\tproto esp spi 0x00001001(4097) reqid 1(0x00000001) mode tunnel",
    ];

    fn states(octets: [u64; 3]) -> Carried {
        let states = HEADS.iter().zip(octets).map(|(head, octets)| {
            format!(
                "{head}\n\tlifetime config:\n\t  limit: soft (INF)(bytes), hard (INF)(bytes)\n\
                 \tlifetime current:\n\t  {octets}(bytes), 743(packets)\n"
            )
        });
        super::octets(&states.collect::<String>())
    }

    #[test]
    fn octets_are_those_that_came_to_what_each_direction_had() {
        let before = states([10, 500, 7]);
        let mut after = states([39_688, 510, 17]);
        let sums = |after: &Carried| growth(&before, after).into_values().collect::<Vec<_>>();
        assert_eq!(sums(&after), [20, 39_678]);
        // The first SA of its direction goes.
        after.remove(&(
            "src 192.0.2.1 dst 192.0.2.2".into(),
            "0xcac4a591(3401885073)".into(),
        ));
        assert_eq!(sums(&after), [10, 39_678]);
    }
}
