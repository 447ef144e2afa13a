//! Makes tables of ours out of connections, pools and secrets.

use crate::connection::{Action, Child, Connection, Content, Pool, Proof, Shared};
use crate::draft::{Draft, Row, Table, name, unique};
use crate::identity::{identity, is_same};
use crate::note::{Note, Weight};
use crate::range;
use crate::secret::{Secret, encoded};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Makes the draft of everything that a file has. Files that it names are in a folder.
pub(crate) fn assemble(content: Content, source: &'static str, folder: &str) -> Draft {
    let mut assembly = Assembly {
        draft: Draft {
            source,
            notes: content.notes,
            ..Draft::default()
        },
        psks: content.psks,
        ppks: content.ppks,
        pools: content.pools,
        folder: folder.to_owned(),
        id: None,
        peers: Vec::new(),
        addresses: Vec::new(),
    };
    for connection in content.connections {
        assembly.connect(connection);
    }
    assembly.draft.node.extend(content.node);
    assembly.finish()
}

/// A draft, and what its tables refer to.
struct Assembly {
    draft: Draft,
    psks: Vec<Shared>,
    ppks: Vec<Shared>,
    pools: Vec<Pool>,
    folder: String,
    /// Our identity, the same in all connections.
    id: Option<String>,
    /// The peers with tables.
    peers: Vec<Peer>,
    /// Our outer addresses of each connection.
    addresses: Vec<Vec<IpAddr>>,
}

/// A peer with a table.
struct Peer {
    name: String,
    id: String,
    pool: Option<String>,
    /// The files of the CAs that its connection names.
    authorities: Vec<String>,
}

/// Keys that a child may have. The others are those of its peer.
const OF_CHILDREN: [&str; 6] = ["local", "remote", "mode", "start", "rekey", "pfs"];

/// Returns the head of a child's table, other than those of its siblings.
fn unique_head(peer: &str, child: &str, taken: &[String]) -> String {
    let head = |child: &str| format!("[peer.{peer}.child.{child}]");
    let numbered = (2..).map(|number| head(&format!("{child}-{number}")));
    let mut heads = std::iter::once(head(child)).chain(numbered);
    heads.find(|head| !taken.contains(head)).unwrap_or_default()
}

impl Assembly {
    /// Adds the tables of a connection, or only its notes.
    fn connect(&mut self, mut connection: Connection) {
        let children = std::mem::take(&mut connection.children);
        let (tunnels, exceptions): (Vec<_>, Vec<_>) = children
            .into_iter()
            .partition(|child| child.action == Action::Protect);
        let is_exception = tunnels.is_empty() && !exceptions.is_empty();
        for child in exceptions {
            self.except(child);
        }
        if is_exception {
            // Nothing is authenticated, so nothing can be refused.
            connection
                .notes
                .retain(|note| note.weight != Weight::Refused);
            self.draft.notes.append(&mut connection.notes);
            return;
        }
        for child in &tunnels {
            connection.algorithms.merge(&child.algorithms);
        }
        let ids = self.identities(&mut connection);
        let known = ids.as_ref().and_then(|ids| self.known(&ids.theirs));
        match known {
            Some(name) => self.add_children(connection, &name, tunnels),
            None => self.add_peer(connection, ids, tunnels),
        }
    }

    /// Adds the table of a peer, and those of its children.
    fn add_peer(&mut self, mut connection: Connection, ids: Option<Ids>, tunnels: Vec<Child>) {
        let names: Vec<_> = self.peers.iter().map(|peer| peer.name.clone()).collect();
        let name = unique(name(&connection.name), &names);
        let secrets = self.draft.secrets.len();
        let mut rows = self.rows(&mut connection, &name, ids.as_ref());
        let mut all = self.children(&mut connection, &name, tunnels).into_iter();
        rows.extend(all.next().map(|first| first.rows).unwrap_or_default());
        let is_refused = connection.refusal().is_some();
        let Some(ids) = ids.filter(|_| !is_refused) else {
            self.draft.secrets.truncate(secrets);
            return self.refuse(connection);
        };
        self.note_files(&connection);
        self.id.get_or_insert(ids.ours);
        let mut table = Table::new(format!("[peer.{name}]"), rows);
        table.notes = connection.notes;
        // A link-local address is that of its peer's link, and no socket is bound to it.
        connection.local.retain(|own| !is_bound(own));
        self.addresses.push(connection.local);
        self.peers.push(Peer {
            name,
            id: ids.theirs,
            pool: connection.pool,
            authorities: connection.theirs.authorities,
        });
        self.draft.tables.push(table);
        self.draft.tables.extend(all);
    }

    /// Adds the children of a connection to a peer that has a table. strongSwan does the same when
    /// the connections come up.
    fn add_children(&mut self, mut connection: Connection, name: &str, tunnels: Vec<Child>) {
        let mut tables = self.children(&mut connection, name, tunnels);
        if connection.refusal().is_some() {
            return self.refuse(connection);
        }
        let why =
            format!("its tunnel is one more with [peer.{name}], with the algorithms of that table");
        let note = Note::new(connection.line, &connection.name, why, Weight::Remark);
        connection.notes.insert(0, note);
        let note = self.other_authorities(&connection, name);
        connection.notes.extend(note);
        let own = self::name(&connection.name);
        let mut heads: Vec<_> = self
            .draft
            .tables
            .iter()
            .map(|table| table.head.clone())
            .collect();
        for table in &mut tables {
            table.rows.retain(|row| OF_CHILDREN.contains(&row.key));
            table.head = unique_head(name, &own, &heads);
            heads.push(table.head.clone());
            table.notes.append(&mut connection.notes);
        }
        self.draft.tables.extend(tables);
    }

    /// Returns the note about CAs of a connection that are not those of the peer's table.
    fn other_authorities(&self, connection: &Connection, name: &str) -> Option<Note> {
        let peer = self.peers.iter().find(|peer| peer.name == name)?;
        let all = |files: &[String]| files.iter().cloned().collect::<BTreeSet<_>>();
        if all(&peer.authorities) == all(&connection.theirs.authorities) {
            return None;
        }
        let files = peer.authorities.iter().map(|file| self.place(file));
        let files = match peer.authorities.is_empty() {
            true => "all of [node]".to_owned(),
            false => files.collect::<Vec<_>>().join(", "),
        };
        let why = format!("its CAs are those of [peer.{name}]: {files}");
        let note = Note::new(connection.line, "cacerts", why, Weight::Lost);
        Some(note)
    }

    /// Adds the notes of a connection that is left out.
    fn refuse(&mut self, mut connection: Connection) {
        let title = format!("connection {}", connection.name);
        let why = "the whole connection is left out, for the reasons below";
        let first = Note::new(connection.line, &title, why, Weight::Refused);
        connection.notes.insert(0, first);
        self.draft.tables.push(Table {
            notes: connection.notes,
            ..Table::default()
        });
    }

    /// Returns the name of the table of a peer with this identity.
    fn known(&self, id: &str) -> Option<String> {
        let mut peers = self.peers.iter();
        let peer = peers.find(|peer| is_same(&peer.id, id));
        peer.map(|peer| peer.name.clone())
    }

    /// Returns the rows of a peer's table without its selectors.
    fn rows(&mut self, connection: &mut Connection, name: &str, ids: Option<&Ids>) -> Vec<Row> {
        let mut rows = Vec::new();
        self.check_rounds(connection);
        if let Some(address) = connection.remote.first() {
            rows.push(Row::text("address", address));
            if connection.remote.len() > 1 {
                let others = connection.remote[1..].join(", ");
                let why = "a peer has one address in Strata: the others are left out";
                connection
                    .notes
                    .push(Note::new(connection.line, &others, why, Weight::Remark));
            }
        }
        if let Some(ids) = ids {
            rows.push(Row::text("id", &ids.theirs));
            rows.extend(self.prove(connection, name, ids));
        }
        rows.extend(
            connection
                .ppk
                .clone()
                .and_then(|id| self.ppk(connection, name, &id)),
        );
        rows.extend(connection.algorithms.rows());
        rows.append(&mut connection.rows);
        rows.extend(connection.pool.as_ref().map(|pool| Row::text("pool", pool)));
        rows
    }

    fn check_rounds(&self, connection: &mut Connection) {
        if connection.ours.rounds > 1 || connection.theirs.rounds > 1 {
            let why = "Strata authenticates each end once: choose one of the rounds";
            let note = Note::new(connection.line, "several rounds", why, Weight::Refused);
            connection.notes.push(note);
        }
        if connection.ours.proof != connection.theirs.proof {
            let why = "both ends authenticate in the same way in Strata: by `psk`, or by keys";
            let note = Note::new(connection.line, "different methods", why, Weight::Refused);
            connection.notes.push(note);
        }
    }

    /// Returns the identities of both ends. Without one, it is the end's address.
    fn identities(&self, connection: &mut Connection) -> Option<Ids> {
        let fallback = connection.local.first().map(ToString::to_string);
        let ours = connection.ours.id.clone().or(fallback);
        // The interface of a link-local address is no part of the identity.
        let remote = connection.remote.first();
        let remote = remote.and_then(|remote| Some(remote.split('%').next()?.to_owned()));
        let theirs = connection.theirs.id.clone().or(remote);
        let mut read = |id: Option<String>, what: &str| {
            let read = match &id {
                Some(id) => identity(id),
                None => Err("Strata needs an identity at each end: write it here first"),
            };
            let what = id.map_or(what.to_owned(), |id| format!("{what} {id}"));
            let note = |why| Note::new(connection.line, &what, why, Weight::Refused);
            read.map_err(|why| connection.notes.push(note(why))).ok()
        };
        let (ours, theirs) = (
            read(ours, "our identity"),
            read(theirs, "the peer's identity"),
        );
        let (ours, theirs) = (ours?, theirs?);
        if let Some(other) = self.id.as_ref().filter(|other| !is_same(other, &ours)) {
            let why =
                format!("this host is `{other}` in other connections, and has one `id` in Strata");
            let note = Note::new(connection.line, &ours, why, Weight::Refused);
            connection.notes.push(note);
            return None;
        }
        Some(Ids { ours, theirs })
    }

    /// Returns the row with the proof of a peer, if its table needs one.
    fn prove(&mut self, connection: &mut Connection, name: &str, ids: &Ids) -> Option<Row> {
        if connection.ours.proof == Proof::Signature {
            let theirs = &connection.theirs;
            let key = theirs.public_keys.first();
            let key = key.map(|key| Row::text("pubkey", &self.place(key)));
            let authorities = theirs.authorities.iter().map(|file| self.place(file));
            let authorities: Vec<_> = authorities.collect();
            let only = (!authorities.is_empty())
                .then(|| Row::list("ca", authorities.iter().map(String::as_str)));
            return key.or(only);
        }
        let (octets, line) = match best(&self.psks, ids) {
            Some(shared) => (shared.octets.clone(), shared.line),
            None => {
                let why = "there is no secret for the two identities: give the file that has it";
                let note = Note::new(connection.line, "psk", why, Weight::Refused);
                connection.notes.push(note);
                return None;
            }
        };
        let Some(octets) = octets else {
            let why = "the secret cannot be decoded: correct the base64 or the hexadecimal digits";
            connection
                .notes
                .push(Note::new(line, "secret", why, Weight::Refused));
            return None;
        };
        Some(self.keep("psk", &format!("{name}.psk"), &octets))
    }

    /// Keeps the names of the files with which both ends prove their keys.
    fn note_files(&mut self, connection: &Connection) {
        let (ours, theirs) = (&connection.ours, &connection.theirs);
        if ours.proof != Proof::Signature {
            return;
        }
        if !theirs.public_keys.is_empty() {
            let own = ours.public_keys.first().map(|key| self.place(key));
            self.draft.public_key = self.draft.public_key.take().or(own);
            return;
        }
        let own = ours.certificates.first().map(|file| self.place(file));
        self.draft.certificate = self.draft.certificate.take().or(own);
        self.draft.needs_certificate = true;
        self.draft.needs_authorities |= theirs.authorities.is_empty();
    }

    /// Returns the path of a file that is named relative to the folder.
    fn place(&self, file: &str) -> String {
        match file.starts_with('/') {
            true => file.to_owned(),
            false => format!("{}/{file}", self.folder),
        }
    }

    fn ppk(&mut self, connection: &mut Connection, name: &str, id: &str) -> Option<Row> {
        let mut ppks = self.ppks.iter();
        let named = ppks.find(|ppk| ppk.owners.iter().any(|owner| is_same(owner, id)));
        let Some(octets) = named.and_then(|ppk| ppk.octets.clone()) else {
            let why = "the secret of this PPK is not in the file: write it into a file for `ppk`";
            connection
                .notes
                .push(Note::new(connection.line, id, why, Weight::Lost));
            return None;
        };
        let file = format!("{name}.ppk");
        let key = self.keep("key", &file, &octets).value;
        let id = Row::text("id", id).value;
        let optional = match connection.is_ppk_required {
            true => "",
            false => ", required = false",
        };
        Some(Row::plain(
            "ppk",
            format!("{{ id = {id}, key = {key}{optional} }}"),
        ))
    }

    /// Keeps a secret in a file, and returns the row that names it.
    fn keep(&mut self, key: &'static str, file: &str, octets: &[u8]) -> Row {
        self.draft.secrets.push(Secret {
            file: file.to_owned(),
            text: encoded(octets),
        });
        Row::text(key, file)
    }

    /// Returns the tables of the children. That of the first one belongs to the peer.
    fn children(
        &self,
        connection: &mut Connection,
        name: &str,
        children: Vec<Child>,
    ) -> Vec<Table> {
        let mut tables: Vec<Table> = Vec::new();
        for mut child in children {
            let rows = Self::tunnel(connection, &mut child);
            connection.notes.append(&mut child.notes);
            let Some(mut rows) = rows else {
                continue;
            };
            if !tables.is_empty() {
                rows.retain(|row| OF_CHILDREN.contains(&row.key));
            }
            let heads: Vec<_> = tables.iter().map(|table| table.head.clone()).collect();
            let head = unique_head(name, &self::name(&child.name), &heads);
            tables.push(Table::new(head, rows));
        }
        if tables.is_empty() {
            let why = "no child of the connection can be carried over";
            let note = Note::new(connection.line, &connection.name, why, Weight::Refused);
            connection.notes.push(note);
        }
        tables
    }

    /// Returns the rows of a tunnel, or `None` if a reason is noted.
    fn tunnel(connection: &Connection, child: &mut Child) -> Option<Vec<Row>> {
        if child
            .notes
            .iter()
            .any(|note| note.weight == Weight::Refused)
        {
            return None;
        }
        let mut rows = Vec::new();
        let own: Vec<_> = connection
            .local
            .iter()
            .take(1)
            .map(|own| range::host(*own))
            .collect();
        let peers = connection
            .remote
            .iter()
            .filter_map(|peer| peer.parse().ok());
        let peers: Vec<_> = peers.take(1).map(range::host).collect();
        let written = |selectors: &[crate::selector::Selector], own: &[String]| {
            let written = selectors.iter().map(|selector| selector.written(own));
            let written: Vec<_> = written.collect();
            (!written.is_empty() && written.iter().all(|some| !some.is_empty()))
                .then(|| written.concat())
        };
        let mut complain = |what: &str, why: &str| {
            child
                .notes
                .push(Note::new(child.line, what, why, Weight::Refused));
        };
        match (connection.asks_for_address, written(&child.local, &own)) {
            (true, _) => rows.push(Row::list("local", ["dynamic"])),
            (false, Some(local)) => rows.push(Row::list("local", local.iter().map(String::as_str))),
            (false, None) => complain(
                "local",
                "our address is not in the file: write our end of the traffic",
            ),
        }
        match (&connection.pool, written(&child.remote, &peers)) {
            (Some(_), _) => {}
            (None, Some(remote)) => {
                rows.push(Row::list("remote", remote.iter().map(String::as_str)))
            }
            (None, None) => complain(
                "remote",
                "the peer's address is not in the file: write its end of the traffic",
            ),
        }
        if !connection.remote.is_empty() && !child.starts {
            rows.push(Row::text("start", "manual"));
        }
        rows.append(&mut child.rows);
        let is_whole = !child
            .notes
            .iter()
            .any(|note| note.weight == Weight::Refused);
        is_whole.then_some(rows)
    }

    /// Adds an exception to protection.
    fn except(&mut self, mut child: Child) {
        let action = match child.action {
            Action::Bypass => "bypass",
            Action::Protect | Action::Discard => "discard",
        };
        let mut tables = Vec::new();
        for remote in child
            .remote
            .iter()
            .flat_map(|selector| selector.written(&[]))
        {
            let mut words = remote.split(' ');
            let mut rows = vec![Row::text("action", action)];
            rows.extend(words.next().map(|prefix| Row::text("remote", prefix)));
            rows.extend(words.next().map(|protocol| match protocol.parse::<u8>() {
                Ok(number) => Row::plain("protocol", number),
                Err(_) => Row::text("protocol", protocol),
            }));
            rows.extend(words.next().map(|ports| match ports.parse::<u16>() {
                Ok(port) => Row::plain("ports", port),
                Err(_) => Row::text("ports", ports),
            }));
            tables.push(Table::new("[[policy]]".to_owned(), rows));
        }
        match tables.first_mut() {
            Some(first) => first.notes.append(&mut child.notes),
            None => self.draft.notes.append(&mut child.notes),
        }
        self.draft.tables.extend(tables);
    }

    /// Adds the tables that belong to all peers.
    fn finish(mut self) -> Draft {
        let id = self.id.unwrap_or_default();
        if id.is_empty() {
            let why = "no connection is carried over: write our identity";
            self.draft.note(0, "id", why, Weight::Refused);
        }
        self.draft.node.insert(0, Row::text("id", &id));
        let is_everywhere = self.addresses.iter().all(|own| !own.is_empty());
        if is_everywhere && !self.addresses.is_empty() {
            let mut all: Vec<_> = self.addresses.concat();
            all.sort_unstable();
            all.dedup();
            let all: Vec<_> = all.iter().map(ToString::to_string).collect();
            let row = Row::list("addresses", all.iter().map(String::as_str));
            self.draft
                .tables
                .push(Table::new("[listen]".to_owned(), vec![row]));
        }
        let mut unused: Vec<_> = self
            .peers
            .iter()
            .filter_map(|peer| peer.pool.clone())
            .collect();
        for pool in self.pools {
            if !unused.contains(&pool.name) {
                let why = "no connection that is carried over uses this pool";
                self.draft.note(0, &pool.name, why, Weight::Remark);
                continue;
            }
            unused.retain(|name| *name != pool.name);
            self.draft.tables.push(pool.table());
        }
        self.draft
    }
}

impl Pool {
    fn table(self) -> Table {
        let list = |key, values: &[String]| {
            let values = (!values.is_empty()).then_some(values);
            values.map(|values| Row::list(key, values.iter().map(String::as_str)))
        };
        let rows = [
            list("addresses", &self.addresses),
            list("dns", &self.dns),
            list("subnets", &self.subnets),
        ];
        let mut table = Table::new(
            format!("[pool.{}]", self.name),
            rows.into_iter().flatten().collect(),
        );
        table.notes = self.notes;
        table
    }
}

/// Identities of both ends of a connection.
struct Ids {
    ours: String,
    theirs: String,
}

/// Returns the secret with the most identities of a connection. One without identities is for all.
fn best<'a>(secrets: &'a [Shared], ids: &Ids) -> Option<&'a Shared> {
    let score = |shared: &Shared| {
        let has = |id: &str| shared.owners.iter().any(|owner| is_same(owner, id));
        let is_any =
            |owner: &String| owner.starts_with("%any") || owner == "0.0.0.0" || owner == "::";
        let matches = usize::from(has(&ids.theirs)) * 2 + usize::from(has(&ids.ours));
        let is_open = shared.owners.iter().all(is_any);
        (matches > 0 || is_open).then_some(matches)
    };
    let scored = secrets
        .iter()
        .filter_map(|shared| Some((score(shared)?, shared)));
    // The first of those with the same score.
    let best = scored.rev().max_by_key(|(score, _)| *score);
    best.map(|(_, shared)| shared)
}

/// Returns true for an address that is unique on one link only.
fn is_bound(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}
