//! The figures, each with the way it is taken.

mod chunk_cost;
mod cores;
mod dispatch;
mod evaluating;
mod first_chunk;
mod gaps;
mod instructions;
mod many_streams;
mod whole_run;

use crate::report::Row;
use crate::{BenchError, BenchOptions, Figure};

/// Rows, or the reason why there are none.
type Rows = Result<Vec<Row>, BenchError>;

/// Takes one figure, or several that come out of the same measurement.
type Take = fn(&BenchOptions) -> Rows;

/// In the order in which they are taken.
const MEASUREMENTS: [(&[Figure], Take); 12] = [
    (&[Figure::P1], chunk_cost::each_token),
    (&[Figure::P2], chunk_cost::whole_answers),
    (&[Figure::P3], instructions::take),
    (&[Figure::P4, Figure::P5], dispatch::take),
    (&[Figure::P6], first_chunk::take),
    (&[Figure::P7], gaps::take),
    (&[Figure::P8], many_streams::take),
    (&[Figure::P9], whole_run::start),
    (&[Figure::P10], whole_run::memory),
    (&[Figure::P11], whole_run::cost),
    (&[Figure::E1], evaluating::record),
    (&[Figure::E2], evaluating::live),
];

/// Takes the figures that are wanted. One that cannot be taken has a row that says why.
pub(crate) fn take(options: &BenchOptions, progress: &mut dyn FnMut(&str)) -> Vec<Row> {
    let mut rows = Vec::new();
    for (figures, take) in MEASUREMENTS {
        let wanted: Vec<Figure> = figures
            .iter()
            .copied()
            .filter(|figure| options.wants(*figure))
            .collect();
        if wanted.is_empty() {
            continue;
        }
        let names: Vec<String> = wanted
            .iter()
            .map(|figure| format!("{figure} {}", figure.title()))
            .collect();
        progress(&names.join(", "));
        match take(options) {
            Ok(taken) => rows.extend(taken.into_iter().filter(|row| wanted.contains(&row.figure))),
            Err(error) => rows.extend(
                wanted
                    .iter()
                    .map(|figure| Row::absent(*figure, figure.title(), error.to_string())),
            ),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_taken_once() {
        let taken: Vec<Figure> = MEASUREMENTS
            .iter()
            .flat_map(|(figures, _)| figures.iter().copied())
            .collect();
        assert_eq!(taken, Figure::ALL);
    }

    #[test]
    fn what_cannot_be_taken_says_why() {
        let options = BenchOptions {
            only: [Figure::P1, Figure::P9].into(),
            ..BenchOptions::new("/no/such/program".into())
        };
        let mut told = Vec::new();
        let rows = take(&options, &mut |line| told.push(line.to_owned()));
        assert_eq!(
            told,
            [
                "P1 CPU per chunk, one write per token",
                "P9 start to first request"
            ]
        );
        assert_eq!(rows.len(), 2);
        for row in rows {
            assert_eq!(row.here, None);
            assert!(row.note.expect("a reason").contains("/no/such/program"));
        }
    }
}
