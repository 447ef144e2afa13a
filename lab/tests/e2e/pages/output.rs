//! Outputs on the pages, compared with those of programs.

/// Returns true if the output has these lines in this order. `...` stands for any text; empty lines
/// do not count.
pub fn has(output: &str, lines: &str) -> bool {
    let mut printed = output.lines();
    let mut lines = lines.lines().filter(|line| !line.is_empty());
    lines.all(|line| printed.any(|printed| fits(line, printed)))
}

fn fits(line: &str, printed: &str) -> bool {
    let mut parts = line.split("...");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = printed.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<_> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.split_once(*part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(*last)
}
