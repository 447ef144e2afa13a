//! `[audit]`: where it is recorded who could read what, and when.

use crate::reader::Value;
use std::path::PathBuf;

/// The file of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// `file`: one JSON object on each line; only its owner can read it.
    pub file: PathBuf,
    /// `required`: no key leaves for a licensed node before its line is on the disk. Default `false`:
    /// then it leaves all the same, and the failure is told.
    pub required: bool,
}

impl Audit {
    pub(crate) fn read(value: &Value<'_>) -> Option<Self> {
        let mut table = value.table()?;
        let example = "\"/var/log/strata/audit.jsonl\"";
        let file = table.required("file", example, Value::absolute_path);
        let required = table.optional("required", Value::boolean);
        table.finish();
        Some(Self {
            file: file?,
            required: required.unwrap_or(false),
        })
    }
}
