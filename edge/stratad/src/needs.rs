//! Kernel settings that a role needs and that are off now. Another program can change them while
//! the daemon runs, and the kernel does not report that.

use config::{Config, Need, Setting};
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
