//! Checks of the machine: permissions, devices, ports, programs, the clock, and leftovers of a dead
//! daemon.
//!
//! Observation and judgement are separate functions wherever a test cannot create the condition.

use super::finding::Finding;
use config::Config;
use model::Encapsulation;
use os::resolver::{self, ResolverManager};
use os::{
    Datagrams, Error, Netlink, Routes, clear, clock, divert, files, lock, routes, sysctl, tun,
};
use std::fs::File;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Start of 2024. A clock before this time was never set.
const FIRST_LIGHT: Duration = Duration::from_secs(1_704_067_200);

/// Tolerance for the time stamp of a file, as folders may be shared between machines.
const PATIENCE: Duration = Duration::from_secs(60);

/// Capabilities that stratad needs, with their bits as in capabilities(7).
const NEEDED: [(u32, &str); 2] = [(12, "CAP_NET_ADMIN"), (10, "CAP_NET_BIND_SERVICE")];

/// Capability for ESP without UDP.
const RAW: (u32, &str) = (13, "CAP_NET_RAW");

/// Runs all checks of the machine.
pub fn examine(config: Option<&Config>, runs: bool) -> Vec<Finding> {
    let mut findings = tun_device();
    findings.push(user_namespaces());
    findings.push(time_of_day(config));
    if !runs {
        findings.push(rights(config));
        findings.extend(ports(config));
        findings.extend(leftovers());
    }
    findings.push(name_servers(config, runs));
    findings.extend(config.into_iter().flat_map(written));
    if config.is_some_and(|config| !config.peers.is_empty()) {
        findings.push(guard(runs));
    }
    if config.is_some_and(|config| config.peers.iter().any(is_locked)) {
        findings.push(filter());
    }
    findings
}

/// Checks the files that stratad writes: leases, sessions and the audit log.
fn written(config: &Config) -> Vec<Finding> {
    let store = (!config.pools.is_empty()).then_some(("store", &config.store));
    let sessions = config.sessions.file.as_ref().map(|file| ("sessions", file));
    let audit = config.audit.as_ref().map(|audit| ("audit", &audit.file));
    let finding = |(table, file): (&'static str, &PathBuf)| {
        let shown = file.display();
        match files::check_writable(file) {
            Ok(()) => Finding::good(table, format!("{shown} can be written")),
            Err(error) => Finding::fail(
                table,
                format!("{shown} cannot be written: {error}"),
                "stratad records leases, sessions and the use of keys there",
                format!(
                    "make its folder writable for stratad, or name another `file` in [{table}]"
                ),
            ),
        }
    };
    let files = store.into_iter().chain(sessions).chain(audit);
    files.map(finding).collect()
}

fn is_locked(peer: &config::Peer) -> bool {
    peer.leak == config::Leak::Never
}

fn tun_device() -> Vec<Finding> {
    const NODE: &str = "/dev/net/tun";
    const WHY: &str = "stratad sends and receives inner packets through a TUN device";
    const FIX: &str = "modprobe tun (in a container: start it with `--device /dev/net/tun`)";
    let opened = File::options().read(true).write(true).open(NODE);
    let offers_offload = opened.as_ref().ok().map(tun::offers_offload);
    match (opened.map_err(|error| error.kind()), offers_offload) {
        (Ok(_), Some(Some(offers))) => {
            let opened = format!("{NODE} can be opened");
            vec![Finding::good("tun", opened), offload(offers)]
        }
        (Err(ErrorKind::PermissionDenied), _) => {
            let seen = format!("this user may not open {NODE}");
            let fix = format!("chmod 666 {NODE}");
            vec![Finding::doubt("tun", seen, WHY, fix)]
        }
        (Ok(_), _) => vec![Finding::fail(
            "tun",
            format!("{NODE} is not the TUN device"),
            WHY,
            FIX,
        )],
        (Err(_), _) => {
            let seen = format!("{NODE} cannot be opened");
            vec![Finding::fail("tun", seen, WHY, FIX)]
        }
    }
}

fn offload(offers: bool) -> Finding {
    const CHECK: &str = "offload";
    match offers {
        true => Finding::good(CHECK, "TUN devices accept many packets at once"),
        false => Finding::doubt(
            CHECK,
            "TUN devices accept one packet at a time",
            "tunnels work, but need more processor time on fast links",
            "run stratad on a Linux kernel, not on an emulated one (gVisor)",
        ),
    }
}

fn user_namespaces() -> Finding {
    const CHECK: &str = "user namespaces";
    let forbidding = [
        ("user.max_user_namespaces", "0", "10000"),
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ];
    let forbids = |(name, value, _): &&(&str, &str, &str)| {
        sysctl::get(name).is_ok_and(|found| found == *value)
    };
    match forbidding.iter().find(forbids) {
        None => Finding::good(CHECK, "unprivileged users may create them"),
        Some((name, value, wanted)) => Finding::doubt(
            CHECK,
            format!("{name} is {value}"),
            "`strata-lab` then needs root; stratad is not affected",
            format!("sysctl -w {name}={wanted}"),
        ),
    }
}

fn time_of_day(config: Option<&Config>) -> Finding {
    let since = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH);
    let written = config.and_then(|config| config.places.file().metadata().ok()?.modified().ok());
    clock(
        since(SystemTime::now()).unwrap_or_default(),
        written
            .and_then(|time| since(time).ok())
            .unwrap_or_default(),
        clock::is_synchronised(),
    )
}

/// Checks the clock. A configuration `written` in the future shows that the clock went back.
fn clock(now: Duration, written: Duration, synchronised: Option<bool>) -> Finding {
    const WHY: &str =
        "certificates are valid for a period of time; other timers do not depend on this clock";
    const FIX: &str = "timedatectl set-ntp true (or start another NTP client)";
    match synchronised {
        _ if now < FIRST_LIGHT => Finding::fail("clock", "never set", WHY, FIX),
        _ if now + PATIENCE < written => Finding::doubt(
            "clock",
            format!(
                "set back: the configuration was written {} minutes in the future",
                (written - now).as_secs() / 60
            ),
            WHY,
            FIX,
        ),
        Some(true) => Finding::good("clock", "synchronised with a time server"),
        Some(false) => Finding::doubt("clock", "not synchronised with a time server", WHY, FIX),
        None => Finding::doubt(
            "clock",
            "the kernel does not report whether it is synchronised",
            WHY,
            FIX,
        ),
    }
}

fn rights(config: Option<&Config>) -> Finding {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    let lacks = |(bit, _): &(u32, _)| effective.unwrap_or(0) >> bit & 1 == 0;
    let bare = |config: &&Config| config.listen.encapsulation == Encapsulation::ForNat;
    let raw = config.filter(bare).map(|_| RAW);
    let missing: Vec<_> = NEEDED
        .into_iter()
        .chain(raw)
        .filter(lacks)
        .map(|(_, name)| name)
        .collect();
    match missing.is_empty() {
        true => Finding::good("rights", "all that stratad needs"),
        false => Finding::doubt(
            "rights",
            format!("this user lacks {}", missing.join(" and ")),
            "some checks need the privileges of stratad",
            "run `sudo strata doctor`",
        ),
    }
}

/// Checks that the ports are free. Called only if no stratad runs.
fn ports(config: Option<&Config>) -> Vec<Finding> {
    const WHY: &str = "IKE and ESP arrive at these ports";
    let listen = config.map_or((500, 4500), |config| (config.listen.ike, config.listen.nat));
    let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let ports = [listen.0, listen.1].into_iter();
    let sockets = ports.flat_map(|port| any.map(|any| SocketAddr::new(any, port)));
    let finding = |error: Error| match error {
        Error::PortTaken {
            protocol,
            port,
            owner,
        } => Some(Finding::fail(
            "ports",
            format!("{protocol} port {port} is taken{owner}"),
            WHY,
            "stop that program (strongSwan: `systemctl stop strongswan-starter`), \
             or choose another port in [listen]",
        )),
        Error::NoFamily { .. } => None,
        error => Some(Finding::doubt(
            "ports",
            error.to_string(),
            WHY,
            "run `sudo strata doctor`",
        )),
    };
    let mut findings: Vec<_> = sockets
        .filter_map(|socket| Datagrams::udp(socket, None).err())
        .filter_map(finding)
        .collect();
    findings.dedup();
    if findings.is_empty() {
        findings.push(Finding::good(
            "ports",
            format!("UDP {} and {} are free", listen.0, listen.1),
        ));
    }
    findings
}

/// Checks for rules and blackhole routes of a dead daemon. Called only if no stratad runs.
fn leftovers() -> Vec<Finding> {
    const CHECK: &str = "leftovers";
    let held = Routes::held().unwrap_or_default();
    let rules = Netlink::open().and_then(|netlink| netlink.rules());
    let ours = [divert::PRIORITY, routes::PRIORITY];
    let rules = rules.unwrap_or_default();
    let rules = rules
        .iter()
        .filter(|rule| ours.contains(&rule.priority))
        .count();
    let mut findings = Vec::new();
    if !held.is_empty() {
        let held: Vec<_> = held.iter().map(ToString::to_string).collect();
        findings.push(Finding::doubt(
            CHECK,
            format!(
                "{} cannot be reached: blocked until a tunnel is up",
                held.join(", ")
            ),
            "stratad was killed, or stopped with `leak = \"never\"`; no packet leaves in clear",
            "start stratad, or lift the block with `stratad --unlock`",
        ));
    } else if rules > 0 {
        findings.push(Finding::doubt(
            CHECK,
            format!("{rules} routing rules of a stratad that has ended"),
            "they have no effect: packets take the default routes",
            "start stratad, or remove them with `stratad --unlock`",
        ));
    } else {
        findings.push(Finding::good(CHECK, "none"));
    }
    findings
}

fn name_servers(config: Option<&Config>, runs: bool) -> Finding {
    const CHECK: &str = "name servers";
    let named = config.and_then(|config| config.tunnel.resolver.clone());
    let file = match named.map_or_else(ResolverManager::of_this_machine, ResolverManager::File) {
        ResolverManager::Resolved => return Finding::good(CHECK, "managed by systemd-resolved"),
        ResolverManager::Resolvconf => return Finding::good(CHECK, "managed by resolvconf"),
        ResolverManager::File(file) => file,
    };
    let shown = file.display();
    if runs || !resolver::is_ours(&file) {
        let whose = if resolver::is_ours(&file) {
            "set by stratad"
        } else {
            "not set by stratad"
        };
        return Finding::good(CHECK, format!("{shown}, {whose}"));
    }
    let aside = resolver::aside(&file);
    Finding::fail(
        CHECK,
        format!("{shown} lists name servers behind a tunnel that is down"),
        "names are not resolved: stratad was killed before it could restore the file",
        format!("start stratad, or `mv {} {shown}`", aside.display()),
    )
}

/// Checks the filter that drops packets in clear with a claimed inner address.
fn guard(runs: bool) -> Finding {
    const CHECK: &str = "clear";
    const WHY: &str = "packets in clear with a source address inside a tunnel are accepted";
    let dropped = clear::require().and_then(|()| clear::dropped());
    match (dropped, runs) {
        (Ok(Some(packets @ 1..)), true) => Finding::doubt(
            CHECK,
            format!(
                "{packets} packets in clear with a source address inside a tunnel were dropped"
            ),
            "a host spoofs a peer's address, or a peer bypasses its tunnel",
            "find the source with `strata status`; to allow such packets, add a `[[policy]]` with \
             `action = \"bypass\"`",
        ),
        (Ok(Some(_)), true) => Finding::good(CHECK, "no spoofed packets"),
        (Ok(None), true) => Finding::fail(
            CHECK,
            "the table strata_clear is missing in nftables",
            WHY,
            "restart stratad: it sets the table again",
        ),
        (Ok(_), false) => Finding::good(CHECK, "nftables is in the kernel"),
        (Err(Error::NoRight { .. }), _) => Finding::doubt(
            CHECK,
            "not visible to this user",
            "only root can see whether packets in clear are dropped",
            "sudo strata doctor",
        ),
        (Err(error), _) => Finding::fail(
            CHECK,
            error.to_string(),
            WHY,
            "modprobe nf_tables nf_tables_inet; until then, for IPv4 only, \
             `sysctl -w net.ipv4.conf.all.rp_filter=1`",
        ),
    }
}

fn filter() -> Finding {
    match lock::is_possible() {
        true => Finding::good("nft", "installed"),
        false => Finding::fail(
            "nft",
            "the program nft is missing",
            "a peer has `leak = \"never\"`, which needs nftables",
            "apt-get install nftables",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn a_tun_that_takes_one_packet_at_a_time_is_told() {
        assert_eq!(offload(false).verdict, Verdict::Doubt);
        assert_eq!(offload(true).verdict, Verdict::Good);
    }

    #[test]
    fn a_clock_that_went_back_is_told() {
        let now = FIRST_LIGHT + Duration::from_secs(1);
        let after = |seconds| clock(now, now + Duration::from_secs(seconds), Some(true));
        assert_eq!(after(60).verdict, Verdict::Good);
        assert_eq!(after(120).verdict, Verdict::Doubt);
        assert!(after(120).seen.contains("2 minutes"), "{}", after(120).seen);
    }

    #[test]
    fn a_clock_is_never_set_not_kept_not_told_or_right() {
        let now = FIRST_LIGHT + Duration::from_secs(1);
        let verdict = |now, synchronised| clock(now, FIRST_LIGHT, synchronised).verdict;
        assert_eq!(
            verdict(Duration::from_secs(3600), Some(true)),
            Verdict::Fail
        );
        assert_eq!(verdict(now, Some(false)), Verdict::Doubt);
        assert_eq!(verdict(now, None), Verdict::Doubt);
        assert_eq!(verdict(now, Some(true)), Verdict::Good);
    }
}
