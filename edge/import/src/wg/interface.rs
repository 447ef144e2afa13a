//! What becomes of the keys of `[Interface]`.

use super::key::key;
use crate::draft::{Row, Table};
use crate::fate::{Fate, Noted, Rule, lost, remark};
use crate::note::{Note, Weight};
use std::net::IpAddr;
use zeroize::Zeroizing;

/// The table `[Interface]`.
#[derive(Default)]
pub(super) struct Interface {
    pub(super) notes: Vec<Note>,
    pub(super) private: Option<Zeroizing<Vec<u8>>>,
    /// Inner addresses with prefix lengths.
    addresses: Vec<String>,
    dns: Vec<String>,
    rows: Vec<Row>,
}

impl Noted for Interface {
    fn notes(&mut self) -> &mut Vec<Note> {
        &mut self.notes
    }
}

impl Interface {
    /// Returns the table of the tunnel device, if it has a row.
    pub(super) fn table(&self) -> Option<Table> {
        let list = |key, values: &[String]| Row::list(key, values.iter().map(String::as_str));
        let mut rows = Vec::new();
        if !self.addresses.is_empty() {
            rows.push(list("addresses", &self.addresses));
        }
        if !self.dns.is_empty() {
            rows.push(list("dns", &self.dns));
        }
        rows.extend(self.rows.iter().cloned());
        (!rows.is_empty()).then(|| Table::new("[tunnel]".to_owned(), rows))
    }
}

pub(super) const RULES: &[Rule<Interface>] = &[
    Rule {
        keys: &["PrivateKey"],
        fate: Fate::To(|entry, interface| {
            interface.private = key(&entry.value);
            Ok(())
        }),
    },
    Rule {
        keys: &["Address"],
        fate: Fate::To(|entry, interface| {
            for text in entry.list() {
                let whole = match text.parse::<IpAddr>() {
                    Ok(address) => crate::range::host(address),
                    Err(_) => text.to_owned(),
                };
                if whole.parse::<config::Prefix>().is_err() {
                    return lost(format!("`{text}` is no address"));
                }
                interface.addresses.push(whole);
            }
            Ok(())
        }),
    },
    Rule {
        keys: &["DNS"],
        fate: Fate::To(|entry, interface| {
            let (servers, domains): (Vec<_>, Vec<_>) = entry
                .list()
                .partition(|text| text.parse::<IpAddr>().is_ok());
            interface.dns.extend(servers.into_iter().map(str::to_owned));
            match domains.is_empty() {
                true => Ok(()),
                false => remark("Strata sets name servers, and no search domains"),
            }
        }),
    },
    Rule {
        keys: &["MTU"],
        fate: Fate::To(|entry, interface| match entry.value.parse::<u16>() {
            Ok(mtu) if (1280..=9000).contains(&mtu) => {
                interface.rows.push(Row::plain("mtu", mtu));
                Ok(())
            }
            _ => remark("`mtu` is 1280 to 9000 in Strata; the default applies"),
        }),
    },
    Rule {
        keys: &["ListenPort"],
        fate: Fate::No(
            Weight::Remark,
            "IKE and ESP use the UDP ports 500 and 4500: open them in the firewall; `nat` of [listen] changes the second",
        ),
    },
    Rule {
        keys: &["FwMark", "SaveConfig"],
        fate: Fate::No(
            Weight::Remark,
            "Strata has its own marks and changes no file",
        ),
    },
    Rule {
        keys: &["Table"],
        fate: Fate::No(
            Weight::Lost,
            "Strata sets the routes to `remote` itself: name there only what belongs in the tunnel",
        ),
    },
    Rule {
        keys: &["PreUp", "PostUp", "PreDown", "PostDown"],
        fate: Fate::No(
            Weight::Lost,
            "Strata runs no scripts: set firewall rules for the device strata0 once; see also `leak`",
        ),
    },
];
