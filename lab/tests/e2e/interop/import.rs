//! Files with which one strongSwan connects to another are imported. Strata then takes the place of
//! the first, and connects to the second, which stays as it is.

use anyhow::{Context, Result, bail, ensure};
use lab::certified::strata;
use lab::daemon::Daemon;
use lab::duo::{DEADLINE, Duo, OURS, PSK, THEIRS, add_inner_address, expect_refusal};
use lab::host::Host;
use lab::pair::is_up;
use lab::strongswan::{Charon, Connection};
use serde_json::Value;

const OCTETS: u64 = 1_000_000;

/// [`PSK`] in base64.
const ENCODED: &str = "0sYSBrZXkgb2YgbW9yZSB0aGFuIHNpeHRlZW4gb2N0ZXRz";

/// What [`THEIRS`] expects of its peer.
const IPSEC_CONF: &str = "config setup
	uniqueids=no

conn %default
	keyexchange=ikev2
	authby=secret

conn peer
	left=192.0.2.1
	leftid=@ours.example
	leftsubnet=10.1.0.1/32
	right=192.0.2.2
	rightid=@theirs.example
	rightsubnet=10.2.0.0/24
	ike=aes128gcm16-prfsha256-x25519!
	esp=aes128gcm16!
	forceencaps=yes
	mobike=no
	auto=start
";

/// Starts `stratad` with the configuration that an import wrote into the host's folder.
fn imported(host: &Host) -> Result<Daemon> {
    host.stratad(&std::fs::read_to_string(
        host.directory().join("strata.toml"),
    )?)
}

/// Connects to the original peer and carries octets each way.
fn connects(duo: &Duo) -> Result<()> {
    let ours = imported(&duo.ours)?;
    ours.strata("up peer --wait")?;
    duo.carry(OCTETS)
}

// Works: import
#[lab::test(repeated)]
fn a_swanctl_conf_becomes_a_tunnel_with_the_same_peer() -> Result<()> {
    let duo = Duo::new("import")?;
    add_inner_address(&duo.ours, "10.1.0.1/32")?;
    let theirs = duo.theirs.charon(&THEIRS)?;
    // The original: strongSwan decodes the secret, which the peer has as text.
    let original = Connection {
        psk: Some(ENCODED),
        ..THEIRS.reversed()
    };
    let told = carries_and_is_imported(&duo, duo.ours.charon(&original)?)?;
    ensure!(!told.contains(ENCODED), "{told}");
    connects(&duo)?;
    theirs.wait_until(DEADLINE, |sas| sas.contains("state=INSTALLED"))?;
    Ok(())
}

/// Has the original carry octets, then imports its `swanctl.conf`. Returns what is told of that.
fn carries_and_is_imported(duo: &Duo, mut original: Charon) -> Result<String> {
    original.initiate()?;
    duo.carry(OCTETS)?;
    original.terminate()?;
    original.stop()?;
    let told = strata(&duo.ours, "import swanctl swanctl.conf")?;
    ensure!(told.contains("1 tunnel converted"), "{told}");
    ensure!(!told.contains(PSK), "{told}");
    Ok(told)
}

/// Puts the connection and the secrets of a host's `swanctl.conf` into files of their own, which
/// the file of the Debian package includes.
fn spread(host: &Host) -> Result<()> {
    let whole = std::fs::read_to_string(host.directory().join("swanctl.conf"))?;
    let (connections, secrets) = whole.split_once("\nsecrets").context("no secrets")?;
    std::fs::create_dir_all(host.directory().join("conf.d"))?;
    host.file("conf.d/peer.conf", connections)?;
    host.secret("conf.d/secrets.conf", &format!("secrets{secrets}"))?;
    let package = std::fs::read_to_string("/etc/swanctl/swanctl.conf")?;
    ensure!(package.contains("\ninclude conf.d/*.conf"), "{package}");
    host.secret("swanctl.conf", &package).map(drop)
}

/// strongSwan reads the same files.
// Works: import
#[lab::test(repeated)]
fn the_files_of_the_debian_package_become_a_tunnel() -> Result<()> {
    let duo = Duo::new("import")?;
    add_inner_address(&duo.ours, "10.1.0.1/32")?;
    let _theirs = duo.theirs.charon(&THEIRS)?;
    duo.ours.charon(&THEIRS.reversed())?.stop()?;
    spread(&duo.ours)?;
    let read = |file: &str| std::fs::read_to_string(duo.ours.directory().join(file));
    let files = (read("strongswan.conf")?, read("swanctl.conf")?);
    carries_and_is_imported(&duo, duo.ours.charon_with(&files.0, &files.1)?)?;
    connects(&duo)
}

// Refuses: import
#[lab::test]
fn a_file_that_is_included_and_missing_is_left_out_and_the_status_says_so() -> Result<()> {
    let duo = Duo::new("import")?;
    let includes = format!("include ipsec.d/*.conf\ninclude /nowhere/more.conf\n{IPSEC_CONF}");
    duo.ours.file("ipsec.conf", &includes)?;
    let secrets = format!(": PSK \"{PSK}\"\n");
    duo.ours.secret("ipsec.secrets", &secrets)?;
    let refused =
        strata(&duo.ours, "import ipsec ipsec.conf").map_err(|error| format!("{error:#}"));
    let why = refused.err().context("nothing is left out")?;
    ensure!(why.contains("cannot read /nowhere/more.conf"), "{why}");
    // Negative control: without that line, nothing is.
    let includes = format!("include ipsec.d/*.conf\n{IPSEC_CONF}");
    duo.ours.file("ipsec.conf", &includes)?;
    strata(&duo.ours, "import ipsec ipsec.conf --force").map(drop)
}

/// Negative control.
// Refuses: import
#[lab::test(repeated)]
fn a_swanctl_conf_with_another_secret_connects_to_nobody() -> Result<()> {
    let duo = Duo::new("import")?;
    add_inner_address(&duo.ours, "10.1.0.1/32")?;
    let _theirs = duo.theirs.charon(&THEIRS)?;
    let wrong = Connection {
        psk: Some("another key of many octets"),
        ..THEIRS.reversed()
    };
    duo.ours.charon(&wrong)?.stop()?;
    strata(&duo.ours, "import swanctl swanctl.conf")?;
    let ours = imported(&duo.ours)?;
    ensure!(ours.strata_text("up peer --wait").is_err(), "it is up");
    expect_refusal(&ours, &["AUTHENTICATION_FAILED"])
}

// Works: import
#[lab::test(repeated)]
fn an_ipsec_conf_becomes_a_tunnel_with_the_same_peer() -> Result<()> {
    let duo = Duo::new("import")?;
    add_inner_address(&duo.ours, "10.1.0.1/32")?;
    let theirs = duo.theirs.charon(&THEIRS)?;
    let is_up = |sas: &str| sas.contains("state=INSTALLED");
    // The original.
    let secrets = format!("@ours.example @theirs.example : PSK \"{PSK}\"\n");
    let mut starter = duo.ours.starter(IPSEC_CONF, &secrets)?;
    let up = theirs.wait_until(DEADLINE, is_up);
    up.with_context(|| starter.log())?;
    duo.carry(OCTETS)?;
    starter.terminate(DEADLINE)?;
    theirs.wait_until(DEADLINE, |sas| !is_up(sas))?;
    strata(&duo.ours, "import ipsec ipsec.conf")?;
    connects(&duo)
}

/// Negative control.
// Refuses: import
#[lab::test(repeated)]
fn an_ipsec_conf_with_another_secret_connects_to_nobody() -> Result<()> {
    let duo = Duo::new("import")?;
    let _theirs = duo.theirs.charon(&THEIRS)?;
    let secrets = "@ours.example @theirs.example : PSK \"another key of many octets\"\n";
    duo.ours.file("ipsec.conf", IPSEC_CONF)?;
    duo.ours.secret("ipsec.secrets", secrets)?;
    strata(&duo.ours, "import ipsec ipsec.conf")?;
    let ours = imported(&duo.ours)?;
    expect_refusal(&ours, &["AUTHENTICATION_FAILED"])
}

/// A secret behind `0s` is what strongSwan decodes, and `explain` mentions it where both ends
/// differ.
// Works: psk
#[lab::test(repeated)]
fn a_secret_in_base64_is_the_one_that_strongswan_decodes() -> Result<()> {
    let duo = Duo::new("import")?;
    let encoded = Connection {
        psk: Some(ENCODED),
        ..THEIRS
    };
    let charon = duo.theirs.charon(&encoded)?;
    duo.ours.secret("theirs.psk", ENCODED)?;
    let ours = duo.ours.stratad(OURS)?;
    charon.initiate()?;
    ours.wait_until("status", DEADLINE, is_up)?;
    duo.carry(OCTETS)
}

// Refuses: psk
#[lab::test(repeated)]
fn a_secret_that_only_one_end_decodes_is_explained() -> Result<()> {
    let duo = Duo::new("import")?;
    // A text that is not decoded there, because it is another key.
    let other = Connection {
        psk: Some("another key of many octets"),
        ..THEIRS
    };
    let _charon = duo.theirs.charon(&other)?;
    duo.ours.secret("theirs.psk", ENCODED)?;
    let ours = duo.ours.stratad(OURS)?;
    ensure!(ours.strata_text("up theirs --wait").is_err(), "it is up");
    let explained = ours.strata_text("explain theirs")?;
    ensure!(
        explained.contains("ours is decoded behind `0s` or `0x`"),
        "{explained}"
    );
    Ok(())
}

/// Files of wg-quick for both hosts. The keys are made of equal octets.
fn wg_files(psk: &str) -> [String; 2] {
    let keys = [
        (
            "ERERERERERERERERERERERERERERERERERERERERERE=",
            "e06Qm75//kTEZaIgA31gjuNYl9Me+XLwf3SJLLD3PxM=",
        ),
        (
            "IiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiI=",
            "D6poTtKIZ7l/Smot7l34zpdOdrcBjj8iocTPJnhXDyA=",
        ),
    ];
    [
        format!(
            "[Interface]\nPrivateKey = {}\nAddress = 10.1.0.1/32\n[Peer]\nPublicKey = {}\n\
             PresharedKey = {WG_PSK}\nAllowedIPs = 10.2.0.0/24\nEndpoint = 192.0.2.2:51820\n",
            keys[0].0, keys[1].1
        ),
        format!(
            "[Interface]\nPrivateKey = {}\nAddress = 10.2.0.1/24\nListenPort = 51820\n[Peer]\n\
             PublicKey = {}\nPresharedKey = {psk}\nAllowedIPs = 10.1.0.1/32\n",
            keys[1].0, keys[0].1
        ),
    ]
}

const WG_PSK: &str = "/UwcSPg38hW/D9Y3tcS1FOV0K1wuURMbS0sesJEP5ak=";

/// Imports the files at both hosts, exchanges the public keys and starts both.
fn start_wg(duo: &Duo, psk: &str) -> Result<[Daemon; 2]> {
    let hosts = [&duo.ours, &duo.theirs];
    let mut keys = Vec::new();
    for (host, text) in hosts.iter().zip(wg_files(psk)) {
        host.secret("wg0.conf", &text)?;
        let told: Value = serde_json::from_str(&strata(host, "import wg wg0.conf --json")?)?;
        let key = told["import"]["pubkey"].as_str().context("no public key")?;
        let awaited = &told["import"]["awaited"][0];
        keys.push((key.to_owned(), awaited.as_str().map(str::to_owned)));
    }
    let [(one, for_one), (other, for_other)] = &keys[..] else {
        bail!("{keys:?}");
    };
    ensure!(
        for_one.as_ref() == Some(other) && for_other.as_ref() == Some(one),
        "{keys:?}"
    );
    for (from, to, key) in [(hosts[0], hosts[1], one), (hosts[1], hosts[0], other)] {
        std::fs::copy(from.directory().join(key), to.directory().join(key))?;
    }
    Ok([imported(hosts[0])?, imported(hosts[1])?])
}

// Works: import
#[lab::test]
fn both_ends_of_a_wireguard_connect_to_each_other() -> Result<()> {
    let duo = Duo::new("import")?;
    let [ours, _theirs] = start_wg(&duo, WG_PSK)?;
    ours.strata("up --wait")?;
    duo.carry(OCTETS)
}

/// Negative control: the `PresharedKey` of both ends differs.
// Refuses: import
#[lab::test]
fn ends_of_a_wireguard_with_different_secrets_do_not_connect() -> Result<()> {
    let duo = Duo::new("import")?;
    let psk = "AUwcSPg38hW/D9Y3tcS1FOV0K1wuURMbS0sesJEP5ak=";
    let [ours, _theirs] = start_wg(&duo, psk)?;
    ensure!(ours.strata_text("up --wait").is_err(), "it is up");
    Ok(())
}
