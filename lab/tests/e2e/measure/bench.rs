//! `strata-lab bench` as users run it, in a tiny form: all tunnels come up, every packet gets
//! through, the output has its documented format, and the wrong key makes it fail. The tests do not
//! judge costs.

use anyhow::{Context, Result, ensure};
use lab::testbed::{Testbed, find_binary};
use serde_json::Value;
use std::fs;
use std::process::{Command, Output};

// Works: bench-ike
#[lab::test(quiet)]
fn everybody_comes_up_and_the_json_has_stable_keys() -> Result<()> {
    let (output, report) = measured("--quick --setups 20")?;
    ensure!(output.status.success(), "{report}");
    let top = "cpu_us failure goals load octets_per_sa optimised own_core p50_ms p99_ms per_cpu_second \
               ratio raw_us retransmitted_share rounds up wanted";
    ensure!(keys(&report) == top, "{}", keys(&report));
    ensure!(report["up"] == 60 && report["wanted"] == 60, "{report}");
    ensure!(report["load"]["rate"]["setups"] == 20, "{report}");
    for measured in [
        "cpu_us",
        "raw_us",
        "ratio",
        "p50_ms",
        "p99_ms",
        "per_cpu_second",
    ] {
        ensure!(
            report[measured].as_f64() > Some(0.0),
            "{measured}: {report}"
        );
    }
    let rounds = report["rounds"].as_array().context("rounds is a list")?;
    let round = "cpu_us failure flood grown_octets ratio raw_us requests retransmitted sas_before seconds \
                 up wanted";
    ensure!(rounds.iter().all(|one| keys(one) == round), "{report}");
    // The first 16 SAs are not measured.
    let before: Vec<_> = rounds.iter().map(|one| &one["sas_before"]).collect();
    ensure!(before == [16, 36, 56], "{report}");
    ensure!(goals(&report)? == ["times its cryptography", "octets per IKE SA"]);
    let goal = &report["goals"][0];
    ensure!(keys(goal) == "bound goal limit measured reached", "{goal}");
    Ok(())
}

#[lab::test(quiet)]
fn the_same_is_told_as_text() -> Result<()> {
    let output = bench("--quick --setups 5")?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "{text}");
    ensure!(text.contains("15 of 15"), "{text}");
    ensure!(text.contains("times its cryptography"), "{text}");
    ensure!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    Ok(())
}

/// More initiators than a responder accepts without a cookie.
// Works: bench-ike
#[lab::test(quiet)]
fn those_who_begin_at_once_come_up() -> Result<()> {
    let (output, report) = measured("--simultaneous 150")?;
    ensure!(output.status.success(), "{report}");
    ensure!(report["up"] == 150, "{report}");
    let aims = goals(&report)?;
    ensure!(
        aims[0] == "seconds until all are up" && aims.len() == 3,
        "{aims:?}"
    );
    Ok(())
}

// Works: bench-ike
#[lab::test(quiet)]
fn honest_initiators_come_up_under_a_flood_and_nobody_is_answered_twice() -> Result<()> {
    let (output, report) = measured("--flood=2000 --seconds 1")?;
    ensure!(output.status.success(), "{report}");
    ensure!(report["wanted"] == 100, "{report}");
    let [calm, flooded] = [0, 1].map(|half| &report["rounds"][half]["flood"]);
    ensure!(calm.is_null(), "{report}");
    let shown = keys(flooded);
    ensure!(
        shown == "answers longest_answer per_second request sent",
        "{shown}"
    );
    let number = |key: &str| flooded[key].as_u64().context("a number");
    // A flood that never reached the responder would prove nothing.
    ensure!(number("answers")? > 0, "{flooded}");
    ensure!(number("answers")? <= number("sent")?, "{flooded}");
    let longest = number("longest_answer")?;
    ensure!(0 < longest && longest <= number("request")?, "{flooded}");
    Ok(())
}

/// An echo passes through every tunnel before it is lost, and after it was resumed.
// Works: bench-ike
#[lab::test(quiet)]
fn sessions_that_were_lost_are_resumed_and_the_json_has_stable_keys() -> Result<()> {
    for way in ["ticket", "skid3"] {
        let (output, report) = measured(&format!("--quick --resume {way} --setups 4"))?;
        ensure!(output.status.success(), "{report}");
        let top = "failure goals optimised own_core resume rounds rows setups";
        ensure!(keys(&report) == top, "{}", keys(&report));
        ensure!(report["resume"] == way, "{report}");
        let rows = report["rows"].as_array().context("rows is a list")?;
        let terms: Vec<_> = rows.iter().map(|row| &row["terms"]).collect();
        ensure!(terms == ["psk", "ecdsa"], "{report}");
        let row = "full_ms full_raw_us full_s full_us octets ratio raw_ratio resumed_ms \
                   resumed_raw_us resumed_s resumed_us terms time_ratio";
        ensure!(rows.iter().all(|one| keys(one) == row), "{report}");
        let aims = goals(&report)?;
        let expected = [
            "full over resumed, PSK",
            "full over resumed, ECDSA",
            "until all are up, PSK",
            "until all are up, ECDSA",
            "cryptography alone, PSK",
            "cryptography alone, ECDSA",
        ];
        let count = if way == "skid3" { 6 } else { 4 };
        ensure!(aims == expected[..count], "{aims:?}");
    }
    Ok(())
}

// Refuses: bench-ike
#[lab::test(quiet)]
fn without_the_key_there_is_no_session_to_resume() -> Result<()> {
    let (output, report) = measured("--quick --resume skid3 --setups 4 --wrong-key")?;
    ensure!(output.status.code() == Some(1), "{report}");
    let why = report["failure"].as_str().context("a reason")?;
    ensure!(why.contains("0 of 16 are up"), "{report}");
    Ok(())
}

/// An echo passes through every tunnel of stratad and of charon.
// Works: bench-ike
#[lab::test(quiet)]
fn set_ups_while_tunnels_are_up_are_measured_at_stratad_and_at_charon() -> Result<()> {
    let (output, report) = measured("--quick --tunnels=24,16 --setups 4")?;
    ensure!(output.status.success(), "{report}");
    let top = "configured failure goals octets_of_a_peer optimised own_core rounds rows setups";
    ensure!(keys(&report) == top, "{}", keys(&report));
    let rows = report["rows"].as_array().context("rows is a list")?;
    let measured = rows.iter().map(|row| (&row["terms"], &row["tunnels"]));
    let measured: Vec<_> = measured
        .map(|(terms, tunnels)| format!("{terms} {tunnels}"))
        .collect();
    let of = |tunnels| ["psk", "ecdsa", "leased"].map(|terms| format!("\"{terms}\" {tunnels}"));
    ensure!(measured == [of(16), of(24)].concat(), "{measured:?}");
    for row in rows {
        for cost in ["strata_us", "strongswan_us", "ratio"] {
            ensure!(keys(&row[cost]) == "least median most", "{row}");
            ensure!(row[cost]["least"].as_f64() > Some(0.0), "{row}");
        }
        // Only the cryptography of a pre-shared key is measured alone.
        let over_raw = row["over_raw"]["least"].as_f64();
        ensure!(over_raw.is_some() == (row["terms"] == "psk"), "{row}");
    }
    ensure!(goals(&report)?.len() == 5, "{report}");
    let text = String::from_utf8(bench("--quick --tunnels=16 --setups 4")?.stdout)?;
    ensure!(text.contains("octets of a configured peer"), "{text}");
    Ok(())
}

// Refuses: bench-ike
#[lab::test(quiet)]
fn without_the_key_no_tunnel_is_up_to_measure_beside() -> Result<()> {
    let (output, report) = measured("--quick --tunnels=16 --setups 4 --wrong-key")?;
    ensure!(output.status.code() == Some(1), "{report}");
    ensure!(report["rows"] == Value::Array(Vec::new()), "{report}");
    let why = report["failure"].as_str().context("a reason")?;
    ensure!(why.contains("key"), "{why}");
    Ok(())
}

// Refuses: bench-ike
#[lab::test]
fn with_the_wrong_key_it_fails() -> Result<()> {
    let (output, report) = measured("--quick --setups 5 --wrong-key")?;
    ensure!(output.status.code() == Some(1), "{report}");
    ensure!(report["up"] == 0 && report["ratio"].is_null(), "{report}");
    let why = report["failure"].as_str().context("a reason")?;
    ensure!(why.contains("key"), "{why}");
    Ok(())
}

// Refuses: bench-ike
#[lab::test]
fn loads_that_exclude_each_other_are_refused() -> Result<()> {
    for words in [
        "--simultaneous 5 --flood",
        "--tunnels=16 --flood",
        "--tunnels=7",
        "--seconds 3",
        "--setups 0",
    ] {
        let output = bench(words)?;
        ensure!(output.status.code() == Some(2), "{words}: {output:?}");
        ensure!(!output.stderr.is_empty(), "{words}");
    }
    Ok(())
}

// Works: bench-esp
#[lab::test(quiet)]
fn packets_of_every_shape_get_through_and_the_json_has_stable_keys() -> Result<()> {
    let (output, report) = printed("esp --quick --sas 50")?;
    ensure!(output.status.success(), "{report}");
    ensure!(
        keys(&report) == "aead failure gains goals optimised rows",
        "{}",
        keys(&report)
    );
    let rows = report["rows"].as_array().context("rows is a list")?;
    // Four shapes at five lengths, and two with many SAs.
    ensure!(rows.len() == 22, "{report}");
    for row in rows {
        ensure!(
            keys(row) == "length node opening sas sealing shape",
            "{row}"
        );
        for cost in [&row["sealing"], &row["opening"]] {
            ensure!(keys(cost) == "ns raw_ns share", "{cost}");
            ensure!(cost["ns"].as_f64() > Some(0.0), "{row}");
        }
        let zones = ["two", "three"].contains(&row["shape"].as_str().context("a shape")?);
        ensure!(row["node"].is_null() != (zones && row["sas"] == 1), "{row}");
    }
    let many = rows.iter().filter(|row| row["sas"] == 50).count();
    ensure!(many == 2, "{report}");
    ensure!(
        !report["gains"]
            .as_array()
            .context("gains is a list")?
            .is_empty()
    );
    ensure!(goals(&report)?.len() == 6, "{report}");
    Ok(())
}

// Works: bench-esp
#[lab::test(quiet)]
fn the_cost_of_packets_is_told_as_text() -> Result<()> {
    let output = command("esp --quick --sas 2")?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "{text}");
    ensure!(text.contains("share of AEAD, plain, IMIX"), "{text}");
    ensure!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    Ok(())
}

// Works: ipsec-mb
#[lab::test(quiet)]
fn packets_are_timed_with_either_aes_gcm() -> Result<()> {
    for (words, name) in [("", "AWS-LC"), (" --ipsec-mb", "libipsec-mb 1.")] {
        let (output, report) = printed(&format!("esp --quick --sas 10{words}"))?;
        ensure!(output.status.success(), "{report}");
        let aead = report["aead"].as_str().context("a name")?;
        ensure!(aead.starts_with(name), "{aead}");
    }
    Ok(())
}

// Refuses: bench-esp
#[lab::test]
fn packets_of_another_key_get_nowhere() -> Result<()> {
    let (output, report) = printed("esp --quick --wrong-key")?;
    ensure!(output.status.code() == Some(1), "{report}");
    let why = report["failure"].as_str().context("a reason")?;
    ensure!(
        why.contains("a packet was dropped: Some(BadIcvDesignated)"),
        "{why}"
    );
    ensure!(report["rows"] == serde_json::json!([]), "{report}");
    Ok(())
}

// Refuses: bench-esp
#[lab::test]
fn an_sa_alone_is_not_many() -> Result<()> {
    let output = command("esp --sas 1")?;
    ensure!(output.status.code() == Some(2), "{output:?}");
    Ok(())
}

// Works: bench-tunnel
#[lab::test(quiet)]
fn everybody_carries_between_two_hosts_and_the_json_has_stable_keys() -> Result<()> {
    let (output, report) = printed("peers --quick")?;
    ensure!(output.status.success(), "{report}");
    let top = "aead failure goals missing optimised rounds rows";
    ensure!(keys(&report) == top, "{}", keys(&report));
    let rows = report["rows"].as_array().context("rows is a list")?;
    let missing = report["missing"].as_array().context("missing is a list")?;
    let names = rows.iter().map(|row| &row["entrant"]).chain(missing);
    let names: Vec<_> = names.filter_map(Value::as_str).collect();
    // These entrants need nothing beyond Debian's packages.
    let all = "wire roofline plain zones licensed workers one_by_one unguarded strongswan";
    ensure!(rows.len() >= 9 && names[..9].join(" ") == all, "{names:?}");
    ensure!(
        names.len() == 11 && names.contains(&"boringtun"),
        "{names:?}"
    );
    for who in missing {
        println!("{who} is not here, and had no turn: `lab/peers target/peers` builds it");
    }
    let measured = "cpu_s_per_gb four_gbps loaded_rtt_us one_gbps packets_per_s rtt_us";
    for row in rows {
        let all =
            "cpu_s_per_gb entrant four_gbps loaded_rtt_us one_gbps over_plain packets_per_s rtt_us";
        ensure!(keys(row) == all, "{row}");
        for key in measured.split(' ') {
            ensure!(row[key].as_f64() > Some(0.0), "{key}: {row}");
        }
        ensure!(keys(&row["over_plain"]) == "least median most", "{row}");
    }
    let aims = goals(&report)?;
    ensure!(aims[1] == "plain over the roofline", "{aims:?}");
    let of = |who: &str| aims.iter().filter(|aim| aim.contains(who)).count();
    let here = |who: &str| !missing.iter().any(|one| one == who);
    ensure!(
        of("wireguard-go") == if here("wireguard_go") { 5 } else { 0 },
        "{aims:?}"
    );
    ensure!(
        of("boringtun") == usize::from(here("boringtun")),
        "{aims:?}"
    );
    Ok(())
}

// Works: bench-tunnel
#[lab::test(quiet)]
fn what_is_carried_is_told_as_text_and_drawn() -> Result<()> {
    let bed = Testbed::new("bench")?;
    let plot = bed.directory().join("peers.svg");
    let output = command(&format!("peers --quick --plot {}", plot.display()))?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "{text}");
    ensure!(text.contains("two zones over plain"), "{text}");
    ensure!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let drawn = fs::read_to_string(plot)?;
    ensure!(
        drawn.starts_with("<svg") && drawn.contains("strongSwan"),
        "{drawn}"
    );
    Ok(())
}

// Refuses: bench-tunnel
#[lab::test]
fn a_plot_that_cannot_be_written_is_refused_before_anything_is_measured() -> Result<()> {
    let output = command("peers --plot /nonexistent/peers.svg")?;
    ensure!(output.status.code() == Some(2), "{output:?}");
    let said = String::from_utf8(output.stderr)?;
    ensure!(said.contains("name a writable file"), "{said}");
    Ok(())
}

// Refuses: bench-tunnel
#[lab::test]
fn between_ends_with_different_keys_nothing_is_carried() -> Result<()> {
    let (output, report) = printed("peers --quick --wrong-key")?;
    ensure!(output.status.code() == Some(1), "{report}");
    let why = report["failure"].as_str().context("a reason")?;
    ensure!(why.contains("key"), "{why}");
    ensure!(report["rows"] == serde_json::json!([]), "{report}");
    Ok(())
}

// Works: soak
#[lab::test(alone)]
fn a_minute_of_load_with_new_keys_loses_nothing_and_nobody_grows() -> Result<()> {
    let bed = Testbed::new("soak")?;
    let plot = bed.directory().join("soak.svg");
    let (output, report) = printed(&format!("soak --plot {}", plot.display()))?;
    ensure!(output.status.success(), "{report}");
    let top = "datagrams failure full_per_s goals grown_octets new_keys optimised samples seconds";
    ensure!(keys(&report) == top, "{}", keys(&report));
    ensure!(report["new_keys"].as_u64() >= Some(4), "{report}");
    ensure!(report["datagrams"].as_u64() > Some(1000), "{report}");
    let samples = report["samples"].as_array().context("a list")?;
    let sample = "datagrams gateway mobile node s";
    ensure!(
        samples.len() > 4 && samples.iter().all(|one| keys(one) == sample),
        "{report}"
    );
    ensure!(keys(&report["grown_octets"]) == "gateway mobile node");
    ensure!(fs::read_to_string(plot)?.contains("licensed node"));
    Ok(())
}

/// Control of the previous test.
// Refuses: soak
#[lab::test(alone)]
fn a_datagram_that_is_lost_in_a_minute_makes_it_fail() -> Result<()> {
    let output = command("soak --lossy")?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(output.status.code() == Some(1), "{text}");
    ensure!(text.contains("FAILED: datagrams {"), "{text}");
    Ok(())
}

// Refuses: soak
#[lab::test]
fn a_soak_of_less_than_a_minute_is_refused() -> Result<()> {
    let output = command("soak --seconds 59")?;
    ensure!(output.status.code() == Some(2), "{output:?}");
    let error = String::from_utf8(output.stderr)?;
    ensure!(error.contains("60..=604800"), "{error}");
    Ok(())
}

// Works: bench-peers
#[lab::test(quiet)]
fn echoes_come_back_through_one_few_and_all_tunnels_and_the_json_has_stable_keys() -> Result<()> {
    let (output, report) = printed("sas --quick --sas 300")?;
    ensure!(output.status.success(), "{report}");
    let top = "failure goals optimised own_core rows sas";
    ensure!(keys(&report) == top, "{}", keys(&report));
    let rows = report["rows"].as_array().context("rows is a list")?;
    let sas: Vec<_> = rows.iter().map(|row| &row["sas"]).collect();
    ensure!(sas == [1, 64, 300], "{report}");
    for row in rows {
        let all = "cpu_us echoes_per_s over_few over_one sas";
        ensure!(keys(row) == all, "{row}");
        for key in all.split(' ') {
            ensure!(row[key].as_f64() > Some(0.0), "{key}: {row}");
        }
    }
    let aims = [
        "speed of one that all have",
        "speed of few in turns that all have",
    ];
    ensure!(goals(&report)? == aims, "{report}");
    Ok(())
}

// Works: bench-peers
#[lab::test(quiet)]
fn a_crowd_is_told_as_text() -> Result<()> {
    let output = command("sas --quick --sas 64")?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "{text}");
    ensure!(text.contains("64 tunnels between a crowd"), "{text}");
    ensure!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    Ok(())
}

// Refuses: bench-peers
#[lab::test]
fn a_crowd_with_another_key_carries_nothing() -> Result<()> {
    let (output, report) = printed("sas --quick --sas 64 --wrong-key")?;
    ensure!(output.status.code() == Some(1), "{report}");
    let why = report["failure"].as_str().context("a reason")?;
    ensure!(
        why.starts_with("0 of 64 are up") && why.contains("key"),
        "{why}"
    );
    ensure!(report["rows"] == serde_json::json!([]), "{report}");
    Ok(())
}

// Refuses: bench-peers
#[lab::test]
fn fewer_than_a_few_are_no_crowd() -> Result<()> {
    let output = command("sas --sas 63")?;
    ensure!(output.status.code() == Some(2), "{output:?}");
    Ok(())
}

fn goals(report: &Value) -> Result<Vec<&str>> {
    let goals = report["goals"].as_array().context("goals is a list")?;
    Ok(goals
        .iter()
        .filter_map(|goal| goal["goal"].as_str())
        .collect())
}

/// Returns the keys of an object, in alphabetical order.
fn keys(object: &Value) -> String {
    let keys = object.as_object().into_iter().flatten();
    let mut keys: Vec<_> = keys.map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    keys.join(" ")
}

fn measured(words: &str) -> Result<(Output, Value)> {
    printed(&format!("ike {words}"))
}

fn printed(words: &str) -> Result<(Output, Value)> {
    let output = command(&format!("{words} --json"))?;
    let report = serde_json::from_slice(&output.stdout).with_context(|| format!("{output:?}"))?;
    Ok((output, report))
}

fn bench(words: &str) -> Result<Output> {
    command(&format!("ike {words}"))
}

fn command(words: &str) -> Result<Output> {
    let mut command = Command::new(find_binary("strata-lab")?);
    command.arg("bench").args(words.split_whitespace());
    Ok(command.output()?)
}

/// Load from another test would slow the turn with the flood or its control, and not both.
// Works: bench-flood
// Weakness: 28
#[lab::test(alone)]
fn a_flood_has_a_control_and_the_json_has_stable_keys() -> Result<()> {
    let (output, report) =
        printed("flood --quick --only public-values,chains,malformed,half-open")?;
    let top = "failure goals optimised rounds rows";
    ensure!(keys(&report) == top, "{output:?}");
    let rows = report["rows"].as_array().context("rows is a list")?;
    let kinds: Vec<_> = rows.iter().map(|row| &row["kind"]).collect();
    let all = ["public-values", "chains", "malformed", "half-open"];
    ensure!(kinds == all, "{report}");
    let row = "answers_per_s control decided flooded kind least_ratio mbps most_ratio \
        packets_per_s ratio rounds";
    let carried = "gbps most_ms p50_ms p99_ms served wanted";
    for each in rows {
        ensure!(keys(each) == row, "{each}");
        ensure!(keys(&each["flooded"]) == carried, "{each}");
        ensure!(each["packets_per_s"].as_f64() > Some(1000.0), "{each}");
        ensure!(each["control"]["gbps"].as_f64() > Some(0.0), "{each}");
        // The control contains no flood, so it passes even with a slow build.
        ensure!(each["control"]["served"] == 200, "{each}");
        // No goal, but far from a tunnel that collapses.
        ensure!(each["ratio"].as_f64() > Some(0.2), "{each}");
    }
    // Half-open requests were answered, so this flood reached the gateway.
    ensure!(rows[3]["answers_per_s"].as_f64() > Some(0.0), "{report}");
    ensure!(goals(&report)?.len() == 2, "{report}");
    Ok(())
}

// Refuses: bench-flood
#[lab::test]
fn no_set_up_beside_a_flood_is_served_with_the_wrong_key() -> Result<()> {
    let (output, report) = printed("flood --quick --only spoofed --wrong-key")?;
    ensure!(output.status.code() == Some(1), "{report}");
    ensure!(report["rows"][0]["control"]["served"] == 0, "{report}");
    let why = report["failure"].as_str().context("a reason")?;
    ensure!(why.contains("the control") && why.contains("key"), "{why}");
    Ok(())
}
