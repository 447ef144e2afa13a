//! The download: one file by curl, with checksums of both copies by sha256sum.

use super::LOOK;
use super::network::Network;
use super::news::{News, Teller};
use crate::host::Host;
use crate::process::DEADLINE;
use crate::testbed::find_command;
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::thread;

/// Result of the download.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fetched {
    /// Octets that arrived.
    pub octets: u64,
    /// Octets of the server's file.
    pub size: u64,
    /// SHA-256 of what arrived.
    pub sha256: String,
    /// SHA-256 of the server's file.
    pub sha256_of_server: String,
    /// Retransmission timeouts of the server's kernel (`TCPTimeouts`).
    pub tcp_timeouts: u64,
}

impl Fetched {
    /// Returns true if both files are the same.
    pub fn is_whole(&self) -> bool {
        self.octets == self.size && self.sha256 == self.sha256_of_server && !self.sha256.is_empty()
    }
}

/// Downloads the file of a served folder.
pub(super) fn fetch(network: &Network, url: &str, folder: &Path, teller: &Teller) -> Result<()> {
    let (host, gateway) = (&network.host, &network.gateway);
    let file = host.directory().join("download");
    let timeouts = gateway.tcp_count("TCPTimeouts")?;
    let mut command = host.command(find_command("curl", "curl")?);
    command.args(["--silent", "--show-error", "--no-buffer", "--noproxy", "*"]);
    // If anything hangs, curl ends.
    let limit = DEADLINE.as_secs().to_string();
    command.args(["--connect-timeout", "30", "--speed-time", &limit]);
    command.arg("--output").arg(&file).arg(url);
    let mut curl = host.start("curl", command)?;
    let arrived = || fs::metadata(&file).map_or(0, |file| file.len());
    let mut octets = 0;
    let status = loop {
        let ended = curl.child().try_wait()?;
        if arrived() > octets {
            octets = arrived();
            teller.tell(News::Octets(octets));
        }
        if let Some(status) = ended {
            break status;
        }
        thread::sleep(LOOK);
    };
    ensure!(
        status.success(),
        "curl ended ({status}) after {octets} octets: {}",
        curl.log()
    );
    let original = folder.join("stream");
    teller.tell(News::Fetched(Fetched {
        octets,
        size: fs::metadata(&original)?.len(),
        sha256: sha256(host, &file)?,
        sha256_of_server: sha256(gateway, &original)?,
        tcp_timeouts: gateway.tcp_count("TCPTimeouts")? - timeouts,
    }));
    Ok(())
}

fn sha256(host: &Host, file: &Path) -> Result<String> {
    let mut command = host.command(find_command("sha256sum", "coreutils")?);
    command.arg(file);
    let output = host.run_command(command, DEADLINE)?;
    let sum = output.split_whitespace().next();
    Ok(sum.context("sha256sum printed nothing")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_is_whole_only_with_every_octet_and_the_sum_of_the_original() {
        let whole = Fetched {
            octets: 3,
            size: 3,
            sha256: "ab".to_owned(),
            sha256_of_server: "ab".to_owned(),
            tcp_timeouts: 0,
        };
        assert!(whole.is_whole());
        let (mut short, mut other) = (whole.clone(), whole);
        short.octets = 2;
        other.sha256 = "ac".to_owned();
        assert!(!short.is_whole() && !other.is_whole());
        assert!(!Fetched::default().is_whole());
    }
}
