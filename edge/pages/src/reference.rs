//! `docs/reference/errors.md` and `docs/reference/events.md`, from the source.

use crate::source::{LogLine, Message, Source, literal, snake_case};
use crate::{HEAD, check, repository};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

const REMEDY: &str = "edge/stratad/src/explain/remedy.rs";
const ADVICE: &str = "edge/stratad/src/explain/advice.rs";

/// A part of the page of errors: its title, a sentence, and the enums with their files.
type Part = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// Messages of `stratad` and `strata`.
const PARTS: [Part; 8] = [
    (
        "A tunnel is down",
        "After `down:` in the log and in `strata status`.",
        &[("DownReason", "pure/ike/src/down_reason.rs")],
    ),
    (
        "A request was refused",
        "After `refused:` in the log and in `strata status`.",
        &[("Refusal", "pure/ike/src/refusal.rs")],
    ),
    (
        "The peer's proof of identity",
        "The reason within a message of the parts above.",
        &[
            ("BadProof", "pure/ike/src/bad_proof.rs"),
            ("NotVerified", "pure/ike/src/signature.rs"),
            ("BadPpk", "pure/ike/src/extension/ppk.rs"),
        ],
    ),
    (
        "Modes, moves and violations",
        "The reason within a message of the parts above.",
        &[
            ("BadMode", "pure/ike/src/extension/mode.rs"),
            ("Unfollowed", "pure/ike/src/refusal.rs"),
            ("PeerMisbehaved", "pure/ike/src/down_reason.rs"),
        ],
    ),
    (
        "Licensed nodes",
        "Grants of keys, and keys that nodes hand on to each other.",
        &[
            ("GrantRefusal", "pure/ike/src/refusal.rs"),
            ("KeyRefusal", "pure/ike/src/refusal.rs"),
            ("NoKeys", "pure/node/src/cause.rs"),
            ("Cause", "pure/node/src/cause.rs"),
        ],
    ),
    (
        "Warnings about the configuration",
        "After `warning:` in `strata check`, `strata status` and the log. The file is valid.",
        &[("Warning", "edge/config/src/warning.rs")],
    ),
    (
        "The operating system",
        "`stratad` ends with one of these if it cannot start.",
        &[("Error", "edge/os/src/error.rs")],
    ),
    (
        "No answer from the daemon",
        "`strata` ends with exit status 3.",
        &[("NoAnswer", "edge/control/src/client.rs")],
    ),
];

const ERRORS: &str = "# Errors and what to do\n\n\
    Values are in braces, `…` stands for a list of values or for another message. `strata explain \
    PEER`\nshows both ends of the last attempt side by side, and the line to change. Begin with what you see:\n[no traffic](../operate/no-traffic.md).\n";

const FAULTS: &str = "\n## Faults of the configuration\n\n\
    `strata check` shows each with its line, its column and a fix, and ends with exit status 2. \
    `strata\nreload` then changes nothing.\n\n\
    | fault | fix |\n|---|---|\n";

const EVENTS: &str = "# Events and lines of the log\n\n\
    `stratad` writes its log to standard error. `[log] level` is the least important level that is\n\
    logged ([configuration](configuration.md#log)). Values are in braces. Each peer has a share of \
    the\nlog: beyond 64 lines at once and four a second its lines are omitted and counted. Lines \
    about\nunidentified hosts appear at most once a second.\n\n\
    ## Events\n\n\
    | level | line | event |\n|---|---|---|\n";

const OTHERS: &str = "\n## Other lines\n\n| level | line |\n|---|---|\n";

const RECORDS: &str = "\n## Records of the audit log\n\n\
    The file of `[audit]` has one JSON object on each line ([audit](../operate/audit.md)). Fields \
    that\ndo not apply are left out.\n\n\
    | `event` | meaning |\n|---|---|\n";

#[test]
fn the_page_of_errors_has_every_message() {
    let mut page = format!("{HEAD}{ERRORS}");
    for (title, about, enums) in PARTS {
        let _ = write!(page, "\n## {title}\n\n{about}\n\n");
        page.push_str("| message | meaning | what to do |\n|---|---|---|\n");
        for (name, file) in enums {
            let source = Source::read(file);
            let messages = source.errors(name);
            assert!(!messages.is_empty(), "{file} has no messages of {name}");
            let told = messages
                .iter()
                .filter(|message| says_something(&message.text));
            for message in told {
                let Message { doc, text, .. } = message;
                let advice = advice(name, message, &source);
                let _ = writeln!(page, "| {} | {doc} | {advice} |", cell(text));
            }
        }
    }
    page.push_str(FAULTS);
    for (problem, fix) in faults() {
        let _ = writeln!(page, "| {} | {} |", cell(&problem), cell(&fix));
    }
    check("reference/errors.md", &page);
}

/// The engines state facts. What an operator can do about them is in [`ADVICE`] and [`REMEDY`].
#[test]
fn what_the_engines_say_names_no_key_of_the_configuration() {
    let enums = PARTS.iter().flat_map(|(.., enums)| *enums);
    for (name, file) in enums.filter(|(_, file)| file.starts_with("pure/")) {
        for Message { text, .. } in Source::read(file).errors(name) {
            // Values may be quoted.
            let quoted = text.replace("`{", "{").replace("}`", "}");
            let named =
                ["`", "[", "strata ", "compare ", ": check "].map(|word| quoted.contains(word));
            assert_eq!(named, [false; 5], "{name}: {text}");
        }
    }
}

/// Returns the advice about a message: the sentence that follows it in the log and in `strata
/// status`, and the fixes of `strata explain`.
fn advice(of: &str, message: &Message, source: &Source) -> String {
    let remedy = Source::read(REMEDY);
    let mut advice: Vec<_> = sentence(of, message).into_iter().collect();
    match of {
        "DownReason" => remedies(&remedy, "for_end", of, message, &mut advice),
        "Refusal" => {
            remedies(&remedy, "for_refusal", of, message, &mut advice);
            remedies(&remedy, "for_remark", of, message, &mut advice);
        }
        "NoAnswer" => {
            let arms = source.between("fn fix(&self)", "\n    }\n");
            let arm = arms.split_once(&format!("Self::{}", message.name));
            advice.extend(arm.and_then(|(_, arm)| literal(arm)).map(|(fix, _)| fix));
        }
        _ => {}
    }
    advice
        .iter()
        .map(|text| cell(text))
        .collect::<Vec<_>>()
        .join("; ")
}

/// Returns the sentence of advice about a message, if the daemon has one that is written there.
fn sentence(of: &str, message: &Message) -> Option<String> {
    let source = Source::read(ADVICE);
    let arm = arm(source.code(), of, &message.name)?;
    literal(arm)
        .map(|(text, _)| text)
        .filter(|text| !text.is_empty())
}

/// Returns the first arm of a match that names a variant.
fn arm<'a>(code: &'a str, of: &str, variant: &str) -> Option<&'a str> {
    let name = format!("{of}::{variant}");
    let ends = |at: usize| !code[at + name.len()..].starts_with(|c: char| c.is_alphanumeric());
    let mut places = code.match_indices(&name).map(|(at, _)| at);
    let at = places.find(|at| ends(*at))?;
    let (_, arm) = code[at..].split_once("=>")?;
    let line = code[..at].rfind('\n')?;
    let indent = &code[line..][..1 + code[line + 1..].find(|c| c != ' ')?];
    let next = [
        format!("{indent}{of}::"),
        format!("{indent}_ =>"),
        "\n    }\n".to_owned(),
    ];
    let end = next.iter().filter_map(|next| arm.find(next.as_str())).min();
    Some(&arm[..end.unwrap_or(arm.len())])
}

/// Adds what `strata explain` advises in an arm of one of its matches.
fn remedies(
    remedy: &Source,
    function: &str,
    of: &str,
    message: &Message,
    advice: &mut Vec<String>,
) {
    let body = remedy.between(&format!("fn {function}("), "\n    }\n");
    if let Some(arm) = arm(body, of, &message.name) {
        fixes(remedy, arm, 0, advice);
    }
}

/// Adds the fixes that some code returns, itself or by a method.
fn fixes(remedy: &Source, code: &str, depth: usize, advice: &mut Vec<String>) {
    const MOST: usize = 3;
    for (at, _) in code.match_indices('(') {
        let before = &code[..at];
        let arguments = arguments(&code[at + 1..]).trim_start();
        let fix = if before.ends_with("self.at") || before.ends_with("self.fix") {
            let has_key = arguments.starts_with('"') || arguments.starts_with("&format!(");
            let key = literal(arguments).filter(|_| has_key);
            match key {
                Some((key, rest)) => literal(rest).map(|(text, _)| format!("`{key}`: {text}")),
                None => literal(arguments).map(|(text, _)| text),
            }
        } else if before.ends_with("elsewhere") {
            literal(arguments).map(|(text, _)| format!("at the peer: {text}"))
        } else {
            let name = before.rsplit("self.").next().unwrap_or_default();
            let is_method = before.ends_with(&format!("self.{name}"));
            let body = remedy.between(&format!("    fn {name}(&self"), "\n    }\n");
            if is_method && depth < MOST {
                fixes(remedy, body, depth + 1, advice);
            }
            None
        };
        advice.extend(fix.filter(|fix| !advice.contains(fix)));
    }
}

/// Returns the arguments of a call, up to its closing parenthesis.
fn arguments(code: &str) -> &str {
    let (mut depth, mut is_text, mut is_escaped) = (1, false, false);
    for (at, c) in code.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_text = !is_text,
            '(' if !is_text => depth += 1,
            ')' if !is_text => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &code[..at];
        }
    }
    code
}

/// Returns each fault of the configuration and its fix, without repetitions.
fn faults() -> BTreeSet<(String, String)> {
    let files = files("edge/config/src");
    let files = files.iter().filter(|file| !file.contains("/tests"));
    let mut faults = BTreeSet::new();
    for file in files {
        let source = Source::read(file);
        let code = source.code();
        for (call, what) in [
            (".fault(", ""),
            (".fault::<()>(", ""),
            (".wrong_type(", "expected "),
        ] {
            let calls = code.match_indices(call);
            let found = calls.filter_map(|(at, _)| fault(&code[at + call.len()..]));
            faults.extend(found.map(|(problem, fix)| (format!("{what}{problem}"), fix)));
        }
    }
    assert!(faults.len() > 50, "{} faults", faults.len());
    faults
}

/// Reads the two texts of a call, if both are written there.
fn fault(arguments: &str) -> Option<(String, String)> {
    let is_text = |text: &str| {
        let text = text.trim_start();
        text.starts_with('"') || text.starts_with("format!(")
    };
    let (problem, mut rest) = literal(arguments).filter(|_| is_text(arguments))?;
    // The first text may have arguments of its own.
    loop {
        let (argument, next) = rest.split_once(',')?;
        if argument.contains(';') {
            return None;
        }
        if is_text(next) {
            return literal(next).map(|(fix, _)| (problem, fix));
        }
        rest = next;
    }
}

#[test]
fn the_page_of_events_has_every_line_of_the_log() {
    let mut page = format!("{HEAD}{EVENTS}");
    let journal = Source::read("edge/stratad/src/journal.rs");
    let enums = [
        ("Event", "pure/node/src/event.rs"),
        ("MobileEvent", "pure/mobility/src/mobile_ip/mobile_node.rs"),
        (
            "ForeignEvent",
            "pure/mobility/src/mobile_ip/foreign_agent.rs",
        ),
        ("HomeEvent", "pure/mobility/src/mobile_ip/home_agent.rs"),
    ];
    let types = enums.map(|(name, _)| name);
    let sources = enums.map(|(name, file)| (name, Source::read(file)));
    let lines = journal.log_lines();
    for line in lines.iter().filter(|line| says_something(&line.text)) {
        let LogLine { level, text, at } = line;
        let event = journal.variant_before(*at, &types);
        let event = event.and_then(|(name, variant)| {
            let (_, source) = sources.iter().find(|(known, _)| *known == name)?;
            source.doc_within(name, variant)
        });
        let event = event.unwrap_or_default();
        let _ = writeln!(page, "| {level} | {} | {event} |", code(text));
    }
    let refused = literal(journal.between("fn log_unknown_peer", "\n    }"));
    let (refused, _) = refused.expect("the journal has a line about unidentified hosts");
    let doc = sources[0]
        .1
        .doc_within("Event", "Refused")
        .unwrap_or_default();
    let _ = writeln!(page, "| warn | {} | {doc} |", code(&refused));
    page.push_str(OTHERS);
    let files = files("edge/stratad/src");
    let files = files.iter().filter(|file| !file.ends_with("/journal.rs"));
    let others: BTreeSet<_> = files
        .flat_map(|file| Source::read(file).log_lines())
        .map(|line| (severity(&line.level), line.level, line.text))
        .filter(|(.., text)| says_something(text))
        .map(|(severity, level, text)| (severity, level, code(&text)))
        .collect();
    for (_, level, text) in others {
        let _ = writeln!(page, "| {level} | {text} |");
    }
    page.push_str(RECORDS);
    let audit = Source::read("edge/control/src/audit.rs");
    for (name, doc) in audit.parts("pub enum AuditEvent") {
        let _ = writeln!(page, "| `{}` | {doc} |", snake_case(&name));
    }
    page.push_str("\n| field | meaning |\n|---|---|\n");
    for (name, doc) in audit.parts("pub struct Record") {
        let _ = writeln!(page, "| `{name}` | {doc} |");
    }
    page.push_str("\n| `why` | cause of an end |\n|---|---|\n");
    for (name, doc) in audit.parts("pub enum Why") {
        let _ = writeln!(page, "| `{}` | {doc} |", snake_case(&name));
    }
    check("reference/events.md", &page);
}

fn severity(level: &str) -> usize {
    let levels = ["error", "warn", "info", "debug", "trace"];
    levels
        .iter()
        .position(|known| *known == level)
        .unwrap_or(levels.len())
}

/// Returns the Rust files of a folder, with paths from the repository, sorted.
fn files(folder: &str) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    add_files(&repository().join(folder), &mut files);
    files
}

fn add_files(folder: &Path, files: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder)
        .expect("a folder of sources")
        .flatten()
    {
        let path = entry.path();
        let from_here = path
            .strip_prefix(repository())
            .expect("it is in the repository");
        match path.is_dir() {
            true => add_files(&path, files),
            false if path.extension().is_some_and(|extension| extension == "rs") => {
                files.insert(from_here.display().to_string());
            }
            false => {}
        }
    }
}

/// Formats a message in a cell of a table. Fields without a name are shown as dots.
fn cell(text: &str) -> String {
    let mut shown = String::new();
    let mut parts = text.split('{');
    shown.push_str(parts.next().unwrap_or_default());
    for part in parts {
        match part.split_once('}') {
            Some((name, rest)) => {
                let name = name.split(':').next().unwrap_or_default();
                let is_word = name.chars().any(|c| c.is_ascii_alphabetic());
                match is_word {
                    true => shown.push_str(&format!("{{{name}}}")),
                    false => shown.push('…'),
                }
                shown.push_str(rest);
            }
            None => {
                shown.push('{');
                shown.push_str(part);
            }
        }
    }
    shown.replace("……", "…").replace('|', "\\|")
}

/// Formats a line as code, which may have code of its own.
fn code(text: &str) -> String {
    let text = cell(text);
    match text.contains('`') {
        true => format!("`` {text} ``"),
        false => format!("`{text}`"),
    }
}

/// Returns true if a message consists of more than its fields.
fn says_something(text: &str) -> bool {
    let mut is_outside = true;
    let outside = text.chars().filter(|c| {
        is_outside = match c {
            '{' => false,
            '}' => true,
            _ => is_outside,
        };
        is_outside
    });
    outside.filter(|c| c.is_alphabetic()).count() > 2
}

#[test]
fn fields_without_a_name_are_dots() {
    assert_eq!(cell("{peer}: {0} or {}, {why:?}"), "{peer}: … or …, {why}");
    assert_eq!(code("see `{what}`"), "`` see `{what}` ``");
    assert_eq!(arguments("a, \"(\", f(b)), c)"), "a, \"(\", f(b)");
    assert!(!says_something("{claimed}: {0}"));
    assert!(says_something("peer {0} up"));
}
