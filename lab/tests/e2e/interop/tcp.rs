//! IKE and ESP over TCP (RFC 9329), examined by tshark, because neither strongSwan 5.9.8 nor 6.0.1
//! supports it. tshark reassembles the TCP segments. It does not know the framing, so this test
//! removes the framing as specified in the RFC, without Strata's own parser. tshark then decrypts
//! the messages.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::pair::{self, GATEWAY, Pair};
use lab::plain;
use lab::process::DEADLINE;
use lab::testbed::find_command;
use lab::tshark;
use lab::wiretap::{Seen, Wiretap, write_capture};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

const REQUEST: &str = "GET /what-passed-inside HTTP/1.1\r\nHost: gw.example.net\r\n\r\n";
const ANSWER: &str = "HTTP/1.1 204 No Content\r\n\r\n";

/// Two Stratas would use implicit IVs (RFC 8750), which tshark does not support.
const SUITE: &str = "suite = \"aes256-sha256\"";

/// The ends of the stream.
const ENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 3, 0, 2), Ipv4Addr::new(192, 0, 2, 1)];

/// TTL of a packet that was not forwarded yet. The tap sees each packet a second time when it is
/// forwarded.
const FRESH: u8 = 64;

// Works: tcp
#[lab::test(repeated)]
fn tshark_opens_what_is_in_a_stream() -> Result<()> {
    let pair = Pair::new("tcp")?;
    let tap = Wiretap::open(&pair.between)?;
    let mobile = format!("tcp = \"always\"\n{SUITE}");
    let [mobile, gateway] = plain::configs(&mobile, SUITE);
    let gateway = format!("{gateway}[listen]\ntcp = 4500\n");
    let tunnel = plain::start_with(&pair, &[mobile, gateway])?;
    let keys = keylog(&pair.mobile, &tunnel.mobile)?;
    tunnel.up()?;
    http(&pair)?;
    // Packets in flight pass before the DELETE.
    tunnel.mobile.strata("down office")?;
    tunnel
        .gateway
        .wait_until("status", DEADLINE, pair::is_down)?;
    let mut stream = Vec::new();
    while let Some(packet) = tap.next()? {
        let fresh = packet.octets.get(8) == Some(&FRESH);
        if fresh && packet.source.is_ipv4() {
            stream.push(packet);
        }
    }
    write_capture(&pair.mobile.directory().join("stream.pcap"), &stream)?;
    let messages = messages(&follow(&pair.mobile)?)?;
    write_capture(&pair.mobile.directory().join("messages.pcap"), &messages)?;
    let read = |filter: &str, field: &str| read(&pair.mobile, &keys, filter, field);
    let users = read("isakmp", "isakmp.id.data.user_fqdn")?;
    let names = read("isakmp", "isakmp.id.data.fqdn")?;
    ensure!(users.contains("alice@example.net"), "{users}");
    ensure!(names.contains("gw.example.net"), "{names}");
    let requests = read("esp && http.request", "http.request.uri")?;
    let answers = read("esp && http.response", "http.response.code")?;
    ensure!(requests.trim() == "/what-passed-inside", "{requests}");
    ensure!(answers.trim() == "204", "{answers}");
    Ok(())
}

fn keylog(host: &Host, daemon: &Daemon) -> Result<PathBuf> {
    let folder = host.directory().join("keys");
    daemon.strata_text(&format!("keylog {}", folder.display()))?;
    Ok(folder)
}

fn http(pair: &Pair) -> Result<()> {
    let listener = pair
        .gateway
        .inside(|| Ok(TcpListener::bind((GATEWAY[0], 80))?))?;
    let mut client = pair
        .mobile
        .inside(|| Ok(TcpStream::connect((GATEWAY[0], 80))?))?;
    let (mut server, _) = listener.accept()?;
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(DEADLINE))?;
    }
    client.write_all(REQUEST.as_bytes())?;
    server.read_exact(&mut [0; REQUEST.len()])?;
    server.write_all(ANSWER.as_bytes())?;
    Ok(client.read_exact(&mut [0; ANSWER.len()])?)
}

/// Returns the octets that each end sent in the first TCP connection, as reassembled by tshark.
fn follow(host: &Host) -> Result<[Vec<u8>; 2]> {
    let mut command = host.command(find_command("tshark", "tshark")?);
    command.args(["-r", "stream.pcap", "-q", "-z", "follow,tcp,raw,0"]);
    let output = host.run_command(command, DEADLINE)?;
    let mut sent = [Vec::new(), Vec::new()];
    // tshark indents the lines of the server's end.
    for line in output.lines() {
        let end = usize::from(line.starts_with('\t'));
        sent[end].extend(octets(line.trim()).unwrap_or_default());
    }
    Ok(sent)
}

/// Parses octets in hexadecimal; returns `None` if the text is something else.
fn octets(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(octet).collect()
}

/// Converts the messages of both ends into datagrams that tshark can parse.
fn messages([ours, theirs]: &[Vec<u8>; 2]) -> Result<Vec<Seen>> {
    let ours = ours.strip_prefix(b"IKETCP").context("the stream prefix")?;
    let mut all = Vec::new();
    // Puts one end's messages after the other's; tshark matches answers to requests by message ID.
    for (sent, [from, to]) in [(ours, ENDS), (theirs.as_slice(), [ENDS[1], ENDS[0]])] {
        let mut rest = sent;
        while let [high, low, ..] = rest {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            let message = rest.get(2..length).context("a whole message")?;
            all.push(datagram(from, to, message));
            rest = &rest[length..];
        }
    }
    ensure!(all.len() > 8, "{} messages", all.len());
    Ok(all)
}

/// Returns a message as a UDP datagram between ports 4500.
fn datagram(from: Ipv4Addr, to: Ipv4Addr, message: &[u8]) -> Seen {
    const UDP: u8 = 17;
    const PORT: u16 = 4500;
    let udp = (8 + message.len()) as u16;
    let mut octets = vec![0x45, 0];
    octets.extend((20 + udp).to_be_bytes());
    octets.extend([0, 0, 0, 0, FRESH, UDP, 0, 0]);
    octets.extend(from.octets().iter().chain(&to.octets()));
    for number in [PORT, PORT, udp, 0] {
        octets.extend(number.to_be_bytes());
    }
    octets.extend(message);
    Seen {
        source: IpAddr::V4(from),
        destination: IpAddr::V4(to),
        octets,
        at: Duration::ZERO,
    }
}

/// Returns a field of the messages that match a filter.
fn read(host: &Host, keys: &Path, filter: &str, field: &str) -> Result<String> {
    // All messages of one end come first, so tshark would take inner TCP answers for
    // retransmissions.
    let unordered = ["tcp.analyze_sequence_numbers:FALSE"];
    let lines = tshark::fields(host, keys, "messages.pcap", &unordered, filter, field)?;
    Ok(lines.join("\n"))
}
