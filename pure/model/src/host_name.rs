//! Names of hosts.

/// Longest name, in characters (RFC 1035 section 2.3.4), and its longest label.
const LONGEST: usize = 253;
const LONGEST_LABEL: usize = 63;

/// Returns true for a complete name of a host (RFC 1123 section 2.1), without the final dot. Digits
/// at the end are an IPv4 address with a fault. A name in other characters has a form in these
/// (`xn--`).
pub fn is_host_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let inside = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-';
        (1..=LONGEST_LABEL).contains(&label.len())
            && label.bytes().all(inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let Some((_, last)) = name.rsplit_once('.') else {
        return false;
    };
    let digits = last.bytes().all(|octet| octet.is_ascii_digit());
    name.len() <= LONGEST && name.split('.').all(is_label) && !digits
}
