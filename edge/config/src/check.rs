//! Checks that need several tables at once.

use crate::psk::weakness;
use crate::reader::{Value, suggestion};
use crate::{
    Action, Addressing, Config, MOBILE_DEVICE, MetricsAddress, Mobility, Nat, Party, Peer, Pool,
    Warning, child, credential, domain, layout, licence, link, live_paths, mode, tfc, traffic,
    unencrypted, users,
};
use model::{Identity, TrafficSelector, ZoneId};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;

/// Checks the rules between tables. Records faults; the values are found again in the file by name.
pub(crate) fn faults(config: &Config, root: &Value<'_>) {
    unique_parties(config, root);
    provable_parties(config, root);
    known_pools(config, root);
    logged_peers(config, root);
    own_files(config, root);
    own_addresses(config, root);
    mobile_addresses(config, root);
    mobile_device(config, root);
    idle_neighbours(config, root);
    link::check(config, root);
    domain::check(config, root);
    for peer in &config.peers {
        child::check(peer, root);
        mode::check(peer, root);
        layout::check(peer, root);
        tfc::check(peer, root);
        live_paths::check(peer, config, root);
        traffic::check(peer, config, root);
        licence::check(peer, root);
        users::check(peer, root);
    }
    for (kind, party) in parties(config).filter(|(kind, _)| *kind != "peer") {
        users::check_other(kind, party, root);
    }
    // The check uses the file, not the result: a faulty [divert] has its own fault.
    let nothing_diverted = root.at(&["divert"]).is_none();
    // A gateway whose devices come later has a pool already, and is warned of that.
    let nobody = config.peers.is_empty() && config.gateways.is_empty() && config.pools.is_empty();
    if nobody && nothing_diverted && !Mobility::is_in(root) {
        root.fault::<()>(
            "the file has no tunnel, no licensed node and no Mobile IP role",
            "add a [peer.NAME] for a tunnel, or [gateway.NAME] and [divert] for a licensed node",
        );
    }
    for section in ["snoop", "regulate", "stand_in", "handover"] {
        if let Some(value) = root.at(&[section])
            && nothing_diverted
        {
            value.fault::<()>(
                "without [divert], this node examines no packets",
                format!("add [divert] with `wired` and `wireless`, or remove [{section}]"),
            );
        }
    }
}

/// Refuses neighbours without `[divert]`: their keys open only packets that pass through here.
fn idle_neighbours(config: &Config, root: &Value<'_>) {
    if root.at(&["divert"]).is_none()
        && let Some(neighbour) = config.adjacent.first()
        && let Some(table) = root.at(&["neighbour", &neighbour.party.name])
    {
        table.fault::<()>(
            "without [divert], this node cannot use the keys of a neighbour",
            "add [divert] with `wired` and `wireless`, or remove the table; nodes that a tunnel licenses are [licensed.NAME]",
        );
    }
}

/// Refuses one file for leases and sessions.
fn own_files(config: &Config, root: &Value<'_>) {
    if let Some(value) = root.at(&["sessions", "file"])
        && config.sessions.file.as_ref() == Some(&config.store)
    {
        value.fault::<()>(
            "this file keeps the leases of pools (`file` in [store])",
            "name another file, such as \"/var/lib/strata/sessions.redb\"",
        );
    }
}

/// Checks that every named pool exists. The pool's table may come before or after the peer's.
fn known_pools(config: &Config, root: &Value<'_>) {
    for peer in &config.peers {
        let named = root.at(&["peer", &peer.party.name, "pool"]);
        if let (Some(value), Addressing::Lent(pool), None) =
            (named, &peer.addressing, config.pool(peer))
        {
            let known = config.pools.iter().map(|pool| pool.name.as_str());
            let fix = match config.pools.is_empty() {
                true => format!("add [pool.{pool}] with `addresses = [\"10.9.0.0/24\"]`"),
                false => suggestion(pool, known),
            };
            value.fault::<()>(format!("there is no [pool.{pool}]"), fix);
        }
    }
}

/// Checks that each name in `[log] peers` is that of a table. Users have names of their own, which
/// are not known here.
fn logged_peers(config: &Config, root: &Value<'_>) {
    let known = parties(config).map(|(_, party)| party.name.as_str());
    let known: Vec<_> = known.collect();
    let has_users = config
        .peers
        .iter()
        .any(|peer| peer.user_identities().is_some());
    let Some(value) = root.at(&["log", "peers"]).filter(|_| !has_users) else {
        return;
    };
    for (name, element) in config.log_peers.iter().zip(value.elements()) {
        if !name.contains(['*', '?']) && !known.contains(&name.as_str()) {
            let fix = suggestion(name, known.iter().copied());
            element.fault::<()>(format!("there is no peer `{name}`"), fix);
        }
    }
}

/// Checks that no pool leases the fixed address of a peer.
fn own_addresses(config: &Config, root: &Value<'_>) {
    for peer in config
        .peers
        .iter()
        .filter(|peer| peer.addressing == Addressing::Fixed)
    {
        let pools = config.pools.iter();
        let lent = pools.flat_map(|pool| pool.selectors().into_iter().map(move |all| (pool, all)));
        let mut both = lent.filter(|(_, all)| {
            let mut remote = peer.all_remote();
            remote.any(|remote| remote.intersection(all).is_some())
        });
        if let (Some((pool, all)), Some(value)) =
            (both.next(), root.at(&["peer", &peer.party.name, "remote"]))
        {
            value.fault::<()>(
                format!(
                    "[pool.{}] leases addresses of {all}, and some of them are fixed addresses of this peer",
                    pool.name
                ),
                format!(
                    "remove them from the pool or from `remote`, or write `pool = \"{}\"` instead of `remote`",
                    pool.name
                ),
            );
        }
    }
}

/// Checks that no tunnel covers a home address. Packets for a home address are routed by Mobile IP
/// before any tunnel, so they would leave in clear.
fn mobile_addresses(config: &Config, root: &Value<'_>) {
    let homes = config.mobility.iter().flat_map(Mobility::homes);
    for (home, path) in homes {
        let Some(value) = root.at(&path) else {
            continue;
        };
        let has = |selector: &TrafficSelector| selector.contains(home.into(), 0, None);
        let fixed = |peer: &&Peer| peer.addressing == Addressing::Fixed;
        let mut peers = config.peers.iter().filter(fixed);
        if let Some(peer) = peers.find(|peer| peer.all_remote().any(has)) {
            value.fault::<()>(
                format!(
                    "this home address is in `remote` of [peer.{}], but Mobile IP would route its packets outside that tunnel",
                    peer.party.name
                ),
                "remove the home address from `remote`: packets to it are never tunnelled",
            );
        }
        let mut pools = config.pools.iter();
        if let Some(pool) = pools.find(|pool| pool.selectors().iter().any(has)) {
            value.fault::<()>(
                format!(
                    "[pool.{}] could lease this home address to a peer",
                    pool.name
                ),
                "remove the home address from the pool's `addresses`: it belongs to one host",
            );
        }
        let mut inside = config.tunnel.addresses.iter();
        if inside.any(|address| address.address() == home) {
            value.fault::<()>(
                "this home address is also in `addresses` of [tunnel], which are inner addresses",
                "use another address in one of the two places",
            );
        }
    }
}

/// Refuses the Mobile IP device in `[divert]` except as `wired` of a foreign agent. The device
/// exists only while a visitor is registered.
fn mobile_device(config: &Config, root: &Value<'_>) {
    let divert = config.divert.as_ref();
    let sides = divert.map(|divert| [("wired", &divert.wired), ("wireless", &divert.wireless)]);
    let visited = matches!(config.mobility, Some(Mobility::ForeignAgent(_)));
    for (side, device) in sides.into_iter().flatten() {
        if device == MOBILE_DEVICE
            && !(visited && side == "wired")
            && let Some(value) = root.at(&["divert", side])
        {
            value.fault::<()>(
                format!("`{MOBILE_DEVICE}` is only for `wired` of a foreign agent"),
                "add [foreign_agent] and write it as `wired`, or name another device",
            );
        }
    }
}

/// Checks that each party without a `psk` has keys or certificates on both sides. Values that are
/// present but unusable have their own fault.
fn provable_parties(config: &Config, root: &Value<'_>) {
    let has = |key: &str| root.at(&["node", key]).is_some();
    let has_authority = |table: &Value<'_>| has("ca") || table.at(&["ca"]).is_some();
    for (kind, party) in parties(config) {
        let Some(table) = root.at(&[kind, &party.name]) else {
            continue;
        };
        match (&party.psk, &party.pubkey) {
            (None, None) if !(has("cert") && has_authority(&table)) => table.fault::<()>(
                "`psk` is missing",
                format!(
                    "add `psk = \"{0}.psk\"`, or `pubkey = \"{0}.pub\"`, or `cert`, `key` and `ca` in [node] to use certificates",
                    party.name
                ),
            ),
            (None, Some(_)) if !has("key") => table.fault(
                "`pubkey` requires a private key at both ends, and [node] has none",
                "add `key = \"gw.key\"` to [node]: `strata pki key` makes one",
            ),
            (None | Some(_), _) => None,
        };
    }
    if let Some(key) = root.at(&["node", "key"])
        && !has("cert")
        && parties(config).all(|(_, party)| party.pubkey.is_none())
    {
        key.fault::<()>(
            "`key` has no certificate, and no peer has a `pubkey`",
            "add `cert = \"gw.pem\"`, or a `pubkey` to the peers",
        );
    }
}

/// Checks that names and identities are unique: IKE finds a table by identity, people find it by
/// name.
fn unique_parties(config: &Config, root: &Value<'_>) {
    let mut names = BTreeMap::new();
    let mut identities: BTreeMap<&Identity, Vec<Named<'_>>> = BTreeMap::new();
    let own = Named {
        table: "[node]".to_owned(),
        party: None,
    };
    identities.insert(&config.identity, vec![own]);
    for (kind, party) in parties(config) {
        let table = format!("[{kind}.{}]", party.name);
        if let Some(other) = names.insert(&party.name, kind)
            && let Some(value) = root.at(&[kind, &party.name])
        {
            value.fault::<()>(
                format!("[{other}.{}] has the same name", party.name),
                "give each table its own name: commands identify a table by its name",
            );
        }
        let others = identities.entry(&party.identity).or_default();
        let mut same = others.iter().filter(|other| {
            let other = other.party;
            other.is_none_or(|other| !users::are_told_apart(other, party))
        });
        if let Some(other) = same.next()
            && let Some(value) = root.at(&[kind, &party.name, "id"])
        {
            let fix = match party.wildcard() {
                None => "give each host its own identity: a peer's table is found by it",
                Some(_) => {
                    "write another pattern, or in both tables another `ou`, or a `ca` of another name"
                }
            };
            value.fault::<()>(format!("{} has the same id", other.table), fix);
        }
        let party = Some(party);
        others.push(Named { table, party });
    }
}

/// A table with an identity.
struct Named<'c> {
    table: String,
    /// The party; `None` for ourselves.
    party: Option<&'c Party>,
}

/// Returns all parties with the kind of their table.
pub(crate) fn parties(config: &Config) -> impl Iterator<Item = (&'static str, &Party)> {
    let peers = config.peers.iter().map(|peer| ("peer", &peer.party));
    let licensed = config.licensed.iter().map(|node| ("licensed", &node.party));
    let gateways = config
        .gateways
        .iter()
        .map(|gateway| ("gateway", &gateway.party));
    let adjacent = config
        .adjacent
        .iter()
        .map(|neighbour| ("neighbour", &neighbour.party));
    peers.chain(licensed).chain(gateways).chain(adjacent)
}

/// Returns warnings about settings that are legal but may be unintended.
pub(crate) fn warnings(config: &Config) -> Vec<Warning> {
    let mut warnings = licences(config);
    warnings.extend(domain::unused_places(config));
    warnings.extend(config.peers.iter().filter_map(unencrypted::warning));
    warnings.extend(config.peers.iter().flat_map(in_clear));
    warnings.extend(config.peers.iter().flat_map(shared));
    warnings.extend(credential::refused(config));
    warnings.extend(revoked(config));
    warnings.extend(config.peers.iter().flat_map(one_family));
    warnings.extend(overlaps(&config.peers));
    warnings.extend(waiting_threads(config));
    warnings.extend(name_servers(config));
    warnings.extend(idle_discards(config));
    warnings.extend(idle_pools(config));
    warnings.extend(counted_tickets(config));
    let exposed = config.metrics.as_ref().and_then(MetricsAddress::exposed);
    warnings.extend(exposed.map(|address| Warning::MetricsExposed { address }));
    warnings.extend(unreachable_subnets(config));
    warnings.extend(config.mobility.iter().flat_map(weak_secrets));
    warnings.extend(unseen_visitors(config));
    warnings.extend(config.mobility.as_ref().and_then(anybody_visits));
    warnings.extend(config.mobility.as_ref().and_then(shared_homes));
    warnings.extend(config.mobility.as_ref().and_then(unproved_nat));
    if config.divert.is_none() && !config.gateways.is_empty() {
        warnings.push(Warning::NothingDiverted);
    }
    warnings
}

/// Warns of weak secrets: an eavesdropper on a registration can try keys offline.
fn weak_secrets(mobility: &Mobility) -> Vec<Warning> {
    let all = mobility.associations().into_iter();
    let weak = all.filter_map(|(table, key)| {
        let why = weakness(key.secret.expose())?;
        Some(Warning::WeakSecret { table, why })
    });
    weak.collect()
}

/// Warns if `[divert]` misses visitors' packets: on every other device they are inside the Mobile
/// IP tunnel.
fn unseen_visitors(config: &Config) -> Option<Warning> {
    let Some(Mobility::ForeignAgent(agent)) = &config.mobility else {
        return None;
    };
    let divert = config.divert.as_ref()?;
    let seen = divert.wired == MOBILE_DEVICE && divert.wireless == agent.interface;
    (!seen).then(|| Warning::VisitorsNotDiverted {
        interface: agent.interface.clone(),
    })
}

/// Warns of a foreign agent that limits neither the home agents nor the home networks of visitors.
fn anybody_visits(mobility: &Mobility) -> Option<Warning> {
    let Mobility::ForeignAgent(agent) = mobility else {
        return None;
    };
    let is_anybodys = agent.home_agents.is_empty() && agent.homes.is_empty();
    is_anybodys.then(|| Warning::AnybodyVisits {
        interface: agent.interface.clone(),
    })
}

/// Warns of home agents that can register each other's mobile nodes.
fn shared_homes(mobility: &Mobility) -> Option<Warning> {
    let Mobility::ForeignAgent(agent) = mobility else {
        return None;
    };
    let all = agent.home_agents.iter();
    let mut open = all.filter(|home| home.homes.is_empty());
    let first = open.next()?.agent.name.clone();
    let second = open.next()?.agent.name.clone();
    Some(Warning::SharedHomes { first, second })
}

/// Warns if agents should tunnel in UDP but have no key: only a key authenticates the request for
/// it.
fn unproved_nat(mobility: &Mobility) -> Option<Warning> {
    let (nat, is_keyed, table) = match mobility {
        Mobility::MobileNode(_) => return None,
        Mobility::ForeignAgent(agent) => {
            let mut others = agent.home_agents.iter();
            let is_keyed = others.any(|other| other.agent.key.is_some());
            (agent.nat, is_keyed, "foreign_agent.home")
        }
        Mobility::HomeAgent(agent) => {
            let is_keyed = agent.foreign.iter().any(|other| other.key.is_some());
            (agent.nat, is_keyed, "home_agent.foreign")
        }
    };
    let is_unproved = nat != Nat::Never && !is_keyed;
    is_unproved.then_some(Warning::NatWithoutKey { table })
}

fn in_clear(peer: &Peer) -> impl Iterator<Item = Warning> + '_ {
    let zones = peer.layout().filter(|(_, suite)| !suite.encrypts());
    zones.map(|(zone, _)| Warning::ZoneInClear {
        peer: peer.party.name.clone(),
        zone: zone.to_string(),
    })
}

fn waiting_threads(config: &Config) -> impl Iterator<Item = Warning> + '_ {
    let workers = config.tunnel.workers.get();
    config.peers.iter().filter_map(move |peer| {
        Some(Warning::ThreadsWait {
            peer: peer.party.name.clone(),
            resources: peer.resources.filter(|resources| *resources < workers)?,
            workers,
        })
    })
}

fn shared(peer: &Peer) -> impl Iterator<Item = Warning> + '_ {
    let groups = peer.zones.groups().into_iter();
    let pairs = groups.filter_map(|group| match &group[..] {
        [one, other, ..] => Some((ZoneId::DESIGNATED, [&one.node, &other.node])),
        _ => None,
    });
    let sharing = licence::sharing(peer).into_iter().chain(pairs);
    sharing.map(|(zone, [one, other])| Warning::KeyShared {
        peer: peer.party.name.clone(),
        zone: peer.zones.name(zone),
        one: one.clone(),
        other: other.clone(),
    })
}

fn licences(config: &Config) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut named = BTreeSet::new();
    for peer in &config.peers {
        let name = &peer.party.name;
        let nodes: BTreeSet<_> = peer.zones.all_licences().map(|l| &l.node).collect();
        let licences = peer.zones.all_licences();
        let opened = licences.filter(|licence| peer.zones.opens_payload(licence));
        warnings.extend(opened.map(|licence| Warning::PayloadLicensed {
            peer: name.clone(),
            node: licence.node.clone(),
        }));
        let everywhere = live_paths::on_every_path(peer).into_iter();
        warnings.extend(everywhere.map(|node| Warning::LicenceOnEveryPath {
            peer: name.clone(),
            node: node.clone(),
        }));
        let exposed = nodes.iter().filter(|_| peer.ppk.is_some());
        warnings.extend(exposed.map(|&node| Warning::LicenceWithoutPpk {
            peer: name.clone(),
            node: node.clone(),
        }));
        let weaker = config.licensed.iter().filter(|node| {
            let identity = &node.party.identity;
            let licensed = nodes.iter().any(|one| domain::includes(one, identity));
            licensed && peer.party.wants_kem() && !node.party.wants_kem()
        });
        warnings.extend(weaker.map(|node| Warning::LicenceWithoutKem {
            peer: name.clone(),
            node: node.party.name.clone(),
        }));
        // The endpoint that accepts the tunnel distributes the keys.
        let unknown = nodes.iter().filter(|&&node| {
            let mut tables = config.licensed.iter();
            let known = tables.any(|table| domain::includes(node, &table.party.identity));
            peer.address.is_none() && !known
        });
        warnings.extend(unknown.map(|&node| Warning::NodeWithoutTable {
            peer: name.clone(),
            node: node.clone(),
        }));
        named.extend(nodes);
    }
    let idle = config.licensed.iter().filter(|node| {
        let mut named = named.iter();
        !named.any(|licensed| domain::includes(licensed, &node.party.identity))
    });
    warnings.extend(idle.map(|node| Warning::NodeWithoutLicence {
        name: node.party.name.clone(),
        node: node.party.identity.clone(),
    }));
    warnings
}

/// Warns of our own certificates that our own revocation lists name.
fn revoked(config: &Config) -> impl Iterator<Item = Warning> {
    config.certificates().filter_map(|certificate| {
        let mut lists = config.lists.iter();
        let since = lists.find_map(|list| list.revokes(certificate))?;
        let subject = certificate.subject.clone();
        Some(Warning::Revoked { subject, since })
    })
}

fn one_family(peer: &Peer) -> impl Iterator<Item = Warning> {
    let lonely = |ours: &[TrafficSelector], theirs: &[TrafficSelector]| -> Vec<TrafficSelector> {
        let alone = |selector: &&TrafficSelector| {
            theirs
                .iter()
                .all(|other| other.first.is_ipv4() != selector.first.is_ipv4())
        };
        ours.iter().filter(alone).cloned().collect()
    };
    let mut all = lonely(&peer.local, &peer.remote);
    all.extend(lonely(&peer.remote, &peer.local));
    all.into_iter().map(|selector| Warning::OneFamily {
        peer: peer.party.name.clone(),
        prefix: selector.to_string(),
    })
}

fn name_servers(config: &Config) -> impl Iterator<Item = Warning> {
    let remote = || config.peers.iter().flat_map(Peer::all_remote);
    let outside =
        move |server: &&IpAddr| !remote().any(|remote| remote.contains(**server, 0, None));
    let servers = config.tunnel.dns.iter().filter(outside);
    servers.map(|&server| Warning::NameServerOutside { server })
}

/// Warns of discards without effect: discards apply in the tunnel, which gets only packets that
/// peers claim.
fn idle_discards(config: &Config) -> impl Iterator<Item = Warning> {
    let remote = || config.peers.iter().flat_map(Peer::all_remote);
    let discards = config.policies.iter();
    let discards = discards.filter(|policy| policy.action == Action::Discard);
    let idle = discards
        .filter(move |policy| remote().all(|remote| remote.intersection(&policy.remote).is_none()));
    idle.map(|policy| Warning::DiscardOutside {
        packets: policy.remote.to_string(),
    })
}

fn idle_pools(config: &Config) -> impl Iterator<Item = Warning> {
    let used = |pool: &&Pool| {
        let mut peers = config.peers.iter();
        !peers.any(|peer| peer.addressing == Addressing::Lent(pool.name.clone()))
    };
    let idle = config.pools.iter().filter(used);
    idle.map(|pool| Warning::PoolWithoutPeer {
        name: pool.name.clone(),
    })
}

/// Warns of tickets by value whose limits only a store can count.
fn counted_tickets(config: &Config) -> Option<Warning> {
    let sessions = &config.sessions;
    let counted = sessions.established.is_some() || sessions.data.is_some();
    (sessions.tickets_by_value && counted).then_some(Warning::TicketsByReference)
}

/// Warns of announced subnets that the peer cannot reach because its tunnel does not carry them.
fn unreachable_subnets(config: &Config) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for peer in &config.peers {
        let subnets = config.pool(peer).into_iter().flat_map(|pool| &pool.subnets);
        let carried = |subnet: &TrafficSelector| {
            let mut local = peer.all_local();
            local.any(|local| local.intersection(subnet).as_ref() == Some(subnet))
        };
        let outside = subnets.filter(|subnet| !carried(&subnet.selector()));
        warnings.extend(outside.map(|subnet| Warning::SubnetOutside {
            peer: peer.party.name.clone(),
            subnet: subnet.to_string(),
        }));
    }
    warnings
}

/// Finds destinations that two peers claim. A gateway may have a hundred thousand peers: with
/// selectors sorted by first address, each is compared only with those that reach that far, and the
/// peers of a pool, which never leases them the same address, count as the first of them.
fn overlaps(peers: &[Peer]) -> Vec<Warning> {
    let mut first_of_pool = BTreeMap::new();
    let mut claims = HashSet::new();
    for (place, peer) in peers.iter().enumerate() {
        let place = match peer.pool() {
            Some(pool) => *first_of_pool.entry(pool).or_insert(place),
            None => place,
        };
        claims.extend(peer.all_remote().map(|remote| (remote, place)));
    }
    let mut claims: Vec<_> = claims.into_iter().collect();
    claims.sort_by_key(|(remote, place)| (remote.first, *place));
    let mut reaching: Vec<(&TrafficSelector, usize)> = Vec::new();
    let mut found = Vec::new();
    for (selector, place) in claims {
        reaching.retain(|(other, _)| other.last >= selector.first);
        for &(other, beside) in &reaching {
            let (first, second) = (place.min(beside), place.max(beside));
            if let Some(common) = selector.intersection(other)
                && first != second
            {
                let narrower = match selector.breadth().cmp(&other.breadth()) {
                    Ordering::Less => Some(place),
                    Ordering::Greater => Some(beside),
                    Ordering::Equal => None,
                };
                found.push((second, first, common.to_string(), narrower));
            }
        }
        reaching.push((selector, place));
    }
    found.sort_unstable();
    let name = |place: usize| peers[place].party.name.clone();
    let warnings = found.into_iter().map(|(second, first, prefix, narrower)| {
        let taken = match narrower {
            Some(place) => format!("{}, which claims less", name(place)),
            None => "the one that was up first".to_owned(),
        };
        Warning::Overlap {
            first: name(first),
            second: name(second),
            prefix,
            taken,
        }
    });
    warnings.collect()
}
