//! Raw data of an exhibit, in its folder: with these and the stored cells everything else can be
//! computed again.

use super::table::Raw;
use super::{Options, Plan};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// File of the raw data, in the folder of their figure.
pub const FILE: &str = "raw.json";

/// Raw data, and the plan by which they were measured.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    /// Extent of the measurement.
    pub plan: Plan,
    /// Largest number of networks at once.
    pub at_once: usize,
    #[serde(flatten)]
    content: Content,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Content {
    /// Cells that could not be measured, with the reasons. The others are in the store.
    Unmeasured(Vec<String>),
    Raw(Raw),
}

impl Record {
    pub fn of_table(options: &Options, raw: Raw) -> Self {
        Self::new(options, Content::Raw(raw))
    }

    pub fn of_figure(options: &Options, unmeasured: Vec<String>) -> Self {
        Self::new(options, Content::Unmeasured(unmeasured))
    }

    fn new(options: &Options, content: Content) -> Self {
        Self {
            plan: options.plan,
            at_once: options.at_once,
            content,
        }
    }

    /// Writes the record, and reads it again: what is judged is what was kept.
    pub fn kept(&self, out: &Path, name: &str) -> Result<Self> {
        let path = path(out, name);
        let folder = out.join(name);
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        fs::write(&path, serde_json::to_string(self)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Self::read(out, name)
    }

    pub fn read(out: &Path, name: &str) -> Result<Self> {
        let path = path(out, name);
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text)
            .with_context(|| format!("{} has no raw data of the lab", path.display()))
    }

    pub fn raw(&self) -> Result<&Raw> {
        match &self.content {
            Content::Raw(raw) => Ok(raw),
            Content::Unmeasured(_) => bail!("{FILE} has the raw data of a figure, not of a table"),
        }
    }

    pub fn unmeasured(&self) -> Result<&[String]> {
        match &self.content {
            Content::Unmeasured(cells) => Ok(cells),
            Content::Raw(_) => bail!("{FILE} has the raw data of a table, not of a figure"),
        }
    }
}

fn path(out: &Path, name: &str) -> PathBuf {
    out.join(name).join(FILE)
}
