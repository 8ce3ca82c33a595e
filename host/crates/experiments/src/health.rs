//! Runs of a sweep with failed health checks.

use veeksha_report::{RowMark, Section, SummaryRow};

use crate::failed_checks::failed_checks;
use crate::sweep::Sweep;

/// Maximum number of ranges of runs listed for one failed check.
const MAX_RANGES: usize = 12;

/// A check that failed in some runs.
struct FailedRuns<'o> {
    name: &'o str,
    finding: &'o str,
    /// Run numbers in order.
    runs: Vec<usize>,
}

impl Sweep {
    /// Returns a section with a row for each failed health check: its runs, and the first finding
    /// of the first one. `None` if none failed.
    pub fn health(&self) -> Option<Section> {
        let mut groups: Vec<FailedRuns<'_>> = Vec::new();
        let mut checked = 0;
        for cell in self.cells() {
            let Some(outcome) = &cell.outcome else { continue };
            checked += usize::from(!outcome.health_checks.is_null());
            for check in failed_checks(outcome) {
                match groups.iter_mut().find(|group| group.name == check.name) {
                    Some(group) => group.runs.push(cell.number),
                    None => groups.push(FailedRuns {
                        name: check.name,
                        finding: check.finding,
                        runs: vec![cell.number],
                    }),
                }
            }
        }
        let rows: Vec<SummaryRow> = groups.iter().map(|group| row(group, checked)).collect();
        (!rows.is_empty()).then(|| Section {
            title: "Health: runs that deviated from their scenarios".to_owned(),
            columns: Vec::new(),
            rows,
        })
    }
}

fn row(group: &FailedRuns<'_>, checked: usize) -> SummaryRow {
    let first = group.runs.first().copied().unwrap_or_default();
    let of_first = match group.finding {
        "" => String::new(),
        finding => format!("; run {first}: {finding}"),
    };
    SummaryRow {
        name: group.name.to_owned(),
        mark: RowMark::Warning,
        note: Some(format!(
            "{} of {checked} runs ({}){of_first}",
            group.runs.len(),
            ranges(&group.runs)
        )),
        ..SummaryRow::default()
    }
}

/// Formats run numbers as ranges, at most a fixed number of them: `1, 3 to 12, 14`.
fn ranges(runs: &[usize]) -> String {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for run in runs {
        match found.last_mut() {
            Some((_, last)) if *last + 1 == *run => *last = *run,
            _ => found.push((*run, *run)),
        }
    }
    let left: usize = found
        .iter()
        .skip(MAX_RANGES)
        .map(|(first, last)| last - first + 1)
        .sum();
    let shown = found.iter().take(MAX_RANGES).map(|stretch| match stretch {
        (first, last) if first == last => first.to_string(),
        (first, last) if first + 1 == *last => format!("{first}, {last}"),
        (first, last) => format!("{first} to {last}"),
    });
    let shown: Vec<String> = shown.collect();
    match left {
        0 => shown.join(", "),
        left => format!("{} and {left} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn formats_run_numbers_as_bounded_ranges() {
        assert_eq!(ranges(&[1, 3, 4, 6, 7, 8, 12]), "1, 3, 4, 6 to 8, 12");
        let every_other: Vec<usize> = (0..100).map(|number| 2 * number + 1).collect();
        assert_eq!(
            ranges(&every_other),
            "1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23 and 88 more"
        );
        let all: Vec<usize> = (1..=10_000).collect();
        assert_eq!(ranges(&all), "1 to 10000");
    }
}
