//! `strata leases`: a block per pool, a line per lease.

use super::status::addresses;
use crate::text::{Paint, clean, count, span};
use control::{Fill, Lease, Leases, Pool};
use std::fmt::Write;

/// Formats the answer. Writing to a `String` cannot fail.
pub fn show(leases: &Leases, paint: Paint) -> String {
    if leases.pools.is_empty() {
        return "no pool: add a [pool.NAME], and `pool = \"NAME\"` to the tables of peers\n"
            .to_owned();
    }
    let pools: Vec<_> = leases
        .pools
        .iter()
        .map(|pool| show_pool(pool, paint))
        .collect();
    pools.join("\n")
}

fn show_pool(pool: &Pool, paint: Paint) -> String {
    let mut text = String::new();
    let prefixes: Vec<_> = pool.prefixes.iter().map(|prefix| clean(prefix)).collect();
    let _ = writeln!(
        text,
        "pool {}  {}",
        paint.bold(&clean(&pool.name)),
        prefixes.join(", ")
    );
    for (family, fill) in [("IPv4", pool.ipv4), ("IPv6", pool.ipv6)] {
        if fill.size > 0 {
            let _ = writeln!(text, "  {family}      {}", show_fill(fill));
        }
    }
    for lease in &pool.leases {
        let (whose, what) = (clean(&lease.identity), addresses(&lease.addresses));
        let _ = writeln!(text, "  {whose}  {what}  {}", state(lease, paint));
    }
    text
}

fn show_fill(fill: Fill) -> String {
    let of = match fill.size {
        u64::MAX => "2^64 or more".to_owned(),
        size => count(size),
    };
    format!("{} of {of} leased", count(fill.lent))
}

fn state(lease: &Lease, paint: Paint) -> String {
    match (lease.in_use, lease.kept_seconds) {
        (true, _) => paint.good("in use"),
        (false, Some(left)) if left > 0 => format!("kept for {}", span(left)),
        (false, _) => "free if needed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::PLAIN;
    use super::*;

    #[test]
    fn whoever_has_an_address_has_a_line() {
        let lease = |identity: &str, last: u8, kept: Option<u64>| Lease {
            identity: identity.to_owned(),
            addresses: vec![[10, 9, 0, last].into()],
            in_use: kept.is_none(),
            kept_seconds: kept,
        };
        let office = Pool {
            name: "office".to_owned(),
            prefixes: vec!["10.9.0.0/24".to_owned(), "2001:db8:9::/64".to_owned()],
            ipv4: Fill { lent: 3, size: 254 },
            ipv6: Fill {
                lent: 0,
                size: u64::MAX,
            },
            leases: vec![
                lease("alice@example.net", 1, None),
                lease("bob\x1b.example.net", 2, Some(7380)),
                lease("carol.example.net", 3, Some(0)),
            ],
        };
        let pools = vec![office];
        let expected = "\
pool office  10.9.0.0/24, 2001:db8:9::/64
  IPv4      3 of 254 leased
  IPv6      0 of 2^64 or more leased
  alice@example.net  10.9.0.1  in use
  bob\\u{1b}.example.net  10.9.0.2  kept for 2 h 3 min
  carol.example.net  10.9.0.3  free if needed
";
        assert_eq!(show(&Leases { pools }, PLAIN), expected);
        assert!(show(&Leases::default(), PLAIN).contains("[pool.NAME]"));
    }
}
