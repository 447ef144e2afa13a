//! Plays a scenario: composes the insider's messages, and compares all results with the
//! expectations of the file. An unexpected result is as much a failure as a missing one, and so is
//! any effect on the bystander.

use crate::insider::{Chain, INIT, Insider, RESPONSE, bodies, clear};
use crate::mangle::{damage, piece};
use crate::memory;
use crate::notation::{Bodies, Lexicon, Line, Spis, octets, shown};
use crate::scenario::{Act, Deed, End, Order, Scenario, Standing, Step};
use crate::scene::{SCENES, Scene, insiders, path};
use crate::twin::{honest, renew};
use ike::{Engine, Event, SaState};
use model::{ChildSa, ChildSaId, IkeSaId, Path, Spi};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::time::Duration;
use wire::ike::Datagram;

/// Source address of messages sent from elsewhere: a victim.
const ELSEWHERE: [u8; 4] = [203, 0, 113, 66];

/// Address that the host moves to.
const MOVED: [u8; 4] = [192, 0, 2, 3];

/// Limit of memory that an insider can make a host keep, in octets.
const MOST_GROWTH: i64 = 256 << 10;

/// Plays a scenario to its end. The error names the wrong expectation, or the defect of the file.
/// Panics if the host miscounts.
pub fn play(scenario: &Scenario) -> Result<(), String> {
    play_after(scenario, |_, _| {})
}

/// Plays a scenario after the host did something to the IKE SA of the bystander.
pub fn play_after(scenario: &Scenario, deed: fn(&mut Engine, IkeSaId)) -> Result<(), String> {
    let scene = SCENES.iter().find(|scene| scene.name == scenario.scene);
    let scene = scene.ok_or_else(|| format!("there is no scene `{}`", scenario.scene))?;
    let mut stage = Stage::set(*scene);
    let sa = stage.insider.bystander.sa;
    deed(&mut stage.insider.host, sa);
    stage.insider.listen();
    let before = memory::in_use();
    for (number, step) in (1..).zip(&scenario.steps) {
        let played = stage.step(step);
        played.map_err(|why| format!("step {number}: {why}"))?;
        let growth = memory::in_use() - before;
        if growth > MOST_GROWTH {
            return Err(format!("step {number}: {growth} octets more are in use"));
        }
    }
    stage.end(&scenario.end)
}

/// An insider and a host, with the observations of both.
struct Stage {
    scene: Scene,
    insider: Insider,
    /// Child SAs that carry packets, oldest first.
    children: BTreeMap<ChildSaId, Spis>,
    /// Messages to the operator.
    told: Vec<String>,
    moved: bool,
    /// The last datagrams sent, with their paths.
    sent: Vec<(Path, Vec<u8>)>,
    /// The host's last message, as received.
    reflection: Option<Vec<u8>>,
    /// Payloads of the host's last message, and of its last request.
    said: Bodies,
    asked: Bodies,
    /// Messages of the host since the step began.
    heard: Vec<String>,
    /// Number of generated SPIs.
    made_up: u32,
    /// Payloads of an honest peer, by exchange, response, and whether they concern the IKE SA.
    honest: BTreeMap<(u8, bool, bool), Bodies>,
}

impl Stage {
    fn set(scene: Scene) -> Self {
        let mut stage = Self {
            scene,
            insider: Insider::enter(scene),
            children: BTreeMap::new(),
            told: Vec::new(),
            moved: false,
            sent: Vec::new(),
            reflection: None,
            said: Bodies::new(),
            asked: Bodies::new(),
            heard: Vec::new(),
            made_up: 0x1000_0000,
            honest: BTreeMap::new(),
        };
        // Messages of the handshake are not results.
        stage.listen();
        stage.told.clear();
        stage.heard.clear();
        stage
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        let before = drops(&self.insider.host);
        self.act(step)?;
        let after = drops(&self.insider.host).into_iter();
        let dropped = after.filter_map(|(why, count)| {
            let more = count - before[&why];
            (more > 0).then_some((why, more))
        });
        let dropped = dropped.collect();
        expect("drops", &step.drops, &dropped)?;
        let heard = in_runs(&std::mem::take(&mut self.heard));
        let same = |(expected, heard): (&String, &String)| fits(expected, heard);
        match heard.len() == step.hears.len() && step.hears.iter().zip(&heard).all(same) {
            true => Ok(()),
            false => expect("hears", &step.hears, &heard),
        }
    }

    fn act(&mut self, step: &Step) -> Result<(), String> {
        let times = step.times.unwrap_or(1);
        match step.act()? {
            Act::Says(text) => {
                for _ in 0..times {
                    self.sent = self.compose(text, step)?;
                    self.send();
                }
            }
            Act::Sends(text) => {
                self.sent = vec![(self.way(0, step), octets(text)?)];
                (0..times).for_each(|_| self.send());
            }
            Act::Does(deed) => {
                if let Deed::Reflects = deed {
                    let octets = self.reflection.clone().ok_or("the host has said nothing")?;
                    self.sent = vec![(self.way(0, step), octets)];
                }
                if step.elsewhere {
                    let way = self.way(0, step);
                    self.sent.iter_mut().for_each(|sent| sent.0 = way);
                }
                (0..times).for_each(|_| self.send());
            }
            Act::Waits(seconds) => self.wait(Duration::from_secs(seconds)),
            Act::Host(order) => self.order(order)?,
        }
        Ok(())
    }

    /// Returns the datagrams of a message.
    fn compose(&mut self, text: &str, step: &Step) -> Result<Vec<(Path, Vec<u8>)>, String> {
        let line = Line::read(text)?;
        let chain = line.chain(&self.lexicon(&line))?;
        let sealed = step.sealed.unwrap_or(line.exchange != INIT);
        let first = line.exchange == INIT && !line.response && !sealed;
        let (flag, id) = match line.response {
            true => {
                let asked = self.insider.asked.ok_or("the host has asked nothing")?;
                (RESPONSE, asked.message_id)
            }
            false if first => (0, 0),
            false => (0, self.insider.next_id),
        };
        let id = i64::from(id).wrapping_add(step.id) as u32;
        let mut head = self.insider.head(line.exchange, flag, id);
        head.flags ^= step.flags;
        if first {
            head.spi_r = 0;
        }
        if step.anew {
            head.spi_i = u64::from(self.make_up().0);
        }
        if step.stray {
            (head.spi_i, head.spi_r) = (!head.spi_i, !head.spi_r);
        }
        let mut datagrams = match (sealed, step.pieces.is_empty()) {
            (false, _) => vec![clear(head, &chain)],
            (true, true) => vec![self.insider.seal(head, &chain, Some(step.padding), None)],
            (true, false) => {
                let pieces = step.pieces.iter().map(|text| piece(text, &chain));
                let pieces = pieces.collect::<Result<Vec<_>, _>>()?;
                let seal = |(numbers, part): ([u16; 2], Chain)| {
                    self.insider
                        .seal(head, &part, Some(step.padding), Some(numbers))
                };
                pieces.into_iter().map(seal).collect()
            }
        };
        for datagram in &mut datagrams {
            damage(datagram, step)?;
        }
        let way = self.way(line.exchange, step);
        Ok(datagrams.into_iter().map(|octets| (way, octets)).collect())
    }

    /// Returns the current meanings of the words in a message.
    fn lexicon(&mut self, line: &Line<'_>) -> Lexicon {
        let mut honest = |about_ike| {
            let (exchange, response) = (line.exchange, line.response);
            let known = self.honest.entry((exchange, response, about_ike));
            let twin = || honest(self.scene, exchange, response, about_ike);
            known.or_insert_with(twin).clone()
        };
        Lexicon {
            honest: honest(false),
            honest_ike: match line.is_about_ike() {
                true => honest(true),
                false => Vec::new(),
            },
            yours: match line.response {
                true => self.asked.clone(),
                false => self.said.clone(),
            },
            spis: self.newest(),
            unused: self.make_up(),
        }
    }

    const fn make_up(&mut self) -> Spi {
        self.made_up += 1;
        Spi(self.made_up)
    }

    fn newest(&self) -> Option<Spis> {
        self.children.last_key_value().map(|(_, spis)| *spis)
    }

    /// Returns the path of a message as the host sees it.
    fn way(&self, exchange: u8, step: &Step) -> Path {
        let port = if exchange == INIT {
            ike::PORT
        } else {
            ike::NATT_PORT
        };
        let mut way = path(2, port);
        if step.elsewhere {
            way.remote.set_ip(ELSEWHERE.into());
        }
        way
    }

    fn send(&mut self) {
        for (way, octets) in self.sent.clone() {
            self.insider.deliver(way, &octets);
            self.listen();
        }
    }

    fn wait(&mut self, pause: Duration) {
        let until = self.insider.now + pause;
        while let Some(due) = self.insider.due().filter(|due| *due <= until) {
            self.insider.now = self.insider.now.max(due);
            self.insider.tick();
            self.listen();
        }
        self.insider.now = until;
    }

    fn order(&mut self, order: Order) -> Result<(), String> {
        let (host, now) = (&mut self.insider.host, self.insider.now);
        match order {
            Order::RekeyChild => renew(host, false, now),
            Order::RekeyIke => renew(host, true, now),
            Order::Close => {
                let sas: Vec<_> = insiders(host).map(|sa| sa.id).collect();
                sas.into_iter().for_each(|sa| host.close(sa, now));
            }
            Order::Move => {
                let sa = insiders(host).next().ok_or("there is no SA")?;
                let way = Path::udp(SocketAddr::from((MOVED, ike::NATT_PORT)), sa.path.remote);
                let moved = host.move_to(sa.id, way, now);
                moved.map_err(|why| why.to_string())?;
            }
        }
        self.insider.listen();
        self.listen();
        Ok(())
    }

    /// Collects messages and events of the host, and does the work that its driver would do.
    fn listen(&mut self) {
        loop {
            let news = std::mem::take(&mut self.insider.news);
            if news.said.is_empty() && news.events.is_empty() {
                return;
            }
            // Formatted with the names from before: a child SA keeps its name until it is gone.
            for (way, octets) in news.said {
                self.hear(way, octets);
            }
            for event in news.events {
                self.note(event);
            }
            self.insider.listen();
        }
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::ChildUp(child) => self.enter(&child),
            Event::ChildRekeyed { new, .. } => self.enter(&new),
            Event::ChildDown { child, .. } => {
                self.children.remove(&child);
            }
            Event::PathMoved { path, .. } => {
                self.moved = path.remote.ip() == std::net::IpAddr::from(ELSEWHERE);
            }
            Event::Refused { why, .. } => self.told.push(why.to_string()),
            Event::IkeDown { why, .. } => self.told.push(why.to_string()),
            Event::Granted { sa, grant, .. } => {
                let (csa, number) = (grant.csa, grant.grant);
                let now = self.insider.now;
                let host = &mut self.insider.host;
                host.answer_grant(sa, csa, number, None, now);
            }
            _ => {}
        }
    }

    fn enter(&mut self, child: &ChildSa<crypto::Secret>) {
        let spis = Spis {
            mine: child.outbound.spi,
            yours: child.inbound.spi,
        };
        self.children.insert(child.id, spis);
    }

    fn hear(&mut self, way: Path, octets: Vec<u8>) {
        let (message, mark) = match Datagram::decode(&octets) {
            Ok(Datagram::Clear(message)) if message.header.exchange.0 == INIT => {
                (Some(message), "")
            }
            Ok(Datagram::Clear(message)) => (Some(message), " in the clear"),
            _ => (self.insider.open(&octets), ""),
        };
        let text = message.as_ref().map_or_else(
            || "what the insider cannot open".to_owned(),
            |message| shown(message, self.newest()),
        );
        let elsewhere = way.remote.ip() == std::net::IpAddr::from(ELSEWHERE);
        let elsewhere = if elsewhere { " elsewhere" } else { "" };
        self.heard.push(format!("{text}{mark}{elsewhere}"));
        self.said = message.as_ref().map_or_else(Vec::new, bodies);
        if message.is_some_and(|message| !message.header.flags.response) {
            self.asked.clone_from(&self.said);
        }
        self.reflection = Some(octets);
    }

    fn end(mut self, end: &End) -> Result<(), String> {
        expect("the SA", &end.sa, &standing(&self.insider.host))?;
        expect("tunnels", &end.tunnels, &self.children.len())?;
        let same = |(part, text): (&String, &String)| text.contains(part);
        let told = end.told.iter().zip(&self.told).all(same);
        if !told || end.told.len() != self.told.len() {
            expect("the operator is told", &end.told, &self.told)?;
        }
        expect("moved", &end.moved, &self.moved)?;
        self.insider.check_bystander()?;
        self.insider.leave();
        Ok(())
    }
}

fn drops(host: &Engine) -> BTreeMap<String, u64> {
    let drops = host.counters().drops();
    drops
        .map(|(why, count)| (why.label().to_owned(), count))
        .collect()
}

fn standing(host: &Engine) -> Standing {
    let is = |wanted: &[SaState]| insiders(host).any(|sa| wanted.contains(&sa.state));
    if is(&[SaState::Established]) {
        Standing::Up
    } else if is(&[SaState::Closing]) {
        Standing::Closing
    } else if is(&[SaState::Connecting, SaState::Authenticating]) {
        Standing::Making
    } else {
        Standing::Gone
    }
}

/// Merges repeated texts in a row into one with a count.
fn in_runs(texts: &[String]) -> Vec<String> {
    let runs = texts.chunk_by(|a, b| a == b);
    let told = runs.map(|run| match run.len() {
        1 => run[0].clone(),
        count => format!("{count} * {}", run[0]),
    });
    told.collect()
}

/// Returns true if a message matches the expected one, whose end may be left open.
fn fits(expected: &str, heard: &str) -> bool {
    match expected.split_once("...}") {
        Some((front, back)) => heard.starts_with(front) && heard.ends_with(back),
        None => expected == heard,
    }
}

fn expect<T: PartialEq + Debug>(what: &str, expected: &T, found: &T) -> Result<(), String> {
    match expected == found {
        true => Ok(()),
        false => Err(format!("{what}: expected {expected:#?}, found {found:#?}")),
    }
}
