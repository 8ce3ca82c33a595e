//! Distributions by the status of requests.

use serde_json::{Value, json};

use super::distribution::GuidellmDistribution;
use super::request::RequestStatus;
use crate::report::MetricList;

/// A distribution for each status, and for all requests.
#[derive(Clone, Debug)]
pub(crate) struct ByStatus {
    pub(crate) successful: GuidellmDistribution,
    pub(super) incomplete: GuidellmDistribution,
    pub(super) errored: GuidellmDistribution,
    pub(crate) total: GuidellmDistribution,
}

impl ByStatus {
    pub(super) fn of(distribution: impl Fn(Option<RequestStatus>) -> GuidellmDistribution) -> ByStatus {
        ByStatus {
            successful: distribution(Some(RequestStatus::Successful)),
            incomplete: distribution(Some(RequestStatus::Incomplete)),
            errored: distribution(Some(RequestStatus::Errored)),
            total: distribution(None),
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "successful": self.successful.json(),
            "incomplete": self.incomplete.json(),
            "errored": self.errored.json(),
            "total": self.total.json(),
        })
    }

    /// Adds the statistics of the status that GuideLLM's tables show.
    pub(super) fn add_to(&self, name: &str, unit: &'static str, list: &mut MetricList) {
        let (status, of) =
            if name.ends_with("_per_second") || name == "request_concurrency" || name == "request_goodput" {
                ("total", &self.total)
            } else {
                ("successful", &self.successful)
            };
        let stats = [("mean", of.mean), ("median", of.median()), ("p95", of.p95())];
        for (stat, value) in stats {
            list.only(
                &format!("{name}.{status}.{stat}"),
                unit,
                Some(value),
                of.count as usize,
            );
        }
    }
}
