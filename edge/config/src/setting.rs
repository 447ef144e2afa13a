//! Every key with its value, and the effect of a change.
//!
//! Each struct of the configuration is destructured here field by field, so a new key does not
//! compile until its effect under a running daemon is stated.

mod mobility;

use crate::value::NO_KEM;
use crate::{
    Action, Addressing, Aead, Audit, Child, Config, Divert, Gateway, LevelPolicy, Licensed, Listen,
    Neighbour, Party, PathMtu, Peer, Policy, Pool, Ppk, Psk, Redirect, Routing, Slot, Snoop,
    StandIn, Start, Tunnel, When, ZonePolicy,
};
use crate::{Credential, Leak, Level, Stance, Tcp};
use crypto::{Certificate, PublicKey, Revocation, RevocationList, sha256};
use model::{Identity, Kem, Licence, MapKind, Run, TrafficSelector, ZoneSelector, ZoneSuite};
use std::fmt::Display;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

/// The action that makes a new value effective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// None: the value applies at once.
    Applied,
    /// The affected SAs are rekeyed without interruption.
    Rekeyed,
    /// The affected SAs are closed and established again.
    Anew,
    /// The daemon must be restarted.
    Restart,
}

/// A table of the file, or the defaults of a table that was left out.
pub(crate) struct Section {
    /// Dotted name of the table.
    pub name: String,
    /// The effect of adding or removing the table, if it is added or removed as a whole.
    pub whole: Option<Effect>,
    pub settings: Vec<Setting>,
}

/// One key.
pub(crate) struct Setting {
    /// Name of the key below its table; empty if the table itself is the setting.
    pub key: String,
    pub value: Value,
    pub effect: Effect,
}

/// The comparable value of a setting.
#[derive(PartialEq, Eq)]
pub(crate) enum Value {
    Shown(String),
    /// A pre-shared key. Never displayed.
    Psk(Option<Psk>),
    /// A private key, compared by its public key. Never displayed.
    Key(Option<PublicKey>),
}

/// Returns every setting of a configuration, including defaults.
pub(crate) fn sections(config: &Config) -> Vec<Section> {
    let Config {
        identity,
        credential,
        authorities,
        lists,
        revocation,
        aead,
        tunnel,
        socket,
        listen,
        peers,
        pools,
        store,
        licensed,
        gateways,
        adjacent,
        policies,
        redirect,
        divert,
        snoop,
        regulate,
        stand_in,
        neighbours,
        mobility,
        log,
        audit,
        warnings: _,
        places: _,
    } = config;
    let mut sections = vec![
        fixed(
            "node",
            node(
                identity,
                credential.as_ref(),
                authorities,
                lists,
                *revocation,
                *aead,
            ),
        ),
        fixed("tunnel", self::tunnel(tunnel)),
        fixed("listen", self::listen(listen)),
        fixed("control", vec![restart("socket", socket.display())]),
        fixed("log", vec![applied("level", level(*log))]),
        fixed("audit", self::audit(audit.as_ref())),
    ];
    sections.push(fixed("store", vec![restart("file", store.display())]));
    for peer in peers {
        sections.push(self::peer(peer));
        sections.extend(peer.children.iter().map(|child| self::child(peer, child)));
    }
    sections.extend(pools.iter().map(pool));
    sections.extend(licensed.iter().map(self::licensed));
    sections.extend(gateways.iter().map(gateway));
    sections.extend(adjacent.iter().map(neighbour));
    sections.extend(policies.iter().enumerate().map(policy));
    sections.push(fixed("redirect", self::redirect(*redirect)));
    sections.extend(divert.iter().map(self::divert));
    let snoop = snoop.clone().unwrap_or_default();
    sections.push(fixed("snoop", self::snoop(&snoop)));
    let window = regulate.map_or_else(|| "none".to_owned(), |window| size(window.into()));
    sections.push(fixed("regulate", vec![applied("window", window)]));
    sections.push(fixed("stand_in", self::stand_in(stand_in.as_ref())));
    let neighbours = applied("neighbours", list(neighbours));
    sections.push(fixed("handover", vec![neighbours]));
    sections.extend(mobility.iter().flat_map(mobility::sections));
    sections
}

/// Returns the settings of `[node]`. Peers were authenticated when an SA was established, so
/// another certificate does not end it. A revocation list that revokes the peer's certificate does,
/// and the SA is not established again.
fn node(
    identity: &Identity,
    credential: Option<&Credential>,
    authorities: &[Certificate],
    lists: &[RevocationList],
    revocation: Revocation,
    aead: Aead,
) -> Vec<Setting> {
    let chain = credential.map_or(&[][..], |credential| &credential.chain);
    let key = credential.map(|credential| credential.key.public().clone());
    vec![
        anew("id", identity),
        applied("cert", list(chain.iter().map(certificate))),
        Setting {
            key: "key".to_owned(),
            value: Value::Key(key),
            effect: Effect::Applied,
        },
        applied("ca", list(authorities.iter().map(certificate))),
        applied("crl", list(lists.iter().map(revocation_list))),
        applied(
            "revocation",
            match revocation {
                Revocation::Relaxed => "relaxed",
                Revocation::Strict => "strict",
            },
        ),
        restart("aead", aead.word()),
    ]
}

fn tunnel(tunnel: &Tunnel) -> Vec<Setting> {
    let Tunnel {
        name,
        mtu,
        clamp,
        path_mtu,
        offload,
        workers,
        addresses,
        dns,
        resolver,
    } = tunnel;
    vec![
        restart("name", name),
        restart("mtu", mtu),
        applied("clamp", clamp),
        applied(
            "path_mtu",
            match path_mtu {
                PathMtu::Off => "off",
                PathMtu::Icmp => "icmp",
            },
        ),
        restart("offload", offload.word()),
        restart("workers", workers),
        restart("addresses", list(addresses)),
        applied("dns", list(dns)),
        restart("resolver", file(resolver.as_deref())),
    ]
}

fn listen(listen: &Listen) -> Vec<Setting> {
    let Listen {
        addresses,
        ike,
        nat,
        encapsulation,
        tcp,
        fragment,
    } = listen;
    vec![
        restart("addresses", list(addresses)),
        restart("ike", ike),
        restart("nat", nat),
        restart("encapsulation", encapsulation.name()),
        restart(
            "tcp",
            tcp.map_or_else(|| "none".to_owned(), |port| port.to_string()),
        ),
        applied("fragment", fragment),
    ]
}

fn peer(peer: &Peer) -> Section {
    let Peer {
        party,
        address,
        local,
        remote,
        mode,
        addressing,
        dns_from_peer,
        routes,
        start,
        leak,
        rekey,
        pfs,
        mobike,
        clones,
        resources,
        esn,
        forbids_nat,
        redirects,
        tcp,
        tcp_port,
        dscp,
        tfc,
        cover,
        ppk,
        zones,
        levels,
        children: _,
    } = peer;
    let ZonePolicy {
        stance,
        layout,
        map,
        licences,
        slots,
        handover,
        holders,
        shared,
    } = zones;
    let mut settings = self::party(party);
    settings.extend([
        anew("address", any(*address)),
        anew(
            "local",
            match addressing {
                Addressing::Requested => "[dynamic]".to_owned(),
                Addressing::Fixed | Addressing::Lent(_) => list(local),
            },
        ),
        anew("remote", remote_of(remote, addressing)),
        anew("mode", mode),
        anew("pool", pool_of(addressing)),
        applied("dns", if *dns_from_peer { "from-peer" } else { "none" }),
        applied("routes", routing(*routes)),
        applied("start", self::start(*start)),
        applied("leak", self::leak(*leak)),
        applied("rekey", time(*rekey)),
        applied("pfs", pfs),
        anew("mobike", if *mobike { "on" } else { "off" }),
        anew("clone", clones),
        anew(
            "resources",
            resources.map_or_else(|| "as workers".to_owned(), |count| count.to_string()),
        ),
        anew("esn", esn),
        anew("nat", if *forbids_nat { "forbidden" } else { "allowed" }),
        applied("redirect", list(redirects)),
        anew("tcp", self::tcp(*tcp)),
        anew("tcp_port", tcp_port),
        applied("dscp", dscp),
        applied("tfc", tfc),
        applied(
            "cover",
            cover.map_or_else(|| "none".to_owned(), |rate| rate.to_string()),
        ),
        anew(
            "ppk",
            ppk.as_ref().map_or_else(|| "none".to_owned(), self::ppk),
        ),
        secret("ppk.key", ppk.as_ref().map(|ppk| &ppk.key)),
        anew("zones", self::stance(*stance)),
        anew("layout", list(layout.iter().map(zone))),
        anew("map", self::map(map, zones)),
        rekeyed(
            "licences",
            list(
                licences
                    .iter()
                    .map(|licence| self::licence(licence, zones))
                    .chain(slots.iter().flat_map(|slot| slot_licences(slot, zones))),
            ),
        ),
        applied("handover", handover.name()),
        applied(
            "holders",
            holders.map_or_else(|| "none".to_owned(), |most| most.to_string()),
        ),
        applied("shared", shared),
    ]);
    let LevelPolicy {
        integrity,
        every,
        opaque_below,
    } = levels;
    settings.extend([
        anew(
            "level.integrity",
            integrity.map_or_else(|| "none".to_owned(), |grant| grant.to_string()),
        ),
        applied("level.every", every),
        applied(
            "level.opaque_below",
            match opaque_below {
                0 => "never".to_owned(),
                share => format!("{}.{:02}%", share / 100, share % 100),
            },
        ),
    ]);
    named("peer", party, settings)
}

/// Returns the settings of a child's table. A child is added, removed and re-established on its
/// own.
fn child(peer: &Peer, child: &Child) -> Section {
    let Child {
        name,
        local,
        remote,
        mode,
        start,
        rekey,
        pfs,
    } = child;
    // The child does not choose addresses that one end leases to the other.
    let own = |theirs: bool, selectors: &[TrafficSelector]| match (&peer.addressing, theirs) {
        (Addressing::Requested, false) | (Addressing::Lent(_), true) => "[dynamic]".to_owned(),
        _ => list(selectors),
    };
    Section {
        name: format!("peer.{}.child.{name}", peer.party.name),
        whole: Some(Effect::Applied),
        settings: vec![
            anew("local", own(false, local)),
            anew("remote", own(true, remote)),
            anew("mode", mode),
            applied("start", self::start(*start)),
            applied("rekey", time(*rekey)),
            applied("pfs", pfs),
        ],
    }
}

const fn tcp(tcp: Tcp) -> &'static str {
    match tcp {
        Tcp::Off => "off",
        Tcp::Fallback => "fallback",
        Tcp::Always => "always",
    }
}

/// Formats `remote`. With a pool, the pool has the addresses, so the pool is what changes.
fn remote_of(remote: &[TrafficSelector], addressing: &Addressing) -> String {
    match addressing {
        Addressing::Lent(_) => "[dynamic]".to_owned(),
        Addressing::Fixed | Addressing::Requested => list(remote),
    }
}

const fn pool_of(addressing: &Addressing) -> &str {
    match addressing {
        Addressing::Lent(name) => name.as_str(),
        Addressing::Fixed | Addressing::Requested => "none",
    }
}

/// Returns the settings of a pool. A peer learns all of them when its address is assigned, so a
/// change re-establishes its SA.
fn pool(pool: &Pool) -> Section {
    let Pool {
        name,
        addresses,
        dns,
        subnets,
        lease,
    } = pool;
    Section {
        name: format!("pool.{name}"),
        whole: Some(Effect::Applied),
        settings: vec![
            anew("addresses", list(addresses)),
            anew("dns", list(dns)),
            anew("subnets", list(subnets)),
            anew("lease", time(*lease)),
        ],
    }
}

fn licensed(licensed: &Licensed) -> Section {
    let Licensed { party, address } = licensed;
    let mut settings = self::party(party);
    settings.push(anew("address", address));
    named("licensed", party, settings)
}

fn gateway(gateway: &Gateway) -> Section {
    let Gateway { party, address } = gateway;
    let mut settings = self::party(party);
    settings.push(anew("address", any(*address)));
    named("gateway", party, settings)
}

fn neighbour(neighbour: &Neighbour) -> Section {
    let Neighbour { party, address } = neighbour;
    let mut settings = self::party(party);
    settings.push(anew("address", any(*address)));
    named("neighbour", party, settings)
}

fn party(party: &Party) -> Vec<Setting> {
    let Party {
        name: _,
        identity,
        psk,
        pubkey,
        suites,
        groups,
        kems,
        liveness,
        ike_rekey,
        reauth,
        window,
    } = party;
    vec![
        anew("id", identity),
        secret("psk", psk.as_ref()),
        anew(
            "pubkey",
            pubkey
                .as_ref()
                .map_or_else(|| "none".to_owned(), ToString::to_string),
        ),
        anew("suite", list(suites)),
        anew("groups", list(groups)),
        anew(
            "kem",
            list(kems.iter().map(|kem| kem.map_or(NO_KEM, Kem::name))),
        ),
        applied("liveness", time(*liveness)),
        applied("ike_rekey", time(*ike_rekey)),
        applied("reauth", reauth.map_or_else(|| "never".to_owned(), time)),
        applied("window", window),
    ]
}

fn policy((index, policy): (usize, &Policy)) -> Section {
    let Policy { action, remote } = policy;
    let action = match action {
        Action::Bypass => "bypass",
        Action::Discard => "discard",
    };
    Section {
        name: format!("policy[{index}]"),
        whole: Some(Effect::Applied),
        settings: vec![applied("", format!("{action} {remote}"))],
    }
}

/// Returns the settings of `[redirect]`. A redirect is decided when a peer initiates.
fn redirect(redirect: Option<Redirect>) -> Vec<Setting> {
    let (to, when) = redirect.map(|Redirect { to, when }| (to, when)).unzip();
    let when = match when {
        Some(When::Init) => "init",
        Some(When::Auth) | None => "auth",
    };
    let to = to.map_or_else(|| "none".to_owned(), |to| to.to_string());
    vec![applied("to", to), applied("when", when)]
}

fn audit(audit: Option<&Audit>) -> Vec<Setting> {
    let place = audit.map(|Audit { file, .. }| file.as_path());
    let required = audit.is_some_and(|Audit { required, .. }| *required);
    vec![applied("file", file(place)), applied("required", required)]
}

fn divert(divert: &Divert) -> Section {
    let Divert {
        wired,
        wireless,
        clear_tcp,
        offload,
    } = divert;
    Section {
        name: "divert".to_owned(),
        whole: Some(Effect::Restart),
        settings: vec![
            restart("wired", wired),
            restart("wireless", wireless),
            restart("clear_tcp", clear_tcp),
            restart("offload", offload.word()),
        ],
    }
}

fn stand_in(stand_in: Option<&StandIn>) -> Vec<Setting> {
    let or_never = |time: fn(&StandIn) -> Duration| match stand_in {
        Some(stand_in) => self::time(time(stand_in)),
        None => "never".to_owned(),
    };
    vec![
        applied("after", or_never(|stand_in| stand_in.after)),
        applied("limit", or_never(|stand_in| stand_in.limit)),
    ]
}

fn snoop(snoop: &Snoop) -> Vec<Setting> {
    let Snoop {
        enabled,
        flows,
        packets,
        octets,
    } = snoop;
    vec![
        applied("enabled", enabled),
        applied("flows", flows),
        applied("packets", packets),
        applied("octets", size(*octets)),
    ]
}

/// Returns a section that always exists, possibly with its defaults.
fn fixed(name: &str, settings: Vec<Setting>) -> Section {
    Section {
        name: name.to_owned(),
        whole: None,
        settings,
    }
}

fn named(kind: &str, party: &Party, settings: Vec<Setting>) -> Section {
    Section {
        name: format!("{kind}.{}", party.name),
        whole: Some(Effect::Applied),
        settings,
    }
}

fn setting(key: &str, value: impl Display, effect: Effect) -> Setting {
    Setting {
        key: key.to_owned(),
        value: Value::Shown(value.to_string()),
        effect,
    }
}

fn applied(key: &str, value: impl Display) -> Setting {
    setting(key, value, Effect::Applied)
}

fn anew(key: &str, value: impl Display) -> Setting {
    setting(key, value, Effect::Anew)
}

fn rekeyed(key: &str, value: impl Display) -> Setting {
    setting(key, value, Effect::Rekeyed)
}

fn restart(key: &str, value: impl Display) -> Setting {
    setting(key, value, Effect::Restart)
}

fn secret(key: &str, value: Option<&Psk>) -> Setting {
    Setting {
        key: key.to_owned(),
        value: Value::Psk(value.cloned()),
        effect: Effect::Anew,
    }
}

fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<_> = items.into_iter().map(|item| item.to_string()).collect();
    format!("[{}]", items.join(", "))
}

fn file(path: Option<&Path>) -> String {
    path.map_or_else(|| "none".to_owned(), |path| path.display().to_string())
}

fn any(address: Option<IpAddr>) -> String {
    address.map_or_else(|| "any".to_owned(), |address| address.to_string())
}

/// Formats a certificate. The start of the fingerprint distinguishes a renewed certificate in any
/// case.
fn certificate(certificate: &Certificate) -> String {
    let Certificate {
        subject, not_after, ..
    } = certificate;
    let fingerprint = fingerprint(&certificate.der);
    format!("{subject} until {not_after} ({fingerprint})")
}

/// Formats a revocation list: its issuer, and the period in which it is the newest.
fn revocation_list(list: &RevocationList) -> String {
    let RevocationList {
        der,
        issuer,
        this_update,
        next_update,
        ..
    } = list;
    let fingerprint = fingerprint(der);
    format!("{issuer} of {this_update} until {next_update} ({fingerprint})")
}

fn fingerprint(der: &[u8]) -> String {
    let [a, b, c, d, ..] = sha256(&[der]);
    format!("{a:02x}{b:02x}{c:02x}{d:02x}")
}

fn ppk(ppk: &Ppk) -> String {
    let Ppk {
        id,
        key: _,
        required,
    } = ppk;
    let required = if *required { "required" } else { "optional" };
    format!("{id} {required}")
}

fn zone((selector, suite): &(ZoneSelector, Option<ZoneSuite>)) -> String {
    match suite {
        Some(suite) => format!("{selector} with {suite}"),
        None => selector.to_string(),
    }
}

fn map(map: &MapKind, zones: &ZonePolicy) -> String {
    match map {
        MapKind::Changeable => "changeable".to_owned(),
        MapKind::Fixed(runs) => {
            let run = |run: &Run| format!("{} {}", run.len, zones.name(run.zone));
            list(runs.iter().map(run))
        }
    }
}

fn licence(licence: &Licence, zones: &ZonePolicy) -> String {
    let Licence { node, zone, right } = licence;
    let zone = zones.name(*zone);
    format!("{node} {} {zone}", right.name())
}

/// Formats the licences that apply at the place of one node.
fn slot_licences(slot: &Slot, zones: &ZonePolicy) -> Vec<String> {
    let Slot {
        node: _,
        at,
        licences,
    } = slot;
    let licences = licences.iter();
    let there =
        licences.map(|licence| format!("{} at {}", self::licence(licence, zones), list(at)));
    there.collect()
}

const fn routing(routing: Routing) -> &'static str {
    match routing {
        Routing::Remote => "remote",
        Routing::Subnets => "subnets",
    }
}

const fn start(start: Start) -> &'static str {
    match start {
        Start::Auto => "auto",
        Start::Manual => "manual",
    }
}

const fn leak(leak: Leak) -> &'static str {
    match leak {
        Leak::Never => "never",
        Leak::Stopped => "stopped",
    }
}

const fn stance(stance: Stance) -> &'static str {
    match stance {
        Stance::Accept => "accept",
        Stance::Require => "require",
        Stance::Refuse => "refuse",
    }
}

fn level(level: Level) -> String {
    level.to_string()
}

/// Formats a duration in the syntax of the file.
pub(crate) fn time(duration: Duration) -> String {
    match duration.subsec_millis() {
        0 => format!("{}s", duration.as_secs()),
        _ => format!("{}ms", duration.as_millis()),
    }
}

/// Formats a number of octets in the syntax of the file.
pub(crate) fn size(octets: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.iter().find(|(unit, _)| octets.is_multiple_of(*unit));
    unit.map_or_else(
        || format!("{octets}B"),
        |(unit, name)| format!("{}{name}", octets / unit),
    )
}
