//! Marked octets over TCP from host to host, each compared on arrival.

use crate::canary::Marked;
use crate::host::Host;
use crate::process::{DEADLINE, until};
use anyhow::{Context, Result, bail};
use std::io::Read;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// Seed of the stream that both ends compare with.
const SEED: u64 = 0x5354_5241_5441;

/// Time without any octet after which a transfer has failed.
const SILENCE: Duration = Duration::from_secs(30);

/// Sends the first `octets` of a marked stream from one host to an address of another, and compares
/// the octets that arrive. The sender opens the connection, from the source address that its routes
/// prefer.
///
/// # Errors
/// There is no connection, nothing arrives for half a minute, or an octet differs from the one
/// sent.
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

/// Sends `parts` parts of `length` octets from one host to an address of another, which reads them
/// part by part. Between two parts, `happen` is called with the number of parts read.
///
/// # Errors
/// As [`transfer`], or `happen` fails.
pub fn in_parts(
    (sender, receiver): (&Host, &Host),
    address: &str,
    (parts, length): (usize, usize),
    mut happen: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    let (out, inward) = connect(sender, receiver, address)?;
    inward.set_read_timeout(Some(DEADLINE))?;
    // Nothing is read while `happen` runs, so the sender may block for long.
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

/// Sends octets into one end of a connection while `read` consumes them at the other end. Returns
/// both outcomes.
fn carry<T>(
    (out, mut inward): (TcpStream, TcpStream),
    octets: u64,
    read: impl FnOnce(&Marked, &mut TcpStream) -> Result<T>,
) -> (Result<T>, Result<()>) {
    let stream = Marked::new(SEED);
    thread::scope(|scope| {
        let sending = scope.spawn(|| send(&stream, out, octets));
        let received = read(&stream, &mut inward);
        // Otherwise the sender would wait for a reader that has given up.
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

/// Sends octets to a host that echoes them (`address` with a port), and compares the octets that
/// come back.
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

/// Opens a TCP connection between two hosts. Returns the end that opened it and the end that
/// listened on `address`. Both fail if their peer stays silent.
///
/// # Errors
/// No connection is made in time.
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

/// Makes reads and writes fail if the peer stays silent.
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

/// Reads to the end and returns the number of octets.
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
