//! A source file without a `mod` declaration is not compiled, and its tests never run.

use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

/// Collects all sources below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in read_dir(folder).expect("a folder of sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns true if cargo finds the file by itself: the root of a library, a program or a test.
fn is_root(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    let is_source = path.components().any(|part| part.as_os_str() == "src");
    let holds_roots = folder == "tests" || folder == "fuzz_targets";
    name == "main.rs"
        || name == "lib.rs"
        || name == "build.rs"
        || folder == "bin"
        || holds_roots && !is_source
}

/// Returns true if a neighbouring or parent file has `mod NAME;` for this file, or if a path
/// attribute names it.
fn is_named(path: &Path, paths: &str) -> bool {
    let (own, folder) = match path.file_name().is_some_and(|name| name == "mod.rs") {
        true => (path.parent().unwrap_or(path), path.ancestors().nth(2)),
        false => (path, path.parent()),
    };
    let folder = folder.unwrap_or(path);
    let stem = |path: &Path| {
        path.file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    let declaration = format!("mod {};", stem(own));
    let beside = ["mod.rs", "lib.rs", "main.rs"].map(|name| folder.join(name));
    let above = folder.with_extension("rs");
    let named = |parent: &PathBuf| {
        let text = read_to_string(parent).unwrap_or_default();
        let mut lines = text.lines().map(str::trim);
        // `pub` or `pub(super)` may precede the declaration.
        lines.any(|line| {
            line == declaration || line.starts_with("pub") && line.ends_with(&declaration)
        })
    };
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    beside.iter().chain([&above]).any(named)
        || paths.contains(&format!("/{file}\"]"))
        || paths.contains(&format!("\"{file}\"]"))
}

#[test]
fn every_source_file_is_a_module() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for folder in ["pure", "edge", "lab", "fuzz"] {
        sources(&root.join(folder), &mut found);
    }
    let texts = found
        .iter()
        .map(|path| read_to_string(path).unwrap_or_default());
    let paths: String = texts
        .flat_map(|text| {
            let named = text.lines().filter(|line| line.contains("#[path"));
            named.map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    let orphans: Vec<_> = found
        .iter()
        .filter(|path| !is_root(path) && !is_named(path, &paths))
        .collect();
    assert!(orphans.is_empty(), "no `mod` names {orphans:#?}");
    // Negative control.
    assert!(!is_named(&root.join("pure/model/src/nowhere.rs"), &paths));
}
