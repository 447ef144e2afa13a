//! The reference page of a program's command line, from its definition.

use clap::builder::Resettable;
use clap::{Arg, ArgAction, Command, Id};
use std::fmt::Write;

/// A number beyond any limit of an argument.
const HUGE: &str = "9223372036854775807";

/// Renders the commands of a program, each with its arguments.
pub fn command_line(mut program: Command) -> String {
    program.build();
    let mut page = String::new();
    command(&mut page, program, "");
    page
}

fn command(page: &mut String, mut command: Command, parents: &str) {
    let name = format!("{parents}{}", command.get_name());
    let about = command.get_about().map(ToString::to_string);
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let usage: Vec<_> = usage.lines().map(str::trim).collect();
    let _ = write!(
        page,
        "\n## {name}\n\n{}.\n\n```\n{}\n```\n",
        about.unwrap_or_default().trim_end_matches('.'),
        usage.join("\n")
    );
    let is_inner = !parents.is_empty();
    let arguments = command.get_arguments();
    let rows: String = arguments
        .filter(|argument| is_listed(argument, is_inner))
        .map(row)
        .collect();
    if !rows.is_empty() {
        page.push_str("\n| argument | values | default | meaning |\n|---|---|---|---|\n");
        page.push_str(&rows);
    }
    if let Some(after) = command.get_after_help() {
        let _ = writeln!(page, "\n{after}");
    }
    let inner = command.get_subcommands();
    let inner = inner.filter(|inner| !is_generated_help(inner) && !inner.is_hide_set());
    for inner in inner {
        self::command(page, inner.clone(), &format!("{name} "));
    }
}

/// Returns true for the command `help` that the library adds to each program with commands.
fn is_generated_help(command: &Command) -> bool {
    let about = command.get_about().map(ToString::to_string);
    command.get_name() == "help"
        && about.is_some_and(|about| about.starts_with("Print this message"))
}

/// Global arguments are listed once, at the program.
fn is_listed(argument: &Arg, is_inner: bool) -> bool {
    let is_help = matches!(
        argument.get_action(),
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    );
    let is_elsewhere = is_inner && argument.is_global_set();
    !(is_help || is_elsewhere || argument.is_hide_set())
}

fn row(argument: &Arg) -> String {
    let short = argument.get_short().map(|short| format!("-{short}, "));
    let name = format!("{}{argument}", short.unwrap_or_default());
    let takes_value = argument.get_action().takes_values();
    let help = argument.get_help().map(ToString::to_string);
    // The help of some arguments has the default, which depends on others.
    let help = help.unwrap_or_default();
    let (help, in_help) = match help.split_once(" [default: ") {
        Some((help, default)) => (help.to_owned(), default.trim_end_matches(']').to_owned()),
        None => (help, String::new()),
    };
    let defaults = argument.get_default_values().iter();
    let defaults = defaults.map(|value| value.to_string_lossy().into_owned());
    let default = match (argument.is_required_set(), takes_value) {
        (true, _) => "required".to_owned(),
        (false, true) => defaults.chain([in_help]).collect::<String>(),
        (false, false) => String::new(),
    };
    let values = if takes_value {
        values(argument)
    } else {
        String::new()
    };
    format!(
        "| `{}` | {values} | {default} | {} |\n",
        name.replace('|', "\\|"),
        help.replace('|', "\\|")
    )
}

/// Returns the possible values of an argument, or their limits.
fn values(argument: &Arg) -> String {
    let possible = argument.get_possible_values();
    let words: Vec<_> = possible
        .iter()
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    let limits = match words.is_empty() {
        true => limits(argument),
        false => Some(words.join(", ")),
    };
    let omitted = omitted(argument).map(|value| format!("without a value: {value}"));
    let all: Vec<_> = limits.into_iter().chain(omitted).collect();
    all.join("; ")
}

/// Returns the limits of a number, as the error about a number beyond them states them.
fn limits(argument: &Arg) -> Option<String> {
    let parser = argument.get_value_parser().clone();
    let probe = Command::new("probe").arg(Arg::new("value").value_parser(parser));
    let error = probe
        .try_get_matches_from(["probe", HUGE])
        .err()?
        .to_string();
    let (_, limits) = error.split_once(" is not in ")?;
    let limits = limits.split_whitespace().next()?;
    let (least, most) = limits.split_once("..=")?;
    Some(format!("{least} to {most}"))
}

/// Returns the value that an argument has if it is given without one.
fn omitted(argument: &Arg) -> Option<String> {
    let is_optional = argument
        .get_num_args()
        .is_some_and(|count| count.min_values() == 0);
    let long = argument
        .get_long()
        .filter(|_| is_optional && argument.get_action().takes_values())?;
    // Other arguments that this one excludes are unknown to the probe.
    let alone = argument.clone().conflicts_with(Resettable::<Id>::Reset);
    let probe = Command::new("probe").arg(alone);
    let matches = probe.try_get_matches_from(["probe", &format!("--{long}")]);
    let matches = matches.ok()?;
    let values = matches.get_raw(argument.get_id().as_str())?;
    let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
    Some(values.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Command {
        let level = Arg::new("level").value_parser(["on", "off"]).required(true);
        let limited = clap::value_parser!(u32).range(1..=60);
        let seconds = Arg::new("seconds").long("seconds").short('s');
        let seconds = seconds.value_parser(limited).default_value("3");
        let hidden = Arg::new("hidden").long("hidden").hide(true);
        let json = Arg::new("json").long("json").global(true);
        let set = Command::new("set")
            .about("Set a level")
            .arg(level)
            .arg(seconds);
        let json = json.action(ArgAction::SetTrue).help("Print JSON");
        Command::new("tool")
            .about("A tool")
            .arg(json)
            .arg(hidden)
            .subcommand(set)
    }

    #[test]
    fn commands_have_their_arguments_with_values_limits_and_defaults() {
        let page = command_line(program());
        for row in [
            "| `--json` |  |  | Print JSON |",
            "| `<level>` | `on`, `off` | required |  |",
            "| `-s, --seconds <seconds>` | 1 to 60 | 3 |  |",
        ] {
            assert_eq!(page.matches(row).count(), 1, "{row}: {page}");
        }
        assert!(page.contains("\n## tool set\n\nSet a level.\n"), "{page}");
        assert!(!page.contains("hidden") && !page.contains("help"), "{page}");
    }
}
