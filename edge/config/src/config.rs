//! The whole file.

use crate::credential::Credential;
use crate::duplicate;
use crate::fault::Context;
use crate::keys::{
    AUDIT, CONTROL, HANDOVER, LOG, METRICS, NODE, REDIRECT, REGULATE, SESSIONS, SNOOP, STAND_IN,
    STORE, TUNNEL,
};
use crate::peer::Common;
use crate::reader::{Table, Value};
use crate::{
    Aead, Audit, DEFAULT_STORE, Divert, Error, Gateway, Licensed, Listen, MetricsAddress, Mobility,
    Neighbour, Peer, Places, Policy, Pool, Redirect, Sessions, Snoop, StandIn, Tunnel, Warning,
    check,
};
use crypto::{Certificate, Revocation, RevocationList};
use model::Identity;
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// Default path of the configuration.
pub const DEFAULT_FILE: &str = "/etc/strata/strata.toml";
/// Default path of the daemon's API socket.
pub const DEFAULT_SOCKET: &str = "/run/strata/strata.sock";

/// Longest path of a unix socket (`sun_path` without its final zero).
const LONGEST_SOCKET_PATH: usize = 107;

/// A configuration without faults.
#[derive(Clone, Debug)]
pub struct Config {
    /// `[node] id`: the identity of this node, the same towards every party.
    pub identity: Identity,
    /// `[node] key` and `cert`: the credential with which this node authenticates to peers without
    /// a `psk`.
    pub credential: Option<Credential>,
    /// `[node] ca`: the CAs whose certificates this node trusts.
    pub authorities: Vec<Certificate>,
    /// `[node] crl`: the revocation lists of CAs.
    pub lists: Vec<RevocationList>,
    /// `[node] revocation`: the revocation status that a certificate needs. Default `relaxed`.
    pub revocation: Revocation,
    /// `[node] aead`: the implementation of AES-GCM that protects packets. Default `aws-lc`.
    pub aead: Aead,
    /// `[tunnel]`.
    pub tunnel: Tunnel,
    /// `[control] socket`: the daemon's API. Default [`DEFAULT_SOCKET`].
    pub socket: PathBuf,
    /// `[control] group`: the group whose members may send requests that change nothing. Default
    /// none.
    pub readers: Option<String>,
    /// `[metrics] listen`: the address at which Prometheus reads counters. Default none.
    pub metrics: Option<MetricsAddress>,
    /// `[listen]`.
    pub listen: Listen,
    /// `[peer.NAME]`, sorted by name.
    pub peers: Vec<Peer>,
    /// `[pool.NAME]`, sorted by name.
    pub pools: Vec<Pool>,
    /// `[store] file`: the file that keeps the leases of pools. Default [`DEFAULT_STORE`].
    pub store: PathBuf,
    /// `[sessions]`.
    pub sessions: Sessions,
    /// `[licensed.NAME]`, sorted by name.
    pub licensed: Vec<Licensed>,
    /// `[gateway.NAME]`, sorted by name.
    pub gateways: Vec<Gateway>,
    /// `[neighbour.NAME]`, sorted by name.
    pub adjacent: Vec<Neighbour>,
    /// `[[policy]]`, in the file's order: the first match wins.
    pub policies: Vec<Policy>,
    /// `[redirect]`. Default: peers are not redirected.
    pub redirect: Option<Redirect>,
    /// `[divert]`.
    pub divert: Option<Divert>,
    /// `[snoop]`; only with `[divert]`. [`Snoop::default`] applies if the table is left out.
    pub snoop: Option<Snoop>,
    /// `[regulate] window`: upper limit on TCP windows where licences allow lowering them, in
    /// octets, 16 KiB to 1 GiB. Default no limit. Only with `[divert]`.
    pub regulate: Option<u32>,
    /// `[stand_in]`. Default: this node never stands in for a mobile node. Only with `[divert]`.
    pub stand_in: Option<StandIn>,
    /// `[handover] neighbours`: the licensed nodes to which mobile nodes may move from this one.
    /// Default none.
    pub neighbours: Vec<Identity>,
    /// `[mobile_node]`, `[foreign_agent]` or `[home_agent]`. Default: no Mobile IP.
    pub mobility: Option<Mobility>,
    /// `[log] level`: default `info`.
    pub log: LogLevel,
    /// `[log] peers`: names, or patterns with `*` and `?`, of the peers that lines of `debug` and
    /// `trace` are about. Empty by default: all peers, and unknown hosts.
    pub log_peers: Vec<String>,
    /// `[audit]`: default none.
    pub audit: Option<Audit>,
    /// Settings that are legal but may be unintended.
    pub warnings: Vec<Warning>,
    /// The lines of the file at which its keys stand.
    pub places: Places,
}

/// The threshold of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// `error`: failures that stop the daemon from doing its work.
    Error,
    /// `warn`: also events that need a person's attention.
    Warn,
    /// `info`: also changes of peers, SAs and grants.
    Info,
    /// `debug`: also each IKE message.
    Debug,
    /// `trace`: also each dropped IKE message and ESP packet.
    Trace,
}

impl LogLevel {
    pub(crate) const WORDS: [(&str, Self); 5] = [
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
        ("trace", Self::Trace),
    ];
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Self::WORDS.iter();
        let word = words.find(|(_, level)| level == self);
        f.write_str(word.map_or("", |(word, _)| word))
    }
}

/// Reads a configuration and the key files that it names, relative to the configuration's folder.
pub fn load(file: &Path) -> Result<Config, Error> {
    let text = std::fs::read_to_string(file).map_err(|source| Error::Unreadable {
        file: file.to_owned(),
        source,
    })?;
    let directory = file.parent().unwrap_or(Path::new(""));
    let context = Context::new(directory);
    let config = read(&text, &context);
    let places = Places::new(file, &text, context.keys.take());
    context.into_faults(file, &text)?;
    let mut config = config.expect("a reader that returns nothing has recorded a fault");
    if is_writable_by_all(file) {
        let file = file.to_owned();
        config.warnings.insert(0, Warning::Writable { file });
    }
    Ok(Config { places, ..config })
}

fn is_writable_by_all(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|metadata| metadata.permissions().mode() & 0o002 != 0)
}

/// Returns `None` only after a fault was recorded. Faults may have been recorded in either case.
pub(crate) fn read(text: &str, context: &Context) -> Option<Config> {
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or(Range::default());
        let mut problem = error.message().to_owned();
        let mut fix = "correct the TOML: `key = value`, strings in quotes, each key once";
        if problem == "duplicate key"
            && let Some(line) = duplicate::first(text, &span)
        {
            problem = format!("duplicate key: line {line} has it too");
            fix = "keep one of the two";
        }
        context.fault(span, "", problem, fix.to_owned());
    }
    if !errors.is_empty() {
        return None;
    }
    let document = DeValue::Table(document.into_inner());
    let root = Value::root(&document, context);
    let mut config = Config::read(root.table()?)?;
    check::faults(&config, &root);
    config.warnings = check::warnings(&config);
    Some(config)
}

impl Config {
    /// Returns our certificate chain and the CAs, each once, whose expiry causes a warning in
    /// advance.
    pub fn certificates(&self) -> impl Iterator<Item = &Certificate> {
        let parties = check::parties(self);
        let own = parties.flat_map(|(_, party)| &party.authorities);
        let mut seen = HashSet::new();
        let authorities = self.authorities.iter().chain(own);
        let authorities = authorities.filter(move |authority| seen.insert(&authority.der));
        self.chain().iter().chain(authorities)
    }

    /// Returns our certificate chain, or nothing.
    pub(crate) fn chain(&self) -> &[Certificate] {
        let credential = self.credential.as_ref();
        credential.map_or(&[], |credential| &credential.chain)
    }

    /// Returns the pool that a peer's inner address is leased from, or `None` if it has none.
    pub fn pool(&self, peer: &Peer) -> Option<&Pool> {
        let name = peer.pool()?;
        self.pools.iter().find(|pool| pool.name == name)
    }

    /// Creates a configuration with the default of each key, and without an identity.
    fn new() -> Self {
        Self {
            identity: Identity::Fqdn(String::new()),
            credential: None,
            authorities: Vec::new(),
            lists: Vec::new(),
            revocation: Revocation::default(),
            aead: Aead::default(),
            tunnel: Tunnel::new(0),
            socket: DEFAULT_SOCKET.into(),
            readers: None,
            metrics: None,
            listen: Listen::default(),
            peers: Vec::new(),
            pools: Vec::new(),
            store: DEFAULT_STORE.into(),
            sessions: Sessions::default(),
            licensed: Vec::new(),
            gateways: Vec::new(),
            adjacent: Vec::new(),
            policies: Vec::new(),
            redirect: None,
            divert: None,
            snoop: None,
            regulate: None,
            stand_in: None,
            neighbours: Vec::new(),
            mobility: None,
            log: LogLevel::Info,
            log_peers: Vec::new(),
            audit: None,
            warnings: Vec::new(),
            places: Places::default(),
        }
    }

    fn read(mut file: Table<'_>) -> Option<Self> {
        let mut config = Self::new();
        let mut is_whole = config.read_node(&mut file);
        file.section("control", CONTROL, &mut config);
        file.section("metrics", METRICS, &mut config);
        is_whole &= config.listen.read(&mut file);
        let common = RefCell::new(Common::default());
        let peers = file.named("peer", |name, table| {
            Peer::read(name, table).map(|peer| common.borrow_mut().share(peer))
        });
        let overhead = peers.iter().flatten().map(Peer::zone_overhead).max();
        config.tunnel = Tunnel::new(overhead.unwrap_or(0));
        is_whole &= file.section("tunnel", TUNNEL, &mut config.tunnel);
        let pools = file.named("pool", Pool::read);
        file.section("store", STORE, &mut config);
        file.section("sessions", SESSIONS, &mut config.sessions);
        let licensed = file.named("licensed", Licensed::read);
        let gateways = file.named("gateway", Gateway::read);
        let adjacent = file.named("neighbour", Neighbour::read);
        let policies = file.optional("policy", Policy::read_all);
        config.policies = policies.unwrap_or_default();
        config.redirect = file.added("redirect", REDIRECT);
        config.divert = file.optional("divert", Divert::read);
        config.snoop = file.added("snoop", SNOOP);
        file.section("regulate", REGULATE, &mut config);
        config.stand_in = file.added("stand_in", STAND_IN);
        file.section("handover", HANDOVER, &mut config);
        config.mobility = Mobility::read(&mut file);
        file.section("log", LOG, &mut config);
        config.audit = file.added("audit", AUDIT);
        file.finish();
        let known = pools.as_deref().unwrap_or_default();
        let peers = peers?.into_iter().map(|peer| peer.among(known));
        config.peers = peers.collect();
        config.pools = pools?;
        config.licensed = licensed?;
        config.gateways = gateways?;
        config.adjacent = adjacent?;
        is_whole.then_some(config)
    }

    /// Reads `[node]`: our identity, and the credential for it.
    fn read_node(&mut self, file: &mut Table<'_>) -> bool {
        let Some(value) = file.value("node") else {
            let fix = "add the two lines `[node]` and `id = \"gw.example.net\"`, the identity of this host";
            file.whole().fault::<()>("[node] is missing", fix);
            return false;
        };
        let Some(mut node) = value.table() else {
            return false;
        };
        let is_whole = node.read(NODE, self);
        let identity = is_whole.then_some(&self.identity);
        self.credential = Credential::read(&mut node, identity);
        node.finish();
        is_whole
    }
}

/// Reads the path of a Unix socket.
pub(crate) fn socket_path(value: &Value<'_>) -> Option<PathBuf> {
    value.accepts(|| "absolute path".to_owned());
    let text = value.text()?;
    if !text.starts_with('/') || text.len() > LONGEST_SOCKET_PATH || text.contains('\0') {
        return value.fault(
            "this cannot be the path of a socket",
            format!("write an absolute path of at most {LONGEST_SOCKET_PATH} octets"),
        );
    }
    Some(PathBuf::from(text))
}

/// Reads `[control] group`. A name that is no number avoids that the number of a group that was
/// deleted gives rights to the next group.
pub(crate) fn group(value: &Value<'_>) -> Option<String> {
    value.accepts(|| "name of a group".to_owned());
    let text = value.text()?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let starts = |c: char| c.is_ascii_alphabetic() || c == '_';
    if text.len() > 32 || !text.starts_with(starts) || !text.chars().all(is_part) {
        return value.fault(
            format!("`{}` cannot be the name of a group", text.escape_debug()),
            "write the name of a group of this machine, such as \"strata\"",
        );
    }
    Some(text.to_owned())
}
