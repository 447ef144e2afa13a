//! tshark, which shares no code with Strata, decrypts the traffic between Strata and strongSwan
//! with the keys that `strata keylog` writes.

use anyhow::{Error, Result, ensure};
use lab::daemon::Daemon;
use lab::duo::{Duo, OURS, THEIRS};
use lab::process::DEADLINE;
use lab::strongswan::{Charon, Connection};
use lab::tshark;
use lab::wiretap::{Seen, Wiretap, write_capture};
use os::Prefix;
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const REQUEST: &str = "GET /what-passed-inside HTTP/1.1\r\nHost: theirs.example\r\n\r\n";
const ANSWER: &str = "HTTP/1.1 204 No Content\r\n\r\n";

/// Payload of the last packet of the capture, in clear.
const MARKER: &str = "the last packet";

/// The discard port, on which no socket listens.
const DISCARD: u16 = 9;

const OUTSIDE: &str = "192.0.2.0/24";
const CAPTURE: &str = "wire.pcap";

/// Files that `strata keylog` writes, with the names that Wireshark expects.
const FILES: [&str; 2] = ["esp_sa", "ikev2_decryption_table"];

/// Both daemons, not connected yet, and a tap on the wire between them.
struct Tapped {
    duo: Duo,
    tap: Wiretap,
    strata: Daemon,
    _charon: Charon,
}

impl Tapped {
    fn new() -> Result<Self> {
        Self::with(OURS, &THEIRS)
    }

    fn with(ours: &str, theirs: &Connection<'_>) -> Result<Self> {
        let duo = Duo::new("tshark")?;
        let tap = Wiretap::open(&duo.theirs)?;
        let (strata, _charon) = duo.start(ours, theirs)?;
        Ok(Self {
            duo,
            tap,
            strata,
            _charon,
        })
    }

    /// Captures a tunnel's set-up and one HTTP exchange through it.
    fn capture(&self) -> Result<()> {
        self.strata.strata("up theirs --wait")?;
        self.http()?;
        self.duo.ours.inside(|| {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            Ok(socket.send_to(MARKER.as_bytes(), (THEIRS.address, DISCARD))?)
        })?;
        let theirs: IpAddr = THEIRS.address.parse()?;
        // The ICMP error quotes the marker, so the destination is checked too.
        let is_marker = |seen: &Seen| seen.destination == theirs && seen.has_text(MARKER);
        let seen = self.tap.read_until(DEADLINE, is_marker)?;
        // On a host that is an end of the tunnel, a tap also sees inner packets.
        let outside: Prefix = OUTSIDE.parse()?;
        let on_the_wire: Vec<_> = seen
            .into_iter()
            .filter(|seen| seen.touches(outside))
            .collect();
        write_capture(&self.duo.ours.directory().join(CAPTURE), &on_the_wire)
    }

    fn http(&self) -> Result<()> {
        let listener = self
            .duo
            .theirs
            .inside(|| Ok(TcpListener::bind("10.2.0.1:80")?))?;
        let mut client = self
            .duo
            .ours
            .inside(|| Ok(TcpStream::connect("10.2.0.1:80")?))?;
        let (mut server, _) = listener.accept()?;
        for stream in [&client, &server] {
            stream.set_read_timeout(Some(DEADLINE))?;
        }
        client.write_all(REQUEST.as_bytes())?;
        server.read_exact(&mut [0; REQUEST.len()])?;
        server.write_all(ANSWER.as_bytes())?;
        Ok(client.read_exact(&mut [0; ANSWER.len()])?)
    }

    /// Turns the key log on, in a folder of our host.
    fn keylog(&self, folder: &str) -> Result<PathBuf> {
        let folder = self.duo.ours.directory().join(folder);
        self.strata
            .strata_text(&format!("keylog {}", folder.display()))?;
        Ok(folder)
    }

    /// Returns tshark's view of the capture with the keys of a folder.
    fn read(&self, keys: &Path) -> Result<Reading> {
        Ok(Reading {
            packets: self.tshark(keys, "isakmp || esp", "frame.number")?.len(),
            identities: self.tshark(keys, "isakmp.id.data.fqdn", "isakmp.id.data.fqdn")?,
            requests: self.tshark(keys, "esp && http.request", "http.request.uri")?,
            answers: self.tshark(keys, "esp && http.response", "http.response.code")?,
        })
    }

    /// Returns a field of the packets that match a filter.
    fn tshark(&self, keys: &Path, filter: &str, field: &str) -> Result<Vec<String>> {
        let checked = ["esp.enable_authentication_check:TRUE"];
        tshark::fields(&self.duo.ours, keys, CAPTURE, &checked, filter, field)
    }
}

/// tshark's view of a capture.
#[derive(Debug, PartialEq, Eq)]
struct Reading {
    packets: usize,
    identities: Vec<String>,
    requests: Vec<String>,
    answers: Vec<String>,
}

impl Reading {
    /// Returns true if tshark decrypted IKE and ESP in both directions.
    fn is_complete(&self) -> bool {
        let identified = |id| self.identities.iter().any(|text| text.contains(id));
        identified("ours.example")
            && identified("theirs.example")
            && self.requests == ["/what-passed-inside"]
            && self.answers == ["204"]
    }

    /// Returns true if tshark saw packets but decrypted none.
    fn is_blind(&self) -> bool {
        self.packets > 4
            && self.identities.is_empty()
            && self.requests.is_empty()
            && self.answers.is_empty()
    }
}

// Works: keylog
#[lab::test(repeated)]
fn tshark_opens_ike_and_esp_with_our_keys() -> Result<()> {
    let tapped = Tapped::new()?;
    let keys = tapped.keylog("keys")?;
    tapped.capture()?;
    let reading = tapped.read(&keys)?;
    ensure!(reading.is_complete(), "{reading:?}");
    Ok(())
}

/// tshark has independent implementations of AES-CBC and of SHA-256 truncated to 128 bits.
// Works: suites
#[lab::test(repeated)]
fn tshark_opens_aes_cbc_and_finds_its_hmac_right() -> Result<()> {
    let (ike, esp) = ("aes256-sha256-prfsha256-x25519", "aes256-sha256");
    let ours = format!("{OURS}suite = \"aes256-sha256\"\n");
    let tapped = Tapped::with(&ours, &Connection { ike, esp, ..THEIRS })?;
    let keys = tapped.keylog("keys")?;
    tapped.capture()?;
    let reading = tapped.read(&keys)?;
    ensure!(reading.is_complete(), "{reading:?}");
    let all = tapped.tshark(&keys, "esp", "esp.sequence")?;
    let right = tapped.tshark(&keys, "esp.icv_good == 1", "esp.sequence")?;
    ensure!(all == right && all.len() >= 4, "{all:?}, {right:?}");
    Ok(())
}

/// RFC 7383. Strata's request is long because it names many prefixes; strongSwan narrows them to
/// its one.
// Works: ike-fragments
#[lab::test(repeated)]
fn tshark_puts_our_fragments_together() -> Result<()> {
    let many: String = (100..160).map(|n| format!(", \"10.{n}.0.0/16\"")).collect();
    let ours = OURS.replace("\"10.2.0.0/24\"", &format!("\"10.2.0.0/24\"{many}"));
    let tapped = Tapped::with(&format!("{ours}[listen]\nfragment = 576\n"), &THEIRS)?;
    let keys = tapped.keylog("keys")?;
    tapped.capture()?;
    let fragments = tapped.tshark(&keys, "isakmp.frag.number", "isakmp.frag.number")?;
    let whole = tapped.tshark(&keys, "isakmp.frag.number == 1", "isakmp.frag.total")?;
    ensure!(
        fragments == ["1", "2", "3"] && whole == ["3"],
        "{fragments:?} of {whole:?}"
    );
    let reading = tapped.read(&keys)?;
    ensure!(reading.is_complete(), "{reading:?}");
    Ok(())
}

/// Control: the same capture and check without keys.
#[lab::test(repeated)]
fn tshark_without_keys_opens_nothing() -> Result<()> {
    let tapped = Tapped::new()?;
    tapped.keylog("keys")?;
    tapped.capture()?;
    let reading = tapped.read(&tapped.duo.ours.directory().join("no-keys"))?;
    ensure!(reading.is_blind(), "{reading:?}");
    Ok(())
}

/// The keys of another tunnel between the same hosts do not help (RFC 7296 section 2.17).
#[lab::test(repeated)]
fn keys_of_an_earlier_tunnel_open_nothing_of_a_later_one() -> Result<()> {
    let tapped = Tapped::new()?;
    let keys = tapped.keylog("keys")?;
    tapped.capture()?;
    tapped.strata.strata("down theirs")?;
    tapped.strata.strata_text("keylog off")?;
    tapped.capture()?;
    let reading = tapped.read(&keys)?;
    ensure!(
        reading.requests.is_empty() && reading.answers.is_empty(),
        "{reading:?}"
    );
    Ok(())
}

// Works: keylog
#[lab::test(repeated)]
fn keys_are_written_only_while_asked_for() -> Result<()> {
    let tapped = Tapped::new()?;
    tapped.strata.strata("up theirs --wait")?;
    tapped.strata.strata("down theirs")?;
    let keys = tapped.keylog("keys")?;
    ensure!(written(&keys)? == 0, "keys from before");
    tapped.strata.strata("up theirs --wait")?;
    let while_asked = written(&keys)?;
    // Both directions and both families of one ESP SA, and one IKE SA.
    ensure!(while_asked == 5, "{while_asked} lines");
    tapped.strata.strata_text("keylog off")?;
    tapped.strata.strata("down theirs")?;
    tapped.strata.strata("up theirs --wait")?;
    ensure!(written(&keys)? == while_asked, "keys after `keylog off`");
    Ok(())
}

#[lab::test(repeated)]
fn key_files_are_for_their_owner_only() -> Result<()> {
    let tapped = Tapped::new()?;
    let keys = tapped.keylog("keys")?;
    let mode = |path: &Path| Ok::<_, Error>(fs::metadata(path)?.permissions().mode() & 0o777);
    ensure!(mode(&keys)? == 0o700, "the folder is open to others");
    for file in FILES {
        ensure!(mode(&keys.join(file))? == 0o600, "{file} is open to others");
    }
    Ok(())
}

/// Returns the number of lines in all key files.
fn written(keys: &Path) -> Result<usize> {
    let lines = |file| Ok(fs::read_to_string(keys.join(file))?.lines().count());
    FILES.into_iter().map(lines).sum()
}
