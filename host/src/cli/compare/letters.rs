//! Short names of the sides for the headings of a table, where folder names may be too long.

use std::collections::BTreeSet;

use veeksha_compare::{Comparison, SideLabels};

/// The letter of each side: `A` for the baseline, `B`, `C`, ... for the candidates.
///
/// Remarks refer to sides and runs by the names of their folders. A letter that is also the name of
/// a folder must therefore refer to that folder only: if it is the name of a side, that side has
/// the letter; if it is the name of a run, no side has it.
pub(super) struct Letters {
    /// Labels of the sides with their letters.
    letters: Vec<(String, String)>,
}

impl Letters {
    pub(super) fn of(comparison: &Comparison) -> Letters {
        let mut sides: Vec<&SideLabels> = vec![&comparison.baseline];
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for candidate in &comparison.candidates {
            if !sides.iter().any(|known| known.label == candidate.side.label) {
                sides.push(&candidate.side);
            }
            for side in [&candidate.baseline, &candidate.side] {
                names.insert(&side.label);
                names.extend(side.runs.iter().map(String::as_str));
            }
        }
        let mut free = (0..)
            .map(letter)
            .filter(|letter| !names.contains(letter.as_str()));
        let letters = sides.iter().filter_map(|side| {
            let letter = if is_letter(&side.label) {
                side.label.clone()
            } else {
                free.next()?
            };
            Some((side.label.clone(), letter))
        });
        Letters {
            letters: letters.collect(),
        }
    }

    /// Returns the letter of the side with this label.
    pub(super) fn letter(&self, label: &str) -> String {
        let mut letters = self.letters.iter();
        let known = letters.find(|(known, _)| known == label);
        known.map_or_else(|| label.to_owned(), |(_, letter)| letter.clone())
    }
}

fn letter(place: usize) -> String {
    u8::try_from(place)
        .ok()
        .and_then(|place| b'A'.checked_add(place))
        .filter(u8::is_ascii_uppercase)
        .map_or_else(|| format!("#{}", place + 1), |letter| char::from(letter).into())
}

fn is_letter(label: &str) -> bool {
    matches!(label.as_bytes(), [letter] if letter.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use veeksha_compare::{Options, RunData, Side, compare};

    use super::*;

    /// Returns the letters of sides with these labels and runs.
    fn letters(sides: &[(&str, &[&str])]) -> Vec<String> {
        let side = |(label, runs): &(&str, &[&str])| Side {
            label: (*label).to_owned(),
            runs: runs
                .iter()
                .map(|run| RunData {
                    label: (*run).to_owned(),
                    ..RunData::default()
                })
                .collect(),
        };
        let of_sides: Vec<Side> = sides.iter().map(side).collect();
        let comparison = compare(&of_sides, &[], &Options::default()).unwrap();
        let letters = Letters::of(&comparison);
        sides.iter().map(|(label, _)| letters.letter(label)).collect()
    }

    #[test]
    fn sides_have_letters_in_their_order() {
        assert_eq!(
            letters(&[("old", &["1"]), ("new", &["2"]), ("newer", &["3"])]),
            ["A", "B", "C"]
        );
        assert_eq!(letter(25), "Z");
        assert_eq!(letter(26), "#27");
        assert_eq!(letter(300), "#301");
    }

    #[test]
    fn a_letter_that_names_a_folder_stands_for_it() {
        assert_eq!(letters(&[("B", &["1"]), ("A", &["2"])]), ["B", "A"]);
        assert_eq!(letters(&[("B", &["1"]), ("new", &["2"])]), ["B", "A"]);
        assert_eq!(letters(&[("old", &["1"]), ("A", &["2"])]), ["B", "A"]);
        // The same applies to runs: those of `old` are named A and B.
        assert_eq!(letters(&[("old", &["A", "B"]), ("new", &["1"])]), ["C", "D"]);
    }
}
