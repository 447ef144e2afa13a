//! The files of a log, plain or compressed with gzip or zstd.

use super::Asked;
use crate::obstacle::Obstacle;
use flate2::bufread::MultiGzDecoder;
use logs::Format;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::fs;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// Octets in which a format has to show.
const HEAD: u64 = 1 << 16;

const BUFFER: usize = 1 << 18;

/// A file of a log.
pub(super) struct File {
    pub name: String,
    path: PathBuf,
    pub octets: u64,
    /// Seconds since 1970 at which it was written last.
    pub modified: u64,
}

/// What is in a file.
pub(super) enum Opened {
    Empty,
    /// Its compression is damaged before the first octet.
    Damaged(io::Error),
    Text(Format, Box<dyn BufRead>),
}

/// Looks at the files, and returns the oldest first, unless the order is given.
pub(super) fn files(paths: &[PathBuf], in_order: bool) -> Result<Vec<File>, Obstacle> {
    let files = paths.iter().map(|path| File::new(path));
    let mut files = files.collect::<Result<Vec<_>, _>>()?;
    if !in_order {
        files.sort_by_key(|file| file.modified);
    }
    Ok(files)
}

impl File {
    fn new(path: &Path) -> Result<Self, Obstacle> {
        let name = path.display().to_string();
        let now = SystemTime::now();
        if name == "-" {
            return Ok(Self {
                name: "standard input".to_owned(),
                path: path.to_owned(),
                octets: 0,
                modified: seconds(now),
            });
        }
        let about = fs::metadata(path).map_err(|error| unreadable(&name, &error))?;
        if about.is_dir() {
            let message = format!("{name} is a folder");
            return Err(Obstacle::new(message, "name the files in it"));
        }
        Ok(Self {
            name,
            path: path.to_owned(),
            octets: about.len(),
            modified: seconds(about.modified().unwrap_or(now)),
        })
    }

    /// Returns the format of the file and its text.
    pub fn open(&self, asked: &Asked, read: &Arc<AtomicU64>) -> Result<Opened, Obstacle> {
        let refused = |error: io::Error| unreadable(&self.name, &error);
        let source: Box<dyn Read> = match self.path.as_os_str() == "-" {
            true => Box::new(io::stdin()),
            false => Box::new(fs::File::open(&self.path).map_err(refused)?),
        };
        let source = Counted {
            source,
            read: Arc::clone(read),
        };
        let mut head = Vec::new();
        let text = plain(BufReader::with_capacity(BUFFER, source));
        let (text, damaged) = match text {
            Ok(mut text) => {
                let damaged = (&mut text).take(HEAD).read_to_end(&mut head).err();
                (text, damaged)
            }
            Err(error) => (Box::new(io::empty()) as Box<dyn Read>, Some(error)),
        };
        if head.is_empty() {
            return Ok(match damaged {
                Some(error) => Opened::Damaged(error),
                None => Opened::Empty,
            });
        }
        let shown = || Format::detect(&String::from_utf8_lossy(&head));
        let of_columns = || asked.columns.as_ref().map(|_| Format::Csv);
        let format = asked.format.or_else(shown).or_else(of_columns);
        let format = format.ok_or_else(|| {
            let message = format!("{} has no line of a known format", self.name);
            let names = Format::ALL.map(Format::name).join(", ");
            Obstacle::new(message, format!("name it with --format: {names}"))
        })?;
        let text = Cursor::new(head).chain(Broken(damaged)).chain(text);
        let text = Box::new(BufReader::with_capacity(BUFFER, text));
        Ok(Opened::Text(format, text))
    }
}

/// Returns the text of a file that may be compressed.
fn plain(mut file: impl BufRead + 'static) -> io::Result<Box<dyn Read>> {
    Ok(match file.fill_buf()? {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(file)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(Frames::new(file)?),
        _ => Box::new(file),
    })
}

/// The frames of zstd (RFC 8878 section 3), of which a file may have several.
struct Frames<R: BufRead> {
    /// `None` after the last one.
    frame: Option<StreamingDecoder<R, FrameDecoder>>,
}

impl<R: BufRead> Frames<R> {
    fn new(file: R) -> io::Result<Self> {
        let frame = StreamingDecoder::new(file).map_err(io::Error::other)?;
        Ok(Self { frame: Some(frame) })
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while let Some(mut frame) = self.frame.take() {
            let length = frame.read(to)?;
            if length > 0 || to.is_empty() {
                self.frame = Some(frame);
                return Ok(length);
            }
            let mut file = frame.into_inner();
            if !file.fill_buf()?.is_empty() {
                *self = Self::new(file)?;
            }
        }
        Ok(0)
    }
}

/// Fails once, if there is an error.
struct Broken(Option<io::Error>);

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Counts what is read of the files, for the bar.
struct Counted {
    source: Box<dyn Read>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let length = self.source.read(to)?;
        self.read.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn unreadable(name: &str, error: &io::Error) -> Obstacle {
    let message = format!("cannot read {name}: {error}");
    Obstacle::new(message, "name files that exist and that you may read")
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn read(octets: Vec<u8>) -> io::Result<String> {
        let mut text = String::new();
        plain(Cursor::new(octets))?.read_to_string(&mut text)?;
        Ok(text)
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(text: &str) -> Vec<u8> {
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        ruzstd::encoding::compress_to_vec(text.as_bytes(), level)
    }

    #[test]
    fn what_was_compressed_is_read_whole_in_one_part_or_several() {
        assert_eq!(read(b"plain".to_vec()).unwrap(), "plain");
        assert_eq!(read(Vec::new()).unwrap(), "");
        let parts = |pack: fn(&str) -> Vec<u8>| [pack("one,"), pack("two")].concat();
        assert_eq!(read(parts(gzip)).unwrap(), "one,two");
        assert_eq!(read(parts(zstd)).unwrap(), "one,two");
    }

    #[test]
    fn a_file_that_ends_early_is_an_error() {
        let text = "some text that is long enough to be compressed ".repeat(100);
        for whole in [gzip(&text), zstd(&text)] {
            read(whole[..whole.len() - 6].to_vec()).unwrap_err();
        }
    }
}
