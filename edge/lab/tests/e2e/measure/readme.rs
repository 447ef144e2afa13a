//! Checks the pages for users against real programs: runs their commands, finds each line shown in
//! the output, and passes their configurations through `strata check`.

use anyhow::{Context, Result, bail, ensure};
use lab::certified::{GATEWAY_CONFIG, strata};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::pair::{self, DEADLINE, Pair, Terms};
use lab::process::{Process, until};
use lab::testbed::{Testbed, find_binary};
use lab::wire;
use os::Family;
use pages::{Block, Entry, Table, tables};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const CERTIFICATES: &str = include_str!("../../../../../docs/operate/certificates.md");
const NO_TRAFFIC: &str = include_str!("../../../../../docs/operate/no-traffic.md");
const TUTORIAL: &str = include_str!("../../../../../docs/tutorial.md");

/// The repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A key for every file with a secret that a configuration names.
const SECRET: &str = "4qHg8o8xEl1a3mVYz0j9k7bDq5Tn2RcuWfPyGhSIA6M=\n";

/// Commands that make the certificates and public keys that configurations name.
const CREDENTIALS: [&str; 5] = [
    "pki ca --name Root --out ca",
    "pki issue --ca ca --id gw.example.net",
    "pki crl --ca ca",
    "pki key --name gw",
    "pki key --name alice",
];

/// The page's gateway runs on the same machine.
#[lab::test]
fn certificates_are_made_as_shown_and_a_host_starts_with_them() -> Result<()> {
    let pair = Pair::new("readme")?;
    let host = &pair.gateway;
    let issued = commands(CERTIFICATES, "Certificates")?;
    ensure!(issued.len() >= 3, "{issued:?}");
    for (command, shown) in issued {
        holds(command, &shown, &strata(host, command)?)?;
    }
    host.run("cp ca/ca.pem .")?;
    let keys = blocks(CERTIFICATES, "Certificates").nth(1);
    let keys = keys.and_then(|block| block.strip_prefix("toml\n# in gateway.toml\n[node]\n"));
    let (id, rest) = GATEWAY_CONFIG.split_once("cert =").context("a cert")?;
    let (_, rest) = rest.split_once("[tunnel]").context("a tunnel")?;
    let config = format!("{id}{}[tunnel]{rest}", keys.context("no keys")?);
    let gateway = host.stratad(&config)?;
    let status = gateway.strata("status")?;
    ensure!(
        status["status"]["warnings"] == serde_json::json!([]),
        "{status}"
    );
    for (command, shown) in commands(CERTIFICATES, "Revoke a certificate")? {
        holds(command, &shown, &strata(host, command)?)?;
    }
    Ok(())
}

/// The wire has a small MTU, and the gateway requires another suite until the file is changed.
#[lab::test]
fn what_is_shown_is_what_is_printed() -> Result<()> {
    let pair = Pair::new("readme")?;
    pair.set_mtu(1400)?;
    pair.add_second_wire()?;
    for (host, name) in [
        (&pair.mobile, "tunnel.psk"),
        (&pair.gateway, "tunnel.psk"),
        (&pair.gateway, "node.psk"),
    ] {
        host.secret(name, pair::TUNNEL_KEY)?;
    }
    let wants = "suite = \"aes256gcm16\"\npsk = \"tunnel.psk\"";
    let gateway = pair::gateway_config(Terms::PLAIN).replace("psk = \"tunnel.psk\"", wants);
    let _gateway = pair.gateway.stratad(&gateway)?;
    let config = pair::mobile_config(Family::V4, Terms::PLAIN, "auto");
    let before = format!("{config}suite = \"aes128gcm16\"\n");
    let after = format!("{config}suite = \"aes256gcm16\"\nleak = \"never\"\n");
    let mobile = pair.mobile.stratad(&before)?;
    let commands = commands(NO_TRAFFIC, "The five commands")?;
    ensure!(commands.len() >= 4, "{commands:?}");
    let mut is_changed = false;
    for (command, shown) in commands {
        mobile.wait_until("status", DEADLINE, |status| match is_changed {
            true => pair::is_up(status),
            false => !pair::refusal(status).is_empty(),
        })?;
        if command == "reload" {
            mobile.configure(&after)?;
            is_changed = true;
        }
        holds(command, &shown, &answer(&pair, &mobile, command)?)?;
    }
    Ok(())
}

/// Each configuration on a page passes `strata check`, alone or in the example that it names. It
/// causes a warning exactly if a comment in it says so.
#[lab::test]
fn strata_check_accepts_each_configuration_on_the_pages() -> Result<()> {
    let bed = Testbed::new("pages")?;
    let host = bed.host("reader")?;
    for command in CREDENTIALS {
        strata(&host, command)?;
    }
    host.run("cp ca/ca.pem ca/ca.crl .")?;
    let blocks = pages::configurations();
    for block in &blocks {
        let config = complete(block)?;
        for name in secrets(&config) {
            host.secret(name, SECRET)?;
        }
        host.file("strata.toml", &config)?;
        let place = || format!("{}:\n{config}", block.page.display());
        let answer = strata(&host, "check strata.toml").with_context(place)?;
        let is_warned = answer.contains("warning:");
        let is_expected = block.text.contains("`strata check` warns");
        ensure!(is_warned == is_expected, "{answer}\n{}", place());
    }
    ensure!(blocks.len() >= 50, "{} configurations", blocks.len());
    Ok(())
}

/// Runs each block of the tutorial on the host that its fence names. A block may be repeated until
/// its output is that of the block below it.
#[lab::test]
fn the_tutorial_shows_what_happens() -> Result<()> {
    let mut lesson = Lesson::new()?;
    let mut shown = 0;
    let mut blocks = TUTORIAL.split("```").skip(1).step_by(2).peekable();
    while let Some(block) = blocks.next() {
        let (fence, text) = block.split_once('\n').context("a fence")?;
        let output = blocks.next_if(|next| next.starts_with("text "));
        let output = output.and_then(|block| block.split_once('\n'));
        shown += usize::from(output.is_some());
        match (fence.split_once(' '), output) {
            (Some(("sh", "machine")), None) => {
                text.lines().try_for_each(|line| lesson.build(line))?;
            }
            (Some(("sh", host)), Some((_, lines))) => lesson.prints(host, text, lines)?,
            (Some(("sh", host)), None) => lesson.run(host, text)?,
            (Some(("toml", host)), None) => lesson.configure(host, text)?,
            // The picture, and the interactive shells.
            (None, None) => {}
            _ => bail!("the tutorial has a block that is not understood: {block}"),
        }
    }
    ensure!(lesson.daemons.len() == 3 && shown >= 15, "{shown} outputs");
    Ok(())
}

/// The hosts of the tutorial, and the programs that run there.
struct Lesson {
    hosts: BTreeMap<&'static str, Host>,
    configs: BTreeMap<&'static str, &'static str>,
    daemons: BTreeMap<&'static str, Daemon>,
    others: Vec<Process>,
    bed: Testbed,
}

impl Lesson {
    fn new() -> Result<Self> {
        Ok(Self {
            hosts: BTreeMap::new(),
            configs: BTreeMap::new(),
            daemons: BTreeMap::new(),
            others: Vec::new(),
            bed: Testbed::new("tutorial")?,
        })
    }

    fn host(&self, name: &str) -> Result<&Host> {
        self.hosts
            .get(name)
            .with_context(|| format!("no host {name}"))
    }

    /// Runs a line on the machine of the namespaces. Namespaces are hosts of the testbed, which
    /// needs no rights outside its own.
    fn build(&mut self, line: &'static str) -> Result<()> {
        let words: Vec<&'static str> = line.split_whitespace().collect();
        match words[..] {
            ["ip", "netns", "add", name] => {
                let host = self.bed.host(name)?;
                self.hosts.insert(name, host);
                Ok(())
            }
            [
                "ip",
                "link",
                "add",
                near,
                "netns",
                here,
                "type",
                "veth",
                "peer",
                "name",
                far,
                "netns",
                there,
            ] => wire::veth(
                self.host(here)?.end(near, &[]),
                self.host(there)?.end(far, &[]),
            ),
            ["ip", "-n", name, ..] => {
                let command = format!("ip {}", words[3..].join(" "));
                self.host(name)?.run(&command).map(drop)
            }
            ["ip", "netns", "exec", name, "sysctl", "-w", setting] => {
                let (key, value) = setting.split_once('=').context("no value")?;
                self.host(name)?.sysctl(key, value)
            }
            ["ip", "netns", "del", _] => Ok(()),
            _ => self.shell("gateway", line).map(drop),
        }
    }

    /// Writes a host's configuration. A running daemon reads it at the next reload.
    fn configure(&mut self, name: &'static str, config: &'static str) -> Result<()> {
        match self.daemons.get(name) {
            Some(daemon) => daemon.configure(config),
            None => {
                self.configs.insert(name, config);
                self.host(name)?.file("strata.toml", config).map(drop)
            }
        }
    }

    /// Runs a block. A block that ends with `&` starts a program that stays.
    fn run(&mut self, name: &'static str, text: &str) -> Result<()> {
        let Some(line) = text.trim_end().strip_suffix(" &") else {
            return self.shell(name, text).map(drop);
        };
        let host = self.host(name)?;
        if line.starts_with("stratad ") {
            let config = self.configs.get(name).context("no configuration")?;
            let daemon = host.stratad(config)?;
            self.daemons.insert(name, daemon);
        } else {
            let process = host.spawn(line)?;
            self.others.push(process);
        }
        Ok(())
    }

    /// Runs a block until these lines are in its output, in this order.
    fn prints(&self, name: &str, text: &str, lines: &str) -> Result<()> {
        let lines = self.local(name, lines)?;
        let mut last = String::new();
        let waited = until(&lines, DEADLINE, || {
            last = match self.shell(name, text) {
                Ok(output) => output,
                Err(error) => format!("{error:?}"),
            };
            Ok(has(&last, &lines).then_some(()))
        });
        waited.with_context(|| format!("{text} on {name} printed:\n{last}"))
    }

    /// Runs a block in a host's shell, where `strata` reaches the host's daemon.
    fn shell(&self, name: &str, text: &str) -> Result<String> {
        let host = self.host(name)?;
        let program = find_binary("strata")?;
        let socket = host.directory().join("api.sock");
        let (program, socket) = (program.display(), socket.display());
        let text = self.local(name, text)?;
        let mut command = host.command("sh");
        command.arg("-ec").arg(format!(
            "strata() {{ {program} --socket {socket} \"$@\"; }}\n{text}"
        ));
        host.run_command(command, DEADLINE)
    }

    /// Replaces the folders of a real host by those of a host of the testbed.
    fn local(&self, name: &str, text: &str) -> Result<String> {
        let own = self.host(name)?.directory().display().to_string();
        let keys = self.bed.directory().join("keys").display().to_string();
        Ok(text
            .replace("/root/keys", &keys)
            .replace("/etc/strata", &own))
    }
}

/// Returns true if the output has these lines in this order. `...` stands for any text; empty lines
/// do not count.
fn has(output: &str, lines: &str) -> bool {
    let mut printed = output.lines();
    let mut lines = lines.lines().filter(|line| !line.is_empty());
    lines.all(|line| printed.any(|printed| fits(line, printed)))
}

fn fits(line: &str, printed: &str) -> bool {
    let mut parts = line.split("...");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = printed.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<_> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.split_once(*part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(*last)
}

/// Fails unless each line shown is printed.
fn holds(command: &str, shown: &[&str], answer: &str) -> Result<()> {
    for line in shown {
        let printed = answer.lines().any(|printed| printed == *line);
        ensure!(printed, "{command} does not print {line:?}: {answer}");
    }
    Ok(())
}

/// Returns the code blocks of a page's section, with their language tags.
fn blocks(page: &'static str, section: &str) -> impl Iterator<Item = &'static str> {
    let section = page.split("\n## ").find(|part| part.starts_with(section));
    let parts = section.unwrap_or_default().split("```");
    parts.skip(1).step_by(2)
}

/// Returns the commands of a section, without remarks, each with the lines shown below it.
fn commands(page: &'static str, section: &str) -> Result<Vec<(&'static str, Vec<&'static str>)>> {
    let block = blocks(page, section).next();
    let block = block.with_context(|| format!("{section} has no block of commands"))?;
    let mut commands = Vec::new();
    for line in block.lines().skip(1) {
        match line.strip_prefix("$ strata ") {
            Some(command) => {
                let command = command.split('#').next().unwrap_or_default();
                commands.push((command.trim_end(), Vec::new()));
            }
            None => commands.last_mut().context("no command")?.1.push(line),
        }
    }
    ensure!(!commands.is_empty(), "{section} shows no command");
    Ok(commands)
}

fn answer(pair: &Pair, mobile: &Daemon, words: &str) -> Result<String> {
    let mut command = pair.mobile.command(find_binary("strata")?);
    command.arg("--socket").arg(mobile.socket());
    command.args(words.split_whitespace());
    // The default path is not in this folder.
    command.args((words == "doctor").then_some("strata.toml"));
    pair.mobile.run_command(command, DEADLINE)
}

/// Returns a block as it is if it is a complete file, else merged into the example that its first
/// line names: `# in gateway.toml`, or `# gateway.toml` for a part of the example itself.
fn complete(block: &Block) -> Result<String> {
    let part = block.part_of();
    let part = part.filter(|_| !block.text.contains("\n[node]\nid = "));
    let Some(name) = block.addition_to().or(part) else {
        return Ok(block.text.clone());
    };
    let example = Path::new(ROOT).join(format!("edge/config/examples/{name}.toml"));
    let example = fs::read_to_string(&example).with_context(|| format!("no example {name}"))?;
    Ok(merged(&example, &block.text))
}

/// Returns true if an entry takes the place of a key: its own, or one that a remark names, such as
/// "instead of `psk`".
fn replaces(entry: &Entry<'_>, key: &str) -> bool {
    let mut remarks = entry
        .lines
        .iter()
        .filter_map(|line| line.split_once("instead of"));
    let named = |(_, keys): (&str, &str)| keys.split('`').any(|word| word == key);
    entry.key == key || remarks.any(named)
}

/// Adds tables and keys to an example. A key of the same name is replaced.
fn merged<'a>(example: &'a str, part: &'a str) -> String {
    let mut all = tables(example);
    for Table { name, entries } in tables(part) {
        let is_list = name.starts_with("[[");
        match all.iter_mut().find(|other| other.name == name && !is_list) {
            Some(home) => {
                home.entries
                    .retain(|old| !entries.iter().any(|new| replaces(new, old.key)));
                home.entries.extend(entries);
            }
            None => all.push(Table { name, entries }),
        }
    }
    let lines = all.iter().flat_map(|table| {
        let entries = table.entries.iter().flat_map(|entry| &entry.lines);
        [&table.name].into_iter().chain(entries)
    });
    lines.map(|line| format!("{line}\n")).collect()
}

/// Returns the names of the files with secrets that a configuration names.
fn secrets(config: &str) -> impl Iterator<Item = &str> {
    let code = config
        .lines()
        .map(|line| line.split(" #").next().unwrap_or_default());
    code.flat_map(|code| {
        let is_secret = code.contains("secret = ");
        let words = code.split('"').skip(1).step_by(2);
        words.filter(move |word| {
            let is_key = word.ends_with(".psk") || word.ends_with(".ppk");
            is_key || is_secret && word.ends_with(".key")
        })
    })
}
