//! What becomes of the keys of a connection, and of its sections `local` and `remote`.

use super::child;
use crate::connection::{Connection, LIVENESS, REAUTH, REKEY, timed};
use crate::draft::Row;
use crate::fate::{Fate, Rule, Verdict, apply, apply_all, lost, refused, remark};
use crate::note::{Note, Weight};
use crate::proposal::For;
use crate::section::{Entry, Section};

const ALL_PEERS: &str = "Strata has one value for all peers: ports of [listen], 500 and 4500";
const IKEV1: &str = "a part of IKEv1, which Strata does not have";
const KERNEL: &str = "an option of the kernel's IPsec: Strata has its own data path and device";
const BY_ITSELF: &str = "Strata does this by itself";

/// Converts a connection.
pub(super) fn read(section: &Section) -> Connection {
    let mut connection = Connection {
        name: section.name.clone(),
        line: section.line,
        ..Connection::default()
    };
    apply_all(CONNECTION, section, &mut connection);
    for inner in &section.sections {
        match inner.name.as_str() {
            "children" => {
                let children = inner.sections.iter().map(child::read);
                connection.children.extend(children);
            }
            name if name.starts_with("local") => {
                connection.ours.rounds += 1;
                inner
                    .entries
                    .iter()
                    .for_each(|entry| apply(LOCAL, entry, &mut connection));
                inner
                    .sections
                    .iter()
                    .for_each(|inner| token(inner, &mut connection));
            }
            name if name.starts_with("remote") => {
                connection.theirs.rounds += 1;
                inner
                    .entries
                    .iter()
                    .for_each(|entry| apply(REMOTE, entry, &mut connection));
                inner
                    .sections
                    .iter()
                    .for_each(|inner| token(inner, &mut connection));
            }
            other => {
                let why = "this section is not known here: look up what it protects";
                let note = Note::new(inner.line, other, why, Weight::Lost);
                connection.notes.push(note);
            }
        }
    }
    connection
}

/// Notes the certificate of a smartcard.
fn token(section: &Section, connection: &mut Connection) {
    let why = "a certificate of a smartcard or of a remote source: Strata reads PEM files";
    let note = Note::new(section.line, &section.name, why, Weight::Refused);
    connection.notes.push(note);
}

const CONNECTION: &[Rule<Connection>] = &[
    Rule {
        keys: &["version"],
        fate: Fate::To(|entry, _| match entry.value.as_str() {
            "1" => refused("IKEv1, which Strata does not have: write `version = 2` at both ends"),
            "0" => remark("Strata has IKEv2 only"),
            _ => Ok(()),
        }),
    },
    Rule {
        keys: &["remote_addrs"],
        fate: Fate::To(|entry, connection| each(entry, |text| connection.add_remote(text))),
    },
    Rule {
        keys: &["local_addrs"],
        fate: Fate::To(|entry, connection| each(entry, |text| connection.add_local(text))),
    },
    Rule {
        keys: &["local_port"],
        fate: Fate::To(|entry, _| match entry.value.as_str() {
            "500" | "4500" => Ok(()),
            _ => remark(ALL_PEERS),
        }),
    },
    Rule {
        keys: &["remote_port"],
        fate: Fate::To(|entry, _| match entry.value.as_str() {
            "500" | "4500" => Ok(()),
            _ => remark("write the port behind `address`, like \"192.0.2.1:4501\""),
        }),
    },
    Rule {
        keys: &["proposals"],
        fate: Fate::To(|entry, connection| connection.algorithms.add(&entry.value, For::Ike)),
    },
    Rule {
        keys: &["vips"],
        fate: Fate::To(|entry, connection| {
            connection.asks_for_address = true;
            let is_any = |text: &str| ["0.0.0.0", "::"].contains(&text);
            match entry.list().all(is_any) {
                true => Ok(()),
                false => remark("the peer chooses the inner address: Strata asks for any"),
            }
        }),
    },
    Rule {
        keys: &["pools"],
        fate: Fate::To(|entry, connection| {
            let mut pools = entry.list();
            connection.pool = pools.next().map(crate::draft::name);
            match pools.next() {
                None => Ok(()),
                Some(_) => remark("a peer has one pool: add the prefixes of the others to it"),
            }
        }),
    },
    Rule {
        keys: &["aggressive"],
        fate: Fate::To(|entry, _| match entry.is_on() {
            true => refused("aggressive mode, a part of IKEv1, which Strata does not have"),
            false => Ok(()),
        }),
    },
    Rule {
        keys: &["mobike"],
        fate: Fate::To(|entry, connection| {
            if !entry.is_on() {
                connection.rows.push(Row::text("mobike", "off"));
            }
            Ok(())
        }),
    },
    Rule {
        keys: &["dpd_delay"],
        fate: Fate::To(|entry, to| timed(&entry.value, "liveness", LIVENESS, &mut to.rows)),
    },
    Rule {
        keys: &["rekey_time"],
        fate: Fate::To(|entry, to| timed(&entry.value, "ike_rekey", REKEY, &mut to.rows)),
    },
    Rule {
        keys: &["reauth_time"],
        fate: Fate::To(|entry, to| timed(&entry.value, "reauth", REAUTH, &mut to.rows)),
    },
    Rule {
        keys: &["ppk_id"],
        fate: Fate::To(|entry, connection| {
            connection.ppk = Some(entry.value.clone());
            Ok(())
        }),
    },
    Rule {
        keys: &["ppk_required"],
        fate: Fate::To(|entry, connection| {
            connection.is_ppk_required = entry.is_on();
            Ok(())
        }),
    },
    Rule {
        keys: &["unique"],
        fate: Fate::To(|entry, _| match entry.value.as_str() {
            "never" | "keep" => remark("a newer tunnel of a peer replaces the older one"),
            _ => Ok(()),
        }),
    },
    Rule {
        keys: &[
            "encap",
            "fragmentation",
            "send_certreq",
            "childless",
            "pull",
        ],
        fate: Fate::Settled,
    },
    Rule {
        keys: &[
            "over_time",
            "rand_time",
            "keyingtries",
            "dpd_timeout",
            "send_cert",
        ],
        fate: Fate::No(Weight::Remark, BY_ITSELF),
    },
    Rule {
        keys: &["dscp"],
        fate: Fate::No(
            Weight::Remark,
            "the class of service of IKE messages; see `dscp`",
        ),
    },
    Rule {
        keys: &["ocsp"],
        fate: Fate::No(
            Weight::Lost,
            "Strata has no OCSP: use revocation lists, `crl` of [node]",
        ),
    },
    Rule {
        keys: &["if_id_in", "if_id_out"],
        fate: Fate::No(Weight::Lost, KERNEL),
    },
    Rule {
        keys: &["mediat*"],
        fate: Fate::No(
            Weight::Refused,
            "the mediation extension, which Strata does not have",
        ),
    },
];

/// Keys that both ends have.
const LOCAL: &[Rule<Connection>] = &[
    Rule {
        keys: &["id"],
        fate: Fate::To(|entry, to| set(&mut to.ours.id, entry)),
    },
    Rule {
        keys: &["auth"],
        fate: Fate::To(|entry, to| to.ours.authenticate(&entry.value)),
    },
    Rule {
        keys: &["certs"],
        fate: Fate::To(|entry, to| put(&mut to.ours.certificates, entry.files("x509"))),
    },
    Rule {
        keys: &["pubkeys"],
        fate: Fate::To(|entry, to| put(&mut to.ours.public_keys, entry.files("pubkey"))),
    },
    Rule {
        keys: &["round"],
        fate: Fate::Settled,
    },
    Rule {
        keys: &["eap_id", "aaa_id"],
        fate: Fate::No(Weight::Refused, "Strata has no EAP: use certificates"),
    },
    Rule {
        keys: &["xauth*"],
        fate: Fate::No(Weight::Refused, IKEV1),
    },
];

const REMOTE: &[Rule<Connection>] = &[
    Rule {
        keys: &["id"],
        fate: Fate::To(|entry, to| set(&mut to.theirs.id, entry)),
    },
    Rule {
        keys: &["auth"],
        fate: Fate::To(|entry, to| to.theirs.authenticate(&entry.value)),
    },
    Rule {
        keys: &["certs"],
        fate: Fate::No(
            Weight::Lost,
            "Strata accepts any certificate of the CA for the `id`; `pubkey` accepts one key only",
        ),
    },
    Rule {
        keys: &["cacerts"],
        fate: Fate::To(|entry, to| put(&mut to.theirs.authorities, entry.files("x509ca"))),
    },
    Rule {
        keys: &["pubkeys"],
        fate: Fate::To(|entry, to| put(&mut to.theirs.public_keys, entry.files("pubkey"))),
    },
    Rule {
        keys: &["revocation"],
        fate: Fate::To(|entry, _| match entry.value.as_str() {
            "strict" | "ifuri" => {
                lost("write `revocation = \"strict\"` in [node], and the lists in `crl`")
            }
            _ => Ok(()),
        }),
    },
    Rule {
        keys: &["round"],
        fate: Fate::Settled,
    },
    Rule {
        keys: &["groups", "cert_policy", "ca_id"],
        fate: Fate::No(
            Weight::Refused,
            "Strata does not limit peers by this attribute: write the `id` of each peer",
        ),
    },
    Rule {
        keys: &["eap_id"],
        fate: Fate::No(Weight::Refused, "Strata has no EAP: use certificates"),
    },
    Rule {
        keys: &["xauth*"],
        fate: Fate::No(Weight::Refused, IKEV1),
    },
];

/// Converts the elements of a list, and returns the first objection.
fn each(entry: &Entry, mut convert: impl FnMut(&str) -> Verdict) -> Verdict {
    let verdicts: Vec<_> = entry.list().map(&mut convert).collect();
    verdicts.into_iter().collect()
}

fn set(field: &mut Option<String>, entry: &Entry) -> Verdict {
    *field = Some(entry.value.clone());
    Ok(())
}

fn put(field: &mut Vec<String>, values: Vec<String>) -> Verdict {
    field.extend(values);
    Ok(())
}
