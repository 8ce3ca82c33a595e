//! The report: measurements next to their goals and the baseline.

use std::fmt::Write as _;

use serde::Serialize;
use veeksha_machine::Facts;

use crate::options::Benchmark;

/// The results of one bench.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The machine.
    pub machine: Facts,
    /// The measurements, in order.
    pub rows: Vec<Measurement>,
    /// Duration of the bench, in seconds.
    pub seconds: f64,
}

/// One measurement, or the reason why it is missing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// The benchmark.
    pub benchmark: Benchmark,
    /// The measured quantity.
    pub what: String,
    /// Unit of every number in the row.
    pub unit: &'static str,
    /// The measured value; `None`: not measured, see the note.
    pub here: Option<f64>,
    /// Minimum and maximum of the repeats, of which `here` is the median.
    pub spread: Option<[f64; 2]>,
    /// The baseline client's value, measured alternately.
    pub baseline: Option<f64>,
    /// The goal.
    pub goal: Option<Goal>,
    /// The status of the goal.
    pub status: GoalStatus,
    /// Remarks.
    pub note: Option<String>,
}

/// A goal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// A bound in the row's unit.
    pub bound: BenchmarkBound,
    /// Additional bound: a multiple of the baseline.
    pub times_baseline: Option<f64>,
}

/// A bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchmarkBound {
    /// Smaller is better.
    AtMost(f64),
    /// Larger is better.
    AtLeast(f64),
}

/// Status of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalStatus {
    /// The goal was met.
    Met,
    /// The goal was missed in this measurement.
    Missed,
    /// Nothing was measured.
    NotMeasured,
    /// No goal: the number explains others.
    NoGoal,
}

impl Measurement {
    /// A measured value without a goal.
    pub(crate) fn of(benchmark: Benchmark, what: impl Into<String>, unit: &'static str, here: f64) -> Self {
        Measurement {
            benchmark,
            what: what.into(),
            unit,
            here: Some(here),
            spread: None,
            baseline: None,
            goal: None,
            status: GoalStatus::NoGoal,
            note: None,
        }
    }

    /// The median of repeats and their spread.
    pub(crate) fn of_repeats(
        benchmark: Benchmark,
        what: impl Into<String>,
        unit: &'static str,
        repeats: &[f64],
    ) -> Self {
        let mut sorted = repeats.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        match (
            sorted.first(),
            sorted.last(),
            veeksha_stats::percentile(&sorted, 0.5),
        ) {
            (Some(least), Some(most), Some(median)) => Measurement {
                spread: (sorted.len() > 1).then_some([*least, *most]),
                ..Measurement::of(benchmark, what, unit, median)
            },
            _ => Measurement::absent(benchmark, what, "nothing was measured"),
        }
    }

    /// A missing value, with the reason.
    pub(crate) fn absent(benchmark: Benchmark, what: impl Into<String>, why: impl Into<String>) -> Self {
        Measurement {
            here: None,
            status: GoalStatus::NotMeasured,
            note: Some(why.into()),
            ..Measurement::of(benchmark, what, "", 0.0)
        }
    }

    pub(crate) fn baseline(mut self, baseline: Option<f64>) -> Self {
        self.baseline = baseline;
        self.with_status()
    }

    pub(crate) fn at_most(self, bound: f64) -> Self {
        self.with(BenchmarkBound::AtMost(bound))
    }

    pub(crate) fn at_least(self, bound: f64) -> Self {
        self.with(BenchmarkBound::AtLeast(bound))
    }

    fn with(mut self, bound: BenchmarkBound) -> Self {
        let times_baseline = self.goal.and_then(|goal| goal.times_baseline);
        self.goal = Some(Goal {
            bound,
            times_baseline,
        });
        self.with_status()
    }

    /// Adds a second bound: a multiple of the baseline.
    pub(crate) fn times_baseline(mut self, times: f64) -> Self {
        if let Some(goal) = &mut self.goal {
            goal.times_baseline = Some(times);
        }
        self.with_status()
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        let note = note.into();
        self.note = Some(match self.note.take() {
            Some(before) => format!("{before}; {note}"),
            None => note,
        });
        self
    }

    fn with_status(mut self) -> Self {
        self.status = match (self.here, self.goal) {
            (None, _) => GoalStatus::NotMeasured,
            (Some(_), None) => GoalStatus::NoGoal,
            (Some(here), Some(goal)) => {
                let within = match goal.bound {
                    BenchmarkBound::AtMost(bound) => here <= bound,
                    BenchmarkBound::AtLeast(bound) => here >= bound,
                };
                let within_ratio = match (goal.times_baseline, self.baseline) {
                    (Some(times), Some(baseline)) => here <= times * baseline,
                    _ => true,
                };
                if within && within_ratio {
                    GoalStatus::Met
                } else {
                    GoalStatus::Missed
                }
            }
        };
        self
    }
}

impl Report {
    /// Formats the report as a terminal table, with notes below.
    pub fn table(&self) -> String {
        let mut cells = vec![["", "", "here", "baseline", "goal", ""].map(str::to_owned)];
        let mut notes: Vec<String> = Vec::new();
        for row in &self.rows {
            let mut status = match row.status {
                GoalStatus::Met => "met",
                GoalStatus::Missed => "MISSED",
                GoalStatus::NotMeasured => "not measured",
                GoalStatus::NoGoal => "",
            }
            .to_owned();
            if let Some(note) = &row.note {
                let note = one_line(note);
                let place = notes.iter().position(|known| *known == note).unwrap_or_else(|| {
                    notes.push(note);
                    notes.len() - 1
                });
                let _ = write!(status, " [{}]", place + 1);
            }
            let unit = if row.unit.is_empty() {
                String::new()
            } else {
                format!(" ({})", row.unit)
            };
            cells.push([
                row.benchmark.to_string(),
                format!("{}{unit}", row.what),
                here(row),
                row.baseline.map(number).unwrap_or_default(),
                row.goal.map(goal).unwrap_or_default(),
                status.trim().to_owned(),
            ]);
        }
        let mut text = self.heading();
        text.push_str(&aligned(&cells));
        for (index, note) in notes.iter().enumerate() {
            let _ = writeln!(text, "[{}] {note}", index + 1);
        }
        text
    }

    fn heading(&self) -> String {
        let machine = &self.machine;
        let mut text = machine
            .processor
            .clone()
            .unwrap_or_else(|| "unknown processor".to_owned());
        let _ = write!(text, ", {} usable cores", machine.cores);
        if let Some(hypervisor) = &machine.hypervisor {
            let _ = write!(text, ", virtual ({hypervisor})");
        }
        if let Some(kernel) = &machine.kernel {
            let _ = write!(text, ", Linux {kernel}");
        }
        if let Some(load) = machine.load {
            let _ = write!(text, ", load {load:.2} before");
        }
        let _ = writeln!(text, "; taken in {:.0} s", self.seconds);
        text
    }
}

/// Characters of a note in the table; JSON has the whole note.
const NOTE_CHARS: usize = 400;

/// Joins a note, which may quote another program, into one line.
fn one_line(note: &str) -> String {
    let words: Vec<&str> = note.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(NOTE_CHARS) {
        Some((end, _)) => format!("{}...", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

fn here(row: &Measurement) -> String {
    let Some(value) = row.here else {
        return "-".to_owned();
    };
    match row.spread {
        Some([least, most]) => format!("{} ({} to {})", number(value), number(least), number(most)),
        None => number(value),
    }
}

fn goal(goal: Goal) -> String {
    let bound = match goal.bound {
        BenchmarkBound::AtMost(bound) => format!("<= {}", number(bound)),
        BenchmarkBound::AtLeast(bound) => format!(">= {}", number(bound)),
    };
    match goal.times_baseline {
        Some(times) => format!("{bound}, <= {} x baseline", number(times)),
        None => bound,
    }
}

/// Formats three significant digits, and whole numbers as such.
fn number(value: f64) -> String {
    let size = value.abs();
    let places = if size >= 100.0 || value == 0.0 {
        0
    } else if size >= 10.0 {
        1
    } else if size >= 0.1 {
        2
    } else {
        4
    };
    let text = format!("{value:.places$}");
    match text.split_once('.') {
        Some((_, _)) => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        None => thousands(&text),
    }
}

fn thousands(digits: &str) -> String {
    let (sign, digits) = digits
        .strip_prefix('-')
        .map_or(("", digits), |digits| ("-", digits));
    let mut text = sign.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let mut text = String::new();
    let widths: [usize; N] = std::array::from_fn(|column| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    });
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_three_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (2.34567, "2.35"),
            (3.2, "3.2"),
            (0.5, "0.5"),
            (0.0123, "0.0123"),
            (42.44, "42.4"),
            (897.6, "898"),
            (1_000_000.4, "1,000,000"),
            (-1234.0, "-1,234"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn goal_status_considers_bound_and_baseline() {
        let row = |here| Measurement::of(Benchmark::P1, "x", "µs", here);
        assert_eq!(row(3.0).status, GoalStatus::NoGoal);
        assert_eq!(row(3.0).at_most(3.2).status, GoalStatus::Met);
        assert_eq!(row(3.3).at_most(3.2).status, GoalStatus::Missed);
        assert_eq!(row(3.0).at_least(3.2).status, GoalStatus::Missed);
        let within_ratio = |baseline| {
            row(3.0)
                .at_most(3.2)
                .times_baseline(1.3)
                .baseline(baseline)
                .status
        };
        assert_eq!(within_ratio(Some(2.4)), GoalStatus::Met);
        assert_eq!(within_ratio(Some(2.2)), GoalStatus::Missed);
        assert_eq!(within_ratio(None), GoalStatus::Met);
        assert_eq!(
            Measurement::absent(Benchmark::P3, "x", "no").at_most(1.0).status,
            GoalStatus::NotMeasured
        );
        assert_eq!(row(f64::NAN).at_most(3.2).status, GoalStatus::Missed);
    }

    #[test]
    fn repeats_yield_median_and_spread() {
        let row = Measurement::of_repeats(Benchmark::P1, "x", "µs", &[5.0, 1.0, 2.0]);
        assert_eq!((row.here, row.spread), (Some(2.0), Some([1.0, 5.0])));
        let single = Measurement::of_repeats(Benchmark::P1, "x", "µs", &[5.0]);
        assert_eq!((single.here, single.spread), (Some(5.0), None));
        assert_eq!(
            Measurement::of_repeats(Benchmark::P1, "x", "µs", &[]).status,
            GoalStatus::NotMeasured
        );
    }

    fn report() -> Report {
        Report {
            machine: Facts {
                processor: Some("AMD EPYC".into()),
                cores: 2,
                ..Facts::default()
            },
            rows: vec![
                Measurement::of_repeats(Benchmark::P1, "CPU", "µs", &[2.0, 2.5, 3.0])
                    .baseline(Some(2.1))
                    .at_most(3.2)
                    .times_baseline(1.3),
                Measurement::absent(Benchmark::P3, "instructions", "valgrind is not installed"),
                Measurement::of(Benchmark::P8, "errors", "", 0.0)
                    .at_most(0.0)
                    .note("of 10,000"),
            ],
            seconds: 12.0,
        }
    }

    #[test]
    fn table_has_a_line_per_measurement_and_notes_below() {
        let table = report().table();
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].contains("AMD EPYC, 2 usable cores") && lines[0].ends_with("12 s"));
        let words: Vec<&str> = lines[2].split_whitespace().collect();
        assert_eq!(
            words.join(" "),
            "P1 CPU (µs) 2.5 (2 to 3) 2.1 <= 3.2, <= 1.3 x baseline met"
        );
        assert!(lines[3].contains("not measured [1]") && lines[4].ends_with("met [2]"));
        assert_eq!(lines[5..], ["[1] valgrind is not installed", "[2] of 10,000"]);
        // Columns are aligned by characters, not bytes.
        let column = |line: &str| {
            line.chars().count() - line.split_once("met").map_or(0, |(_, rest)| rest.chars().count())
        };
        assert_eq!(column(lines[2]), column(lines[4]));
    }

    #[test]
    fn prints_each_note_once_on_one_line() {
        let why = format!("standard error:\n  {}", "é ".repeat(500));
        let report = Report {
            rows: vec![
                Measurement::absent(Benchmark::P3, "a", why.clone()),
                Measurement::absent(Benchmark::P3, "b", why),
            ],
            ..report()
        };
        let table = report.table();
        let lines: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].ends_with("[1]") && lines[1].ends_with("[1]"));
        assert!(lines[2].starts_with("[1] standard error: é é") && lines[2].ends_with("..."));
    }

    #[test]
    fn serializes_to_strict_json() {
        let json = serde_json::to_value(report()).expect("JSON");
        assert_eq!(json["rows"][0]["benchmark"], "P1");
        assert_eq!(json["rows"][0]["goal"]["bound"]["at_most"], 3.2);
        assert_eq!(json["rows"][1]["here"], serde_json::Value::Null);
        assert_eq!(json["rows"][1]["status"], "not_measured");
        assert_eq!(json["machine"]["cores"], 2);
    }
}
