//! The files of a device as a QR code, which a camera reads.
//!
//! The code has the archive, compressed, in octets: `zbarimg` and `tar` put the files in place
//! without another program.

use control::Failure;
use flate2::Compression;
use flate2::write::GzEncoder;
use qrcode::render::{svg, unicode::Dense1x2};
use qrcode::{EcLevel, QrCode};
use std::io::{self, Write};
use terminal::Size;
use zeroize::Zeroizing;

/// Most octets that a code holds: version 40 with the lowest level of error correction (ISO/IEC
/// 18004, table 7).
pub(super) const MOST: usize = 2953;

/// Light modules on each side of a code, without which readers do not find it.
const MARGIN: usize = 4;

/// Width and height of the picture, in pixels. A module then has six pixels or more.
const PICTURE: u32 = 1200;

/// A code with the archive of a device.
pub(super) struct Code {
    code: QrCode,
}

impl Code {
    /// Creates the code of an archive. Returns the length of the compressed archive if that is too
    /// long.
    pub(super) fn new(archive: &[u8]) -> Result<Result<Self, usize>, Failure> {
        let packed = compress(archive).map_err(|error| {
            Failure::new(
                format!("cannot compress the files of the device: {error}"),
                "run `strata enrol` without `--qr`",
            )
        })?;
        let code = QrCode::with_error_correction_level(&*packed, EcLevel::L);
        Ok(code.map(|code| Self { code }).map_err(|_| packed.len()))
    }

    /// Returns the size that the code takes on a terminal, in characters.
    pub(super) fn size(&self) -> Size {
        let modules = self.code.width() + 2 * MARGIN;
        Size {
            rows: modules.div_ceil(2),
            columns: modules,
        }
    }

    /// Returns the code in half blocks, each character with two modules. Light modules are drawn,
    /// as terminals are dark. `has_colours` makes that sure.
    pub(super) fn text(&self, has_colours: bool) -> Zeroizing<String> {
        let mut renderer = self.code.render::<Dense1x2>();
        renderer.dark_color(Dense1x2::Light);
        renderer.light_color(Dense1x2::Dark);
        let drawn = Zeroizing::new(renderer.quiet_zone(true).build());
        let (before, after) = match has_colours {
            true => ("\x1b[97;40m", "\x1b[0m"),
            false => ("", ""),
        };
        let lines = drawn.lines().map(|line| format!("{before}{line}{after}\n"));
        Zeroizing::new(lines.collect())
    }

    /// Returns the code as a picture (SVG).
    pub(super) fn picture(&self) -> Zeroizing<String> {
        let mut renderer = self.code.render::<svg::Color<'_>>();
        Zeroizing::new(renderer.min_dimensions(PICTURE, PICTURE).build())
    }
}

/// Compresses octets, as gzip does.
fn compress(octets: &[u8]) -> io::Result<Zeroizing<Vec<u8>>> {
    // Allocated at full size: a growing buffer would leave copies of the key behind.
    let room = Vec::with_capacity(octets.len() + 64);
    let mut encoder = GzEncoder::new(room, Compression::best());
    encoder.write_all(octets)?;
    encoder.finish().map(Zeroizing::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_as_wide_as_it_says() {
        let code = Code::new(b"some octets").unwrap().ok().unwrap();
        let text = code.text(false);
        let widths = text.lines().map(|line| line.chars().count());
        assert!(widths.eq(vec![code.size().columns; code.size().rows]));
        assert!(code.text(true).starts_with("\x1b[97;40m"));
        assert!(code.picture().contains("<svg"));
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_length() {
        let mut next = 1u32;
        let random = std::iter::repeat_with(|| {
            next = next.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (next >> 24) as u8
        });
        let octets: Vec<_> = random.take(MOST + 1).collect();
        let length = Code::new(&octets).unwrap().err().unwrap();
        assert!(length > MOST, "{length}");
        let fits = Code::new(&octets[..MOST - 100]).unwrap().ok().unwrap();
        assert!((170..=185).contains(&fits.size().columns));
    }
}
