//! Goodput of inference-perf, which covers successful requests only.

use serde_json::{Map, Value};

use super::success::Success;
use crate::options::ViewOptions;
use crate::report::number;

/// `calculate_goodput_metrics`.
pub(super) struct Goodput {
    good: u64,
    tokens: f64,
    total: u64,
    attained: Vec<(String, u64)>,
}

impl Goodput {
    /// Returns the share in percent, and requests and tokens per second.
    pub(super) fn rates(&self, seconds: f64) -> [f64; 3] {
        let per = |value: f64| if seconds > 0.0 { value / seconds } else { 0.0 };
        [
            100.0 * self.good as f64 / self.total as f64,
            per(self.good as f64),
            per(self.tokens),
        ]
    }

    pub(super) fn object(&self, seconds: f64) -> Map<String, Value> {
        let [share, requests, tokens] = self.rates(seconds);
        let mut object = Map::from_iter([
            ("goodput_percentage".to_owned(), number(Some(share))),
            ("request_goodput".to_owned(), number(Some(requests))),
            ("token_goodput".to_owned(), number(Some(tokens))),
            ("good_requests".to_owned(), self.good.into()),
            ("total_requests".to_owned(), self.total.into()),
        ]);
        for (metric, count) in &self.attained {
            let share = *count as f64 / self.total as f64 * 100.0;
            object.insert(format!("{metric}_attainment_percentage"), number(Some(share)));
        }
        object
    }
}

/// Computes the goodput; `None` without thresholds or without successes.
pub(super) fn of(answered: &[Success], options: &ViewOptions) -> Option<Goodput> {
    if options.goodput.is_empty() || answered.is_empty() {
        return None;
    }
    let mut goodput = Goodput {
        good: 0,
        tokens: 0.0,
        total: answered.len() as u64,
        attained: options
            .goodput
            .iter()
            .map(|threshold| (threshold.metric.clone(), 0))
            .collect(),
    };
    for success in answered {
        let mut good = true;
        for (threshold, attained) in options.goodput.iter().zip(&mut goodput.attained) {
            let value = match threshold.metric.as_str() {
                "ttft" => success.ttft,
                "tpot" => success.tpot,
                "itl" => success.itl,
                "ntpot" => Some(success.ntpot),
                _ => Some(success.latency),
            };
            let met = value.is_some_and(|value| value <= threshold.value);
            attained.1 += u64::from(met);
            good &= met;
        }
        if good {
            goodput.good += 1;
            goodput.tokens += success.prompt + success.client_output;
        }
    }
    Some(goodput)
}
