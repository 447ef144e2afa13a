//! The wire between the host and the gateway: what passes there, by our own look and by tshark.

use super::LOOK;
use super::capture::Capture;
use super::network::Network;
use super::news::{News, Teller};
use crate::canary::{Canary, Marked};
use crate::host::Host;
use crate::process::DEADLINE;
use crate::testbed::find_command;
use crate::wiretap::{Seen, Wiretap};
use anyhow::Result;
use serde::Serialize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// One of so many packets is searched for the payload.
const SEARCHED: u64 = 8;

/// Packets on the wires. Each passes two of them: that of a network, and that of the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Wire {
    /// All packets.
    pub packets: u64,
    /// ESP in UDP.
    pub esp: u64,
    /// IKE.
    pub ike: u64,
    /// Anything else.
    pub other: u64,
    /// Octets of packets that were searched for the payload of the download.
    pub searched: u64,
    /// Places where 8 octets of it in a row were found.
    pub found: u64,
    /// True if the same search finds the payload inside the host, which proves that it can see.
    pub found_inside: bool,
    /// What tshark says of the same packets; `None` if it is not installed.
    pub tshark: Option<Dissected>,
}

/// Packets by the protocols that tshark dissects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dissected {
    /// ESP.
    pub esp: u64,
    /// ISAKMP, as tshark calls IKE.
    pub isakmp: u64,
    /// Anything else.
    pub other: u64,
    /// Protocols of the first packet that is anything else.
    pub first_other: Option<String>,
}

impl Wire {
    fn note(&mut self, seen: &Seen, canary: &Canary) {
        let kind = match (seen.esp().is_some(), seen.ike().is_some()) {
            (true, _) => &mut self.esp,
            (_, true) => &mut self.ike,
            _ => &mut self.other,
        };
        *kind += 1;
        self.packets += 1;
        if self.packets.is_multiple_of(SEARCHED) {
            let sightings = canary.search("wire", &seen.octets);
            self.searched += sightings.searched;
            self.found += sightings.found;
        }
    }
}

/// Captures, counts and searches packets until `over` is set.
pub(super) fn watch(
    network: &Network,
    content: &Marked,
    mut capture: Capture,
    teller: &Teller,
    over: &AtomicBool,
) -> Result<()> {
    let tap = Wiretap::open(&network.between)?;
    let mut inside = Some(Wiretap::open(&network.host)?);
    let canary = Canary::new(content);
    let mut wire = Wire::default();
    loop {
        let is_last = over.load(Ordering::Relaxed);
        while let Some(seen) = tap.next()? {
            wire.note(&seen, &canary);
            capture.add(&seen)?;
        }
        if let Some(tap) = &inside {
            let packets = tap.rest()?;
            let mut packets = packets.iter();
            wire.found_inside = packets.any(|seen| canary.search("host", &seen.octets).found > 0);
        }
        // It has seen enough.
        inside = inside.filter(|_| !wire.found_inside);
        if is_last {
            break;
        }
        thread::sleep(LOOK);
    }
    capture.close()?;
    teller.tell(News::Wire(wire));
    Ok(())
}

/// Returns what tshark says of a capture, if it is installed.
pub(super) fn dissect(host: &Host, capture: &Path) -> Result<Option<Dissected>> {
    let Ok(tshark) = find_command("tshark", "tshark") else {
        return Ok(None);
    };
    let mut command = host.command(tshark);
    // Settings of the user do not apply.
    command.env("WIRESHARK_CONFIG_DIR", host.directory());
    command
        .arg("-n")
        .arg("-r")
        .arg(std::path::absolute(capture)?);
    command.args(["-T", "fields", "-e", "frame.protocols"]);
    let output = host.run_command(command, DEADLINE)?;
    Ok(Some(dissected(&output)))
}

fn dissected(output: &str) -> Dissected {
    let mut dissected = Dissected::default();
    // Other lines are remarks, such as that it runs as root.
    let packets = output.lines().filter(|line| line.starts_with("raw:"));
    for protocols in packets {
        match protocols.rsplit(':').next() {
            _ if protocols.contains(":icmp") => dissected.note_other(protocols),
            Some("esp") => dissected.esp += 1,
            Some("isakmp") => dissected.isakmp += 1,
            _ => dissected.note_other(protocols),
        }
    }
    dissected
}

impl Dissected {
    fn note_other(&mut self, protocols: &str) {
        self.other += 1;
        self.first_other.get_or_insert_with(|| protocols.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_neither_esp_nor_ike_is_named() {
        let output = "Running as user \"root\"\nraw:ip:udp:udpencap:esp\nraw:ip:udp:isakmp\n\
                      raw:ip:icmp:ip:udp:udpencap:esp\nraw:ip:tcp:http\nraw:ip:udp:udpencap:esp\n";
        let expected = Dissected {
            esp: 2,
            isakmp: 1,
            other: 2,
            first_other: Some("raw:ip:icmp:ip:udp:udpencap:esp".to_owned()),
        };
        assert_eq!(dissected(output), expected);
    }
}
