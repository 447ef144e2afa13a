//! Observed state machines: each transition with its cause.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A change from one state to another. The state before creation and after the end is `(none)`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Transition {
    /// State before the change.
    pub from: String,
    /// State after the change.
    pub to: String,
    /// Event that caused the change.
    pub cause: String,
}

/// A set of transitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine(BTreeSet<Transition>);

/// Name of the state before creation and after the end.
const NONE: &str = "(none)";

const TABLE: &str = "| from | to | by |\n|---|---|---|\n";

impl Machine {
    /// Records a transition. Ignores a transition from a state to itself.
    pub fn note(&mut self, from: Option<&str>, to: Option<&str>, cause: &str) {
        if from != to {
            self.0.insert(Transition {
                from: from.unwrap_or(NONE).to_owned(),
                to: to.unwrap_or(NONE).to_owned(),
                cause: cause.to_owned(),
            });
        }
    }

    /// Reads the transitions from the table of a page.
    pub fn read(page: &str) -> Self {
        let page = crate::read(page);
        let rows = page.split(TABLE).nth(1).unwrap_or_default().lines();
        let rows = rows.take_while(|row| row.starts_with('|'));
        let cells = rows.map(|row| row.trim_matches('|').split('|').map(str::trim));
        Self(cells.filter_map(transition).collect())
    }

    /// Adds the transitions of another machine.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns the transitions that `other` lacks.
    pub fn without<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a Transition> {
        self.0.difference(&other.0)
    }

    /// Renders a Mermaid diagram and a table.
    pub fn render(&self) -> String {
        let mut page = "```mermaid\nstateDiagram-v2\n".to_owned();
        let mut arrows: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for Transition { from, to, cause } in &self.0 {
            arrows.entry((from, to)).or_default().push(cause.as_str());
        }
        for ((from, to), causes) in arrows {
            let ends = [from, to].map(|state| if state == NONE { "[*]" } else { state });
            let _ = writeln!(
                page,
                "    {} --> {}: {}",
                ends[0],
                ends[1],
                causes.join(", or ")
            );
        }
        page.push_str("```\n\n");
        page.push_str(TABLE);
        for Transition { from, to, cause } in &self.0 {
            let _ = writeln!(page, "| {from} | {to} | {cause} |");
        }
        page
    }
}

fn transition<'a>(mut cells: impl Iterator<Item = &'a str>) -> Option<Transition> {
    let mut next = || cells.next().map(str::to_owned);
    Some(Transition {
        from: next()?,
        to: next()?,
        cause: next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_drawn_with_one_arrow_for_each_pair_of_states() {
        let mut machine = Machine::default();
        machine.note(None, Some("On"), "a switch");
        machine.note(Some("On"), Some("On"), "time");
        machine.note(Some("On"), None, "a switch");
        machine.note(Some("On"), None, "a cut");
        let page = machine.render();
        assert!(
            page.contains("    On --> [*]: a cut, or a switch\n"),
            "{page}"
        );
        assert!(page.contains("    [*] --> On: a switch\n"), "{page}");
        assert!(page.contains("| On | (none) | a cut |\n"), "{page}");
        assert!(!page.contains("time"), "{page}");
    }
}
