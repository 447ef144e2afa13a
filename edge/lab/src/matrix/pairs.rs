//! Few rows in which any two levels of any two factors meet.

/// A factor's number and one of its levels.
type Level = (usize, usize);

/// Rows with a level for each factor, of which factor `f` has `widths[f]`, such that any two levels
/// that `meet` do so in some row; those that do not, in none. Always the same for the same
/// arguments.
///
/// Greedy: a row begins with two levels that have not met and takes of every other factor
/// the level that meets most of the row's others for the first time.
pub fn cover(widths: &[usize], meet: impl Fn(Level, Level) -> bool) -> Vec<Vec<usize>> {
    let mut left = all(widths, &meet);
    let mut rows = Vec::new();
    while let Some(&(a, b)) = left.first() {
        let mut row = vec![a, b];
        for factor in (0..widths.len()).filter(|factor| ![a.0, b.0].contains(factor)) {
            let levels = (0..widths[factor]).map(|level| (factor, level));
            let possible = levels.filter(|one| row.iter().all(|other| meet(*one, *other)));
            let met = |one: &Level| {
                row.iter()
                    .filter(|other| meets(&left, *one, **other))
                    .count()
            };
            // Of equals the first, so that every level is as old as its factor's table says.
            let best = possible.rev().max_by_key(met);
            row.extend(best);
        }
        left.retain(|(a, b)| !(row.contains(a) && row.contains(b)));
        row.sort_unstable();
        rows.push(row.into_iter().map(|(_, level)| level).collect());
    }
    rows
}

/// Every row there can be.
pub fn product(widths: &[usize], meet: impl Fn(Level, Level) -> bool) -> Vec<Vec<usize>> {
    let mut rows = vec![Vec::new()];
    for (factor, width) in widths.iter().enumerate() {
        let longer = |row: Vec<usize>| {
            (0..*width).filter_map({
                let meet = &meet;
                move |level| {
                    let mut others = row.iter().copied().enumerate();
                    let possible = others.all(|other| meet(other, (factor, level)));
                    possible.then(|| [row.as_slice(), &[level]].concat())
                }
            })
        };
        rows = rows.into_iter().flat_map(longer).collect();
    }
    rows
}

fn all(widths: &[usize], meet: impl Fn(Level, Level) -> bool) -> Vec<(Level, Level)> {
    let levels = |factor: usize| (0..widths[factor]).map(move |level| (factor, level));
    let mut pairs = Vec::new();
    for first in 0..widths.len() {
        for second in first + 1..widths.len() {
            let both = levels(first).flat_map(|a| levels(second).map(move |b| (a, b)));
            pairs.extend(both.filter(|(a, b)| meet(*a, *b)));
        }
    }
    pairs
}

fn meets(left: &[(Level, Level)], a: Level, b: Level) -> bool {
    left.contains(&(a.min(b), a.max(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(rows: &[Vec<usize>], a: Level, b: Level) -> bool {
        rows.iter().any(|row| row[a.0] == a.1 && row[b.0] == b.1)
    }

    #[test]
    fn any_two_levels_meet_in_few_rows() {
        let widths = [2, 2, 5, 4, 4, 2, 3, 4];
        let rows = cover(&widths, |_, _| true);
        for (a, b) in all(&widths, |_, _| true) {
            assert!(met(&rows, a, b), "{a:?} and {b:?} never meet");
        }
        assert!(rows.len() <= 27, "{} rows; 20 is the least", rows.len());
        assert_eq!(product(&widths, |_, _| true).len(), 7680);
    }

    #[test]
    fn what_may_not_meet_does_not_and_all_else_does() {
        let widths = [2, 3, 3];
        let meet = |a: Level, b: Level| [a, b] != [(0, 0), (1, 2)];
        let rows = cover(&widths, meet);
        assert!(!met(&rows, (0, 0), (1, 2)) && met(&rows, (0, 1), (1, 2)));
        for (a, b) in all(&widths, meet) {
            assert!(met(&rows, a, b), "{a:?} and {b:?} never meet");
        }
        assert_eq!(product(&widths, meet).len(), 18 - 3);
    }
}
