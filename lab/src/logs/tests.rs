//! Analyses of whole logs.

use super::synthesis::{self, Open, Workload};
use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs;
use std::io::Write;
use std::path::Path;

fn asked(files: Vec<PathBuf>) -> Asked {
    Asked {
        files,
        format: None,
        columns: None,
        zone: Zone::UTC,
        in_order: false,
        entries: 100_000,
        cost: None,
        anonymous: None,
        bars: false,
    }
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("strata-logs-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn synthetic(workload: Workload) -> Vec<u8> {
    let mut log = Vec::new();
    synthesis::write(workload, Open::USUAL, 1, &mut log).unwrap();
    log
}

fn share(analysis: &Analysis, name: &str) -> f64 {
    let mut all = analysis.strategies.iter();
    all.find(|one| one.name == name).expect("a strategy").share
}

/// The synthetic log has table II of the paper, as its analysis finds it.
#[test]
fn a_synthetic_log_has_the_means_of_table_ii() {
    let folder = Folder::new("table");
    for (name, workload) in [
        ("wireless", Workload::WIRELESS),
        ("remote", Workload::REMOTE),
    ] {
        let workload = workload.scaled(20_000);
        let log = folder.file(name, synthetic(workload));
        let analysis = analyse(&asked(vec![log])).unwrap();
        let table = &analysis.table;
        let near = |found: f64, expected: f64, part: f64, what: &str| {
            let ratio = found / expected;
            assert!(
                (ratio - 1.0).abs() < part,
                "{name}: {what} is {ratio:.3} of the paper's"
            );
        };
        near(
            table.connections as f64,
            workload.connections as f64,
            0.02,
            "connections",
        );
        near(table.users as f64, workload.users as f64, 0.1, "users");
        near(
            table.seconds.mean.unwrap(),
            workload.seconds,
            0.1,
            "duration",
        );
        near(
            table.received.mean.unwrap(),
            workload.received,
            0.4,
            "received",
        );
        near(table.sent.mean.unwrap(), workload.sent, 0.4, "sent");
        assert_eq!(analysis.days.len(), 30);
    }
}

#[test]
fn longer_lifetimes_leave_fewer_exchanges_and_without_returns_caching_saves_nothing() {
    let folder = Folder::new("shares");
    let log = folder.file("log.csv", synthetic(Workload::WIRELESS.scaled(10_000)));
    let analysis = analyse(&asked(vec![log])).unwrap();
    let clocked = ["clocked 1 h", "clocked 8 h", "clocked 24 h", "clocked 30 d"];
    let shares = clocked.map(|name| share(&analysis, name));
    assert!(shares.is_sorted_by(|a, b| a >= b), "{shares:?}");
    assert!(shares[0] > shares[3] && shares[3] < 0.2, "{shares:?}");
    assert!(analysis.advice.strategy.is_some());

    // The control: every connection is of another user.
    let rows = (0..1000).map(|row| format!("u{row},{},{}\n", row * 60, row * 60 + 30));
    let once = folder.file(
        "once.csv",
        format!("user,begin,end\n{}", rows.collect::<String>()),
    );
    let analysis = analyse(&asked(vec![once])).unwrap();
    assert_eq!(share(&analysis, "clocked 30 d"), 1.0);
    assert_eq!(analysis.advice.strategy, None);
    assert!(analysis.text().contains("leave resumption off"));
}

#[test]
fn rotated_and_compressed_files_are_one_log_read_from_the_oldest_on() {
    let folder = Folder::new("rotated");
    let line =
        |day: u32, text: &str| format!("2026-11-{day:02}T10:00:00Z gw charon: 04[IKE] {text}\n");
    let up = line(
        1,
        "IKE_SA road[1] established between 192.0.2.1[gw]...203.0.113.7[ann]",
    );
    let down = line(
        2,
        "deleting IKE_SA road[1] between 192.0.2.1[gw]...203.0.113.7[ann]",
    );
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(up.as_bytes()).unwrap();
    let old = folder.file("charon.log.1.gz", encoder.finish().unwrap());
    let new = folder.file("charon.log", down);
    let hour_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
    fs::File::open(&old)
        .unwrap()
        .set_modified(hour_ago)
        .unwrap();
    // As a shell lists them.
    let files = vec![new, old];
    let analysis = analyse(&asked(files.clone())).unwrap();
    let table = &analysis.table;
    assert_eq!((table.connections, table.seconds.sum), (1, 86_400.0));
    assert_eq!(analysis.source.clock_went_back, 0);
    // In the given order, the end comes first.
    let in_order = Asked {
        in_order: true,
        ..asked(files)
    };
    let analysis = analyse(&in_order).unwrap();
    assert_eq!(analysis.table.seconds.connections, 0);
    assert_eq!(analysis.source.clock_went_back, 1);
    assert!(analysis.text().contains("--in-order"));
}

#[test]
fn an_anonymous_table_says_the_same_and_has_no_name() {
    let folder = Folder::new("anonymous");
    let rows = "user,gateway,address,begin,end,in,out\n\
                ann@example.net,gw1,203.0.113.7,1000,2000,5,6\n\
                bob@example.net,gw1,203.0.113.8,1500,,,\n\
                ann@example.net,gw2,203.0.113.7,3000,4000,7,8\n";
    let log = folder.file("log.csv", rows);
    let table = folder.0.join("anonymous.csv");
    let first = analyse(&Asked {
        anonymous: Some(table.clone()),
        ..asked(vec![log])
    });
    let written = fs::read_to_string(&table).unwrap();
    for secret in ["ann", "bob", "example", "gw1", "203.0.113"] {
        assert!(!written.contains(secret), "{written}");
    }
    let second = analyse(&asked(vec![table])).unwrap();
    let [first, second] = [first.unwrap(), second].map(|mut analysis| {
        analysis.source = Source::default();
        serde_json::to_string(&analysis).unwrap()
    });
    assert_eq!(first, second);
}

#[test]
fn a_table_without_names_replaces_no_file() {
    let folder = Folder::new("kept");
    let log = folder.file("log.csv", "user,begin,end\nann,10,20\n");
    let over = Asked {
        anonymous: Some(log.clone()),
        ..asked(vec![log.clone()])
    };
    let refused = analyse(&over).unwrap_err();
    assert!(refused.fix.contains("does not exist"), "{refused}");
    assert!(fs::read_to_string(&log).unwrap().contains("ann"));
}

/// Damage in the first block, at the very beginning, and at the end.
#[test]
fn damage_is_said_wherever_it_is_and_what_was_read_before_counts() {
    let folder = Folder::new("damage");
    let rows: String = (0..20)
        .map(|row| format!("u{row},{row},{}\n", row + 1))
        .collect();
    let text = format!("user,begin,end\n{rows}");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    let mut packed = encoder.finish().unwrap();
    let checksum = packed.len() - 8;
    packed[checksum] ^= 1;
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let zstd = ruzstd::encoding::compress_to_vec(text.as_bytes(), level);
    let files = vec![
        folder.file("whole.csv", &text),
        folder.file("checksum.csv.gz", packed),
        folder.file("header.csv.zst", &zstd[..5]),
    ];
    let analysis = analyse(&asked(files)).unwrap();
    let cut = analysis.source.cut.join("\n");
    assert!(
        cut.contains("checksum.csv.gz: ") && cut.contains("header.csv.zst: "),
        "{cut}"
    );
    assert_eq!(analysis.table.connections, 40);
}

/// In a log of one day, nothing is known of lifetimes of weeks.
#[test]
fn of_lifetimes_that_save_the_same_the_shortest_is_recommended() {
    let folder = Folder::new("day");
    let rows = (0..300).map(|row| format!("u{},{},{}\n", row % 50, row * 200, row * 200 + 60));
    let log = folder.file(
        "log.csv",
        format!("user,begin,end\n{}", rows.collect::<String>()),
    );
    let analysis = analyse(&asked(vec![log])).unwrap();
    let name = analysis.advice.strategy.unwrap();
    assert!(!name.contains(" d"), "{name}");
}

#[test]
fn what_cannot_be_read_is_said_with_its_place() {
    let folder = Folder::new("unreadable");
    let log = folder.file("log.csv", "user,begin,end\nann,10,20\nbob,x,20\n");
    let analysis = analyse(&asked(vec![log])).unwrap();
    assert_eq!(analysis.source.unreadable, 1);
    let text = analysis.text();
    assert!(text.contains("log.csv:3: the time is missing"), "{text}");

    let refused = |content: &str| {
        let file = folder.file("other", content);
        analyse(&asked(vec![file])).unwrap_err()
    };
    assert!(refused("nothing of interest\n").fix.contains("--format: "));
    assert!(refused("user,begin,end\n").message.contains("no session"));
    let missing = analyse(&asked(vec![Path::new("/nonexistent").into()])).unwrap_err();
    assert!(missing.message.contains("/nonexistent"), "{missing}");
}

#[test]
fn a_table_with_other_names_needs_a_map() {
    let folder = Folder::new("columns");
    let log = folder.file("log.csv", "who;from;till\nann;10;20\n");
    analyse(&asked(vec![log.clone()])).unwrap_err();
    let columns = [
        ("who", logs::Column::User),
        ("from", logs::Column::Begin),
        ("till", logs::Column::End),
    ];
    let columns = columns
        .into_iter()
        .fold(Columns::default(), |columns, (name, column)| {
            columns.with(name, column)
        });
    let with = Asked {
        columns: Some(columns),
        ..asked(vec![log])
    };
    assert_eq!(analyse(&with).unwrap().table.connections, 1);
}

#[test]
fn the_page_has_every_figure_and_stands_alone() {
    let folder = Folder::new("page");
    let log = folder.file("log.csv", synthetic(Workload::WIRELESS.scaled(2000)));
    let cost = Cost {
        full: Duration::from_micros(200),
        resumed: Duration::from_micros(50),
    };
    let with = Asked {
        cost: Some(cost),
        ..asked(vec![log])
    };
    let analysis = analyse(&with).unwrap();
    let page = analysis.write(&folder.0.join("out")).unwrap();
    let html = fs::read_to_string(&page).unwrap();
    assert_eq!(html.matches("<svg").count(), 8);
    assert!(
        !html.contains("http://")
            || html.matches("http://").count() == html.matches("http://www.w3.org").count()
    );
    let json = fs::read_to_string(page.with_file_name("logs.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let without = json["cpu_seconds_without"].as_f64().unwrap();
    let with = json["strategies"][0]["cpu_seconds"].as_f64().unwrap();
    assert!(with < without, "{with} {without}");
}
