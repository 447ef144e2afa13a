//! Follows a page: runs its blocks in their order, each on the host that the words behind the fence
//! name.
//!
//! | block | what happens |
//! |---|---|
//! | `network NAME` | the hosts of before end, and those of another network take their place |
//! | `sh HOST...` | the lines run on each of the hosts; `stratad` stays |
//! | `sh machine` | the lines build a network of namespaces |
//! | `text HOST` | the lines are in the output of the block before, in this order |
//! | `console HOST` | lines after `$` run, and the lines below each are in its output |
//! | `toml HOST` | the configuration of the host is saved |
//! | `toml HOST loaded` | the same, and `stratad` starts with it or reloads it |
//! | `toml HOST added` | the lines are added to the host's configuration, and loaded |
//!
//! A configuration that is part of an example is completed by the example. Secrets that it names
//! and that do not exist are created, all with the same content. `...` in an output stands for any
//! text. A command with an output is repeated until it prints the output.

use super::configuration::{complete, merged, secrets};
use super::network;
use super::output::has;
use anyhow::{Context, Result, bail, ensure};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::process::{DEADLINE, Process, until};
use lab::testbed::{Testbed, find_binary};
use lab::wire;
use pages::{Block, tables};
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// Content of the secrets that a page does not create.
pub const SECRET: &str = "4qHg8o8xEl1a3mVYz0j9k7bDq5Tn2RcuWfPyGhSIA6M=\n";

/// Places that a lesson does not have. A block that belongs there is shown and not run.
pub const ELSEWHERE: [(&str, &str); 6] = [
    (
        "source",
        "builds and installs: the phase `programs` builds, and nothing is installed by tests",
    ),
    ("systemd", "a namespace has no service manager"),
    (
        "manager",
        "a file of NetworkManager or systemd-networkd, which need a machine of their own",
    ),
    (
        "prometheus",
        "a file of Prometheus: `operate::metrics` runs promtool instead",
    ),
    (
        "figures",
        "takes minutes: `measure::figures` runs each figure and its report in small",
    ),
    (
        "demo",
        "takes a minute: `measure::demo_roam` and `demo_move` run it and read what it prints",
    ),
];

/// Name servers of a host before a tunnel.
const RESOLVER: &str = "nameserver 192.0.2.53\n";

/// Folders of a real host, which are the folder of a host of the testbed here.
const FOLDERS: [&str; 5] = [
    "/etc/strata",
    "/etc/sysctl.d",
    "/run/strata",
    "/var/lib/strata",
    "/var/log/strata",
];

/// The hosts of a page, and the programs that run there.
pub struct Lesson {
    name: &'static str,
    hosts: BTreeMap<String, Host>,
    configs: BTreeMap<String, String>,
    daemons: BTreeMap<String, Daemon>,
    others: Vec<Process>,
    deadline: Duration,
    shown: usize,
    bed: Testbed,
}

impl Lesson {
    /// Creates a lesson without hosts.
    pub fn new(name: &'static str) -> Result<Self> {
        Ok(Self {
            name,
            hosts: BTreeMap::new(),
            configs: BTreeMap::new(),
            daemons: BTreeMap::new(),
            others: Vec::new(),
            deadline: DEADLINE,
            shown: 0,
            bed: Testbed::new(name)?,
        })
    }

    /// Runs each command once, and fails if it does not print what is shown.
    pub fn once(self) -> Self {
        Self {
            deadline: Duration::ZERO,
            ..self
        }
    }

    /// Returns the number of outputs that were compared.
    pub fn shown(&self) -> usize {
        self.shown
    }

    /// Follows the blocks of a page.
    ///
    /// # Errors
    /// A block fails, prints other lines than shown, or has words that are not understood.
    pub fn follow(&mut self, blocks: &[Block]) -> Result<()> {
        let mut blocks = blocks.iter().peekable();
        while let Some(block) = blocks.next() {
            let is_output = |next: &&Block| {
                let is_text = next.words.first().is_some_and(|word| word == "text");
                is_text && !is_elsewhere(next)
            };
            let output = blocks.next_if(is_output);
            let place = || format!("{}:{}:\n{}", block.page.display(), block.line, block.text);
            self.step(block, output).with_context(place)?;
        }
        Ok(())
    }

    fn step(&mut self, block: &Block, output: Option<&Block>) -> Result<()> {
        let words: Vec<_> = block.words.iter().map(String::as_str).collect();
        let text = block.text.as_str();
        match (&words[..], output) {
            (["network", name], None) => self.enter(name),
            (_, None) if is_elsewhere(block) => Ok(()),
            (["sh", "machine"], None) => text.lines().try_for_each(|line| self.build(line)),
            (["sh", host], Some(output)) => {
                ensure!(output.words == ["text", host], "the output of another host");
                self.prints(host, text, &output.text)
            }
            (["sh", first, others @ ..], None) => [first]
                .into_iter()
                .chain(others)
                .try_for_each(|host| self.run(host, text)),
            (["console", host], None) => self.console(host, text),
            (["toml", host], None) => self.configure(host, &complete(block)?),
            (["toml", host, "loaded"], None) => {
                self.configure(host, &complete(block)?)?;
                self.load(host)
            }
            (["toml", host, "added"], None) => {
                let current = self.configs.get(*host);
                let current = current.context("no configuration to add to")?;
                self.configure(host, &merged(current, text))?;
                self.load(host)
            }
            _ => bail!(
                "`{}` says not where to run it, see ELSEWHERE",
                words.join(" ")
            ),
        }
    }

    /// Replaces all hosts by those of a network.
    fn enter(&mut self, network: &str) -> Result<()> {
        self.daemons.clear();
        self.others.clear();
        self.configs.clear();
        self.hosts.clear();
        self.bed = Testbed::new(self.name)?;
        self.hosts = network::build(&self.bed, network)?;
        let mut hosts = self.hosts.values();
        hosts.try_for_each(|host| host.file("resolv.conf", RESOLVER).map(drop))
    }

    fn host(&self, name: &str) -> Result<&Host> {
        self.hosts
            .get(name)
            .with_context(|| format!("no host {name}"))
    }

    /// Runs a line on the machine of the namespaces. Namespaces are hosts of the testbed, which
    /// needs no rights outside its own.
    fn build(&mut self, line: &str) -> Result<()> {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            ["ip", "netns", "add", name] => {
                let host = self.bed.host(name)?;
                self.hosts.insert(name.to_owned(), host);
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
            ["ip", "netns", "exec", name, ..] => self.run(name, &words[4..].join(" ")),
            ["ip", "netns", "del", _] => Ok(()),
            _ => {
                let any = self.hosts.keys().next().context("no host yet")?;
                self.shell(any, line).map(drop)
            }
        }
    }

    /// Saves a host's configuration. A running daemon reads it at the next reload.
    fn configure(&mut self, name: &str, config: &str) -> Result<()> {
        let config = self.at_home(name, config)?;
        let host = self.host(name)?;
        for secret in secrets(&config) {
            if !host.directory().join(secret).exists() {
                host.secret(secret, SECRET)?;
            }
        }
        match self.daemons.get(name) {
            Some(daemon) => daemon.configure(&config)?,
            None => drop(host.file("strata.toml", &config)?),
        }
        self.configs.insert(name.to_owned(), config);
        Ok(())
    }

    /// Keeps the files of a configuration in the host's folder, those with default names included.
    fn at_home(&self, name: &str, config: &str) -> Result<String> {
        let config = self.local(name, config)?;
        let folder = self.host(name)?.directory().display();
        let has = |table: &str, key: &str| {
            let tables = tables(&config).into_iter();
            let mut entries = tables
                .filter(|found| found.name.starts_with(table))
                .flat_map(|found| found.entries);
            entries.any(|entry| key.is_empty() || entry.key == key)
        };
        let mut more = String::new();
        if has("[tunnel]", "dns") || has("[peer.", "dns") {
            more += &format!("[tunnel]\nresolver = \"{folder}/resolv.conf\"\n");
        }
        if has("[pool.", "") {
            more += &format!("[store]\nfile = \"{folder}/strata.redb\"\n");
        }
        Ok(merged(&config, &more))
    }

    /// Starts a host's daemon with its configuration, or lets it apply this one.
    fn load(&mut self, name: &str) -> Result<()> {
        let Some(daemon) = self.daemons.get_mut(name) else {
            return self.start(name);
        };
        let changes = daemon.strata_text("reload")?;
        if changes.contains("(needs a restart)") {
            daemon.stop()?;
            daemon.start_again()?;
        }
        Ok(())
    }

    /// Starts a host's daemon with the configuration of the page, or that a command has written.
    fn start(&mut self, name: &str) -> Result<()> {
        let config = match self.configs.get(name) {
            Some(config) => config.clone(),
            None => {
                let written = self.host(name)?.directory().join("strata.toml");
                let written = fs::read_to_string(written).context("no configuration")?;
                self.at_home(name, &written)?
            }
        };
        let daemon = self.host(name)?.stratad(&config)?;
        self.configs.insert(name.to_owned(), config);
        self.daemons.insert(name.to_owned(), daemon);
        Ok(())
    }

    /// Runs lines. A daemon, a service and a line that ends with `&` stay.
    fn run(&mut self, name: &str, text: &str) -> Result<()> {
        let mut lines = String::new();
        for line in text.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            let is_apart = matches!(words[..], ["stratad" | "systemctl" | "sysctl", ..]);
            if !is_apart && !line.ends_with(" &") {
                lines += line;
                lines.push('\n');
                continue;
            }
            self.shell(name, &std::mem::take(&mut lines))?;
            match words[..] {
                ["stratad"] | ["stratad", .., "&"] | ["stratad", "--config", _] => {
                    self.start(name)?;
                }
                ["systemctl", verb, "stratad"] => self.service(name, verb)?,
                ["sysctl", "-w", setting] => self.set(name, setting)?,
                ["sysctl", "-p", file] => {
                    let settings = fs::read_to_string(self.local(name, file)?)?;
                    settings
                        .lines()
                        .try_for_each(|setting| self.set(name, setting))?;
                }
                [.., "&"] => {
                    let line = self.local(name, line.trim_end_matches(" &"))?;
                    let process = self.host(name)?.spawn(&line)?;
                    self.others.push(process);
                }
                _ => self.shell(name, line).map(drop)?,
            }
        }
        self.shell(name, &lines).map(drop)
    }

    fn service(&mut self, name: &str, verb: &str) -> Result<()> {
        let daemon = self.daemons.get_mut(name).context("not started")?;
        match verb {
            "stop" => daemon.stop(),
            "start" => daemon.start_again(),
            "restart" => daemon.stop().and_then(|()| daemon.start_again()),
            _ => bail!("no service can {verb}"),
        }
    }

    fn set(&self, name: &str, setting: &str) -> Result<()> {
        let (key, value) = setting.split_once('=').context("no value")?;
        self.host(name)?.sysctl(key, value)
    }

    /// Runs the lines after `$`, until the lines below each are printed.
    fn console(&mut self, name: &str, text: &str) -> Result<()> {
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let command = line.strip_prefix("$ ").context("no command")?;
            let mut shown = String::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
                shown += line;
                shown.push('\n');
            }
            match shown.as_str() {
                "" => self.run(name, command)?,
                _ => self.prints(name, command, &shown)?,
            }
        }
        Ok(())
    }

    /// Runs lines until these lines are in their output, in this order.
    fn prints(&mut self, name: &str, text: &str, lines: &str) -> Result<()> {
        self.shown += 1;
        let lines = self.local(name, lines)?;
        let mut last = String::new();
        let waited = until(&lines, self.deadline, || {
            last = match self.shell(name, text) {
                Ok(output) => output,
                Err(error) => format!("{error:?}"),
            };
            Ok(has(&last, &lines).then_some(()))
        });
        waited.with_context(|| format!("{text} on {name} printed:\n{last}"))
    }

    /// Runs lines in a host's shell, where `strata` reaches the host's daemon and finds its
    /// configuration.
    fn shell(&self, name: &str, text: &str) -> Result<String> {
        if text.is_empty() {
            return Ok(String::new());
        }
        let host = self.host(name)?;
        let [strata, stratad] = [find_binary("strata")?, find_binary("stratad")?];
        let programs = strata.parent().context("strata is in no folder")?;
        let programs = programs.display();
        let (strata, stratad) = (strata.display(), stratad.display());
        let socket = host.directory().join("api.sock");
        let socket = socket.display();
        let functions = format!(
            r#"strata() {{
    case "$*" in
    check | doctor | audit*) set -- "$@" strata.toml ;;
    enrol*) set -- "$@" --file strata.toml ;;
    init*) set -- "$@" --out . ;;
    esac
    case "$1" in
    --socket) {strata} "$@" ;;
    *) {strata} --socket {socket} "$@" ;;
    esac
}}
stratad() {{ {stratad} --config strata.toml "$@"; }}
scp() {{ cp -p "$@"; }}
PATH={programs}:$PATH
"#
        );
        host.file("functions", &functions)?;
        let mut command = host.command("sh");
        let lines = self.local(name, text)?;
        command.arg("-ec").arg(format!(". ./functions\n{lines}"));
        host.run_command(command, DEADLINE)
    }

    /// Replaces the folders of a real host by those of a host of the testbed.
    fn local(&self, name: &str, text: &str) -> Result<String> {
        let own = self.host(name)?.directory().display().to_string();
        let keys = self.bed.directory().join("keys").display().to_string();
        let backups = self.bed.directory().display().to_string();
        let text = text.replace("/root/keys", &keys);
        let mut text = text.replace("/var/backups", &backups);
        for (name, host) in &self.hosts {
            let there = format!("{}/", host.directory().display());
            text = text.replace(&format!("{name}:/etc/strata/"), &there);
        }
        let resolver = format!("{own}/resolv.conf");
        let text = text.replace("/etc/resolv.conf", &resolver);
        let local = |text: String, folder: &&str| text.replace(*folder, &own);
        Ok(FOLDERS.iter().fold(text, local))
    }
}

fn is_elsewhere(block: &Block) -> bool {
    let place = block.words.get(1);
    place.is_some_and(|place| ELSEWHERE.iter().any(|(known, _)| known == place))
}
