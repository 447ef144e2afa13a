//! The strategy to choose, with its reason and its risk.

use super::analysis::Remaining;
use super::strategies;
use super::text::{limit_of_octets, limit_of_time, percent};
use logs::Summary;
use serde::Serialize;

/// Each doubling of the time for which secrets are in use must save this part of all exchanges.
const DOUBLING: f64 = 0.1;

/// Resumption is not worth its risk if it saves less than this part of all exchanges.
const WORTH: f64 = 0.05;

/// The strategy to choose.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Its name; `None`: leave resumption off.
    pub strategy: Option<String>,
    /// Reason of the choice.
    pub reason: String,
    /// Damage if a cached entry is stolen.
    pub risk: Option<String>,
    /// Lines of the gateway's configuration.
    pub configuration: Vec<String>,
}

/// Fewest connections from which something follows.
const FEW: u64 = 100;

/// Chooses the strategy that saves most, if each doubling of the time for which a secret is good
/// has to save a tenth of all exchanges. Of equal ones, that with the least data under a secret is
/// chosen, and then that whose entries end first.
pub(super) fn advise(all: &[Remaining], connections: u64, summary: &Summary) -> Advice {
    let ended = summary.durations.count();
    if connections < FEW {
        return off(format!(
            "{connections} connections are too few to choose a strategy."
        ));
    }
    if ended * 2 < connections {
        return off(
            "Most connections have no end in this log, so it does not show who could have resumed one."
                .to_owned(),
        );
    }
    let saved = |one: &Remaining| connections - one.exchanges.min(connections);
    let part = |saved: u64| saved as f64 / connections as f64;
    let most = all.iter().map(saved).max().unwrap_or_default();
    let worth = |one: &Remaining| {
        let life = one.life.than.max(1) as f64 * if one.life.more { 2.0 } else { 1.0 };
        part(saved(one)) - DOUBLING * life.log2()
    };
    let chosen = all.iter().max_by(|a, b| {
        let worth = worth(a).total_cmp(&worth(b));
        let data = worth.then(b.burden.cmp(&a.burden));
        data.then(b.clocked.cmp(&a.clocked))
    });
    let Some(chosen) = chosen.filter(|chosen| part(saved(chosen)) >= WORTH) else {
        let most = percent(part(most));
        return off(format!(
            "Strategies save {most} of the exchanges at most, and few within a short time: users of \
             this log seldom come back in time."
        ));
    };
    let its = percent(part(saved(chosen)));
    let mut reason = format!("It saves {its} of the exchanges.");
    if most > saved(chosen) {
        let most = percent(part(most));
        reason += &format!(
            " Others save up to {most}, but for another tenth of the exchanges a secret would be \
             good for more than twice the time."
        );
    }
    if chosen.evicted > 0 {
        let evicted = percent(part(chosen.evicted));
        reason +=
            &format!(" At least another {evicted} would be saved if the cache had more room.");
    }
    Advice {
        strategy: Some(chosen.name.clone()),
        reason,
        risk: Some(risk(chosen)),
        configuration: strategies::lines(&chosen.strategy),
    }
}

/// Advises against resumption.
const fn off(reason: String) -> Advice {
    Advice {
        strategy: None,
        reason,
        risk: None,
        configuration: Vec::new(),
    }
}

fn risk(chosen: &Remaining) -> String {
    let clocked = strategies::span(chosen.strategy.clocked);
    let burden = chosen.burden.map_or(String::new(), |burden| {
        format!(", with {} sent under it", limit_of_octets(burden))
    });
    format!(
        "Who steals an entry can impersonate its user until it ends, {clocked} after the full exchange \
         at the latest. 95 % of the secrets are good for {}{burden}. With `skid3-pfs`, a stolen entry \
         does not open what was captured.",
        limit_of_time(chosen.life)
    )
}

#[cfg(test)]
mod tests {
    use super::super::analysis::Limit;
    use super::*;
    use logs::Zone;
    use resumption::Strategy;

    const CONNECTIONS: u64 = 1000;

    fn remaining(name: &str, exchanges: u64, hours: u64) -> Remaining {
        let all = strategies::all();
        let named = |strategy: &&Strategy| strategies::name(strategy) == name;
        let strategy = *all.iter().find(named).expect("a strategy");
        Remaining {
            name: name.to_owned(),
            clocked: strategy.clocked.as_secs(),
            established: strategy.established.map(|time| time.as_secs()),
            data: strategy.data,
            exchanges,
            share: exchanges as f64 / CONNECTIONS as f64,
            evicted: 0,
            most_entries: 1,
            entries: Vec::new(),
            life: Limit {
                more: false,
                than: hours * 3600,
            },
            burden: None,
            cpu_seconds: None,
            strategy,
        }
    }

    /// A log of which this many connections have an end.
    fn log(ended: u64) -> Summary {
        let mut summary = Summary::new(Zone::UTC, 1);
        (0..ended).for_each(|_| summary.durations.add(60));
        summary
    }

    #[test]
    fn a_doubling_of_the_time_for_which_a_secret_is_good_has_to_save_a_tenth() {
        let mut all = vec![
            remaining("clocked 2 h", 600, 2),
            remaining("clocked 4 h", 490, 4),
            remaining("clocked 8 h", 380, 8),
            remaining("clocked 12 h", 350, 12),
            remaining("clocked 30 d", 100, 720),
        ];
        let advice = advise(&all, CONNECTIONS, &log(1000));
        assert_eq!(advice.strategy.as_deref(), Some("clocked 8 h"));
        assert!(advice.reason.contains("62 %") && advice.reason.contains("90 %"));
        assert!(advice.risk.unwrap().contains("8 h"));
        assert_eq!(advice.configuration, ["[sessions]", "clocked = \"8h\""]);
        // Of those that save the same, the one that ends first; and no word of more.
        all.truncate(3);
        all.push(remaining("clocked 7 d", 380, 8));
        let advice = advise(&all, CONNECTIONS, &log(1000));
        assert_eq!(advice.strategy.as_deref(), Some("clocked 8 h"));
        assert_eq!(advice.reason, "It saves 62 % of the exchanges.");
    }

    #[test]
    fn if_nothing_follows_resumption_stays_off_and_the_reason_is_said() {
        let reason = |left: u64, connections: u64, ended: u64| {
            let advice = advise(
                &[remaining("clocked 8 h", left, 8)],
                connections,
                &log(ended),
            );
            assert_eq!((advice.strategy, advice.risk), (None, None));
            advice.reason
        };
        assert!(reason(960, 1000, 1000).contains("seldom come back"));
        assert!(reason(100, 1000, 400).contains("no end in this log"));
        assert!(reason(1, 99, 99).contains("too few"));
        let all = [remaining("clocked 8 h", 940, 8)];
        assert!(advise(&all, 1000, &log(1000)).strategy.is_some());
    }
}
