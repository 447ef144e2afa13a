//! A small set of rows in which any two values of any two factors occur together.

/// A factor's number and one of its values.
type Value = (usize, usize);

/// Returns rows with a value for each factor, such that any two values of two factors occur
/// together in some row. Factor `f` has `widths[f]` values. The result is deterministic.
///
/// Greedy: a row starts with two values that have not occurred together yet. From every other
/// factor it takes the value that completes the most new pairs with the values in the row.
pub fn cover(widths: &[usize]) -> Vec<Vec<usize>> {
    let mut left = all(widths);
    let mut rows = Vec::new();
    while let Some(&(a, b)) = left.first() {
        let mut row = vec![a, b];
        for factor in (0..widths.len()).filter(|factor| ![a.0, b.0].contains(factor)) {
            let values = (0..widths[factor]).map(|value| (factor, value));
            let met = |one: &Value| {
                row.iter()
                    .filter(|other| meets(&left, *one, **other))
                    .count()
            };
            // Ties go to the first value in the order of the factor's table.
            let best = values.rev().max_by_key(met);
            row.extend(best);
        }
        left.retain(|(a, b)| !(row.contains(a) && row.contains(b)));
        row.sort_unstable();
        rows.push(row.into_iter().map(|(_, value)| value).collect());
    }
    rows
}

/// Returns every possible row.
pub fn product(widths: &[usize]) -> Vec<Vec<usize>> {
    widths.iter().fold(vec![Vec::new()], |rows, width| {
        let longer = |row: Vec<usize>| (0..*width).map(move |value| [&row[..], &[value]].concat());
        rows.into_iter().flat_map(longer).collect()
    })
}

fn all(widths: &[usize]) -> Vec<(Value, Value)> {
    let values = |factor: usize| (0..widths[factor]).map(move |value| (factor, value));
    let mut pairs = Vec::new();
    for first in 0..widths.len() {
        for second in first + 1..widths.len() {
            pairs.extend(values(first).flat_map(|a| values(second).map(move |b| (a, b))));
        }
    }
    pairs
}

fn meets(left: &[(Value, Value)], a: Value, b: Value) -> bool {
    left.contains(&(a.min(b), a.max(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_two_values_meet_in_few_rows() {
        let widths = [3, 2, 5, 4, 4, 2, 3, 4];
        let rows = cover(&widths);
        let met = |a: Value, b: Value| rows.iter().any(|row| row[a.0] == a.1 && row[b.0] == b.1);
        for (a, b) in all(&widths) {
            assert!(met(a, b), "{a:?} and {b:?} never meet");
        }
        assert!(rows.len() <= 30, "{} rows; 20 is the least", rows.len());
        assert_eq!(product(&widths).len(), 11_520);
    }
}
