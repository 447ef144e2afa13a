//! What a service manager keeps over a restart: the tunnel device with the packets in its queue,
//! and the UDP sockets. The tests are the manager, with a store of descriptors as systemd's
//! (`FileDescriptorStoreMax=`).

use anyhow::{Context, Result, ensure};
use lab::host::Host;
use lab::lending::{self, ALICE, Borrower, POOL};
use lab::pair::{self, DEADLINE, GATEWAY, MOBILE, Pair, Terms};
use lab::process::{Process, until};
use lab::testbed::find_binary;
use nix::cmsg_space;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::Signal;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, RecvMsg, recvmsg};
use os::{Bulk, Datagrams, Family};
use std::fs;
use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Datagrams that are sent while no daemon runs; fewer than the queue of the device holds.
const WAITING: u32 = 200;

/// Starts the daemon as systemd does (sd_listen_fds(3)): descriptors from 3 on, and none of them
/// under its former number. The environment has the numbers and the names.
const START: &str = r#"
set -e
next=3
for number in $NUMBERS; do
    eval "exec $next<&$number $number<&-"
    next=$((next + 1))
done
if [ -n "$NUMBERS" ]; then
    export LISTEN_PID=$$ LISTEN_FDS=$((next - 3))
fi
exec "$0" --config "$1""#;

/// First number of descriptors in the store: higher than those that the daemon gets.
const ABOVE: RawFd = 100;

/// The begin of the message that the queue of the kept device is read.
const READS: &str = "reading the tunnel device again";

/// A part of the line about it in `strata status`.
const GAP: &str = " ago, packets waited ";

type Stored = Arc<Mutex<Vec<(String, OwnedFd)>>>;

/// A service manager and its daemon.
struct Service<'a> {
    host: &'a Host,
    stored: Stored,
    process: Process,
}

/// Writes a configuration and its key.
fn configure(host: &Host, text: &str) -> Result<()> {
    host.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    let control = host.directory().join("api.sock");
    let text = format!("{text}[control]\nsocket = \"{}\"\n", control.display());
    host.file("strata.toml", &text).map(drop)
}

/// Returns the mobile node's configuration, with this line in [tunnel].
fn mobile(line: &str) -> String {
    let text = pair::mobile_config(Family::V4, Terms::PLAIN, "auto");
    text.replace("[tunnel]\n", &format!("[tunnel]\n{line}\n"))
}

fn locked(stored: &Stored) -> MutexGuard<'_, Vec<(String, OwnedFd)>> {
    stored.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Acts on messages of sd_notify(3) until the process ends.
fn keep(manager: &UnixDatagram, stored: &Stored) -> Result<()> {
    loop {
        let mut room = [0; 512];
        let mut rights = cmsg_space!([RawFd; 64]);
        let mut slices = [IoSliceMut::new(&mut room)];
        let (socket, flags) = (manager.as_raw_fd(), MsgFlags::MSG_CMSG_CLOEXEC);
        let message: RecvMsg<'_, '_, ()> = recvmsg(socket, &mut slices, Some(&mut rights), flags)?;
        let mut numbers = Vec::new();
        for control in message.cmsgs()? {
            if let ControlMessageOwned::ScmRights(some) = control {
                numbers.extend(some);
            }
        }
        let length = message.bytes;
        let received: std::io::Result<Vec<_>> = numbers.into_iter().map(os::kept::own).collect();
        let received = received?;
        let text = String::from_utf8_lossy(&room[..length]).into_owned();
        let name = text.lines().find_map(|line| line.strip_prefix("FDNAME="));
        let name = name.unwrap_or_default().to_owned();
        if text.starts_with("FDSTORE=1") {
            for descriptor in received {
                let number = fcntl(&descriptor, FcntlArg::F_DUPFD_CLOEXEC(ABOVE))?;
                locked(stored).push((name.clone(), os::kept::own(number)?));
            }
        } else if text.starts_with("FDSTOREREMOVE=1") {
            locked(stored).retain(|(stored, _)| *stored != name);
        }
        // The descriptor of `BARRIER=1` is closed here.
    }
}

impl<'a> Service<'a> {
    fn start(host: &'a Host) -> Result<Self> {
        let manager = UnixDatagram::bind(host.directory().join("notify.sock"))?;
        let stored = Stored::default();
        let keeper = Arc::clone(&stored);
        thread::spawn(move || keep(&manager, &keeper));
        let process = begin(host, &stored)?;
        let mut service = Self {
            host,
            stored,
            process,
        };
        service.is_up()?;
        Ok(service)
    }

    fn is_up(&mut self) -> Result<()> {
        self.process.wait_for_log("tunnel up", DEADLINE)
    }

    /// Ends the daemon. The store stays as it is.
    fn end(&mut self, signal: Signal) -> Result<()> {
        self.process.signal(signal)?;
        self.process.wait(DEADLINE).map(drop)
    }

    /// Starts the next daemon with what is in the store.
    fn start_again(&mut self) -> Result<()> {
        fs::remove_file(self.process.log_path())?;
        self.process = begin(self.host, &self.stored)?;
        Ok(())
    }

    fn names(&self) -> Vec<String> {
        let stored = locked(&self.stored);
        let mut names: Vec<_> = stored.iter().map(|(name, _)| name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }
}

fn begin(host: &Host, stored: &Stored) -> Result<Process> {
    let stored = locked(stored);
    let inherit = |flag| -> Result<()> {
        for (_, descriptor) in stored.iter() {
            fcntl(descriptor, FcntlArg::F_SETFD(flag))?;
        }
        Ok(())
    };
    let numbers = stored.iter().map(|(_, fd)| fd.as_raw_fd().to_string());
    let names = stored.iter().map(|(name, _)| name.as_str());
    let mut command = host.command("/bin/bash");
    command.args(["-c", START]);
    command.arg(find_binary("stratad")?).arg("strata.toml");
    command.env("NOTIFY_SOCKET", host.directory().join("notify.sock"));
    command.env("NUMBERS", numbers.collect::<Vec<_>>().join(" "));
    command.env("LISTEN_FDNAMES", names.collect::<Vec<_>>().join(":"));
    inherit(FdFlag::empty())?;
    let process = host.start("stratad", command);
    inherit(FdFlag::FD_CLOEXEC)?;
    process
}

/// Returns the index of the tunnel device, as the kernel shows it; `None` if there is none.
fn index(host: &Host) -> Option<String> {
    let shown = host.run("ip -oneline link show strata0").ok()?;
    shown.split(':').next().map(str::to_owned)
}

/// A sender behind the tunnel and its receiver at the gateway.
struct Flow {
    sender: UdpSocket,
    receiver: UdpSocket,
}

impl Flow {
    fn new(pair: &Pair) -> Result<Self> {
        Self::between((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]))
    }

    fn between(from: (&Host, &str), to: (&Host, &str)) -> Result<Self> {
        let bind = |(host, address): (&Host, &str)| {
            let address = (address.to_owned(), 0);
            host.inside(|| Ok(UdpSocket::bind(&address)?))
        };
        let (sender, receiver) = (bind(from)?, bind(to)?);
        sender.connect(receiver.local_addr()?)?;
        Ok(Self { sender, receiver })
    }

    /// Sends numbered datagrams. Returns the number that the kernel accepted.
    fn send(&self) -> u32 {
        let accepted = |number: &u32| self.sender.send(&number.to_be_bytes()).is_ok();
        (0..WAITING).filter(accepted).count() as u32
    }

    /// Returns the number of datagrams that arrive in order, and the last one within the deadline.
    fn receive(&self, deadline: Duration) -> Result<u32> {
        self.receiver.set_read_timeout(Some(deadline))?;
        for expected in 0..WAITING {
            let mut room = [0; 4];
            match self.receiver.recv(&mut room) {
                Ok(_) => ensure!(room == expected.to_be_bytes(), "not in order: {room:?}"),
                Err(_) => return Ok(expected),
            }
        }
        Ok(WAITING)
    }
}

/// The device is the same, for the kernel and for programs, and the ports stay bound. With several
/// `workers`, the queue of the main thread gets all packets meanwhile.
// Works: service
// Recovers: service
#[lab::test]
fn packets_wait_while_no_daemon_runs() -> Result<()> {
    for line in ["", "workers = 2"] {
        let pair = Pair::new("kept")?;
        let _gateway = pair.start_gateway(Terms::PLAIN)?;
        configure(&pair.mobile, &mobile(line))?;
        let mut service = Service::start(&pair.mobile)?;
        let told = status(&pair.mobile)?;
        ensure!(
            !told.contains(GAP),
            "nothing waited at the first start: {told}"
        );
        let flow = Flow::new(&pair)?;
        for signal in [Signal::SIGUSR1, Signal::SIGKILL] {
            survives(&mut service, &flow, signal)?;
        }
    }
    Ok(())
}

/// Ends the daemon and starts the next one. Packets that are sent between the two arrive, and
/// `strata status` tells how long they waited.
fn survives(service: &mut Service<'_>, flow: &Flow, signal: Signal) -> Result<()> {
    let host = service.host;
    let before = index(host).context("no device")?;
    let begun = Instant::now();
    service.end(signal)?;
    let names = service.names();
    ensure!(names == ["sockets", "tunnel"], "{names:?}");
    ensure!(index(host).as_ref() == Some(&before), "another device");
    let sockets = host.run("ss --udp --listening --numeric")?;
    ensure!(sockets.contains(":500 "), "{sockets}");
    ensure!(flow.send() == WAITING, "the kernel refuses packets");
    service.start_again()?;
    service.is_up()?;
    let arrived = flow.receive(DEADLINE)?;
    println!("{signal}: {arrived} packets after {:?}", begun.elapsed());
    ensure!(arrived == WAITING, "{arrived} of {WAITING} arrived");
    ensure!(index(host).as_ref() == Some(&before), "another device");
    let said = "sockets that were kept";
    service.process.wait_for_log(said, DEADLINE)?;
    service.process.wait_for_log(READS, DEADLINE)?;
    let told = status(host)?;
    ensure!(told.contains(GAP), "{told}");
    Ok(())
}

/// Returns what `strata status` prints.
fn status(host: &Host) -> Result<String> {
    let mut command = host.command(find_binary("strata")?);
    command
        .arg("--socket")
        .arg(host.directory().join("api.sock"));
    command.arg("status");
    host.run_command(command, DEADLINE)
}

/// A gateway cannot know which clients come back, and gives them a moment.
#[lab::test]
fn packets_to_clients_wait_for_them() -> Result<()> {
    let pair = Pair::new("kept")?;
    configure(&pair.gateway, &pair::gateway_config(Terms::PLAIN))?;
    pair.gateway.secret("node.psk", pair::NODE_KEY)?;
    let mobile = pair.start_mobile(Family::V4, Terms::PLAIN, "auto")?;
    let mut service = Service::start(&pair.gateway)?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    let (from, to) = ((&pair.gateway, GATEWAY[0]), (&pair.mobile, MOBILE[0]));
    survives(&mut service, &Flow::between(from, to)?, Signal::SIGUSR1)
}

/// An address from the peer stays on the device until it is assigned again. If it is not, the next
/// daemon removes it when the tunnels have had their time.
#[lab::test]
fn an_assigned_address_stays_until_the_tunnel_is_back() -> Result<()> {
    let pair = Pair::new("kept")?;
    let _lender = pair.start_lender(POOL)?;
    let borrower = Borrower {
        start: "auto",
        ..ALICE
    };
    configure(&pair.mobile, &lending::borrower_config(&borrower))?;
    let mut service = Service::start(&pair.mobile)?;
    let assigned = assigned(&pair.mobile)?.context("no address is assigned")?;
    let flow = Flow::between((&pair.mobile, &assigned), (&pair.gateway, GATEWAY[0]))?;
    survives(&mut service, &flow, Signal::SIGUSR1)?;
    service.end(Signal::SIGUSR1)?;
    let stranger = Borrower {
        id: "mallory@example.net",
        ..borrower
    };
    configure(&pair.mobile, &lending::borrower_config(&stranger))?;
    service.start_again()?;
    service.process.wait_for_log(READS, DEADLINE)?;
    let log = service.process.log();
    ensure!(log.contains("0 of 1 tunnels up"), "{log}");
    let left = self::assigned(&pair.mobile)?;
    ensure!(left.is_none(), "{left:?} is left");
    Ok(())
}

/// Returns the IPv4 address of the tunnel device.
fn assigned(host: &Host) -> Result<Option<String>> {
    let shown = host.run("ip -oneline -4 address show dev strata0")?;
    let mut words = shown.split_whitespace();
    let address = words
        .find(|word| *word == "inet")
        .and_then(|_| words.next());
    let address = address.and_then(|prefix| prefix.split('/').next());
    Ok(address.map(str::to_owned))
}

/// Control: without the store the device, its queue and its index are lost.
#[lab::test]
fn without_a_store_they_are_lost() -> Result<()> {
    let pair = Pair::new("kept")?;
    let _gateway = pair.start_gateway(Terms::PLAIN)?;
    configure(&pair.mobile, &mobile(""))?;
    let mut service = Service::start(&pair.mobile)?;
    let flow = Flow::new(&pair)?;
    let before = index(&pair.mobile).context("no device")?;
    service.end(Signal::SIGKILL)?;
    locked(&service.stored).clear();
    ensure!(index(&pair.mobile).is_none(), "the device is still there");
    flow.send();
    service.start_again()?;
    service.is_up()?;
    let arrived = flow.receive(Duration::from_millis(200))?;
    ensure!(arrived == 0, "{arrived} arrived");
    let after = index(&pair.mobile).context("no device")?;
    ensure!(after != before, "the same index");
    Ok(())
}

/// A stop that no start follows leaves nothing, also nothing in the store.
#[lab::test]
fn a_stop_removes_what_is_kept() -> Result<()> {
    let pair = Pair::new("kept")?;
    let _gateway = pair.start_gateway(Terms::PLAIN)?;
    configure(&pair.mobile, &mobile(""))?;
    let before = pair::traces(&pair.mobile)?;
    let mut service = Service::start(&pair.mobile)?;
    service.end(Signal::SIGTERM)?;
    ensure!(service.names().is_empty(), "{:?}", service.names());
    let after = pair::traces(&pair.mobile)?;
    ensure!(after == before, "{after:#?}, before {before:#?}");
    Ok(())
}

/// A device of another form, or another's, is closed before the daemon makes its own. A socket of
/// another port is closed too.
// Refuses: service
#[lab::test]
fn what_does_not_fit_the_configuration_is_refused() -> Result<()> {
    let pair = Pair::new("kept")?;
    let _gateway = pair.start_gateway(Terms::PLAIN)?;
    configure(&pair.mobile, &mobile(""))?;
    let mut service = Service::start(&pair.mobile)?;
    service.end(Signal::SIGUSR1)?;
    let foreign = pair.mobile.inside(|| {
        let tun = Bulk::open("foreign0", 1400, true, false)?;
        let socket = Datagrams::udp(([0, 0, 0, 0], 501).into(), None)?;
        Ok([
            tun.as_fd().try_clone_to_owned()?,
            socket.as_fd().try_clone_to_owned()?,
        ])
    })?;
    for (name, descriptor) in ["tunnel", "sockets"].into_iter().zip(foreign) {
        let number = fcntl(&descriptor, FcntlArg::F_DUPFD_CLOEXEC(ABOVE))?;
        let descriptor = os::kept::own(number)?;
        locked(&service.stored).push((name.to_owned(), descriptor));
    }
    configure(&pair.mobile, &mobile("workers = 2"))?;
    service.start_again()?;
    service.is_up()?;
    let log = service.process.log();
    for said in [
        "a kept tunnel device is not used: it is of another form",
        "a kept tunnel device is not used: its name is foreign0",
        "kept sockets are not used",
    ] {
        ensure!(log.contains(said), "{said:?} is missing: {log}");
    }
    until("the foreign device to end", DEADLINE, || {
        let links = pair.mobile.run("ip link")?;
        Ok((!links.contains("foreign0")).then_some(()))
    })?;
    let sockets = pair.mobile.run("ss --udp --listening --numeric")?;
    ensure!(!sockets.contains(":501 "), "{sockets}");
    let flow = Flow::new(&pair)?;
    flow.send();
    let arrived = flow.receive(DEADLINE)?;
    ensure!(arrived == WAITING, "{arrived} of {WAITING} arrived");
    Ok(())
}
