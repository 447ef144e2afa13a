//! `strata doctor`: finds each fault that the test creates, and no fault on a healthy machine.
//!
//! The clock, the right to create namespaces and the kernel belong to the machine that runs the
//! tests. The check of a healthy host ignores their findings.

use anyhow::{Context, Result, bail, ensure};
use lab::host::Host;
use lab::pair::{self, DEADLINE, Pair, Terms};
use lab::process::until;
use lab::testbed::{find_binary, find_command};
use os::Family;
use serde_json::Value;
use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;

/// The report of `strata doctor` on a host.
struct Report(Value);

impl Report {
    fn new(host: &Host, config: &str) -> Result<Self> {
        Self::when(host, config, "true")
    }

    /// Runs the doctor in a mount namespace of its own, after a shell command that prepares it.
    fn when(host: &Host, config: &str, prepare: &str) -> Result<Self> {
        Self::through(host, config, prepare, "")
    }

    fn through(host: &Host, config: &str, prepare: &str, wrapper: &str) -> Result<Self> {
        let socket = host.directory().join("api.sock");
        let control = format!("\n[control]\nsocket = \"{}\"\n", socket.display());
        let config = host.file("doctor.toml", &format!("{config}{control}"))?;
        // Exit status 1 is a valid result; the exact status is compared below.
        let line = format!(
            "{prepare} && {wrapper} {} doctor {} --json; echo \" $?\"",
            find_binary("strata")?.display(),
            config.display()
        );
        let mut command = host.command("unshare");
        command.args(["--mount", "sh", "-c", &line]);
        let answer = host.run_command(command, DEADLINE)?;
        let (json, status) = answer.trim_end().rsplit_once(' ').context("no status")?;
        let report: Value = serde_json::from_str(json).with_context(|| answer.clone())?;
        let expected = if report["doctor"]["ok"] == true {
            "0"
        } else {
            "1"
        };
        ensure!(status == expected, "exit status {status}: {json}");
        Ok(Self(report))
    }

    fn findings(&self) -> Vec<&Value> {
        let findings = self.0["doctor"]["findings"].as_array();
        findings.into_iter().flatten().collect()
    }

    /// Fails unless all findings are good.
    fn is_healthy(&self) -> Result<()> {
        const MACHINES: [&str; 3] = ["clock", "offload", "user namespaces"];
        for finding in self.findings() {
            let of_the_machine = MACHINES.iter().any(|check| finding["check"] == *check);
            ensure!(of_the_machine || finding["verdict"] == "ok", "{finding}");
        }
        Ok(())
    }

    /// Fails without a finding of this verdict that contains these words, a reason and a fix.
    fn has(&self, check: &str, verdict: &str, words: &str) -> Result<()> {
        let fits = |finding: &&&Value| {
            let text = |field: &str| finding[field].as_str().unwrap_or("").to_owned();
            finding["check"] == check
                && finding["verdict"] == verdict
                && (text("seen") + &text("fix")).contains(words)
                && !text("why").is_empty()
                && !text("fix").is_empty()
        };
        match self.findings().iter().any(|finding| fits(&finding)) {
            true => Ok(()),
            false => bail!("no {verdict} of {check} with {words:?}: {}", self.0),
        }
    }
}

fn mobile_config() -> String {
    pair::mobile_config(Family::V4, Terms::PLAIN, "manual")
}

/// A mobile node with its key.
fn bed() -> Result<Pair> {
    let pair = Pair::new("doctor")?;
    pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    Ok(pair)
}

// Works: doctor
#[lab::test]
fn a_healthy_host_has_no_finding_with_a_daemon_or_without() -> Result<()> {
    let pair = bed()?;
    Report::new(&pair.mobile, &mobile_config())?.is_healthy()?;
    let mut mobile = pair.mobile.stratad(&mobile_config())?;
    mobile.strata("status")?;
    Report::new(&pair.mobile, &mobile_config())?.is_healthy()?;
    mobile.stop()?;
    Report::new(&pair.mobile, &mobile_config())?.is_healthy()
}

// Works: doctor
#[lab::test]
fn a_healthy_licensed_node_has_no_finding_with_a_daemon_or_without() -> Result<()> {
    let pair = bed()?;
    let config = pair::licensed_config(pair::LICENSED);
    let mut node = pair.start_licensed(pair::LICENSED)?;
    node.strata("status")?;
    Report::new(&pair.between, &config)?.is_healthy()?;
    // A failing task of a running daemon, which the check of the machine reports.
    let settings = ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"];
    for setting in settings {
        pair.between.sysctl(setting, "0")?;
    }
    let report = Report::new(&pair.between, &config)?;
    report.has("forwarding", "fail", "sysctl -w net.ipv4.ip_forward=1")?;
    let mut told = report.findings();
    told.retain(|finding| finding["check"] == "daemon");
    ensure!(told.len() == 1 && told[0]["verdict"] == "ok", "{told:?}");
    for setting in settings {
        pair.between.sysctl(setting, "1")?;
    }
    Report::new(&pair.between, &config)?.is_healthy()?;
    node.stop()?;
    Report::new(&pair.between, &config)?.is_healthy()
}

#[lab::test]
fn a_configuration_with_a_fault_or_an_open_key_is_found() -> Result<()> {
    let pair = bed()?;
    let config = mobile_config().replace("start =", "strat =");
    Report::new(&pair.mobile, &config)?.has("configuration", "fail", "`start`")?;
    let key = pair.mobile.directory().join("tunnel.psk");
    fs::set_permissions(key, fs::Permissions::from_mode(0o644))?;
    Report::new(&pair.mobile, &mobile_config())?.has("configuration", "fail", "chmod 0600")
}

// Refuses: doctor
#[lab::test]
fn without_a_configuration_the_machine_is_examined() -> Result<()> {
    let pair = bed()?;
    let report = Report::when(&pair.mobile, &mobile_config(), "rm doctor.toml")?;
    report.has("configuration", "warn", "doctor.toml")?;
    ensure!(report.findings().len() > 4, "{}", report.0);
    Ok(())
}

#[lab::test]
fn ports_of_another_daemon_are_found() -> Result<()> {
    let pair = bed()?;
    let _other = pair.mobile.inside(|| Ok(UdpSocket::bind("0.0.0.0:500")?))?;
    Report::new(&pair.mobile, &mobile_config())?.has("ports", "fail", "UDP port 500 is taken")
}

// Works: doctor
#[lab::test]
fn a_strict_reverse_path_is_found_where_it_matters() -> Result<()> {
    let pair = bed()?;
    pair.mobile.sysctl("net.ipv4.conf.eth0.rp_filter", "1")?;
    Report::new(&pair.mobile, &mobile_config())?.is_healthy()?;
    let everything = mobile_config().replace("remote = [", "remote = [\"192.0.2.0/24\", ");
    Report::new(&pair.mobile, &everything)?.has("rp_filter", "fail", "conf.eth0.rp_filter=2")
}

// Recovers: doctor
#[lab::test]
fn what_a_killed_daemon_left_is_found() -> Result<()> {
    let pair = bed()?;
    let _gateway = pair.start_gateway(Terms::PLAIN)?;
    let resolver = pair.mobile.file("resolv.conf", "nameserver 192.0.2.53\n")?;
    let tunnel = format!(
        "[tunnel]\ndns = [\"10.8.0.53\"]\nresolver = \"{}\"\n",
        resolver.display()
    );
    let config = mobile_config().replace("[tunnel]\n", &tunnel);
    let mut mobile = pair.mobile.stratad(&config)?;
    mobile.strata_text("up office --wait")?;
    mobile.process().crash()?;
    let report = Report::new(&pair.mobile, &config)?;
    report.has("leftovers", "warn", "10.8.0.0/16")?;
    report.has("name servers", "fail", "before-strata")?;
    let mut node = pair.start_licensed(pair::LICENSED)?;
    node.strata("status")?;
    node.process().crash()?;
    let config = pair::licensed_config(pair::LICENSED);
    Report::new(&pair.between, &config)?.has("leftovers", "warn", "routing rules")
}

#[lab::test]
fn a_lock_without_a_daemon_is_told_also_by_status() -> Result<()> {
    let pair = bed()?;
    let config = mobile_config() + "leak = \"never\"\n";
    let mut mobile = pair.mobile.stratad(&config)?;
    let status = mobile.strata("status")?;
    let locked = status["status"]["locked"].to_string();
    ensure!(locked.contains("10.8.0.0/16"), "{status}");
    mobile.stop()?;
    Report::new(&pair.mobile, &config)?.has("leftovers", "warn", "stratad --unlock")?;
    let refusal = mobile.strata_text("status").expect_err("nobody answers");
    let refusal = format!("{refusal:#}");
    ensure!(refusal.contains("stratad --unlock"), "{refusal}");
    Ok(())
}

#[lab::test]
fn a_missing_filter_is_found() -> Result<()> {
    let pair = bed()?;
    let nft = find_command("nft", "nftables")?;
    let hide = format!("mount --bind /dev/null {}", nft.display());
    let locked = mobile_config() + "leak = \"never\"\n";
    Report::new(&pair.mobile, &locked)?.is_healthy()?;
    Report::when(&pair.mobile, &locked, &hide)?.has("nft", "fail", "apt-get install nftables")?;
    Report::when(&pair.mobile, &mobile_config(), &hide)?.is_healthy()
}

#[lab::test]
fn a_missing_tun_is_found() -> Result<()> {
    let pair = bed()?;
    let hide = "mount -t tmpfs none /dev/net";
    Report::when(&pair.mobile, &mobile_config(), hide)?.has("tun", "fail", "modprobe tun")?;
    let replace = "mount --bind /dev/null /dev/net/tun";
    Report::when(&pair.mobile, &mobile_config(), replace)?.has("tun", "fail", "not the TUN device")
}

// Works: doctor
#[lab::test]
fn a_clock_that_went_back_is_found() -> Result<()> {
    let pair = bed()?;
    let report = |date: &str| {
        let touch = format!("touch --date='{date}' doctor.toml");
        Report::when(&pair.mobile, &mobile_config(), &touch)
    };
    report("3 hours")?.has("clock", "warn", "set back")?;
    let now = report("3 hours ago")?.has("clock", "warn", "set back");
    ensure!(now.is_err(), "a file of this morning is no clock");
    Ok(())
}

/// The limit and the right to change it belong to a user namespace.
// Works: doctor
#[lab::test]
fn forbidden_user_namespaces_are_found() -> Result<()> {
    let pair = bed()?;
    let report = |limit: &str| {
        let file = "/proc/sys/user/max_user_namespaces";
        let wrapper =
            format!("unshare --user --map-root-user sh -c '{limit} >{file}; exec \"$@\"' -");
        Report::through(&pair.mobile, &mobile_config(), "true", &wrapper)
    };
    let told = "sysctl -w user.max_user_namespaces=10000";
    report("echo 0")?.has("user namespaces", "warn", told)?;
    let allowed = report("echo 1000")?.has("user namespaces", "warn", told);
    ensure!(allowed.is_err(), "they are allowed");
    Ok(())
}

// Refuses: doctor
#[lab::test]
fn missing_rights_are_told() -> Result<()> {
    let pair = bed()?;
    let without = "setpriv --bounding-set -net_admin,-net_bind_service";
    let report = Report::through(&pair.mobile, &mobile_config(), "true", without)?;
    report.has("rights", "warn", "CAP_NET_ADMIN and CAP_NET_BIND_SERVICE")?;
    report.has("ports", "warn", "sudo strata doctor")?;
    let without = "setpriv --bounding-set -net_raw";
    let config = mobile_config();
    let bare = format!("{config}[listen]\nencapsulation = \"nat\"\n");
    let report = Report::through(&pair.mobile, &bare, "true", without)?;
    report.has("rights", "warn", "CAP_NET_RAW")?;
    let needless = Report::through(&pair.mobile, &config, "true", without)?;
    ensure!(needless.has("rights", "warn", "CAP_NET_RAW").is_err());
    Ok(())
}

#[lab::test]
fn a_short_mtu_and_a_missing_way_are_found() -> Result<()> {
    let pair = bed()?;
    pair.set_mtu(1400)?;
    // Probes and the MSS handle it.
    let by_itself = Report::new(&pair.mobile, &mobile_config())?;
    ensure!(by_itself.has("mtu", "warn", "").is_err());
    let off = mobile_config().replacen("[tunnel]", "[tunnel]\npath_mtu = \"off\"", 1);
    Report::new(&pair.mobile, &off)?.has("mtu", "warn", "mtu = 1303 in [tunnel]")?;
    pair.mobile.run("ip route delete default")?;
    Report::new(&pair.mobile, &mobile_config())?.has("mtu", "warn", "no route to 192.0.2.1")
}

// Works: failures
#[lab::test]
fn a_firewall_that_drops_by_default_is_found() -> Result<()> {
    let pair = bed()?;
    pair.mobile.run("nft add table inet filter")?;
    let chain = "add chain inet filter input { type filter hook input priority 0 ; policy drop ; }";
    let rules = pair.mobile.file("rules.nft", chain)?;
    pair.mobile.run(&format!("nft -f {}", rules.display()))?;
    let rule = "nft add rule inet filter input udp dport";
    Report::new(&pair.mobile, &mobile_config())?.has("firewall", "warn", rule)
}

/// As Docker sets it. It concerns every host that forwards, also one that connects to its peer.
// Works: failures
#[lab::test]
fn a_firewall_that_drops_what_is_forwarded_is_found_where_a_role_forwards() -> Result<()> {
    let pair = bed()?;
    let chain = "table ip filter {\n\
                 chain FORWARD { type filter hook forward priority 0 ; policy drop ; }\n}";
    for host in [&pair.mobile, &pair.between] {
        let rules = host.file("rules.nft", chain)?;
        host.run(&format!("nft -f {}", rules.display()))?;
    }
    Report::new(&pair.mobile, &mobile_config())?.is_healthy()?;
    let site = mobile_config().replace("\"10.1.0.2/32\", ", "\"10.1.0.0/24\", ");
    ensure!(site.contains("address = \"192.0.2.1\"") && site.contains("10.1.0.0/24"));
    let rule = "nft insert rule ip filter FORWARD iifname '{ strata0 }' accept";
    Report::new(&pair.mobile, &site)?.has("firewall", "warn", rule)?;
    pair.mobile.run(&rule.replace('\'', ""))?;
    pair.between
        .secret("node.psk", "a key that nobody asks for")?;
    let licensed = pair::licensed_config(pair::LICENSED);
    let devices = "'{ strata-wired, strata-wireless }'";
    Report::new(&pair.between, &licensed)?.has("firewall", "warn", devices)
}

#[lab::test]
fn a_gateway_and_a_licensed_node_that_do_not_forward_are_found() -> Result<()> {
    let pair = bed()?;
    let gateway = mobile_config()
        .replace("address = \"192.0.2.1\"\n", "")
        .replace("start = \"manual\"\n", "")
        .replace("local = [\"10.1.0.2/32\"", "local = [\"10.1.0.0/24\"");
    let forwards = "net.ipv4.ip_forward=1";
    Report::new(&pair.mobile, &gateway)?.has("forwarding", "warn", forwards)?;
    pair.mobile.sysctl("net.ipv4.ip_forward", "1")?;
    Report::new(&pair.mobile, &gateway)?.is_healthy()?;
    pair.between
        .secret("node.psk", "a key that nobody asks for")?;
    pair.between.sysctl("net.ipv4.ip_forward", "0")?;
    pair.between.sysctl("net.ipv6.conf.all.forwarding", "0")?;
    let licensed = pair::licensed_config(pair::LICENSED);
    Report::new(&pair.between, &licensed)?.has("forwarding", "fail", forwards)
}

// Refuses: licensed-node
#[lab::test]
fn a_missing_interface_and_missing_rules_are_found() -> Result<()> {
    let pair = bed()?;
    let config = pair::licensed_config(pair::LICENSED);
    let node = pair.start_licensed(pair::LICENSED)?;
    node.strata("status")?;
    let renamed = config.replace("wired = \"wired\"", "wired = \"wird\"");
    Report::new(&pair.between, &renamed)?.has("divert", "fail", "no interface wird")?;
    // The daemon restores the rules until it gives up.
    until("missing rules to be found", DEADLINE, || {
        for family in ["", "-6 "] {
            let delete = format!("ip {family}rule delete iif wired");
            while pair.between.run(&delete).is_ok() {}
        }
        let report = Report::new(&pair.between, &config)?;
        let found = report.has("divert", "fail", "arrive at wired");
        Ok(found.ok())
    })
}
