//! The configurations on the pages for users are parts of the examples, which `config` reads in its
//! tests, additions to them, or complete. The test `pages::configuration` of the lab passes each of
//! them through `strata check`.

use pages::{Entry, Table, configurations, tables};
use std::collections::BTreeMap;
use std::path::Path;

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

/// Returns the lines of each table, without comments. A key has a meaning only within its table.
fn lines(file: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut lines = BTreeMap::new();
    for Table { name, entries } in tables(file) {
        let code = entries.iter().flat_map(Entry::code);
        lines.entry(name).or_insert_with(Vec::new).extend(code);
    }
    lines
}

#[test]
fn the_essential_parts_on_the_pages_are_those_of_the_examples() {
    for block in configurations() {
        let page = block.page.display();
        let Some((name, example)) = EXAMPLES
            .into_iter()
            .find(|(name, _)| block.part_of() == Some(*name))
        else {
            continue;
        };
        let example = lines(example);
        for (table, keys) in lines(&block.text) {
            let whole = example.get(table);
            let whole = whole.unwrap_or_else(|| panic!("{page}: {name} has no {table}"));
            for key in keys {
                assert!(
                    whole.contains(&key),
                    "{page}: {name}.toml has no `{key}` in {table}"
                );
            }
        }
    }
}

#[test]
fn each_example_has_its_essential_part_on_a_page() {
    for (page, names) in SHOWN {
        for name in names {
            let blocks = configurations().into_iter();
            let shown = blocks.filter(|block| block.page == Path::new(page));
            let shown = shown.filter(|block| block.part_of() == Some(*name));
            assert_eq!(shown.count(), 1, "{page}: one block for {name}.toml");
        }
    }
}

/// A block belongs to an example, as its first line says, or has the table that every file needs.
#[test]
fn each_block_is_complete_or_names_its_example() {
    let is_example = |name: &str| EXAMPLES.iter().any(|(known, _)| *known == name);
    let blocks = configurations();
    for block in &blocks {
        let example = block.addition_to().or_else(|| block.part_of());
        let is_complete = lines(&block.text).contains_key("[node]");
        assert!(
            is_complete || example.is_some_and(is_example),
            "{}: part of which file is this?\n{}",
            block.page.display(),
            block.text
        );
    }
    assert!(blocks.len() >= 50, "{} blocks", blocks.len());
}
