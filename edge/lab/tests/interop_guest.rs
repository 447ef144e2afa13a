//! strongSwan at the other end that leaves ESP to a Linux kernel: what is carried then is carried by a
//! kernel's ESP, which is shown by what nothing passes.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::duo::{DEADLINE, Duo, OURS, THEIRS};
use lab::guest::{self, Carried, Guest};
use lab::origin::Origin;
use lab::process::until;
use lab::runner;
use lab::strongswan::Charon;
use lab::volley::volleys;
use std::fs;
use std::process::ExitCode;

fn main() -> ExitCode {
    runner::run(lab::tests![
        a_kernels_esp_carries_octets_each_way,
        with_another_key_or_suite_in_the_kernel_nothing_passes,
        a_guest_that_is_dropped_leaves_no_process,
    ])
}

const OCTETS: u64 = 5_000_000;

/// The SA in which our packets arrive there.
const INBOUND: &str = "src 192.0.2.1 dst 192.0.2.2";

/// Algorithms for it that nobody has agreed on.
const OTHERS: [&str; 2] = [
    "aead rfc4106(gcm(aes)) 0x00112233445566778899aabbccddeeff00112233 128",
    "aead rfc7539esp(chacha20,poly1305) 0x00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff00112233 128",
];

fn a_kernels_esp_carries_octets_each_way() -> Result<()> {
    let (duo, strata, charon) = start()?;
    strata.strata("up theirs --wait")?;
    duo.carry_by_kernel(guest(&charon)?, OCTETS)?;
    charon.rekey()?;
    duo.carry_by_kernel(guest(&charon)?, OCTETS)
}

/// The same SA put there again by hand is the control: what comes to nothing does so for the key.
fn with_another_key_or_suite_in_the_kernel_nothing_passes() -> Result<()> {
    let (duo, strata, charon) = start()?;
    strata.strata("up theirs --wait")?;
    let guest = guest(&charon)?;
    let agreed = inbound(guest)?;
    for (algorithm, passes) in [
        (agreed.algorithm.as_str(), true),
        (OTHERS[0], false),
        (OTHERS[1], false),
        (agreed.algorithm.as_str(), true),
    ] {
        let before = refused(guest)?;
        agreed.replace(guest, algorithm)?;
        let flew = volleys(
            (&duo.ours, "10.1.0.1"),
            (&duo.theirs, "10.2.0.1"),
            || Ok(()),
        );
        let carried = guest::growth(&Carried::new(), &guest.carried()?)[INBOUND];
        let more = refused(guest)? > before;
        let right = (flew.is_ok(), carried > 0, more) == (passes, passes, !passes);
        ensure!(
            right,
            "{algorithm}: {flew:?}, {carried} octets carried, packets refused: {more}"
        );
    }
    Ok(())
}

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
    // They die together, but not before whoever has killed them has seen the first one dead.
    until("the end of all its processes", DEADLINE, || {
        Ok((processes_of(&folder)? == 0).then_some(()))
    })
}

/// Both daemons, not yet connected.
fn start() -> Result<(Duo, Daemon, Charon)> {
    let origin = Origin::Guest(Guest::boot()?);
    let duo = Duo::with("guest", None, origin.guest())?;
    let (strata, charon) = duo.start_with(OURS, origin, &THEIRS)?;
    Ok((duo, strata, charon))
}

fn guest(charon: &Charon) -> Result<&Guest> {
    charon.guest().context("charon is not in a guest")
}

/// What the kernel knows of an SA.
struct Sa {
    spi: String,
    reqid: String,
    algorithm: String,
}

fn inbound(guest: &Guest) -> Result<Sa> {
    let states = guest.run(&format!("ip xfrm state list {}", INBOUND))?;
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
        algorithm: format!("aead {}", after("aead", 3)?),
    })
}

impl Sa {
    /// Puts it there again with this algorithm and nothing carried.
    fn replace(&self, guest: &Guest, algorithm: &str) -> Result<()> {
        let Self { spi, reqid, .. } = self;
        let sa = format!("{INBOUND} proto esp spi {spi}");
        let algorithm = algorithm.replace('(', "\\(").replace(')', "\\)");
        guest.run(&format!(
            "ip xfrm state delete {sa} && ip xfrm state add {sa} reqid {reqid} mode tunnel \
             replay-window 32 {algorithm} encap espinudp 4500 4500 0.0.0.0"
        ))?;
        Ok(())
    }
}

/// How many packets the kernel found to be no ESP of an SA that it has.
fn refused(guest: &Guest) -> Result<u64> {
    let counters = guest.run("cat /proc/net/xfrm_stat")?;
    let count = counters.lines().find_map(|line| {
        let count = line.strip_prefix("XfrmInStateProtoError")?;
        count.trim().parse().ok()
    });
    count.with_context(|| counters.clone())
}

/// How many processes have this word in their command line.
fn processes_of(word: &str) -> Result<usize> {
    let commands = fs::read_dir("/proc")?.flatten();
    let commands = commands.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let ours = commands.filter(|command| String::from_utf8_lossy(command).contains(word));
    Ok(ours.count())
}
