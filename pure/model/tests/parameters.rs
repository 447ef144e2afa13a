//! A parameter has a name. A tuple in its place hides which of its parts is which from the caller,
//! and how many parameters there are from clippy.

use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

/// Number of functions with such a parameter, for each crate that has some. Aim: none.
const MOST: [(&str, usize); 7] = [
    ("crypto", 2),
    ("esp", 7),
    ("mobility", 10),
    ("node", 2),
    ("os", 7),
    ("sim", 2),
    ("wire", 5),
];

#[test]
fn parameters_are_no_tuples() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut seen = 0;
    for folder in ["pure", "edge"] {
        for entry in read_dir(root.join(folder)).expect("crates").flatten() {
            let mut files = Vec::new();
            sources(&entry.path().join("src"), &mut files);
            seen += files.len();
            let found = files.iter().flat_map(|file| {
                let text = read_to_string(file).expect("a source");
                let lines = tuples(without_tests(&text)).into_iter();
                lines
                    .map(|line| format!("{}:{line}", file.display()))
                    .collect::<Vec<_>>()
            });
            let found: Vec<_> = found.collect();
            let name = entry.file_name().to_string_lossy().into_owned();
            let bound = MOST.iter().find(|(other, _)| *other == name);
            let most = bound.map_or(0, |(_, most)| *most);
            assert!(
                found.len() <= most,
                "name the parts of a parameter ({name} may have {most}): {found:#?}"
            );
        }
    }
    assert!(seen > 500, "only {seen} files");
}

#[test]
fn every_form_of_a_tuple_is_found() {
    for parameters in [
        "(a, b): (u8, u8)",
        "both: (u8, u8)",
        "both: &(u8, u8)",
        "both: &'a mut (u8, u8)",
        "mut both: (u8, u8)",
        "name: &str, (a, b): (u8, u8), now: Instant",
        "&self, f: impl Fn(u8) -> u8,\n    (a, b): (u8, u8),\n",
    ] {
        let text = format!("\n\npub(super) fn look<T: Fn(u8)>({parameters}) -> u8 {{}}");
        assert_eq!(tuples(&text), [3], "{parameters}");
    }
    for parameters in [
        "",
        "a: u8, b: u8",
        "f: impl Fn((u8, u8)) -> (u8, u8)",
        "pairs: &[(u8, u8)]",
        "pair: Option<(u8, u8)>",
        "nothing: ()",
        "Pair { a, b }: Pair",
    ] {
        let text = format!("const fn look({parameters}) -> (u8, u8) {{}}");
        assert_eq!(tuples(&text), [0; 0], "{parameters}");
    }
}

/// Collects all sources below a folder, without tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns a source up to its module of tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod ").next().unwrap_or(text)
}

/// Returns the line of each function with a parameter that is a tuple, or a reference to one.
fn tuples(text: &str) -> Vec<usize> {
    let functions = text.match_indices("fn ").filter(|(at, _)| {
        let before = text[..*at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
    });
    let found = functions.filter(|(at, _)| {
        let name = &text[at + 3..];
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
        let rest = name[end.unwrap_or(name.len())..].trim_start();
        parameters(after_generics(rest))
            .iter()
            .any(|parameter| is_tuple(parameter))
    });
    found
        .map(|(at, _)| text[..at].matches('\n').count() + 1)
        .collect()
}

/// Skips the generic parameters of a function.
fn after_generics(text: &str) -> &str {
    let mut depth = 0_i32;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            '(' if depth == 0 => return &text[at..],
            _ if depth == 0 && !c.is_whitespace() => return "",
            _ => {}
        }
        before = c;
    }
    ""
}

/// Splits the parameters in parentheses with which the text begins.
fn parameters(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut depth = 0_i32;
    let mut before = ' ';
    for c in text.chars() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        match (c, depth) {
            (_, 0) => break,
            (',', 1) => all.push(String::new()),
            _ => all.last_mut().expect("one is there").push(c),
        }
        before = c;
    }
    // The first has the opening parenthesis.
    all[0] = all[0].chars().skip(1).collect();
    all
}

fn is_tuple(parameter: &str) -> bool {
    let parameter = parameter.trim();
    let kind = match parameter.split_once(':') {
        Some((name, kind)) if !name.starts_with('(') => kind.trim(),
        _ => return parameter.starts_with('('),
    };
    let kind = kind.trim_start_matches('&').trim_start();
    let kind = match kind.strip_prefix('\'') {
        Some(lifetime) => lifetime.split_once(' ').map_or("", |(_, kind)| kind),
        None => kind,
    };
    let kind = kind.strip_prefix("mut ").unwrap_or(kind);
    kind.starts_with('(') && !kind.starts_with("()")
}
