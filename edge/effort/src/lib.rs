//! Limits for tests that could run for hours: random walks, operations, datagrams.
//!
//! By default, a test makes its first few runs, the same each time. With `STRATA_LONG=1`
//! (`./x test --long`), it makes all. `STRATA_WALKS=FIRST,COUNT` repeats certain runs of the test
//! named `walks`, such as a run that failed.

use std::ops::Range;

/// Returns the numbers of the runs to make: the first `few`, or `all` of them, or the range in the
/// environment variable named after `name`. Prints the range, so that the output of a test contains
/// its seeds.
///
/// # Panics If the variable is not `FIRST,COUNT`.
pub fn runs(name: &str, few: u64, all: u64) -> Range<u64> {
    let variable = format!("STRATA_{}", name.to_uppercase());
    let wanted = std::env::var(&variable).ok();
    let is_long = std::env::var_os("STRATA_LONG").is_some();
    let runs = range(
        &variable,
        wanted.as_deref(),
        if is_long { all } else { few },
    );
    println!("{name}: {} to {} of {all}", runs.start, runs.end);
    runs
}

/// Returns the length of [`runs`].
///
/// # Panics
/// As [`runs`].
pub fn count(name: &str, few: u64, all: u64) -> u64 {
    let runs = runs(name, few, all);
    runs.end - runs.start
}

fn range(variable: &str, wanted: Option<&str>, usual: u64) -> Range<u64> {
    let Some(wanted) = wanted else {
        return 0..usual;
    };
    let numbers = wanted.split_once(',').and_then(|(first, count)| {
        let (first, count): (u64, u64) = (first.parse().ok()?, count.parse().ok()?);
        Some(first..first.checked_add(count)?)
    });
    numbers.unwrap_or_else(|| panic!("{variable}={wanted}: write {variable}=FIRST,COUNT"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_chooses_other_runs() {
        assert_eq!(range("STRATA_WALKS", None, 300), 0..300);
        assert_eq!(range("STRATA_WALKS", Some("7,2"), 300), 7..9);
    }

    #[test]
    #[should_panic(expected = "write STRATA_WALKS=FIRST,COUNT")]
    fn a_variable_that_cannot_be_read_is_refused_with_its_form() {
        range("STRATA_WALKS", Some("20"), 300);
    }
}
