//! A peer that runs strongSwan with the ESP of a Linux kernel. Control tests, in which nothing
//! passes, show that the kernel's ESP carries the traffic.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::duo::{DEADLINE, Duo, OURS, THEIRS};
use lab::guest::{self, Carried, Guest};
use lab::host::Host;
use lab::origin::Origin;
use lab::pair::{is_down, is_up, refusal};
use lab::plain::accepting;
use lab::process::until;
use lab::strongswan::{Charon, Connection};
use lab::wiretap::Wiretap;
use model::{EspSuite, Sha2, Suite};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::net::UdpSocket;

const OCTETS: u64 = 5_000_000;

/// Octets to transfer with each suite.
const FEW: u64 = 300_000;

/// Seconds for which tunnels without encryption are accepted.
const HOUR: u64 = 3600;

/// A configuration for ESP without UDP, if the peer has the same.
const BARE: &str = "[listen]\nencapsulation = \"nat\"\n";

/// The SA for packets from Strata to the kernel.
const INBOUND: &str = "src 192.0.2.1 dst 192.0.2.2";

/// The SA for packets from the kernel to Strata.
const OUTBOUND: &str = "src 192.0.2.2 dst 192.0.2.1";

/// Packets that both ends have left in the first cycle of sequence numbers.
const LEFT: u64 = 100;

/// Algorithms that the ends did not negotiate.
const OTHERS: [&str; 2] = [
    "aead rfc4106(gcm(aes)) 0x00112233445566778899aabbccddeeff00112233 128",
    "aead rfc7539esp(chacha20,poly1305) 0x00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff00112233 128",
];

#[lab::test(repeated)]
fn a_kernels_esp_carries_octets_each_way() -> Result<()> {
    let (duo, strata, charon) = start()?;
    strata.strata("up theirs --wait")?;
    duo.carry_by_kernel(guest(&charon)?, OCTETS)?;
    charon.rekey()?;
    duo.carry_by_kernel(guest(&charon)?, OCTETS)
}

/// Neither end detects a NAT, so the kernel's SAs have no encapsulation, and a tap sees none.
// Works: plain-esp
#[lab::test(repeated)]
fn a_kernels_esp_without_udp_carries_octets_each_way() -> Result<()> {
    let ours = format!("{OURS}{BARE}");
    let encap = false;
    let (duo, mut strata, charon) = start_with(&ours, &Connection { encap, ..THEIRS })?;
    let tap = Wiretap::open(&duo.ours)?;
    charon.initiate()?;
    strata.wait_until("status", DEADLINE, is_up)?;
    duo.carry_by_kernel(guest(&charon)?, OCTETS)?;
    charon.rekey()?;
    strata.process().wait_for_log("tunnel rekeyed", DEADLINE)?;
    duo.carry_by_kernel(guest(&charon)?, OCTETS)?;
    charon.terminate()?;
    strata.wait_until("status", DEADLINE, is_down)?;
    strata.strata("up theirs --wait")?;
    duo.carry_by_kernel(guest(&charon)?, OCTETS)?;
    let states = guest(&charon)?.run("ip xfrm state list")?;
    ensure!(!states.contains("espinudp"), "{states}");
    let (mut with, mut without) = (0, 0);
    while let Some(packet) = tap.next()? {
        with += usize::from(packet.esp().is_some());
        without += usize::from(packet.esp_without_udp().is_some());
    }
    ensure!(
        without > 1000 && with == 0,
        "{with} with UDP, {without} without"
    );
    Ok(())
}

// Works: plain-esp
#[lab::test(repeated, limit(600))]
fn every_suite_is_carried_by_a_kernel_with_udp_and_without() -> Result<()> {
    let mut spare = Some(Guest::boot()?);
    for suite in Suite::ALL {
        for (encap, listen) in [(true, ""), (false, BARE)] {
            let guest = spare.take().context("the last one kept it")?;
            let line = format!("suite = \"{suite}\"\n{listen}");
            let ike = format!("{suite}-prfsha256-x25519");
            let theirs = Connection {
                ike: &ike,
                esp: suite.name(),
                encap,
                ..THEIRS
            };
            let carried = carries(&line, &theirs, guest);
            spare = Some(carried.with_context(|| format!("{suite}, UDP: {encap}"))?);
        }
    }
    Ok(())
}

/// The kernel has its own NULL, HMAC and GMAC.
// Works: unencrypted
#[lab::test(repeated, limit(600))]
fn every_suite_without_encryption_is_carried_by_a_kernel() -> Result<()> {
    let mut spare = Some(Guest::boot()?);
    for suite in EspSuite::UNENCRYPTED {
        for (encap, listen) in [(true, ""), (false, BARE)] {
            let guest = spare.take().context("the last one kept it")?;
            let line = format!("{}\n{listen}", accepting(suite, HOUR)?);
            let theirs = Connection {
                esp: suite.name(),
                encap,
                ..THEIRS
            };
            let carried = carries(&line, &theirs, guest);
            spare = Some(carried.with_context(|| format!("{suite}, UDP: {encap}"))?);
        }
    }
    Ok(())
}

/// The upper half of a number stands within the data that GMAC covers.
// Works: unencrypted
#[lab::test(repeated)]
fn a_kernels_gmac_goes_on_beyond_32_bits() -> Result<()> {
    let lines = format!("{}\nesn = true\n", accepting(EspSuite::Aes128Gmac, HOUR)?);
    let theirs = Connection {
        esp: "aes128gmac-esn",
        ..THEIRS
    };
    goes_beyond(&lines, &theirs, Guest::boot()?).map(drop)
}

/// strongSwan offers encryption beside NULL to an end that accepts both, and gets encryption.
// Refuses: unencrypted
#[lab::test(repeated)]
fn a_kernel_that_also_offers_encryption_gets_encryption() -> Result<()> {
    let ours = format!("{OURS}{}\n", accepting(EspSuite::Null(Sha2::Sha256), HOUR)?);
    let theirs = Connection {
        esp: "null-sha256,aes128gcm16",
        ..THEIRS
    };
    let (duo, _strata, charon) = start_with(&ours, &theirs)?;
    charon.initiate()?;
    duo.carry_by_kernel(guest(&charon)?, FEW)?;
    let states = guest(&charon)?.run("ip xfrm state list")?;
    ensure!(
        states.contains("gcm") && !states.contains("null"),
        "{states}"
    );
    Ok(())
}

// Refuses: unencrypted
#[lab::test(repeated)]
fn a_kernel_that_offers_no_encryption_is_refused_with_the_fix() -> Result<()> {
    for esp in ["null-sha256", "aes256gmac"] {
        let (_duo, strata, charon) = start_with(OURS, &Connection { esp, ..THEIRS })?;
        ensure!(charon.initiate().is_err(), "{esp}: it does without");
        let told = |status: &Value| refusal(status).contains("only ESP without encryption");
        strata.wait_until("status", DEADLINE, told)?;
        let explained = strata.strata_text("explain theirs")?;
        ensure!(explained.contains("`unencrypted`"), "{explained}");
    }
    Ok(())
}

/// Runs the transfer, with these lines in our table of the peer, and returns the guest.
fn carries(lines: &str, theirs: &Connection<'_>, guest: Guest) -> Result<Guest> {
    let (duo, strata, charon) = meet(&format!("{OURS}{lines}"), theirs, guest)?;
    strata.strata("up theirs --wait")?;
    let guest = charon.guest().context("charon is not in a guest")?;
    duo.carry_by_kernel(guest, FEW)?;
    let states = guest.run("ip xfrm state list")?;
    ensure!(states.contains("espinudp") == theirs.encap, "{states}");
    drop((strata, duo));
    let guest = charon.into_guest().context("charon is not in a guest")?;
    guest.clear()?;
    Ok(guest)
}

/// Control: the negotiated SA is also replaced by hand, so only the key causes the failures.
#[lab::test(repeated)]
fn with_another_key_or_suite_in_the_kernel_nothing_passes() -> Result<()> {
    let (duo, strata, charon) = start()?;
    strata.strata("up theirs --wait")?;
    let guest = guest(&charon)?;
    let agreed = inbound(guest)?;
    let (near, far) = (
        socket(&duo.ours, "10.1.0.1")?,
        socket(&duo.theirs, "10.2.0.1")?,
    );
    near.connect(far.local_addr()?)?;
    let mut arrived = BTreeSet::new();
    for (turn, algorithm, passes) in [
        (0, agreed.algorithm.as_str(), true),
        (1, OTHERS[0], false),
        (2, OTHERS[1], false),
        (3, agreed.algorithm.as_str(), true),
    ] {
        agreed.replace(guest, algorithm)?;
        let before = refused(guest)?;
        // Repeated, because a busy guest may lose packets at its devices.
        let verdict = until("what the kernel makes of it", DEADLINE, || {
            near.send(&[turn])?;
            let carried = guest::growth(&Carried::new(), &guest.carried()?)[INBOUND] > 0;
            let more = refused(guest)? > before;
            Ok((carried || more).then_some((carried, more)))
        })?;
        ensure!(verdict == (passes, !passes), "{algorithm}: {verdict:?}");
        if passes {
            until("a datagram behind it", DEADLINE, || {
                arrived.extend(datagrams(&far));
                Ok(arrived.contains(&turn).then_some(()))
            })?;
        }
    }
    ensure!(arrived == BTreeSet::from([0, 3]), "{arrived:?}");
    Ok(())
}

/// Returns a nonblocking socket.
fn socket(host: &Host, address: &str) -> Result<UdpSocket> {
    let socket = host.inside(|| Ok(UdpSocket::bind((address, 0))?))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Returns the first octet of each pending datagram.
fn datagrams(socket: &UdpSocket) -> impl Iterator<Item = u8> {
    std::iter::from_fn(|| {
        let mut octet = [0];
        socket.recv(&mut octet).ok().map(|_| octet[0])
    })
}

/// `--faults` makes Strata start just below 2^32. The kernel's SA is replaced by a copy with such a
/// sequence number.
// Works: esn
#[lab::test(repeated, limit(600))]
fn extended_numbers_of_every_suite_go_beyond_32_bits_both_ways() -> Result<()> {
    let mut spare = Some(Guest::boot()?);
    for suite in Suite::ALL {
        let guest = spare.take().context("the last one kept it")?;
        let lines = format!("suite = \"{suite}\"\nesn = true\n");
        let (ike, esp) = (format!("{suite}-prfsha256-x25519"), format!("{suite}-esn"));
        let theirs = Connection {
            ike: &ike,
            esp: &esp,
            ..THEIRS
        };
        let carried = goes_beyond(&lines, &theirs, guest);
        spare = Some(carried.with_context(|| suite.to_string())?);
    }
    Ok(())
}

/// Runs the transfer, with these lines in our table of the peer, and returns the guest.
fn goes_beyond(lines: &str, theirs: &Connection<'_>, guest: Guest) -> Result<Guest> {
    let ours = format!("{OURS}{lines}");
    let last = (1 << 32) - LEFT;
    let faults = format!("numbers={last}");
    let origin = Origin::Guest(guest);
    let duo = Duo::with("guest", None, origin.guest())?;
    let (strata, charon) = duo.start_told(&ours, &["--faults", &faults], origin, theirs)?;
    strata.strata("up theirs --wait")?;
    ensure!(has_extended(&strata)?);
    let guest = charon.guest().context("charon is not in a guest")?;
    // The kernel shows both halves of the next sequence number.
    state(guest, OUTBOUND)?.begin_after(guest, last)?;
    duo.carry_by_kernel(guest, FEW)?;
    for (sa, word) in [(INBOUND, "seq-hi 0x1,"), (OUTBOUND, "oseq-hi 0x1")] {
        let account = guest.run(&format!("ip -s xfrm state list {sa}"))?;
        let crossed = account.contains("flag") && account.contains("esn");
        ensure!(crossed && account.contains(word), "{account}");
    }
    drop((strata, duo));
    let guest = charon.into_guest().context("charon is not in a guest")?;
    guest.clear()?;
    Ok(guest)
}

fn has_extended(strata: &Daemon) -> Result<bool> {
    let status = strata.strata("status")?;
    let children = lab::pair::children(&status);
    let child = children.first().context("no child")?;
    Ok(child["esn"] == true)
}

/// Control: strongSwan's default proposal.
#[lab::test(repeated)]
fn a_kernel_that_is_not_to_have_extended_numbers_gets_none() -> Result<()> {
    let ours = format!("{OURS}esn = true\n");
    let (duo, strata, charon) = start_with(&ours, &THEIRS)?;
    strata.strata("up theirs --wait")?;
    ensure!(!has_extended(&strata)?);
    duo.carry_by_kernel(guest(&charon)?, FEW)?;
    let states = guest(&charon)?.run("ip xfrm state list")?;
    ensure!(!states.contains("esn"), "{states}");
    Ok(())
}

// Refuses: esn
#[lab::test(repeated)]
fn a_kernel_that_is_to_have_no_others_is_refused_with_the_fix() -> Result<()> {
    let theirs = Connection {
        esp: "aes128gcm16-esn",
        ..THEIRS
    };
    let (_duo, strata, charon) = start_with(OURS, &theirs)?;
    ensure!(charon.initiate().is_err(), "it does without");
    let told = |status: &Value| refusal(status).contains("extended sequence numbers");
    strata.wait_until("status", DEADLINE, told)?;
    let explained = strata.strata_text("explain theirs")?;
    ensure!(explained.contains("`esn = true`"), "{explained}");
    Ok(())
}

#[lab::test(repeated)]
fn a_guest_that_is_dropped_leaves_no_process() -> Result<()> {
    let guest = Guest::boot()?;
    guest.run("sleep 60 &")?;
    let folder = guest.run("cat /proc/cmdline")?;
    let folder = folder
        .split_whitespace()
        .find(|word| word.starts_with("uml_dir="));
    let folder = folder.context("it has no folder")?.to_owned();
    ensure!(processes_of(&folder)? > 1, "it has no processes");
    drop(guest);
    // The processes die together, but the killer may return as soon as the first one is dead.
    until("the end of all its processes", DEADLINE, || {
        Ok((processes_of(&folder)? == 0).then_some(()))
    })
}

/// Starts both daemons; they are not connected yet.
fn start() -> Result<(Duo, Daemon, Charon)> {
    start_with(OURS, &THEIRS)
}

fn start_with(ours: &str, theirs: &Connection<'_>) -> Result<(Duo, Daemon, Charon)> {
    meet(ours, theirs, Guest::boot()?)
}

fn meet(ours: &str, theirs: &Connection<'_>, guest: Guest) -> Result<(Duo, Daemon, Charon)> {
    let origin = Origin::Guest(guest);
    let duo = Duo::with("guest", None, origin.guest())?;
    let (strata, charon) = duo.start_with(ours, origin, theirs)?;
    Ok((duo, strata, charon))
}

fn guest(charon: &Charon) -> Result<&Guest> {
    charon.guest().context("charon is not in a guest")
}

/// The kernel's state of an SA.
struct Sa {
    spi: String,
    reqid: String,
    algorithm: String,
    ends: String,
}

fn inbound(guest: &Guest) -> Result<Sa> {
    state(guest, INBOUND)
}

/// Waits until there is one SA between these ends. A busy guest may answer a second attempt to
/// connect beside the first, whose SA is deleted then.
fn state(guest: &Guest, ends: &str) -> Result<Sa> {
    let mut states = String::new();
    let one = until("one SA in the kernel", DEADLINE, || {
        states = guest.run(&format!("ip xfrm state list {ends}"))?;
        Ok((states.matches("proto esp").count() == 1).then_some(()))
    });
    one.with_context(|| states.clone())?;
    let algorithms = states.lines().map(str::trim).filter(|line| {
        let kinds = ["aead ", "auth-trunc ", "enc "];
        kinds.iter().any(|kind| line.starts_with(kind))
    });
    let algorithm = algorithms.collect::<Vec<_>>().join(" ");
    let words: Vec<_> = states.split_whitespace().collect();
    let after = |name: &str, count: usize| {
        let at = words.iter().position(|word| *word == name);
        let words = at.and_then(|at| words.get(at + 1..=at + count));
        let words = words.map(|words| words.join(" "));
        words.with_context(|| format!("no {name} in {states}"))
    };
    Ok(Sa {
        spi: after("spi", 1)?,
        reqid: after("reqid", 1)?,
        algorithm,
        ends: ends.to_owned(),
    })
}

impl Sa {
    /// Replaces the SA with a copy that has this algorithm and has carried nothing.
    fn replace(&self, guest: &Guest, algorithm: &str) -> Result<()> {
        self.put(guest, algorithm, "")
    }

    /// Replaces the SA with a copy that has extended numbers and has sent this number last.
    fn begin_after(&self, guest: &Guest, number: u64) -> Result<()> {
        let (upper, lower) = (number >> 32, number as u32);
        let numbers = format!("flag esn replay-oseq {lower} replay-oseq-hi {upper}");
        self.put(guest, &self.algorithm, &numbers)
    }

    fn put(&self, guest: &Guest, algorithm: &str, numbers: &str) -> Result<()> {
        let Self {
            spi, reqid, ends, ..
        } = self;
        let sa = format!("{ends} proto esp spi {spi}");
        let algorithm = algorithm.replace('(', "\\(").replace(')', "\\)");
        guest.run(&format!(
            "ip xfrm state delete {sa} && ip xfrm state add {sa} reqid {reqid} mode tunnel \
             replay-window 32 {numbers} {algorithm} encap espinudp 4500 4500 0.0.0.0"
        ))?;
        Ok(())
    }
}

/// Returns the kernel's count of packets that failed as ESP of a known SA.
fn refused(guest: &Guest) -> Result<u64> {
    let counters = guest.run("cat /proc/net/xfrm_stat")?;
    let count = counters.lines().find_map(|line| {
        let count = line.strip_prefix("XfrmInStateProtoError")?;
        count.trim().parse().ok()
    });
    count.with_context(|| counters.clone())
}

/// Returns the number of processes with this word in their command line.
fn processes_of(word: &str) -> Result<usize> {
    let commands = fs::read_dir("/proc")?.flatten();
    let commands = commands.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let ours = commands.filter(|command| String::from_utf8_lossy(command).contains(word));
    Ok(ours.count())
}
