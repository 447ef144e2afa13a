//! The figures and tables: one folder each, those of logs in one, and a line in [`ALL`].

mod common;
mod cost;
mod cycles;
mod czml_fig4;
mod czml_fig5;
mod czml_table1;
mod czml_table3;
mod e2e_fig4;
mod e2e_fig5;
mod e2e_fig6;
mod e2e_fig7;
mod e2e_overhead;
mod e2e_soft;
mod handover;
mod level;
mod mml_fig12;
mod mml_fig14;
mod mml_fig15;
mod mml_fig16;
mod mml_fig17;
mod mml_fig18;
mod mml_handoff_loss;
mod mml_table2;
mod mml_table3;
mod mml_table6;
mod mml_table7;
mod moves;
mod parameters;
mod snoop_modern;
mod vpn_fig1;
mod vpn_logs;
mod vpn_resume;
mod vpn_storm;

use crate::experiment::Exhibit;

/// All exhibits, in the order of the papers: mobile multi-layered IPsec, CZML-IPSec, VPN servers,
/// end-to-end security, our own.
pub const ALL: [Exhibit; 33] = [
    Exhibit::Table(&mml_table2::TABLE),
    Exhibit::Table(&mml_table3::TABLE),
    Exhibit::Table(&mml_handoff_loss::TABLE),
    Exhibit::Figure(&mml_fig12::FIGURE),
    Exhibit::Figure(&mml_fig14::FIGURE),
    Exhibit::Figure(&mml_fig15::FIGURE),
    Exhibit::Figure(&mml_fig16::FIGURE),
    Exhibit::Figure(&mml_fig17::FIGURE),
    Exhibit::Table(&mml_fig18::TABLE),
    Exhibit::Table(&mml_table6::TABLE),
    Exhibit::Table(&mml_table7::TABLE),
    Exhibit::Table(&czml_table1::TABLE),
    Exhibit::Table(&czml_table3::TABLE),
    Exhibit::Table(&czml_fig4::TABLE),
    Exhibit::Table(&czml_fig5::TABLE),
    Exhibit::Table(&vpn_fig1::TABLE),
    Exhibit::Table(&vpn_logs::TABLE2),
    Exhibit::Table(&vpn_logs::FIG2),
    Exhibit::Table(&vpn_logs::FIG3),
    Exhibit::Table(&vpn_logs::FIG4),
    Exhibit::Table(&vpn_logs::FIG5),
    Exhibit::Table(&vpn_logs::FIG6),
    Exhibit::Table(&vpn_logs::ESTABLISHED),
    Exhibit::Table(&vpn_logs::DATA),
    Exhibit::Table(&vpn_resume::TABLE),
    Exhibit::Table(&vpn_storm::TABLE),
    Exhibit::Table(&e2e_fig4::TABLE),
    Exhibit::Table(&e2e_fig5::TABLE),
    Exhibit::Table(&e2e_fig6::TABLE),
    Exhibit::Table(&e2e_fig7::TABLE),
    Exhibit::Table(&e2e_overhead::TABLE),
    Exhibit::Table(&e2e_soft::TABLE),
    Exhibit::Figure(&snoop_modern::FIGURE),
];

/// Returns the exhibit of this name.
pub fn find(name: &str) -> Option<Exhibit> {
    ALL.into_iter().find(|exhibit| exhibit.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::synthetic::{self, as_claimed};
    use crate::experiment::{
        Estimate, Figure, Finding, NETWORKS_PER_CORE, Plan, Raw, Verdict, unjudged,
    };
    use std::collections::BTreeSet;
    use std::time::Duration;

    fn figures() -> impl Iterator<Item = &'static Figure> {
        ALL.into_iter().filter_map(Exhibit::figure)
    }

    #[test]
    fn every_name_is_found_and_means_one_figure() {
        for exhibit in ALL {
            let found = find(exhibit.name()).map(Exhibit::title);
            assert_eq!(found, Some(exhibit.title()));
        }
    }

    #[test]
    fn the_cells_of_a_plan_differ() {
        for figure in figures() {
            let cells = figure.cells(&Plan::FULL);
            let keys: BTreeSet<_> = cells.iter().map(|cell| cell.key()).collect();
            assert_eq!(keys.len(), cells.len(), "{}", figure.name);
        }
    }

    #[test]
    fn a_full_plan_has_ten_pairs_of_everything_and_a_quick_one_is_a_part_of_it() {
        for figure in figures() {
            let full: BTreeSet<_> = (figure.conditions)(false).into_iter().collect();
            let cells = figure.cells(&Plan::FULL).len();
            assert_eq!(cells, 10 * full.len(), "{}", figure.name);
            let quick = (figure.conditions)(true);
            assert!(
                quick.iter().all(|part| full.contains(part)),
                "{}",
                figure.name
            );
        }
    }

    /// Returns all findings of a full run.
    fn findings(exhibit: Exhibit) -> Vec<Finding> {
        match exhibit {
            Exhibit::Figure(figure) => {
                let cells = figure.cells(&Plan::FULL).into_iter();
                let results = cells.map(|cell| synthetic::measured(&cell, as_claimed(&cell)));
                (figure.findings)(&results.collect())
            }
            Exhibit::Table(table) => (table.judge)(&Raw::default()).unwrap().findings,
        }
    }

    #[test]
    fn every_printed_claim_has_its_findings() {
        for exhibit in ALL {
            let claims = exhibit.claims();
            assert!(!claims.is_empty(), "{}", exhibit.name());
            let faults = unjudged(claims, &findings(exhibit));
            assert_eq!(faults, [""; 0], "{}", exhibit.name());
        }
    }

    #[test]
    fn a_finding_beside_the_paper_has_a_value_that_can_be_compared() {
        for exhibit in ALL {
            for finding in findings(exhibit) {
                let Some(paper) = finding.paper.clone() else {
                    continue;
                };
                let far = Estimate {
                    value: 1e9,
                    interval: None,
                    runs: 1,
                };
                let far = Finding {
                    measured: Some(far),
                    ..finding
                };
                let is_open = paper.starts_with("more than");
                assert_eq!(far.contradiction().is_none(), is_open, "{paper}");
            }
        }
    }

    /// Nothing that was not measured may hold.
    #[test]
    fn a_table_that_measured_nothing_fails() {
        for table in ALL.into_iter().filter_map(Exhibit::table) {
            for finding in (table.judge)(&Raw::default()).unwrap().findings {
                let name = (table.name, &finding.what);
                assert_eq!(finding.verdict, Verdict::Fails, "{name:?}");
            }
        }
    }

    #[test]
    fn quick_is_three_minutes_and_full_an_hour_on_two_processors() {
        for exhibit in ALL {
            let time = |plan: &Plan| exhibit.estimate(plan, 2 * NETWORKS_PER_CORE);
            let [quick, full] = [Plan::QUICK, Plan::FULL].map(|plan| time(&plan));
            assert!(
                quick <= Duration::from_secs(180),
                "{} {quick:?}",
                exhibit.name()
            );
            assert!(
                full <= Duration::from_secs(3600),
                "{} {full:?}",
                exhibit.name()
            );
        }
    }
}
