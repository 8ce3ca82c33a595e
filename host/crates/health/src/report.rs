//! Results of the checks.

use veeksha_events::FailedPlugin;
use veeksha_stats::Summary;

/// Results of all checks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HealthReport {
    /// Results in a fixed order; every check is present.
    pub checks: Vec<HealthCheck>,
    /// True if the user stopped the run: the checks cover only its part until then.
    pub interrupted: bool,
    /// The first failure of each plugin in each role.
    pub failed_plugins: Vec<FailedPlugin>,
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthCheck {
    /// Display name, also its key in JSON.
    pub name: &'static str,
    /// Outcome of the check.
    pub outcome: HealthOutcome,
    /// Findings as sentences with numbers; the reasons come first if the check failed.
    pub findings: Vec<String>,
    /// Next steps if the check failed, without duplicates.
    pub fixes: Vec<&'static str>,
    /// Single values.
    pub values: Vec<CheckValue>,
    /// Distributions of values.
    pub distributions: Vec<CheckDistribution>,
}

/// Outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HealthOutcome {
    /// The run meets the expectation.
    Passed,
    /// The run does not meet the expectation.
    Failed,
    /// The check does not apply, or the run has no data for it; carries the reason.
    Skipped(String),
}

/// Unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueUnit {
    /// Seconds.
    Seconds,
    /// Tokens.
    Tokens,
    /// A number of items.
    Count,
    /// Items per second.
    PerSecond,
    /// A share, 0 to 1.
    Share,
}

impl ValueUnit {
    /// Returns the name used in files.
    pub fn name(self) -> &'static str {
        match self {
            ValueUnit::Seconds => "s",
            ValueUnit::Tokens => "tokens",
            ValueUnit::Count => "1",
            ValueUnit::PerSecond => "1/s",
            ValueUnit::Share => "share",
        }
    }
}

/// A named value.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckValue {
    /// Name, unique within its check.
    pub name: String,
    /// Unit of `value`.
    pub unit: ValueUnit,
    /// Finite value.
    pub value: f64,
}

/// A named distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckDistribution {
    /// Name, unique within its check.
    pub name: String,
    /// Unit of the summary.
    pub unit: ValueUnit,
    /// Summary with exact percentiles.
    pub summary: Summary,
}

impl HealthReport {
    /// Returns true if no check failed. Skipped checks do not count against a run.
    pub fn passed(&self) -> bool {
        self.checks
            .iter()
            .all(|check| check.outcome != HealthOutcome::Failed)
    }

    /// Adds the failure of a plugin, unless the plugin failed in this role before. The checks of a
    /// finished run (SLO checks) are called after [`Health::finish`](crate::Health::finish).
    pub fn add_failed_plugin(&mut self, failed: &FailedPlugin) {
        let is_known = |known: &FailedPlugin| known.plugin == failed.plugin && known.part == failed.part;
        if !self.failed_plugins.iter().any(is_known) {
            self.failed_plugins.push(failed.clone());
        }
    }

    /// Returns the check with this name.
    pub fn check(&self, name: &str) -> Option<&HealthCheck> {
        self.checks.iter().find(|check| check.name == name)
    }
}

impl HealthCheck {
    /// Creates a check that passes unless a reason to fail is added.
    pub(crate) fn new(name: &'static str) -> HealthCheck {
        HealthCheck {
            name,
            outcome: HealthOutcome::Passed,
            findings: Vec::new(),
            fixes: Vec::new(),
            values: Vec::new(),
            distributions: Vec::new(),
        }
    }

    /// Creates a check that does not apply.
    pub(crate) fn skipped(name: &'static str, why: &str) -> HealthCheck {
        HealthCheck {
            outcome: HealthOutcome::Skipped(why.to_owned()),
            ..HealthCheck::new(name)
        }
    }

    /// Fails the check for this reason, with the next step.
    pub(crate) fn fail(&mut self, reason: String, fix: &'static str) {
        self.outcome = HealthOutcome::Failed;
        self.findings.push(reason);
        if !self.fixes.contains(&fix) {
            self.fixes.push(fix);
        }
    }

    /// Adds a finding that does not fail the check.
    pub(crate) fn note(&mut self, what: String) {
        self.findings.push(what);
    }

    /// Adds a value; omits it if it is not finite, because JSON has no such numbers.
    pub(crate) fn value(&mut self, name: &str, unit: ValueUnit, value: f64) {
        if value.is_finite() {
            self.values.push(CheckValue {
                name: name.to_owned(),
                unit,
                value,
            });
        }
    }

    /// Adds a distribution, if there is one.
    pub(crate) fn distribution(&mut self, name: &str, unit: ValueUnit, summary: Option<Summary>) {
        self.distributions
            .extend(summary.map(|summary| CheckDistribution {
                name: name.to_owned(),
                unit,
                summary,
            }));
    }
}

/// The next step if the client could not keep up.
pub(crate) const LESS_LOAD: &str = "lower the load, raise runtime.num_client_threads or \
     runtime.num_dispatcher_threads, or use a machine with more free processors";

/// The next step if sessions were generated too late.
pub(crate) const GENERATE_FASTER: &str =
    "raise runtime.num_plugin_threads, set runtime.pregenerate_sessions, or lower the load";

/// The next step if the events contradict each other.
pub(crate) const REPORT_DEFECT: &str =
    "a defect of veeksha-host, or a record that was changed: report it with the run folder";

/// Lists at most five of many, for a finding: `3/0, 3/1, 7/0 and 12 more`.
pub(crate) fn some(first: &[String], all: u64) -> String {
    let named = &first[..first.len().min(SHOWN)];
    match all.saturating_sub(named.len() as u64) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// Number of items named in a finding.
pub(crate) const SHOWN: usize = 5;

/// Number of violations, with the names of the first few.
#[derive(Clone, Debug, Default)]
pub(crate) struct Violations {
    /// Number of violations.
    pub(crate) count: u64,
    first: Vec<String>,
}

impl Violations {
    /// Adds a violation. `name` is called only for the first few.
    pub(crate) fn add(&mut self, name: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < SHOWN {
            self.first.push(name());
        }
    }

    /// Lists the names: `3/0, 3/1 and 12 more`.
    pub(crate) fn names(&self) -> String {
        some(&self.first, self.count)
    }
}

/// Differences between instants in nanoseconds, summarized in seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    nanos: Vec<i64>,
}

impl Times {
    /// Adds `later` − `earlier`, which may be negative.
    pub(crate) fn add(&mut self, later: u64, earlier: u64) {
        self.nanos.push(difference(later, earlier));
    }

    /// Returns the summary in seconds; `None` without values.
    pub(crate) fn summary(mut self) -> Option<Summary> {
        self.nanos.sort_unstable();
        Summary::of_ranks(self.nanos.len(), |rank| self.nanos[rank] as f64 / 1e9)
    }
}

/// Returns `later` − `earlier`, saturating.
pub(crate) fn difference(later: u64, earlier: u64) -> i64 {
    let difference = i128::from(later) - i128::from(earlier);
    difference.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}
