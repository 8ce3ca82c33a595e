//! Validation of the names and bounds of an expression.

use veeksha_slo::{ParseError, Range, SloReader, UnitMismatch};

use crate::input::CompareSide;

use super::condition::{FailCondition, FailIf, Judged, MeasuredChange, MeasuredTerm, Name};

/// An existing metric or run-level value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownName {
    /// Canonical name.
    pub name: String,
    /// Aliases.
    pub aliases: Vec<String>,
    /// Unit of the values.
    pub unit: String,
    /// Kind of the value.
    pub kind: KnownKind,
    /// Range of possible values.
    pub range: Range,
}

/// Kind of a named value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownKind {
    /// A metric, with samples.
    Metric,
    /// A value of the whole run.
    RunMetric,
}

impl KnownName {
    /// Returns the distinct metrics and values of the runs. Some may come from plugins, so their
    /// ranges are unknown.
    pub fn of(sides: &[CompareSide]) -> Vec<KnownName> {
        let mut known: Vec<KnownName> = Vec::new();
        let mut add = |name: &str, unit: &str, kind| {
            if !known.iter().any(|known| known.name == name) {
                known.push(KnownName {
                    name: name.to_owned(),
                    aliases: Vec::new(),
                    unit: unit.to_owned(),
                    kind,
                    range: Range::Any,
                });
            }
        };
        for run in sides.iter().flat_map(|side| &side.runs) {
            for metric in &run.metrics {
                add(&metric.name, &metric.unit, KnownKind::Metric);
            }
            for run_metric in &run.run_metrics {
                add(&run_metric.name, &run_metric.unit, KnownKind::RunMetric);
            }
        }
        known
    }
}

impl FailIf {
    /// Checks that all names exist and that bounds have the right kind, and replaces aliases by
    /// canonical names. Must be called before the comparison.
    ///
    /// # Errors
    /// Returns the position and the nearest name.
    pub fn check(&mut self, known: &[KnownName]) -> Result<(), ParseError> {
        let reader = SloReader::new(&self.text)?;
        let checker = NameChecker { reader, known };
        checker.condition(&mut self.condition)
    }
}

struct NameChecker<'a> {
    reader: SloReader<'a>,
    known: &'a [KnownName],
}

impl NameChecker<'_> {
    fn condition(&self, condition: &mut FailCondition) -> Result<(), ParseError> {
        match condition {
            FailCondition::Any(parts) | FailCondition::All(parts) => {
                parts.iter_mut().try_for_each(|part| self.condition(part))
            }
            FailCondition::Not { within, .. } => self.condition(within),
            FailCondition::NotComparable => Ok(()),
            FailCondition::Judged { of, .. } => match of {
                Judged::Any => Ok(()),
                Judged::Name(name) => self.name(name, None).map(|_| ()),
                Judged::Statistic(_, name) => self.name(name, Some(KnownKind::Metric)).map(|_| ()),
            },
            FailCondition::Measured(measured) => self.measured(measured),
        }
    }

    /// Resolves `name` to a metric or run-level value of `kind`, replacing an alias.
    fn name(&self, name: &mut Name, kind: Option<KnownKind>) -> Result<&KnownName, ParseError> {
        let called = |known: &&KnownName| known.name == name.name || known.aliases.contains(&name.name);
        let Some(found) = self.known.iter().find(called) else {
            let names = self
                .known
                .iter()
                .filter(|known| kind.is_none_or(|kind| known.kind == kind))
                .flat_map(|known| std::iter::once(&known.name).chain(&known.aliases))
                .map(String::as_str);
            let what = match kind {
                Some(KnownKind::Metric) => "metric",
                Some(KnownKind::RunMetric) => "run metric",
                None => "metric or run metric",
            };
            return Err(self.reader.unknown(name.place.clone(), what, names));
        };
        let problem = match (kind, found.kind) {
            (Some(KnownKind::RunMetric), KnownKind::Metric) => {
                format!(
                    "`{0}` is a metric: choose a statistic, such as p99({0})",
                    name.name
                )
            }
            (Some(KnownKind::Metric), KnownKind::RunMetric) => {
                format!(
                    "`{0}` is a run metric and has no statistics: write {0}",
                    name.name
                )
            }
            _ => {
                name.name.clone_from(&found.name);
                return Ok(found);
            }
        };
        Err(self.reader.error(name.place.clone(), problem))
    }

    fn measured(&self, measured: &mut MeasuredTerm) -> Result<(), ParseError> {
        let kind = match measured.aggregate {
            Some(_) => KnownKind::Metric,
            None => KnownKind::RunMetric,
        };
        let found = self.name(&mut measured.name, Some(kind))?;
        let range = match measured.aggregate {
            Some(aggregate) => found.range.of(aggregate),
            None => found.range,
        };
        let unit = measured
            .aggregate
            .map_or(found.unit.as_str(), |aggregate| aggregate.unit(&found.unit));
        let bound = match (measured.what, measured.bound.in_unit(unit)) {
            (MeasuredChange::Relative, _) => measured.bound.value,
            (_, Ok(bound)) => bound,
            (_, Err(UnitMismatch::Percent { bound, unit })) => {
                let problem = format!(
                    "`{bound}` is a share, and the unit of `{}` is {unit}; a relative change has a sign: `+{bound}`",
                    found.name
                );
                return Err(self.reader.error(measured.bound_place.clone(), problem));
            }
            (_, Err(mismatch)) => {
                return Err(self
                    .reader
                    .error(measured.bound_place.clone(), mismatch.to_string()));
            }
        };
        match uninformative(measured, range, bound) {
            Some(problem) => Err(self.reader.error(measured.bound_place.clone(), problem)),
            None => Ok(()),
        }
    }
}

/// Returns the problem of a bound that every or no value meets: such a gate never or always fails.
fn uninformative(measured: &MeasuredTerm, range: Range, bound: f64) -> Option<String> {
    let quantity = measured.quantity();
    let change = |least: f64, most: f64, why: &str| {
        let verdict = measured.comparison.uninformative(bound, least, most)?;
        Some(format!("{verdict}: `{quantity}` {why}"))
    };
    match (measured.what, range) {
        (MeasuredChange::Value, _) => range
            .fits(&quantity, measured.comparison, measured.bound, bound)
            .err()
            .map(|error| error.to_string()),
        (_, Range::Any) | (MeasuredChange::Difference, Range::NotNegative) => None,
        (MeasuredChange::Difference, Range::Share) => change(
            -1.0,
            1.0,
            "is a share and changes by at most 1; a percentage point is 0.01",
        ),
        (MeasuredChange::Relative, _) => change(
            -1.0,
            f64::INFINITY,
            "is never below 0 and falls by at most 100 %; give a bound above -100%",
        ),
    }
}
