//! What the checks found.

use veeksha_stats::Summary;

/// The outcome of all checks.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthReport {
    /// One after the other, always the same ones in the same order.
    pub checks: Vec<Check>,
}

/// The outcome of one check.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// What was found, in words with numbers. Of a check that failed, the reasons come first.
    pub findings: Vec<String>,
    /// Single numbers.
    pub figures: Vec<Figure>,
    /// Samples.
    pub distributions: Vec<Distribution>,
}

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The run did as it should.
    Passed,
    /// It did not.
    Failed,
    /// The check does not apply, or the run gave nothing to check; why.
    Skipped(String),
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Tokens.
    Tokens,
    /// Things.
    Count,
    /// Things in a second.
    PerSecond,
    /// A part of a whole, 0 to 1.
    Share,
}

impl Unit {
    /// As it stands in files.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::Tokens => "tokens",
            Unit::Count => "1",
            Unit::PerSecond => "1/s",
            Unit::Share => "share",
        }
    }
}

/// A number.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it is.
    pub name: String,
    /// In which unit.
    pub unit: Unit,
    /// How much.
    pub value: f64,
}

/// A sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// What was measured.
    pub name: String,
    /// In which unit.
    pub unit: Unit,
    /// Its figures; percentiles are exact.
    pub summary: Summary,
}

impl HealthReport {
    /// Whether no check failed. One that was skipped says nothing against the run.
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.outcome != Outcome::Failed)
    }

    /// The check of a name.
    pub fn check(&self, name: &str) -> Option<&Check> {
        self.checks.iter().find(|check| check.name == name)
    }
}

impl Check {
    /// A check that passed until a reason against it is found.
    pub(crate) fn new(name: &'static str) -> Check {
        Check {
            name,
            outcome: Outcome::Passed,
            findings: Vec::new(),
            figures: Vec::new(),
            distributions: Vec::new(),
        }
    }

    /// A check that does not apply.
    pub(crate) fn skipped(name: &'static str, why: &str) -> Check {
        Check {
            outcome: Outcome::Skipped(why.to_owned()),
            ..Check::new(name)
        }
    }

    /// Adds a reason to fail.
    pub(crate) fn fail(&mut self, reason: String) {
        self.outcome = Outcome::Failed;
        self.findings.push(reason);
    }

    /// Adds what is worth knowing.
    pub(crate) fn note(&mut self, what: String) {
        self.findings.push(what);
    }

    /// Adds a number. One that is not finite is no number, and is left out.
    pub(crate) fn figure(&mut self, name: &str, unit: Unit, value: f64) {
        if value.is_finite() {
            self.figures.push(Figure {
                name: name.to_owned(),
                unit,
                value,
            });
        }
    }

    /// Adds a sample, if there is one.
    pub(crate) fn distribution(&mut self, name: &str, unit: Unit, summary: Option<Summary>) {
        self.distributions.extend(summary.map(|summary| Distribution {
            name: name.to_owned(),
            unit,
            summary,
        }));
    }
}

/// `1 request`, `2 requests`.
pub(crate) fn count(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

/// At most five of many, for a finding: `3/0, 3/1, 7/0 and 12 more`.
pub(crate) fn some(first: &[String], all: u64) -> String {
    let named = &first[..first.len().min(SHOWN)];
    match all.saturating_sub(named.len() as u64) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// How many are named in a finding.
pub(crate) const SHOWN: usize = 5;

/// Counts what went wrong and remembers the first few by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Culprits {
    /// How many.
    pub(crate) count: u64,
    first: Vec<String>,
}

impl Culprits {
    /// Adds one. Most of many are never named.
    pub(crate) fn add(&mut self, name: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < SHOWN {
            self.first.push(name());
        }
    }

    /// `3/0, 3/1 and 12 more`.
    pub(crate) fn names(&self) -> String {
        some(&self.first, self.count)
    }
}

/// Differences of times in nanoseconds, to be summarised in seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    nanos: Vec<i64>,
}

impl Times {
    /// Adds `later` − `earlier`; it can be negative.
    pub(crate) fn add(&mut self, later: u64, earlier: u64) {
        self.nanos.push(difference(later, earlier));
    }

    /// The figures in seconds; `None` without a sample.
    pub(crate) fn summary(mut self) -> Option<Summary> {
        self.nanos.sort_unstable();
        Summary::of_ranks(self.nanos.len(), |rank| self.nanos[rank] as f64 / 1e9)
    }
}

/// `later` − `earlier`, to the ends of the type.
pub(crate) fn difference(later: u64, earlier: u64) -> i64 {
    let difference = i128::from(later) - i128::from(earlier);
    difference.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}
