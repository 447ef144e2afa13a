//! `swanctl.conf` of strongSwan.

mod child;
mod connection;
mod grammar;
mod secrets;

use crate::assemble::assemble;
use crate::connection::{Content, Pool};
use crate::draft::{Draft, name};
use crate::fate::{Fate, Rule, Verdict, apply_all, lost, remark};
use crate::note::{Note, Weight};
use crate::section::Section;
use crate::sources::{File, Find, Sources};
use crate::{Unreadable, range};

/// Converts a `swanctl.conf` and the files that it includes. `folder` is that of strongSwan,
/// `/etc/swanctl`, in which the certificates and keys are that the configuration names.
///
/// # Errors
/// A file is no such file.
pub fn swanctl(file: &File, folder: &str, find: &Find<'_>) -> Result<Draft, Unreadable> {
    let mut sources = Sources::new(find);
    let content = read(file, &mut sources).map_err(|error| error.placed(&sources.names))?;
    Ok(Draft {
        files: sources.names,
        ..assemble(content, "swanctl.conf", folder)
    })
}

fn read(file: &File, sources: &mut Sources<'_>) -> Result<Content, Unreadable> {
    let file = grammar::read(file, sources)?;
    let mut content = Content::default();
    for section in &file.root.sections {
        match section.name.as_str() {
            "connections" => {
                let connections = section.sections.iter().map(connection::read);
                content.connections.extend(connections);
            }
            "secrets" => section
                .sections
                .iter()
                .for_each(|one| secrets::read(one, &mut content)),
            "pools" => content.pools.extend(section.sections.iter().map(pool)),
            "authorities" => authorities(section, &mut content),
            _ if file.is_base(&section.name) => {}
            other => {
                let why = "this section is not known here: look up what it protects";
                content
                    .notes
                    .push(Note::new(section.line, other, why, Weight::Lost));
            }
        }
    }
    content.notes.append(&mut sources.notes);
    let is_empty = content.connections.is_empty() && content.notes.is_empty();
    if is_empty && content.psks.is_empty() && content.pools.is_empty() {
        return Err(Unreadable::new(1, "there is no section `connections`"));
    }
    Ok(content)
}

fn authorities(section: &Section, content: &mut Content) {
    for authority in &section.sections {
        for entry in &authority.entries {
            let what = format!("{} = {}", entry.key, entry.value);
            let (why, weight) = match entry.key.as_str() {
                "cacert" | "file" => (
                    "a CA is in `ca` of [node], or of the peers whose `cacerts` name it",
                    Weight::Remark,
                ),
                _ => (
                    "Strata fetches no revocation status: name the list in `crl` of [node]",
                    Weight::Lost,
                ),
            };
            content
                .notes
                .push(Note::new(entry.line, &what, why, weight));
        }
    }
}

fn pool(section: &Section) -> Pool {
    let mut pool = Pool {
        name: name(&section.name),
        ..Pool::default()
    };
    apply_all(POOL, section, &mut pool);
    pool
}

/// What becomes of the keys of a pool.
const POOL: &[Rule<Pool>] = &[
    Rule {
        keys: &["addrs"],
        fate: Fate::To(|entry, pool| {
            extend(&mut pool.addresses, entry.list(), range::prefixes, |text| {
                lost(format!("`{text}` is no prefix or range of addresses"))
            })
        }),
    },
    Rule {
        keys: &["dns"],
        fate: Fate::To(|entry, pool| {
            let address = |text: &str| text.parse::<std::net::IpAddr>().ok();
            extend(
                &mut pool.dns,
                entry.list(),
                |text| address(text).map(|address| vec![address.to_string()]),
                |text| remark(format!("`{text}` is no address of a name server")),
            )
        }),
    },
    Rule {
        keys: &["subnet", "split_include"],
        fate: Fate::To(|entry, pool| {
            extend(&mut pool.subnets, entry.list(), range::prefixes, |text| {
                remark(format!("`{text}` is no prefix"))
            })
        }),
    },
    Rule {
        keys: &[
            "netmask",
            "nbns",
            "dhcp",
            "server",
            "split_exclude",
            "p_cscf*",
        ],
        fate: Fate::No(Weight::Remark, "a pool of Strata does not send this"),
    },
];

/// Adds converted elements to a list. The first one that cannot be converted is objected to.
fn extend<'a>(
    all: &mut Vec<String>,
    texts: impl Iterator<Item = &'a str>,
    convert: impl Fn(&str) -> Option<Vec<String>>,
    object: impl Fn(&str) -> Verdict,
) -> Verdict {
    let mut verdict = Ok(());
    for text in texts {
        match convert(text) {
            Some(converted) => all.extend(converted),
            None if verdict.is_ok() => verdict = object(text),
            None => {}
        }
    }
    verdict
}
