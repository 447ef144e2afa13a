//! Packets that passed a host of a walk, as tshark reads them.

use crate::host::Host;
use crate::tshark;
use crate::wiretap::{Seen, write_capture};
use anyhow::{Context, Result, ensure};

/// A capture in a host's folder.
pub struct Capture<'a> {
    host: &'a Host,
    name: &'a str,
    seen: Vec<Seen>,
}

impl<'a> Capture<'a> {
    /// Writes these packets to a capture.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(host: &'a Host, name: &'a str, seen: Vec<Seen>) -> Result<Self> {
        let capture = Self { host, name, seen };
        capture.save()?;
        Ok(capture)
    }

    fn save(&self) -> Result<()> {
        write_capture(&self.host.directory().join(self.name), &self.seen)
    }

    /// Returns a field of the packets that pass a filter.
    ///
    /// # Errors
    /// Those of [`tshark::fields`].
    pub fn read(&self, filter: &str, field: &str) -> Result<Vec<String>> {
        tshark::fields(
            self.host,
            self.host.directory(),
            self.name,
            &[],
            filter,
            field,
        )
    }

    /// Checks rows of a filter, a field and the only value that the field may have. At least one
    /// packet must pass each filter.
    ///
    /// # Errors
    /// A filter lets no packet through, or a field has another value.
    pub fn has(&self, rows: &[(&str, &str, &str)]) -> Result<()> {
        for (filter, field, expected) in rows {
            let values = self.read(filter, field)?;
            let is_right = |value: &String| value == expected;
            ensure!(
                !values.is_empty() && values.iter().all(is_right),
                "{field} of {filter}: {values:?}"
            );
        }
        Ok(())
    }

    /// Checks that no packet that passes a filter is malformed. As a control, the length of an
    /// extension of a request is then set beyond the end of the message, and tshark must find it.
    ///
    /// # Errors
    /// A packet is malformed, or tshark misses the damaged packet.
    pub fn is_well_formed(mut self, filter: &str) -> Result<()> {
        let filter = format!("({filter}) && _ws.malformed");
        let found = self.read(&filter, "frame.number")?;
        ensure!(found.is_empty(), "malformed: {found:?}");
        let is_request = |seen: &&mut Seen| seen.is_udp_of(434, 1);
        let request = self.seen.iter_mut().find(is_request);
        let request = request.context("no request was seen")?;
        request.octets[28 + 24 + 1] = 250;
        self.save()?;
        let found = self.read(&filter, "frame.number")?;
        ensure!(!found.is_empty(), "what is malformed is not found");
        Ok(())
    }
}
