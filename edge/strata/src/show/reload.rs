//! `strata reload`: a diff of the configurations, or the errors in the file.

use crate::text::{Paint, clean, plural};
use control::{Change, ChangeKind, Effect, Fault, Reload};
use std::fmt::Write;

/// Formats the answer. Writing to a `String` cannot fail, so results of `writeln!` are dropped.
pub fn show(reload: &Reload, paint: Paint) -> String {
    let mut text = String::new();
    for fault in &reload.faults {
        show_fault(&mut text, &reload.file, fault);
    }
    for warning in &reload.warnings {
        let _ = writeln!(text, "{} {}", paint.bad("warning:"), clean(warning));
    }
    for change in &reload.changes {
        let _ = writeln!(text, "{}", line(change, paint));
    }
    let _ = writeln!(text, "{}", verdict(reload, paint));
    text
}

fn show_fault(text: &mut String, file: &str, fault: &Fault) {
    let (file, key) = (clean(file), clean(&fault.key));
    // A fault of the syntax has no key.
    let key = if key.is_empty() {
        String::new()
    } else {
        format!(" {key}:")
    };
    let Fault { line, column, .. } = fault;
    let (message, fix) = (clean(&fault.message), clean(&fault.fix));
    let _ = writeln!(text, "{file}:{line}:{column}:{key} {message}\n  fix: {fix}");
}

fn line(change: &Change, paint: Paint) -> String {
    let line = change.to_string();
    let line = clean(&line);
    match (change.effect, change.kind) {
        (Effect::Restart, _) => paint.doubtful(&line),
        (_, ChangeKind::Added) => paint.good(&line),
        (_, ChangeKind::Removed) => paint.bad(&line),
        (_, ChangeKind::Changed) => line.into_owned(),
    }
}

fn verdict(reload: &Reload, paint: Paint) -> String {
    let waits = |change: &&Change| change.effect == Effect::Restart;
    let restarts = reload.changes.iter().filter(waits).count();
    let mut parts = Vec::new();
    match (reload.faults.len(), reload.changes.len(), reload.applied) {
        (0, 0, _) => parts.push("no changes".to_owned()),
        (0, changes, false) => parts.push(format!(
            "{}, not applied yet",
            plural(changes as u64, "change")
        )),
        (0, changes, true) => parts.push(format!("{} applied", changes - restarts)),
        (faults, ..) => {
            let faults = plural(faults as u64, "error");
            parts.push(format!("{}: {faults}", paint.bad("nothing changed")));
        }
    }
    if !reload.made_anew.is_empty() {
        let names = reload.made_anew.join(", ");
        parts.push(format!("reconnects: {}", clean(&names)));
    }
    if restarts > 0 {
        parts.push(format!("restart stratad for {restarts}"));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::PLAIN;
    use super::*;

    fn reload() -> Reload {
        Reload {
            file: "/etc/strata/strata.toml".to_owned(),
            applied: true,
            changes: vec![
                Change {
                    key: "peer.bob".to_owned(),
                    kind: ChangeKind::Added,
                    before: None,
                    after: None,
                    effect: Effect::Applied,
                },
                Change {
                    key: "listen.ike".to_owned(),
                    kind: ChangeKind::Changed,
                    before: Some("500".to_owned()),
                    after: Some("501".to_owned()),
                    effect: Effect::Restart,
                },
            ],
            made_anew: vec!["alice".to_owned()],
            ..Reload::default()
        }
    }

    #[test]
    fn a_reload_is_a_diff_and_a_sentence() {
        assert_eq!(
            show(&reload(), PLAIN),
            "+ peer.bob\n! listen.ike 500 -> 501 (needs a restart)\n\
             1 applied; reconnects: alice; restart stratad for 1\n"
        );
        let dry = Reload {
            applied: false,
            made_anew: Vec::new(),
            ..reload()
        };
        assert!(
            show(&dry, PLAIN).ends_with("\n2 changes, not applied yet; restart stratad for 1\n")
        );
        assert_eq!(show(&Reload::default(), PLAIN), "no changes\n");
    }

    #[test]
    fn a_file_with_faults_changes_nothing_and_names_them_all() {
        let fault = |line| Fault {
            line,
            column: 3,
            key: "peer.a\u{1b}.zons".to_owned(),
            message: "unknown key".to_owned(),
            fix: "did you mean `zones`?".to_owned(),
        };
        let reload = Reload {
            file: "a.toml".to_owned(),
            faults: vec![fault(1), fault(7)],
            ..Reload::default()
        };
        assert_eq!(
            show(&reload, PLAIN),
            "a.toml:1:3: peer.a\\u{1b}.zons: unknown key\n  fix: did you mean `zones`?\n\
             a.toml:7:3: peer.a\\u{1b}.zons: unknown key\n  fix: did you mean `zones`?\n\
             nothing changed: 2 errors\n"
        );
    }
}
