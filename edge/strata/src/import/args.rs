//! The command line of `strata import`.

use clap::{Args as Group, Subcommand};
use std::path::PathBuf;

/// Formats that are converted.
#[derive(Debug, Subcommand)]
pub enum Import {
    /// Convert a `swanctl.conf` of strongSwan; certificates are looked for in the folders beside it
    Swanctl {
        #[command(flatten)]
        files: Files,
    },
    /// Convert a file of wg-quick; creates a new key, because keys of WireGuard cannot sign
    Wg {
        #[command(flatten)]
        files: Files,
    },
    /// Convert an `ipsec.conf` of strongSwan or Libreswan
    Ipsec {
        #[command(flatten)]
        files: Files,
        /// File with the secrets; if omitted, `ipsec.secrets` beside FILE
        #[arg(long, value_name = "FILE")]
        secrets: Option<PathBuf>,
    },
}

/// The file that is read, and the place of new ones.
#[derive(Debug, Group)]
pub struct Files {
    /// File to convert
    pub file: PathBuf,
    /// Folder for `strata.toml` and the files with secrets
    #[arg(long, short, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
}
