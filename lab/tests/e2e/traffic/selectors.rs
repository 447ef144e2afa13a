//! An SA carries only the negotiated traffic (RFC 4301 sections 5.1 and 5.2): packets with a source
//! outside the selectors are dropped and counted, on the way into the tunnel and out of it.
//!
//! The second case needs a peer that violates its selectors. The test acts as such a peer, with the
//! keys that `strata keylog` writes.

use anyhow::{Context, Result, ensure};
use crypto::{Aead, AeadAlgorithm};
use lab::bait::{SECRET, no_leak, round};
use lab::daemon::Daemon;
use lab::duo::{Duo, OURS, THEIRS};
use lab::host::Host;
use lab::lending::{CHARON, lender_of_charon};
use lab::pair::{self, DEADLINE, GATEWAY, MOBILE, Pair, Terms};
use lab::wiretap::Wiretap;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;

/// Outer addresses of the mobile node, which the selectors do not cover.
const OUTSIDE: [&str; 2] = ["10.3.0.2", "2001:db8:3::2"];

/// Port of the gateway's inner socket.
const PORT: u16 = 9100;

// Refuses: tunnel
#[lab::test]
fn a_source_outside_the_selectors_does_not_enter_the_tunnel() -> Result<()> {
    let pair = Pair::new("selectors")?;
    let tap = Wiretap::open(&pair.between)?;
    let tunnel = pair.start_up(Terms::PLAIN)?;
    let before = count(&tunnel.mobile, "no_policy")?;
    for ((wrong, right), gateway) in OUTSIDE.into_iter().zip(MOBILE).zip(GATEWAY) {
        let listener = listen(&pair.gateway, gateway)?;
        for source in [wrong, right] {
            let socket = || Ok(UdpSocket::bind((source, 0))?);
            let socket = pair.mobile.inside(socket)?;
            socket.send_to(SECRET.as_bytes(), (gateway, PORT))?;
        }
        let (_, from) = listener.recv_from(&mut [0; 64])?;
        ensure!(from.ip().to_string() == right, "from {from}");
    }
    ensure!(count(&tunnel.mobile, "no_policy")? == before + 2);
    no_leak(&round(&pair.mobile, &tap, &[])?)
}

// Refuses: tunnel
#[lab::test]
fn a_source_outside_the_selectors_does_not_leave_the_tunnel() -> Result<()> {
    let duo = Duo::new("selectors")?;
    let (ours, _theirs) = duo.start(OURS, &THEIRS)?;
    let keys = duo.ours.directory().join("keys");
    ours.strata_text(&format!("keylog {}", keys.display()))?;
    ours.strata_text("up theirs --wait")?;
    let mut insider = Insider::new(&ours, &keys)?;
    let listener = listen(&duo.ours, "10.1.0.1")?;
    let wire = duo.theirs.inside(|| Ok(UdpSocket::bind("192.0.2.2:0")?))?;
    // The peer's outer address, an unrelated network, and our own address.
    let wrong = ["192.0.2.2", "10.3.0.1", "10.1.0.1"];
    for source in wrong.into_iter().chain(["10.2.0.1"]) {
        let packet = insider.seal(&datagram(source.parse()?, [10, 1, 0, 1].into()));
        wire.send_to(&packet, "192.0.2.1:4500")?;
    }
    let (_, from) = listener.recv_from(&mut [0; 64])?;
    ensure!(from.ip().to_string() == "10.2.0.1", "from {from}");
    ensure!(count(&ours, "inner_selector_mismatch")? == wrong.len());
    Ok(())
}

/// The peer has a leased address, and sends from another address of the same pool.
// Refuses: pools
#[lab::test]
fn an_address_that_was_lent_to_another_is_no_source() -> Result<()> {
    let duo = Duo::new("selectors")?;
    let (ours, charon) = duo.start(&lender_of_charon(&duo.ours), &CHARON)?;
    let keys = duo.ours.directory().join("keys");
    ours.strata_text(&format!("keylog {}", keys.display()))?;
    charon.initiate()?;
    ours.wait_until("status", DEADLINE, pair::is_up)?;
    let mut insider = Insider::new(&ours, &keys)?;
    let listener = listen(&duo.ours, "10.1.0.1")?;
    let wire = duo.theirs.inside(|| Ok(UdpSocket::bind("192.0.2.2:0")?))?;
    let wrong = ["10.9.0.2", "10.9.0.0", "10.2.0.1"];
    for source in wrong.into_iter().chain(["10.9.0.1"]) {
        let packet = insider.seal(&datagram(source.parse()?, [10, 1, 0, 1].into()));
        wire.send_to(&packet, "192.0.2.1:4500")?;
    }
    let (_, from) = listener.recv_from(&mut [0; 64])?;
    ensure!(from.ip().to_string() == "10.9.0.1", "from {from}");
    ensure!(count(&ours, "inner_selector_mismatch")? == wrong.len());
    Ok(())
}

fn listen(host: &Host, address: &str) -> Result<UdpSocket> {
    let socket = host.inside(|| Ok(UdpSocket::bind((address, PORT))?))?;
    socket.set_read_timeout(Some(DEADLINE))?;
    Ok(socket)
}

/// Returns the packets dropped for a reason. `strata status` and the metrics must agree.
fn count(daemon: &Daemon, reason: &str) -> Result<usize> {
    let status = daemon.strata("status")?;
    let told = status["status"]["drops"][format!("esp_{reason}")].as_u64();
    let label = format!("strata_esp_dropped_total{{reason=\"{reason}\"}} ");
    let metrics = daemon.strata_text("metrics")?;
    let measured = metrics.lines().find_map(|line| line.strip_prefix(&label));
    let measured: usize = measured.context("no such metric")?.parse()?;
    ensure!(told.unwrap_or(0) == measured as u64, "{told:?}, {measured}");
    Ok(measured)
}

/// An attacker with the keys of our peer.
struct Insider {
    spi: [u8; 4],
    aead: Aead,
    salt: [u8; 4],
    sequence: u32,
}

impl Insider {
    fn new(victim: &Daemon, keys: &Path) -> Result<Self> {
        let children = pair::children(&victim.strata("status")?);
        let spi = children[0]["spi_in"].as_str().context("an SPI")?;
        let table = fs::read_to_string(keys.join("esp_sa"))?;
        let line = table.lines().find(|line| line.contains(spi));
        let key = line.and_then(|line| line.split('"').nth(11));
        let key = octets(
            key.and_then(|key| key.strip_prefix("0x"))
                .context("a key")?,
        )?;
        let (key, salt) = key.split_at(key.len() - 4);
        let spi = u32::from_str_radix(spi, 16)?.to_be_bytes();
        Ok(Self {
            spi,
            aead: Aead::new(AeadAlgorithm::Aes128Gcm, key)?,
            salt: salt.try_into()?,
            // Far from the sequence numbers that the peer itself uses.
            sequence: 1000,
        })
    }

    /// Seals a datagram as in RFC 4303 section 2 and RFC 4106: tunnel mode, IPv4 inside.
    fn seal(&mut self, datagram: &[u8]) -> Vec<u8> {
        self.sequence += 1;
        let header = [self.spi, self.sequence.to_be_bytes()].concat();
        let iv = u64::from(self.sequence).to_be_bytes();
        let mut nonce = [0; 12];
        nonce[..4].copy_from_slice(&self.salt);
        nonce[4..].copy_from_slice(&iv);
        let padding = (datagram.len() + 2).next_multiple_of(4) - (datagram.len() + 2);
        let mut text = datagram.to_vec();
        text.extend(1..=padding as u8);
        text.extend([padding as u8, 4]);
        let icv = self.aead.seal(&nonce, &header, &mut text);
        [header.as_slice(), &iv, &text, &icv].concat()
    }
}

/// Returns a UDP datagram in IPv4 (RFC 791, RFC 768), without a UDP checksum.
fn datagram(source: Ipv4Addr, destination: Ipv4Addr) -> Vec<u8> {
    let udp_len = 8 + SECRET.len() as u16;
    let lengths = [20 + udp_len, udp_len].map(u16::to_be_bytes);
    let mut packet = vec![
        0x45,
        0,
        lengths[0][0],
        lengths[0][1],
        0,
        0,
        0,
        0,
        64,
        17,
        0,
        0,
    ];
    packet.extend(source.octets());
    packet.extend(destination.octets());
    let words = packet.chunks_exact(2);
    let sum: u32 = words
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend([9000, PORT].map(u16::to_be_bytes).as_flattened());
    packet.extend(lengths[1]);
    packet.extend([0, 0]);
    packet.extend(SECRET.as_bytes());
    packet
}

fn octets(digits: &str) -> Result<Vec<u8>> {
    let pairs = digits.as_bytes().chunks_exact(2);
    let octet = |pair: &[u8]| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?);
    pairs.map(octet).collect()
}
