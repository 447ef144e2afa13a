//! `strata-lab figures` as users run it: every figure, in a tiny form, writes its files and a
//! verdict; without the feature under test the verdict fails; an interrupted run can be resumed.

use anyhow::{Context, Result, ensure};
use lab::experiment::{self, Condition, Exhibit, Figure, Measured, Options, Plan, Verdict};
use lab::figures;
use lab::process::until;
use lab::scene::{Sender, Setup};
use lab::testbed::find_binary;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const FIGURES: [&str; 6] = [
    "mml-fig12",
    "mml-fig14",
    "mml-fig15",
    "mml-fig16",
    "mml-fig17",
    "snoop-modern",
];

/// Number of attempts for a run whose verdict depends on chance.
const TRIES: u32 = 3;

/// The runs are so short that no verdict has to hold, but every file must exist.
// Works: figures
#[lab::test(quiet)]
fn every_figure_writes_its_files_and_a_page_and_is_not_measured_twice() -> Result<()> {
    let folder = Folder::new("tiny")?;
    let tiny = |folder: &Folder| {
        let arguments = format!("run {} --quick --seeds 1 --seconds 2", FIGURES.join(" "));
        folder.lab(&arguments)
    };
    let first = tiny(&folder)?;
    let reports = documents(&first)?;
    ensure!(reports.len() == FIGURES.len(), "{reports:?}");
    for (report, name) in reports.iter().zip(FIGURES) {
        ensure!(report["figure"] == name, "{report}");
        let place = folder.0.join(name);
        let csv = fs::read_to_string(place.join("cells.csv"))?;
        let points = report["points"].as_array().context("points is a list")?;
        ensure!(csv.lines().count() == 1 + points.len(), "{name}: {csv}");
        ensure!(place.join("result.json").is_file(), "{name}");
        let plots = report["plots"].as_array().context("plots is a list")?;
        ensure!(!plots.is_empty(), "{name} has no plot");
        for plot in plots {
            let svg = fs::read_to_string(place.join(plot.as_str().context("a name")?))?;
            ensure!(svg.starts_with("<svg"), "{name}: {plot}");
        }
    }
    let failed = reports.iter().any(|report| report["verdict"] == "fails");
    ensure!(first.status.code() == Some(i32::from(failed)), "{first:?}");

    // A cell that ran again would give another number.
    let again = documents(&tiny(&folder)?)?;
    for (before, after) in reports.iter().zip(&again) {
        ensure!(before["points"] == after["points"], "{before}\n{after}");
    }
    let output = folder.lab("report")?;
    ensure!(output.status.success(), "{output:?}");
    let page = fs::read_to_string(folder.0.join("report.html"))?;
    for name in FIGURES {
        ensure!(page.contains(&format!("id=\"{name}\"")), "{name}");
    }
    Ok(())
}

/// Conditions of the small runs: Reno alone, where losses are many.
fn small(_quick: bool) -> Vec<Condition> {
    let errors = [512 << 10, 64 << 10];
    let with = |errors| Setup::ALL.map(|setup| Condition::new(setup, Sender::Reno, errors));
    errors.into_iter().flat_map(with).collect()
}

/// Figures about SNOOP, with the findings that decide in a small run: their bounds are far from
/// one, where the ratio is without SNOOP, and from what ten pairs give.
const DECIDE: [(&str, &[&str]); 4] = [
    ("mml-fig12", &["Reno, 512k: SNOOP over none"]),
    ("mml-fig14", &["Reno, 64k: zoned + SNOOP over zoned"]),
    ("mml-fig15", &["Reno: octets of zoned + SNOOP over IPsec"]),
    (
        "mml-fig16",
        &[
            "Reno: mean window of SNOOP over none",
            "Reno: mean window of zoned + SNOOP over zoned",
        ],
    ),
];

/// Runs the small conditions once, and returns the deciding findings of all figures: those that
/// hold, and those that fail.
fn decided(folder: &Folder, snoop: bool) -> Result<[Vec<String>; 2]> {
    let figure = |(name, _): (&str, _)| {
        let figure = figures::find(name).and_then(Exhibit::figure);
        let figure = figure.context("a figure")?;
        // It lives as long as the process, which is that of the test.
        let figure: &'static Figure = Box::leak(Box::new(Figure {
            conditions: small,
            ..*figure
        }));
        Ok(Exhibit::Figure(figure))
    };
    let exhibits = DECIDE.map(figure).into_iter().collect::<Result<Vec<_>>>()?;
    let options = Options {
        plan: Plan {
            seeds: 1,
            seconds: 15,
            snoop,
            ..Plan::QUICK
        },
        out: folder.0.clone(),
        at_once: 10,
        bars: false,
    };
    let reports = experiment::run(&exhibits, &options)?;
    let [mut hold, mut fail] = [Vec::new(), Vec::new()];
    for (report, (name, deciding)) in reports.iter().zip(DECIDE) {
        ensure!(report.figure == name, "{}", report.figure);
        for what in deciding {
            let found = report.findings.iter().find(|finding| finding.what == *what);
            let found = found.with_context(|| format!("{name} has no finding {what}"))?;
            ensure!(found.measured.is_some(), "{what}: {:?}", report.reasons);
            let told = format!("{name}, {what}: {:?}", found.measured);
            match found.verdict {
                Verdict::Holds => hold.push(told),
                _ => fail.push(told),
            }
        }
    }
    Ok([hold, fail])
}

/// Figures 12, 14, 15 and 16 share their cells. Chance can spoil a verdict, with SNOOP or without.
// Works: figures
#[lab::test(quiet)]
fn snoop_carries_the_figures_of_the_paper_and_without_it_none_of_them_holds() -> Result<()> {
    let mut failed = Vec::new();
    for attempt in 1..=TRIES {
        let folder = Folder::new(&format!("small-{attempt}"))?;
        let [_, missed] = decided(&folder, true)?;
        if !missed.is_empty() {
            failed.push(missed);
            continue;
        }
        let folder = Folder::new(&format!("small-control-{attempt}"))?;
        let [hold, missed] = decided(&folder, false)?;
        if hold.is_empty() {
            ensure!(missed.len() == 5, "{missed:?}");
            return Ok(());
        }
        failed.push(hold);
    }
    anyhow::bail!("{TRIES} times, with SNOOP or without: {failed:#?}")
}

// Works: figures
#[lab::test(quiet)]
fn zones_add_to_a_packet_what_is_computed_and_without_them_the_verdict_fails() -> Result<()> {
    let folder = Folder::new("table")?;
    let run = "run czml-table1 --quick";
    let with = folder.lab(run)?;
    let report = &documents(&with)?[0];
    ensure!(with.status.success(), "{report}");
    ensure!(report["verdict"] == "holds", "{report}");
    let numbers = numbers(report)?;
    ensure!(numbers.len() == 12, "{report}");
    for row in &numbers {
        let [octets, .., computed_plain, computed, plain, added] = row[..] else {
            anyhow::bail!("{report}");
        };
        ensure!((plain, added) == (computed_plain, computed), "{row:?}");
        // A map and an ICV, no pad length, and no padding to whole words.
        let padding = octets.map(|octets| -(octets + 2) & 3);
        ensure!(added == padding.map(|padding| 19 - padding), "{row:?}");
    }
    let place = folder.0.join("czml-table1");
    let csv = fs::read_to_string(place.join("rows.csv"))?;
    let rows = report["rows"].as_array().context("rows is a list")?;
    ensure!(csv.lines().count() == 1 + rows.len(), "{csv}");
    for plot in ["added-aes128gcm16-ipv4.svg", "added-aes128gcm16-ipv6.svg"] {
        let svg = fs::read_to_string(place.join(plot))?;
        ensure!(svg.starts_with("<svg"), "{svg}");
    }
    ensure!(folder.lab("report")?.status.success());
    let page = fs::read_to_string(folder.0.join("report.html"))?;
    ensure!(page.contains("id=\"czml-table1\""), "{page}");

    let without = folder.lab(&format!("{run} --no-zones"))?;
    let report = &documents(&without)?[0];
    ensure!(without.status.code() == Some(1), "{report}");
    ensure!(report["verdict"] == "fails", "{report}");
    ensure!(report["environment"]["zones"] == false, "{report}");
    let reasons = report["reasons"].to_string();
    let reason = "aes128gcm16, IPv6, 1340 octets: 1416 plain, 1416 in zones, \
                  computed 1416 plain, 1433 in zones";
    ensure!(reasons.contains(reason), "{reasons}");
    Ok(())
}

// Works: figures
#[lab::test(quiet)]
fn ends_and_nodes_keep_up_with_their_links_and_without_zones_the_verdict_fails() -> Result<()> {
    for (name, count) in [("mml-table6", 16), ("mml-table7", 5)] {
        let run = format!("run {name} --quick");
        let (folder, report) = holds(name, &run)?;
        let rows = report["rows"].as_array().context("rows is a list")?;
        ensure!(rows.len() == count, "{report}");
        let without = folder.lab(&format!("{run} --no-zones"))?;
        let report = &documents(&without)?[0];
        ensure!(without.status.code() == Some(1), "{report}");
        let reasons = report["reasons"].to_string();
        ensure!(reasons.contains("whose headers"), "{reasons}");
    }
    Ok(())
}

// Works: figures
#[lab::test(quiet)]
fn packets_of_the_papers_algorithms_cost_what_follows_from_them_and_without_zones_the_verdict_fails()
-> Result<()> {
    for (name, count) in [("czml-table3", 32), ("czml-fig4", 40), ("czml-fig5", 6)] {
        let run = format!("run {name} --quick");
        let (folder, report) = holds(name, &run)?;
        let rows = report["rows"].as_array().context("rows is a list")?;
        ensure!(rows.len() == count, "{report}");
        if name == "czml-fig4" {
            continue; // Plain packets; a unit test has its negative control.
        }
        let without = folder.lab(&format!("{run} --no-zones"))?;
        let report = &documents(&without)?[0];
        ensure!(without.status.code() == Some(1), "{report}");
        let reasons = report["reasons"].to_string();
        ensure!(reasons.contains("whose headers"), "{reasons}");
    }
    Ok(())
}

/// The finding of mml-fig17 with the largest gain.
const MOST: &str = "others plaintext: no packet encrypted";

/// TCP in the kernel gains a few percent at most in ten seconds, and other work on the machine
/// blurs that. The test therefore checks only the largest gain in the measurement. Smaller gains
/// must hold in the simulator.
#[lab::test(quiet)]
fn throughput_grows_as_fewer_packets_are_encrypted_and_without_zones_it_does_not() -> Result<()> {
    let run = "run mml-fig17 --quick --seeds 1 --seconds 10";
    let mut failed = Vec::new();
    for attempt in 1..=TRIES {
        let folder = Folder::new(&format!("mml-fig17-{attempt}"))?;
        let report = documents(&folder.lab(run)?)?.swap_remove(0);
        let findings = report["findings"].as_array().context("it is a list")?;
        ensure!(findings.len() == 7, "{report}");
        let within = |finding: &&Value| finding["what"].to_string().contains("integrity-only");
        for finding in findings.iter().filter(within) {
            let simulated = finding["simulated"].as_f64();
            ensure!(simulated > finding["at_least"].as_f64(), "{finding}");
        }
        if most_is_won(&report)? {
            let without = folder.lab(&format!("{run} --no-zones"))?;
            let report = documents(&without)?.swap_remove(0);
            ensure!(without.status.code() == Some(1), "{report}");
            ensure!(!most_is_won(&report)?, "{report}");
            return Ok(());
        }
        failed.push(report["reasons"].clone());
    }
    anyhow::bail!("{TRIES} times: {failed:#?}")
}

fn most_is_won(report: &Value) -> Result<bool> {
    let findings = report["findings"].as_array().context("it is a list")?;
    let most = |finding: &&Value| {
        let what = finding["what"].as_str();
        what.is_some_and(|what| what.starts_with(MOST))
    };
    let most = findings.iter().find(most).context("no such finding")?;
    Ok(most["verdict"] == "holds")
}

#[lab::test(quiet)]
fn what_is_encrypted_at_intervals_costs_less_and_without_zones_the_verdict_fails() -> Result<()> {
    let run = "run mml-fig18 --quick --seeds 1";
    let (folder, report) = holds("mml-fig18", run)?;
    let rows = report["rows"].as_array().context("it is a list")?;
    ensure!(rows.len() == 7, "{report}");
    let without = folder.lab(&format!("{run} --no-zones"))?;
    let report = &documents(&without)?[0];
    ensure!(without.status.code() == Some(1), "{report}");
    let reasons = report["reasons"].as_array().map(Vec::len);
    ensure!(reasons == Some(2), "{report}");
    Ok(())
}

/// One round of each walk: to the other agent and back.
// Works: figures
#[lab::test(quiet)]
fn moves_with_simultaneous_bindings_lose_nothing_and_without_them_the_verdict_fails() -> Result<()>
{
    let run = "run mml-handoff-loss --quick --seeds 1";
    let (folder, report) = holds("mml-handoff-loss", run)?;
    let rows = report["rows"].as_array().context("it is a list")?;
    ensure!(rows.len() == 6, "{report}");
    let lost = rows.iter().map(|row| row["numbers"][1].as_i64());
    let lost: Vec<_> = lost.collect();
    // Packets to the mobile node: some are lost with one binding, none with two. The same applies
    // to a download.
    for pair in [&lost[..2], &lost[4..]] {
        ensure!(pair[0] > Some(0) && pair[1] == Some(0), "{report}");
    }
    let place = folder.0.join("mml-handoff-loss");
    for plot in ["gaps-flow.svg", "gaps-download.svg"] {
        let svg = fs::read_to_string(place.join(plot))?;
        ensure!(svg.starts_with("<svg"), "{svg}");
    }
    let without = folder.lab(&format!("{run} --no-simultaneous"))?;
    let report = &documents(&without)?[0];
    ensure!(without.status.code() == Some(1), "{report}");
    ensure!(report["environment"]["simultaneous"] == false, "{report}");
    let reasons = report["reasons"].to_string();
    ensure!(
        reasons.contains("two bindings: came over sent"),
        "{reasons}"
    );
    let without = folder.lab(&format!("{run} --no-zones"))?;
    let report = &documents(&without)?[0];
    ensure!(without.status.code() == Some(1), "{report}");
    let reasons = report["reasons"].to_string();
    ensure!(reasons.contains("segments that agents read"), "{reasons}");
    Ok(())
}

/// Judges waits at a distance, beside which processor time is small.
// Works: figures
#[lab::test(quiet)]
fn a_session_is_resumed_after_a_round_trip_and_without_resumption_the_verdict_fails() -> Result<()>
{
    let run = "run vpn-resume --quick";
    let folder = Folder::new("vpn-resume")?;
    let report = documents(&folder.lab(run)?)?.swap_remove(0);
    ensure!(hold(&report, "until the initiator can send")?, "{report}");
    let rows = report["rows"].as_array().context("it is a list")?;
    let messages = rows.iter().filter_map(|row| row["numbers"][2].as_i64());
    // In each way, at each distance.
    ensure!(messages.collect::<Vec<_>>() == [4; 12], "{report}");
    let without = folder.lab(&format!("{run} --no-resumption"))?;
    let report = &documents(&without)?[0];
    ensure!(without.status.code() == Some(1), "{report}");
    ensure!(report["environment"]["resumption"] == false, "{report}");
    let reasons = report["reasons"].to_string();
    let waits = "600 ms a round trip: full exchange over SKID3: 1.0";
    ensure!(reasons.contains(waits), "{reasons}");
    Ok(())
}

// Works: figures
#[lab::test]
fn strategies_save_exchanges_of_logs_like_the_paper_s_and_without_resumption_the_verdict_fails()
-> Result<()> {
    for (figure, lifetime) in [
        ("vpn-fig6", "clocked 8 h"),
        ("vpn-established", "established 2 h"),
        ("vpn-data", "data 50 MB"),
    ] {
        let run = format!("run {figure} --quick");
        let (folder, report) = holds(figure, &run)?;
        let rows = report["rows"].as_array().context("it is a list")?;
        ensure!(rows.len() == 14, "{report}");
        let without = folder.lab(&format!("{run} --no-resumption"))?;
        let report = &documents(&without)?[0];
        ensure!(without.status.code() == Some(1), "{report}");
        ensure!(report["environment"]["resumption"] == false, "{report}");
        let left = format!("remote, {lifetime}: all connections over exchanges that remain: 1.00");
        ensure!(report["reasons"].to_string().contains(&left), "{report}");
    }
    Ok(())
}

// Works: figures
#[lab::test]
fn logs_like_the_paper_s_have_the_characteristics_that_it_tells() -> Result<()> {
    for figure in ["vpn-table2", "vpn-fig2", "vpn-fig3", "vpn-fig4", "vpn-fig5"] {
        let (_, report) = holds(figure, &format!("run {figure} --quick"))?;
        let [rows, plots] = ["rows", "plots"].map(|key| report[key].as_array().map(Vec::len));
        let drawn = usize::from(figure != "vpn-table2");
        ensure!((rows, plots) == (Some(14), Some(drawn)), "{report}");
    }
    Ok(())
}

/// One trial. A debug build is compared with native TCP alone.
// Works: figures
#[lab::test(quiet)]
fn transfers_to_more_clients_take_longer_with_ipsec_and_without_tunnels_the_verdict_fails()
-> Result<()> {
    let run = "run vpn-fig1 --quick --seeds 1";
    let (folder, report) = holds("vpn-fig1", run)?;
    let rows = report["rows"].as_array().context("it is a list")?;
    let trials: Vec<_> = rows.iter().map(|row| row["numbers"][0].as_i64()).collect();
    // By each server: 1, 3 and 6 clients on slow links, 1 and 6 without a limit.
    ensure!(trials[..3 * 5] == [Some(1); 3 * 5], "{report}");
    // That of the cryptography alone.
    ensure!(trials[3 * 5..] == [None], "{report}");
    for plot in ["time-gigabit", "throughput-unlimited"] {
        let svg = fs::read_to_string(folder.0.join(format!("vpn-fig1/{plot}.svg")))?;
        ensure!(svg.starts_with("<svg"), "{svg}");
    }
    let without = folder.lab(&format!("{run} --no-tunnels"))?;
    let report = &documents(&without)?[0];
    ensure!(without.status.code() == Some(1), "{report}");
    ensure!(report["environment"]["tunnels"] == false, "{report}");
    let reasons = report["reasons"].to_string();
    let as_native = "6 clients: processor time of the gateway, strongSwan over native TCP: ";
    ensure!(reasons.contains(as_native), "{reasons}");
    Ok(())
}

/// Judges who resumed: times depend on the machine.
// Works: figures
#[lab::test(quiet)]
fn clients_of_a_killed_gateway_resume_and_without_resumption_the_verdict_fails() -> Result<()> {
    let run = "run vpn-storm --quick --seeds 1 --clients 100";
    let folder = Folder::new("vpn-storm")?;
    let report = documents(&folder.lab(run)?)?.swap_remove(0);
    ensure!(hold(&report, "that resumed")?, "{report}");
    let by_daemons = [0, 2, 2, 2, 2, 2, 2].map(Some);
    ensure!(resumptions(&report)?[7..] == by_daemons, "{report}");
    let without = folder.lab(&format!("{run} --no-resumption"))?;
    let report = &documents(&without)?[0];
    ensure!(without.status.code() == Some(1), "{report}");
    ensure!(resumptions(report)? == [Some(0); 14], "{report}");
    let reasons = report["reasons"].to_string();
    let none = "clients that resumed, of all: SKID3, clocked: 0.00";
    ensure!(reasons.contains(none), "{reasons}");
    Ok(())
}

/// A run of four moves, two of each kind.
// Works: figures
#[lab::test(quiet)]
fn a_lost_interface_is_left_before_strongswan_leaves_it_and_without_mobike_the_verdict_fails()
-> Result<()> {
    let run = "run e2e-fig6 --quick --seeds 1";
    let (folder, report) = holds("e2e-fig6", run)?;
    let rows = report["rows"].as_array().context("it is a list")?;
    let moves = rows.iter().filter(|row| row["name"] != "the paper");
    let moves: Vec<_> = moves.map(|row| row["numbers"][0].as_i64()).collect();
    // In each kind of move, for each quantity, by each of both.
    ensure!(moves == [Some(2); 32], "{report}");
    for kind in ["mobility", "multihoming"] {
        let plot = format!("e2e-fig6/{kind}-15000us.svg");
        let svg = fs::read_to_string(folder.0.join(plot))?;
        ensure!(svg.starts_with("<svg"), "{svg}");
    }
    let without = folder.lab(&format!("{run} --no-mobike"))?;
    let report = &documents(&without)?[0];
    ensure!(without.status.code() == Some(1), "{report}");
    ensure!(report["environment"]["mobike"] == false, "{report}");
    let reasons = report["reasons"].to_string();
    let late = "multihoming, 15 ms a round trip: first ESP, strongSwan over Strata: 0.";
    ensure!(reasons.contains(late), "{reasons}");
    Ok(())
}

/// One set-up and one move with each protection.
// Works: figures
#[lab::test(quiet)]
fn ipsec_adds_to_a_lost_interface_a_fifth_of_what_it_adds_in_the_paper() -> Result<()> {
    let (folder, report) = holds("e2e-fig4", "run e2e-fig4 --quick --seeds 1")?;
    let rows = report["rows"].as_array().context("it is a list")?;
    let is_measured = |row: &&Value| !row["name"].to_string().contains("the paper");
    let times = rows.iter().filter(is_measured);
    let times: Vec<_> = times.map(|row| row["numbers"][0].as_i64()).collect();
    // Six negotiations, and four quantities of a move with each of the seven protections.
    ensure!(times == [Some(1); 6 + 4 * 7], "{report}");
    ensure!(report["setting"].to_string().contains("T_SCTP"), "{report}");
    for plot in ["t-ike", "t-sys", "t-stalled"] {
        let svg = fs::read_to_string(folder.0.join(format!("e2e-fig4/{plot}.svg")))?;
        ensure!(svg.starts_with("<svg"), "{svg}");
    }
    Ok(())
}

/// One move.
// Works: figures
#[lab::test(quiet)]
fn without_mobike_a_lost_interface_stalls_traffic_for_longer_than_in_the_paper() -> Result<()> {
    let folder = Folder::new("e2e-fig4-control")?;
    let without = folder.lab("run e2e-fig4 --quick --seeds 1 --no-mobike")?;
    let report = &documents(&without)?[0];
    ensure!(without.status.code() == Some(1), "{report}");
    ensure!(report["environment"]["mobike"] == false, "{report}");
    let reasons = report["reasons"].to_string();
    let late = "ESP tunnel, Strata: T_STALLED, the paper's over this: 0.0";
    ensure!(reasons.contains(late), "{reasons}");
    Ok(())
}

/// One move of each kind in each manner.
// Works: figures
#[lab::test(quiet)]
fn soft_moves_and_live_paths_cost_less_and_without_clones_and_paths_the_verdict_fails() -> Result<()>
{
    let run = "run e2e-fig7 --quick --seeds 1";
    let (folder, report) = holds("e2e-fig7", run)?;
    let rows = report["rows"].as_array().context("it is a list")?;
    let moves: Vec<_> = rows.iter().map(|row| row["numbers"][0].as_i64()).collect();
    // Five quantities of six hard moves, and two of a live path and of a soft hand-over.
    ensure!(moves == [Some(1); 6 * 5 + 2 * 2], "{report}");
    for kind in ["mobility", "multihoming"] {
        let plot = folder.0.join(format!("e2e-fig7/{kind}-15000us.svg"));
        let svg = fs::read_to_string(plot)?;
        ensure!(svg.starts_with("<svg"), "{svg}");
    }
    let without = folder.lab(&format!("{run} --no-clones --no-paths"))?;
    let report = &documents(&without)?[0];
    ensure!(without.status.code() == Some(1), "{report}");
    ensure!(report["environment"]["paths"] == false, "{report}");
    let reasons = report["reasons"].to_string();
    for part in [
        "15 ms a round trip: moves that lose no datagram, over all: 0.00",
        "live paths, 15 ms a round trip: two round trips over T_STALLED: 0.",
    ] {
        ensure!(reasons.contains(part), "{reasons}");
    }
    Ok(())
}

/// One move of each kind by each of both.
// Works: figures
#[lab::test(quiet)]
fn the_packets_of_a_move_are_in_the_order_of_the_protocol() -> Result<()> {
    let (folder, report) = holds("e2e-fig5", "run e2e-fig5 --quick")?;
    let rows = report["rows"].as_array().context("it is a list")?;
    let of_update = |row: &&Value| {
        row["name"]
            .to_string()
            .contains("UPDATE_SA_ADDRESSES, request")
    };
    ensure!(rows.iter().filter(of_update).count() >= 4, "{report}");
    for plot in ["mobility-strata", "multihoming-strongswan"] {
        let svg = fs::read_to_string(folder.0.join(format!("e2e-fig5/{plot}.svg")))?;
        ensure!(svg.starts_with("<svg"), "{svg}");
    }
    Ok(())
}

// Works: figures
#[lab::test(quiet)]
fn transport_mode_saves_the_inner_header_and_without_it_the_verdict_fails() -> Result<()> {
    let run = "run e2e-overhead --quick";
    let (folder, report) = holds("e2e-overhead", run)?;
    let rows = report["rows"].as_array().context("it is a list")?;
    ensure!(rows.len() == 32, "{report}");
    let build = report["environment"]["build"].to_string();
    let marked = rows
        .iter()
        .filter(|row| row["subject"].to_string().contains("debug build"));
    let expected = if build.contains("debug build") { 16 } else { 0 };
    ensure!(marked.count() == expected, "{build}: {report}");
    let svg = fs::read_to_string(folder.0.join("e2e-overhead/saved.svg"))?;
    ensure!(svg.starts_with("<svg"), "{svg}");
    let without = folder.lab(&format!("{run} --no-transport"))?;
    let report = &documents(&without)?[0];
    ensure!(without.status.code() == Some(1), "{report}");
    ensure!(report["environment"]["transport"] == false, "{report}");
    let reasons = report["reasons"].to_string();
    ensure!(
        reasons.contains("20 octets shorter, over all: 0.50"),
        "{reasons}"
    );
    Ok(())
}

/// Two hand-overs of each kind.
// Works: figures
#[lab::test(quiet)]
fn soft_hand_overs_lose_no_datagram_and_without_clones_the_verdict_fails() -> Result<()> {
    let run = "run e2e-soft --quick --seeds 1";
    let (folder, report) = holds("e2e-soft", run)?;
    let rows = report["rows"].as_array().context("it is a list")?;
    let lost: Vec<_> = rows.iter().map(|row| row["numbers"][1].as_i64()).collect();
    // To the node: when its interface is lost, by a hard hand-over, and by a soft one.
    ensure!(lost[0] > Some(0) && lost[1] > Some(0), "{report}");
    ensure!(lost[2] == Some(0), "{report}");
    let svg = fs::read_to_string(folder.0.join("e2e-soft/download.svg"))?;
    ensure!(svg.starts_with("<svg"), "{svg}");
    let without = folder.lab(&format!("{run} --no-clones"))?;
    let report = &documents(&without)?[0];
    ensure!(without.status.code() == Some(1), "{report}");
    ensure!(report["environment"]["clones"] == false, "{report}");
    let reasons = report["reasons"].to_string();
    ensure!(
        reasons.contains("soft: moves that lose no datagram, over all: 0."),
        "{reasons}"
    );
    Ok(())
}

/// Tells whether the findings hold whose names contain `part`.
fn hold(report: &Value, part: &str) -> Result<bool> {
    let findings = report["findings"].as_array().context("it is a list")?;
    let named = |finding: &&Value| finding["what"].to_string().contains(part);
    let mut verdicts = findings.iter().filter(named).map(|one| &one["verdict"]);
    let first = verdicts.next().context("no finding has this name")?;
    Ok(first == "holds" && verdicts.all(|verdict| verdict == "holds"))
}

/// Returns how many clients of each row of `vpn-storm` resumed.
fn resumptions(report: &Value) -> Result<Vec<Option<i64>>> {
    let rows = report["rows"].as_array().context("it is a list")?;
    let resumed = rows.iter().map(|row| row["numbers"][3].as_i64());
    Ok(resumed.collect())
}

/// The library's tests forge each kind of number.
// Works: figures
#[lab::test]
fn a_bundle_is_checked_without_measuring_and_a_changed_number_is_found() -> Result<()> {
    let folder = Folder::new("bundle")?;
    let runs = folder.lab("run mml-fig15 mml-fig18 --quick --seeds 1 --seconds 2")?;
    ensure!(documents(&runs)?.len() == 2, "{runs:?}");
    let bundle = folder.0.join("bundle");
    let to = bundle.to_str().context("a path of letters")?;
    ensure!(folder.lab(&format!("bundle --to {to}"))?.status.success());
    let sums = Command::new("sha256sum")
        .args(["--check", "--quiet", "SHA256SUMS"])
        .current_dir(&bundle)
        .output()?;
    ensure!(sums.status.success(), "{sums:?}");
    let verify = || {
        let mut command = Command::new(find_binary("strata-lab")?);
        let output = command.args(["figures", "verify", "--json", to]).output()?;
        let checked = documents(&output)?.swap_remove(0);
        Ok::<_, anyhow::Error>((output.status.code(), checked["faults"].clone()))
    };
    ensure!(verify()? == (Some(0), json!([])), "{:?}", verify()?);

    let path = bundle.join("mml-fig15/result.json");
    let text = fs::read_to_string(&path)?;
    fs::write(
        &path,
        text.replacen("\"at_least\": 2.0", "\"at_least\": 1.0", 1),
    )?;
    let (code, faults) = verify()?;
    ensure!(code == Some(1), "{faults}");
    ensure!(faults[0] == "mml-fig15/result.json was changed", "{faults}");
    let told = faults[1].to_string();
    ensure!(told.contains("the raw data give 2.0"), "{faults}");
    Ok(())
}

// Works: figures
#[lab::test]
fn the_list_has_every_figure_and_says_what_cannot_run() -> Result<()> {
    let mut command = Command::new(find_binary("strata-lab")?);
    let lines = documents(&command.args(["figures", "list", "--json"]).output()?)?;
    ensure!(lines.len() == figures::ALL.len(), "{lines:?}");
    // The programs that tests build have the algorithms of the papers.
    let can_run = |line: &Value| line["cannot_run"].is_null();
    ensure!(lines.iter().all(can_run), "{lines:?}");
    // A table needs stratad beside strata or in PATH.
    let alone = Folder::new("alone")?;
    let copy = alone.0.join("strata-lab");
    fs::copy(find_binary("strata-lab")?, &copy)?;
    let mut command = Command::new(&copy);
    let output = command
        .args(["figures", "list"])
        .env_remove("STRATA_BIN_DIR")
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(text.contains("cannot run: "), "{text}");
    Ok(())
}

// Works: figures
#[lab::test(quiet)]
fn messages_of_key_management_take_their_time_and_without_zones_the_verdict_fails() -> Result<()> {
    let run = "run mml-table2 --quick";
    let (folder, report) = holds("mml-table2", run)?;
    ensure!(
        report["rows"].as_array().map(Vec::len) == Some(10),
        "{report}"
    );
    fails_for_want_of_zones(&folder, run)
}

/// With a single run the test judges message counts only, because other work on the machine blurs
/// computing times.
// Works: figures
#[lab::test(quiet)]
fn a_hand_over_waits_for_no_key_and_without_zones_the_verdict_fails() -> Result<()> {
    let folder = Folder::new("mml-table3")?;
    let run = "run mml-table3 --quick --seeds 1";
    let report = documents(&folder.lab(run)?)?.swap_remove(0);
    ensure!(
        report["rows"].as_array().map(Vec::len) == Some(20),
        "{report}"
    );
    let findings = report["findings"].as_array().context("it is a list")?;
    let counted = |finding: &&Value| finding["what"].to_string().contains(": messages of");
    let counted: Vec<_> = findings.iter().filter(counted).collect();
    let all_hold = counted.iter().all(|finding| finding["verdict"] == "holds");
    ensure!(counted.len() == 4 && all_hold, "{report}");
    fails_for_want_of_zones(&folder, run)
}

fn fails_for_want_of_zones(folder: &Folder, run: &str) -> Result<()> {
    let without = folder.lab(&format!("{run} --no-zones"))?;
    let report = &documents(&without)?[0];
    ensure!(without.status.code() == Some(1), "{report}");
    let reasons = report["reasons"].to_string();
    ensure!(reasons.contains("not measured"), "{reasons}");
    Ok(())
}

/// Returns the measured rows, those of a suite that supports zones.
fn numbers(report: &Value) -> Result<Vec<Vec<Option<i64>>>> {
    let rows = report["rows"].as_array().context("rows is a list")?;
    let ours = rows.iter().filter(|row| row["subject"] == "aes128gcm16");
    let numbers = ours.map(|row| {
        Some(
            row["numbers"]
                .as_array()?
                .iter()
                .map(Value::as_i64)
                .collect(),
        )
    });
    numbers.collect::<Option<_>>().context("numbers is a list")
}

// Refuses: figures
#[lab::test]
fn what_an_exhibit_does_not_rest_on_cannot_be_left_off() -> Result<()> {
    for (name, option) in [
        ("mml-fig15", "--no-zones"),
        ("mml-fig17", "--no-snoop"),
        ("czml-table1", "--no-snoop"),
        ("czml-fig4", "--no-zones"),
        ("czml-table1", "--no-simultaneous"),
        ("mml-handoff-loss", "--no-snoop"),
        ("e2e-fig6", "--no-transport"),
        ("e2e-overhead", "--no-mobike"),
        ("e2e-soft", "--no-mobike"),
        ("e2e-fig6", "--no-clones"),
        ("e2e-fig4", "--no-paths"),
        ("e2e-fig7", "--no-transport"),
        ("vpn-resume", "--no-tunnels"),
    ] {
        let output = Folder::new("control")?.lab(&format!("run {name} {option}"))?;
        ensure!(output.status.code() == Some(2), "{output:?}");
        let error = &documents(&output)?[0]["error"];
        ensure!(error["message"].to_string().contains(name), "{error}");
        ensure!(error["fix"].to_string().contains(option), "{error}");
    }
    Ok(())
}

// Recovers: figures
#[lab::test(quiet)]
fn a_run_that_is_broken_off_leaves_nothing_behind_and_goes_on() -> Result<()> {
    let folder = Folder::new("broken")?;
    let arguments = "run mml-fig15 --quick --seeds 1 --seconds 3 --at-once 5";
    let mut child = folder.command(arguments)?.spawn()?;
    // A cell that has a reason to be repeated is not done.
    let is_done = |path: &PathBuf| -> Result<bool> {
        let mut kept: Value = serde_json::from_str(&fs::read_to_string(path)?)?;
        let measured: Measured = serde_json::from_value(kept["measured"].take())?;
        Ok(measured.reason_to_repeat().is_none())
    };
    let cells = || -> Result<Vec<PathBuf>> {
        let mut done = Vec::new();
        for entry in fs::read_dir(folder.0.join("cells")).into_iter().flatten() {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "json") && is_done(&path)? {
                done.push(path);
            }
        }
        Ok(done)
    };
    until("the first cells", Duration::from_secs(60), || {
        ensure!(child.try_wait()?.is_none(), "the run has ended");
        Ok((!cells()?.is_empty()).then_some(()))
    })?;
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT)?;
    let status = child.wait()?;
    ensure!(status.code() == Some(130), "{status}");
    let left: Vec<_> = fs::read_dir(folder.0.join("tmp"))?.collect();
    ensure!(left.is_empty(), "{left:?}");

    let kept = cells()?;
    let contents = |paths: &[PathBuf]| paths.iter().map(fs::read).collect::<Result<Vec<_>, _>>();
    let before = contents(&kept)?;
    let reports = documents(&folder.lab(arguments)?)?;
    ensure!(reports[0]["environment"]["cells"] == 15, "{}", reports[0]);
    ensure!(contents(&kept)? == before, "a finished cell was run again");
    Ok(())
}

// Refuses: figures
#[lab::test]
fn an_unknown_figure_is_refused_with_where_to_look() -> Result<()> {
    let output = Folder::new("unknown")?.lab("run mml-fig99")?;
    ensure!(output.status.code() == Some(2), "{output:?}");
    let error = &documents(&output)?[0]["error"];
    ensure!(error["message"] == "there is no figure mml-fig99");
    ensure!(error["fix"].to_string().contains("strata-lab figures list"));
    Ok(())
}

// Refuses: figures
#[lab::test]
fn a_folder_that_cannot_be_written_is_refused() -> Result<()> {
    let mut command = Command::new(find_binary("strata-lab")?);
    command.args(["figures", "run", "mml-fig15"]);
    command.args(["--json", "--out", "/proc/1/lab"]);
    let output = command.output()?;
    ensure!(output.status.code() == Some(2), "{output:?}");
    let error = &documents(&output)?[0]["error"];
    ensure!(
        error["message"].to_string().contains("/proc/1/lab"),
        "{error}"
    );
    ensure!(error["fix"].to_string().contains("--out"), "{error}");
    Ok(())
}

// Refuses: figures
#[lab::test]
fn a_page_over_nothing_is_refused() -> Result<()> {
    let output = Folder::new("nothing")?.lab("report")?;
    ensure!(output.status.code() == Some(2), "{output:?}");
    let error = &documents(&output)?[0]["error"];
    ensure!(
        error["fix"].to_string().contains("strata-lab figures run"),
        "{error}"
    );
    Ok(())
}

/// Repeats a short run that measures time until its verdict holds; returns the folder and the
/// report. A machine that stalls can spoil the verdict of so short a run, but cannot produce one:
/// the same run without the feature under test fails each time.
fn holds(name: &str, run: &str) -> Result<(Folder, Value)> {
    let mut failed = Vec::new();
    for attempt in 1..=TRIES {
        let folder = Folder::new(&format!("{name}-{attempt}"))?;
        let output = folder.lab(run)?;
        let report = documents(&output)?.swap_remove(0);
        let verdict = report["verdict"].as_str().context("no verdict")?;
        let code = i32::from(verdict == "fails");
        ensure!(output.status.code() == Some(code), "{report}");
        if verdict == "holds" {
            return Ok((folder, report));
        }
        failed.push((report["reasons"].clone(), report["environment"].clone()));
    }
    anyhow::bail!("{TRIES} times: {failed:#?}")
}

/// Parses each line of standard output as a JSON document.
fn documents(output: &Output) -> Result<Vec<Value>> {
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().map(serde_json::from_str);
    lines
        .collect::<Result<_, _>>()
        .with_context(|| format!("{output:?}"))
}

/// An output folder, which also holds the temporary files of the programs that write to it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Result<Self> {
        let process = std::process::id();
        let path = std::env::temp_dir().join(format!("lab-figures-{process}-{name}"));
        fs::create_dir_all(path.join("tmp"))?;
        Ok(Self(path))
    }

    fn command(&self, arguments: &str) -> Result<Command> {
        let mut command = Command::new(find_binary("strata-lab")?);
        command.arg("figures").args(arguments.split(' '));
        command.arg("--json").arg("--out").arg(&self.0);
        command.env("TMPDIR", self.0.join("tmp"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    fn lab(&self, arguments: &str) -> Result<Output> {
        Ok(self.command(arguments)?.output()?)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If the folder cannot be removed, the system's clean-up handles it.
        let _ = fs::remove_dir_all(&self.0);
    }
}
