//! The whole file.

use crate::credential::{self, Credential};
use crate::divert::window;
use crate::fault::Context;
use crate::handover;
use crate::reader::{Table, Value};
use crate::{
    Addressing, Aead, Audit, DEFAULT_STORE, Divert, Error, Gateway, Licensed, Listen, Mobility,
    Neighbour, Peer, Places, Policy, Pool, Redirect, Snoop, StandIn, Tunnel, Warning, check, pool,
    revocation,
};
use crypto::{Certificate, Revocation, RevocationList};
use model::Identity;
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
    /// `[listen]`.
    pub listen: Listen,
    /// `[peer.NAME]`, sorted by name.
    pub peers: Vec<Peer>,
    /// `[pool.NAME]`, sorted by name.
    pub pools: Vec<Pool>,
    /// `[store] file`: the file that keeps the leases of pools. Default [`DEFAULT_STORE`].
    pub store: PathBuf,
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
    pub log: Level,
    /// `[audit]`: default none.
    pub audit: Option<Audit>,
    /// Settings that are legal but may be unintended.
    pub warnings: Vec<Warning>,
    /// The lines of the file at which its keys stand.
    pub places: Places,
}

/// The threshold of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
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

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        })
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
        let fix = "correct the TOML: `key = value`, strings in quotes, each key once";
        context.fault(span, "", error.message().to_owned(), fix.to_owned());
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
    /// Returns our certificate chain and the CAs, whose expiry causes a warning in advance.
    pub fn certificates(&self) -> impl Iterator<Item = &Certificate> {
        let ours = self
            .credential
            .iter()
            .flat_map(|credential| &credential.chain);
        ours.chain(&self.authorities)
    }

    /// Returns the pool that a peer's inner address is leased from, or `None` if it has none.
    pub fn pool(&self, peer: &Peer) -> Option<&Pool> {
        let Addressing::Lent(name) = &peer.addressing else {
            return None;
        };
        self.pools.iter().find(|pool| pool.name == *name)
    }

    fn read(mut file: Table<'_>) -> Option<Self> {
        let node = Node::read(&mut file);
        let socket = file.optional("control", socket);
        let listen = Listen::read(file.value("listen"));
        let peers = file.named("peer", Peer::read);
        let overhead = peers.iter().flatten().map(Peer::zone_overhead).max();
        let tunnel = Tunnel::read(file.value("tunnel"), overhead.unwrap_or(0));
        let pools = file.named("pool", Pool::read);
        let store = file.optional("store", pool::store);
        let licensed = file.named("licensed", Licensed::read);
        let gateways = file.named("gateway", Gateway::read);
        let adjacent = file.named("neighbour", Neighbour::read);
        let policies = file.optional("policy", Policy::read_all);
        let redirect = file.optional("redirect", Redirect::read);
        let divert = file.optional("divert", Divert::read);
        let snoop = file.optional("snoop", Snoop::read);
        let regulate = file.optional("regulate", window);
        let stand_in = file.optional("stand_in", StandIn::read);
        let neighbours = file.optional("handover", handover::neighbours);
        let mobility = Mobility::read(&mut file);
        let log = file.optional("log", level);
        let audit = file.optional("audit", Audit::read);
        file.finish();
        Some(Self {
            identity: node.identity?,
            credential: node.credential,
            authorities: node.authorities,
            lists: node.lists,
            revocation: node.revocation,
            aead: node.aead,
            tunnel: tunnel?,
            socket: socket.unwrap_or_else(|| DEFAULT_SOCKET.into()),
            listen: listen?,
            peers: peers?
                .into_iter()
                .map(|peer| peer.among(pools.as_deref().unwrap_or_default()))
                .collect(),
            pools: pools?,
            store: store.unwrap_or_else(|| DEFAULT_STORE.into()),
            licensed: licensed?,
            gateways: gateways?,
            adjacent: adjacent?,
            policies: policies.unwrap_or_default(),
            redirect,
            divert,
            snoop,
            regulate,
            stand_in,
            neighbours: neighbours.unwrap_or_default(),
            mobility,
            log: log.unwrap_or(Level::Info),
            audit,
            warnings: Vec::new(),
            places: Places::default(),
        })
    }
}

/// `[node]`: our identity, and the credential for it.
#[derive(Default)]
struct Node {
    identity: Option<Identity>,
    credential: Option<Credential>,
    authorities: Vec<Certificate>,
    lists: Vec<RevocationList>,
    revocation: Revocation,
    aead: Aead,
}

impl Node {
    fn read(file: &mut Table<'_>) -> Self {
        let Some(value) = file.value("node") else {
            let fix = "add the two lines `[node]` and `id = \"gw.example.net\"`, the identity of this host";
            file.whole().fault::<()>("[node] is missing", fix);
            return Self::default();
        };
        let Some(mut node) = value.table() else {
            return Self::default();
        };
        let identity = node.required("id", "\"gw.example.net\"", Value::identity);
        let credential = Credential::read(&mut node, identity.as_ref());
        let authorities = node.optional("ca", credential::authorities);
        let (lists, revocation) = revocation::read(&mut node);
        let aead = node.optional("aead", Aead::read);
        node.finish();
        Self {
            identity,
            credential,
            authorities: authorities.unwrap_or_default(),
            lists,
            revocation,
            aead: aead.unwrap_or_default(),
        }
    }
}

fn socket(value: &Value<'_>) -> Option<PathBuf> {
    let mut control = value.table()?;
    let socket = control.optional("socket", |value| {
        value.accepts(|| "absolute path".to_owned());
        let text = value.text()?;
        if !text.starts_with('/') || text.len() > LONGEST_SOCKET_PATH || text.contains('\0') {
            return value.fault(
                "this cannot be the path of a socket",
                format!("write an absolute path of at most {LONGEST_SOCKET_PATH} octets"),
            );
        }
        Some(PathBuf::from(text))
    });
    control.finish();
    socket
}

fn level(value: &Value<'_>) -> Option<Level> {
    let all = [
        Level::Error,
        Level::Warn,
        Level::Info,
        Level::Debug,
        Level::Trace,
    ];
    let names = all.map(|level| (level, level.to_string()));
    let choices: Vec<_> = names
        .iter()
        .map(|(level, name)| (name.as_str(), *level))
        .collect();
    let mut log = value.table()?;
    let level = log.optional("level", |value| value.choice(&choices));
    log.finish();
    level
}
