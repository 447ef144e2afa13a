//! Kernel settings and permissions that a role needs and that are missing now. Another program can
//! change settings while the daemon runs, and the kernel does not report that.

use config::{Config, Need, PathMtu, Setting};
use control::Trouble;
use os::{Error, Family, sysctl};

/// Returns the vital needs of forwarding that this host does not meet. One setting is enough.
pub fn unmet(config: &Config) -> Vec<Trouble> {
    let vital = config.needs().into_iter().filter(|need| need.is_vital);
    vital
        .filter(|need| need.settings.iter().all(is_off))
        .map(|need| trouble(&need))
        .collect()
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

fn is_off(setting: &Setting) -> bool {
    let family = match setting {
        Setting::ForwardIpv4 => Family::V4,
        Setting::ForwardIpv6 => Family::V6,
        Setting::LooseReversePath { .. } => return false,
    };
    matches!(
        sysctl::require_forwarding(family),
        Err(Error::NotForwarding { .. } | Error::NoFamily { .. })
    )
}

fn trouble(need: &Need) -> Trouble {
    let settings: Vec<_> = need.settings.iter().map(Setting::to_string).collect();
    Trouble {
        task: "forwarding".to_owned(),
        remote: None,
        what: format!("this host does not forward packets: {}", need.why),
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
