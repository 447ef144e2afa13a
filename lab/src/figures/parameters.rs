//! Parameters of "Mobile multi-layered IPsec" (tables 4 and 5, section 5.3), beside those of the
//! downloads here.

use crate::experiment::Parameter;

const fn same(name: &'static str, value: &'static str) -> Parameter {
    Parameter {
        name,
        paper: value,
        here: value,
        why: "",
    }
}

/// Parameters of the figures 12 and 14 to 17.
pub(super) const TABLE_4: &[Parameter] = &[
    Parameter {
        name: "largest segment",
        paper: "1460 octets, 1391 in the tunnel",
        here: "1460 octets, 1340 in the tunnel",
        why: "UDP, IVs and ICVs; each segment has 12 octets of timestamps",
    },
    Parameter {
        name: "octets under way at most",
        paper: "65535 (send buffer)",
        here: "65535 (no window scaling)",
        why: "Linux counts more than octets in a send buffer; the limit is the same",
    },
    same("SNOOP: packets cached for a connection", "50"),
    same("SNOOP: connections", "64"),
    same("fast retransmit and fast recovery", "on"),
    Parameter {
        name: "selective acknowledgements",
        paper: "off",
        here: "off for Reno, on for CUBIC and BBR",
        why: "the paper has Reno only",
    },
    same("Karn's algorithm", "on"),
    Parameter {
        name: "SNOOP: retransmissions of a packet",
        paper: "4",
        here: "10",
        why: "no key sets it; at one error in 64 kbit, one packet in 7000 needs a fifth",
    },
    same("SNOOP: initial and least timeout", "100 ms"),
    same("SNOOP: persist timeout", "1 s"),
    same("SNOOP: garbage timeout", "10 s"),
    Parameter {
        name: "delay of the wired hop",
        paper: "100 ms (in each direction or both, it does not say)",
        here: "100 ms in each direction",
        why: "",
    },
    Parameter {
        name: "wireless hop",
        paper: "2 Mb/s",
        here: "2 Mb/s, 1 ms, a queue of 200 packets",
        why: "the paper gives no queue",
    },
    Parameter {
        name: "downloads of each condition",
        paper: "5 of 10 MB (figure 12: 5 MB)",
        here: "10 of 30 s, without slow start; 3 of 20 s with --quick",
        why: "where errors are many, 10 MB take minutes",
    },
    Parameter {
        name: "protection",
        paper: "3DES, authentication off",
        here: "AES-GCM",
        why: "3DES is obsolete, and unauthenticated packets can be forged",
    },
    Parameter {
        name: "first zone",
        paper: "40 octets",
        here: "the headers with all options",
        why: "40 octets cut the options of TCP",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Cell, Condition, Plan};
    use crate::scene::{FLOWS, LOSSY_RATE, PACKETS, Sender, Setup, WINDOW, WIRED_DELAY};

    fn here(name: &str) -> &'static str {
        let found = TABLE_4.iter().find(|parameter| parameter.name == name);
        found.unwrap().here
    }

    /// The page must not say anything else than what runs.
    #[test]
    fn the_parameters_are_those_that_run() {
        let snoop = pep::Config::default();
        let millis = |name: &str| {
            let (number, unit) = here(name).split_once(' ').unwrap();
            let factor = if unit.starts_with("ms") { 1 } else { 1000 };
            number.parse::<u128>().unwrap() * factor
        };
        assert_eq!(
            here("SNOOP: packets cached for a connection"),
            PACKETS.to_string()
        );
        assert_eq!(here("SNOOP: connections"), FLOWS.to_string());
        let attempts = here("SNOOP: retransmissions of a packet");
        assert_eq!(attempts, snoop.attempts.to_string());
        let timeout = millis("SNOOP: initial and least timeout");
        assert_eq!(timeout, snoop.initial_rto.as_millis());
        assert_eq!(timeout, snoop.min_rto.as_millis());
        assert_eq!(millis("SNOOP: persist timeout"), snoop.persist.as_millis());
        assert_eq!(millis("SNOOP: garbage timeout"), snoop.garbage.as_millis());
        assert_eq!(millis("delay of the wired hop"), WIRED_DELAY.as_millis());
        let octets = here("octets under way at most");
        assert!(octets.starts_with(&WINDOW.to_string()));
        let rate = format!("{} Mb/s", LOSSY_RATE / 1_000_000);
        assert!(here("wireless hop").starts_with(&rate));
    }

    #[test]
    fn downloads_of_the_paper_run_with_its_sizes() {
        let condition = Condition::new(Setup::ZonedSnoop, Sender::Reno, 0);
        let config = |modern| {
            let condition = Condition {
                modern,
                ..condition
            };
            let settings = Cell::new(condition, 1, &Plan::QUICK).scene();
            assert_eq!(settings.modern, modern);
            settings.setup.node(&settings)
        };
        let sizes = "flows = 64\npackets = 50\n";
        assert!(config(false).contains(sizes));
        assert!(!config(true).contains("packets"));
    }

    /// A packet that needs a fifth retransmission was lost five times.
    #[test]
    fn a_fifth_retransmission_is_as_rare_as_the_page_says() {
        let bits = (1460.0 + 73.0) * 8.0;
        let lost = 1.0 - f64::exp(-bits / 65_536.0);
        let one_in = 1.0 / f64::powi(lost, 5);
        assert!((6_500.0..7_500.0).contains(&one_in), "{one_in}");
    }
}
