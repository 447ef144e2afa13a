//! The configuration in README.md is taken from the examples, which `config` reads in its tests.

use std::collections::BTreeMap;

const README: &str = include_str!("../../../README.md");
const EXAMPLES: [(&str, &str); 3] = [
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
];

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
fn the_configuration_in_the_readme_is_that_of_the_examples() {
    for (name, example) in EXAMPLES {
        let start = format!("```toml\n# {name}.toml\n");
        let shown = README
            .split(&start)
            .nth(1)
            .expect("one block for each example");
        let shown = shown.split("```").next().unwrap_or_default();
        let example = lines(example);
        for (table, keys) in lines(shown) {
            let whole = example
                .get(table)
                .unwrap_or_else(|| panic!("{name} has no {table}"));
            for key in keys {
                assert!(
                    whole.contains(&key),
                    "{name}.toml has no `{key}` in {table}"
                );
            }
        }
    }
}
