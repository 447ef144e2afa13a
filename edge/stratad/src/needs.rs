//! Kernel settings and permissions that a role needs and that are missing now. Another program can
//! change settings while the daemon runs, and the kernel does not report that.

use config::{Config, Need, PathMtu, Setting};
use control::Trouble;
use os::{Error, Family, routes, sysctl};

/// Returns the vital needs that this host does not meet. One setting of a need is enough.
pub fn unmet(config: &Config) -> Vec<Trouble> {
    let vital = config.needs().into_iter().filter(|need| need.is_vital);
    let corrections = |setting: &Setting| corrections(setting, &config.tunnel.name);
    let unmet = vital.filter_map(|need| {
        let wrong: Vec<_> = need.settings.iter().map(corrections).collect();
        let is_unmet = wrong.iter().all(|wrong| !wrong.is_empty());
        is_unmet.then(|| trouble(&need, &wrong.concat()))
    });
    unmet.collect()
}

/// Returns a failure if reports of routers alone find path MTUs and this process hears none.
pub fn deaf(path_mtu: PathMtu, hears_reports: bool) -> Option<Trouble> {
    let is_deaf = path_mtu == PathMtu::Icmp && !hears_reports;
    is_deaf.then(|| Trouble {
        task: "path_mtu".to_owned(),
        remote: None,
        what: "`path_mtu = \"icmp\"` finds no path MTU: this process may not read ICMP".to_owned(),
        fix: "give stratad CAP_NET_RAW, or write path_mtu = \"probe\" in [tunnel]".to_owned(),
        seconds: None,
    })
}

/// Returns the settings that correct one; empty if it is as it should be.
fn corrections(setting: &Setting, device: &str) -> Vec<Setting> {
    let family = match setting {
        Setting::ForwardIpv4 => Family::V4,
        Setting::ForwardIpv6 => Family::V6,
        Setting::LooseReversePath { interface } => {
            let strict = routes::strict_among(interface, device).into_iter();
            let loose = strict.map(|interface| Setting::LooseReversePath { interface });
            return loose.collect();
        }
    };
    let is_off = matches!(
        sysctl::require_forwarding(family),
        Err(Error::NotForwarding { .. } | Error::NoFamily { .. })
    );
    is_off.then(|| setting.clone()).into_iter().collect()
}

fn trouble(need: &Need, corrections: &[Setting]) -> Trouble {
    let settings: Vec<_> = corrections.iter().map(Setting::to_string).collect();
    let (task, what) = match corrections.iter().all(Setting::is_forwarding) {
        true => ("forwarding", "this host does not forward packets"),
        false => ("reverse_path", "this host checks reverse paths strictly"),
    };
    Trouble {
        task: task.to_owned(),
        remote: None,
        what: format!("{what}: {}", need.why),
        fix: format!("sysctl -w {}", settings.join(" ")),
        seconds: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_depends_on_reports_misses_them() {
        for (path_mtu, hears, is_deaf) in [
            (PathMtu::Icmp, false, true),
            (PathMtu::Icmp, true, false),
            (PathMtu::Probe, false, false),
            (PathMtu::Off, false, false),
        ] {
            assert_eq!(deaf(path_mtu, hears).is_some(), is_deaf);
        }
    }
}
