//! Sessions that are resumed by a ticket (RFC 5723) or by SKID3, seen on the wire.

use anyhow::{Result, ensure};
use lab::daemon::Daemon;
use lab::pair::{self, DEADLINE, Pair, Tunnel};
use lab::plain;
use lab::process::until;
use lab::wiretap::{Seen, Wiretap, exchanges};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::thread;
use wire::ike::{Datagram, ExchangeType, GroupId, Message, Payload};

const TICKET: &str = "resume = \"ticket\"";

const SKID3: &str = "resume = \"skid3\"";

const PFS: &str = "resume = \"skid3-pfs\"";

/// Starts both ends, and the tunnel.
fn start(pair: &Pair, mobile: &str, gateway: &str) -> Result<Tunnel> {
    start_with(pair, &plain::configs(mobile, gateway))
}

fn start_with(pair: &Pair, configs: &[String; 2]) -> Result<Tunnel> {
    let tunnel = plain::start_with(pair, configs)?;
    tunnel.up()?;
    Ok(tunnel)
}

/// Runs all cases at once: each waits most of the time for a tunnel to be given up.
fn at_once<C: Copy + Send, const N: usize>(
    cases: [C; N],
    run: impl Fn(C) -> Result<()> + Sync,
) -> Result<()> {
    thread::scope(|scope| {
        let running = cases.map(|case| {
            scope.spawn({
                let run = &run;
                move || run(case)
            })
        });
        let ended = running.map(|case| case.join().expect("a case returns its errors"));
        ended.into_iter().collect()
    })
}

/// Cuts the wire until the mobile node has given the tunnel up, and has it come back. Returns the
/// exchanges on the wire since.
fn lose_and_return(pair: &Pair, mobile: &Daemon) -> Result<Vec<ExchangeType>> {
    Ok(exchanges(&lose_and_return_seen(pair, mobile)?))
}

/// Does the same, and returns the packets on the wire.
fn lose_and_return_seen(pair: &Pair, mobile: &Daemon) -> Result<Vec<Seen>> {
    pair.between.run("ip link set wired down")?;
    mobile.wait_until("status", DEADLINE, |status| !pair::is_up(status))?;
    return_seen(pair, mobile)
}

/// Joins the wire again, and has a tunnel that was lost come back.
fn return_seen(pair: &Pair, mobile: &Daemon) -> Result<Vec<Seen>> {
    let tap = Wiretap::open(&pair.mobile)?;
    pair.between.run("ip link set wired up")?;
    mobile.strata_text("up office --wait")?;
    tap.rest()
}

fn has_resumed(exchanges: &[ExchangeType]) -> bool {
    exchanges.contains(&ExchangeType::IKE_SESSION_RESUME)
        && !exchanges.contains(&ExchangeType::IKE_SA_INIT)
}

// Works: resume
// Recovers: resume
#[lab::test]
fn a_tunnel_that_was_lost_comes_back_without_a_key_exchange() -> Result<()> {
    let pair = Pair::new("resume")?;
    let mut tunnel = start(&pair, TICKET, TICKET)?;
    let exchanges = lose_and_return(&pair, &tunnel.mobile)?;
    ensure!(has_resumed(&exchanges), "{exchanges:?}");
    plain::carry(&pair)?;
    for daemon in [&mut tunnel.mobile, &mut tunnel.gateway] {
        wait_until_resumed(daemon)?;
    }
    Ok(())
}

/// The host between translates what leaves for the gateway, and drops what the gateway still sends
/// to the address behind it.
const NAT: &str = "table ip nat {
  chain in {
    type filter hook prerouting priority -300
    iifname \"wired\" ip daddr 10.3.0.2 drop
  }
  chain out {
    type nat hook postrouting priority 100
    oifname \"wired\" meta l4proto udp masquerade to :20000-30000
  }
}
";

/// The client comes back with another address and other ports, as the gateway sees it.
// Works: resume
// Works: skid3
#[lab::test]
fn a_tunnel_that_was_lost_is_resumed_from_behind_a_nat() -> Result<()> {
    let exchange = |way| match way {
        TICKET => ExchangeType::IKE_SESSION_RESUME,
        _ => ExchangeType::SKID_RESUME,
    };
    at_once([TICKET, SKID3], |way| {
        let pair = Pair::new("resume")?;
        let mut tunnel = start(&pair, way, way)?;
        pair.between.run("ip link set wired down")?;
        let is_lost = |status: &Value| !pair::is_up(status);
        tunnel.mobile.wait_until("status", DEADLINE, is_lost)?;
        let file = pair.between.file("nat.nft", NAT)?;
        pair.between.run(&format!("nft -f {}", file.display()))?;
        let exchanges = exchanges(&return_seen(&pair, &tunnel.mobile)?);
        ensure!(
            exchanges.contains(&exchange(way)) && !exchanges.contains(&ExchangeType::IKE_SA_INIT),
            "{way}: {exchanges:?}"
        );
        let is_translated = |status: &Value| {
            let remote = pair::peer(status)["remote"].as_str();
            remote.is_some_and(|remote| remote.starts_with("192.0.2.2:"))
        };
        let gateway = &tunnel.gateway;
        gateway.wait_until("status", DEADLINE, is_translated)?;
        plain::carry(&pair)?;
        for daemon in [&mut tunnel.mobile, &mut tunnel.gateway] {
            wait_until_resumed(daemon)?;
        }
        Ok(())
    })
}

/// Negative control of the test above, at each end.
// Refuses: resume
#[lab::test]
fn without_tickets_at_both_ends_a_lost_tunnel_takes_a_full_exchange() -> Result<()> {
    at_once([["", TICKET], [TICKET, ""]], |[mobile, gateway]| {
        let pair = Pair::new("resume")?;
        let tunnel = start(&pair, mobile, gateway)?;
        let exchanges = lose_and_return(&pair, &tunnel.mobile)?;
        ensure!(
            exchanges.contains(&ExchangeType::IKE_SA_INIT),
            "{exchanges:?}"
        );
        ensure!(
            !exchanges.contains(&ExchangeType::IKE_SESSION_RESUME),
            "{exchanges:?}"
        );
        plain::carry(&pair)
    })
}

/// Sessions in memory end with the gateway. The refusal costs a round trip.
// Refuses: resume
// Recovers: resume
#[lab::test]
fn a_gateway_that_has_forgotten_the_session_sets_the_tunnel_up_in_full() -> Result<()> {
    let pair = Pair::new("resume")?;
    let mut tunnel = start(&pair, TICKET, TICKET)?;
    tunnel.gateway.process().crash()?;
    tunnel
        .mobile
        .wait_until("status", DEADLINE, |status| !pair::is_up(status))?;
    let tap = Wiretap::open(&pair.mobile)?;
    tunnel.gateway.start_again()?;
    tunnel.mobile.strata_text("up office --wait")?;
    let exchanges = exchanges(&tap.rest()?);
    ensure!(
        exchanges.contains(&ExchangeType::IKE_SA_INIT),
        "{exchanges:?}"
    );
    plain::carry(&pair)?;
    let refused = |log: &str| log.contains("our ticket is not accepted").then_some(());
    tunnel
        .mobile
        .process()
        .wait_for("the log", DEADLINE, refused)
}

/// With a file, sessions survive the gateway. The mobile node is told of the lost IKE SA by the
/// answer to its question.
// Works: resume
// Recovers: resume
// Weakness: 180
#[lab::test]
fn a_gateway_that_was_killed_resumes_the_sessions_in_its_file() -> Result<()> {
    let exchanges = after_a_kill(TICKET)?;
    ensure!(has_resumed(&exchanges), "{exchanges:?}");
    Ok(())
}

/// Kills a gateway that has its sessions in a file, and starts it again. Returns the exchanges
/// until the session is resumed.
fn after_a_kill(way: &str) -> Result<Vec<ExchangeType>> {
    let pair = Pair::new("resume")?;
    let file = pair.gateway.directory().join("sessions.redb");
    let [mobile, gateway] = plain::configs(way, way);
    let gateway = format!("{gateway}\n[sessions]\nfile = \"{}\"\n", file.display());
    let mut tunnel = start_with(&pair, &[mobile, gateway])?;
    // A thread writes the file.
    let is_kept = |listed: &Value| listed_identities(listed) == ["alice@example.net"];
    tunnel.gateway.wait_until("sessions", DEADLINE, is_kept)?;
    let tap = Wiretap::open(&pair.mobile)?;
    tunnel.gateway.process().crash()?;
    tunnel.gateway.start_again()?;
    wait_until_resumed(&mut tunnel.mobile)?;
    plain::carry(&pair)?;
    let exchanges = exchanges(&tap.rest()?);
    // The ticket that was used is not good again, and another one is.
    tunnel.gateway.wait_until("sessions", DEADLINE, is_kept)?;
    Ok(exchanges)
}

fn listed_identities(listed: &Value) -> Vec<&str> {
    let sessions = listed["sessions"]["sessions"].as_array();
    let sessions = sessions.into_iter().flatten();
    let identities = sessions.map(|session| session["identity"].as_str());
    identities.map(Option::unwrap_or_default).collect()
}

/// Returns the front of the file of sessions. Each write that is complete changes it.
fn front(file: &Path) -> Result<[u8; 320]> {
    let mut front = [0; 320];
    File::open(file)?.read_exact(&mut front)?;
    Ok(front)
}

/// Does something at a gateway, and waits until its file of sessions has been written since.
fn write_after(file: &Path, happen: impl FnOnce() -> Result<()>) -> Result<()> {
    let mut before = front(file)?;
    // Another write would be taken for that of what happens.
    until("the end of earlier writes", DEADLINE, || {
        let last = std::mem::replace(&mut before, front(file)?);
        Ok((last == before).then_some(()))
    })?;
    happen()?;
    until("a write of the sessions", DEADLINE, || {
        Ok((front(file)? != before).then_some(()))
    })
}

/// Tickets by value: the gateway lists no session, and is killed with nothing but their keys and
/// the tickets that are void in its files. The control ends the sessions first.
// Works: resume
// Refuses: resume
// Recovers: resume
#[lab::test]
fn a_gateway_that_keeps_no_session_resumes_it_from_the_ticket() -> Result<()> {
    let cases = [(TICKET, true), (SKID3, true), (TICKET, false)];
    at_once(cases, |(way, is_resumed)| {
        let pair = Pair::new("resume")?;
        let file = pair.gateway.directory().join("sessions.redb");
        let [mobile, gateway] = plain::configs(way, way);
        let sessions = format!("file = \"{}\"\ntickets_by_value = true\n", file.display());
        let gateway = format!("{gateway}\n[sessions]\n{sessions}");
        let mut tunnel = plain::start_with(&pair, &[mobile, gateway])?;
        tunnel.up()?;
        // A thread writes the keys of tickets after the tunnel is up, all of them at once.
        let keys = file.with_extension("redb.tickets");
        until("the keys of tickets", DEADLINE, || {
            let written = keys.metadata().is_ok_and(|keys| keys.len() > 0);
            Ok(written.then_some(()))
        })?;
        let listed = tunnel.gateway.strata("sessions")?;
        ensure!(listed["sessions"]["sessions"] == json!([]), "{listed}");
        if !is_resumed {
            let end = || tunnel.gateway.strata_text("sessions --end-all").map(drop);
            write_after(&file, end)?;
        }
        let tap = Wiretap::open(&pair.mobile)?;
        tunnel.gateway.process().crash()?;
        tunnel.gateway.start_again()?;
        tunnel.gateway.wait_until("status", DEADLINE, pair::is_up)?;
        plain::carry(&pair)?;
        let exchanges = exchanges(&tap.rest()?);
        let is_full = exchanges.contains(&ExchangeType::IKE_SA_INIT);
        ensure!(is_full != is_resumed, "{way}: {exchanges:?}");
        Ok(())
    })
}

fn wait_until_resumed(daemon: &mut Daemon) -> Result<()> {
    let told = |log: &str| log.contains("session resumed").then_some(());
    daemon.process().wait_for("the log", DEADLINE, told)
}

// Works: resume
// Refuses: resume
#[lab::test]
fn an_operator_ends_sessions_and_tunnels_stay_up() -> Result<()> {
    let pair = Pair::new("resume")?;
    let tunnel = start(&pair, TICKET, TICKET)?;
    let shown = tunnel.gateway.strata_text("sessions")?;
    ensure!(shown.starts_with("alice@example.net"), "{shown}");
    tunnel
        .gateway
        .refuses("sessions --end nobody", "name one of: alice")?;
    let left = tunnel.gateway.strata_text("sessions --end alice")?;
    ensure!(left.contains("no session can be resumed"), "{left}");
    plain::carry(&pair)?;
    let exchanges = lose_and_return(&pair, &tunnel.mobile)?;
    ensure!(
        exchanges.contains(&ExchangeType::IKE_SA_INIT),
        "{exchanges:?}"
    );
    Ok(())
}

/// A tunnel that one end closes has nothing left to resume.
// Refuses: resume
#[lab::test]
fn a_tunnel_that_was_closed_takes_a_full_exchange() -> Result<()> {
    let pair = Pair::new("resume")?;
    let tunnel = start(&pair, TICKET, TICKET)?;
    tunnel.mobile.strata_text("down office")?;
    tunnel
        .gateway
        .wait_until("status", DEADLINE, pair::is_down)?;
    let tap = Wiretap::open(&pair.mobile)?;
    tunnel.up()?;
    let exchanges = exchanges(&tap.rest()?);
    ensure!(
        exchanges.first() == Some(&ExchangeType::IKE_SA_INIT),
        "{exchanges:?}"
    );
    Ok(())
}

/// A session ends with what its tunnel may carry. With room for more, it is resumed.
// Works: resume
// Refuses: resume
#[lab::test]
fn a_tunnel_that_has_carried_what_it_may_takes_a_full_exchange() -> Result<()> {
    at_once([("1MiB", false), ("1GiB", true)], |(limit, is_resumed)| {
        let pair = Pair::new("resume")?;
        let [mobile, gateway] = plain::configs(TICKET, TICKET);
        let gateway = format!("{gateway}\n[sessions]\ndata = \"{limit}\"\n");
        let tunnel = start_with(&pair, &[mobile, gateway])?;
        plain::carry(&pair)?;
        let counted = |answer: &Value| {
            let sessions = answer["sessions"]["sessions"].as_array();
            sessions.is_some_and(|sessions| match sessions.first() {
                None => !is_resumed,
                Some(one) => is_resumed && one["carried_octets"].as_u64() > Some(2_000_000),
            })
        };
        tunnel.gateway.wait_until("sessions", DEADLINE, counted)?;
        let exchanges = lose_and_return(&pair, &tunnel.mobile)?;
        ensure!(
            has_resumed(&exchanges) == is_resumed,
            "{limit}: {exchanges:?}"
        );
        Ok(())
    })
}

/// A value that is too small is told with its place.
// Refuses: resume
#[lab::test]
fn an_operator_is_told_of_a_lifetime_that_is_too_short() -> Result<()> {
    let pair = Pair::new("resume")?;
    let [_, gateway] = plain::configs(TICKET, TICKET);
    pair.gateway.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    pair.gateway.secret("node.psk", pair::NODE_KEY)?;
    let short = format!("{gateway}\n[sessions]\nclocked = \"1s\"\n");
    let refused = pair.gateway.stratad(&short).err();
    let why = refused.map(|error| format!("{error:#}"));
    ensure!(
        why.as_ref()
            .is_some_and(|why| why.contains("sessions.clocked")),
        "{why:?}"
    );
    Ok(())
}

/// One round trip: four messages, of which the last two go together with packets. With a key
/// exchange, the gateway's public value is in the first answer.
// Works: skid3
// Recovers: skid3
#[lab::test]
fn a_tunnel_that_was_lost_comes_back_in_one_round_trip() -> Result<()> {
    at_once(
        [(SKID3, None), (PFS, Some(GroupId::CURVE25519))],
        |(mobile, group)| {
            let pair = Pair::new("skid")?;
            let mut tunnel = start(&pair, mobile, SKID3)?;
            let seen = lose_and_return_seen(&pair, &tunnel.mobile)?;
            let exchanges = exchanges(&seen);
            // The gateway may ask on the lost IKE SA, and the last answer may come after the
            // capture.
            let of_skid3 = |exchange: &&ExchangeType| **exchange == ExchangeType::SKID_RESUME;
            let count = exchanges.iter().filter(of_skid3).count();
            ensure!(
                (2..=4).contains(&count) && is_skid3_alone(&exchanges),
                "{exchanges:?}"
            );
            let answer = seen.iter().filter_map(Seen::ike).find_map(second_message);
            let found = answer.map(|answer| group_of(&answer));
            ensure!(found == Some(group), "{mobile}: {found:?}");
            plain::carry(&pair)?;
            for daemon in [&mut tunnel.mobile, &mut tunnel.gateway] {
                wait_until_resumed(daemon)?;
            }
            Ok(())
        },
    )
}

/// With `kem` too, new keys follow the session at once: those of the IKE SA and of the tunnel.
// Works: skid3
// Works: ml-kem-rekey
#[lab::test]
fn a_tunnel_that_comes_back_with_a_key_exchange_gets_keys_with_a_kem_at_once() -> Result<()> {
    let hybrid = format!("{PFS}\nkem = \"mlkem768\"");
    let pair = Pair::new("skid")?;
    let mut tunnel = start(&pair, &hybrid, &hybrid)?;
    let exchanges = lose_and_return(&pair, &tunnel.mobile)?;
    ensure!(is_skid3_alone(&exchanges), "{exchanges:?}");
    let is_hybrid = |status: &Value| {
        let children = pair::children(status);
        let mut current = children.iter().filter(|child| child["draining"] == false);
        current.any(|child| child["key_exchanges"] == json!(["x25519", "mlkem768"]))
    };
    for daemon in [&mut tunnel.mobile, &mut tunnel.gateway] {
        wait_until_resumed(daemon)?;
        daemon.process().wait_for_log("IKE SA rekeyed", DEADLINE)?;
        daemon.wait_until("status", DEADLINE, is_hybrid)?;
    }
    plain::carry(&pair)
}

/// Returns the clear payloads of SKID3's second message.
fn second_message(message: &[u8]) -> Option<Message> {
    let Ok(Datagram::Sealed(sealed)) = Datagram::decode(message) else {
        return None;
    };
    let clear = sealed.clear().ok()?;
    let header = &clear.header;
    let is_second = header.exchange == ExchangeType::SKID_RESUME
        && header.flags.response
        && header.message_id == 0;
    is_second.then_some(clear)
}

/// Returns the group of the key exchange in a message.
fn group_of(message: &Message) -> Option<GroupId> {
    message.payloads.iter().find_map(|payload| match payload {
        Payload::KeyExchange(key) => Some(key.group),
        _ => None,
    })
}

fn is_skid3_alone(exchanges: &[ExchangeType]) -> bool {
    let others = [
        ExchangeType::IKE_SA_INIT,
        ExchangeType::IKE_AUTH,
        ExchangeType::IKE_SESSION_RESUME,
    ];
    !others.iter().any(|other| exchanges.contains(other))
}

/// Negative control of the test above: an end that has tickets only, one that has nothing, and two
/// of which one wants a key exchange.
// Refuses: skid3
#[lab::test]
fn without_skid3_at_both_ends_a_lost_tunnel_comes_back_otherwise() -> Result<()> {
    let cases = [
        (TICKET, SKID3, ExchangeType::IKE_SESSION_RESUME),
        (SKID3, TICKET, ExchangeType::IKE_SA_INIT),
        (SKID3, "", ExchangeType::IKE_SA_INIT),
        (TICKET, PFS, ExchangeType::IKE_SA_INIT),
    ];
    at_once(cases, |(mobile, gateway, first)| {
        let pair = Pair::new("skid")?;
        let tunnel = start(&pair, mobile, gateway)?;
        let exchanges = lose_and_return(&pair, &tunnel.mobile)?;
        ensure!(
            exchanges.contains(&first) && !exchanges.contains(&ExchangeType::SKID_RESUME),
            "{mobile}, {gateway}: {exchanges:?}"
        );
        plain::carry(&pair)
    })
}

/// The third message waits for the file: nothing is up at the gateway before the entry is taken.
// Works: skid3
// Recovers: skid3
// Weakness: 180
#[lab::test]
fn a_gateway_that_was_killed_resumes_in_one_round_trip_from_its_file() -> Result<()> {
    let exchanges = after_a_kill(SKID3)?;
    ensure!(
        exchanges.contains(&ExchangeType::SKID_RESUME) && is_skid3_alone(&exchanges),
        "{exchanges:?}"
    );
    Ok(())
}
