//! A reload of the configuration: the differences, in the types of the API.

use config::{Config, Error, What};
use control::{Change, ChangeKind, Effect, Failure, Fault, Reload, Response};
use std::path::Path;

/// Returns the differences between the running configuration and a new one.
pub fn report(running: &Config, new: &Config) -> Reload {
    Reload {
        file: new.places.file().display().to_string(),
        changes: running.diff(new).iter().map(change).collect(),
        warnings: warnings(new),
        ..Reload::default()
    }
}

/// Returns the warnings that need a person's attention today.
pub fn warnings(config: &Config) -> Vec<String> {
    let expiry = config::expiry(config.certificates(), &config.lists, config::today());
    let warnings = expiry.iter().chain(&config.warnings);
    warnings.map(ToString::to_string).collect()
}

fn change(change: &config::Change) -> Change {
    let (kind, before, after) = match &change.what {
        What::Added => (ChangeKind::Added, None, None),
        What::Removed => (ChangeKind::Removed, None, None),
        What::SecretChanged => (ChangeKind::Changed, None, None),
        What::Changed { before, after } => (
            ChangeKind::Changed,
            Some(before.clone()),
            Some(after.clone()),
        ),
    };
    Change {
        key: change.key.clone(),
        kind,
        before,
        after,
        effect: match change.effect {
            config::Effect::Applied => Effect::Applied,
            config::Effect::Rekeyed => Effect::Rekeyed,
            config::Effect::Anew => Effect::Anew,
            config::Effect::Restart => Effect::Restart,
        },
    }
}

/// Returns the answer to a faulty file: nothing changes.
pub fn refusal(file: &Path, error: &Error) -> Response {
    let faults = match error {
        Error::Invalid(faults) => &faults.faults,
        Error::Unreadable { .. } => {
            let message = error.to_string();
            let message = message.lines().next().unwrap_or_default();
            return Response::Error(Failure::new(message, error.fix()));
        }
    };
    let fault = |fault: &config::Fault| Fault {
        line: fault.line,
        column: fault.column,
        key: fault.key.clone(),
        message: fault.problem.clone(),
        fix: fault.fix.clone(),
    };
    Response::Reload(Reload {
        file: file.display().to_string(),
        faults: faults.iter().map(fault).collect(),
        ..Reload::default()
    })
}

/// Logs the result of a reload.
pub fn journal(response: &Response) {
    match response {
        Response::Reload(reload) => {
            for fault in &reload.faults {
                let Fault {
                    line,
                    column,
                    key,
                    message,
                    fix,
                } = fault;
                let file = &reload.file;
                let key = if key.is_empty() {
                    String::new()
                } else {
                    format!(" {key}:")
                };
                tracing::error!("{file}:{line}:{column}:{key} {message}; fix: {fix}");
            }
            if !reload.faults.is_empty() {
                tracing::error!("nothing changed: the configuration has errors");
            }
            for warning in &reload.warnings {
                tracing::warn!("{warning}");
            }
            for change in &reload.changes {
                tracing::info!("configuration: {change}");
            }
        }
        Response::Error(failure) => {
            tracing::error!("nothing changed: {}; fix: {}", failure.message, failure.fix);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::sample::Folder;
    use crate::setup;
    use config::Effect;
    use model::Instant;
    use node::Node;

    const FILE: &str = r#"[node]
id = "gw.example.net"
[peer.alice]
address = "192.0.2.1"
id = "alice@example.net"
psk = "a.psk"
local = ["10.8.0.0/16"]
remote = ["10.1.0.2/32"]
zones = "require"
start = "manual"
leak = "stopped"
liveness = "20s"
tcp = "fallback"
suite = "aes128gcm16"
groups = "x25519"
licences = [{ node = "fa.example.net", zones = ["headers"], right = "read" }]
"#;

    /// `config` states the effect of a change and the node carries it out; this test keeps both in
    /// step.
    #[test]
    fn exactly_what_is_said_to_be_made_anew_is_made_anew() {
        let folder = Folder::new("reload");
        folder.write_key("a.psk", "one key, long enough");
        folder.write_key("b.psk", "another key, too");
        let before = folder.load(FILE);
        for (from, to) in [
            ("gw.example", "gate.example"),
            ("192.0.2.1", "192.0.2.2"),
            ("alice@", "al@"),
            ("a.psk", "b.psk"),
            ("10.8.0.0", "10.9.0.0"),
            ("10.1.0.2", "10.1.0.3"),
            ("require", "accept"),
            ("manual", "auto"),
            ("stopped", "never"),
            ("20s", "21s"),
            ("aes128gcm16", "aes256gcm16"),
            ("x25519", "p256"),
            ("fa.example", "fb.example"),
            ("fallback", "always"),
        ] {
            let after = folder.load(&FILE.replace(from, to));
            let said = before.diff(&after)[0].effect == Effect::Anew;
            let mut node = Node::new(setup::node(&before), [1; 32], Instant::ZERO);
            let anew = node.reconfigure(setup::node(&after), Instant::ZERO);
            let alice = node.names().id("alice").unwrap();
            assert_eq!(anew.contains(&alice), said, "{from} -> {to}");
        }
    }

    /// Every key of a peer whose example suits this file, so that a new key is tried, too.
    #[test]
    fn a_key_that_is_said_to_make_a_peer_anew_makes_it_anew() {
        let folder = Folder::new("reload-keys");
        folder.write_key("a.psk", "one key, long enough");
        let before = folder.load(FILE);
        let rows = config::described().into_iter();
        let rows = rows.filter(|row| row.table == "peer.NAME" && !row.key.contains('.'));
        let mut tried = 0;
        for row in rows {
            let line = |line: &&str| line.split(' ').next() != Some(row.key);
            let others = FILE.lines().filter(line).collect::<Vec<_>>().join("\n");
            let Ok(after) = folder.try_load(&format!("{others}\n{} = {}\n", row.key, row.example))
            else {
                continue;
            };
            let change = match &before.diff(&after)[..] {
                [] => continue,
                [change] => change.clone(),
                more => panic!("{}: {more:?}", row.key),
            };
            tried += 1;
            assert_eq!(change.effect, row.effect, "{}", row.key);
            let mut node = Node::new(setup::node(&before), [1; 32], Instant::ZERO);
            let anew = node.reconfigure(setup::node(&after), Instant::ZERO);
            let alice = node.names().id("alice").unwrap();
            assert_eq!(
                anew.contains(&alice),
                row.effect == Effect::Anew,
                "{}",
                row.key
            );
        }
        assert!(tried >= 18, "only {tried} keys");
    }
}
