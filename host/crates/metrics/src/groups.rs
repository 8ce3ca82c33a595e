//! The run's requests and tool runs grouped by the values of a label.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Map, Value, json};
use veeksha_definitions::Metric;
use veeksha_model::SessionId;
use veeksha_stats::Summary;

use crate::json_shapes::summary_json;
use crate::label_sets::LabelSet;
use crate::request_totals::{RequestTotals, TOTAL_COLUMNS};
use crate::run_samples::RunSamples;
use crate::summary_columns::{SUMMARY_COLUMNS, summary_cells};

/// The largest number of groups of a label. Tables and plots with more are hard to read.
const MAX_GROUPS: usize = 12;

/// The largest number of labels that are selected automatically.
const MAX_AUTOMATIC_LABELS: usize = 4;

/// The requests of a run, grouped by the values of a label.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelGroups {
    /// The name of the label.
    pub label: String,
    /// The number of its distinct values.
    pub values: usize,
    /// In the order of the values; requests without the label and merged values come last.
    pub groups: Vec<RequestGroup>,
}

/// Requests with the same value of a label.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestGroup {
    /// The common value.
    pub key: GroupKey,
    /// Counts of its measured requests.
    pub totals: RequestTotals,
    /// Answered requests per second of the run's measured window.
    pub requests_per_second: Option<f64>,
    /// Output tokens per second of the run's measured window.
    pub output_tokens_per_second: Option<f64>,
    /// The metrics with samples, by name: built-in ones, then those of plugins. A session belongs
    /// to a group if all its requests do. Tool runs belong to groups by their own labels.
    pub metrics: Vec<(String, Summary)>,
    /// The label sets of its requests and tool runs.
    sets: Vec<LabelSet>,
}

/// The common value of the requests of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupKey {
    /// A value of the label.
    Value(String),
    /// The requests do not have the label.
    Unlabelled,
    /// The less frequent values together.
    Others {
        /// The number of merged values.
        values: usize,
    },
}

impl fmt::Display for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupKey::Value(value) => f.write_str(value),
            GroupKey::Unlabelled => f.write_str("(no label)"),
            GroupKey::Others { values } => write!(f, "({values} others)"),
        }
    }
}

impl RequestGroup {
    /// Returns the summary of a metric.
    pub fn metric(&self, name: &str) -> Option<&Summary> {
        let named = |entry: &&(String, Summary)| entry.0 == name;
        self.metrics.iter().find(named).map(|(_, summary)| summary)
    }

    fn columns(&self) -> [(&'static str, Value); TOTAL_COLUMNS] {
        self.totals
            .columns(self.requests_per_second, self.output_tokens_per_second)
    }

    fn json(&self) -> Value {
        let (value, others) = match &self.key {
            GroupKey::Value(value) => (Some(value), None),
            GroupKey::Unlabelled => (None, None),
            GroupKey::Others { values } => (None, Some(values)),
        };
        let metrics: Map<String, Value> = self
            .metrics
            .iter()
            .map(|(name, summary)| (name.clone(), summary_json(&Some(*summary))))
            .collect();
        let own = [
            ("value", json!(value)),
            ("merged_values", json!(others)),
            ("metrics", Value::Object(metrics)),
        ];
        own.into_iter()
            .chain(self.columns())
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    fn row(&self, label: &str) -> Vec<String> {
        let text = |value: Value| match value {
            Value::Null => String::new(),
            value => value.to_string(),
        };
        let mut row = vec![label.to_owned(), self.key.to_string()];
        row.extend(self.columns().map(|(_, value)| text(value)));
        for metric in Metric::in_slices() {
            row.extend(summary_cells(self.metric(metric.name())).map(|value| text(json!(value))));
        }
        row
    }
}

impl LabelGroups {
    /// Returns a remark if values were merged: the group of the others is not a value.
    pub fn remark(&self) -> Option<String> {
        let merged = self.groups.iter().find_map(|group| match group.key {
            GroupKey::Others { values } => Some(values),
            _ => None,
        })?;
        let label = &self.label;
        let (all, shown) = (self.values, self.values - merged);
        Some(format!(
            "label {label:?} has {all} values: the {shown} with the most requests have groups, the others are \
             one group"
        ))
    }

    /// Returns the groups as JSON.
    pub(crate) fn json(&self) -> Value {
        json!({
            "label": self.label,
            "values": self.values,
            "groups": self.groups.iter().map(RequestGroup::json).collect::<Vec<_>>(),
        })
    }

    /// Returns a table for a CSV file: the names of the columns, and a row for each group.
    pub fn table(all: &[LabelGroups]) -> (Vec<String>, Vec<Vec<String>>) {
        let names = ["label", "value"]
            .into_iter()
            .chain(RequestTotals::column_names());
        let mut columns: Vec<String> = names.map(str::to_owned).collect();
        for metric in Metric::in_slices() {
            columns.extend(SUMMARY_COLUMNS.map(|column| format!("{}_{column}", metric.name())));
        }
        let rows = all.iter().flat_map(|grouped| {
            let rows = grouped.groups.iter();
            rows.map(|group| group.row(&grouped.label))
        });
        (columns, rows.collect())
    }
}

/// A value of a label with the label sets that contain it, and the number of its requests.
#[derive(Default)]
struct ValueSets {
    sets: Vec<LabelSet>,
    requests: u64,
    /// The least and the greatest number of their sessions.
    sessions: Option<(SessionId, SessionId)>,
}

impl ValueSets {
    fn is_of_one_session(&self) -> bool {
        self.sessions.is_some_and(|(least, most)| least == most)
    }
}

/// The requests of a label set; none if only tool runs have it.
struct SetRequests {
    requests: u64,
    /// The least and the greatest number of the sessions of its requests and tool runs.
    sessions: (SessionId, SessionId),
}

/// Groups the requests by the wanted labels, or by every label with few values that are not
/// identifiers. A wanted label that no measured request or tool run has gives no groups. Labels
/// that only tool runs have are grouped if they are wanted: most metrics have no values for them.
pub(crate) fn groups(
    samples: &RunSamples,
    wanted: Option<&[String]>,
    judged: bool,
    window_seconds: Option<f64>,
) -> Vec<LabelGroups> {
    let by_set = requests_by_set(samples);
    let sets = &samples.requests.labels;
    let labels_of = |set: &LabelSet| sets.labels(*set).iter().map(|(name, _)| name.as_str());
    let seen: BTreeSet<&str> = by_set.keys().flat_map(labels_of).collect();
    let of_requests: BTreeSet<&str> = by_set
        .iter()
        .filter(|(_, of_set)| of_set.requests > 0)
        .flat_map(|(set, _)| labels_of(set))
        .collect();
    let group = |label: &str, few: bool| {
        let mut by_value: BTreeMap<Option<&str>, ValueSets> = BTreeMap::new();
        for (set, of_set) in &by_set {
            let mut labels = sets.labels(*set).iter();
            let value = labels.find(|(name, _)| name == label);
            let entry = by_value
                .entry(value.map(|(_, value)| value.as_str()))
                .or_default();
            entry.sets.push(*set);
            entry.requests += of_set.requests;
            let (least, most) = of_set.sessions;
            let known = entry.sessions.unwrap_or(of_set.sessions);
            entry.sessions = Some((known.0.min(least), known.1.max(most)));
        }
        // Tool runs lack the labels that the workload gave to requests only.
        by_value.retain(|value, sets| value.is_some() || sets.requests > 0);
        let values = by_value.keys().flatten().count();
        if few && (!(2..=MAX_GROUPS).contains(&by_value.len()) || identifies(&by_value)) {
            return None;
        }
        let groups = merged(by_value)
            .into_iter()
            .map(|(key, members)| request_group(samples, key, members.sets, judged, window_seconds));
        Some(LabelGroups {
            label: label.to_owned(),
            values,
            groups: groups.collect(),
        })
    };
    match wanted {
        Some(wanted) => wanted
            .iter()
            .filter(|label| seen.contains(label.as_str()))
            .filter_map(|label| group(label, false))
            .collect(),
        None => of_requests
            .iter()
            .filter_map(|label| group(label, true))
            .take(MAX_AUTOMATIC_LABELS)
            .collect(),
    }
}

/// Returns true if most values of a label belong to a single request or session each, like
/// identifiers: the statistics of such groups are those of one sample.
fn identifies(by_value: &BTreeMap<Option<&str>, ValueSets>) -> bool {
    let of_values = || by_value.iter().filter(|(value, _)| value.is_some());
    let single = of_values().filter(|(_, sets)| sets.is_of_one_session()).count();
    2 * single > of_values().count()
}

fn requests_by_set(samples: &RunSamples) -> BTreeMap<LabelSet, SetRequests> {
    let mut by_set: BTreeMap<LabelSet, SetRequests> = BTreeMap::new();
    let mut add = |set: LabelSet, session: SessionId, requests: u64| {
        let entry = by_set.entry(set).or_insert(SetRequests {
            requests: 0,
            sessions: (session, session),
        });
        entry.requests += requests;
        entry.sessions = (entry.sessions.0.min(session), entry.sessions.1.max(session));
    };
    let requests = &samples.requests;
    for row in requests.rows.iter().filter(|row| row.measured) {
        add(row.labels, row.id.session, 1);
    }
    for row in requests.measured_tool_runs() {
        add(row.labels, row.id.session, 0);
    }
    by_set
}

/// Merges the least frequent values if there are too many, and sorts the groups.
fn merged(by_value: BTreeMap<Option<&str>, ValueSets>) -> Vec<(GroupKey, ValueSets)> {
    let mut unlabelled = None;
    let mut values: Vec<(&str, ValueSets)> = Vec::new();
    for (value, sets) in by_value {
        match value {
            Some(value) => values.push((value, sets)),
            None => unlabelled = Some(sets),
        }
    }
    let available = MAX_GROUPS - usize::from(unlabelled.is_some());
    let mut others = None;
    if values.len() > available {
        values.sort_by(|a, b| b.1.requests.cmp(&a.1.requests).then(a.0.cmp(b.0)));
        let rest = values.split_off(available - 1);
        let values = rest.len();
        let mut all = ValueSets::default();
        for (_, sets) in rest {
            all.sets.extend(sets.sets);
            all.requests += sets.requests;
        }
        others = Some((GroupKey::Others { values }, all));
    }
    values.sort_by(|a, b| compare_values(a.0, b.0));
    let named = values
        .into_iter()
        .map(|(value, sets)| (GroupKey::Value(value.to_owned()), sets));
    named
        .chain(unlabelled.map(|sets| (GroupKey::Unlabelled, sets)))
        .chain(others)
        .collect()
}

/// Compares values as numbers if both are: turn 10 comes after turn 9.
fn compare_values(a: &str, b: &str) -> Ordering {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(left), Ok(right)) => left.total_cmp(&right).then_with(|| a.cmp(b)),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => a.cmp(b),
    }
}

fn request_group(
    samples: &RunSamples,
    key: GroupKey,
    sets: Vec<LabelSet>,
    judged: bool,
    window_seconds: Option<f64>,
) -> RequestGroup {
    let matching = samples.requests.labels.matching_any(&sets);
    let mut totals = RequestTotals::new(judged);
    let rows = samples.requests.rows.iter();
    rows.filter(|row| row.measured && matching.has(row.labels))
        .for_each(|row| totals.add(row));
    let rate = |amount: u64| {
        window_seconds
            .filter(|window| *window > 0.0)
            .map(|window| amount as f64 / window)
    };
    let names = samples.names().into_iter();
    RequestGroup {
        key,
        requests_per_second: rate(totals.completed),
        output_tokens_per_second: rate(totals.output_tokens),
        totals,
        metrics: names
            .filter_map(|name| {
                let summary = samples.set(&name, &matching, None).summary()?;
                Some((name, summary))
            })
            .collect(),
        sets,
    }
}

impl RunSamples {
    /// Returns at most `most` samples of a metric in a group, ascending, selected at equal
    /// distances.
    pub fn values_of_group(&self, group: &RequestGroup, metric: &str, most: usize) -> Vec<f64> {
        let matching = self.requests.labels.matching_any(&group.sets);
        let set = self.set(metric, &matching, None);
        let count = usize::try_from(set.count()).unwrap_or(usize::MAX).min(most);
        let last = count.saturating_sub(1).max(1) as f64;
        let shares: Vec<f64> = (0..count).map(|place| place as f64 / last).collect();
        set.percentiles(&shares)
    }
}
