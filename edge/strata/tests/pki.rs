//! Tests of `strata pki`. openssl reads what it writes, and makes what it reads.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder for one test, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("strata-pki-{}-{unique}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        std::fs::create_dir_all(&folder.0).expect("a temporary folder can be made");
        folder
    }

    /// Returns a folder with a CA in `ca`.
    fn with_ca() -> Self {
        let folder = Self::new();
        folder.strata("pki ca --name Root --out ca");
        folder
    }

    fn run(&self, program: &str, words: &str) -> Output {
        let mut command = Command::new(program);
        command.args(words.split_whitespace()).current_dir(&self.0);
        command.stdin(Stdio::null()).env_remove("NO_COLOR");
        command.output().expect("the program runs")
    }

    /// Runs a program that succeeds, and returns its output.
    fn done(&self, program: &str, words: &str) -> String {
        let output = self.run(program, words);
        assert!(output.status.success(), "{words}: {}", err(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn strata(&self, words: &str) -> String {
        self.done(env!("CARGO_BIN_EXE_strata"), words)
    }

    fn json(&self, words: &str) -> Value {
        let line = self.strata(&format!("{words} --json"));
        serde_json::from_str(&line).expect("it is JSON")
    }

    /// Runs a command that is refused, and returns its message.
    fn refused(&self, words: &str) -> String {
        let output = self.run(env!("CARGO_BIN_EXE_strata"), words);
        assert_eq!(output.status.code(), Some(2), "{words}: {}", err(&output));
        let json = self.run(env!("CARGO_BIN_EXE_strata"), &format!("{words} --json"));
        let lines = [&json.stdout[..], &json.stderr].concat();
        let line: Value = serde_json::from_slice(&lines).expect("a refusal is JSON, too");
        assert!(line["error"].is_object(), "{line}");
        err(&output)
    }

    fn openssl(&self, words: &str) -> String {
        self.done("openssl", words)
    }

    fn exists(&self, file: &str) -> bool {
        self.0.join(file).exists()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Fails unless the text has all words.
#[track_caller]
fn has(text: &str, words: &[&str]) {
    for words in words {
        assert!(text.contains(words), "{words:?} is not in: {text}");
    }
}

// Works: own-ca
#[test]
fn openssl_sees_all_names_of_a_gateway_and_takes_it_for_a_server() {
    let folder = Folder::with_ca();
    folder.strata(
        "pki issue --ca ca --id gw.example.net --server --also 192.0.2.1 --also vpn.example.net \
         --also 2001:db8::1 --also ops@example.net",
    );
    let text = folder.openssl("x509 -in gw.example.net.pem -noout -text");
    let names = "DNS:gw.example.net, IP Address:192.0.2.1, DNS:vpn.example.net, \
                 IP Address:2001:DB8:0:0:0:0:0:1, email:ops@example.net, DNS:192.0.2.1, \
                 DNS:2001:db8::1";
    let usage = "TLS Web Server Authentication, ipsec Internet Key Exchange, 1.3.6.1.5.5.8.2.2";
    has(&text, &[names, usage]);
    let verify = |more: &str| {
        folder.run(
            "openssl",
            &format!(
                "verify -x509_strict -purpose sslserver -CAfile ca/ca.pem {more} gw.example.net.pem"
            ),
        )
    };
    for name in [
        "-verify_hostname gw.example.net",
        "-verify_hostname vpn.example.net",
        "-verify_ip 192.0.2.1",
        "-verify_ip 2001:db8::1",
        "-verify_email ops@example.net",
    ] {
        let output = verify(name);
        assert!(output.status.success(), "{name}: {}", err(&output));
    }
    assert!(
        !verify("-verify_hostname other.example.net")
            .status
            .success()
    );
    let shown = folder.json("pki show gw.example.net.pem");
    let certificate = &shown["pki"]["certificates"][0];
    assert_eq!(certificate["server"], true);
    assert_eq!(certificate["names"][1], "192.0.2.1");
    has(
        &folder.strata("pki show gw.example.net.pem"),
        &[
            "names    gw.example.net, 192.0.2.1, vpn",
            "usage    serverAuth",
        ],
    );
}

// Works: own-ca
#[test]
fn a_certificate_of_a_plain_host_has_no_extended_usage() {
    let folder = Folder::with_ca();
    folder.strata("pki issue --ca ca --id alice@example.net --also alice.example.net --ed25519");
    let text = folder.openssl("x509 -in alice@example.net.pem -noout -text");
    has(&text, &["email:alice@example.net, DNS:alice.example.net"]);
    assert!(!text.contains("Extended Key Usage"), "{text}");
    let shown = folder.json("pki show alice@example.net.pem");
    assert_eq!(shown["pki"]["certificates"][0]["server"], false);
}

// Refuses: own-ca
#[test]
fn a_name_that_no_host_has_is_refused_and_nothing_is_written() {
    let folder = Folder::with_ca();
    let output = folder.refused("pki issue --ca ca --id *.example.net");
    has(&output, &["`*.example.net` is not a domain name", "--also"]);
    let output = folder.refused("pki issue --ca ca --id gw.example.net --also a/b@example.net");
    has(&output, &["`a/b@example.net`"]);
    let output = folder.refused("pki issue --ca ca --id gw@example.net --server");
    has(
        &output,
        &["clients cannot connect", "--also gw.example.net"],
    );
    let output = folder.run(
        env!("CARGO_BIN_EXE_strata"),
        "pki issue --ca ca --id gw.example.net --server --ed25519",
    );
    has(&err(&output), &["cannot be used with"]);
    assert!(!folder.exists("gw.example.net.pem") && !folder.exists("gw@example.net.pem"));
}
