//! One download by curl, measured and compared with the server's file.

use crate::canary::Marked;
use crate::host::Host;
use crate::testbed::find_command;
use anyhow::{Context, Result, bail};
use os::clock;
use os::poll::{Interest, Poller};
use std::io::Read;
use std::time::Duration;

/// Duration of a measured download.
#[derive(Clone, Copy)]
pub(super) struct Span {
    /// Time from the first octet to the end.
    pub total: Duration,
    /// Part of it that is slow start and does not count.
    pub skipped: Duration,
}

/// Result of a download.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Received {
    /// All received octets, each compared with the marked stream.
    pub octets: u64,
    /// Goodput after the skipped time, in bits of payload per second.
    pub goodput: f64,
}

/// Downloads from this address for the given time. `progress` is called with the number of octets
/// received so far.
///
/// # Errors
/// Nothing arrived, curl gave up, or an octet differs from the server's file.
pub(super) fn download(
    mobile: &Host,
    url: &str,
    stream: &Marked,
    span: Span,
    mut progress: impl FnMut(u64),
) -> Result<Received> {
    let mut command = mobile.command(find_command("curl", "curl")?);
    command.args(["--silent", "--show-error", "--no-buffer", "--noproxy", "*"]);
    // If anything hangs, curl ends some time after the planned end.
    let limit = span.total + Duration::from_secs(30);
    command.args(["--max-time", &limit.as_secs().to_string()]);
    command.args(["--output", "-", url]);
    let mut curl = mobile.start_piped("curl", command)?;
    let mut pipe = curl.child().stdout.take().context("curl has no output")?;
    let mut poller = Poller::new()?;
    poller.add(&pipe, 0, Interest::Read)?;
    let (mut ready, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    let (mut octets, mut skipped_octets) = (0, 0);
    let mut start = None;
    loop {
        poller.wait(start.map(|start| start + span.total), &mut ready)?;
        let elapsed = start.map_or(Duration::ZERO, |start| clock::now().since(start));
        if elapsed >= span.total {
            let seconds = (span.total - span.skipped).as_secs_f64();
            let goodput = (octets - skipped_octets) as f64 * 8.0 / seconds;
            return Ok(Received { octets, goodput });
        }
        if ready.is_empty() {
            continue;
        }
        let length = pipe.read(&mut buffer)?;
        if length == 0 {
            let status = curl.wait(Duration::from_secs(5))?;
            bail!(
                "curl ended ({status}) after {octets} octets: {}",
                curl.log()
            );
        }
        if let Some(at) = stream.first_difference(octets, &buffer[..length]) {
            bail!("octet {at} of the download is not what the server has");
        }
        start.get_or_insert_with(clock::now);
        octets += length as u64;
        if elapsed < span.skipped {
            skipped_octets = octets;
        }
        progress(octets);
    }
}
