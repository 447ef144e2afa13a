//! Times of strongSwan and Libreswan.

/// Returns the seconds of a time such as `4h`, `30m`, `3600s` or `3600`.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 5] = [
        ("s", 1),
        ("m", 60),
        ("h", 3600),
        ("d", 86_400),
        ("w", 604_800),
    ];
    let split = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let unit = match unit.trim() {
        "" => "s",
        unit => unit,
    };
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    digits.parse::<u64>().ok()?.checked_mul(*factor)
}

/// Returns a time in the syntax of our configuration.
pub(crate) fn written(seconds: u64) -> String {
    match seconds {
        s if s % 3600 == 0 => format!("{}h", s / 3600),
        s if s % 60 == 0 => format!("{}m", s / 60),
        s => format!("{s}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_all_units_are_read() {
        let texts = ["4h", "30m", "3600s", "3600", "1d", "90s", "5 m"];
        let ours = texts.map(|text| seconds(text).map(written).unwrap_or_default());
        assert_eq!(ours, ["4h", "30m", "1h", "1h", "24h", "90s", "5m"]);
        for text in [
            "",
            "h",
            "1x",
            "-1s",
            "99999999999999999999s",
            "9999999999999999999w",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
