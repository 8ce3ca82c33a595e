//! The results of a cycle, and their difference to those of the last one.

/// A session that a cycle made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionText {
    /// The index of the session.
    pub session: u64,
    /// Its canonical JSON, on several lines.
    pub json: String,
}

/// A metric of a cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricValue {
    /// The name as in objectives: `p99(ttfc)`, `num_requests`.
    pub name: String,
    /// The unit; `1` for a share.
    pub unit: &'static str,
    /// The value.
    pub value: f64,
}

/// The results of a cycle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CycleResults {
    /// The first sessions, in order.
    pub sessions: Vec<SessionText>,
    /// The metrics, in the order in which they are printed.
    pub metrics: Vec<MetricValue>,
    /// One line for each SLO: `met: p99(ttfc) <= 0.5`.
    pub slos: Vec<String>,
    /// The messages that explain the exit code of a run.
    pub messages: Vec<String>,
}

/// A metric whose value changed, appeared or disappeared.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricChange {
    /// The name as in objectives.
    pub name: String,
    /// The unit; `1` for a share.
    pub unit: &'static str,
    /// The value of the last cycle.
    pub before: Option<f64>,
    /// The value of this cycle.
    pub after: Option<f64>,
}

impl MetricChange {
    /// Returns the change in percent; none without two values, or from 0.
    pub fn percent(&self) -> Option<f64> {
        let (before, after) = (self.before?, self.after?);
        (before != 0.0).then(|| (after - before) / before.abs() * 100.0)
    }
}

/// The difference between two cycles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CycleDifference {
    /// The number of sessions that differ, appeared or disappeared.
    pub changed_sessions: usize,
    /// The larger number of sessions.
    pub sessions: usize,
    /// The texts of the first session that differs, before and after; an absent one is empty.
    pub first_session: Option<(u64, String, String)>,
    /// The metrics that differ.
    pub metrics: Vec<MetricChange>,
    /// Lines of SLOs and messages that only the last cycle had.
    pub removed_lines: Vec<String>,
    /// Lines of SLOs and messages that only this cycle has.
    pub added_lines: Vec<String>,
}

impl CycleDifference {
    /// Returns true if nothing differs.
    pub fn is_empty(&self) -> bool {
        let lines = self.removed_lines.len() + self.added_lines.len();
        self.changed_sessions == 0 && self.metrics.is_empty() && lines == 0
    }
}

impl CycleResults {
    /// Returns the difference between these results and those of the next cycle.
    pub fn compare(&self, next: &CycleResults) -> CycleDifference {
        let sessions = self.sessions.len().max(next.sessions.len());
        let mut difference = CycleDifference {
            sessions,
            metrics: self.metric_changes(next),
            ..CycleDifference::default()
        };
        for index in 0..sessions {
            let (old, new) = (self.sessions.get(index), next.sessions.get(index));
            if old == new {
                continue;
            }
            difference.changed_sessions += 1;
            if difference.first_session.is_none() {
                let text =
                    |side: Option<&SessionText>| side.map(|side| side.json.clone()).unwrap_or_default();
                let number = new.or(old).map_or(index as u64, |side| side.session);
                difference.first_session = Some((number, text(old), text(new)));
            }
        }
        let lines =
            |of: &CycleResults| -> Vec<String> { of.slos.iter().chain(&of.messages).cloned().collect() };
        let (old, new) = (lines(self), lines(next));
        difference.removed_lines = old.iter().filter(|line| !new.contains(line)).cloned().collect();
        difference.added_lines = new.into_iter().filter(|line| !old.contains(line)).collect();
        difference
    }

    fn metric_changes(&self, next: &CycleResults) -> Vec<MetricChange> {
        let find = |metrics: &[MetricValue], name: &str| {
            metrics
                .iter()
                .find(|metric| metric.name == name)
                .map(|metric| metric.value)
        };
        let change = |metric: &MetricValue| MetricChange {
            name: metric.name.clone(),
            unit: metric.unit,
            before: find(&self.metrics, &metric.name),
            after: find(&next.metrics, &metric.name),
        };
        let removed = self
            .metrics
            .iter()
            .filter(|metric| find(&next.metrics, &metric.name).is_none());
        let all = next.metrics.iter().chain(removed).map(change);
        all.filter(|change| change.before != change.after).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(sessions: &[&str], metrics: &[(&str, f64)]) -> CycleResults {
        let session = |(session, json): (u64, &&str)| SessionText {
            session,
            json: (*json).to_owned(),
        };
        let metric = |(name, value): &(&str, f64)| MetricValue {
            name: (*name).to_owned(),
            unit: "s",
            value: *value,
        };
        CycleResults {
            sessions: (0..).zip(sessions).map(session).collect(),
            metrics: metrics.iter().map(metric).collect(),
            ..CycleResults::default()
        }
    }

    #[test]
    fn equal_results_have_no_difference() {
        let same = results(&["a"], &[("ttfc", 1.0)]);
        assert!(same.compare(&same).is_empty());
    }

    #[test]
    fn names_the_first_session_that_differs() {
        let difference = results(&["a", "b", "c"], &[]).compare(&results(&["a", "x"], &[]));
        assert_eq!((difference.changed_sessions, difference.sessions), (2, 3));
        assert_eq!(difference.first_session, Some((1, "b".into(), "x".into())));
    }

    #[test]
    fn metrics_change_appear_and_disappear() {
        let old = results(&[], &[("same", 1.0), ("up", 2.0), ("gone", 3.0), ("zero", 0.0)]);
        let new = results(&[], &[("same", 1.0), ("up", 3.0), ("new", 4.0), ("zero", 1.0)]);
        let changes = old.compare(&new).metrics;
        let values: Vec<_> = changes
            .iter()
            .map(|change| (&*change.name, change.before, change.after, change.percent()))
            .collect();
        assert_eq!(
            values,
            [
                ("up", Some(2.0), Some(3.0), Some(50.0)),
                ("new", None, Some(4.0), None),
                ("zero", Some(0.0), Some(1.0), None),
                ("gone", Some(3.0), None, None),
            ]
        );
    }

    #[test]
    fn lines_of_slos_are_compared_as_sets() {
        let with = |line: &str| CycleResults {
            slos: vec!["met: a".to_owned(), line.to_owned()],
            ..CycleResults::default()
        };
        let difference = with("met: b").compare(&with("missed: b"));
        assert_eq!(difference.removed_lines, ["met: b"]);
        assert_eq!(difference.added_lines, ["missed: b"]);
    }
}
