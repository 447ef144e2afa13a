//! The files of the imported configuration: reading them, and finding those that they include.

use control::Failure;
use glob::{MatchOptions, Pattern, glob_with};
use import::{File, Missing};
use std::io;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Wildcards as in a shell.
const SHELL: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// Reads a file.
pub(super) fn read(file: &Path) -> Result<File, Failure> {
    contents(file).map_err(|error| {
        Failure::new(
            format!("cannot read {}: {error}", file.display()),
            "name an existing file of text that you may read",
        )
    })
}

/// Reads the files that a pattern in the file `by` stands for. None may match, unless the pattern
/// is the name of one file.
pub(super) fn find(pattern: &str, by: &str) -> Vec<Result<File, Missing>> {
    let folder = Path::new(by).parent().unwrap_or(Path::new("/"));
    let is_name = !pattern.contains(['*', '?', '[']);
    if is_name {
        return vec![included(&folder.join(pattern))];
    }
    let pattern = match pattern.starts_with('/') {
        true => pattern.to_owned(),
        false => format!("{}/{pattern}", Pattern::escape(&folder.to_string_lossy())),
    };
    match glob_with(&pattern, SHELL) {
        Ok(paths) => paths.map(|path| match path {
            Ok(path) => included(&path),
            Err(error) => Err(missing(error.path(), error.error())),
        }),
        Err(error) => return vec![Err(missing(Path::new(&pattern), &error))],
    }
    .collect()
}

fn included(path: &Path) -> Result<File, Missing> {
    contents(path).map_err(|error| missing(path, &error))
}

fn missing(path: &Path, why: &dyn std::error::Error) -> Missing {
    Missing {
        name: path.display().to_string(),
        why: why.to_string(),
    }
}

/// Returns a file with its whole path, so that a file has one name only.
fn contents(path: &Path) -> io::Result<File> {
    let path: PathBuf = path.canonicalize()?;
    let text = std::fs::read_to_string(&path).map(Zeroizing::new)?;
    let name = path.display().to_string();
    Ok(File { name, text })
}
