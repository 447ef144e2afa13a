//! Two child SAs on one IKE SA with strongSwan, in both roles.

use anyhow::{Result, ensure};
use lab::daemon::Daemon;
use lab::duo::{DEADLINE, Duo, OURS, THEIRS, add_inner_address};
use lab::host::Host;
use lab::origin::Origin;
use lab::pair::{self, is_up};
use lab::plain;
use lab::process::until;
use lab::strongswan::{CHILD, Charon, Child, Connection};
use lab::transfer::transfer;
use serde_json::Value;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

const MB: u64 = 1_000_000;

const VOICE: Child<'_> = Child {
    name: "voice",
    local: "10.5.0.0/24",
    remote: THEIRS.remote,
};

const BOTH: Connection<'_> = Connection {
    others: &[VOICE],
    ..THEIRS
};

fn ours() -> String {
    format!("{OURS}[peer.theirs.child.voice]\nremote = [\"10.5.0.0/24\"]\n")
}

fn start(theirs: &Connection<'_>) -> Result<(Duo, Daemon, Charon)> {
    let duo = Duo::new("children")?;
    add_inner_address(&duo.theirs, "10.5.0.1/32")?;
    let (strata, charon) = duo.start(&ours(), theirs)?;
    Ok((duo, strata, charon))
}

fn are_up(status: &Value) -> bool {
    pair::names(status) == ["first", "voice"]
}

fn carry(duo: &Duo) -> Result<()> {
    transfer(&duo.ours, &duo.theirs, "10.2.0.1", MB)?;
    transfer(&duo.ours, &duo.theirs, "10.5.0.1", MB)?;
    transfer(&duo.theirs, &duo.ours, "10.1.0.1", MB)
}

// Works: children
#[lab::test(repeated)]
fn strata_asks_strongswan_for_two_tunnels() -> Result<()> {
    let (duo, strata, charon) = start(&BOTH)?;
    strata.strata("up theirs --wait")?;
    strata.wait_until("status", DEADLINE, are_up)?;
    let both = |sas: &str| {
        sas.matches("state=INSTALLED").count() == 2 && sas.matches("state=ESTABLISHED").count() == 1
    };
    charon.wait_until(DEADLINE, both)?;
    carry(&duo)
}

/// The first child that strongSwan requests is created in IKE_AUTH.
// Works: children
#[lab::test(repeated)]
fn strongswan_asks_for_two_tunnels_in_any_order() -> Result<()> {
    for order in [[CHILD, VOICE.name], [VOICE.name, CHILD]] {
        let (duo, strata, charon) = start(&BOTH)?;
        for name in order {
            charon.initiate_child(name)?;
        }
        strata.wait_until("status", DEADLINE, are_up)?;
        carry(&duo)?;
    }
    Ok(())
}

#[lab::test(repeated)]
fn strongswan_deletes_one_of_two_tunnels() -> Result<()> {
    let (duo, strata, charon) = start(&BOTH)?;
    charon.initiate()?;
    charon.initiate_child(VOICE.name)?;
    strata.wait_until("status", DEADLINE, are_up)?;
    charon.terminate_child(VOICE.name)?;
    let one = |status: &Value| pair::names(status) == ["first"];
    strata.wait_until("status", DEADLINE, one)?;
    transfer(&duo.ours, &duo.theirs, "10.2.0.1", MB)?;
    charon.initiate_child(VOICE.name)?;
    strata.wait_until("status", DEADLINE, are_up)?;
    carry(&duo)
}

#[lab::test(repeated)]
fn strongswans_refusal_of_one_tunnel_is_told_and_the_other_stays() -> Result<()> {
    let (duo, strata, _charon) = start(&THEIRS)?;
    strata.strata("up theirs --wait")?;
    let told = |status: &Value| {
        let why = pair::refusal(status);
        is_up(status) && why.contains("`voice`: TS_UNACCEPTABLE")
    };
    let status = strata.wait_until("status", DEADLINE, told)?;
    ensure!(pair::names(&status) == ["first"], "{status}");
    transfer(&duo.ours, &duo.theirs, "10.2.0.1", MB)
}

#[lab::test(repeated)]
fn both_tunnels_get_new_keys_from_strongswan() -> Result<()> {
    let rekey = "3s";
    let (duo, strata, charon) = start(&Connection { rekey, ..BOTH })?;
    charon.initiate()?;
    charon.initiate_child(VOICE.name)?;
    let before = strata.wait_until("status", DEADLINE, are_up)?;
    let old: Vec<_> = pair::children(&before)
        .iter()
        .map(|child| child["spi_in"].to_string())
        .collect();
    let renewed = |status: &Value| {
        let children = pair::children(status);
        let mut current = children.iter().filter(|child| child["draining"] == false);
        are_up(status) && current.all(|child| !old.contains(&child["spi_in"].to_string()))
    };
    strata.wait_until("status", DEADLINE, renewed)?;
    carry(&duo)
}

/// Returns true if a TCP connection reaches a port behind strongSwan.
fn reaches(duo: &Duo, port: u16) -> Result<bool> {
    let at = SocketAddr::new("10.5.0.1".parse()?, port);
    let listener = duo.theirs.inside(|| Ok(TcpListener::bind(at)?))?;
    let wait = Duration::from_secs(if port == SERVICE { 30 } else { 1 });
    let dial = || Ok(TcpStream::connect_timeout(&at, wait).is_ok());
    let reached = duo.ours.inside(dial)?;
    ensure!(!reached || listener.accept().is_ok());
    Ok(reached)
}

const SERVICE: u16 = 9300;

/// Protocol and ports of strongSwan's traffic selectors (RFC 7296 section 3.13.1) match ours in
/// both roles.
// Works: services
#[lab::test(repeated)]
fn a_service_of_strongswan_is_carried_and_nothing_beside_it() -> Result<()> {
    let service = Child {
        local: "10.5.0.0/24[tcp/9300-9310]",
        ..VOICE
    };
    let ours = ours().replace("10.5.0.0/24", "10.5.0.0/24 tcp 9300-9310");
    for we_ask in [true, false] {
        let duo = Duo::new("service")?;
        add_inner_address(&duo.theirs, "10.5.0.1/32")?;
        let others = &[service];
        let (strata, charon) = duo.start(&ours, &Connection { others, ..THEIRS })?;
        if we_ask {
            strata.strata("up theirs --wait")?;
        } else {
            charon.initiate()?;
            charon.initiate_child(VOICE.name)?;
        }
        let status = strata.wait_until("status", DEADLINE, are_up)?;
        let remote = "10.5.0.0/24 protocol 6 ports 9300-9310";
        let mut children = pair::children(&status).into_iter();
        ensure!(
            children.any(|child| child["remote"][0] == remote),
            "{status}"
        );
        ensure!(reaches(&duo, SERVICE)?, "the service is not reached");
        ensure!(!reaches(&duo, 9311)?, "what is beside it is");
    }
    Ok(())
}

/// strongSwan does not implement RFC 9611, so both threads seal on one SA. Its replay window is 32
/// packets, so strongly reordered packets would be dropped.
// Works: threads
#[lab::test(repeated)]
fn two_threads_share_the_one_tunnel_that_strongswan_has() -> Result<()> {
    let two = plain::in_table(OURS, "[tunnel]", "workers = 2");
    for strata_begins in [true, false] {
        let duo = Duo::new("workers")?;
        let (strata, mut charon) = duo.start(&two, &THEIRS)?;
        if strata_begins {
            strata.strata("up theirs --wait")?;
        } else {
            charon.initiate()?;
        }
        strata.wait_until("status", DEADLINE, is_up)?;
        for (from, to, address) in [
            (&duo.ours, &duo.theirs, "10.2.0.1"),
            (&duo.theirs, &duo.ours, "10.1.0.1"),
        ] {
            transfer(from, to, address, 8 * MB)?;
            transfer_four(from, to, address)?;
        }
        let sas = charon.sas()?;
        ensure!(sas.matches("state=INSTALLED").count() == 1, "{sas}");
        ensure!(!drops_numbers(&mut charon)?, "it takes numbers for old");
        pair::no_drops(&strata.strata("status")?)?;
    }
    Ok(())
}

/// Control of the previous test.
#[lab::test(repeated)]
fn strongswan_tells_of_numbers_that_it_takes_for_old() -> Result<()> {
    let duo = Duo::new("workers")?;
    let faults = ["--faults", "seed=1,only=esp,out.duplicate=20"];
    let (strata, mut charon) = duo.start_told(OURS, &faults, Origin::Installed, &THEIRS)?;
    strata.strata("up theirs --wait")?;
    transfer(&duo.ours, &duo.theirs, "10.2.0.1", MB)?;
    until("charon's log", DEADLINE, || {
        Ok(drops_numbers(&mut charon)?.then_some(()))
    })
}

fn drops_numbers(charon: &mut Charon) -> Result<bool> {
    let log = fs::read_to_string(charon.process().log_path())?;
    Ok(log.contains("sequence number verification failed"))
}

/// Runs four connections at once, so that both threads have work.
fn transfer_four(from: &Host, to: &Host, address: &str) -> Result<()> {
    thread::scope(|scope| {
        let four = [(); 4].map(|()| scope.spawn(|| transfer(from, to, address, 2 * MB)));
        four.into_iter()
            .try_for_each(|one| one.join().expect("a transfer returns its errors"))
    })
}
