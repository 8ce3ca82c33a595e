//! Options of the bench.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::error::BenchError;

/// A benchmark of this project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Benchmark {
    /// Processor time per streamed chunk, one segment per chunk.
    P1,
    /// Processor time per chunk of responses that arrive in one piece.
    P2,
    /// Instructions per chunk.
    P3,
    /// Dispatch lateness.
    P4,
    /// Rate and arrivals of an open loop.
    P5,
    /// Error of the time to the first chunk.
    P6,
    /// Error of the gaps between chunks.
    P7,
    /// Ten thousand concurrent streams.
    P8,
    /// Time from process start to the first request.
    P9,
    /// Memory of a run.
    P10,
    /// Processor time of a whole run.
    P11,
    /// Memory and dispatch lateness with a hundred thousand live sessions.
    A1,
    /// Evaluation of a record of a million requests.
    E1,
    /// Dispatch lateness with the live page and interim results, and without.
    E2,
}

impl Benchmark {
    /// All benchmarks, in order.
    pub const ALL: [Benchmark; 14] = [
        Benchmark::P1,
        Benchmark::P2,
        Benchmark::P3,
        Benchmark::P4,
        Benchmark::P5,
        Benchmark::P6,
        Benchmark::P7,
        Benchmark::P8,
        Benchmark::P9,
        Benchmark::P10,
        Benchmark::P11,
        Benchmark::A1,
        Benchmark::E1,
        Benchmark::E2,
    ];

    /// A short description.
    pub fn title(self) -> &'static str {
        match self {
            Benchmark::P1 => "CPU per chunk, one write per token",
            Benchmark::P2 => "CPU per chunk, whole responses",
            Benchmark::P3 => "instructions per chunk",
            Benchmark::P4 => "dispatch lateness",
            Benchmark::P5 => "open-loop arrivals",
            Benchmark::P6 => "TTFC error",
            Benchmark::P7 => "chunk-gap error",
            Benchmark::P8 => "10,000 streams",
            Benchmark::P9 => "start to first request",
            Benchmark::P10 => "memory at 256 streams",
            Benchmark::P11 => "CPU of a whole run",
            Benchmark::A1 => "100,000 live sessions",
            Benchmark::E1 => "evaluating a million requests",
            Benchmark::E2 => "live results and dispatch",
        }
    }

    /// Parses a list such as `P1,p4`.
    ///
    /// # Errors
    /// [`BenchError::UnknownBenchmark`] with the unknown name.
    pub fn list(text: &str) -> Result<BTreeSet<Benchmark>, BenchError> {
        text.split(',')
            .map(str::trim)
            .map(|name| {
                Benchmark::ALL
                    .into_iter()
                    .find(|benchmark| benchmark.to_string().eq_ignore_ascii_case(name))
                    .ok_or_else(|| BenchError::UnknownBenchmark(name.to_owned()))
            })
            .collect()
    }
}

impl fmt::Display for Benchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The variant names are the benchmark names.
        fmt::Debug::fmt(self, f)
    }
}

impl Serialize for Benchmark {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Options of the bench.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchOptions {
    /// The executable that is started as a child process, with [`crate::CHILD_COMMAND`] as its only
    /// argument: usually the calling program itself.
    pub exe: PathBuf,
    /// The `veeksha-host` binary, for the benchmarks of whole runs (P4 to P6, P9 to P11, A1, E1,
    /// E2).
    pub program: PathBuf,
    /// Benchmarks to run; empty: all.
    pub only: BTreeSet<Benchmark>,
    /// Repetitions of each cost (P1, P2, P9, P11), alternating with the baseline; the median is
    /// reported. 1 to 99.
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

    pub(crate) fn wants(&self, benchmark: Benchmark) -> bool {
        self.only.is_empty() || self.only.contains(&benchmark)
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
    fn parses_lists_of_benchmarks() {
        let list = Benchmark::list("P11, p4,P4").expect("benchmarks");
        assert_eq!(
            list.into_iter().collect::<Vec<_>>(),
            [Benchmark::P4, Benchmark::P11]
        );
        for (text, name) in [("P12", "P12"), ("P1,,P2", ""), ("1", "1"), ("P1 P2", "P1 P2")] {
            let error = Benchmark::list(text).expect_err(text);
            assert!(
                matches!(error, BenchError::UnknownBenchmark(found) if found == name),
                "{text}"
            );
        }
    }

    #[test]
    fn runs_all_benchmarks_by_default() {
        let mut options = BenchOptions::new("x".into());
        assert!(
            Benchmark::ALL
                .into_iter()
                .all(|benchmark| options.wants(benchmark))
        );
        options.only = [Benchmark::P3].into();
        let wanted: Vec<Benchmark> = Benchmark::ALL
            .into_iter()
            .filter(|benchmark| options.wants(*benchmark))
            .collect();
        assert_eq!(wanted, [Benchmark::P3]);
    }

    #[test]
    fn checks_the_range_of_repeats() {
        for (repeats, good) in [(0, false), (1, true), (99, true), (100, false)] {
            let options = BenchOptions {
                repeats,
                ..BenchOptions::new("x".into())
            };
            assert_eq!(options.check().is_ok(), good, "{repeats}");
        }
    }
}
