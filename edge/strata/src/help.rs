//! `strata help`: the help of a command, or a page of the documentation, which is compiled in.

mod page;
mod table;
mod topics;

use crate::args::Args;
use clap::CommandFactory;
use control::Failure;
use serde_json::json;
use std::fmt::Write;
use terminal::{Exit, Output, padded};
use topics::{TOPICS, Topic};

/// The number of columns of a page on a wider terminal, or in a file.
const COLUMNS: usize = 100;

/// Prints the help of a command or a page, or the list of both.
pub fn run(words: &[String], output: &Output) -> Exit {
    if words.is_empty() {
        list(output);
        return Exit::Done;
    }
    if let Some(text) = command(words) {
        let page = topics::named(&words.join(" "));
        print_command(&text, page, output);
        return Exit::Done;
    }
    let name = words.join(" ");
    let Some(topic) = topics::named(&name) else {
        let message = format!("there is no topic `{}`", name.escape_debug());
        return output.fail(Exit::Usage, &Failure::new(message, nearest(&name)));
    };
    if output.json {
        let line = json!({ "topic": topic.word(), "about": topic.about(), "text": topic.text });
        output.print_json(&line.to_string());
    } else {
        let columns = terminal::size().map_or(COLUMNS, |size| size.columns.min(COLUMNS));
        output.print(&page::show(topic.text, columns, output.paint()));
    }
    Exit::Done
}

/// Prints all commands and topics.
fn list(output: &Output) {
    if output.json {
        let topics = TOPICS.iter();
        let topics = topics.map(|topic| json!({ "topic": topic.word(), "about": topic.about() }));
        let line = json!({ "topics": topics.collect::<Vec<_>>() });
        return output.print_json(&line.to_string());
    }
    let columns = terminal::size().map(|size| size.columns);
    let words = TOPICS.iter().map(|topic| topic.word().len()).max();
    let mut text = Args::command().render_help().to_string();
    let _ = writeln!(
        text,
        "\n{}",
        output.paint().bold("Topics (strata help TOPIC):")
    );
    for topic in TOPICS {
        let word = padded(topic.word(), words.unwrap_or(0));
        let line = format!("  {word}  {}", topic.about());
        let _ = writeln!(text, "{}", terminal::cut(&line, columns));
    }
    output.print(&text);
}

fn print_command(text: &str, page: Option<&Topic>, output: &Output) {
    if output.json {
        let topic = page.map(Topic::word);
        return output.print_json(&json!({ "text": text, "topic": topic }).to_string());
    }
    output.print(text);
    if let Some(page) = page {
        let word = page.word();
        output.print(&format!(
            "\n`strata help {word}` shows the page about it.\n"
        ));
    }
}

/// Returns the help of a command, by its words.
fn command(words: &[String]) -> Option<String> {
    let mut command = Args::command();
    command.build();
    let mut inner = &mut command;
    for word in words {
        inner = inner.find_subcommand_mut(word)?;
    }
    Some(inner.render_long_help().to_string())
}

/// Returns the advice for a topic that there is not: the one that is most like it.
fn nearest(name: &str) -> String {
    let likeness = |topic: &&Topic| strsim::jaro_winkler(name, topic.name);
    let best = TOPICS
        .iter()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match best.filter(|best| likeness(best) > 0.7) {
        Some(best) => format!("did you mean `{}`? `strata help` lists all", best.word()),
        None => "name one of those that `strata help` lists".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_help_of_a_command_has_its_whole_name() {
        let status = command(&words("status")).unwrap();
        assert!(status.contains("Usage: strata status"), "{status}");
        let issue = command(&words("pki issue")).unwrap();
        assert!(issue.contains("Usage: strata pki issue"), "{issue}");
        assert_eq!(command(&words("pki no-traffic")), None);
    }

    #[test]
    fn a_topic_with_a_slip_leads_to_the_right_one() {
        assert!(nearest("no-trafic").contains("`no-traffic`"));
        assert!(nearest("metric").contains("`reference/metrics`"));
        assert!(nearest("xyzzy").contains("lists"));
    }
}
