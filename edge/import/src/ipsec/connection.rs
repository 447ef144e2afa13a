//! What becomes of the keys of a connection. `left` is this host, unless the address of `right` is.

use crate::connection::{Action, Child, Connection, Content, LIVENESS, Pool, REKEY, Side, timed};
use crate::draft::{Row, name, unique};
use crate::fate::{Fate, Noted, Rule, Verdict, apply, lost, refused, remark};
use crate::note::{Note, Weight};
use crate::proposal::For;
use crate::range;
use crate::section::{Entry, Section};
use crate::selector::Selector;
use std::net::IpAddr;

const BY_ITSELF: &str = "Strata does this by itself";
const IKEV1: &str = "a part of IKEv1, which Strata does not have";
const KERNEL: &str = "an option of the kernel's IPsec: Strata has its own data path and device";

/// A connection in progress.
#[derive(Default)]
struct Conn {
    connection: Connection,
    child: Child,
    pool: Pool,
    /// True if the connection is loaded.
    is_loaded: bool,
    /// Protocol and ports of both ends, in the syntax of selectors.
    services: [String; 2],
}

impl Noted for Conn {
    fn notes(&mut self) -> &mut Vec<Note> {
        &mut self.connection.notes
    }
}

/// Converts a connection, if it is loaded.
pub(super) fn read(section: &Section, is_ours: &dyn Fn(IpAddr) -> bool, content: &mut Content) {
    let mut conn = Conn::default();
    conn.connection.name = section.name.clone();
    conn.connection.line = section.line;
    conn.child.name = section.name.clone();
    conn.child.line = section.line;
    let swaps = is_right_ours(section, is_ours);
    for entry in &section.entries {
        let entry = match swaps {
            true => swapped(entry),
            false => entry.clone(),
        };
        apply(CONN, &entry, &mut conn);
    }
    if !conn.is_loaded {
        let what = format!("conn {}", section.name);
        let why = "not loaded by the other daemon, because it has no `auto`: left out";
        content
            .notes
            .push(Note::new(section.line, &what, why, Weight::Remark));
        return;
    }
    conn.finish(content);
}

/// Returns true if the address of `right` is one of this host, and that of `left` is not.
fn is_right_ours(section: &Section, is_ours: &dyn Fn(IpAddr) -> bool) -> bool {
    let is_ours = |key| {
        let address = section
            .value(key)
            .and_then(|entry| entry.value.parse().ok());
        address.is_some_and(is_ours)
    };
    is_ours("right") && !is_ours("left")
}

/// Returns a line with the other end in its key.
fn swapped(entry: &Entry) -> Entry {
    let (left, right) = (
        entry.key.strip_prefix("left"),
        entry.key.strip_prefix("right"),
    );
    let key = match (left, right) {
        (Some(rest), _) => format!("right{rest}"),
        (_, Some(rest)) => format!("left{rest}"),
        (None, None) => entry.key.clone(),
    };
    Entry {
        key,
        ..entry.clone()
    }
}

impl Conn {
    /// Adds the connection to the others.
    fn finish(self, content: &mut Content) {
        let Self {
            mut connection,
            mut child,
            pool,
            services,
            ..
        } = self;
        let ends = [&mut child.local, &mut child.remote];
        for (selectors, service) in ends.into_iter().zip(&services) {
            if selectors.is_empty() {
                selectors.push(Selector::dynamic());
            }
            for selector in selectors.iter_mut().filter(|_| !service.is_empty()) {
                selector.service.clone_from(service);
            }
        }
        connection.ours.rounds = 1;
        connection.theirs.rounds = 1;
        connection.children.push(child);
        if !pool.addresses.is_empty() {
            connection.pool = Some(add_pool(&connection.name, pool, content));
        }
        content.connections.push(connection);
    }

    fn authenticate_both(&mut self, method: &str) -> Verdict {
        self.connection.ours.authenticate(method)?;
        self.connection.theirs.authenticate(method)
    }
}

const CONN: &[Rule<Conn>] = &[
    Rule {
        keys: &["keyexchange", "ikev2"],
        fate: Fate::To(|entry, _| match entry.value.as_str() {
            "ikev1" | "no" | "never" => {
                refused("IKEv1, which Strata does not have: write `keyexchange=ikev2` at both ends")
            }
            "ike" | "permit" => remark("Strata has IKEv2 only"),
            _ => Ok(()),
        }),
    },
    Rule {
        keys: &["left"],
        fate: Fate::To(|entry, to| to.connection.add_local(&entry.value)),
    },
    Rule {
        keys: &["right"],
        fate: Fate::To(|entry, to| {
            let addresses: Vec<_> = entry.list().collect();
            addresses
                .into_iter()
                .try_for_each(|one| to.connection.add_remote(one))
        }),
    },
    Rule {
        keys: &["leftid"],
        fate: Fate::To(|entry, to| id(entry, &mut to.connection.ours)),
    },
    Rule {
        keys: &["rightid"],
        fate: Fate::To(|entry, to| id(entry, &mut to.connection.theirs)),
    },
    Rule {
        keys: &["authby"],
        fate: Fate::To(|entry, to| to.authenticate_both(&entry.value)),
    },
    Rule {
        keys: &["leftauth"],
        fate: Fate::To(|entry, to| to.connection.ours.authenticate(&entry.value)),
    },
    Rule {
        keys: &["rightauth"],
        fate: Fate::To(|entry, to| to.connection.theirs.authenticate(&entry.value)),
    },
    Rule {
        keys: &["leftsubnet", "leftsubnets"],
        fate: Fate::To(|entry, to| selectors(entry, &mut to.child.local)),
    },
    Rule {
        keys: &["rightsubnet", "rightsubnets"],
        fate: Fate::To(|entry, to| selectors(entry, &mut to.child.remote)),
    },
    Rule {
        keys: &["leftprotoport"],
        fate: Fate::To(|entry, to| service(entry, &mut to.services[0])),
    },
    Rule {
        keys: &["rightprotoport"],
        fate: Fate::To(|entry, to| service(entry, &mut to.services[1])),
    },
    Rule {
        keys: &["leftsourceip", "leftmodecfgclient", "leftmodeconfigclient"],
        fate: Fate::To(|entry, to| match entry.value.as_str() {
            "no" => Ok(()),
            "yes" | "%config" | "%config4" | "%config6" | "%modeconfig" | "%modecfg" => {
                to.connection.asks_for_address = true;
                Ok(())
            }
            address if address.parse::<IpAddr>().is_ok() && !to.child.local.is_empty() => remark(
                "Strata uses the addresses of this host; add this one to `addresses` of [tunnel]",
            ),
            _ => {
                to.connection.asks_for_address = true;
                remark("the peer chooses the inner address: Strata asks for any")
            }
        }),
    },
    Rule {
        keys: &["rightsourceip", "rightaddresspool"],
        fate: Fate::To(|entry, to| {
            for text in entry.list() {
                match range::prefixes(text) {
                    Some(prefixes) => to.pool.addresses.extend(prefixes),
                    None => {
                        return refused(format!("`{text}` is no pool of addresses of this file"));
                    }
                }
            }
            Ok(())
        }),
    },
    Rule {
        keys: &["rightdns", "modecfgdns"],
        fate: Fate::To(|entry, to| {
            let servers = entry.list().filter(|text| text.parse::<IpAddr>().is_ok());
            to.pool.dns.extend(servers.map(str::to_owned));
            Ok(())
        }),
    },
    Rule {
        keys: &["leftcert"],
        fate: Fate::To(|entry, to| {
            to.connection
                .ours
                .certificates
                .extend(entry.files("ipsec.d/certs"));
            Ok(())
        }),
    },
    Rule {
        keys: &["rightca"],
        fate: Fate::No(
            Weight::Lost,
            "write the file of this CA as `ca` of the peer: otherwise all CAs of [node] count",
        ),
    },
    Rule {
        keys: &[
            "rightcert",
            "rightsigkey",
            "rightrsasigkey",
            "leftsigkey",
            "leftrsasigkey",
            "leftca",
        ],
        fate: Fate::No(
            Weight::Lost,
            "Strata accepts any certificate of the CA for the `id`; `pubkey` accepts one key only",
        ),
    },
    Rule {
        keys: &["ike"],
        fate: Fate::To(|entry, to| to.connection.algorithms.add(&entry.value, For::Ike)),
    },
    Rule {
        keys: &["esp", "phase2alg"],
        fate: Fate::To(|entry, to| to.connection.algorithms.add(&entry.value, For::Esp)),
    },
    Rule {
        keys: &["ah"],
        fate: Fate::No(Weight::Refused, "AH, which Strata does not have: use `esp`"),
    },
    Rule {
        keys: &["phase2"],
        fate: Fate::To(|entry, _| match entry.value.as_str() {
            "ah" => refused("AH, which Strata does not have: use `esp`"),
            _ => Ok(()),
        }),
    },
    Rule {
        keys: &["type"],
        fate: Fate::To(kind),
    },
    Rule {
        keys: &["auto"],
        fate: Fate::To(auto),
    },
    Rule {
        keys: &["dpdaction", "closeaction"],
        fate: Fate::To(|entry, to| {
            to.child.starts |= entry.value == "restart";
            Ok(())
        }),
    },
    Rule {
        keys: &["dpddelay"],
        fate: Fate::To(|entry, to| {
            timed(&entry.value, "liveness", LIVENESS, &mut to.connection.rows)
        }),
    },
    Rule {
        keys: &["ikelifetime"],
        fate: Fate::To(|entry, to| {
            timed(&entry.value, "ike_rekey", REKEY, &mut to.connection.rows)
        }),
    },
    Rule {
        keys: &["lifetime", "keylife", "salifetime"],
        fate: Fate::To(|entry, to| timed(&entry.value, "rekey", REKEY, &mut to.child.rows)),
    },
    Rule {
        keys: &["reauth"],
        fate: Fate::To(|entry, _| match entry.is_on() {
            true => remark("write `reauth = \"8h\"` to authenticate regularly"),
            false => Ok(()),
        }),
    },
    Rule {
        keys: &["pfs"],
        fate: Fate::To(|entry, to| {
            if !entry.is_on() {
                to.child.rows.push(Row::plain("pfs", false));
            }
            Ok(())
        }),
    },
    Rule {
        keys: &["mobike"],
        fate: Fate::To(|entry, to| {
            if !entry.is_on() {
                to.connection.rows.push(Row::text("mobike", "off"));
            }
            Ok(())
        }),
    },
    Rule {
        keys: &["aggressive", "aggrmode"],
        fate: Fate::To(|entry, _| match entry.is_on() {
            true => refused("aggressive mode, a part of IKEv1, which Strata does not have"),
            false => Ok(()),
        }),
    },
    Rule {
        keys: &["compress"],
        fate: Fate::To(|entry, _| match entry.is_on() {
            true => remark("Strata does not compress packets"),
            false => Ok(()),
        }),
    },
    Rule {
        keys: &["tfc"],
        fate: Fate::To(|entry, to| match entry.value.as_str() {
            "0" => Ok(()),
            "%mtu" => {
                to.connection.rows.push(Row::text("tfc", "mtu"));
                Ok(())
            }
            _ => lost("packets are padded to the MTU or to a few lengths: see `tfc`"),
        }),
    },
    Rule {
        keys: &[
            "rekeymargin",
            "margintime",
            "rekeyfuzz",
            "keyingtries",
            "dpdtimeout",
            "rekey",
            "leftsendcert",
            "rightsendcert",
            "replay_window",
            "replay-window",
            "lifebytes",
            "lifepackets",
            "marginbytes",
            "marginpackets",
            "retransmit-*",
            "ipsec-max-*",
        ],
        fate: Fate::No(Weight::Remark, BY_ITSELF),
    },
    Rule {
        keys: &[
            "fragmentation",
            "forceencaps",
            "encapsulation",
            "leftnexthop",
            "rightnexthop",
            "lefthostaccess",
            "righthostaccess",
            "rightfirewall",
            "rightupdown",
            "pfsgroup",
            "connalias",
            "hostaddrfamily",
            "clientaddrfamily",
        ],
        fate: Fate::Settled,
    },
    Rule {
        keys: &["leftupdown", "leftfirewall"],
        fate: Fate::To(|entry, _| match entry.value.as_str() {
            "no" | "%disabled" => Ok(()),
            _ => lost("Strata runs no scripts: set firewall rules for the device strata0 once"),
        }),
    },
    Rule {
        keys: &[
            "mark*",
            "if_id*",
            "vti-*",
            "ipsec-interface",
            "reqid",
            "policy-label",
            "sec-label",
        ],
        fate: Fate::No(Weight::Lost, KERNEL),
    },
    Rule {
        keys: &["installpolicy", "priority", "nic-offload", "mtu", "metric"],
        fate: Fate::No(Weight::Remark, KERNEL),
    },
    Rule {
        keys: &["leftikeport"],
        fate: Fate::No(
            Weight::Remark,
            "Strata has one value for all peers: ports of [listen], 500 and 4500",
        ),
    },
    Rule {
        keys: &["rightikeport"],
        fate: Fate::No(
            Weight::Remark,
            "write the port behind `address`, like \"192.0.2.1:4501\"",
        ),
    },
    Rule {
        keys: &["inactivity"],
        fate: Fate::No(Weight::Remark, "tunnels of Strata stay up without traffic"),
    },
    Rule {
        keys: &["eap_identity", "aaa_identity"],
        fate: Fate::No(Weight::Refused, "Strata has no EAP: use certificates"),
    },
    Rule {
        keys: &[
            "xauth*",
            "leftxauth*",
            "rightxauth*",
            "modeconfig",
            "modecfg*",
        ],
        fate: Fate::No(Weight::Refused, IKEV1),
    },
    Rule {
        keys: &[
            "leftgroups",
            "rightgroups",
            "rightcertpolicy",
            "leftauth2",
            "rightauth2",
            "leftcert2",
            "rightca2",
        ],
        fate: Fate::No(
            Weight::Refused,
            "Strata does not limit peers by this attribute: write the `id` of each peer",
        ),
    },
    Rule {
        keys: &["mediat*", "me_peerid"],
        fate: Fate::No(
            Weight::Refused,
            "the mediation extension, which Strata does not have",
        ),
    },
];

/// Adds a pool, unless another connection has the same one. Returns its name.
fn add_pool(connection: &str, new: Pool, content: &mut Content) -> String {
    let mut pools = content.pools.iter();
    if let Some(same) = pools.find(|pool| pool.addresses == new.addresses) {
        return same.name.clone();
    }
    let names: Vec<_> = content.pools.iter().map(|pool| pool.name.clone()).collect();
    let name = unique(name(connection), &names);
    content.pools.push(Pool {
        name: name.clone(),
        ..new
    });
    name
}

fn id(entry: &Entry, side: &mut Side) -> Verdict {
    side.id = Some(entry.value.clone());
    Ok(())
}

/// Reads prefixes: `10.1.0.0/16,10.2.0.0/16[tcp/80]`, or `{10.1.0.0/16 10.2.0.0/16}`.
fn selectors(entry: &Entry, all: &mut Vec<Selector>) -> Verdict {
    let inner = entry.value.trim_start_matches('{').trim_end_matches('}');
    let texts = inner.split([',', ' ']).map(str::trim);
    for text in texts.filter(|text| !text.is_empty()) {
        let text = text.strip_prefix("vhost:").unwrap_or(text);
        match Selector::read(text) {
            Ok(selector) => all.push(selector),
            Err(why) => return refused(why),
        }
    }
    Ok(())
}

fn service(entry: &Entry, service: &mut String) -> Verdict {
    match Selector::read(&format!("[{}]", entry.value)) {
        Ok(selector) => {
            *service = selector.service;
            Ok(())
        }
        Err(why) => refused(why),
    }
}

fn kind(entry: &Entry, conn: &mut Conn) -> Verdict {
    match entry.value.as_str() {
        "tunnel" => {}
        "transport" | "beet" => conn.child.rows.push(Row::text("mode", &entry.value)),
        "passthrough" | "pass" => conn.child.action = Action::Bypass,
        "drop" | "reject" => conn.child.action = Action::Discard,
        _ => return refused("a mode that Strata does not have"),
    }
    Ok(())
}

fn auto(entry: &Entry, conn: &mut Conn) -> Verdict {
    conn.is_loaded = entry.value != "ignore";
    match entry.value.as_str() {
        "start" | "up" => conn.child.starts = true,
        "route" | "ondemand" => {
            conn.child.starts = true;
            return remark(
                "the tunnel comes up at the start, not with the first packet; until then packets wait or are dropped, too",
            );
        }
        _ => {}
    }
    Ok(())
}
