//! The text format of Prometheus, version 0.0.4: families of samples, in the order of the calls.

use std::fmt::{Display, Write};

/// What every name begins with.
const PREFIX: &str = "strata_";

/// The text so far.
#[derive(Default)]
pub struct Exposition(String);

/// The kind of a family.
#[derive(Clone, Copy)]
pub enum Kind {
    /// It never decreases. The name ends with `_total`.
    Counter,
    Gauge,
    Histogram,
}

/// A family, to add samples to.
pub struct Family<'a> {
    text: &'a mut String,
    name: &'a str,
}

impl Exposition {
    /// Begins a family.
    pub fn family<'a>(&'a mut self, kind: Kind, name: &'a str, help: &str) -> Family<'a> {
        let text = &mut self.0;
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(text, "# HELP {PREFIX}{name} {help}");
        let _ = writeln!(text, "# TYPE {PREFIX}{name} {kind}");
        Family { text, name }
    }

    /// Adds a family with one sample.
    pub fn single(&mut self, kind: Kind, name: &str, help: &str, value: impl Display) {
        self.family(kind, name, help).sample(&[], value);
    }

    /// Adds counters that differ by one label.
    pub fn counters<V: AsRef<str>>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (V, u64)>,
    ) {
        let mut family = self.family(Kind::Counter, name, help);
        for (value, count) in values {
            family.sample(&[(label, value.as_ref())], count);
        }
    }

    /// Returns the text.
    pub fn finish(self) -> String {
        self.0
    }
}

impl Family<'_> {
    /// Adds a sample.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.suffixed("", labels, value);
    }

    /// Adds a sample whose name has a suffix, as those of histograms have.
    pub fn suffixed(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let text = &mut *self.text;
        let _ = write!(text, "{PREFIX}{}{suffix}", self.name);
        for (place, (label, value)) in labels.iter().enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            let _ = write!(text, "{before}{label}=\"");
            escape(text, value);
            text.push('"');
        }
        if !labels.is_empty() {
            text.push('}');
        }
        let _ = writeln!(text, " {value}");
    }
}

fn escape(text: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_its_help_its_type_and_its_samples_in_order() {
        let mut text = Exposition::default();
        text.counters("a_total", "Packets", "why", [("b", 2), ("a", 1)]);
        text.single(Kind::Gauge, "c", "Time", 0.25);
        assert_eq!(
            text.finish(),
            "# HELP strata_a_total Packets\n# TYPE strata_a_total counter\n\
             strata_a_total{why=\"b\"} 2\nstrata_a_total{why=\"a\"} 1\n\
             # HELP strata_c Time\n# TYPE strata_c gauge\nstrata_c 0.25\n"
        );
    }

    /// The subject of a certificate is free text.
    #[test]
    fn no_value_of_a_label_ends_its_line() {
        let mut text = Exposition::default();
        let mut family = text.family(Kind::Gauge, "end", "Of \\ and\nmore");
        family.sample(&[("subject", "CN=\"a\"\\\nx 1")], 7);
        assert_eq!(
            text.finish(),
            "# HELP strata_end Of \\\\ and\\nmore\n# TYPE strata_end gauge\n\
             strata_end{subject=\"CN=\\\"a\\\"\\\\\\nx 1\"} 7\n"
        );
    }
}
