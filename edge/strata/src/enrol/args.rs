//! The command line of `strata enrol`.

use crate::init::network;
use clap::Args as Group;
use config::Prefix;
use model::Identity;
use std::net::IpAddr;
use std::path::PathBuf;

/// Options of `strata enrol`.
#[derive(Debug, Group)]
pub struct Enrol {
    /// Identity of the device: a mail address, or a name
    pub name: Identity,
    /// Configuration of the gateway
    #[arg(long, value_name = "FILE", default_value = config::DEFAULT_FILE)]
    pub file: PathBuf,
    /// Folder of the CA; if omitted, `ca` beside FILE
    #[arg(long, value_name = "DIR")]
    pub ca: Option<PathBuf>,
    /// Address at which the device reaches the gateway; if omitted, that of the gateway's
    /// certificate
    #[arg(long)]
    pub address: Option<IpAddr>,
    /// Pool of the device's address; if omitted, the only one
    #[arg(long)]
    pub pool: Option<String>,
    /// Network that the device reaches; if omitted, the subnets of the pool; may be repeated
    #[arg(long, value_name = "PREFIX", value_parser = network)]
    pub network: Vec<Prefix>,
    /// Folder for NAME.tar; an existing file is never replaced
    #[arg(long, short, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Also print the files as a QR code, or write the code to FILE (SVG); if the terminal is too
    /// small, to NAME.svg
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub qr: Option<Option<PathBuf>>,
}
