//! `[audit]`: the record of which node could read which data, and when.

use std::path::PathBuf;

/// The audit file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// `file`: path of the file. It has one JSON object on each line, and only its owner can read
    /// it.
    pub file: PathBuf,
    /// `required`: true if a key may leave for a licensed node only after its line is on disk.
    /// Default `false`: the key leaves in any case, and a failed write is reported.
    pub required: bool,
}
