//! The command line of `strata init`.

use clap::{Args as Group, Subcommand};
use config::Prefix;
use model::Identity;
use std::net::IpAddr;
use std::path::PathBuf;

/// Kinds of first configurations.
#[derive(Debug, Subcommand)]
pub enum Init {
    /// A gateway with a CA, whose devices `strata enrol` adds
    Gateway(Gateway),
    /// A host that connects to a gateway, with a key of its own
    Client(Client),
    /// A licensed node between mobile nodes and a gateway
    Node(Node),
}

/// Options of `strata init gateway`.
#[derive(Debug, Group)]
pub struct Gateway {
    /// Identity of the gateway: a name, or its address
    #[arg(long)]
    pub id: Identity,
    /// Address at which devices reach the gateway; may be repeated
    #[arg(long, required = true)]
    pub address: Vec<IpAddr>,
    /// Network behind the gateway, which devices reach; may be repeated
    #[arg(long, required = true, value_name = "PREFIX", value_parser = network)]
    pub network: Vec<Prefix>,
    /// Prefix of the addresses that devices get; may be repeated
    #[arg(long, required = true, value_name = "PREFIX", value_parser = network)]
    pub pool: Vec<Prefix>,
    /// Name server that devices use; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub dns: Vec<IpAddr>,
    #[command(flatten)]
    pub folder: Folder,
}

/// Options of `strata init client`.
#[derive(Debug, Group)]
pub struct Client {
    /// Identity of this host: a mail address, a name or an address
    #[arg(long)]
    pub id: Identity,
    /// Identity of the gateway
    #[arg(long, value_name = "ID")]
    pub gateway: Identity,
    /// Address of the gateway
    #[arg(long)]
    pub address: IpAddr,
    /// Network behind the gateway; may be repeated
    #[arg(long, required = true, value_name = "PREFIX", value_parser = network)]
    pub network: Vec<Prefix>,
    #[command(flatten)]
    pub folder: Folder,
}

/// Options of `strata init node`.
#[derive(Debug, Group)]
pub struct Node {
    /// Identity of this node: a name, or its address
    #[arg(long)]
    pub id: Identity,
    /// Address at which the gateway reaches this node
    #[arg(long)]
    pub address: IpAddr,
    /// Identity of the gateway that gives this node its keys
    #[arg(long, value_name = "ID")]
    pub gateway: Identity,
    /// Device towards the gateway
    #[arg(long, value_name = "DEVICE")]
    pub wired: String,
    /// Device towards the mobile nodes
    #[arg(long, value_name = "DEVICE")]
    pub wireless: String,
    #[command(flatten)]
    pub folder: Folder,
}

/// Place of the new files.
#[derive(Debug, Group)]
pub struct Folder {
    /// Folder for the new files; existing files are never replaced
    #[arg(long, short, value_name = "DIR", default_value = "/etc/strata")]
    pub out: PathBuf,
}

/// Parses a prefix without host bits.
pub fn network(text: &str) -> Result<Prefix, String> {
    let prefix: Prefix = text.parse().map_err(|error| format!("{error}"))?;
    match prefix.network() == prefix {
        true => Ok(prefix),
        false => Err(format!(
            "bits beyond the length are set: write {}",
            prefix.network()
        )),
    }
}
