//! Marked octets over TCP from host to host, every one of them compared on arrival.

use crate::canary::Marked;
use crate::host::Host;
use crate::process::{DEADLINE, until};
use anyhow::{Context, Result, bail};
use std::io::Read;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// Both ends read them from this stream.
const SEED: u64 = 0x5354_5241_5441;

/// No octet for this long, and the transfer has failed.
const SILENCE: Duration = Duration::from_secs(30);

/// Sends the first `octets` of a marked stream from one host to an address of another and
/// compares them there with what was sent. The connection is made by the sender, whose own address
/// is the one that its routes prefer.
///
/// # Errors
/// There is no connection, nothing arrives for half a minute, or what arrives is not what was sent.
pub fn transfer(sender: &Host, receiver: &Host, address: &str, octets: u64) -> Result<()> {
    let ends = connect(sender, receiver, address)?;
    let (received, sent) = carry(ends, octets, compare);
    let received = received.with_context(|| format!("from {}", sender.name()))?;
    sent.with_context(|| format!("to {address}"))?;
    match received == octets {
        true => Ok(()),
        false => bail!("{received} of {octets} octets arrived at {address}"),
    }
}

/// Sends so many parts of so many octets from one host to an address of another, who reads them one by one; between two of
/// them something happens, which is told how many were read.
///
/// # Errors
/// As [`transfer`], or what happens fails.
pub fn in_parts(
    (sender, receiver): (&Host, &Host),
    address: &str,
    (parts, length): (usize, usize),
    mut happen: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    let (out, inward) = connect(sender, receiver, address)?;
    inward.set_read_timeout(Some(DEADLINE))?;
    // Nothing is read as long as something happens.
    out.set_write_timeout(None)?;
    let octets = (parts * length) as u64;
    let (received, sent) = carry((out, inward), octets, |stream, inward| {
        (0..parts).try_for_each(|part| {
            if part > 0 {
                happen(part)?;
            }
            read_part(stream, inward, part * length, length)
        })
    });
    received.and(sent)
}

/// Sends so many octets into one end of a connection while somebody reads at the other; gives what became of both.
fn carry<T>(
    (out, mut inward): (TcpStream, TcpStream),
    octets: u64,
    read: impl FnOnce(&Marked, &mut TcpStream) -> Result<T>,
) -> (Result<T>, Result<()>) {
    let stream = Marked::new(SEED);
    thread::scope(|scope| {
        let sending = scope.spawn(|| send(&stream, out, octets));
        let received = read(&stream, &mut inward);
        // Or the sender would wait for a reader that has given up.
        drop(inward);
        let sent = sending.join().expect("a sender returns its errors");
        (received, sent)
    })
}

fn read_part(stream: &Marked, inward: &mut TcpStream, from: usize, length: usize) -> Result<()> {
    let mut part = vec![0; length];
    inward.read_exact(&mut part)?;
    match stream.first_difference(from as u64, &part) {
        Some(at) => bail!("octet {at} differs from the one sent"),
        None => Ok(()),
    }
}

/// Sends so many octets to who sends them back (`address` with a port), and compares what comes.
///
/// # Errors
/// As [`transfer`].
pub fn round_trip(host: &Host, address: &str, octets: u64) -> Result<()> {
    let target = address.parse()?;
    let mut inward = host.inside(|| dial(target))?;
    let out = inward.try_clone()?;
    give_up(&inward)?;
    let stream = Marked::new(SEED);
    thread::scope(|scope| {
        let sending = scope.spawn(|| send(&stream, out, octets));
        let received = compare(&stream, &mut inward)?;
        sending.join().expect("a sender returns its errors")?;
        match received == octets {
            true => Ok(()),
            false => bail!("{received} of {octets} octets came back from {address}"),
        }
    })
}

/// A TCP connection between two hosts: the end that made it, and the one that listens on
/// `address`. Both give up on a silent peer.
///
/// # Errors
/// There is none in time.
pub fn connect(from: &Host, to: &Host, address: &str) -> Result<(TcpStream, TcpStream)> {
    let address: IpAddr = address.parse()?;
    let listener = to.inside(|| Ok(TcpListener::bind((address, 0))?))?;
    listener.set_nonblocking(true)?;
    let target = listener.local_addr()?;
    let near = from.inside(|| dial(target))?;
    let (far, _) = until("a connection", DEADLINE, || Ok(listener.accept().ok()))?;
    far.set_nonblocking(false)?;
    give_up(&near)?;
    give_up(&far)?;
    Ok((near, far))
}

/// On a silent peer.
fn give_up(stream: &TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(SILENCE))?;
    Ok(stream.set_write_timeout(Some(SILENCE))?)
}

fn dial(target: SocketAddr) -> Result<TcpStream> {
    TcpStream::connect_timeout(&target, DEADLINE).with_context(|| format!("connecting to {target}"))
}

fn send(stream: &Marked, mut out: TcpStream, octets: u64) -> Result<()> {
    stream.write_to(&mut out, octets)?;
    Ok(out.shutdown(Shutdown::Write)?)
}

/// Reads to the end; returns how many octets there were.
fn compare(stream: &Marked, inward: &mut TcpStream) -> Result<u64> {
    let mut buffer = vec![0; 1 << 16];
    let mut received = 0;
    loop {
        let arrived = inward.read(&mut buffer);
        let count = arrived.with_context(|| format!("after {received} octets"))?;
        if let Some(at) = stream.first_difference(received, &buffer[..count]) {
            bail!("octet {at} differs from the one sent");
        }
        if count == 0 {
            return Ok(received);
        }
        received += count as u64;
    }
}
