//! Files do not import each other in large circles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

/// Maximum number of files in one import circle, for each crate with a larger one than [`OTHERS`].
const CIRCLES: [(&str, usize); 3] = [("ike", 5), ("model", 4), ("pep", 4)];

/// Largest circle of any other crate.
const OTHERS: usize = 3;

/// A path in a source, split at `::`.
type Names = Vec<String>;

/// A source file without comments, literals and tests.
struct Source {
    /// All paths that the file imports or spells out.
    paths: Vec<Names>,
    /// The names that it re-exports. They are not dependencies of the file.
    exports: Vec<Names>,
}

impl Source {
    fn read(text: &str) -> Self {
        let text = without_tests(&code(text));
        let mut source = Self {
            paths: Vec::new(),
            exports: Vec::new(),
        };
        let mut rest = text.as_str();
        let mut other = String::new();
        while let Some(at) = next_use(rest) {
            let (before, from) = rest.split_at(at);
            let (declaration, after) = from.split_once(';').unwrap_or((from, ""));
            let line = before.rsplit('\n').next().unwrap_or_default();
            let found = match line.trim_start().starts_with("pub") {
                true => &mut source.exports,
                false => &mut source.paths,
            };
            expand(&declaration[4..], &[], found);
            other.push_str(before);
            other.push(';');
            rest = after;
        }
        other.push_str(rest);
        let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let words = other.split(|c: char| !is_path(c));
        let spelled =
            words.filter(|word| word.starts_with("crate::") || word.starts_with("super::"));
        source.paths.extend(spelled.map(names));
        source
    }
}

fn names(path: &str) -> Names {
    let names = path.split("::").map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns the place of the next `use` declaration.
fn next_use(text: &str) -> Option<usize> {
    let mut places = text.match_indices("use ").map(|(at, _)| at);
    places.find(|at| {
        let before = text[..*at].rsplit('\n').next().unwrap_or_default().trim();
        before.is_empty() || before == "pub" || before.starts_with("pub(") && before.ends_with(')')
    })
}

/// Adds all paths of a tree like `a::{b, c::{self, d as e}}`.
fn expand(tree: &str, above: &[String], found: &mut Vec<Names>) {
    let Some((stem, list)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        let own = names(path)
            .into_iter()
            .filter(|name| name != "self" || above.is_empty());
        return found.push(above.iter().cloned().chain(own).collect());
    };
    let above: Names = above.iter().cloned().chain(names(stem)).collect();
    let list = list.rsplit_once('}').map_or(list, |(list, _)| list);
    for branch in split(list) {
        expand(branch, &above, found);
    }
}

/// Splits a list at its commas, but not at those within brackets.
fn split(list: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut begin, mut last) = (Vec::new(), 0_i32, 0, ' ');
    for (at, c) in list.char_indices() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '>' if last != '-' && last != '=' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
        last = c;
    }
    parts.push(&list[begin..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// Replaces comments and the contents of literals by spaces.
fn code(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if first == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c: char| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |end| end + 2)
        } else if first == '\'' {
            let mut next = rest.chars().skip(1);
            let escaped = next.next() == Some('\\');
            let end = rest[1..].find('\'').map(|end| end + 2);
            match (escaped, next.next()) {
                (true, Some('\'')) => 4,
                (true, _) => end.unwrap_or(1),
                (false, Some('\'')) => end.unwrap_or(1),
                // A lifetime.
                _ => 0,
            }
        } else {
            0
        };
        if length == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            let lines = rest[..length].matches('\n').count();
            out.push(' ');
            out.extend(std::iter::repeat_n('\n', lines));
            rest = &rest[length..];
        }
    }
    out
}

/// Removes the items that only tests use.
fn without_tests(code: &str) -> String {
    let mut parts = code.split("#[cfg(test)]");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find([';', '{', ',']).unwrap_or(part.len());
        let end = match part[end..].starts_with('{') {
            true => end + closing(&part[end..]) + 1,
            false => end + 1,
        };
        out.push_str(part.get(end..).unwrap_or_default());
    }
    out
}

/// Returns the place of the bracket that closes the first one.
fn closing(text: &str) -> usize {
    let mut depth = 0_i32;
    let end = text.find(|c: char| {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    end.unwrap_or(text.len().saturating_sub(1))
}

/// The sources of a crate by module.
type Crate = BTreeMap<Names, Source>;

/// Returns the module that a path in `from` comes from, if it is in this crate.
fn module(of: &[String], from: &Names, sources: &Crate, hops: u8) -> Option<Names> {
    let first = of.first()?.as_str();
    let mut at = match first {
        "crate" => Names::new(),
        _ => from.clone(),
    };
    let mut rest = of;
    while let [name, after @ ..] = rest {
        match name.as_str() {
            "crate" | "self" => {}
            "super" => drop(at.pop()),
            _ => break,
        }
        rest = after;
    }
    let is_local = rest.len() < of.len();
    let mut entered = false;
    while let [name, after @ ..] = rest {
        let below: Names = at.iter().cloned().chain([name.clone()]).collect();
        if !sources.contains_key(&below) {
            break;
        }
        (at, rest, entered) = (below, after, true);
    }
    if !(is_local || entered) {
        return None;
    }
    let source = sources.get(&at)?;
    let Some(name) = rest.first().filter(|_| hops > 0) else {
        return Some(at);
    };
    let imported = source.paths.iter().chain(&source.exports);
    let origin = imported
        .filter(|path| path.last() == Some(name))
        .find_map(|path| module(path, &at, sources, hops - 1));
    Some(origin.unwrap_or(at))
}

/// Returns the files of the largest circle, if any file imports another that imports it.
fn largest_circle(sources: &Crate) -> Vec<Names> {
    let imports: BTreeMap<_, BTreeSet<_>> = sources
        .iter()
        .map(|(from, source)| {
            let paths = source.paths.iter();
            let to = paths.filter_map(|path| module(path, from, sources, 4));
            (from.clone(), to.filter(|to| to != from).collect())
        })
        .collect();
    let reached = |from: &Names| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(next) = open.pop() {
            let next = imports.get(&next).into_iter().flatten();
            open.extend(next.filter(|to| seen.insert((*to).clone())).cloned());
        }
        seen
    };
    let all: BTreeMap<_, _> = sources.keys().map(|from| (from, reached(from))).collect();
    let circles = all.iter().map(|(from, seen)| {
        let back = seen
            .iter()
            .filter(|to| all.get(to).is_some_and(|seen| seen.contains(*from)));
        back.cloned().collect::<Vec<_>>()
    });
    circles.max_by_key(Vec::len).unwrap_or_default()
}

/// Returns the sources of each crate in `pure/`, without tests.
fn crates() -> BTreeMap<String, Crate> {
    let pure = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = read_dir(pure).expect("a folder of crates").flatten();
    let crates = folders.filter_map(|folder| {
        let mut sources = Crate::new();
        let root = folder.path().join("src");
        collect(&root, &root, &mut sources);
        let name = folder.file_name().to_string_lossy().into_owned();
        (!sources.is_empty()).then_some((name, sources))
    });
    crates.collect()
}

fn collect(root: &Path, folder: &Path, sources: &mut Crate) {
    for entry in read_dir(folder).into_iter().flatten().flatten() {
        let path: PathBuf = entry.path();
        if path.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let own = path
                .strip_prefix(root)
                .expect("below the root")
                .with_extension("");
            let own = own.iter().map(|part| part.to_string_lossy().into_owned());
            let module = own.filter(|name| name != "mod" && name != "lib").collect();
            let text = read_to_string(&path).expect("a source");
            sources.insert(module, Source::read(&text));
        }
    }
}

#[test]
fn import_circles_are_small() {
    for (name, sources) in crates() {
        let bound = CIRCLES.iter().find(|(other, _)| *other == name);
        let most = bound.map_or(OTHERS, |(_, most)| *most);
        let circle = largest_circle(&sources);
        assert!(
            circle.len() <= most,
            "{} files of {name} import each other, {most} may: {:#?}",
            circle.len(),
            circle
                .iter()
                .map(|names| names.join("::"))
                .collect::<Vec<_>>()
        );
    }
}

/// Negative control: the reader finds circles through imports, paths in code and re-exports.
#[test]
fn circles_are_found() {
    let with = |b: &str, own: &str| {
        let files = [
            ("", "pub use a::A;\nmod a;\nmod b;\nmod c;"),
            (
                "a",
                "use crate::b::{self, B};\n\n/// use crate::c::C;\npub struct A(B);",
            ),
            ("b", b),
            ("c", own),
        ];
        let files = files.map(|(name, text)| (names(name), Source::read(text)));
        largest_circle(&files.into_iter().collect()).len()
    };
    assert_eq!(with("struct B;", "use crate::A;"), 0);
    assert_eq!(with("use super::A;", "use crate::A;"), 2);
    assert_eq!(
        with("fn b() { crate::c::go(); }", "use crate::{b::B, A};"),
        3
    );
    assert_eq!(with("#[cfg(test)]\nmod tests { use crate::A; }", ""), 0);
}
