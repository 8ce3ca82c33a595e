//! The figures that were taken, each beside its goal and beside the floor.

use std::fmt::Write as _;

use serde::Serialize;
use veeksha_machine::Facts;

use crate::Figure;

/// The figures of one bench.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Where they were taken.
    pub machine: Facts,
    /// The figures, in order.
    pub rows: Vec<Row>,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// One figure, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Which figure it belongs to.
    pub figure: Figure,
    /// What was measured.
    pub what: String,
    /// The unit of every number in the row.
    pub unit: &'static str,
    /// What was measured here; `None`: nothing, and the note says why.
    pub here: Option<f64>,
    /// The smallest and the largest of several repeats, of which `here` is the median.
    pub spread: Option<[f64; 2]>,
    /// The same of the least that a client can cost, taken side by side.
    pub floor: Option<f64>,
    /// What it must reach.
    pub goal: Option<Goal>,
    /// Whether it does.
    pub verdict: Verdict,
    /// What else should be known.
    pub note: Option<String>,
}

/// What a figure must reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// A bound in the row's unit.
    pub bound: Bound,
    /// Besides: at most so many times the floor.
    pub times_floor: Option<f64>,
}

/// A bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Smaller is better.
    AtMost(f64),
    /// Larger is better.
    AtLeast(f64),
}

/// Whether a goal was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It was.
    Met,
    /// It was not, in this measurement.
    Missed,
    /// Nothing was measured.
    NotMeasured,
    /// There is no goal: the number explains others.
    NoGoal,
}

impl Row {
    /// A measured number without a goal.
    pub(crate) fn of(figure: Figure, what: impl Into<String>, unit: &'static str, here: f64) -> Self {
        Row {
            figure,
            what: what.into(),
            unit,
            here: Some(here),
            spread: None,
            floor: None,
            goal: None,
            verdict: Verdict::NoGoal,
            note: None,
        }
    }

    /// The median of repeats and their spread.
    pub(crate) fn of_repeats(
        figure: Figure,
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
            (Some(least), Some(most), Some(median)) => Row {
                spread: (sorted.len() > 1).then_some([*least, *most]),
                ..Row::of(figure, what, unit, median)
            },
            _ => Row::absent(figure, what, "nothing was measured"),
        }
    }

    /// No number, and why.
    pub(crate) fn absent(figure: Figure, what: impl Into<String>, why: impl Into<String>) -> Self {
        Row {
            here: None,
            verdict: Verdict::NotMeasured,
            note: Some(why.into()),
            ..Row::of(figure, what, "", 0.0)
        }
    }

    pub(crate) fn floor(mut self, floor: Option<f64>) -> Self {
        self.floor = floor;
        self.judged()
    }

    pub(crate) fn at_most(self, bound: f64) -> Self {
        self.with(Bound::AtMost(bound))
    }

    pub(crate) fn at_least(self, bound: f64) -> Self {
        self.with(Bound::AtLeast(bound))
    }

    fn with(mut self, bound: Bound) -> Self {
        let times_floor = self.goal.and_then(|goal| goal.times_floor);
        self.goal = Some(Goal { bound, times_floor });
        self.judged()
    }

    /// Besides the bound: at most so many times the floor.
    pub(crate) fn times_floor(mut self, times: f64) -> Self {
        if let Some(goal) = &mut self.goal {
            goal.times_floor = Some(times);
        }
        self.judged()
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        let note = note.into();
        self.note = Some(match self.note.take() {
            Some(before) => format!("{before}; {note}"),
            None => note,
        });
        self
    }

    fn judged(mut self) -> Self {
        self.verdict = match (self.here, self.goal) {
            (None, _) => Verdict::NotMeasured,
            (Some(_), None) => Verdict::NoGoal,
            (Some(here), Some(goal)) => {
                let within = match goal.bound {
                    Bound::AtMost(bound) => here <= bound,
                    Bound::AtLeast(bound) => here >= bound,
                };
                let beside = match (goal.times_floor, self.floor) {
                    (Some(times), Some(floor)) => here <= times * floor,
                    _ => true,
                };
                if within && beside {
                    Verdict::Met
                } else {
                    Verdict::Missed
                }
            }
        };
        self
    }
}

impl Report {
    /// The figures as a table for a terminal, with notes below.
    pub fn table(&self) -> String {
        let mut cells = vec![["", "", "here", "floor", "goal", ""].map(str::to_owned)];
        let mut notes: Vec<String> = Vec::new();
        for row in &self.rows {
            let mut verdict = match row.verdict {
                Verdict::Met => "met",
                Verdict::Missed => "MISSED",
                Verdict::NotMeasured => "not measured",
                Verdict::NoGoal => "",
            }
            .to_owned();
            if let Some(note) = &row.note {
                let note = one_line(note);
                let place = notes.iter().position(|known| *known == note).unwrap_or_else(|| {
                    notes.push(note);
                    notes.len() - 1
                });
                let _ = write!(verdict, " [{}]", place + 1);
            }
            let unit = if row.unit.is_empty() {
                String::new()
            } else {
                format!(" ({})", row.unit)
            };
            cells.push([
                row.figure.to_string(),
                format!("{}{unit}", row.what),
                here(row),
                row.floor.map(number).unwrap_or_default(),
                row.goal.map(goal).unwrap_or_default(),
                verdict.trim().to_owned(),
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
            .unwrap_or_else(|| "a processor without a name".to_owned());
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

/// Letters of a note that a table has room for; JSON has all of them.
const NOTE_CHARS: usize = 400;

/// The words of a note, which may be those of another program, on one line.
fn one_line(note: &str) -> String {
    let words: Vec<&str> = note.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(NOTE_CHARS) {
        Some((end, _)) => format!("{}...", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

fn here(row: &Row) -> String {
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
        Bound::AtMost(bound) => format!("<= {}", number(bound)),
        Bound::AtLeast(bound) => format!(">= {}", number(bound)),
    };
    match goal.times_floor {
        Some(times) => format!("{bound}, <= {} x floor", number(times)),
        None => bound,
    }
}

/// Three digits that matter, and whole numbers whole.
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
    fn numbers_are_written_for_people() {
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
    fn goals_are_judged_with_and_without_the_floor() {
        let row = |here| Row::of(Figure::P1, "x", "µs", here);
        assert_eq!(row(3.0).verdict, Verdict::NoGoal);
        assert_eq!(row(3.0).at_most(3.2).verdict, Verdict::Met);
        assert_eq!(row(3.3).at_most(3.2).verdict, Verdict::Missed);
        assert_eq!(row(3.0).at_least(3.2).verdict, Verdict::Missed);
        let beside = |floor| row(3.0).at_most(3.2).times_floor(1.3).floor(floor).verdict;
        assert_eq!(beside(Some(2.4)), Verdict::Met);
        assert_eq!(beside(Some(2.2)), Verdict::Missed);
        assert_eq!(beside(None), Verdict::Met);
        assert_eq!(
            Row::absent(Figure::P3, "x", "no").at_most(1.0).verdict,
            Verdict::NotMeasured
        );
        assert_eq!(row(f64::NAN).at_most(3.2).verdict, Verdict::Missed);
    }

    #[test]
    fn repeats_give_the_median_and_the_spread() {
        let row = Row::of_repeats(Figure::P1, "x", "µs", &[5.0, 1.0, 2.0]);
        assert_eq!((row.here, row.spread), (Some(2.0), Some([1.0, 5.0])));
        let single = Row::of_repeats(Figure::P1, "x", "µs", &[5.0]);
        assert_eq!((single.here, single.spread), (Some(5.0), None));
        assert_eq!(
            Row::of_repeats(Figure::P1, "x", "µs", &[]).verdict,
            Verdict::NotMeasured
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
                Row::of_repeats(Figure::P1, "CPU", "µs", &[2.0, 2.5, 3.0])
                    .floor(Some(2.1))
                    .at_most(3.2)
                    .times_floor(1.3),
                Row::absent(Figure::P3, "instructions", "valgrind is not installed"),
                Row::of(Figure::P8, "errors", "", 0.0)
                    .at_most(0.0)
                    .note("of 10,000"),
            ],
            seconds: 12.0,
        }
    }

    #[test]
    fn the_table_has_a_line_for_each_figure_and_the_notes_below() {
        let table = report().table();
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].contains("AMD EPYC, 2 usable cores") && lines[0].ends_with("12 s"));
        let words: Vec<&str> = lines[2].split_whitespace().collect();
        assert_eq!(
            words.join(" "),
            "P1 CPU (µs) 2.5 (2 to 3) 2.1 <= 3.2, <= 1.3 x floor met"
        );
        assert!(lines[3].contains("not measured [1]") && lines[4].ends_with("met [2]"));
        assert_eq!(lines[5..], ["[1] valgrind is not installed", "[2] of 10,000"]);
        // Columns are aligned, letters beyond ASCII included.
        let column = |line: &str| {
            line.chars().count() - line.split_once("met").map_or(0, |(_, rest)| rest.chars().count())
        };
        assert_eq!(column(lines[2]), column(lines[4]));
    }

    #[test]
    fn notes_are_told_once_and_on_one_line() {
        let why = format!("it said:\n  {}", "é ".repeat(500));
        let report = Report {
            rows: vec![
                Row::absent(Figure::P3, "a", why.clone()),
                Row::absent(Figure::P3, "b", why),
            ],
            ..report()
        };
        let table = report.table();
        let lines: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].ends_with("[1]") && lines[1].ends_with("[1]"));
        assert!(lines[2].starts_with("[1] it said: é é") && lines[2].ends_with("..."));
    }

    #[test]
    fn the_report_is_strict_json() {
        let json = serde_json::to_value(report()).expect("JSON");
        assert_eq!(json["rows"][0]["figure"], "P1");
        assert_eq!(json["rows"][0]["goal"]["bound"]["at_most"], 3.2);
        assert_eq!(json["rows"][1]["here"], serde_json::Value::Null);
        assert_eq!(json["rows"][1]["verdict"], "not_measured");
        assert_eq!(json["machine"]["cores"], 2);
    }
}
