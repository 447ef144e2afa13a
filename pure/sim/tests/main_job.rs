//! The claims of *Mobile multi-layered IPsec*, figure 14, in virtual time: the gain of SNOOP over
//! zoned ESP at each error rate, and the cost of zones. Only SNOOP with a licence against bit
//! errors gains anything. The same seed results in the same run, octet for octet.

use sim::scene::{Configuration, Download, Measured};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

/// Bits per error, as in the figure.
const RATES: [u64; 8] = [
    8 << 20,
    4 << 20,
    2 << 20,
    1 << 20,
    512 << 10,
    256 << 10,
    128 << 10,
    64 << 10,
];
/// No errors at all.
const CLEAN: u64 = 0;

/// Goodput by SACK, error rate and configuration.
type Figure = BTreeMap<(bool, u64, Configuration), f64>;

fn download(configuration: Configuration, sack: bool, one_error_in: u64) -> Download {
    let mut download = Download {
        configuration,
        one_error_in,
        duration: Duration::from_secs(30),
        ..Download::default()
    };
    download.tcp.sack = sack;
    download
}

fn run(download: &Download) -> Measured {
    download
        .run()
        .unwrap_or_else(|why| panic!("{download:?}: {why}"))
}

/// The whole figure, computed once.
fn figure() -> &'static Figure {
    static FIGURE: OnceLock<Figure> = OnceLock::new();
    FIGURE.get_or_init(|| {
        let half = |sack| {
            let rates = RATES.into_iter().chain([CLEAN]);
            let points = rates.flat_map(|rate| Configuration::ALL.map(|way| (rate, way)));
            let goodput = |(rate, way)| run(&download(way, sack, rate)).goodput;
            points
                .map(|(rate, way)| ((sack, rate, way), goodput((rate, way))))
                .collect::<Figure>()
        };
        thread::scope(|scope| {
            let with = scope.spawn(|| half(true));
            let mut figure = half(false);
            figure.extend(with.join().expect("a run that fails fails the test"));
            figure
        })
    })
}

fn goodput(sack: bool, one_error_in: u64, configuration: Configuration) -> f64 {
    figure()[&(sack, one_error_in, configuration)]
}

/// Returns the mean over seeds at 1 error in 512 kbit, Reno without SACK. A single run is off by a
/// fifth.
fn mean(change: impl Fn(Download) -> Download) -> f64 {
    const SEEDS: u64 = 5;
    let seeded = |seed| {
        let download = Download {
            seed,
            ..Download::default()
        };
        run(&change(download)).goodput
    };
    (1..=SEEDS).map(seeded).sum::<f64>() / SEEDS as f64
}

/// Returns the means of the five, in the order of `Configuration::ALL`.
fn means() -> &'static [f64; 5] {
    static MEANS: OnceLock<[f64; 5]> = OnceLock::new();
    MEANS.get_or_init(|| {
        Configuration::ALL.map(|configuration| {
            mean(|download| Download {
                configuration,
                ..download
            })
        })
    })
}

/// Measurements of `strata-lab demo` with kernel TCP: means of seeds 1 to 5, 45 s each.
#[test]
fn namespaces_and_simulation_agree_within_15_percent() {
    const NAMESPACES: [f64; 5] = [395_600.0, 1_600_000.0, 348_000.0, 362_400.0, 1_478_600.0];
    for (way, (ours, theirs)) in Configuration::ALL
        .iter()
        .zip(means().iter().zip(NAMESPACES))
    {
        let off = ours / theirs - 1.0;
        assert!(
            off.abs() < 0.15,
            "{way:?}: {ours:.0} here, {theirs:.0} there"
        );
    }
}

#[test]
fn zones_cost_little_where_nothing_is_lost() {
    for sack in [false, true] {
        let clean = |way| goodput(sack, CLEAN, way);
        assert!(clean(Configuration::Zoned) >= 0.95 * clean(Configuration::Ipsec));
        assert!(clean(Configuration::Zoned) >= 0.90 * clean(Configuration::None));
    }
}

#[test]
fn snoop_over_zones_beats_plain_tcp_at_every_rate_from_one_error_in_4_mbit() {
    for (sack, rate) in [false, true]
        .into_iter()
        .flat_map(|sack| RATES.map(|rate| (sack, rate)))
    {
        let point = |way| goodput(sack, rate, way);
        let (none, zoned) = (point(Configuration::None), point(Configuration::Zoned));
        let (snoop, both) = (
            point(Configuration::Snoop),
            point(Configuration::ZonedSnoop),
        );
        let story = format!("SACK {sack}, 1 in {rate}: {none}, {snoop}; zoned {zoned}, {both}");
        assert!(snoop > none && both > zoned, "{story}");
        assert!(both > none || rate > 4 << 20, "{story}");
    }
}

#[test]
fn the_gain_grows_with_the_errors_to_more_than_three_times() {
    for sack in [false, true] {
        let gain = |rate| {
            goodput(sack, rate, Configuration::Snoop) / goodput(sack, rate, Configuration::None)
        };
        assert!(gain(8 << 20) < gain(1 << 20));
        assert!(gain(1 << 20) < gain(256 << 10));
        assert!(gain(64 << 10) > 3.0);
    }
}

#[test]
fn at_one_error_in_512_kbit_snoop_makes_zoned_esp_three_and_a_half_times_as_fast() {
    let [_, _, _, without, with] = means();
    assert!(*with >= 3.5 * without, "{with} to {without}");
}

/// Negative control: without errors there is nothing to gain.
#[test]
fn without_errors_there_is_no_gain() {
    for sack in [false, true] {
        for (with, without) in [
            (Configuration::Snoop, Configuration::None),
            (Configuration::ZonedSnoop, Configuration::Zoned),
        ] {
            let gain = goodput(sack, CLEAN, with) / goodput(sack, CLEAN, without);
            assert!((0.99..1.01).contains(&gain), "{with:?}: {gain}");
        }
    }
}

/// Negative controls: the gain comes from SNOOP, and needs the licence.
#[test]
fn without_snoop_or_without_the_licence_there_is_no_gain() {
    let [.., zoned, _] = means();
    for (licence, snoop) in [(false, true), (true, false)] {
        let goodput = mean(|download| Download {
            licence,
            snoop,
            ..download
        });
        let gain = goodput / zoned;
        assert!(
            (0.7..1.4).contains(&gain),
            "licence {licence}, SNOOP {snoop}: {gain}"
        );
    }
}

#[test]
fn one_seed_gives_one_run_octet_for_octet_and_another_seed_another() {
    for configuration in Configuration::ALL {
        let run = |seed| {
            run(&Download {
                seed,
                duration: Duration::from_secs(5),
                ..download(configuration, true, 128 << 10)
            })
        };
        assert_eq!(run(7), run(7), "{configuration:?}");
        assert_ne!(run(7).digest, run(8).digest, "{configuration:?}");
    }
}
