//! The canary: a search for plaintext in places that must not hold it.
//!
//! Everything that the lab's servers send comes from a *marked stream*: one mebibyte of
//! pseudo-random octets, repeated. Any 8 consecutive octets of it are, for all practical purposes,
//! found nowhere else: a random 8-octet string is one of the 2^20 marks with probability 2^-44. So
//! a place that holds 8 marked octets in a row has seen the payload, and a place that holds none
//! has not.
//!
//! The search looks at every offset, not only at aligned ones. A bitmap of 2^24 bits, indexed by a
//! multiplicative hash of the 8 octets, rejects 15 offsets of 16 with one memory access. The
//! remaining offsets are looked up in the exact set.

use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Octets before the marked stream repeats itself.
pub const PERIOD: usize = 1 << 20;

/// Consecutive marked octets that count as a sighting.
pub const WINDOW: usize = 8;

const FILTER_BITS: u32 = 24;
const CHUNK: usize = 1 << 20;

/// The marked stream.
pub struct Marked {
    /// One period and the first octets of the next, so that every window is contiguous.
    table: Vec<u8>,
}

impl Marked {
    /// Generates the stream of a seed.
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        let mut table: Vec<u8> = std::iter::repeat_with(|| split_mix(&mut state).to_be_bytes())
            .take(PERIOD / WINDOW)
            .flatten()
            .collect();
        table.extend_from_within(..WINDOW - 1);
        Self { table }
    }

    /// Writes the first `octets` octets of the stream.
    pub fn write_to(&self, out: &mut impl Write, octets: u64) -> io::Result<()> {
        let mut left = octets;
        while left > 0 {
            let piece = left.min(PERIOD as u64);
            out.write_all(&self.table[..piece as usize])?;
            left -= piece;
        }
        Ok(())
    }

    /// Compares received octets with the stream from offset `at` on. Returns the stream offset of
    /// the first octet that differs.
    pub fn first_difference(&self, at: u64, octets: &[u8]) -> Option<u64> {
        let start = at as usize % PERIOD;
        let expected = self.table[..PERIOD].iter().cycle().skip(start);
        let differs = octets.iter().zip(expected).position(|(a, b)| a != b)?;
        Some(at + differs as u64)
    }
}

/// Result of a search.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sightings {
    /// Octets searched.
    pub searched: u64,
    /// Octets that could not be read (kernel pages that are mapped into every process).
    pub unreadable: u64,
    /// Offsets at which 8 marked octets start.
    pub found: u64,
    /// Place of the first sighting, in readable form.
    pub first: Option<String>,
}

impl Sightings {
    /// Adds the result of another search.
    pub fn add(&mut self, other: Self) {
        self.searched += other.searched;
        self.unreadable += other.unreadable;
        self.found += other.found;
        self.first = self.first.take().or(other.first);
    }
}

/// Searches octets, files and processes for the marked stream.
pub struct Canary {
    filter: Vec<u64>,
    marks: HashSet<u64>,
}

impl Canary {
    /// Prepares a search for any 8 octets of this stream.
    pub fn new(stream: &Marked) -> Self {
        let mut filter = vec![0; 1 << (FILTER_BITS - 6)];
        let marks: HashSet<u64> = windows(&stream.table).collect();
        for &mark in &marks {
            let (word, bit) = slot(mark);
            filter[word] |= bit;
        }
        Self { filter, marks }
    }

    /// Searches octets, and also text for marks in hexadecimal. `place` names the octets in the
    /// result.
    pub fn search_text(&self, place: &str, text: &[u8]) -> Sightings {
        let mut sightings = self.search(place, text);
        for start in 0..2.min(text.len()) {
            // Anything but a pair of digits ends a run of octets and becomes a gap of zeros.
            let decoded: Vec<u8> = text[start..]
                .chunks_exact(2)
                .flat_map(|pair| match hexadecimal(pair) {
                    Some(octet) => [octet].to_vec(),
                    None => vec![0; WINDOW],
                })
                .collect();
            let hidden = self.search(&format!("{place}, in hexadecimal"), &decoded);
            sightings.add(Sightings {
                searched: 0,
                ..hidden
            });
        }
        sightings
    }

    /// Searches octets. `place` names them in the result.
    pub fn search(&self, place: &str, octets: &[u8]) -> Sightings {
        let mut sightings = Sightings {
            searched: octets.len() as u64,
            ..Sightings::default()
        };
        for (offset, window) in windows(octets).enumerate() {
            if self.is_mark(window) {
                sightings.found += 1;
                sightings
                    .first
                    .get_or_insert_with(|| format!("{place} at {offset:#x}"));
            }
        }
        sightings
    }

    /// Searches a log or another text file.
    pub fn search_file(&self, path: &Path) -> Result<Sightings> {
        let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(self.search_text(&path.display().to_string(), &text))
    }

    /// Searches every readable octet of a process's memory. This needs the right to trace the
    /// process: the same user, or root in its user namespace.
    pub fn search_process(&self, pid: u32) -> Result<Sightings> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps"))
            .with_context(|| format!("cannot read the memory map of process {pid}"))?;
        let memory = File::open(format!("/proc/{pid}/mem"))
            .with_context(|| format!("cannot open the memory of process {pid}"))?;
        let mut sightings = Sightings::default();
        for (region, name) in readable_regions(&maps) {
            sightings.add(self.search_region(&memory, region, &format!("process {pid} {name}")));
        }
        Ok(sightings)
    }

    /// Searches a region in chunks. Chunks overlap by a window less one octet, so that no mark
    /// hides on a border.
    fn search_region(&self, memory: &File, region: Range<u64>, place: &str) -> Sightings {
        let mut sightings = Sightings::default();
        let mut chunk = vec![0; CHUNK + WINDOW - 1];
        let mut at = region.start;
        while at < region.end {
            let wanted = chunk.len().min((region.end - at) as usize);
            match memory.read_at(&mut chunk[..wanted], at) {
                Ok(read) if read > 0 => {
                    sightings.add(self.search(&format!("{place} {at:#x}"), &chunk[..read]));
                    let overlap = if read == wanted { WINDOW - 1 } else { 0 };
                    at += (read.saturating_sub(overlap)).max(1) as u64;
                    if region.end - at < WINDOW as u64 {
                        break;
                    }
                }
                // Unmapped meanwhile, or a page of the kernel: skip one page.
                _ => {
                    sightings.unreadable += (region.end - at).min(4096);
                    at += 4096;
                }
            }
        }
        sightings
    }

    fn is_mark(&self, window: u64) -> bool {
        let (word, bit) = slot(window);
        self.filter[word] & bit != 0 && self.marks.contains(&window)
    }
}

/// Iterates over every 8 consecutive octets, as numbers.
fn windows(octets: &[u8]) -> impl Iterator<Item = u64> {
    let (head, tail) = octets.split_at(octets.len().min(WINDOW - 1));
    let mut last = head
        .iter()
        .fold(0, |sum, &octet| sum << 8 | u64::from(octet));
    tail.iter().map(move |&octet| {
        last = last << 8 | u64::from(octet);
        last
    })
}

/// Returns word and bit of a window in the filter.
fn slot(window: u64) -> (usize, u64) {
    let hash = window.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - FILTER_BITS);
    ((hash >> 6) as usize, 1 << (hash & 63))
}

/// Iterates over the readable regions of a `/proc/PID/maps`, with their names.
fn readable_regions(maps: &str) -> impl Iterator<Item = (Range<u64>, &str)> {
    maps.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let (first, last) = fields.next()?.split_once('-')?;
        let readable = fields.next()?.starts_with('r');
        let region = u64::from_str_radix(first, 16).ok()?..u64::from_str_radix(last, 16).ok()?;
        readable.then(|| (region, fields.nth(3).unwrap_or("[anonymous]")))
    })
}

fn hexadecimal(pair: &[u8]) -> Option<u8> {
    let digit = |octet: u8| char::from(octet).to_digit(16);
    Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8)
}

/// SplitMix64 (Steele, Lea and Flood 2014): statistically sound, but not secret.
pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    fn marked(range: Range<usize>) -> Vec<u8> {
        let mut stream = Vec::new();
        Marked::new(7)
            .write_to(&mut stream, range.end as u64)
            .unwrap();
        stream[range].to_vec()
    }

    fn canary() -> Canary {
        Canary::new(&Marked::new(7))
    }

    #[test]
    fn eight_marked_octets_are_found_at_every_offset_and_seven_are_not() {
        let canary = canary();
        for offset in 0..9 {
            let mut place = vec![0xaa; 64];
            place[offset..offset + 8].copy_from_slice(&marked(1003..1011));
            assert_eq!(canary.search("place", &place).found, 1, "offset {offset}");
            place[offset] ^= 1;
            assert_eq!(canary.search("place", &place).found, 0, "offset {offset}");
        }
    }

    #[test]
    fn marks_across_the_end_of_a_period_are_found() {
        let place = marked(PERIOD - 4..PERIOD + 4);
        assert_eq!(canary().search("place", &place).found, 1);
    }

    #[test]
    fn another_stream_is_not_mistaken_for_this_one() {
        let mut other = Vec::new();
        Marked::new(8).write_to(&mut other, 4 << 20).unwrap();
        let sightings = canary().search("other", &other);
        assert_eq!((sightings.found, sightings.searched), (0, 4 << 20));
    }

    #[test]
    fn less_than_a_window_is_searched_without_a_finding() {
        assert_eq!(canary().search("short", &marked(0..7)).found, 0);
        assert_eq!(canary().search_text("empty", &[]).found, 0);
    }

    #[test]
    fn marks_written_in_hexadecimal_are_found() {
        let octets = marked(500..509);
        let digits: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
        for prefix in ["", "x", "octets: ", "(\n"] {
            let line = format!("{prefix}{digits}.");
            assert!(canary().search_text("log", line.as_bytes()).found >= 2);
        }
    }

    #[test]
    fn memory_of_this_process_is_searched_and_the_mark_in_it_found() {
        // After the stream is dropped, this process holds only eight octets of it.
        let stream = Marked::new(99);
        let canary = Canary::new(&stream);
        let held = black_box(stream.table[4000..4008].to_vec());
        drop(stream);
        let sightings = canary.search_process(std::process::id()).unwrap();
        assert!(sightings.found >= 1, "{sightings:?}");
        assert!(sightings.searched > 1 << 20, "{sightings:?}");
        drop(black_box(held));
    }

    #[test]
    fn nothing_is_found_in_the_memory_of_a_process_that_never_saw_the_stream() {
        let mut innocent = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let sightings = canary().search_process(innocent.id()).unwrap();
        innocent.kill().unwrap();
        innocent.wait().unwrap();
        assert_eq!(sightings.found, 0, "{sightings:?}");
        assert!(sightings.searched > 1 << 16, "{sightings:?}");
    }

    #[test]
    fn received_octets_are_compared_with_the_stream() {
        let stream = Marked::new(7);
        let at = PERIOD - 100;
        let mut octets = marked(at..at + 300);
        assert_eq!(stream.first_difference(at as u64, &octets), None);
        octets[200] ^= 0x80;
        assert_eq!(
            stream.first_difference(at as u64, &octets),
            Some(at as u64 + 200)
        );
    }
}
