//! What the bench is asked for.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::BenchError;

/// One of the project's own figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Figure {
    /// Processor time per streamed chunk, each in a segment of its own.
    P1,
    /// The same, of answers that come in one piece.
    P2,
    /// Instructions per chunk.
    P3,
    /// Lateness of dispatches.
    P4,
    /// Rate and arrivals of an open loop.
    P5,
    /// Error of the time to the first chunk.
    P6,
    /// Error of the gaps between chunks.
    P7,
    /// Ten thousand streams at the same time.
    P8,
    /// From the start of the process to the first request.
    P9,
    /// Memory of a run.
    P10,
    /// Processor time of a whole run.
    P11,
    /// Evaluating the record of a million requests.
    E1,
    /// Lateness of dispatches while the page is served and interim figures are printed, and without.
    E2,
}

impl Figure {
    /// All of them, in order.
    pub const ALL: [Figure; 13] = [
        Figure::P1,
        Figure::P2,
        Figure::P3,
        Figure::P4,
        Figure::P5,
        Figure::P6,
        Figure::P7,
        Figure::P8,
        Figure::P9,
        Figure::P10,
        Figure::P11,
        Figure::E1,
        Figure::E2,
    ];

    /// What it is, in a few words.
    pub fn title(self) -> &'static str {
        match self {
            Figure::P1 => "CPU per chunk, one write per token",
            Figure::P2 => "CPU per chunk, whole answers",
            Figure::P3 => "instructions per chunk",
            Figure::P4 => "dispatch lateness",
            Figure::P5 => "open-loop arrivals",
            Figure::P6 => "TTFC error",
            Figure::P7 => "chunk-gap error",
            Figure::P8 => "10,000 streams",
            Figure::P9 => "start to first request",
            Figure::P10 => "memory at 256 streams",
            Figure::P11 => "CPU of a whole run",
            Figure::E1 => "evaluating a million requests",
            Figure::E2 => "live figures and dispatch",
        }
    }

    /// Reads a list such as `P1,p4`.
    ///
    /// # Errors
    /// [`BenchError::NoSuchFigure`] with the name that is none.
    pub fn list(text: &str) -> Result<BTreeSet<Figure>, BenchError> {
        text.split(',')
            .map(str::trim)
            .map(|name| {
                Figure::ALL
                    .into_iter()
                    .find(|figure| figure.to_string().eq_ignore_ascii_case(name))
                    .ok_or_else(|| BenchError::NoSuchFigure(name.to_owned()))
            })
            .collect()
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names and Rust names are the same.
        fmt::Debug::fmt(self, f)
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What the bench is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchOptions {
    /// The executable that is started as a child process, with [`crate::CHILD_COMMAND`] as its only
    /// argument: usually the calling program itself.
    pub exe: PathBuf,
    /// The `veeksha-host` binary, for the benchmarks of whole runs (P4 to P6, P9 to P11, E1, E2).
    pub program: PathBuf,
    /// Which figures are taken; empty: all.
    pub only: BTreeSet<Figure>,
    /// How often each cost (P1, P2, P9, P11) is measured, ours and the floor's in turn; the median counts. 1 to 99.
    pub repeats: u32,
}

impl BenchOptions {
    /// All benchmarks, each cost measured five times; `veeksha-host` lies next to `exe`.
    pub fn new(exe: PathBuf) -> Self {
        BenchOptions {
            program: exe.with_file_name("veeksha-host"),
            exe,
            only: BTreeSet::new(),
            repeats: 5,
        }
    }

    pub(crate) fn wants(&self, figure: Figure) -> bool {
        self.only.is_empty() || self.only.contains(&figure)
    }

    pub(crate) fn check(&self) -> Result<(), BenchError> {
        match self.repeats {
            1..=99 => Ok(()),
            repeats => Err(BenchError::Repeats(repeats)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_figures() {
        let list = Figure::list("P11, p4,P4").expect("figures");
        assert_eq!(list.into_iter().collect::<Vec<_>>(), [Figure::P4, Figure::P11]);
        for (text, name) in [("P12", "P12"), ("P1,,P2", ""), ("1", "1"), ("P1 P2", "P1 P2")] {
            let error = Figure::list(text).expect_err(text);
            assert!(
                matches!(error, BenchError::NoSuchFigure(found) if found == name),
                "{text}"
            );
        }
    }

    #[test]
    fn without_a_choice_all_are_wanted() {
        let mut options = BenchOptions::new("x".into());
        assert!(Figure::ALL.into_iter().all(|figure| options.wants(figure)));
        options.only = [Figure::P3].into();
        let wanted: Vec<Figure> = Figure::ALL
            .into_iter()
            .filter(|figure| options.wants(*figure))
            .collect();
        assert_eq!(wanted, [Figure::P3]);
    }

    #[test]
    fn repeats_have_bounds() {
        for (repeats, good) in [(0, false), (1, true), (99, true), (100, false)] {
            let options = BenchOptions {
                repeats,
                ..BenchOptions::new("x".into())
            };
            assert_eq!(options.check().is_ok(), good, "{repeats}");
        }
    }
}
