//! Lists of errors that are bounded: the most frequent kinds, and the number of the others.

use std::fmt::Display;

/// Number of kinds that are listed.
pub(crate) const LISTED_KINDS: usize = 20;

/// Formats the first kinds, and counts the others: `and 3 more kinds of samples left out`.
pub(crate) fn lines<T: Display>(kinds: &[T], noun: &str) -> Vec<String> {
    let mut lines: Vec<String> = kinds.iter().take(LISTED_KINDS).map(T::to_string).collect();
    if kinds.len() > LISTED_KINDS {
        lines.push(format!("and {} more {noun}", kinds.len() - LISTED_KINDS));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_twenty_kinds_and_counts_the_others() {
        let kinds: Vec<u32> = (0..23).collect();
        let listed = lines(&kinds, "kinds");
        assert_eq!((listed.len(), listed[20].as_str()), (21, "and 3 more kinds"));
        assert_eq!(lines(&kinds[..20], "kinds").len(), 20);
    }
}
