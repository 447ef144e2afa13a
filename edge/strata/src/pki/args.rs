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
    /// Issue a certificate: `ID.pem` for `cert`, and `ID.key` for `key` unless for a request
    Issue(Issue),
    /// Create a key and a request for its certificate: `ID.key`, which stays here, and `ID.csr` for
    /// the CA
    Request {
        /// Identity, as in `id`: `alice@example.net`, `gw.example.net` or an address
        #[arg(long)]
        id: Identity,
        /// Another name or address of the host; may be repeated
        #[arg(long, value_name = "NAME")]
        also: Vec<Identity>,
        #[command(flatten)]
        made: Made,
    },
    /// Export a certificate with its key and CA for a phone or Windows: `NAME.p12` (PKCS #12)
    Export(Export),
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
    /// Show the certificates, revocation lists or signing request of a PEM file
    Show {
        /// PEM file
        file: PathBuf,
    },
}

/// Options of `strata pki issue`.
#[derive(Debug, Group)]
pub struct Issue {
    /// Folder of the CA
    #[arg(long, value_name = "DIR")]
    pub ca: PathBuf,
    /// Identity, as in `id`: `alice@example.net`, `gw.example.net` or an address
    #[arg(long, required_unless_present = "names_of_request")]
    pub id: Option<Identity>,
    /// Another name or address of the host; may be repeated
    #[arg(long, value_name = "NAME")]
    pub also: Vec<Identity>,
    /// Organisational unit of the subject, as in `ou`, which tells groups of users apart
    #[arg(long, value_name = "UNIT", value_parser = unit)]
    pub ou: Option<String>,
    /// For a gateway of Windows, macOS, iOS or Android, which require the key usage serverAuth
    #[arg(long, conflicts_with = "ed25519")]
    pub server: bool,
    /// Certify the key of a certificate signing request (PKCS #10) instead of a new one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ed25519", "p256", "p384"])]
    pub request: Option<PathBuf>,
    /// Take the names from the request, whose sender chose them; the first one is the `id`
    #[arg(long, requires = "request", conflicts_with_all = ["id", "also"])]
    pub names_of_request: bool,
    #[command(flatten)]
    pub made: Made,
    /// Validity, in days; at most that of the CA
    #[arg(long, default_value_t = 365, value_parser = days())]
    pub days: u64,
}

/// Kind of a new key, and the place of its files.
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
    #[command(flatten)]
    pub files: Files,
}

/// Place of new files.
#[derive(Debug, Group)]
pub struct Files {
    /// Folder for the new files
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
}

/// Options of `strata pki export`.
#[derive(Debug, Group)]
pub struct Export {
    /// File of the certificate, followed by the intermediate ones
    pub cert: PathBuf,
    /// File of its private key; if omitted, NAME.key beside NAME.pem
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// File of the root CA, as in `ca` of the table `node`, or folder of the CA
    #[arg(long, value_name = "FILE|DIR")]
    pub ca: PathBuf,
    /// File with the password in its first line; if omitted, a new one is printed
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Encrypt with AES-256 instead of Triple DES; older versions of macOS, iOS and Android cannot
    /// read that
    #[arg(long)]
    pub aes: bool,
    #[command(flatten)]
    pub files: Files,
}

/// Returns an organisational unit that every reader shows as it is: of 1 to 64 characters (RFC 5280
/// appendix A.1).
fn unit(text: &str) -> Result<String, String> {
    let is_good = (1..=64).contains(&text.chars().count()) && !text.contains(char::is_control);
    match is_good {
        true => Ok(text.to_owned()),
        false => Err("write 1 to 64 characters".to_owned()),
    }
}

/// At most a hundred years: not every reader can represent later dates.
fn days() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=36_500)
}
