//! A gateway and its device by `strata init` and `strata enrol` alone: no line is written by hand.

use anyhow::{Context, Result, bail, ensure};
use lab::certified::strata;
use lab::daemon::Daemon;
use lab::duo::{DEADLINE, Duo};
use lab::host::Host;
use lab::testbed::find_binary;
use lab::transfer::transfer;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const OCTETS: u64 = 1_000_000;

const GATEWAY: &str = "init gateway --id gw.example.net --address 192.0.2.2 \
    --network 10.2.0.0/24 --pool 10.9.0.0/24 --out .";

/// Starts `stratad` with the configuration in a host's folder, and leases in the same folder.
fn start(host: &Host, more: &str) -> Result<Daemon> {
    let config = fs::read_to_string(host.directory().join("strata.toml"))?;
    host.stratad(&format!("{config}\n{more}"))
}

fn start_gateway(host: &Host) -> Result<Daemon> {
    strata(host, GATEWAY)?;
    let store = host.directory().join("strata.redb");
    start(host, &format!("[store]\nfile = \"{}\"\n", store.display()))
}

/// Carries an archive to a device and unpacks it there.
fn carry(gateway: &Host, device: &Host, archive: &str) -> Result<()> {
    fs::copy(
        gateway.directory().join(archive),
        device.directory().join(archive),
    )?;
    device.run(&format!("tar -xf {archive}")).map(drop)
}

// Works: init
#[lab::test]
fn an_enrolled_device_connects_and_is_revoked() -> Result<()> {
    let duo = Duo::new("enrol")?;
    let (gateway, device) = (&duo.theirs, &duo.ours);
    let running = start_gateway(gateway)?;
    strata(gateway, "enrol alice@example.net --file strata.toml")?;
    running.strata("reload")?;
    carry(gateway, device, "alice.tar")?;
    let alice = start(device, "")?;
    alice.strata("up gw --wait")?;
    transfer(device, gateway, "10.2.0.1", OCTETS)?;
    let leases = running.strata_text("leases")?;
    ensure!(leases.contains("alice@example.net"), "{leases}");
    // Negative control: the certificate is what lets the device in.
    strata(gateway, "pki revoke --ca ca alice@example.net")?;
    let config = fs::read_to_string(gateway.directory().join("strata.toml"))?;
    let config = config.replace(
        "ca = [\"ca/ca.pem\"]",
        "ca = [\"ca/ca.pem\"]\ncrl = [\"ca/ca.crl\"]",
    );
    running.change(&config)?;
    alice.strata("down gw")?;
    ensure!(alice.strata_text("up gw --wait").is_err(), "it is up");
    Ok(())
}

/// A device of another gateway with the same names is refused.
// Refuses: init
#[lab::test]
fn a_device_that_another_ca_enrolled_is_refused() -> Result<()> {
    let duo = Duo::new("enrol")?;
    let (gateway, device) = (&duo.theirs, &duo.ours);
    let running = start_gateway(gateway)?;
    strata(gateway, "enrol alice@example.net --file strata.toml")?;
    running.strata("reload")?;
    strata(device, &GATEWAY.replace("--out .", "--out false"))?;
    strata(device, "enrol alice@example.net --file false/strata.toml")?;
    device.run("tar -xf alice.tar")?;
    let alice = start(device, "")?;
    ensure!(alice.strata_text("up gw --wait").is_err(), "it is up");
    Ok(())
}

// Works: init
#[lab::test]
fn a_client_connects_with_its_own_key() -> Result<()> {
    let duo = Duo::new("enrol")?;
    let (gateway, device) = (&duo.theirs, &duo.ours);
    let running = start_gateway(gateway)?;
    let told = strata(
        device,
        "init client --id bob@example.net --gateway gw.example.net --address 192.0.2.2 \
         --network 10.2.0.0/24 --out . --json",
    )?;
    let told: serde_json::Value = serde_json::from_str(&told)?;
    let lines = told["init"]["lines"].as_str().unwrap_or_default();
    fs::copy(
        device.directory().join("bob.pub"),
        gateway.directory().join("bob.pub"),
    )?;
    device.file("gw.pub", &strata(gateway, "pki pubkey gw.example.net.key")?)?;
    let config = fs::read_to_string(gateway.directory().join("strata.toml"))?;
    running.change(&format!("{config}\n{lines}"))?;
    let bob = start(device, "")?;
    bob.strata("up gw --wait")?;
    transfer(device, gateway, "10.2.0.1", OCTETS)
}

/// Writes half blocks, whose light modules are drawn, as a picture (PGM) with eight pixels for a
/// module. Returns false if there is no code.
fn draw(host: &Host, text: &str) -> Result<bool> {
    let is_row = |line: &&str| !line.is_empty() && line.chars().all(|c| " █▀▄".contains(c));
    let halves = text.lines().filter(is_row).flat_map(|line| {
        let half = |full: [char; 2]| {
            let pixels = line
                .chars()
                .map(move |c| if full.contains(&c) { "255 " } else { "0 " });
            pixels.map(|pixel| pixel.repeat(8)).collect::<String>() + "\n"
        };
        [half(['█', '▀']), half(['█', '▄'])]
    });
    let rows: Vec<_> = halves.map(|row| row.repeat(8)).collect();
    let Some(first) = rows.first() else {
        return Ok(false);
    };
    let columns = first.split_whitespace().count() / 8;
    let picture = format!("P2\n{columns} {}\n255\n{}", rows.len() * 8, rows.concat());
    host.file("code.pgm", &picture)?;
    Ok(true)
}

/// `zbarimg` reads the code, and `tar` unpacks it, as the page says. A picture of half of it is
/// nothing.
// Works: enrol-qr
#[lab::test]
fn a_device_that_a_camera_enrols_connects() -> Result<()> {
    let duo = Duo::new("enrol")?;
    let (gateway, device) = (&duo.theirs, &duo.ours);
    let running = start_gateway(gateway)?;
    let told = strata(gateway, "enrol alice@example.net --file strata.toml --qr")?;
    ensure!(
        told.contains("This code has the private key of alice@example.net"),
        "{told}"
    );
    running.strata("reload")?;
    ensure!(draw(device, &told)?, "no code: {told}");
    let read = |picture: &str| {
        let mut shell = device.command("sh");
        let line = format!("zbarimg -q --raw -1 -Sbinary {picture} > read.tar.gz");
        shell.args(["-c", line.as_str()]);
        device.run_command(shell, DEADLINE)
    };
    read("code.pgm")?;
    device.run("tar -xzf read.tar.gz")?;
    let archive = gateway.directory().join("alice.tar");
    fs::copy(archive, device.directory().join("carried.tar"))?;
    device.run("gzip -d -k read.tar.gz")?;
    device.run("cmp read.tar carried.tar")?;
    let alice = start(device, "")?;
    alice.strata("up gw --wait")?;
    transfer(device, gateway, "10.2.0.1", OCTETS)?;
    // Negative control: half of the code.
    let half: Vec<_> = told.lines().collect();
    draw(device, &half[..half.len() - 45].join("\n"))?;
    ensure!(read("code.pgm").is_err(), "half a code was read");
    Ok(())
}

/// The picture is for its owner only, and takes no other file's place.
// Works: enrol-qr
// Refuses: enrol-qr
#[lab::test]
fn the_code_of_a_device_is_a_picture_and_replaces_no_file() -> Result<()> {
    let duo = Duo::new("enrol")?;
    let gateway = &duo.theirs;
    let _running = start_gateway(gateway)?;
    let enrol = |words: &str| strata(gateway, &format!("enrol --file strata.toml {words}"));
    let told = enrol("alice@example.net --qr code.svg")?;
    ensure!(
        told.contains("wrote code.svg") && !told.contains('█'),
        "{told}"
    );
    let picture = gateway.directory().join("code.svg");
    let mode = fs::metadata(&picture)?.permissions().mode();
    ensure!(mode & 0o777 == 0o600, "{mode:o}");
    let svg = fs::read_to_string(&picture)?;
    ensure!(svg.contains("<svg"), "{svg}");
    let Err(refused) = enrol("bob@example.net --qr code.svg") else {
        bail!("it replaced the picture");
    };
    let refused = format!("{refused:?}");
    ensure!(refused.contains("code.svg already exists"), "{refused}");
    ensure!(
        !gateway.directory().join("bob.tar").exists(),
        "bob is enrolled"
    );
    let told: serde_json::Value = serde_json::from_str(&enrol("bob@example.net --qr --json")?)?;
    ensure!(told["enrol"]["qr"] == "./bob.svg", "{told}");
    // A terminal of the usual size.
    let mut terminal = gateway.command("script");
    let enrol_dave = format!(
        "stty cols 80 rows 24; {} enrol --file strata.toml dave@example.net --qr",
        find_binary("strata")?.display()
    );
    terminal.args(["-qec", enrol_dave.as_str(), "/dev/null"]);
    let told = gateway.run_command(terminal, DEADLINE)?;
    ensure!(told.contains("and this terminal has 80 and 24"), "{told}");
    ensure!(
        told.contains("wrote ./dave.svg") && !told.contains('█'),
        "{told}"
    );
    // Too many CAs for a code.
    let mut above = "ca".to_owned();
    for level in 1..=6 {
        let new = format!("level{level}");
        let make = format!("pki ca --name {new} --by {above} --out {new} --p384");
        strata(gateway, &make)?;
        above = new;
    }
    let told = enrol("carol@example.net --ca level6 --qr")?;
    ensure!(told.contains("a code holds 2953"), "{told}");
    gateway
        .run("tar -tf carol.tar")
        .map(drop)
        .context("no archive")
}
