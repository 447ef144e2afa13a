//! Metrics over HTTP, read as Prometheus reads them: `promtool` judges names and rules.

use anyhow::{Context, Result, bail, ensure};
use lab::host::Host;
use lab::pair::{DEADLINE, GATEWAY, Pair, Tunnel};
use lab::plain;
use lab::process::until;
use lab::transfer::transfer;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Where the gateway listens.
const LISTEN: &str = "127.0.0.1:9580";

/// The folder of the alert rules and the dashboard.
fn folder() -> std::path::PathBuf {
    pages::repository().join("pack/prometheus")
}

/// Configurations of both ends, with metrics of the gateway.
fn configs(listen: &str) -> [String; 2] {
    let [mobile, gateway] = plain::configs("", "");
    [
        mobile,
        format!("{gateway}[metrics]\nlisten = \"{listen}\"\n"),
    ]
}

fn start(pair: &Pair) -> Result<Tunnel> {
    let tunnel = plain::start_with(pair, &configs(LISTEN))?;
    tunnel.up()?;
    Ok(tunnel)
}

fn scrape(host: &Host) -> Result<String> {
    host.run(&format!(
        "curl -sS --fail --max-time 60 http://{LISTEN}/metrics"
    ))
}

/// Returns the samples of a text, by name and labels.
fn samples(text: &str) -> Result<BTreeMap<&str, f64>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let samples = lines.map(|line| {
        let (name, value) = line.rsplit_once(' ').context("no value")?;
        Ok((name, value.parse()?))
    });
    samples.collect()
}

fn sample(host: &Host, name: &str) -> Result<f64> {
    let text = scrape(host)?;
    let samples = samples(&text)?;
    let value = samples.get(name).copied();
    value.with_context(|| format!("no {name} in {text}"))
}

/// Waits until all metrics of the peer have a value: the gateway measures with its own requests.
fn await_all(host: &Host) -> Result<()> {
    until("measurements of the path", DEADLINE, || {
        let text = scrape(host)?;
        let has = |name: &str| text.contains(&format!("strata_{name}{{peer=\"alice\"}}"));
        Ok((has("peer_round_trip_seconds") && has("tunnel_path_mtu_bytes")).then_some(()))
    })
}

/// Runs promtool, and returns its output if it accepts the input.
fn promtool(arguments: &[&str], input: &str, directory: &Path) -> Result<String> {
    let mut promtool = Command::new("promtool")
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("promtool, of the package prometheus")?;
    let mut stdin = promtool.stdin.take().context("a pipe")?;
    stdin.write_all(input.as_bytes())?;
    drop(stdin);
    let output = promtool.wait_with_output()?;
    let [out, err] = [output.stdout, output.stderr].map(String::from_utf8);
    let text = format!("{}{}", out?, err?);
    ensure!(
        output.status.success() && !text.contains("FAILED"),
        "{text}"
    );
    Ok(text)
}

fn judge(text: &str) -> Result<()> {
    let said = promtool(&["check", "metrics"], text, &folder())?;
    ensure!(said.is_empty(), "{said}");
    Ok(())
}

// Works: metrics
#[lab::test]
fn promtool_finds_nothing_wrong_with_what_is_scraped_under_traffic() -> Result<()> {
    const OCTETS: u64 = 2_000_000;
    let pair = Pair::new("metrics")?;
    let mut tunnel = start(&pair)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], OCTETS)?;
    await_all(&pair.gateway)?;
    let text = scrape(&pair.gateway)?;
    judge(&text)?;
    // Negative controls.
    for (from, to) in [
        ("esp_dropped_total", "esp_dropped"),
        ("_bytes_total", "_megabytes_total"),
        ("# HELP strata_peers_up ", "# NO strata_peers_up "),
        ("strata_child_sas 1", "strata_child_sas one"),
    ] {
        let wrong = text.replace(from, to);
        ensure!(wrong != text, "no {from}");
        ensure!(judge(&wrong).is_err(), "promtool accepts {to}");
    }
    let received = "strata_tunnel_received_bytes_total{peer=\"alice\"}";
    let samples = samples(&text)?;
    ensure!(samples[received] >= OCTETS as f64, "{text}");
    ensure!(samples["strata_tunnel_up{peer=\"alice\"}"] == 1.0);
    ensure!(samples["strata_ike_setup_duration_seconds_count"] == 1.0);
    ensure!(samples["strata_build_info{version=\"0.1.0\"}"] == 1.0);
    let round_trip = samples["strata_peer_round_trip_seconds{peer=\"alice\"}"];
    ensure!((0.0..1.0).contains(&round_trip), "{round_trip}");
    // Counters outlive the SAs that counted.
    let counted = samples[received];
    tunnel.rekey(0)?;
    tunnel.mobile.strata_text("down office")?;
    let is_gone = || Ok((sample(&pair.gateway, "strata_child_sas")? == 0.0).then_some(()));
    until("the end of the SAs", DEADLINE, is_gone)?;
    ensure!(sample(&pair.gateway, received)? >= counted);
    ensure!(sample(&pair.gateway, "strata_peer_rekeys_total{peer=\"alice\"}")? >= 1.0);
    ensure!(sample(&pair.gateway, "strata_tunnel_up{peer=\"alice\"}")? == 0.0);
    Ok(())
}

/// The names and labels of two scrapes, in their order.
// Works: metrics
#[lab::test]
fn two_scrapes_differ_in_their_values_only() -> Result<()> {
    let pair = Pair::new("metrics")?;
    let tunnel = start(&pair)?;
    let names = |text: &str| -> Vec<String> {
        let name = |line: &str| match line.starts_with('#') {
            true => line.to_owned(),
            false => line
                .rsplit_once(' ')
                .map_or(line, |(name, _)| name)
                .to_owned(),
        };
        text.lines().map(name).collect()
    };
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)?;
    await_all(&pair.gateway)?;
    let first = names(&scrape(&pair.gateway)?);
    ensure!(first.len() > 100, "{first:?}");
    let asked = tunnel.gateway.strata_text("metrics")?;
    ensure!(first == names(&asked), "{asked}");
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)?;
    ensure!(names(&scrape(&pair.gateway)?) == first);
    Ok(())
}

/// Each holds as many connections as the daemon keeps.
// Recovers: metrics
#[lab::test]
fn clients_that_never_send_or_never_read_stop_neither_packets_nor_scrapes() -> Result<()> {
    const EACH: usize = 64;
    let pair = Pair::new("metrics")?;
    let tunnel = start(&pair)?;
    let held = pair.gateway.inside(|| {
        let mut held = Vec::new();
        for number in 0..2 * EACH {
            let mut stream = TcpStream::connect(LISTEN)?;
            if number % 2 == 0 {
                stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n")?;
            }
            held.push(stream);
        }
        Ok(held)
    })?;
    let mut last = 0.0;
    for _ in 0..3 {
        transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 1_000_000)?;
        let received = "strata_tunnel_received_bytes_total{peer=\"alice\"}";
        let grown = || {
            let now = sample(&pair.gateway, received)?;
            Ok((now >= last + 1_000_000.0).then_some(now))
        };
        last = until("the octets to be counted", Duration::from_secs(5), grown)?;
    }
    drop((held, tunnel));
    Ok(())
}

/// Returns the log of a daemon that does not start.
fn refused(host: &Host, config: &str) -> Result<String> {
    match host.stratad(config) {
        Ok(_) => bail!("stratad started with {config}"),
        Err(error) => Ok(format!("{error:#}")),
    }
}

// Refuses: metrics
#[lab::test]
fn a_port_that_is_taken_is_told_and_a_reload_changes_the_port() -> Result<()> {
    let pair = Pair::new("metrics")?;
    let [_, config] = configs(LISTEN);
    plain::give_keys(&pair)?;
    let taken = pair.gateway.inside(|| Ok(TcpListener::bind(LISTEN)?))?;
    let log = refused(&pair.gateway, &config)?;
    ensure!(log.contains("TCP port 9580 is already taken by"), "{log}");
    ensure!(
        log.contains("choose another port in [listen] or [metrics]"),
        "{log}"
    );
    drop(taken);
    let gateway = pair.gateway.stratad(&config)?;
    scrape(&pair.gateway)?;

    let other = "127.0.0.1:9581";
    let taken = pair.gateway.inside(|| Ok(TcpListener::bind(other)?))?;
    gateway.configure(&configs(other)[1])?;
    gateway.refuses(
        "reload",
        "correct `listen` in [metrics], then try again; nothing was changed",
    )?;
    scrape(&pair.gateway).context("the listener that was open")?;
    drop(taken);
    let said = gateway.strata_text("reload")?;
    ensure!(said.contains("metrics.listen"), "{said}");
    pair.gateway
        .run(&format!("curl -sS --fail http://{other}/metrics"))?;
    ensure!(scrape(&pair.gateway).is_err(), "the old port is open");

    let said = gateway.change(&configs("0.0.0.0:9581")[1])?;
    ensure!(said.contains("whoever can connect there reads"), "{said}");
    let path = pair.gateway.directory().join("metrics.sock");
    gateway.change(&configs(&path.display().to_string())[1])?;
    let curl = format!(
        "curl -sS --fail --unix-socket {} http://localhost/metrics",
        path.display()
    );
    judge(&pair.gateway.run(&curl)?)?;
    gateway.change(&plain::configs("", "")[1])?;
    ensure!(!path.exists(), "the socket is left");
    Ok(())
}

// Recovers: metrics
#[lab::test]
fn an_address_that_is_not_there_yet_is_waited_for() -> Result<()> {
    let pair = Pair::new("metrics")?;
    let address = "198.51.100.9:9580";
    plain::give_keys(&pair)?;
    let gateway = pair.gateway.stratad(&configs(address)[1])?;
    let status = gateway.strata_text("status")?;
    let expected = "waiting for the address 198.51.100.9 (`metrics.listen`)";
    ensure!(status.contains(expected), "{status}");
    pair.gateway.run("ip address add 198.51.100.9/32 dev lo")?;
    let found = || {
        let status = gateway.strata_text("status")?;
        Ok((!status.contains(expected)).then_some(()))
    };
    until("the address to be found", DEADLINE, found)?;
    pair.gateway
        .run(&format!("curl -sS --fail http://{address}/metrics"))
        .map(drop)
}

/// Copies the rules, with a change, and runs their tests.
fn test_rules(from: &str, to: &str) -> Result<String> {
    let copy = std::env::temp_dir().join(format!("strata-rules-{}", std::process::id()));
    fs::create_dir_all(&copy)?;
    for file in ["alerts.yml", "alerts.test.yml"] {
        let text = fs::read_to_string(folder().join(file))?;
        fs::write(copy.join(file), text.replace(from, to))?;
    }
    let said = promtool(&["test", "rules", "alerts.test.yml"], "", &copy);
    fs::remove_dir_all(&copy)?;
    said
}

// Works: metrics
#[lab::test]
fn promtool_runs_the_tests_of_each_alert_rule() -> Result<()> {
    let directory = folder();
    promtool(&["check", "rules", "alerts.yml"], "", &directory)?;
    ensure!(test_rules("", "")?.contains("SUCCESS"));
    let rules = fs::read_to_string(directory.join("alerts.yml"))?;
    let tests = fs::read_to_string(directory.join("alerts.test.yml"))?;
    let alerts = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    let untested: Vec<_> = alerts
        .filter(|alert| !tests.contains(&format!("alertname: {alert}\n")))
        .collect();
    ensure!(untested.is_empty(), "{untested:?}");
    // Negative control: another threshold of each rule.
    for (from, to) in [
        ("up{job=\"strata\"} == 0", "up{job=\"strata\"} == 2"),
        (
            "strata_tunnel_up == 0 and max",
            "strata_tunnel_up == 0 unless max",
        ),
        ("strata_peer_silent == 1", "strata_peer_silent == 0"),
        (">= 6", ">= 7"),
        ("< 14 * 86400", "< 12 * 86400"),
        ("< 2 * 86400", "< 4 * 86400"),
        ("strata_failures > 0", "strata_failures > 1"),
        ("[5m])) > 10", "[5m])) > 30"),
        ("[30m]))) > 2.5", "[30m]))) > 25"),
    ] {
        ensure!(rules.contains(from), "no {from}");
        ensure!(test_rules(from, to).is_err(), "the tests pass with {to}");
    }
    Ok(())
}

/// Returns the names of metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("strata_")).collect()
}

/// Returns the names in a text that no family of a scrape has.
fn unknown<'a>(text: &'a str, scraped: &str) -> Vec<&'a str> {
    let lines = scraped.lines();
    let families: BTreeSet<_> = lines
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let has = |name: &str| {
        let parts = ["", "_bucket", "_sum", "_count"].into_iter();
        let mut bases = parts.filter_map(|part| name.strip_suffix(part));
        bases.any(|base| families.contains(base))
    };
    names(text).into_iter().filter(|name| !has(name)).collect()
}

// Works: metrics
#[lab::test]
fn dashboard_and_rules_name_metrics_that_the_daemon_exports() -> Result<()> {
    let pair = Pair::new("metrics")?;
    let _tunnel = start(&pair)?;
    let scraped = scrape(&pair.gateway)?;
    for (file, most) in [("alerts.yml", 5), ("dashboard.json", 15)] {
        let text = fs::read_to_string(folder().join(file))?;
        ensure!(names(&text).len() > most, "{:?}", names(&text));
        let unknown = unknown(&text, &scraped);
        ensure!(unknown.is_empty(), "{file}: {unknown:?}");
    }
    let dashboard = fs::read_to_string(folder().join("dashboard.json"))?;
    let json: serde_json::Value = serde_json::from_str(&dashboard)?;
    ensure!(json["schemaVersion"] == 39, "{}", json["schemaVersion"]);
    ensure!(json["__inputs"][0]["name"] == "DS_PROMETHEUS");
    // Negative control.
    let wrong = dashboard.replace("strata_tunnel_up", "strata_tunnel_is_up");
    ensure!(unknown(&wrong, &scraped) == ["strata_tunnel_is_up"]);
    Ok(())
}
