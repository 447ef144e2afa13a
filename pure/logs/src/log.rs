//! Drives a reader over the files of a log.

use crate::join::Joining;
use crate::{Clock, Doubts, Faults, Join, Notes, Reader, Session, Why};
use std::io::{self, BufRead, Read};
use std::sync::Arc;

/// Longest line, in octets. No gateway writes such a line.
const LONGEST: u64 = 1 << 16;

/// The files of one log, in the order in which they were written.
pub struct Logs {
    reader: Box<dyn Reader>,
    clock: Clock,
    join: Join,
    faults: Faults,
    lines: u64,
}

impl Logs {
    /// Creates the reader of a log with at most this many sessions that are open at once.
    pub fn new(reader: Box<dyn Reader>, clock: Clock, most_open: usize) -> Self {
        Self {
            reader,
            clock,
            join: Join::new(most_open),
            faults: Faults::default(),
            lines: 0,
        }
    }

    /// Returns the lines that could not be read.
    pub const fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Returns what is doubtful about the sessions.
    pub const fn doubts(&self) -> Doubts {
        self.join.doubts()
    }

    /// Returns how often the clock of the log went back.
    pub const fn steps(&self) -> u64 {
        self.clock.steps()
    }

    /// Returns the number of lines read.
    pub const fn lines(&self) -> u64 {
        self.lines
    }

    /// Reads a file to its end, and hands out the sessions that are over.
    pub fn read(
        &mut self,
        file: &str,
        mut input: impl BufRead,
        out: &mut dyn FnMut(Session),
    ) -> io::Result<()> {
        let file: Arc<str> = file.into();
        let before = self.lines;
        let read = self.read_lines(&file, &mut input, out);
        let (join, out) = (&mut self.join, out);
        let mut to = Joining { join, out };
        if let Err(why) = self.reader.end_of_file(&mut self.clock, &mut to) {
            self.faults.add(&file, self.lines - before, why);
        }
        read
    }

    fn read_lines(
        &mut self,
        file: &Arc<str>,
        input: &mut impl BufRead,
        out: &mut dyn FnMut(Session),
    ) -> io::Result<()> {
        let before = self.lines;
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = input.take(LONGEST).read_until(b'\n', &mut line)?;
            if length == 0 {
                return Ok(());
            }
            self.lines += 1;
            let is_long = length as u64 == LONGEST && line.last() != Some(&b'\n');
            let read = match is_long {
                true => input.skip_until(b'\n').map(|_| Err(Why::TooLong))?,
                false => self.line(&line, out),
            };
            if let Err(why) = read {
                self.faults.add(file, self.lines - before, why);
            }
        }
    }

    /// Hands out the sessions that have not ended.
    pub fn finish(&mut self, out: &mut dyn FnMut(Session)) {
        self.join.finish(out);
    }

    fn line(&mut self, line: &[u8], out: &mut dyn FnMut(Session)) -> Result<(), Why> {
        let line = std::str::from_utf8(line).map_err(|_| Why::NotText)?;
        let line = line.trim_end_matches(['\n', '\r']);
        let join = &mut self.join;
        let to: &mut dyn Notes = &mut Joining { join, out };
        self.reader.line(line, &mut self.clock, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, Zone};
    use crypto::UnixTime;

    const HEAD: &str = "user,begin,end\n";

    fn logs() -> Logs {
        let clock = Clock::new(Zone::UTC, UnixTime(0));
        Logs::new(Format::Csv.reader(), clock, 10)
    }

    #[test]
    fn a_broken_line_is_counted_with_its_place_and_the_others_are_read() {
        let mut logs = logs();
        let mut users = Vec::new();
        let mut out = |session: Session| users.push(session.user.to_string());
        let long = "x".repeat(100_000);
        let text = format!("{HEAD}ann,10,20\nbob,30,20\n{long}\ncid,1,2\n");
        let mut octets = text.into_bytes();
        octets.extend(b"\xff\xfe,1,2\ndan,7,9");
        logs.read("a.csv", octets.as_slice(), &mut out).unwrap();
        assert_eq!(users, ["ann", "cid", "dan"]);
        let places = logs.faults().first().iter();
        let places: Vec<_> = places.map(|fault| (fault.line, fault.why)).collect();
        let expected = [(3, Why::Backwards), (4, Why::TooLong), (6, Why::NotText)];
        assert_eq!(places, expected);
        assert_eq!(&*logs.faults().first()[0].file, "a.csv");
        assert_eq!((logs.lines(), logs.faults().count()), (7, 3));
    }

    /// A stretch of a file that is read in small pieces, as from a pipe, makes no difference.
    #[test]
    fn pieces_make_no_difference() {
        let text = format!("{HEAD}ann,10,20\n\"bob, jr\",30,40\n");
        let mut found = Vec::new();
        for size in 1..20 {
            let input = io::BufReader::with_capacity(size, text.as_bytes());
            let mut users = Vec::new();
            let mut out = |session: Session| users.push(session.user.to_string());
            logs().read("a.csv", input, &mut out).unwrap();
            found.push(users);
        }
        assert!(found.iter().all(|users| *users == ["ann", "bob, jr"]));
    }
}
