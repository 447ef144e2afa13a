//! Reports with a plot.

use lab::obstacle::Obstacle;
use lab::plot::Plot;
use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Measures, and draws a plot if requested. Creates the plot's file before measuring.
pub fn drawn<R>(
    path: Option<&Path>,
    measure: impl FnOnce() -> Result<R, Obstacle>,
    plot: fn(&R) -> Option<Plot>,
) -> Result<R, Obstacle> {
    let refused = |error: &dyn Display| {
        let path = path.unwrap_or(Path::new(""));
        let message = format!("cannot write {}: {error}", path.display());
        Obstacle::new(message, "name a writable file")
    };
    let file = path.map(File::create).transpose();
    let file = file.map_err(|error| refused(&error))?;
    let report = measure()?;
    if let (Some(mut file), Some(plot)) = (file, plot(&report)) {
        let svg = plot.svg().map_err(|error| refused(&error))?;
        let written = file.write_all(svg.as_bytes());
        written.map_err(|error| refused(&error))?;
    }
    Ok(report)
}
