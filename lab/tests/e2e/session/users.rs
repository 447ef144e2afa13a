//! One table of a gateway for many users: everyone with a certificate of the CA for a name of its
//! pattern. Certificates come from `strata pki`.

use anyhow::{Result, bail, ensure};
use lab::certified::{hand_out, strata};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::lending::on_device;
use lab::pair::{self, DEADLINE, Pair, is_up, refusal};
use lab::process::until;
use lab::transfer::transfer;
use serde_json::Value;

const ALICE: &str = "alice@staff.example.net";
const BOB: &str = "bob@staff.example.net";
const CAROL: &str = "carol@staff.example.net";
const EVE: &str = "eve@sales.example.net";

/// Inner address of the gateway.
const INSIDE: &str = "10.8.0.1";

const STAFF: &str = r#"[peer.staff]
id = "*@staff.example.net"
local = ["10.8.0.0/16"]
pool = "office"
liveness = "1s"
"#;

/// Gives the gateway and the users certificates of one CA, whose folder the mobile node has.
fn issued(pair: Pair) -> Result<Pair> {
    let maker = &pair.mobile;
    strata(maker, "pki ca --name Root --out root")?;
    for id in ["gw.example.net", ALICE, BOB, CAROL, EVE] {
        strata(maker, &format!("pki issue --ca root --out made --id {id}"))?;
    }
    hand_out(maker, &pair.gateway, "gw.example.net")?;
    strata(maker, "pki crl --ca root")?;
    publish(&pair)?;
    Ok(pair)
}

/// Copies the newest revocation list to the gateway.
fn publish(pair: &Pair) -> Result<()> {
    let list = std::fs::read_to_string(pair.mobile.directory().join("root/ca.crl"))?;
    pair.gateway.file("ca.crl", &list).map(drop)
}

/// Returns the gateway's configuration with these tables.
fn gateway_config(host: &Host, tables: &str) -> String {
    let store = host.directory().join("strata.redb");
    format!(
        r#"
[node]
id = "gw.example.net"
cert = "chain.pem"
key = "end.key"
ca = ["ca.pem"]
crl = ["ca.crl"]
[tunnel]
addresses = ["10.8.0.1/16"]
[store]
file = "{}"
[pool.office]
addresses = ["10.9.0.0/24"]
[pool.guests]
addresses = ["10.10.0.0/24"]
{tables}"#,
        store.display()
    )
}

fn start_gateway(pair: &Pair, tables: &str) -> Result<Daemon> {
    let gateway = &pair.gateway;
    gateway.stratad(&gateway_config(gateway, tables))
}

/// Starts the daemon of a user at a host.
fn start_user(pair: &Pair, host: &Host, id: &str) -> Result<Daemon> {
    start_user_with(pair, host, id, "")
}

/// Does the same, with one more line in the table of the gateway.
fn start_user_with(pair: &Pair, host: &Host, id: &str, line: &str) -> Result<Daemon> {
    hand_out(&pair.mobile, host, id)?;
    host.stratad(&format!(
        r#"
[node]
id = "{id}"
cert = "chain.pem"
key = "end.key"
ca = ["ca.pem"]
[tunnel]
[peer.office]
address = "192.0.2.1"
id = "gw.example.net"
local = ["dynamic"]
remote = ["10.8.0.0/16"]
liveness = "1s"
start = "manual"
{line}
"#
    ))
}

/// Starts the daemon of a user, and connects.
fn connect(pair: &Pair, host: &Host, id: &str) -> Result<Daemon> {
    let user = start_user(pair, host, id)?;
    user.strata_text("up office --wait")?;
    Ok(user)
}

/// Returns the identities whose sessions the gateway has.
fn resumable(sessions: &Value) -> Vec<String> {
    let sessions = sessions["sessions"]["sessions"].as_array();
    let identities = sessions.into_iter().flatten();
    let identities = identities.filter_map(|session| session["identity"].as_str());
    identities.map(str::to_owned).collect()
}

/// Returns the error of `strata up`, which must fail.
fn refused(user: &Daemon) -> Result<String> {
    match user.strata_text("up office --wait=20") {
        Ok(account) => bail!("it was not refused: {account}"),
        Err(refusal) => Ok(format!("{refusal:?}")),
    }
}

/// Returns a peer of the gateway by its name, or null.
fn named<'a>(status: &'a Value, name: &str) -> &'a Value {
    let peers = status["status"]["peers"].as_array();
    let found = peers.and_then(|peers| peers.iter().find(|peer| peer["name"] == name));
    found.unwrap_or(&Value::Null)
}

fn is_named_up(status: &Value, name: &str) -> bool {
    named(status, name)["state"] == "up"
}

/// Waits until a user is up at the gateway, and returns its inner address there.
fn address(gateway: &Daemon, name: &str) -> Result<String> {
    let up = |status: &Value| is_named_up(status, name);
    let status = gateway.wait_until("status", DEADLINE, up)?;
    let inside = named(&status, name)["inside"][0].as_str();
    Ok(inside.unwrap_or_default().to_owned())
}

fn ensure_has(text: &str, words: &str) -> Result<()> {
    ensure!(text.contains(words), "{words:?} is not in {text}");
    Ok(())
}

// Works: users
#[lab::test]
fn users_of_one_table_are_up_by_their_own_names_with_addresses_of_their_own() -> Result<()> {
    let pair = issued(Pair::new("users")?)?;
    let own = format!(
        "{STAFF}[peer.carol]\nid = \"{CAROL}\"\nlocal = [\"10.8.0.0/16\"]\npool = \"guests\"\n"
    );
    let gateway = start_gateway(&pair, &own)?;
    let _alice = connect(&pair, &pair.mobile, ALICE)?;
    let mut bob = connect(&pair, &pair.between, BOB)?;
    let (alices, bobs) = (address(&gateway, ALICE)?, address(&gateway, BOB)?);
    ensure!((alices.as_str(), bobs.as_str()) == ("10.9.0.1", "10.9.0.2"));
    for (host, inside) in [(&pair.mobile, &alices), (&pair.between, &bobs)] {
        ensure!(on_device(host)? == [format!("{inside}/32")]);
        transfer(host, &pair.gateway, INSIDE, 100_000)?;
        transfer(&pair.gateway, host, inside, 100_000)?;
    }
    let status = gateway.strata("status")?;
    let (alice, table) = (named(&status, ALICE), named(&status, "staff"));
    ensure!(
        alice["table"] == "staff" && alice["identity"] == ALICE,
        "{alice}"
    );
    ensure!(alice["kind"] == "vpn" && alice["children"][0]["remote"][0] == "10.9.0.1/32");
    ensure!(
        table["users"]["here"] == 2 && table["users"]["most"] == 1000,
        "{table}"
    );
    let shown = gateway.strata_text(&format!("status staff {ALICE}"))?;
    ensure_has(&shown, "peer staff  2 of 1000 users")?;
    ensure_has(&shown, &format!("peer {ALICE}  up"))?;
    ensure_has(&gateway.strata_text("leases")?, ALICE)?;
    let metrics = gateway.strata_text("metrics")?;
    ensure_has(&metrics, &format!("strata_peer_up{{peer=\"{BOB}\"}} 1"))?;
    ensure_has(&metrics, "strata_table_users{peer=\"staff\"} 2")?;
    ensure!(
        !metrics.contains("strata_peer_up{peer=\"staff\"}"),
        "{metrics}"
    );
    ensure_has(&gateway.strata_text(&format!("explain {ALICE}"))?, "up")?;
    // A table of one's own comes first.
    bob.stop()?;
    let _carol = connect(&pair, &pair.between, CAROL)?;
    let inside = address(&gateway, "carol")?;
    ensure!(inside == "10.10.0.1", "{inside}");
    // The lease of a user that has gone is kept.
    ensure_has(&gateway.strata_text("leases")?, BOB)
}

// Works: users
#[lab::test]
fn a_user_is_taken_down_and_up_by_its_own_name() -> Result<()> {
    let pair = issued(Pair::new("users")?)?;
    let gateway = start_gateway(&pair, STAFF)?;
    let alice = connect(&pair, &pair.mobile, ALICE)?;
    let _bob = connect(&pair, &pair.between, BOB)?;
    gateway.strata_text(&format!("down {ALICE}"))?;
    ensure_has(&refused(&alice)?, "TEMPORARY_FAILURE")?;
    let status = gateway.strata("status")?;
    ensure!(named(&status, ALICE)["state"] == "down" && is_named_up(&status, BOB));
    gateway.strata_text(&format!("up {ALICE}"))?;
    alice.strata_text("up office --wait")?;
    gateway.strata_text("down staff")?;
    let down = |status: &Value| !is_named_up(status, ALICE) && !is_named_up(status, BOB);
    gateway.wait_until("status", DEADLINE, down)?;
    gateway.strata_text("up staff")?;
    alice.strata_text("up office --wait").map(drop)
}

// Refuses: users
#[lab::test]
fn a_user_of_another_domain_or_one_too_many_is_refused_with_a_reason() -> Result<()> {
    let pair = issued(Pair::new("users")?)?;
    let one = STAFF.replace("pool =", "users = 1\npool =");
    let gateway = start_gateway(&pair, &one)?;
    let mut eve = start_user(&pair, &pair.between, EVE)?;
    ensure_has(&refused(&eve)?, "AUTHENTICATION_FAILED")?;
    let told = |status: &Value| status["status"]["refused_stranger"]["reason"].is_string();
    let status = gateway.wait_until("status", DEADLINE, told)?;
    let reason = status["status"]["refused_stranger"]["reason"].to_string();
    ensure_has(&reason, &format!("no peer with the identity {EVE}"))?;
    eve.stop()?;
    // The same host, CA and gateway: the name alone is different.
    let bob = connect(&pair, &pair.between, BOB)?;
    let alice = start_user(&pair, &pair.mobile, ALICE)?;
    ensure_has(&refused(&alice)?, "TEMPORARY_FAILURE")?;
    let told = |status: &Value| {
        let reason = named(status, "staff")["last_refusal"]["reason"].to_string();
        reason.contains(&format!(
            "{ALICE} is not admitted: 1 users are here already"
        )) && reason.contains("raise `users`")
    };
    gateway.wait_until("status", DEADLINE, told)?;
    // The place is free once its user has left.
    bob.strata_text("down office")?;
    until("a free place", DEADLINE, || {
        Ok(alice.strata_text("up office --wait").ok())
    })?;
    ensure!(address(&gateway, ALICE)? == "10.9.0.2");
    Ok(())
}

// Refuses: users
#[lab::test]
fn a_secret_for_many_users_is_a_fault_of_the_file() -> Result<()> {
    let pair = issued(Pair::new("users")?)?;
    pair.gateway.secret(
        "staff.psk",
        "a secret that all users know, and none is proved by",
    )?;
    let shared = STAFF.replace("pool =", "psk = \"staff.psk\"\npool =");
    let config = gateway_config(&pair.gateway, &shared);
    pair.gateway.file("strata.toml", &config)?;
    let Err(refused) = strata(&pair.gateway, "check strata.toml") else {
        bail!("it was accepted");
    };
    let text = format!("{refused:?}");
    ensure_has(&text, "peer.staff.psk")?;
    ensure_has(&text, "each user needs a certificate")?;
    // Without the line it is good.
    let config = gateway_config(&pair.gateway, STAFF);
    pair.gateway.file("strata.toml", &config)?;
    strata(&pair.gateway, "check strata.toml").map(drop)
}

// Works: users
#[lab::test]
fn a_revoked_user_goes_and_the_others_stay() -> Result<()> {
    let pair = issued(Pair::new("users")?)?;
    let mut gateway = start_gateway(&pair, STAFF)?;
    let alice = connect(&pair, &pair.mobile, ALICE)?;
    let _bob = connect(&pair, &pair.between, BOB)?;
    strata(
        &pair.mobile,
        &format!("pki revoke --ca root made/{ALICE}.pem"),
    )?;
    publish(&pair)?;
    gateway.strata_text("reload")?;
    let gone = |status: &Value| !is_named_up(status, ALICE) && is_named_up(status, BOB);
    gateway.wait_until("status", DEADLINE, gone)?;
    let words = format!("peer {ALICE}: down");
    gateway.process().wait_for_log(&words, DEADLINE)?;
    let told = |status: &Value| !is_up(status) && refusal(status).contains("was revoked");
    alice.wait_until("status", DEADLINE, told)?;
    transfer(&pair.between, &pair.gateway, INSIDE, 100_000)
}

/// One user's sessions end by its name, and those of all users by that of their table.
// Works: users
// Works: resume
// Refuses: resume
#[lab::test]
fn sessions_of_one_user_end_and_those_of_others_stay() -> Result<()> {
    let pair = issued(Pair::new("users")?)?;
    let resume = "resume = \"ticket\"";
    let gateway = start_gateway(&pair, &format!("{STAFF}{resume}\n"))?;
    let mut users = Vec::new();
    for (host, id) in [(&pair.mobile, ALICE), (&pair.between, BOB)] {
        let user = start_user_with(&pair, host, id, resume)?;
        user.strata_text("up office --wait")?;
        users.push(user);
    }
    let both = |sessions: &Value| resumable(sessions) == [ALICE, BOB];
    gateway.wait_until("sessions", DEADLINE, both)?;
    gateway.refuses(&format!("sessions --end {EVE}"), "name one of")?;
    let left = gateway.strata(&format!("sessions --end {ALICE}"))?;
    ensure!(resumable(&left) == [BOB], "{left}");
    let left = gateway.strata("sessions --end staff")?;
    ensure!(resumable(&left).is_empty(), "{left}");
    let status = gateway.strata("status")?;
    for id in [ALICE, BOB] {
        ensure!(is_named_up(&status, id), "{id} is not up: {status}");
    }
    Ok(())
}

// Refuses: users
#[lab::test]
fn a_reload_that_narrows_the_pattern_ends_those_whom_it_no_longer_means() -> Result<()> {
    let pair = issued(Pair::new("users")?)?;
    let gateway = start_gateway(&pair, &STAFF.replace("*@staff.example.net", "*"))?;
    let _alice = connect(&pair, &pair.mobile, ALICE)?;
    let _eve = connect(&pair, &pair.between, EVE)?;
    gateway.change(&gateway_config(&pair.gateway, STAFF))?;
    let narrowed = |status: &Value| named(status, EVE).is_null();
    gateway.wait_until("status", DEADLINE, narrowed)?;
    let up = |status: &Value| is_named_up(status, ALICE);
    gateway.wait_until("status", DEADLINE, up).map(drop)
}

/// Alice's key is on two machines.
// Works: users
#[lab::test]
fn a_second_machine_of_one_user_replaces_the_first_or_is_refused_or_stays_beside_it() -> Result<()>
{
    let pair = issued(Pair::new("users")?)?;
    let unique = |word: &str| STAFF.replace("pool =", &format!("unique = \"{word}\"\npool ="));
    let mut gateway = start_gateway(&pair, &unique("keep"))?;
    let first = connect(&pair, &pair.mobile, ALICE)?;
    let second = start_user(&pair, &pair.between, ALICE)?;
    ensure_has(&refused(&second)?, "TEMPORARY_FAILURE")?;
    let status = gateway.strata("status")?;
    let alice = named(&status, ALICE);
    ensure!(
        alice["state"] == "up" && alice["remote"] == "10.3.0.2:4500",
        "{alice}"
    );
    let reason = alice["last_refusal"]["reason"].to_string();
    ensure_has(
        &reason,
        "the peer is up from 10.3.0.2, and that tunnel stays",
    )?;
    ensure!(is_up(&first.strata("status")?), "the first is not touched");
    second.strata_text("down office")?;
    gateway.change(&gateway_config(&pair.gateway, &unique("never")))?;
    first.strata_text("up office --wait")?;
    second.strata_text("up office --wait")?;
    let beside = format!("{ALICE} (2)");
    ensure!(address(&gateway, ALICE)? == "10.9.0.1" && address(&gateway, &beside)? == "10.9.0.2");
    for host in [&pair.mobile, &pair.between] {
        let inside = on_device(host)?.join("").replace("/32", "");
        transfer(&pair.gateway, host, &inside, 100_000)?;
    }
    gateway.change(&gateway_config(&pair.gateway, &unique("replace")))?;
    first.strata_text("up office --wait")?;
    second.strata_text("up office --wait")?;
    let words = format!("peer {ALICE}: connected from ");
    gateway.process().wait_for_log(&words, DEADLINE).map(drop)
}

/// Gives the users certificates of these units, and the gateway its own.
fn issued_by_unit(units: &[(&str, &str)]) -> Result<Pair> {
    let pair = issued(Pair::new("users")?)?;
    for (id, unit) in units {
        let issue = format!("pki issue --ca root --out made --id {id} --ou {unit} --force");
        strata(&pair.mobile, &issue)?;
    }
    Ok(pair)
}

const GROUPS: &str = r#"[peer.staff]
id = "*@staff.example.net"
ou = "Staff"
local = ["10.8.0.0/16"]
pool = "office"
liveness = "1s"
[peer.guests]
id = "*@staff.example.net"
ou = "Guests"
local = ["10.8.0.0/16"]
pool = "guests"
liveness = "1s"
"#;

// Works: user-groups
// Refuses: user-groups
#[lab::test]
fn the_unit_of_a_certificate_selects_the_table_and_without_one_there_is_no_way_in() -> Result<()> {
    let pair = issued_by_unit(&[(ALICE, "Staff"), (BOB, "Guests"), (EVE, "Staff")])?;
    let gateway = start_gateway(&pair, GROUPS)?;
    let alice = connect(&pair, &pair.mobile, ALICE)?;
    let mut bob = connect(&pair, &pair.between, BOB)?;
    ensure!(address(&gateway, ALICE)? == "10.9.0.1" && address(&gateway, BOB)? == "10.10.0.1");
    let status = gateway.strata("status")?;
    ensure!(named(&status, ALICE)["table"] == "staff" && named(&status, BOB)["table"] == "guests");
    bob.stop()?;
    // The same name, host, CA and gateway: the unit alone is missing.
    let mut carol = start_user(&pair, &pair.between, CAROL)?;
    ensure_has(&refused(&carol)?, "its organisational unit is another")?;
    let told = |status: &Value| {
        let reasons = status.to_string();
        reasons.contains("has no organisational unit, but must have the organisational units")
    };
    gateway.wait_until("status", DEADLINE, told)?;
    carol.stop()?;
    // A unit is no way around the pattern.
    let mut eve = start_user(&pair, &pair.between, EVE)?;
    ensure_has(&refused(&eve)?, "AUTHENTICATION_FAILED")?;
    eve.stop()?;
    let issue = format!("pki issue --ca root --out made --id {CAROL} --ou Guests --force");
    strata(&pair.mobile, &issue)?;
    let _carol = connect(&pair, &pair.between, CAROL)?;
    ensure!(address(&gateway, CAROL)? == "10.10.0.2");
    // Other terms are proved again.
    gateway.change(&gateway_config(
        &pair.gateway,
        &GROUPS.replace("\"Staff\"", "\"Crew\""),
    ))?;
    let gone = |status: &Value| !is_named_up(status, ALICE) && is_named_up(status, CAROL);
    gateway.wait_until("status", DEADLINE, gone)?;
    ensure_has(&refused(&alice)?, "its organisational unit is another")
}

/// Two CAs issue a certificate for one name. The table takes that of its own CA only.
// Works: user-groups
// Refuses: user-groups
#[lab::test]
fn the_ca_of_a_table_admits_its_users_and_the_ca_of_the_gateway_does_not() -> Result<()> {
    let pair = issued(Pair::new("users")?)?;
    strata(&pair.mobile, "pki ca --name Staff --out staff")?;
    let own = format!("pki issue --ca staff --out own --id {ALICE}");
    strata(&pair.mobile, &own)?;
    let read = |file: &str| std::fs::read_to_string(pair.mobile.directory().join(file));
    pair.gateway.file("staff-ca.pem", &read("staff/ca.pem")?)?;
    let table = STAFF.replace("pool =", "ca = \"staff-ca.pem\"\npool =");
    let sales = format!(
        "{table}[peer.sales]\nid = \"*@sales.example.net\"\nlocal = [\"10.8.0.0/16\"]\n\
         pool = \"guests\"\n"
    );
    let gateway = start_gateway(&pair, &sales)?;
    let mut alice = start_user(&pair, &pair.mobile, ALICE)?;
    ensure_has(&refused(&alice)?, "our CA is not trusted there")?;
    let told = |status: &Value| {
        let reasons = status.to_string();
        reasons.contains("issued by `CN=Root`, but must chain to `CN=Staff`")
    };
    gateway.wait_until("status", DEADLINE, told)?;
    // It is the CA of the other table, as ever.
    let mut eve = connect(&pair, &pair.between, EVE)?;
    ensure!(address(&gateway, EVE)? == "10.10.0.1");
    eve.stop()?;
    alice.stop()?;
    for (from, to) in [("key", "end.key"), ("pem", "chain.pem")] {
        pair.mobile
            .secret(to, &read(&format!("own/{ALICE}.{from}"))?)?;
    }
    alice.start_again()?;
    alice.strata_text("up office --wait")?;
    ensure!(address(&gateway, ALICE)? == "10.9.0.1");
    transfer(&pair.gateway, &pair.mobile, "10.9.0.1", 100_000)
}

/// The gateway knows its users by their proofs alone: it keeps their leases.
// Recovers: users
#[lab::test]
fn users_come_back_after_kill_9_of_the_gateway_over_a_lossy_hop() -> Result<()> {
    let pair = issued(Pair::with_lossy_hop("users", pair::hop(1.0 / 100_000.0))?)?;
    let mut gateway = start_gateway(&pair, STAFF)?;
    let _bob = connect(&pair, &pair.between, BOB)?;
    let alice = start_user(&pair, &pair.mobile, ALICE)?;
    alice.strata_text("up office --wait=60")?;
    ensure!(address(&gateway, ALICE)? == "10.9.0.2");
    gateway.process().crash()?;
    gateway.start_again()?;
    ensure!(address(&gateway, BOB)? == "10.9.0.1" && address(&gateway, ALICE)? == "10.9.0.2");
    until("a transfer", DEADLINE, || {
        let carried = transfer(&pair.gateway, &pair.mobile, "10.9.0.2", 100_000);
        Ok(carried.ok())
    })
}
