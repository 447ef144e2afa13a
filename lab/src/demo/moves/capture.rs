//! A capture of the wire in libpcap's format: the beginning of each packet, with its time.

use crate::wiretap::Seen;
use anyhow::Result;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Octets of a packet that are kept: all headers, and no more than the beginning of what follows.
const KEPT: u32 = 128;

/// An open capture.
pub(super) struct Capture(BufWriter<File>);

/// Creates a capture without packets. Packets begin with their IP header (link type 101), and times
/// have nanoseconds.
pub(super) fn create(file: &Path) -> Result<Capture> {
    const RAW_IP: u32 = 101;
    let mut capture = BufWriter::new(File::create(file)?);
    // Magic, version 2.4, time zone, accuracy of times.
    let header = [0xa1b2_3c4d, 0x0002_0004, 0, 0, KEPT, RAW_IP];
    capture.write_all(header.map(u32::to_be_bytes).as_flattened())?;
    capture.flush()?;
    Ok(Capture(capture))
}

impl Capture {
    pub fn add(&mut self, packet: &Seen) -> Result<()> {
        let length = packet.octets.len() as u32;
        let kept = length.min(KEPT);
        let (seconds, nanos) = (packet.at.as_secs() as u32, packet.at.subsec_nanos());
        let header = [seconds, nanos, kept, length].map(u32::to_be_bytes);
        self.0.write_all(header.as_flattened())?;
        Ok(self.0.write_all(&packet.octets[..kept as usize])?)
    }

    /// Writes what is still in memory.
    pub fn close(mut self) -> Result<()> {
        Ok(self.0.flush()?)
    }
}
