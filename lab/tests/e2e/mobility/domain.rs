//! Licences for all nodes of a domain (DESIGN section 5): the gateway has a table for each node,
//! and the mobile node has the domain alone.

use anyhow::{Context, Result, ensure};
use lab::certified::{hand_out, strata};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::pair::{self, Terms, holds_a_grant};
use lab::process::{DEADLINE, until};
use lab::spis::{held, holds, passed, sent_on};
use lab::testbed::Testbed;
use lab::walk::tables::neighbours;
use lab::walk::{AGENTS, Ends, HOME_KEY, OFTEN, Walk, agent_config, both_ways};
use lab::wiretap::Wiretap;
use serde_json::Value;
use std::collections::BTreeSet;

/// Identities of the agents. The last one is outside the domain.
const NODES: [&str; 3] = ["fa.sat.example.net", "fb.sat.example.net", "fc.example.net"];

/// The licence at both ends.
const DOMAIN: &str = r#"[{ node = "*.sat.example.net", zones = ["headers"], right = "read" }]"#;

/// Lines of `[node]` with a certificate, and the CA `root`.
const CERTIFIED: &str = "cert = \"chain.pem\"\nkey = \"end.key\"\nca = [\"ca.pem\"]\n";

/// Additional tables of an agent.
const LICENSED: &str = r#"
[gateway.gw]
id = "gw.example.net"
liveness = "1s"
[divert]
wired = "strata-mobile"
wireless = "wl0"
[snoop]
enabled = true
"#;

/// A mobile node's endpoints, and the agents that it moves between.
struct Route {
    ends: Ends,
    agents: Vec<Daemon>,
}

/// Makes the network, the CAs `root` and `other`, and certificates of the home agent and of each
/// agent, by one of the CAs.
fn walk(authorities: [&str; 3]) -> Result<Walk> {
    let walk = Walk::in_bed(Testbed::new("domain")?, &[None; 3])?;
    for ca in ["root", "other"] {
        strata(&walk.home, &format!("pki ca --name {ca} --out {ca}"))?;
    }
    strata(&walk.home, "pki crl --ca root")?;
    issue(&walk, &walk.home, "root", "gw.example.net")?;
    for (agent, (node, ca)) in walk.agents.iter().zip(NODES.into_iter().zip(authorities)) {
        issue(&walk, agent, ca, node)?;
    }
    Ok(walk)
}

fn issue(walk: &Walk, host: &Host, ca: &str, id: &str) -> Result<()> {
    let maker = &walk.home;
    strata(maker, &format!("pki issue --ca {ca} --out made --id {id}"))?;
    hand_out(maker, host, id)
}

/// Adds a certificate to the configuration of the node with this identity.
fn certified(config: &str, id: &str) -> String {
    let id = format!("id = \"{id}\"\n");
    config.replacen(&id, &format!("{id}{CERTIFIED}"), 1)
}

fn home_config(walk: &Walk, licences: &str) -> String {
    let config = walk.home_config(Terms::requiring(licences));
    let agents = AGENTS.iter().zip(NODES);
    let named = agents.fold(config, |config, (agent, node)| config.replace(agent, node));
    let config = named.replace("psk = \"node.psk\"", "ca = \"root/ca.pem\"");
    certified(&config, "gw.example.net")
}

fn start_agents(walk: &Walk, more: impl Fn(usize) -> String) -> Result<Vec<Daemon>> {
    let numbers = walk.agents.iter().enumerate();
    let agents = numbers.map(|(number, host)| {
        let config = agent_config(number).replace(AGENTS[number], NODES[number]);
        let config = certified(&config, NODES[number]);
        host.stratad(&format!("{config}{LICENSED}{}", more(number)))
    });
    agents.collect()
}

impl Route {
    /// Starts everything, with the mobile node at the first agent. `home` is the home agent's
    /// configuration.
    fn start(
        walk: &Walk,
        home: &str,
        licences: &str,
        more: impl Fn(usize) -> String,
    ) -> Result<Self> {
        let agents = start_agents(walk, more)?;
        let home = walk.start_home_as(home)?;
        walk.leave_link(0)?;
        let mobile = walk.start_mobile_as(HOME_KEY, &mobile_config(walk, licences))?;
        let ends = Ends::when_up(home, mobile)?;
        Ok(Self { ends, agents })
    }

    /// Waits until both ends seal in an agent's slot and the agent holds its keys; returns the
    /// SPIs, seen from home.
    fn is_read_by(&self, number: usize) -> Result<[String; 2]> {
        let slot = format!("@{}", NODES[number]);
        until(&format!("{} to read", NODES[number]), DEADLINE, || {
            let (home, mobile) = (
                self.ends.home.strata("status")?,
                self.ends.mobile.strata("status")?,
            );
            let Some([inward, outward]) = sent_on(&home, &slot) else {
                return Ok(None);
            };
            let there = Some([outward.clone(), inward.clone()]);
            let mut slots = (1..=4).map(|number| format!("@*.sat.example.net#{number}"));
            let agree = slots.any(|slot| sent_on(&mobile, &slot) == there);
            let spis = [inward, outward];
            Ok((agree && holds(&self.agents[number], &spis)?).then_some(spis))
        })
    }

    fn segments(&self) -> Result<Vec<u64>> {
        self.agents.iter().map(pair::segments).collect()
    }
}

fn mobile_config(walk: &Walk, licences: &str) -> String {
    let file = walk.mobile.directory().join("audit.jsonl");
    let audit = format!("[audit]\nfile = \"{}\"\n", file.display());
    let config = walk.mobile_config(OFTEN, Terms::requiring(licences));
    format!("{config}{audit}")
}

/// Returns a configuration without the table of the second agent.
fn without_second(config: &str) -> Result<String> {
    let tables = config.split_once("[licensed.fb]");
    let (before, rest) = tables.context("no table of the second agent")?;
    let (_, after) = rest.split_once("[licensed.fc]").context("no third one")?;
    Ok(format!("{before}[licensed.fc]{after}"))
}

/// Returns the nodes that `strata zones` of an end names.
fn readers(zones: &Value) -> BTreeSet<String> {
    let composites = zones["zones"]["composites"]
        .as_array()
        .into_iter()
        .flatten();
    let holders = composites.flat_map(|csa| csa["holders"].as_array().into_iter().flatten());
    let nodes = holders.filter_map(|holder| holder["node"].as_str());
    nodes.map(str::to_owned).collect()
}

/// Each node that the mobile node visits has keys of its own, which open nothing before or after,
/// and both ends name it. A new node of the domain needs nothing at the mobile node. One outside
/// the domain, which home would let read, has no keys, and the mobile node says so.
// Works: licence-domain
// Answers: licence-domain
#[lab::test]
fn each_node_of_a_licensed_domain_reads_at_its_place_and_no_other_node_does() -> Result<()> {
    let walk = walk(["root"; 3])?;
    let all_nodes = home_config(&walk, &DOMAIN.replace("*.sat.", "*."));
    let first = without_second(&all_nodes)?;
    let route = Route::start(&walk, &first, DOMAIN, |_| String::new())?;
    route.is_read_by(0)?;
    route.ends.home.change(&all_nodes)?;
    let (mut all, mut kept) = (BTreeSet::new(), BTreeSet::new());
    for number in [0, 1, 0] {
        route.ends.move_to(&walk, number)?;
        let spis = route.is_read_by(number)?;
        ensure!(
            spis.iter().all(|spi| all.insert(spi.clone())),
            "{spis:?} came before"
        );
        let before = route.segments()?;
        let tap = Wiretap::open(&walk.mobile)?;
        both_ways(&walk)?;
        let read = route.segments()?[number] - before[number];
        ensure!(read > 100, "{} has read {read} segments", NODES[number]);
        let passed = passed(&tap)?;
        ensure!(
            spis.iter().all(|spi| passed.contains(spi)) && passed.is_disjoint(&kept),
            "{passed:?}, {spis:?} and {kept:?}"
        );
        kept.extend(held(&route.agents[number])?);
        let named = |zones: &Value| readers(zones) == [NODES[number].to_owned()].into();
        for end in [&route.ends.mobile, &route.ends.home] {
            end.wait_until("zones", DEADLINE, named)?;
        }
    }
    let before = route.segments()?;
    route.ends.move_to(&walk, 2)?;
    let told = |status: &Value| {
        let why = pair::refusal(status);
        why.contains("let fc.example.net read, but no licence here names")
    };
    route.ends.mobile.wait_until("status", DEADLINE, told)?;
    let gone = |zones: &Value| readers(zones).is_empty();
    route.ends.mobile.wait_until("zones", DEADLINE, gone)?;
    both_ways(&walk)?;
    ensure!(route.segments()?[2] == before[2], "{} reads", NODES[2]);
    ensure!(held(&route.agents[2])?.is_empty(), "{} has keys", NODES[2]);
    let audit = route.ends.mobile.strata_text("audit strata.toml")?;
    ensure!(
        NODES[..2].iter().all(|node| audit.contains(node)) && !audit.contains(NODES[2]),
        "{audit}"
    );
    Ok(())
}

/// The name alone proves nothing: the certificate has to be of the CA in the node's table, and not
/// revoked.
// Refuses: licence-domain
// Answers: licence-domain
#[lab::test]
fn a_node_of_the_domain_with_another_ca_or_a_revoked_certificate_has_no_key() -> Result<()> {
    let walk = walk(["root", "other", "root"])?;
    // Home trusts both CAs, and the tables of the nodes name one.
    let both = CERTIFIED.replace("\"ca.pem\"", "\"ca.pem\", \"other/ca.pem\"");
    let home = home_config(&walk, DOMAIN).replace(CERTIFIED, &both);
    let route = Route::start(&walk, &home, DOMAIN, |_| String::new())?;
    route.is_read_by(0)?;
    let refused = |status: &Value| {
        let peers = status["status"]["peers"].as_array();
        let second = peers.and_then(|peers| peers.iter().find(|peer| peer["name"] == "fb"));
        let why = second.map(|second| second["last_refusal"]["reason"].to_string());
        why.is_some_and(|why| why.contains("is issued by `CN=other`, but must chain to `CN=root`"))
    };
    route.ends.home.wait_until("status", DEADLINE, refused)?;
    route.ends.move_to(&walk, 1)?;
    both_ways(&walk)?;
    ensure!(
        held(&route.agents[1])?.is_empty(),
        "the other CA's has keys"
    );
    ensure!(pair::segments(&route.agents[1])? == 0, "it reads");
    route.ends.move_to(&walk, 0)?;
    route.is_read_by(0)?;
    let revoke = format!("pki revoke --ca root made/{}.pem", NODES[0]);
    strata(&walk.home, &revoke)?;
    let listed = both.replace("key =", "crl = [\"root/ca.crl\"]\nkey =");
    let listed = home_config(&walk, DOMAIN).replace(CERTIFIED, &listed);
    route.ends.home.change(&listed)?;
    let none = |zones: &Value| {
        let held = zones["zones"]["held"].as_array();
        held.is_some_and(Vec::is_empty)
    };
    route.agents[0].wait_until("zones", DEADLINE, none)?;
    let before = pair::segments(&route.agents[0])?;
    both_ways(&walk)?;
    let after = pair::segments(&route.agents[0])?;
    ensure!(
        after == before,
        "the revoked one has read {}",
        after - before
    );
    Ok(())
}

/// A gateway that prepares one more node than the mobile node permits.
// Refuses: licence-domain
#[lab::test]
fn one_more_node_than_at_most_has_no_key_and_the_mobile_node_says_so() -> Result<()> {
    let walk = walk(["root"; 3])?;
    let limit = |most: &str| {
        let domain = DOMAIN.replace(" }", &format!(", at_most = {most} }}"));
        format!("{domain}\nhandover = \"pkd\"")
    };
    let next = NODES[1];
    let onward = |number: usize| match number {
        0 => neighbours(&[1]).replace(AGENTS[1], next),
        _ => String::new(),
    };
    let home = home_config(&walk, &limit("2"));
    let route = Route::start(&walk, &home, &limit("1"), onward)?;
    route.is_read_by(0)?;
    let told = |status: &Value| {
        let why = pair::refusal(status);
        why.contains(&format!("let {next} read")) && why.contains("`at_most`")
    };
    route.ends.mobile.wait_until("status", DEADLINE, told)?;
    ensure!(held(&route.agents[1])?.is_empty(), "{next} has keys");
    // With room for two, the next node has its keys before the mobile node comes.
    route
        .ends
        .mobile
        .change(&mobile_config(&walk, &limit("2")))?;
    route.agents[1].wait_until("zones", DEADLINE, holds_a_grant)?;
    let prepared = held(&route.agents[1])?;
    route.ends.move_to(&walk, 1)?;
    let spis = route.is_read_by(1)?;
    ensure!(
        spis.iter().all(|spi| prepared.contains(spi)),
        "{spis:?} are not {prepared:?}"
    );
    Ok(())
}
