//! A gateway redirects its peers to another gateway. Here the host between is that gateway, with
//! the same identity and key.

use anyhow::{Result, ensure};
use lab::daemon::Daemon;
use lab::duo::{Duo, OURS, THEIRS};
use lab::name_server::NameServer;
use lab::pair::{
    self, DEADLINE, GATEWAY, MOBILE, Pair, TUNNEL_KEY, Terms, is_down, is_up, mobile_config,
    refusal,
};
use lab::plain;
use lab::strongswan::{Charon, Connection};
use lab::transfer::transfer;
use lab::volley::volleys;
use serde_json::Value;

/// Address of the other gateway.
const OTHER: &str = "10.3.0.1";

/// Its name, which dnsmasq there tells.
const NAME: &str = "gw2.example.net";

/// Line that the mobile node's table of the gateway needs.
const LISTED: &str = "redirect = [\"10.3.0.0/24\"]";

/// Starts the mobile node, the gateway and the other gateway, not connected. `more` extends the
/// gateway's configuration, `listed` the mobile node's.
fn start(more: &str, listed: &str) -> Result<(Pair, [Daemon; 3])> {
    let pair = Pair::new("redirect")?;
    let config = pair::gateway_config(Terms::PLAIN);
    let alone = config.split("[licensed.fa]").next().unwrap_or_default();
    for host in [&pair.mobile, &pair.gateway, &pair.between] {
        host.secret("tunnel.psk", TUNNEL_KEY)?;
    }
    let gateway = pair.gateway.stratad(&format!("{alone}{more}"))?;
    let other = pair.between.stratad(alone)?;
    let mobile = mobile_config(os::Family::V4, Terms::PLAIN, "manual");
    let server = format!("resolve_via = [\"{OTHER}\"]");
    let mobile = plain::in_table(&mobile, "[tunnel]", &server);
    let mobile = pair.mobile.stratad(&format!("{mobile}{listed}\n"))?;
    Ok((pair, [mobile, gateway, other]))
}

/// Fails unless the tunnel uses the other gateway and carries octets in each direction.
fn is_there(pair: &Pair, [mobile, gateway, other]: &[Daemon; 3]) -> Result<()> {
    mobile.wait_until("status", DEADLINE, |status| {
        is_up(status) && pair::peer(status)["remote"].to_string().contains(OTHER)
    })?;
    other.wait_until("status", DEADLINE, is_up)?;
    gateway.wait_until("status", DEADLINE, |status| !is_up(status))?;
    transfer(&pair.mobile, &pair.between, GATEWAY[0], 1_000_000)?;
    transfer(&pair.between, &pair.mobile, MOBILE[0], 1_000_000)
}

/// Returns the line of a name server that gives [`NAME`] this address.
fn names(address: &str) -> String {
    format!("{address} {NAME}\n")
}

/// `to` is the address of the other gateway, or its name.
fn sent(to: &str, when: &str) -> Result<()> {
    let redirect = format!("[redirect]\nto = \"{to}\"\nwhen = \"{when}\"\n");
    let (pair, mut daemons) = start(&redirect, LISTED)?;
    let mut dns = NameServer::start(&pair.between, OTHER, &names(OTHER))?;
    daemons[0].strata("up office")?;
    is_there(&pair, &daemons)?;
    if to == NAME {
        dns.wait_for_query("A", NAME)?;
    }
    let told = format!("redirected to {OTHER}");
    daemons[0].process().wait_for_log(&told, DEADLINE)
}

// Works: redirect
#[lab::test]
fn a_peer_is_sent_away_at_its_first_message() -> Result<()> {
    sent(OTHER, "init")
}

// Works: redirect
#[lab::test]
fn a_peer_is_sent_away_when_it_has_proved_who_it_is() -> Result<()> {
    sent(OTHER, "auth")
}

// Works: redirect
#[lab::test]
fn a_peer_is_sent_to_a_name_at_its_first_message() -> Result<()> {
    sent(NAME, "init")
}

// Works: redirect
#[lab::test]
fn a_peer_is_sent_to_a_name_when_it_has_proved_who_it_is() -> Result<()> {
    sent(NAME, "auth")
}

/// The name means an address that the mobile node does not list, then none. Its tunnel stays.
/// Negative control: it means the other gateway.
// Works: redirect
// Refuses: redirect
// Recovers: redirect
#[lab::test]
fn a_name_without_a_listed_address_moves_nobody() -> Result<()> {
    let (pair, daemons) = start("", LISTED)?;
    let [mobile, gateway, _] = &daemons;
    mobile.strata("up office --wait")?;
    let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    let stays = |why: &str| -> Result<()> {
        volleys(ends.0, ends.1, || {
            gateway.strata_text(&format!("redirect alice {NAME}"))?;
            let told = |status: &Value| is_up(status) && refusal(status).contains(why);
            mobile.wait_until("status", DEADLINE, told)
        })
        .map(drop)
    };
    stays("name server 10.3.0.1")?;
    let mut dns = NameServer::start(&pair.between, OTHER, &names("10.4.0.9"))?;
    stays("10.4.0.9 is not listed in `redirect`")?;
    dns.set(&names(OTHER))?;
    gateway.strata_text(&format!("redirect alice {NAME}"))?;
    is_there(&pair, &daemons)
}

/// The tunnel is never down: the new one is up before the old one goes.
// Works: redirect
#[lab::test]
fn strata_redirect_empties_a_gateway() -> Result<()> {
    let (pair, daemons) = start("", LISTED)?;
    daemons[0].strata("up office --wait")?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 1_000_000)?;
    let asked = daemons[1].strata_text(&format!("redirect alice {OTHER}"))?;
    ensure!(asked.contains("redirect sent"), "{asked}");
    is_there(&pair, &daemons)?;
    daemons[1].wait_until("status", DEADLINE, is_down).map(drop)
}

// Refuses: redirect
#[lab::test]
fn an_address_that_is_not_listed_is_told_with_the_fix() -> Result<()> {
    let (pair, daemons) = start("", "redirect = [\"10.4.0.0/24\"]")?;
    let [mobile, gateway, _] = &daemons;
    mobile.strata("up office --wait")?;
    let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    volleys(ends.0, ends.1, || {
        gateway.strata_text(&format!("redirect alice {OTHER}"))?;
        let told = |status: &Value| {
            is_up(status) && refusal(status).contains("add it to `redirect` in the peer's table")
        };
        mobile.wait_until("status", DEADLINE, told)
    })
    .map(drop)
}

// Refuses: redirect
#[lab::test]
fn what_cannot_be_sent_away_is_refused_with_the_fix() -> Result<()> {
    let (_pair, daemons) = start("", "")?;
    let [mobile, gateway, _] = &daemons;
    let to_other = |name: &str| format!("redirect {name} {OTHER}");
    gateway.refuses(&to_other("nobody"), "strata status")?;
    gateway.refuses("redirect alice gw2", "write it like 192.0.2.7")?;
    gateway.refuses(&to_other("alice"), "wait until it connects")?;
    mobile.strata("up office --wait")?;
    gateway.refuses(&to_other("alice"), "list 10.3.0.1 in `redirect`")?;
    mobile.refuses(&to_other("office"), "write another `address`")
}

/// strongSwan follows a redirect by default. The other gateway is the same host at its second
/// address. The redirect is sent only in answer to the first message: charon 5.9.8 has a double
/// free if the IKE_AUTH response redirects it.
// Works: redirect
#[lab::test]
fn strongswan_goes_where_it_is_sent() -> Result<()> {
    strongswan_goes_to("192.0.2.3")
}

/// strongSwan looks the name up by the C library.
// Works: redirect
#[lab::test]
fn strongswan_goes_to_the_name_that_it_is_sent_to() -> Result<()> {
    strongswan_goes_to(NAME)
}

/// `to` is the second address of our host, or its name.
fn strongswan_goes_to(to: &str) -> Result<()> {
    let duo = Duo::new("redirect")?;
    duo.ours.run("ip address add 192.0.2.3/24 dev eth0")?;
    duo.theirs.file("hosts", &names("192.0.2.3"))?;
    let ours = OURS
        .replace("address = \"192.0.2.2\"\n", "")
        .replace("start = \"manual\"\n", "");
    let ours = format!("{ours}[redirect]\nto = \"{to}\"\nwhen = \"init\"\n");
    let peer_address = "192.0.2.1";
    let theirs = Connection {
        peer_address,
        ..THEIRS
    };
    let (strata, mut charon) = duo.start(&ours, &theirs)?;
    // swanctl stops waiting when charon starts over.
    let _ = charon.initiate();
    charon.wait_until(DEADLINE, |sas| {
        sas.contains("remote-host=192.0.2.3") && sas.contains("state=INSTALLED")
    })?;
    strata.wait_until("status", DEADLINE, |status| {
        status["status"]["peers"][0]["state"] == "up"
    })?;
    transfer(&duo.theirs, &duo.ours, "10.1.0.1", 1_000_000)?;
    let log = charon.process().log();
    ensure!(log.contains("N(REDIR)"), "{log}");
    Ok(())
}

/// Connects us to a charon that is the other gateway too, at its second address. We ask the name
/// server at its first address.
fn connect_to_strongswan() -> Result<(Duo, Daemon, Charon)> {
    let duo = Duo::new("redirect")?;
    duo.theirs.run("ip address add 192.0.2.4/24 dev eth0")?;
    let ours = plain::in_table(OURS, "[tunnel]", "resolve_via = [\"192.0.2.2\"]");
    let ours = format!("{ours}redirect = [\"192.0.2.4/32\"]\n");
    let theirs = Connection {
        address: "192.0.2.2,192.0.2.4",
        ..THEIRS
    };
    let (strata, charon) = duo.start(&ours, &theirs)?;
    strata.strata("up theirs --wait")?;
    Ok((duo, strata, charon))
}

/// strongSwan redirects us by a name that its name server has.
// Works: redirect
#[lab::test]
fn we_go_to_the_name_that_strongswan_sends_us_to() -> Result<()> {
    let (duo, strata, charon) = connect_to_strongswan()?;
    let mut dns = NameServer::start(&duo.theirs, "192.0.2.2", &names("192.0.2.4"))?;
    charon.redirect(NAME)?;
    strata.wait_until("status", DEADLINE, |status| {
        is_up(status) && pair::peer(status)["remote"] == "192.0.2.4:4500"
    })?;
    charon.wait_until(DEADLINE, |sas| {
        let left = sas.contains("local-host=192.0.2.2");
        sas.contains("local-host=192.0.2.4") && sas.contains("state=INSTALLED") && !left
    })?;
    dns.wait_for_query("A", NAME)?;
    duo.carry(1_000_000)
}

/// No name server answers, so the tunnel stays, and the reason is told.
// Refuses: redirect
#[lab::test]
fn a_name_from_strongswan_that_is_not_found_is_told() -> Result<()> {
    let (_duo, strata, charon) = connect_to_strongswan()?;
    charon.redirect(NAME)?;
    strata.wait_until("status", DEADLINE, |status| {
        is_up(status) && refusal(status).contains("name server 192.0.2.2")
    })?;
    Ok(())
}
