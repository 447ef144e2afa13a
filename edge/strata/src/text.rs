//! Formatting of amounts for a terminal.

use std::time::Duration;
pub use terminal::{Paint, clean};

/// Formats a time span with its two largest units: `2 h 3 min`.
pub fn span(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let first = UNITS.iter().position(|&(size, _)| seconds >= size);
    let Some(first) = first else {
        return "0 s".to_owned();
    };
    let (size, name) = UNITS[first];
    let head = format!("{} {name}", seconds / size);
    match UNITS.get(first + 1) {
        Some((smaller, name)) if seconds % size / smaller > 0 => {
            format!("{head} {} {name}", seconds % size / smaller)
        }
        _ => head,
    }
}

/// Formats a short time: `12.3 ms`.
pub fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// Formats an amount of octets: `1.2 MiB`.
pub fn octets(octets: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if octets < 1024 {
        return format!("{octets} B");
    }
    let mut amount = octets as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would be printed as 1024.0.
    while amount >= 1023.95 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    format!("{amount:.1} {}", UNITS[unit])
}

/// Formats a rate of octets in bits, the unit of links: `1.2 Mbit/s`.
pub fn rate(octets_per_second: u64) -> String {
    const UNITS: [&str; 5] = ["kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "Pbit/s"];
    let bits = octets_per_second as f64 * 8.0;
    if bits < 1000.0 {
        return format!("{bits} bit/s");
    }
    let mut amount = bits / 1000.0;
    let mut unit = 0;
    // 999.95 would be printed as 1000.0.
    while amount >= 999.95 && unit + 1 < UNITS.len() {
        amount /= 1000.0;
        unit += 1;
    }
    format!("{amount:.1} {}", UNITS[unit])
}

/// Formats a number with commas: `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of things: `1 packet`, `2 packets`.
pub fn plural(number: u64, thing: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {thing}{s}", count(number))
}

/// Formats octets as hexadecimal digits.
pub fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_at_most_two_units() {
        let texts = [0, 59, 60, 61, 3599, 3600, 7380, 86_400, 90_061].map(span);
        let expected = [
            "0 s",
            "59 s",
            "1 min",
            "1 min 1 s",
            "59 min 59 s",
            "1 h",
            "2 h 3 min",
            "1 d",
            "1 d 1 h",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn amounts_have_three_or_four_digits() {
        let texts = [
            0,
            1023,
            1024,
            1536,
            (1 << 20) - 1,
            1 << 20,
            5 << 30,
            u64::MAX,
        ]
        .map(octets);
        let expected = [
            "0 B",
            "1023 B",
            "1.0 KiB",
            "1.5 KiB",
            "1.0 MiB",
            "1.0 MiB",
            "5.0 GiB",
            "16384.0 PiB",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn rates_are_in_bits() {
        let texts = [0, 124, 125, 124_993, 124_994, 1_250_000_000, u64::MAX].map(rate);
        let expected = [
            "0 bit/s",
            "992 bit/s",
            "1.0 kbit/s",
            "999.9 kbit/s",
            "1.0 Mbit/s",
            "10.0 Gbit/s",
            "147574.0 Pbit/s",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn numbers_have_commas() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(plural(1, "packet"), "1 packet");
        assert_eq!(plural(2000, "packet"), "2,000 packets");
    }
}
