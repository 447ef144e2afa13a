//! The strategy to choose, with its reason and its risk.

use super::analysis::Remaining;
use super::strategies;
use super::text::{limit_of_octets, limit_of_time, percent};
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
    /// Why.
    pub reason: String,
    /// What it costs if a cached entry is stolen.
    pub risk: Option<String>,
    /// Lines of the gateway's configuration.
    pub configuration: Vec<String>,
}

/// Chooses the strategy that saves most, if each doubling of the time for which secrets are in use
/// has to save a tenth of all exchanges. Of equal ones, that with the least data under a secret is
/// chosen. A data lifetime needs a log with octets.
pub(super) fn advise(all: &[Remaining], connections: u64, has_octets: bool) -> Advice {
    let usable = || all.iter().filter(|one| has_octets || one.data.is_none());
    let least = usable().map(|one| one.exchanges).min();
    let most_saved = connections - least.unwrap_or(connections).min(connections);
    if connections == 0 || (most_saved as f64) < WORTH * connections as f64 {
        let part = percent(most_saved as f64 / connections.max(1) as f64);
        return Advice {
            strategy: None,
            reason: format!(
                "No strategy saves more than {part} of the exchanges: users of this log seldom come \
                 back in time."
            ),
            risk: None,
            configuration: Vec::new(),
        };
    }
    let worth = |one: &Remaining| {
        let saved = (connections - one.exchanges) as f64 / connections as f64;
        saved - DOUBLING * (one.life.than.max(1) as f64).log2()
    };
    let chosen = usable().max_by(|a, b| {
        let worth = worth(a).total_cmp(&worth(b));
        worth.then(b.burden.cmp(&a.burden))
    });
    let Some(chosen) = chosen else {
        return advise(&[], 0, has_octets);
    };
    let saved = connections - chosen.exchanges;
    let part = percent(saved as f64 / connections as f64);
    let most = percent(most_saved as f64 / connections as f64);
    let mut reason = format!(
        "It saves {part} of the exchanges; no strategy saves more than {most}. To save more, secrets \
         would be in use for longer: another tenth of the exchanges would take more than twice the \
         time."
    );
    if chosen.evicted > 0 {
        let part = percent(chosen.evicted as f64 / connections as f64);
        reason += &format!(" Another {part} would be saved if the cache had more room.");
    }
    Advice {
        strategy: Some(chosen.name.clone()),
        reason,
        risk: Some(risk(chosen, has_octets)),
        configuration: strategies::lines(&chosen.strategy),
    }
}

fn risk(chosen: &Remaining, has_octets: bool) -> String {
    let clocked = strategies::span(chosen.strategy.clocked);
    let life = limit_of_time(chosen.life);
    let burden = match has_octets {
        true => format!(", for {}", limit_of_octets(chosen.burden)),
        false => String::new(),
    };
    format!(
        "Who steals an entry can impersonate its user until it ends, {clocked} after the full exchange \
         at the latest. 95 % of the secrets are in use for {life}{burden}. With `skid3-pfs`, a stolen \
         entry does not open what was captured."
    )
}

#[cfg(test)]
mod tests {
    use super::super::analysis::Limit;
    use super::*;
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
            burden: Limit {
                more: false,
                than: 1_000_000,
            },
            cpu_seconds: None,
            strategy,
        }
    }

    #[test]
    fn a_doubling_of_the_time_for_which_secrets_are_in_use_has_to_save_a_tenth() {
        let all = [
            remaining("clocked 2 h", 600, 2),
            remaining("clocked 4 h", 490, 4),
            remaining("clocked 8 h", 380, 8),
            remaining("clocked 12 h", 350, 12),
            remaining("clocked 30 d", 100, 720),
            remaining("data 50 MiB", 250, 8),
        ];
        let advice = advise(&all, CONNECTIONS, true);
        assert_eq!(advice.strategy.as_deref(), Some("data 50 MiB"));
        assert!(advice.reason.contains("75 %"), "{}", advice.reason);
        assert!(advice.risk.unwrap().contains("30 d"));
        // Without octets in the log, nothing is known of a data lifetime.
        let advice = advise(&all, CONNECTIONS, false);
        assert_eq!(advice.strategy.as_deref(), Some("clocked 8 h"));
        assert_eq!(advice.configuration, ["[sessions]", "clocked = \"8h\""]);
    }

    #[test]
    fn if_nobody_comes_back_resumption_stays_off() {
        let all = [remaining("clocked 30 d", 960, 720)];
        assert_eq!(advise(&all, CONNECTIONS, true).strategy, None);
        let all = [remaining("clocked 30 d", 940, 720)];
        assert!(advise(&all, CONNECTIONS, true).strategy.is_some());
        assert_eq!(advise(&[], 0, true).strategy, None);
    }
}
