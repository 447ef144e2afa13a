//! Kernel settings, by their dotted names. Those under `net.` belong to the calling thread's
//! namespace ([`crate::NetNs::sysctl`] sets them in another).

use crate::{Error, Family};
use std::fs;
use std::path::Path;

/// Reads a setting.
pub fn get(name: &str) -> Result<String, Error> {
    fs::read_to_string(path(name))
        .map(|text| text.trim_end().to_owned())
        .map_err(Error::os(format!("reading the setting {name}")))
}

/// Changes a setting.
pub fn set(name: &str, value: &str) -> Result<(), Error> {
    fs::write(path(name), value).map_err(Error::os(format!("setting {name}={value}")))
}

/// Returns the address families of this kernel.
pub fn families() -> impl Iterator<Item = Family> {
    let has_v6 = Path::new("/proc/sys/net/ipv6").exists();
    Family::ALL
        .into_iter()
        .filter(move |family| *family == Family::V4 || has_v6)
}

/// Returns an error with its remedy unless this machine forwards packets of a family.
pub fn require_forwarding(family: Family) -> Result<(), Error> {
    let disabled = || get("net.ipv6.conf.all.disable_ipv6").is_ok_and(|value| value == "1");
    if !families().any(|known| known == family) || family == Family::V6 && disabled() {
        return Err(Error::NoFamily { family });
    }
    match get(family.forwarding_sysctl())?.as_str() {
        "0" => Err(Error::NotForwarding { family }),
        _ => Ok(()),
    }
}

/// Returns true if an interface drops IPv4 packets whose sender it would not answer through itself
/// (`rp_filter` 1). The stricter of the interface's own setting and that of `all` counts.
pub fn strict_reverse_path(interface: &str) -> Result<bool, Error> {
    let of = |name| get(&format!("net/ipv4/conf/{name}/rp_filter"));
    let (all, own) = (of("all")?, of(interface)?);
    Ok(all.max(own) == "1")
}

/// Returns the file of a setting. Dots become slashes, as in sysctl(8); a name that already has
/// slashes (because an interface has a dot in its name) is taken as it is.
fn path(name: &str) -> String {
    match name.contains('/') {
        true => format!("/proc/sys/{name}"),
        false => format!("/proc/sys/{}", name.replace('.', "/")),
    }
}
