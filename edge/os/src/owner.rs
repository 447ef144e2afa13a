//! The owner of a port: the kernel lists sockets with their inodes, and each process's descriptors
//! link to theirs. Only processes that we may inspect are found; root may inspect all.

use std::fmt;
use std::fs;

/// The process that has a port, if it could be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner(Option<Process>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    name: String,
    id: u32,
}

impl Owner {
    /// Finds the owner of a UDP port in the calling thread's network namespace.
    pub(crate) fn of_udp_port(port: u16) -> Self {
        Self::of_port("udp", port)
    }

    /// Finds the owner of a TCP port in the calling thread's network namespace.
    pub(crate) fn of_tcp_port(port: u16) -> Self {
        Self::of_port("tcp", port)
    }

    fn of_port(protocol: &str, port: u16) -> Self {
        let inodes = inodes_of(protocol, port);
        Self(processes().find(|process| has_socket(process.id, &inodes)))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(Process { name, id }) => write!(f, " by {name} (process {id})"),
            None => Ok(()),
        }
    }
}

/// Reads /proc/net/udp and tcp. The second column has the local address and port in hexadecimal,
/// the tenth the inode.
fn inodes_of(protocol: &str, port: u16) -> Vec<String> {
    let suffix = format!(":{port:04X}");
    ["", "6"]
        .map(|family| format!("/proc/thread-self/net/{protocol}{family}"))
        .iter()
        .flat_map(fs::read_to_string)
        .flat_map(|table| {
            let lines = table.lines().skip(1).map(|line| {
                let columns: Vec<&str> = line.split_ascii_whitespace().collect();
                let local = columns.get(1)?.ends_with(&suffix);
                local.then(|| format!("socket:[{}]", columns.get(9).unwrap_or(&"")))
            });
            lines.flatten().collect::<Vec<_>>()
        })
        .collect()
}

fn processes() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let name = fs::read_to_string(entry.path().join("comm")).ok()?;
        let name = name.trim_end().to_owned();
        Some(Process { name, id })
    })
}

fn has_socket(process: u32, inodes: &[String]) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd"));
    let mut links = descriptors
        .into_iter()
        .flatten()
        .flatten()
        .flat_map(|descriptor| fs::read_link(descriptor.path()));
    links.any(|link| {
        inodes
            .iter()
            .any(|inode| link.as_os_str() == inode.as_str())
    })
}
