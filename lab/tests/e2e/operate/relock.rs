//! `strata reload` and `leak = "never"`: the lock follows the file. During a reload nothing leaves
//! in clear that both the old and the new file lock. A tap on the host between the endpoints checks
//! it.

use anyhow::{Result, bail, ensure};
use lab::bait::{self, leak, no_leak, round};
use lab::daemon::Daemon;
use lab::pair::{self, DEADLINE, GATEWAY, Pair, Terms};
use lab::transfer::transfer;
use lab::wiretap::Wiretap;
use os::Family;
use serde_json::json;

/// Another peer, at an address where no daemon answers, with the prefixes behind it.
const BRANCH: &str = r#"
[peer.branch]
address = "192.0.2.77"
id = "branch.example.net"
psk = "tunnel.psk"
local = ["10.1.0.2/32", "fd00:1::2/128"]
remote = ["10.9.0.0/16", "fd00:9::/64"]
leak = "never"
start = "manual"
"#;
const BEHIND: [&str; 2] = ["10.9.0.1", "fd00:9::1"];

/// A configuration without a peer; the diversion needs a restart.
const NO_TUNNEL: &str = r#"
[node]
id = "alice@example.net"
[gateway.gw]
id = "gw.example.net"
psk = "tunnel.psk"
[divert]
wired = "eth0"
wireless = "eth1"
"#;

const LOCKED: &str = "leak = \"never\"\n";

/// Bait is sent without a pause while peers are added, removed and changed around a prefix that
/// stays locked.
// Works: no-leak
#[lab::test]
fn what_both_files_lock_is_never_seen() -> Result<()> {
    let (pair, tap) = bed()?;
    let _gateway = pair.start_gateway(Terms::PLAIN)?;
    let config = office(LOCKED);
    let mobile = start(&pair, &config)?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    let narrower = config.replace("10.8.0.0/16", "10.8.0.0/24");
    let wider = config.replace("remote = [", "remote = [\"10.9.0.0/16\", ");
    let renamed = config.replace("peer.office", "peer.home");
    let opened = format!("{config}[[policy]]\naction = \"bypass\"\nremote = \"10.8.10.0/24\"\n");
    let files = [
        format!("{config}{BRANCH}"),
        narrower,
        wider,
        opened,
        renamed,
        config.replace("192.0.2.1", "192.0.2.78"),
        config,
    ];
    bait::lay_while(&pair.mobile, &GATEWAY, || {
        for file in files.iter().cycle().take(3 * files.len()) {
            mobile.change(file)?;
        }
        mobile.wait_until("status", DEADLINE, pair::is_up)
    })?;
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 10_000)
}

/// Step by step; open prefixes are the control of locked ones.
// Works: no-leak
#[lab::test]
fn the_lock_is_what_the_file_says() -> Result<()> {
    let (pair, tap) = bed()?;
    let look = |destinations: &[&str]| round(&pair.mobile, &tap, destinations);
    let mobile = start(&pair, &office(LOCKED))?;
    no_leak(&look(&GATEWAY)?)?;
    leak(&look(&BEHIND)?)?;

    mobile.change(&format!("{}{BRANCH}", office(LOCKED)))?;
    no_leak(&look(&[GATEWAY, BEHIND].concat())?)?;

    mobile.change(&office(LOCKED))?;
    no_leak(&look(&GATEWAY)?)?;
    leak(&look(&BEHIND)?)?;

    let moved = office(LOCKED).replace("10.8.0.0/16", "10.9.0.0/16");
    mobile.change(&moved.replace("fd00:8::", "fd00:9::"))?;
    no_leak(&look(&BEHIND)?)?;
    leak(&look(&GATEWAY)?)?;

    let text = mobile.change(NO_TUNNEL)?;
    ensure!(text.contains("- peer.office\n"), "{text}");
    let rules = pair.mobile.run("nft list ruleset")?;
    ensure!(rules.is_empty(), "{rules}");
    leak(&look(&BEHIND)?)?;
    leak(&look(&GATEWAY)?)
}

/// A lock that a reload removed does not outlive the daemon.
// Recovers: no-leak
#[lab::test]
fn a_lock_that_came_by_reload_outlives_the_daemon() -> Result<()> {
    let (pair, tap) = bed()?;
    let mut mobile = start(&pair, &office(""))?;
    let text = mobile.change(&office(LOCKED))?;
    let line = "~ peer.office.leak stopped -> never (applied)\n";
    ensure!(text.contains(line), "{text}");
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    mobile.stop()?;
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    mobile.start_again()?;
    mobile.change(&office(""))?;
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    mobile.stop()?;
    leak(&round(&pair.mobile, &tap, &GATEWAY)?)
}

/// The reload refuses routes with which the peer's own packets would be dropped on arrival.
// Refuses: no-leak
#[lab::test]
fn a_refused_reload_leaves_the_lock_as_it_was() -> Result<()> {
    let (pair, tap) = bed()?;
    let mobile = start(&pair, &office(LOCKED))?;
    pair.mobile.sysctl("net.ipv4.conf.eth0.rp_filter", "1")?;
    let strict = office(LOCKED).replace("remote = [", "remote = [\"192.0.2.0/24\", ");
    for (file, fix) in [
        (strict + BRANCH, "rp_filter"),
        (office("leak = \"nevr\"\n"), "did you mean"),
    ] {
        let Err(refusal) = mobile.change(&file) else {
            bail!("it was accepted: {file}");
        };
        let refusal = format!("{refusal:#}");
        ensure!(refusal.contains(fix), "{refusal}");
        let locked = &mobile.strata("status")?["status"]["locked"];
        ensure!(*locked == json!(pair::PROTECTED), "{locked}");
        no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
        leak(&round(&pair.mobile, &tap, &BEHIND)?)?;
    }
    Ok(())
}

fn bed() -> Result<(Pair, Wiretap)> {
    let pair = Pair::new("relock")?;
    let tap = Wiretap::open(&pair.between)?;
    pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    Ok((pair, tap))
}

/// Returns the mobile node's configuration with one more line for its only peer.
fn office(line: &str) -> String {
    pair::mobile_config(Family::V4, Terms::PLAIN, "auto") + line
}

/// Starts the mobile node and waits for an answer, which comes once set-up is complete.
fn start(pair: &Pair, config: &str) -> Result<Daemon> {
    let daemon = pair.mobile.stratad(config)?;
    daemon.strata("status")?;
    Ok(daemon)
}
