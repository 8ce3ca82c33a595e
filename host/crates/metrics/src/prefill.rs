//! Time to first chunk by prompt length: `metrics/prefill_stats.json`.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use veeksha_events::RequestRecord;
use veeksha_stats::Summary;

use veeksha_definitions::Metric;

/// Collects the time to first chunk (first generated chunk − dispatched, in seconds) of measured
/// requests that did not fail by prompt length:
/// the tokens of the new messages that the workload requested,
/// or, without a request, the counted ones. Holds eight bytes per request.
#[derive(Clone, Debug, Default)]
pub struct PrefillStats {
    groups: BTreeMap<u32, Vec<f64>>,
    with_target: u64,
    without_target: u64,
}

impl PrefillStats {
    /// Creates an empty collection.
    pub fn new() -> Self {
        PrefillStats::default()
    }

    /// Processes a finished request. Drained, failed and empty ones are dropped.
    pub fn on(&mut self, record: &RequestRecord) {
        if !record.measured || record.is_failed() {
            return;
        }
        let Some(ttfc) = Metric::Ttfc.sample_of(record) else {
            return;
        };
        let length = if record.target_prompt_tokens > 0 {
            self.with_target += 1;
            record.target_prompt_tokens
        } else {
            self.without_target += 1;
            record.prompt_tokens
        };
        self.groups.entry(length).or_default().push(ttfc);
    }

    /// Returns the groups by ascending length in tokens, with the times to first chunk in seconds
    /// in order of completion, as plotted by prompt length.
    pub fn groups(&self) -> impl Iterator<Item = (u32, &[f64])> {
        self.groups
            .iter()
            .map(|(length, times)| (*length, times.as_slice()))
    }

    /// Returns Veeksha's `prefill_stats.json`: `metric`, `group_by`, and `groups` with `count`,
    /// `mean`, `median`, `std`, `min`, `max`, `p90`, `p99` in seconds by length. `group_by` names
    /// the key of `request_level_metrics.jsonl` that holds the lengths; `grouped_by_actual` counts
    /// the requests that had no target.
    pub fn finish(self) -> Value {
        let group_by = if self.with_target > 0 || self.without_target == 0 {
            "target_num_delta_prompt_tokens"
        } else {
            "num_delta_prompt_tokens"
        };
        let mut groups = serde_json::Map::new();
        for (length, mut times) in self.groups {
            if let Some(summary) = Summary::of(&mut times) {
                groups.insert(length.to_string(), statistics(&summary));
            }
        }
        json!({
            "metric": "ttfc",
            "group_by": group_by,
            "grouped_by_actual": self.without_target,
            "groups": groups,
        })
    }
}

/// Returns a summary under Veeksha's keys.
fn statistics(summary: &Summary) -> Value {
    json!({
        "count": summary.count,
        "mean": summary.mean,
        "median": summary.p50,
        "std": summary.std,
        "min": summary.min,
        "max": summary.max,
        "p90": summary.p90,
        "p99": summary.p99,
    })
}

#[cfg(test)]
mod tests {
    use veeksha_events::Status;
    use veeksha_model::{Chunk, ChunkKind, ErrorClass};

    use super::*;
    use crate::blank;

    /// A request dispatched at 1 s, with its first content `ttfc_millis` later.
    fn answered(target: u32, actual: u32, ttfc_millis: u64) -> RequestRecord {
        let chunk = |millis, kind| Chunk {
            at: millis * 1_000_000,
            lag: 0,
            bytes: 1,
            kind,
            merged: false,
        };
        RequestRecord {
            dispatched_at: 1_000_000_000,
            target_prompt_tokens: target,
            prompt_tokens: actual,
            output_tokens: 1,
            chunks: vec![
                chunk(1_000, ChunkKind::Role),
                chunk(1_000 + ttfc_millis, ChunkKind::Content),
            ],
            ..blank::record()
        }
    }

    fn of(records: &[RequestRecord]) -> Value {
        let mut stats = PrefillStats::new();
        records.iter().for_each(|record| stats.on(record));
        stats.finish()
    }

    #[test]
    fn a_group_has_the_statistics_of_its_length() {
        // 100, 200, 300, 400, 500 ms: mean and median 300, population variance (4 + 1 + 0 + 1 + 4)
        // / 5 * 100² = 2 * 100², P90 at rank 3.6: 400 + 0.6 * 100, P99 at rank 3.96: 496.
        let records: Vec<_> = [300, 100, 500, 200, 400]
            .map(|millis| answered(128, 130, millis))
            .to_vec();
        let seen = of(&records);
        assert_eq!(seen["metric"], "ttfc");
        assert_eq!(seen["group_by"], "target_num_delta_prompt_tokens");
        let group = &seen["groups"]["128"];
        assert_eq!(group["count"], 5);
        for (key, expected) in [
            ("mean", 0.3),
            ("median", 0.3),
            ("std", 0.02f64.sqrt()),
            ("min", 0.1),
            ("max", 0.5),
            ("p90", 0.46),
            ("p99", 0.496),
        ] {
            let value = group[key].as_f64().unwrap();
            assert!((value - expected).abs() < 1e-12, "{key}: {value}");
        }
        assert_eq!(seen["groups"].as_object().unwrap().len(), 1);
    }

    #[test]
    fn the_role_is_not_the_first_chunk_and_the_value_is_the_metric() {
        let record = answered(1, 1, 250);
        let metric = crate::latencies(&record).ttfc.unwrap();
        assert_eq!(of(&[record])["groups"]["1"]["mean"].as_f64(), Some(metric));
        assert_eq!(metric, 0.25);
    }

    #[test]
    fn without_a_target_the_counted_length_groups() {
        let mixed = of(&[answered(64, 60, 10), answered(0, 77, 10)]);
        let groups: Vec<_> = mixed["groups"].as_object().unwrap().keys().collect();
        assert_eq!(groups, ["64", "77"]);
        assert_eq!(
            (&mixed["group_by"], &mixed["grouped_by_actual"]),
            (&"target_num_delta_prompt_tokens".into(), &1.into())
        );
        assert_eq!(of(&[answered(0, 77, 10)])["group_by"], "num_delta_prompt_tokens");
    }

    #[test]
    fn what_is_no_measurement_is_left_out() {
        let drained = RequestRecord {
            measured: false,
            ..answered(128, 128, 10)
        };
        let failed = RequestRecord {
            status: Status::Failed {
                class: ErrorClass::Truncated,
                message: String::new(),
            },
            ..answered(128, 128, 10)
        };
        let silent = RequestRecord {
            chunks: Vec::new(),
            ..answered(128, 128, 10)
        };
        assert_eq!(of(&[drained, failed, silent])["groups"], json!({}));
    }

    #[test]
    fn groups_go_up_by_length_and_keep_the_order_of_completion() {
        let mut stats = PrefillStats::new();
        for record in [answered(1024, 0, 40), answered(128, 0, 20), answered(128, 0, 10)] {
            stats.on(&record);
        }
        let groups: Vec<_> = stats
            .groups()
            .map(|(length, times)| (length, times.to_vec()))
            .collect();
        assert_eq!(groups, [(128, vec![0.02, 0.01]), (1024, vec![0.04])]);
    }
}
