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

/// Returns the rows of `strata pki list`.
fn issued(folder: &Folder) -> Vec<Value> {
    let listed = folder.json("pki list --ca ca");
    let rows = listed["pki"]["issued"].as_array();
    rows.expect("there are rows").clone()
}

// Works: own-ca
#[test]
fn the_inventory_has_each_certificate_with_what_openssl_says_of_it() {
    let folder = Folder::with_ca();
    assert_eq!(folder.strata("pki list --ca ca"), "no certificates\n");
    assert!(issued(&folder).is_empty());
    folder.strata("pki issue --ca ca --id gw.example.net --also 192.0.2.1");
    folder.strata("pki issue --ca ca --id alice@example.net --days 5 --ed25519");
    folder.strata("pki ca --name Middle --by ca --out middle");
    let rows = issued(&folder);
    assert_eq!(rows.len(), 3);
    for (row, file) in rows.iter().zip([
        "gw.example.net.pem",
        "middle/ca.pem",
        "alice@example.net.pem",
    ]) {
        let serial = folder.openssl(&format!("x509 -in {file} -noout -serial"));
        let serial = serial.trim().trim_start_matches("serial=").to_lowercase();
        assert_eq!(row["serial"], serial.as_str(), "{file}");
        assert_eq!(row["state"], "valid", "{file}");
        let kept = folder.openssl(&format!("x509 -in ca/issued/{serial}.pem"));
        assert_eq!(kept, folder.openssl(&format!("x509 -in {file}")));
    }
    let seconds = |row: &Value, key: &str| row[key].as_u64().expect("it has a time");
    // 365 only in the second of the issue.
    assert!([364, 365].contains(&seconds(&rows[0], "days_left")));
    let span = seconds(&rows[0], "not_after_seconds") - seconds(&rows[0], "not_before_seconds");
    assert_eq!(span, 365 * 86_400 + 3600);
    let output = folder.run(env!("CARGO_BIN_EXE_strata"), "pki list --ca ca");
    let text = String::from_utf8_lossy(&output.stdout);
    has(&text, &["gw.example.net, 192.0.2.1  20", " days left  "]);
    let warning = "warning: the certificate of `CN=alice@example.net` expires in ";
    assert_eq!(err(&output).matches("warning").count(), 1);
    has(&err(&output), &[warning]);
    let warnings = folder.json("pki list --ca ca")["pki"]["warnings"].clone();
    has(
        &warnings.to_string(),
        &["`CN=alice@example.net` expires in "],
    );
    // The certificate that renews it ends the warning, although the old one is still valid.
    folder.strata("pki issue --ca ca --id alice@example.net --force");
    assert_eq!(issued(&folder).len(), 4);
    let output = folder.run(env!("CARGO_BIN_EXE_strata"), "pki list --ca ca");
    assert_eq!(err(&output), "");
}

// Works: own-ca
#[test]
fn all_certificates_of_a_name_are_revoked_although_their_files_are_lost() {
    let folder = Folder::with_ca();
    for _ in 0..2 {
        folder.strata("pki issue --ca ca --id Alice@example.net --out lost --force");
    }
    folder.strata("pki issue --ca ca --id gw.example.net");
    folder.done("rm", "-r lost");
    let told = folder.strata("pki revoke --ca ca Alice@EXAMPLE.net");
    has(&told, &["wrote ca/ca.crl", "subject  CN=Alice@example.net"]);
    let (alices, others): (Vec<_>, Vec<_>) = issued(&folder)
        .into_iter()
        .partition(|row| row["names"][0] == "Alice@example.net");
    assert_eq!((alices.len(), others.len()), (2, 1));
    assert_eq!(others[0]["state"], "valid");
    let text = folder.openssl("crl -in ca/ca.crl -noout -text");
    for alice in &alices {
        assert_eq!(alice["state"], "revoked");
        assert!(alice["revoked_since_seconds"].is_u64(), "{alice}");
        let serial = alice["serial"].as_str().expect("a serial number");
        has(&text, &[&serial.to_uppercase()]);
        let verify = "verify -crl_check -CAfile ca/ca.pem -CRLfile ca/ca.crl";
        let output = folder.run("openssl", &format!("{verify} ca/issued/{serial}.pem"));
        has(&err(&output), &["certificate revoked"]);
    }
    has(&folder.strata("pki list --ca ca"), &["  revoked 20"]);
}

// Works: own-ca
#[test]
fn one_certificate_of_a_name_is_revoked_by_its_serial_number_or_file() {
    let folder = Folder::with_ca();
    let issue = "pki issue --ca ca --id gw.example.net --force";
    folder.strata(&format!("{issue} --days 1"));
    let old = issued(&folder)[0]["serial"].as_str().map(str::to_uppercase);
    folder.strata(issue);
    let states = || {
        let states = issued(&folder).into_iter();
        let states: Vec<_> = states.map(|row| row["state"].to_string()).collect();
        states.join(" ")
    };
    folder.strata(&format!(
        "pki revoke --ca ca {}",
        old.expect("it is listed")
    ));
    assert_eq!(states(), r#""revoked" "valid""#);
    // To revoke it again changes nothing.
    folder.strata("pki revoke --ca ca gw.example.net.pem gw.example.net.pem");
    assert_eq!(states(), r#""revoked" "revoked""#);
    let list = folder.json("pki crl --ca ca")["pki"]["lists"][0].clone();
    assert_eq!(list["number"], 3);
    assert_eq!(list["revoked"].as_array().map(Vec::len), Some(2));
}

/// Every `.pem` file in the folder counts. An interrupted run leaves a file of another name.
// Works: own-ca
#[test]
fn certificates_of_earlier_versions_are_listed_once_copied_and_torn_files_never() {
    let folder = Folder::with_ca();
    folder.strata("pki issue --ca ca --id gw.example.net");
    folder.done("rm", "-r ca/issued");
    has(
        &folder.refused("pki revoke --ca ca gw.example.net"),
        &["neither a file nor the name", "strata pki list --ca ca"],
    );
    folder.done("mkdir", "ca/issued");
    folder.done("cp", "gw.example.net.pem ca/issued/old.pem");
    std::fs::write(folder.0.join("ca/issued/4a.new"), "-----BEGIN CERT").expect("it is ours");
    assert_eq!(issued(&folder).len(), 1);
    folder.strata("pki revoke --ca ca gw.example.net");
}

// Refuses: own-ca
#[test]
fn what_is_not_in_the_inventory_is_not_revoked() {
    let folder = Folder::with_ca();
    folder.strata("pki issue --ca ca --id gw.example.net");
    for which in ["alice@example.net", "4a00", "none.pem"] {
        let output = folder.refused(&format!("pki revoke --ca ca gw.example.net {which}"));
        has(&output, &[which, "in ca/issued", "or name the file"]);
    }
    assert!(!folder.exists("ca/ca.crl"));
    let output = folder.refused("pki list --ca none");
    has(&output, &["cannot read none/ca.pem"]);
    // A file that exists is refused before a certificate is issued, so none is recorded.
    folder.refused("pki issue --ca ca --id gw.example.net");
    assert_eq!(issued(&folder).len(), 1);
    let torn = folder.0.join("ca/issued/torn.pem");
    std::fs::write(torn, "nothing").expect("it is ours");
    has(&folder.refused("pki list --ca ca"), &["ca/issued/torn.pem"]);
}

/// Each run adds to the list that the other has written.
// Recovers: own-ca
#[test]
fn revocations_at_the_same_time_are_all_in_the_list() {
    const RUNS: usize = 8;
    let folder = Folder::with_ca();
    std::thread::scope(|scope| {
        for host in 0..RUNS {
            let folder = &folder;
            scope.spawn(move || {
                folder.strata(&format!("pki issue --ca ca --id h{host}.example.net"));
                folder.strata(&format!("pki revoke --ca ca h{host}.example.net"));
            });
        }
    });
    let rows = issued(&folder);
    assert_eq!(rows.len(), RUNS);
    for row in rows {
        assert_eq!(row["state"], "revoked", "{row}");
    }
    let list = folder.json("pki show ca/ca.crl")["pki"]["lists"][0].clone();
    assert_eq!(list["number"], RUNS);
}

/// Makes `openssl.csr` and `openssl.key` with openssl.
fn request_of_openssl(folder: &Folder, key: &str) {
    folder.openssl(&format!(
        "req -new -newkey {key} -nodes -keyout openssl.key -out openssl.csr \
         -subj /CN=Alice -addext subjectAltName=email:alice@example.net,DNS:alice.example.net"
    ));
}

/// Returns the public key of a private key or a certificate, as openssl prints it.
fn public(folder: &Folder, key: &str, certificate: &str) -> [String; 2] {
    [
        folder.openssl(&format!("pkey -in {key} -pubout")),
        folder.openssl(&format!("x509 -in {certificate} -noout -pubkey")),
    ]
}

// Works: own-ca
#[test]
fn the_request_of_openssl_is_signed_for_its_key_and_for_names_of_the_command_line() {
    for key in ["ec -pkeyopt ec_paramgen_curve:P-256", "ed25519", "rsa:2048"] {
        let folder = Folder::with_ca();
        request_of_openssl(&folder, key);
        let told = folder.strata(
            "pki issue --ca ca --id bob@example.net --request openssl.csr --also b.example",
        );
        has(&told, &["wrote ./bob@example.net.pem\nsubject  CN=bob@"]);
        assert!(!folder.exists("bob@example.net.key"));
        let [ours, theirs] = public(&folder, "openssl.key", "bob@example.net.pem");
        assert_eq!(ours, theirs, "{key}");
        let text = folder.openssl("x509 -in bob@example.net.pem -noout -text");
        has(&text, &["email:bob@example.net, DNS:b.example"]);
        assert!(!text.to_lowercase().contains("alice"), "{text}");
        folder.openssl("verify -x509_strict -CAfile ca/ca.pem bob@example.net.pem");
        // Another certificate for the same key has a number of its own, so each can be revoked.
        folder.strata("pki issue --ca ca --id carol@example.net --request openssl.csr");
        let rows = issued(&folder);
        assert_eq!(rows.len(), 2);
        assert_ne!(rows[0]["serial"], rows[1]["serial"]);
    }
}

// Works: own-ca
#[test]
fn names_of_a_request_are_taken_only_if_that_is_asked_for() {
    let folder = Folder::with_ca();
    request_of_openssl(&folder, "ec -pkeyopt ec_paramgen_curve:P-384");
    let shown = folder.strata("pki show openssl.csr");
    let key = "key      ECDSA P-384, which has signed the request";
    has(
        &shown,
        &["names    alice@example.net, alice.example.net", key],
    );
    let json = folder.json("pki show openssl.csr")["pki"]["requests"][0].clone();
    assert_eq!(json["subject"], "CN=Alice");
    assert_eq!(json["names"][1], "alice.example.net");
    let output = folder.run(
        env!("CARGO_BIN_EXE_strata"),
        "pki issue --ca ca --request openssl.csr",
    );
    has(&err(&output), &["--id <ID>"]);
    folder.strata("pki issue --ca ca --request openssl.csr --names-of-request --server");
    let text = folder.openssl("x509 -in alice@example.net.pem -noout -text");
    let names = "email:alice@example.net, DNS:alice.example.net";
    has(&text, &[names, "TLS Web Server Authentication"]);
    assert!(
        !text.contains("CN = Alice") && !text.contains("CN=Alice"),
        "{text}"
    );
}

// Refuses: own-ca
#[test]
fn a_request_that_its_key_has_not_signed_is_refused_and_nothing_is_issued() {
    let folder = Folder::with_ca();
    request_of_openssl(&folder, "ec -pkeyopt ec_paramgen_curve:P-256");
    folder.openssl("req -in openssl.csr -outform DER -out good.der");
    let mut der = std::fs::read(folder.0.join("good.der")).expect("openssl wrote it");
    let at = der.windows(5).position(|octets| octets == b"alice");
    der[at.expect("it has the name")] = b'm';
    let text = pem::encode(&pem::Pem::new("CERTIFICATE REQUEST", der));
    std::fs::write(folder.0.join("forged.csr"), text).expect("it is ours");
    folder.openssl(
        "req -new -newkey rsa:1024 -nodes -keyout short.key -subj /CN=short -out short.csr",
    );
    folder.openssl("req -new -newkey ed25519 -nodes -keyout ed.key -subj /CN=ed -out ed.csr");
    let issue = "pki issue --ca ca --id gw.example.net --request";
    for (words, says) in [
        (
            format!("{issue} forged.csr"),
            "not signed with the key that",
        ),
        (format!("{issue} short.csr"), "RSA of at least 2048 bits"),
        (
            format!("{issue} ca/ca.pem"),
            "not a certificate signing request",
        ),
        (format!("{issue} none.csr"), "cannot read none.csr"),
        (format!("{issue} ed.csr --server"), "omit `--server`"),
        (
            "pki issue --ca ca --request ed.csr --names-of-request".to_owned(),
            "write the name that the certificate is for",
        ),
        (
            "pki show forged.csr".to_owned(),
            "not signed with the key that",
        ),
    ] {
        has(&folder.refused(&words), &[says]);
    }
    assert!(issued(&folder).is_empty() && !folder.exists("gw.example.net.pem"));
}

// Works: own-ca
#[test]
fn openssl_takes_a_request_and_the_ca_issues_for_it() {
    let folder = Folder::with_ca();
    for (kind, number) in [("", 1), ("--p384", 2), ("--ed25519", 3)] {
        let id = format!("h{number}.example.net");
        let told = folder.strata(&format!("pki request --id {id} --also 192.0.2.1 {kind}"));
        has(
            &told,
            &[&format!(
                "wrote ./{id}.key\nwrote ./{id}.csr\nrequest  CN={id}"
            )],
        );
        let verified = folder.run("openssl", &format!("req -in {id}.csr -verify -noout -text"));
        let text = String::from_utf8_lossy(&verified.stdout).into_owned() + &err(&verified);
        let names = format!("DNS:{id}, IP Address:192.0.2.1");
        has(&text, &["verify OK", &names]);
        let mode = folder.done("stat", &format!("-c %a {id}.key"));
        assert_eq!(mode.trim(), "600");
        // The certificate comes beside the key without `--force`.
        folder.strata(&format!(
            "pki issue --ca ca --request {id}.csr --names-of-request"
        ));
        let [ours, theirs] = public(&folder, &format!("{id}.key"), &format!("{id}.pem"));
        assert_eq!(ours, theirs);
    }
    let output = folder.refused("pki request --id h1.example.net");
    has(&output, &["h1.example.net.key already exists", "--force"]);
}

/// Returns what openssl reads from a bundle.
fn bundle(folder: &Folder, file: &str) -> String {
    std::fs::write(folder.0.join("password"), PASSWORD).expect("it is ours");
    let output = folder.run(
        "openssl",
        &format!("pkcs12 -in {file} -info -passin file:password -nodes"),
    );
    assert!(output.status.success(), "{}", err(&output));
    String::from_utf8_lossy(&output.stdout).into_owned() + &err(&output)
}

const PASSWORD: &str = "correct horse battery\n";

// Works: own-ca
#[test]
fn openssl_reads_a_bundle_with_the_key_and_all_cas() {
    let folder = Folder::with_ca();
    folder.strata("pki ca --name Middle --by ca --out middle");
    std::fs::write(folder.0.join("password"), PASSWORD).expect("it is ours");
    for (kind, aes, encryption, mac) in [
        ("", "", "pbeWithSHA1And3-KeyTripleDES-CBC", "MAC: sha1"),
        (
            "--ed25519",
            "",
            "pbeWithSHA1And3-KeyTripleDES-CBC",
            "MAC: sha1",
        ),
        (
            "--p384",
            "--aes",
            "PBES2, PBKDF2, AES-256-CBC",
            "MAC: sha256",
        ),
    ] {
        folder.strata(&format!(
            "pki issue --ca middle --id alice@example.net {kind} --force"
        ));
        let told = folder.strata(&format!(
            "pki export alice@example.net.pem --ca ca --password-file password --force {aes}"
        ));
        has(
            &told,
            &["wrote ./alice@example.net.p12", "CN=Middle", "CN=Root"],
        );
        assert!(!told.contains("password"), "{told}");
        let text = bundle(&folder, "alice@example.net.p12");
        has(&text, &[encryption, mac, "friendlyName: alice@example.net"]);
        assert_eq!(text.matches("BEGIN CERTIFICATE").count(), 3, "{text}");
        std::fs::write(folder.0.join("all.pem"), &text).expect("it is ours");
        let key = folder.openssl("pkey -in all.pem -pubout");
        assert_eq!(
            key,
            folder.openssl("pkey -in alice@example.net.key -pubout")
        );
        let first = folder.openssl("x509 -in all.pem");
        assert_eq!(first, folder.openssl("x509 -in alice@example.net.pem"));
        let mode = folder.done("stat", "-c %a alice@example.net.p12");
        assert_eq!(mode.trim(), "600");
    }
}

// Works: own-ca
#[test]
fn a_bundle_without_a_password_gets_one_that_is_printed_once() {
    let folder = Folder::with_ca();
    folder.strata("pki issue --ca ca --id alice@example.net --out made");
    let words = "pki export made/alice@example.net.pem --ca ca/ca.pem";
    let told = folder.strata(words);
    let password = told.lines().find_map(|line| line.strip_prefix("password "));
    let password = password.expect("it is printed").to_owned();
    assert!(password.len() >= 20, "{told}");
    let words_in_json = format!("{words} --force");
    let json = folder.json(&words_in_json);
    let other = json["pki"]["password"].as_str().expect("it is printed");
    assert_ne!(other, password);
    for (password, is_right) in [(password.as_str(), false), (other, true)] {
        let words = format!("pkcs12 -in alice@example.net.p12 -noout -passin pass:{password}");
        assert_eq!(folder.run("openssl", &words).status.success(), is_right);
    }
}

// Refuses: own-ca
#[test]
fn a_bundle_that_no_phone_could_use_is_refused() {
    let folder = Folder::with_ca();
    folder.strata("pki ca --name Middle --by ca --out middle");
    folder.strata("pki ca --name Other --out other");
    folder.strata("pki issue --ca middle --id alice@example.net");
    folder.strata("pki issue --ca middle --id bob@example.net");
    std::fs::write(folder.0.join("short"), "short\n").expect("it is ours");
    std::fs::write(folder.0.join("wide"), "p\u{e4}sswort\u{e4}\n").expect("it is ours");
    let export = "pki export alice@example.net.pem";
    for (words, says) in [
        ("--ca other", "does not chain to any CA"),
        (
            "--ca middle",
            "`CN=Middle` in middle/ca.pem is not a root CA",
        ),
        (
            "--ca ca --key bob@example.net.key",
            "is not for the key in bob@example.net.key",
        ),
        ("--ca ca --key none.key", "cannot read none.key"),
        (
            "--ca ca --password-file short",
            "not a password of at least 8",
        ),
        (
            "--ca ca --password-file wide",
            "not a password of at least 8",
        ),
    ] {
        has(&folder.refused(&format!("{export} {words}")), &[says]);
    }
    assert!(!folder.exists("alice@example.net.p12"));
    folder.strata(&format!("{export} --ca ca"));
    has(
        &folder.refused(&format!("{export} --ca ca")),
        &["already exists", "--force"],
    );
}
