//! `strata key`: explains a key of the configuration.

use config::Described;
use control::Failure;
use serde_json::json;
use terminal::{Exit, Output};

/// Prints what each key of this name is for. The name may have the table of the key in front.
pub fn run(name: &str, output: &Output) -> Exit {
    let keys = config::described();
    let meant: Vec<_> = keys.iter().filter(|key| is_meant(key, name)).collect();
    if meant.is_empty() {
        let message = format!("there is no key `{}`", name.escape_debug());
        return output.fail(Exit::Usage, &Failure::new(message, nearest(name, &keys)));
    }
    for key in meant {
        let Described {
            table,
            key,
            about,
            example,
            effect,
        } = key;
        if output.json {
            let line = json!({
                "table": table,
                "key": key,
                "about": about,
                "example": example,
                "reload": effect.word(),
            });
            output.print_json(&line.to_string());
        } else {
            let effect = effect.about();
            output.print(&format!(
                "[{table}] {key}: {about}\n  example: {key} = {example}\n  a changed value {effect}\n"
            ));
        }
    }
    Exit::Done
}

/// Returns true if a name is that of a key: alone, or with its table, whose own name may be left
/// out.
fn is_meant(key: &Described, name: &str) -> bool {
    let full = format!("{}.{}", key.table, key.key);
    let is_full = || {
        let (parts, words) = (full.split('.'), name.split('.'));
        let fits = |(part, word): (&str, &str)| part == "NAME" || part == word;
        parts.clone().count() == words.clone().count() && parts.zip(words).all(fits)
    };
    name == key.key || name == full.replace(".NAME", "") || is_full()
}

/// Returns the advice for a name that no key has.
fn nearest(name: &str, keys: &[Described]) -> String {
    let last = name.rsplit('.').next().unwrap_or_default();
    let others = keys.iter().filter(|key| key.key == last);
    let others: Vec<_> = others
        .map(|key| format!("`{}.{last}`", key.table.replace(".NAME", "")))
        .collect();
    match others.is_empty() {
        true => "write a key as in the file, like `clone` or `peer.clone`".to_owned(),
        false => format!("possible here: {}", others.join(", ")),
    }
}
