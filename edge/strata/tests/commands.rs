//! Tests of the program itself: its output streams and exit statuses.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

/// A folder for one test, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("strata-cli-{}-{unique}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).expect("a temporary folder can be made");
        folder
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a temporary file can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
        path
    }

    fn socket(&self) -> PathBuf {
        self.0.join("strata.sock")
    }

    /// Starts a daemon that sends one answer and returns the request.
    fn daemon(&self, answer: &str) -> JoinHandle<String> {
        let listener = UnixListener::bind(self.socket()).expect("the folder is fresh");
        let answer = format!("{answer}\n");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("the command connects");
            let mut line = String::new();
            let mut reader = BufReader::new(stream.try_clone().expect("a socket can be cloned"));
            reader.read_line(&mut line).expect("the command asks");
            stream
                .write_all(answer.as_bytes())
                .expect("the command listens");
            line.trim_end().to_owned()
        })
    }

    /// Runs `strata` against this folder's socket.
    fn strata(&self, words: &[&str]) -> Output {
        let socket = self.socket();
        let mut command = strata(words);
        command.arg("--socket").arg(socket);
        command.output().expect("strata runs")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn strata(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strata"));
    command
        .args(words)
        .env_remove("NO_COLOR")
        .stdin(Stdio::null());
    command
}

fn check(file: &Path, more: &[&str]) -> Output {
    let mut command = strata(&["check"]);
    command.arg(file).args(more).output().expect("strata runs")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const GATEWAY: &str = include_str!("../../config/examples/gateway.toml");
const PSK: &str = "9f86d081884c7d659a2feaa0c55ad015\n";

fn gateway(folder: &Folder, text: &str) -> PathBuf {
    folder.write("alice.psk", PSK);
    folder.write("fa.psk", PSK);
    folder.write("gw.toml", text)
}

// Works: check
#[test]
fn check_says_that_a_good_file_is_good_and_what_it_does() {
    let folder = Folder::new();
    let file = gateway(&folder, GATEWAY);
    let output = check(&file, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let expected = format!(
        "{}: valid: gw.example.net, 1 tunnel, 1 licensed node\n\
         needs net.ipv4.ip_forward=1 (without it, hosts behind this gateway are not reached)\n",
        file.display()
    );
    assert_eq!((out(&output), err(&output)), (expected, String::new()));
    let output = check(&file, &["--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let need = &report["check"]["needs"][0];
    assert_eq!(need["settings"][0], "net.ipv4.ip_forward=1");
    assert_eq!(need["vital"], false);
}

#[test]
fn check_names_the_role_of_a_mobility_agent_and_the_setting_that_it_needs() {
    let folder = Folder::new();
    let text = "[node]\nid = \"fa.example.net\"\n[foreign_agent]\ninterface = \"wlan0\"\n\
                address = \"198.51.100.2\"\nhomes = [\"10.66.0.0/24\"]\n";
    let output = check(&folder.write("fa.toml", text), &[]);
    let shown = out(&output);
    assert!(
        shown.contains("fa.example.net, foreign agent at wlan0\n"),
        "{shown}{}",
        err(&output)
    );
    assert!(shown.contains("\nneeds net.ipv4.ip_forward=1 ("), "{shown}");
}

// Refuses: check
#[test]
fn check_names_every_error_on_standard_error_and_ends_with_2() {
    let folder = Folder::new();
    let file = gateway(
        &folder,
        &GATEWAY.replace("zones = \"accept\"", "zone = \"accept\"\nlivenes = \"3s\""),
    );
    let output = check(&file, &[]);
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(2), ""));
    let text = err(&output);
    assert!(
        text.contains("gw.toml:14:1: peer.alice.zone: unknown key"),
        "{text}"
    );
    assert!(text.contains("fix: did you mean `zones`?"), "{text}");
    assert!(
        text.contains("15:1: peer.alice.livenes: unknown key"),
        "{text}"
    );
    assert!(text.ends_with("3 errors\n"), "{text}");
}

#[test]
fn check_in_json_has_the_same() {
    let folder = Folder::new();
    let file = gateway(
        &folder,
        &GATEWAY.replace("zones = \"accept\"", "zones = \"acept\""),
    );
    let output = check(&file, &["--json"]);
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(2), ""));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(report["version"], 1);
    assert_eq!(report["check"]["ok"], false);
    let error = &report["check"]["errors"][0];
    assert_eq!(
        (error["line"].as_u64(), error["column"].as_u64()),
        (Some(14), Some(9))
    );
    assert_eq!(
        (&error["key"], &error["fix"]),
        (&"peer.alice.zones".into(), &"did you mean `accept`?".into())
    );

    let output = check(
        &gateway(
            &folder,
            &GATEWAY.replace("[\"headers\"]", "[\"headers\", \"payload\"]"),
        ),
        &["--json"],
    );
    assert_eq!(output.status.code(), Some(0));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(report["check"]["ok"], true);
    let warning = report["check"]["warnings"][0].as_str().expect("a warning");
    assert!(warning.starts_with("PAYLOAD LICENSED"), "{warning}");
}

#[test]
fn check_of_no_file_says_what_to_do() {
    let output = check(Path::new("/nonexistent/strata.toml"), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        err(&output),
        "error: cannot read /nonexistent/strata.toml: No such file or directory (os error 2)\n  \
         fix: check the path, or copy one of the examples to it\n"
    );
}

#[test]
fn without_a_daemon_every_verb_ends_with_3_and_says_what_to_do() {
    let folder = Folder::new();
    for words in [
        &["status"][..],
        &["status", "office"],
        &["status", "--state", "down", "--watch"],
        &["zones"],
        &["flows"],
        &["explain", "office"],
        &["reload"],
        &["reload", "--dry-run"],
        &["up"],
        &["up", "office", "--wait=1"],
        &["down"],
        &["keylog", "off"],
        &["metrics"],
        &["version"],
    ] {
        let output = folder.strata(words);
        assert_eq!(output.status.code(), Some(3), "{words:?}");
        let text = err(&output);
        assert!(
            text.starts_with("error: no stratad listens on /") && text.contains("fix: start it"),
            "{text}"
        );
        let output = folder.strata(&[words, &["--json"]].concat());
        assert_eq!((output.status.code(), err(&output).as_str()), (Some(3), ""));
        let error: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        assert!(
            error["error"]["fix"]
                .as_str()
                .is_some_and(|fix| fix.starts_with("start it")),
            "{error}"
        );
    }
}

#[test]
fn up_asks_for_what_was_typed_and_its_exit_status_tells_how_it_went() {
    for (words, question, state, code) in [
        (
            &["up"][..],
            r#"{"version":1,"request":"up","peer":null,"wait_seconds":null}"#,
            "connecting",
            0,
        ),
        (
            &["up", "office"],
            r#"{"version":1,"request":"up","peer":"office","wait_seconds":null}"#,
            "down",
            0,
        ),
        (
            &["up", "--wait"],
            r#"{"version":1,"request":"up","peer":null,"wait_seconds":30}"#,
            "up",
            0,
        ),
        (
            &["up", "--wait", "office"],
            r#"{"version":1,"request":"up","peer":"office","wait_seconds":30}"#,
            "up",
            0,
        ),
        (
            &["up", "--wait=5"],
            r#"{"version":1,"request":"up","peer":null,"wait_seconds":5}"#,
            "connecting",
            1,
        ),
    ] {
        let folder = Folder::new();
        let daemon = folder.daemon(&format!(
            r#"{{"version":1,"up":{{"peers":[{{"name":"office","state":"{state}","reason":null}}]}}}}"#
        ));
        let output = folder.strata(words);
        assert_eq!(output.status.code(), Some(code), "{words:?}");
        assert_eq!(out(&output), format!("office {state}\n"));
        assert_eq!(daemon.join().expect("the daemon was asked"), question);
    }
}

// Refuses: inspection
#[test]
fn what_the_daemon_refuses_ends_with_1() {
    let folder = Folder::new();
    let refusal =
        r#"{"version":1,"error":{"message":"no peer `ofice`","fix":"name one of: office"}}"#;
    let daemon = folder.daemon(refusal);
    let output = folder.strata(&["down", "ofice"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        err(&output),
        "error: no peer `ofice`\n  fix: name one of: office\n"
    );
    assert!(daemon.join().is_ok());
}

#[test]
fn json_is_the_daemons_answer_made_safe_for_a_terminal() {
    let folder = Folder::new();
    let daemon = folder.daemon("{\"version\":1,\"daemon\":{\"version\":\"\u{9b}2J\",\"pid\":7}}");
    let output = folder.strata(&["version", "--json"]);
    assert_eq!(
        out(&output),
        "{\"version\":1,\"daemon\":{\"version\":\"\\u009b2J\",\"pid\":7}}\n"
    );
    assert!(daemon.join().is_ok());
}

#[test]
fn reload_asks_for_what_was_typed_and_a_file_with_faults_is_wrong_usage() {
    let good = r#"{"version":1,"reload":{"file":"/a.toml","applied":true,"changes":[{"key":"peer.bob",
        "kind":"added","before":null,"after":null,"effect":"applied"}],"faults":[],"warnings":[],"made_anew":[]}}"#;
    let bad = r#"{"version":1,"reload":{"file":"/a.toml","applied":false,"changes":[],"faults":[{"line":3,
        "column":1,"key":"node.id","message":"is empty","fix":"write it"}],"warnings":[],"made_anew":[]}}"#;
    for (words, answer, question, code, printed) in [
        (
            &["reload"][..],
            good,
            r#"{"version":1,"request":"reload","dry_run":false}"#,
            0,
            "+ peer.bob\n1 applied\n",
        ),
        (
            &["reload", "--dry-run"],
            bad,
            r#"{"version":1,"request":"reload","dry_run":true}"#,
            2,
            "/a.toml:3:1: node.id: is empty\n  fix: write it\nnothing changed: 1 error\n",
        ),
    ] {
        let folder = Folder::new();
        let daemon = folder.daemon(&answer.replace('\n', ""));
        let output = folder.strata(words);
        assert_eq!(output.status.code(), Some(code), "{}", err(&output));
        assert_eq!(out(&output), printed);
        assert_eq!(daemon.join().expect("the daemon was asked"), question);
    }
}

#[test]
fn explain_asks_about_one_peer_and_shows_what_is_known() {
    let folder = Folder::new();
    let daemon = folder.daemon(
        r#"{"version":1,"explain":{"peer":"office","state":"down","attempt":null,"stranger":null,"refused_grants":[]}}"#,
    );
    let output = folder.strata(&["explain", "office"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(
        out(&output),
        "office down\nno attempt since stratad started\n"
    );
    let question = daemon.join().expect("the daemon was asked");
    assert_eq!(
        question,
        r#"{"version":1,"request":"explain","peer":"office"}"#
    );
}

// Refuses: keylog
#[test]
fn keylog_is_loud_and_its_folder_absolute() {
    let folder = Folder::new();
    let daemon = folder.daemon(r#"{"version":1,"keylog":{"directory":"/tmp/keys"}}"#);
    let output = folder.strata(&["keylog", "keys"]);
    assert!(
        err(&output).starts_with("KEYS ARE WRITTEN to /tmp/keys"),
        "{}",
        err(&output)
    );
    let question = daemon.join().expect("the daemon was asked");
    let here = std::env::current_dir().expect("there is one").join("keys");
    let expected = format!(
        r#"{{"version":1,"request":"keylog","directory":"{}"}}"#,
        here.display()
    );
    assert_eq!(question, expected);
}

// Works: key-reference
#[test]
fn a_key_is_explained_with_an_example_and_the_effect_of_a_change() {
    let folder = Folder::new();
    for name in ["peer.clone", "peer.office.clone", "clone"] {
        let output = folder.strata(&["key", name]);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert_eq!(
            out(&output),
            "[peer.NAME] clone: true at both ends: the tunnel moves without a pause while its path \
             works, by a second IKE SA (RFC 7791) that replaces the first\n  example: clone = true\n  \
             a changed value closes the affected SAs and establishes them again\n"
        );
    }
    let output = folder.strata(&["key", "window", "--json"]);
    let lines = out(&output);
    let tables = [
        "peer.NAME",
        "licensed.NAME",
        "gateway.NAME",
        "neighbour.NAME",
        "regulate",
    ];
    assert_eq!(lines.lines().count(), tables.len(), "{lines}");
    for (line, table) in lines.lines().zip(tables) {
        let key: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        assert_eq!(
            (&key["table"], &key["key"]),
            (&table.into(), &"window".into())
        );
        assert_eq!(key["reload"], "applied");
    }
}

// Refuses: key-reference
#[test]
fn a_key_that_does_not_exist_is_told_with_those_that_do() {
    let folder = Folder::new();
    for (name, fix) in [
        ("tunnel.esn", "possible here: `peer.esn`"),
        ("frobnicate", "write a key as in the file"),
    ] {
        let output = folder.strata(&["key", name]);
        let told = err(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(
            told.contains(&format!("there is no key `{name}`")),
            "{told}"
        );
        assert!(told.contains(fix), "{told}");
    }
}

#[test]
fn wrong_usage_ends_with_2() {
    for words in [
        &["frobnicate"][..],
        &[],
        &["up", "--wait=0"],
        &["keylog"],
        &["explain"],
        &["reload", "now"],
        &["paths", "extra"],
        &["status", "--state", "gone"],
    ] {
        assert_eq!(
            Folder::new().strata(words).status.code(),
            Some(2),
            "{words:?}"
        );
    }
}

/// Returns a part of a status with one peer, as the daemon sends it.
fn part(peer: &str, next: &str) -> String {
    let head = r#"{"version":1,"status":{"identity":"gw","roles":[],"uptime_seconds":1,"drops":{}"#;
    format!(
        r#"{head},"warnings":["about {peer}"]{next},"peers":[{{"name":"{peer}","kind":"vpn",
        "identity":"{peer}","state":"down","remote":null,"since_seconds":null,
        "last_refusal":null,"children":[]}}]}}}}"#
    )
    .replace(['\n', ' '], "")
}

#[test]
fn status_collects_the_parts_of_the_answer() {
    for words in [&["status"][..], &["status", "--json"]] {
        let folder = Folder::new();
        let listener = UnixListener::bind(folder.socket()).expect("the folder is fresh");
        let daemon = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("the command connects");
            let mut reader = BufReader::new(stream.try_clone().expect("a socket can be cloned"));
            // The second part does not go on, so that nothing is asked for after it.
            let parts = ["u10", "u2"].map(|peer| part(peer, r#","next":"u10""#));
            parts.map(|part| {
                let mut line = String::new();
                reader.read_line(&mut line).expect("the command asks");
                let sent = stream.write_all(format!("{part}\n").as_bytes());
                sent.expect("the command listens");
                line
            })
        });
        let shown = out(&folder.strata(words));
        let asked = daemon.join().expect("both parts are asked for");
        assert!(
            !asked[0].contains("after") && asked[1].contains(r#""after":"u10""#),
            "{asked:?}"
        );
        if words.len() == 1 {
            assert!(
                shown.contains("\nwarning: aboutu10\nwarning: aboutu2\n"),
                "{shown}"
            );
            assert!(shown.find("u2  ") < shown.find("u10  "), "{shown}");
            assert!(shown.ends_with("\n2 peers: 2 down\n"), "{shown}");
        } else {
            let shown: serde_json::Value = serde_json::from_str(&shown).expect("it is JSON");
            assert_eq!(shown["status"]["peers"][1]["name"], "u2");
            assert!(shown["status"].get("next").is_none());
        }
    }
}

// Recovers: inspection
#[test]
fn a_closed_pipe_is_no_panic() {
    let folder = Folder::new();
    let text = "x".repeat(1 << 20);
    let daemon = folder.daemon(&format!("{{\"version\":1,\"metrics\":\"{text}\"}}"));
    let mut command = strata(&["metrics"]);
    command.arg("--socket").arg(folder.socket());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("strata runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("strata ends");
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(0), ""));
    assert!(daemon.join().is_ok());
}
