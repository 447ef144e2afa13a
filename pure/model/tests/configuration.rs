//! The configurations on the pages for users are parts of the examples, which `config` reads in its
//! tests, additions to them, or complete. The test `measure::readme` of the lab passes each of them
//! through `strata check`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const EXAMPLES: [(&str, &str); 6] = [
    (
        "mobile",
        include_str!("../../../edge/config/examples/mobile.toml"),
    ),
    (
        "gateway",
        include_str!("../../../edge/config/examples/gateway.toml"),
    ),
    (
        "licensed",
        include_str!("../../../edge/config/examples/licensed.toml"),
    ),
    (
        "mobile_node",
        include_str!("../../../edge/config/examples/mobile_node.toml"),
    ),
    (
        "home_agent",
        include_str!("../../../edge/config/examples/home_agent.toml"),
    ),
    (
        "foreign_agent",
        include_str!("../../../edge/config/examples/foreign_agent.toml"),
    ),
];

/// Examples whose essential part a page has to show.
const SHOWN: [(&str, &[&str]); 3] = [
    ("README.md", &["mobile", "gateway"]),
    (
        "docs/operate/licensed-nodes.md",
        &["mobile", "gateway", "licensed"],
    ),
    (
        "docs/operate/mobility.md",
        &["mobile_node", "home_agent", "foreign_agent"],
    ),
];

/// Returns README.md, the tutorial and the pages of `docs/operate`, sorted.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let operate = fs::read_dir(root.join("docs/operate")).expect("a folder of pages");
    let operate = operate.map(|entry| entry.expect("a page").path());
    let others = ["README.md", "docs/tutorial.md"].map(|page| root.join(page));
    let mut pages: Vec<_> = operate.chain(others).collect();
    pages.sort();
    pages
}

fn read(page: &Path) -> String {
    fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

/// Returns the `toml` blocks of a page, without their fences.
fn blocks(page: &str) -> impl Iterator<Item = &str> {
    let parts = page.split("```").skip(1).step_by(2);
    parts.filter_map(|part| {
        let (fence, block) = part.split_once('\n')?;
        fence.starts_with("toml").then_some(block)
    })
}

/// Returns the name after a prefix in the first line of a block, such as `# gateway.toml`.
fn named<'a>(block: &'a str, prefix: &str) -> Option<&'a str> {
    let name = block.lines().next()?.strip_prefix(prefix)?;
    name.strip_suffix(".toml")
}

/// Returns the lines of each table, without comments. A key has a meaning only within its table.
fn lines(file: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut tables = BTreeMap::new();
    let mut table = "";
    for line in file.lines() {
        let line = line.split(" #").next().unwrap_or_default().trim();
        if line.starts_with('[') {
            table = line;
        }
        if !line.is_empty() && !line.starts_with('#') {
            tables.entry(table).or_insert_with(Vec::new).push(line);
        }
    }
    tables
}

#[test]
fn the_essential_parts_on_the_pages_are_those_of_the_examples() {
    for page in pages() {
        let text = read(&page);
        let page = page.display();
        for block in blocks(&text) {
            let Some((name, example)) = EXAMPLES
                .into_iter()
                .find(|(name, _)| named(block, "# ") == Some(*name))
            else {
                continue;
            };
            let example = lines(example);
            for (table, keys) in lines(block) {
                let whole = example
                    .get(table)
                    .unwrap_or_else(|| panic!("{page}: {name} has no {table}"));
                for key in keys {
                    assert!(
                        whole.contains(&key),
                        "{page}: {name}.toml has no `{key}` in {table}"
                    );
                }
            }
        }
    }
}

#[test]
fn each_example_has_its_essential_part_on_a_page() {
    for (page, names) in SHOWN {
        let text = read(&Path::new(ROOT).join(page));
        for name in names {
            let shown = blocks(&text).filter(|block| named(block, "# ") == Some(*name));
            assert_eq!(shown.count(), 1, "{page}: one block for {name}.toml");
        }
    }
}

/// A block belongs to an example, as its first line says, or has the table that every file needs.
#[test]
fn each_block_is_complete_or_names_its_example() {
    let is_example = |name: &str| EXAMPLES.iter().any(|(known, _)| *known == name);
    let mut count = 0;
    for page in pages() {
        let text = read(&page);
        for block in blocks(&text) {
            let example = named(block, "# in ").or_else(|| named(block, "# "));
            let is_complete = lines(block).contains_key("[node]");
            assert!(
                is_complete || example.is_some_and(is_example),
                "{}: part of which file is this?\n{block}",
                page.display()
            );
            count += 1;
        }
    }
    assert!(count >= 50, "{count} blocks");
}
