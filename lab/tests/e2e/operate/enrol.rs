//! A gateway and its device by `strata init` and `strata enrol` alone: no line is written by hand.

use anyhow::{Result, ensure};
use lab::certified::strata;
use lab::daemon::Daemon;
use lab::duo::Duo;
use lab::host::Host;
use lab::transfer::transfer;
use std::fs;

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
