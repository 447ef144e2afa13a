//! The command line of `strata pki`.

use clap::{Args as Group, Subcommand};
use model::Identity;
use std::path::PathBuf;

/// Commands for certificates and keys.
#[derive(Debug, Subcommand)]
pub enum Pki {
    /// Create a CA: `ca.pem`, which peers name in `ca`, and `ca.key`, its private key
    Ca {
        /// Name of the CA
        #[arg(long)]
        name: String,
        /// Folder of the issuing CA; if omitted, the new CA is a root
        #[arg(long, value_name = "DIR")]
        by: Option<PathBuf>,
        #[command(flatten)]
        made: Made,
        /// Validity, in days
        #[arg(long, default_value_t = 3650, value_parser = days())]
        days: u64,
    },
    /// Issue a certificate: `ID.pem` for `cert` and `ID.key` for `key`
    Issue {
        /// Folder of the CA
        #[arg(long, value_name = "DIR")]
        ca: PathBuf,
        /// Identity, as in `id`: `alice@example.net`, `gw.example.net` or an address
        #[arg(long)]
        id: Identity,
        #[command(flatten)]
        host: Host,
        #[command(flatten)]
        made: Made,
        /// Validity, in days; at most that of the CA
        #[arg(long, default_value_t = 365, value_parser = days())]
        days: u64,
    },
    /// Revoke certificates of a CA: adds them to its `ca.crl`, which peers name in `crl`
    Revoke {
        /// Folder of the CA
        #[arg(long, value_name = "DIR")]
        ca: PathBuf,
        /// Certificates to revoke: all of a name, one by the serial number of `strata pki list`,
        /// or that of a file
        #[arg(required = true, value_name = "NAME|SERIAL|FILE")]
        which: Vec<String>,
        /// Days until the list expires
        #[arg(long, default_value_t = 30, value_parser = days())]
        days: u64,
    },
    /// List the certificates that a CA has issued, and warn of those that expire soon
    List {
        /// Folder of the CA
        #[arg(long, value_name = "DIR")]
        ca: PathBuf,
    },
    /// Renew `ca.crl` of a CA before it expires, or create the first one, which is empty
    Crl {
        /// Folder of the CA
        #[arg(long, value_name = "DIR")]
        ca: PathBuf,
        /// Days until the list expires
        #[arg(long, default_value_t = 30, value_parser = days())]
        days: u64,
    },
    /// Create a key without a certificate: `NAME.key` for `key`, and `NAME.pub` for `pubkey` at
    /// peers
    Key {
        /// Name of the files, without suffix
        #[arg(long)]
        name: String,
        #[command(flatten)]
        made: Made,
    },
    /// Print the public key of a private key, for `pubkey` at peers
    Pubkey {
        /// File with the private key
        file: PathBuf,
    },
    /// Show the certificates or revocation lists of a PEM file
    Show {
        /// PEM file
        file: PathBuf,
    },
}

/// Further content of a host's certificate.
#[derive(Debug, Group)]
pub struct Host {
    /// Another name or address of the host; may be repeated
    #[arg(long, value_name = "NAME")]
    pub also: Vec<Identity>,
    /// For a gateway of Windows, macOS, iOS or Android, which require the key usage serverAuth
    #[arg(long, conflicts_with = "ed25519")]
    pub server: bool,
}

/// Kind of a new key, and the folder of its files.
#[derive(Debug, Group)]
pub struct Made {
    /// An Ed25519 key (RFC 8420)
    #[arg(long)]
    pub ed25519: bool,
    /// An ECDSA P-256 key, which every peer with RFC 7427 supports (default)
    #[arg(long, conflicts_with = "ed25519")]
    pub p256: bool,
    /// An ECDSA P-384 key, for `suite = "strict"`
    #[arg(long, conflicts_with_all = ["ed25519", "p256"])]
    pub p384: bool,
    /// Folder for both files
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
}

/// At most a hundred years: not every reader can represent later dates.
fn days() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=36_500)
}
