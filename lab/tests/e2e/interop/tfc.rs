//! Padding that hides lengths (RFC 4303 section 2.7), with other implementations: strongSwan on a
//! Linux kernel that adds and removes padding, strongSwan's own ESP, which only removes it, and
//! tshark.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::duo::{DEADLINE, Duo, OURS, THEIRS};
use lab::guest::Guest;
use lab::origin::Origin;
use lab::pair::{is_up, no_drops};
use lab::strongswan::{Charon, Connection};
use lab::wiretap::{Seen, Wiretap, write_capture};
use lab::{tshark, volley};
use std::collections::BTreeSet;
use std::net::{IpAddr, UdpSocket};

const OCTETS: u64 = 100_000;

/// The discard port, on which no socket listens.
const DISCARD: u16 = 9;
const MARKER: &str = "the last packet";
const CAPTURE: &str = "wire.pcap";

/// Length of every padded plain packet, that of the longest datagram.
const PADDED: usize = 8 + 8 + 1380 + 2 + 2 + 16;

fn ours(tfc: &str) -> String {
    format!("{OURS}tfc = \"{tfc}\"\n")
}

/// Starts both ends and brings the tunnel up. `theirs` is the length to which the kernel pads.
fn with_kernel(tfc: &str, theirs: &str) -> Result<(Duo, Daemon, Charon)> {
    let origin = Origin::Guest(Guest::boot()?);
    let duo = Duo::with("tfc", None, origin.guest())?;
    let connection = Connection {
        tfc: theirs,
        ..THEIRS
    };
    let (strata, charon) = duo.start_with(&ours(tfc), origin, &connection)?;
    strata.strata("up theirs --wait")?;
    strata.wait_until("status", DEADLINE, is_up)?;
    Ok((duo, strata, charon))
}

/// Returns the packets that our host sends and receives while `carry` transfers octets.
fn seen(duo: &Duo, carry: impl FnOnce() -> Result<()>) -> Result<Vec<Seen>> {
    let tap = Wiretap::open(&duo.ours)?;
    carry()?;
    duo.ours.inside(|| {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        Ok(socket.send_to(MARKER.as_bytes(), (THEIRS.address, DISCARD))?)
    })?;
    let theirs: IpAddr = THEIRS.address.parse()?;
    let last = |seen: &Seen| seen.destination == theirs && seen.has_text(MARKER);
    tap.read_until(DEADLINE, last)
}

/// Returns the lengths of the ESP packets to an address.
fn lengths_to(seen: &[Seen], address: &str) -> Result<BTreeSet<usize>> {
    let address: IpAddr = address.parse()?;
    let theirs = seen.iter().filter(|seen| seen.destination == address);
    Ok(theirs.filter_map(Seen::esp).map(<[u8]>::len).collect())
}

// Works: tfc
#[lab::test(repeated)]
fn a_kernel_takes_our_padding_off() -> Result<()> {
    let (duo, strata, charon) = with_kernel("mtu", "0")?;
    let guest = charon.guest().context("charon is not in a guest")?;
    let seen = seen(&duo, || duo.carry_by_kernel(guest, OCTETS))?;
    let lengths = lengths_to(&seen, THEIRS.address)?;
    ensure!(lengths == BTreeSet::from([PADDED]), "{lengths:?}");
    no_drops(&strata.strata("status")?)
}

// Works: tfc
#[lab::test(repeated)]
fn what_a_kernel_pads_is_accepted() -> Result<()> {
    let (duo, strata, charon) = with_kernel("off", "1300")?;
    let guest = charon.guest().context("charon is not in a guest")?;
    let seen = seen(&duo, || duo.carry_by_kernel(guest, OCTETS))?;
    let lengths = lengths_to(&seen, THEIRS.peer_address)?;
    // The kernel does not pad longer packets.
    ensure!(
        lengths.len() <= 3 && lengths.first() > Some(&1300),
        "{lengths:?}"
    );
    no_drops(&strata.strata("status")?)
}

/// Control of the previous test.
#[lab::test(repeated)]
fn what_a_kernel_does_not_pad_is_of_many_lengths() -> Result<()> {
    let (duo, _strata, charon) = with_kernel("off", "0")?;
    let guest = charon.guest().context("charon is not in a guest")?;
    let seen = seen(&duo, || duo.carry_by_kernel(guest, OCTETS))?;
    let lengths = lengths_to(&seen, THEIRS.peer_address)?;
    ensure!(lengths.first() < Some(&200), "{lengths:?}");
    Ok(())
}

/// libipsec adds no padding in any configuration.
// Works: tfc
#[lab::test(repeated)]
fn strongswans_own_esp_takes_our_padding_off() -> Result<()> {
    for tfc in ["mtu", "buckets"] {
        let duo = Duo::new("tfc")?;
        let (strata, _charon) = duo.start(&ours(tfc), &THEIRS)?;
        strata.strata("up theirs --wait")?;
        let seen = seen(&duo, || duo.carry(OCTETS))?;
        let lengths = lengths_to(&seen, THEIRS.address)?;
        ensure!(lengths.last() == Some(&PADDED), "{tfc}: {lengths:?}");
        ensure!(
            lengths.len() <= if tfc == "mtu" { 1 } else { 5 },
            "{tfc}: {lengths:?}"
        );
        no_drops(&strata.strata("status")?)?;
    }
    Ok(())
}

/// The datagram in each packet ends where its header says; tshark accepts the padding behind it.
// Works: tfc
#[lab::test(repeated)]
fn tshark_opens_padded_packets_with_our_keys() -> Result<()> {
    let duo = Duo::new("tfc")?;
    let (strata, _charon) = duo.start(&ours("mtu"), &THEIRS)?;
    let keys = duo.ours.directory().join("keys");
    strata.strata_text(&format!("keylog {}", keys.display()))?;
    strata.strata("up theirs --wait")?;
    let volley = || {
        let ends = ((&duo.ours, "10.1.0.1"), (&duo.theirs, "10.2.0.1"));
        volley::volleys(ends.0, ends.1, || Ok(())).map(drop)
    };
    let seen = seen(&duo, volley)?;
    let theirs: IpAddr = THEIRS.address.parse()?;
    let packets = seen.into_iter().filter(|seen| seen.destination == theirs);
    let packets: Vec<_> = packets.filter(|seen| seen.esp().is_some()).collect();
    ensure!(packets.len() > 3, "{}", packets.len());
    write_capture(&duo.ours.directory().join(CAPTURE), &packets)?;
    let fields = |filter, field| {
        let checked = ["esp.enable_authentication_check:TRUE"];
        tshark::fields(&duo.ours, &keys, CAPTURE, &checked, filter, field)
    };
    let all = fields("esp", "esp.sequence")?;
    let right = fields("esp.icv_good == 1 && esp.protocol == 4", "esp.sequence")?;
    ensure!(
        all.len() == packets.len() && all == right,
        "{all:?}, {right:?}"
    );
    // `ip.len` lists outer and inner lengths of the decrypted packets.
    let inside = fields("esp && udp", "ip.len")?;
    ensure!(!inside.is_empty(), "nothing was opened");
    Ok(())
}
