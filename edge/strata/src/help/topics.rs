//! The pages of the documentation that `strata help` shows.

use super::page;
use crate::args::Args;
use clap::CommandFactory;

/// A page.
pub struct Topic {
    /// Its folder below `docs/`, and its name.
    path: &'static str,
    /// Name of its file, without the ending.
    pub name: &'static str,
    /// The page in Markdown.
    pub text: &'static str,
}

/// The index of the reference: a table of its pages.
const INDEX: &str = include_str!("../../../../docs/reference/README.md");

macro_rules! topics {
    ($($folder:literal $name:literal,)*) => {
        /// All pages, in the order in which they are listed.
        pub const TOPICS: &[Topic] = &[$(Topic {
            path: concat!($folder, "/", $name),
            name: $name,
            text: include_str!(concat!("../../../../docs/", $folder, "/", $name, ".md")),
        }),*];
    };
}

topics! {
    "." "tutorial",
    "operate" "first-tunnel",
    "operate" "second-site",
    "operate" "road-warriors",
    "operate" "certificates",
    "operate" "choose-a-caching-policy",
    "operate" "moving-in",
    "operate" "names",
    "operate" "pools-and-dns",
    "operate" "leak-protection",
    "operate" "mtu",
    "operate" "mobility",
    "operate" "reconnect",
    "operate" "licensed-nodes",
    "operate" "satellite-link",
    "operate" "audit",
    "operate" "monitoring",
    "operate" "no-traffic",
    "operate" "measure",
    "operate" "settings",
    "operate" "containers",
    "operate" "networkmanager-networkd",
    "operate" "upgrade",
    "reference" "configuration",
    "reference" "errors",
    "reference" "events",
    "reference" "metrics",
    "reference" "strata",
    "reference" "stratad",
    "reference" "strata-lab",
}

impl Topic {
    /// Returns the word that shows the page: with its folder, if a command has its name.
    pub fn word(&self) -> &'static str {
        match Args::command().find_subcommand(self.name) {
            Some(_) => self.path,
            None => self.name,
        }
    }

    /// Returns what the page is about: what the index of its folder tells, or its first sentence.
    pub fn about(&self) -> String {
        let link = format!("({}.md) |", self.name);
        let row = INDEX.lines().find(|row| row.contains(&link));
        let cell = row.and_then(|row| row.split('|').nth(2));
        cell.map_or_else(
            || page::first_sentence(self.text),
            |cell| page::first_sentence(cell.trim()),
        )
    }
}

/// Returns the page with a name, with or without its folder.
pub fn named(name: &str) -> Option<&'static Topic> {
    let is_named = |topic: &&Topic| topic.name == name || topic.path == name;
    TOPICS.iter().find(is_named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_page_for_operators_is_a_topic() {
        let mut expected = BTreeSet::from(["./tutorial".to_owned()]);
        for folder in ["operate", "reference"] {
            let pages = pages::list(folder);
            let names = pages.iter().filter_map(|page| page.strip_suffix(".md"));
            let names = names.filter(|name| *name != "README");
            expected.extend(names.map(|name| format!("{folder}/{name}")));
        }
        let topics = TOPICS.iter().map(|topic| topic.path.to_owned()).collect();
        assert_eq!(expected, topics);
    }

    #[test]
    fn each_topic_is_found_by_its_word_and_has_a_line_about_it() {
        let mut names = BTreeSet::new();
        for topic in TOPICS {
            assert!(
                names.insert(topic.name),
                "two pages are called {}",
                topic.name
            );
            let found = named(topic.word()).unwrap();
            assert_eq!(found.path, topic.path);
            let about = topic.about();
            assert!((10..=160).contains(&about.len()), "{}: {about}", topic.path);
            assert!(!about.contains(['\n', '`', '[']), "{}: {about}", topic.path);
        }
    }
}
