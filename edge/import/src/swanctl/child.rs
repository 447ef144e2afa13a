//! What becomes of the keys of a child.

use crate::connection::{Action, Child, REKEY, timed};
use crate::draft::Row;
use crate::fate::{Fate, Rule, Verdict, apply_all, lost, refused, remark};
use crate::note::Weight;
use crate::proposal::For;
use crate::section::{Entry, Section};
use crate::selector::Selector;

const KERNEL: &str = "an option of the kernel's IPsec: Strata has its own data path and device";

/// Converts a child. Without selectors, it is for the addresses of both ends.
pub(super) fn read(section: &Section) -> Child {
    let mut child = Child {
        name: section.name.clone(),
        line: section.line,
        ..Child::default()
    };
    apply_all(CHILD, section, &mut child);
    for selectors in [&mut child.local, &mut child.remote] {
        if selectors.is_empty() {
            selectors.push(Selector::dynamic());
        }
    }
    child
}

const CHILD: &[Rule<Child>] = &[
    Rule {
        keys: &["local_ts"],
        fate: Fate::To(|entry, child| selectors(entry, &mut child.local)),
    },
    Rule {
        keys: &["remote_ts"],
        fate: Fate::To(|entry, child| selectors(entry, &mut child.remote)),
    },
    Rule {
        keys: &["esp_proposals"],
        fate: Fate::To(|entry, child| child.algorithms.add(&entry.value, For::Esp)),
    },
    Rule {
        keys: &["ah_proposals"],
        fate: Fate::No(
            Weight::Refused,
            "AH, which Strata does not have: use `esp_proposals`",
        ),
    },
    Rule {
        keys: &["mode"],
        fate: Fate::To(mode),
    },
    Rule {
        keys: &["start_action"],
        fate: Fate::To(|entry, child| start(&entry.value, child)),
    },
    Rule {
        keys: &["dpd_action", "close_action"],
        fate: Fate::To(|entry, child| match entry.value.as_str() {
            "start" | "restart" => start("start", child),
            _ => Ok(()),
        }),
    },
    Rule {
        keys: &["rekey_time"],
        fate: Fate::To(|entry, child| timed(&entry.value, "rekey", REKEY, &mut child.rows)),
    },
    Rule {
        keys: &["tfc_padding"],
        fate: Fate::To(|entry, child| match entry.value.as_str() {
            "0" => Ok(()),
            "mtu" => {
                child.rows.push(Row::text("tfc", "mtu"));
                Ok(())
            }
            _ => lost("packets are padded to the MTU or to a few lengths: see `tfc`"),
        }),
    },
    Rule {
        keys: &["copy_dscp"],
        fate: Fate::To(|entry, child| {
            if matches!(entry.value.as_str(), "out" | "yes") {
                child.rows.push(Row::text("dscp", "copy"));
            }
            Ok(())
        }),
    },
    Rule {
        keys: &["sha256_96"],
        fate: Fate::To(|entry, _| match entry.is_on() {
            true => refused("HMACs of 96 bits, which Strata does not have"),
            false => Ok(()),
        }),
    },
    Rule {
        keys: &["ipcomp"],
        fate: Fate::To(|entry, _| match entry.is_on() {
            true => remark("Strata does not compress packets"),
            false => Ok(()),
        }),
    },
    Rule {
        keys: &["updown"],
        fate: Fate::No(
            Weight::Lost,
            "Strata runs no scripts: set firewall rules for the device strata0 once",
        ),
    },
    Rule {
        keys: &["hostaccess", "policies_fwd_out"],
        fate: Fate::Settled,
    },
    Rule {
        keys: &[
            "life_time",
            "rand_time",
            "rekey_bytes",
            "rekey_packets",
            "life_bytes",
            "life_packets",
            "rand_bytes",
            "rand_packets",
            "replay_window",
            "per_cpu_sas",
        ],
        fate: Fate::No(Weight::Remark, "Strata chooses this by itself"),
    },
    Rule {
        keys: &["inactivity"],
        fate: Fate::No(Weight::Remark, "tunnels of Strata stay up without traffic"),
    },
    Rule {
        keys: &[
            "mark_*",
            "set_mark_*",
            "if_id_*",
            "label*",
            "policies",
            "interface",
        ],
        fate: Fate::No(Weight::Lost, KERNEL),
    },
    Rule {
        keys: &["hw_offload", "reqid", "priority", "copy_df", "copy_ecn"],
        fate: Fate::No(Weight::Remark, KERNEL),
    },
];

fn mode(entry: &Entry, child: &mut Child) -> Verdict {
    match entry.value.as_str() {
        "tunnel" => {}
        "transport" | "beet" => child.rows.push(Row::text("mode", &entry.value)),
        "pass" => child.action = Action::Bypass,
        "drop" => child.action = Action::Discard,
        _ => return refused("a mode that Strata does not have"),
    }
    Ok(())
}

/// Reads when a tunnel comes up.
pub(crate) fn start(value: &str, child: &mut Child) -> Verdict {
    let is = |word: &str| value.split(['|', ',']).any(|one| one.trim() == word);
    child.starts |= is("start") || is("trap");
    match is("trap") && !is("start") {
        true => remark(
            "the tunnel comes up at the start, not with the first packet; until then packets wait or are dropped, too",
        ),
        false => Ok(()),
    }
}

fn selectors(entry: &Entry, all: &mut Vec<Selector>) -> Verdict {
    for text in entry.list() {
        match Selector::read(text) {
            Ok(selector) => all.push(selector),
            Err(why) => return refused(why),
        }
    }
    Ok(())
}
