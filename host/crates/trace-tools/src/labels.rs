//! Labels of a trace and their most frequent values.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use veeksha_model::Label;

/// Maximum number of distinct names.
const NAMES: usize = 64;

/// Maximum number of distinct values of a name.
const VALUES: usize = 4096;

/// Number of reported values.
const REPORTED: usize = 10;

/// A label and its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LabelValues {
    /// Name of the label.
    pub name: String,
    /// Number of occurrences.
    pub count: u64,
    /// Number of distinct values; 4,096 means that many or more.
    pub different: usize,
    /// The most frequent values with their counts, at most ten. After 4,096 distinct values, new
    /// ones are not counted.
    pub top: Vec<(String, u64)>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Labels {
    by_name: BTreeMap<String, Values>,
}

#[derive(Clone, Debug, Default)]
struct Values {
    count: u64,
    by_value: HashMap<String, u64>,
}

impl Labels {
    pub(crate) fn add(&mut self, labels: &[Label]) {
        for (name, value) in labels {
            if !self.by_name.contains_key(name) {
                if self.by_name.len() == NAMES {
                    continue;
                }
                self.by_name.insert(name.clone(), Values::default());
            }
            let Some(values) = self.by_name.get_mut(name) else {
                continue;
            };
            values.count += 1;
            if let Some(count) = values.by_value.get_mut(value) {
                *count += 1;
            } else if values.by_value.len() < VALUES {
                values.by_value.insert(value.clone(), 1);
            }
        }
    }

    pub(crate) fn finish(self) -> Vec<LabelValues> {
        let values_of = |(name, values): (String, Values)| {
            let different = values.by_value.len();
            let mut top: Vec<(String, u64)> = values.by_value.into_iter().collect();
            top.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            top.truncate(REPORTED);
            LabelValues {
                name,
                count: values.count,
                different,
                top,
            }
        };
        self.by_name.into_iter().map(values_of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_frequent_values_come_first() {
        let mut labels = Labels::default();
        for (value, times) in [("b", 2), ("a", 2), ("c", 5)] {
            for _ in 0..times {
                labels.add(&[("model".into(), value.into())]);
            }
        }
        let found = labels.finish();
        let top: Vec<_> = found[0]
            .top
            .iter()
            .map(|(value, count)| (value.as_str(), *count))
            .collect();
        assert_eq!(top, [("c", 5), ("a", 2), ("b", 2)]);
        assert_eq!((found[0].count, found[0].different), (9, 3));
    }

    #[test]
    fn names_and_values_are_bounded() {
        let mut labels = Labels::default();
        for number in 0..10_000 {
            labels.add(&[
                ("id".into(), number.to_string()),
                (format!("n{number}"), "x".into()),
            ]);
        }
        let found = labels.finish();
        assert_eq!(found.len(), NAMES);
        let ids = &found[0];
        assert_eq!(
            (ids.count, ids.different, ids.top.len()),
            (10_000, VALUES, REPORTED)
        );
    }
}
