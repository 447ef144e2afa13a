//! Inner addresses leased from a pool: the kernel has them while the tunnel is up, no other peer
//! gets them, and they stay the same after a crash of either end.

use anyhow::{Result, bail, ensure};
use lab::daemon::Daemon;
use lab::lending::{ALICE, BOB, Borrower, POOL, SERVER, borrower_config, lender_config, on_device};
use lab::pair::{self, GATEWAY, Pair};
use lab::process::{DEADLINE, until};
use lab::transfer::transfer;
use serde_json::Value;
use std::fs;
use std::net::UdpSocket;

const OCTETS: u64 = 1_000_000;

/// Returns the inner addresses of a peer in `strata status`.
fn inside(status: &Value, name: &str) -> Vec<String> {
    let peers = status["status"]["peers"].as_array();
    let peer = peers.and_then(|peers| peers.iter().find(|peer| peer["name"] == name));
    let inside = peer.and_then(|peer| peer["inside"].as_array());
    let texts = inside.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// Waits until a daemon's tunnel is up, and returns its first inner address.
fn address(daemon: &Daemon, peer: &str) -> Result<String> {
    let status = daemon.wait_until("status", DEADLINE, |status| {
        !inside(status, peer).is_empty()
    })?;
    Ok(inside(&status, peer).remove(0))
}

/// Returns the leases of the gateway's pool: identity, first address, and true if in use.
fn leases(gateway: &Daemon) -> Result<Vec<(String, String, bool)>> {
    let answer = gateway.strata("leases")?;
    let pool = &answer["leases"]["pools"][0];
    let leases = pool["leases"].as_array().into_iter().flatten();
    let lease = |lease: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (
            text(&lease["identity"]),
            text(&lease["addresses"][0]),
            lease["in_use"] == true,
        )
    };
    Ok(leases.map(lease).collect())
}

/// Returns the error of `strata up`, which must fail.
fn refused(daemon: &Daemon) -> Result<String> {
    match daemon.strata_text("up office --wait") {
        Ok(account) => bail!("it was not refused: {account}"),
        Err(refusal) => Ok(format!("{refusal:?}")),
    }
}

// Works: pools
#[lab::test]
fn lent_addresses_of_both_families_carry_octets_and_go_with_the_tunnel() -> Result<()> {
    let pair = Pair::new("addresses")?;
    let gateway = pair.start_lender(POOL)?;
    let mobile = pair.start_borrower(&pair.mobile, &ALICE)?;
    let status = mobile.strata("status")?;
    ensure!(
        inside(&status, "office").is_empty(),
        "there is none yet: {status}"
    );
    ensure!(on_device(&pair.mobile)?.is_empty(), "there is none yet");
    mobile.strata_text("up office --wait")?;
    let lent = ["10.9.0.1", "2001:db8:9::1"];
    ensure!(inside(&mobile.strata("status")?, "office") == lent);
    gateway.wait_until("status", DEADLINE, |status| inside(status, "alice") == lent)?;
    let shown = mobile.strata_text("status office")?;
    ensure!(
        shown.contains("inside    10.9.0.1, 2001:db8:9::1"),
        "{shown}"
    );
    ensure!(on_device(&pair.mobile)? == ["10.9.0.1/32", "2001:db8:9::1/128"]);
    for (family, ours) in GATEWAY.iter().zip(lent) {
        transfer(&pair.mobile, &pair.gateway, family, OCTETS)?;
        transfer(&pair.gateway, &pair.mobile, ours, OCTETS)?;
    }
    ensure!(leases(&gateway)? == [(ALICE.id.to_owned(), lent[0].to_owned(), true)]);
    let table = gateway.strata_text("leases")?;
    ensure!(table.contains("1 of 254 leased"), "{table}");
    for verb in ["rekey office", "rekey office --ike"] {
        mobile.strata_text(verb)?;
    }
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], OCTETS)?;
    mobile.strata_text("down office")?;
    until("the addresses to go", DEADLINE, || {
        Ok(on_device(&pair.mobile)?.is_empty().then_some(()))
    })?;
    until("the lease to be free", DEADLINE, || {
        Ok(leases(&gateway)?.iter().all(|lease| !lease.2).then_some(()))
    })
}

/// One peer adds the other's address to its device and sends from it.
// Refuses: pools
#[lab::test]
fn two_peers_have_two_addresses_and_neither_passes_with_the_others() -> Result<()> {
    let pair = Pair::new("addresses")?;
    let gateway = pair.start_lender(POOL)?;
    let mobile = pair.start_borrower(&pair.mobile, &ALICE)?;
    let between = pair.start_borrower(&pair.between, &BOB)?;
    mobile.strata_text("up office --wait")?;
    between.strata_text("up office --wait")?;
    let (alices, bobs) = (address(&mobile, "office")?, address(&between, "office")?);
    ensure!((alices.as_str(), bobs.as_str()) == ("10.9.0.1", "10.9.0.2"));
    transfer(&pair.gateway, &pair.mobile, &alices, OCTETS)?;
    transfer(&pair.gateway, &pair.between, &bobs, OCTETS)?;
    pair.mobile.run("ip addr add 10.9.0.2/32 dev strata0")?;
    let listener = || Ok(UdpSocket::bind((GATEWAY[0], 9100))?);
    let listener = pair.gateway.inside(listener)?;
    listener.set_read_timeout(Some(DEADLINE))?;
    for source in [&bobs, &alices] {
        let socket = || Ok(UdpSocket::bind((source.as_str(), 0))?);
        let socket = pair.mobile.inside(socket)?;
        socket.send_to(b"whose?", (GATEWAY[0], 9100))?;
    }
    let (_, from) = listener.recv_from(&mut [0; 64])?;
    ensure!(from.ip().to_string() == alices, "from {from}");
    let status = mobile.strata("status")?;
    ensure!(status["status"]["drops"]["esp_no_sa"] == 1, "{status}");
    // The lease holder still receives its packets.
    transfer(&pair.gateway, &pair.between, &bobs, OCTETS)?;
    ensure!(leases(&gateway)?.len() == 2);
    Ok(())
}

// Recovers: pools
#[lab::test]
fn the_same_address_comes_back_after_kill_9_of_either_end() -> Result<()> {
    let pair = Pair::new("addresses")?;
    let mut gateway = pair.start_lender(POOL)?;
    let start = "auto";
    // The first address belongs to Bob, who does not return.
    let mut between = pair.start_borrower(&pair.between, &Borrower { start, ..BOB })?;
    ensure!(address(&between, "office")? == "10.9.0.1");
    between.stop()?;
    let mut mobile = pair.start_borrower(&pair.mobile, &Borrower { start, ..ALICE })?;
    let lent = ["10.9.0.2/32", "2001:db8:9::2/128"];
    ensure!(address(&mobile, "office")? == "10.9.0.2");
    ensure!(on_device(&pair.mobile)? == lent);
    gateway.process().crash()?;
    gateway.start_again()?;
    gateway.wait_until("status", DEADLINE, |status| {
        !inside(status, "alice").is_empty()
    })?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    ensure!(
        on_device(&pair.mobile)? == lent,
        "{:?}",
        on_device(&pair.mobile)?
    );
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], OCTETS)?;
    mobile.process().crash()?;
    mobile.start_again()?;
    ensure!(address(&mobile, "office")? == "10.9.0.2");
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    transfer(&pair.gateway, &pair.mobile, "10.9.0.2", OCTETS)?;
    let who: Vec<_> = leases(&gateway)?.into_iter().map(|lease| lease.0).collect();
    ensure!(who == [ALICE.id, BOB.id], "{who:?}");
    Ok(())
}

// Recovers: pools
#[lab::test]
fn addresses_are_lent_over_a_lossy_hop() -> Result<()> {
    let hop = pair::hop(1.0 / 100_000.0);
    let pair = Pair::with_lossy_hop("addresses", hop)?;
    let gateway = pair.start_lender(POOL)?;
    let start = "auto";
    let mobile = pair.start_borrower(&pair.mobile, &Borrower { start, ..ALICE })?;
    for _ in 0..5 {
        ensure!(address(&mobile, "office")? == "10.9.0.1");
        mobile.wait_until("status", DEADLINE, pair::is_up)?;
        mobile.strata_text("down office")?;
        mobile.strata_text("up office")?;
    }
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], OCTETS / 10)?;
    ensure!(leases(&gateway)?.len() == 1);
    Ok(())
}

// Refuses: pools
#[lab::test]
fn an_exhausted_pool_is_told_at_both_ends() -> Result<()> {
    let pair = Pair::new("addresses")?;
    let gateway = pair.start_lender(r#"["10.9.0.7/32"]"#)?;
    let between = pair.start_borrower(&pair.between, &BOB)?;
    between.strata_text("up office --wait")?;
    let mobile = pair.start_borrower(&pair.mobile, &ALICE)?;
    let told = refused(&mobile)?;
    ensure!(told.contains("INTERNAL_ADDRESS_FAILURE"), "{told}");
    let status = gateway.strata("status")?;
    let reason = status["status"]["peers"][0]["last_refusal"]["reason"].as_str();
    let reason = reason.unwrap_or_default();
    ensure!(
        reason.contains("the pool `office` has no free address"),
        "{status}"
    );
    ensure!(on_device(&pair.mobile)?.is_empty());
    transfer(&pair.gateway, &pair.between, "10.9.0.7", OCTETS)
}

// Refuses: pools
#[lab::test]
fn who_does_not_ask_for_an_address_is_told_at_both_ends() -> Result<()> {
    let pair = Pair::new("addresses")?;
    let gateway = pair.start_lender(POOL)?;
    // An address that the pool would lease to it.
    let local = r#"["10.9.0.1/32", "2001:db8:9::1/128"]"#;
    let mobile = pair.start_borrower(&pair.mobile, &Borrower { local, ..ALICE })?;
    let told = refused(&mobile)?;
    ensure!(
        told.contains("FAILED_CP_REQUIRED") && told.contains("dynamic"),
        "{told}"
    );
    let status = gateway.strata("status")?;
    let reason = pair::refusal(&status);
    ensure!(reason.contains("requests no inner address"), "{status}");
    Ok(())
}

// Works: pools
#[lab::test]
fn another_pool_gives_another_address_without_a_restart() -> Result<()> {
    let pair = Pair::new("addresses")?;
    let gateway = pair.start_lender(POOL)?;
    let start = "auto";
    let mobile = pair.start_borrower(&pair.mobile, &Borrower { start, ..ALICE })?;
    ensure!(address(&mobile, "office")? == "10.9.0.1");
    gateway.change(&lender_config(&pair.gateway, r#"["10.19.0.0/24"]"#))?;
    let other = |status: &Value| pair::is_up(status) && inside(status, "office") == ["10.19.0.1"];
    mobile.wait_until("status", DEADLINE, other)?;
    ensure!(on_device(&pair.mobile)? == ["10.19.0.1/32"]);
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], OCTETS)?;
    transfer(&pair.gateway, &pair.mobile, "10.19.0.1", OCTETS)
}

// Works: pools
#[lab::test]
fn name_servers_come_from_the_peer_where_that_is_wanted() -> Result<()> {
    let former = "nameserver 192.0.2.53\n";
    for wanted in [false, true] {
        let pair = Pair::new("addresses")?;
        let _gateway = pair.start_lender(POOL)?;
        let file = pair.mobile.file("resolv.conf", former)?;
        pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
        let tunnel = format!("[tunnel]\nresolver = \"{}\"\n", file.display());
        let mut config = borrower_config(&ALICE).replace("[tunnel]\n", &tunnel);
        if wanted {
            config.push_str("dns = \"from-peer\"\n");
        }
        let mobile = pair.mobile.stratad(&config)?;
        mobile.strata_text("up office --wait")?;
        let text = fs::read_to_string(&file)?;
        ensure!(
            text.contains(&format!("nameserver {SERVER}")) == wanted,
            "{text}"
        );
        mobile.strata_text("down office")?;
        until("the former servers", DEADLINE, || {
            Ok((fs::read_to_string(&file)? == former).then_some(()))
        })?;
    }
    Ok(())
}

// Refuses: pools
#[lab::test]
fn a_store_that_cannot_be_used_is_told_with_the_fix() -> Result<()> {
    let pair = Pair::new("addresses")?;
    let _gateway = pair.start_lender(POOL)?;
    // A daemon at the host between would store its leases in the same file.
    pair.between.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    let same = lender_config(&pair.gateway, POOL);
    let complaint = match pair.between.stratad(&same) {
        Ok(_) => bail!("two daemons have one file"),
        Err(error) => format!("{error:?}"),
    };
    ensure!(
        complaint.contains("in use by another stratad"),
        "{complaint}"
    );
    pair.between.secret("strata.redb", "no database")?;
    let damaged = lender_config(&pair.between, POOL);
    let complaint = match pair.between.stratad(&damaged) {
        Ok(_) => bail!("what is no database is one"),
        Err(error) => format!("{error:?}"),
    };
    ensure!(complaint.contains("move it away"), "{complaint}");
    Ok(())
}
