//! A request is good if its answer is whole and, for users who pay, begins soon.

use veeksha_plugin::check::RequestCheck;
use veeksha_plugin::{Completion, Error, Plugin};

const NANOS_PER_MILLISECOND: u64 = 1_000_000;

#[derive(serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    /// Milliseconds within which an answer for a paying user begins.
    paid_within_ms: u64,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            paid_within_ms: 500,
        }
    }
}

struct PromptAnswers {
    paid_within: u64,
}

impl Plugin for PromptAnswers {
    type Config = Config;
    const NAME: &'static str = "prompt_answers";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "whole answers, and quick ones for those who pay";
}

impl RequestCheck for PromptAnswers {
    fn open(config: Config) -> Result<Self, Error> {
        let paid_within = config.paid_within_ms.saturating_mul(NANOS_PER_MILLISECOND);
        Ok(PromptAnswers { paid_within })
    }

    /// Goodput is the share of requests for which this is true.
    fn is_good(&self, request: &Completion<'_>) -> bool {
        let waited = request
            .chunk_at
            .first()
            .map(|at| at.saturating_sub(request.intended_at));
        let is_quick = waited.is_some_and(|waited| waited < self.paid_within);
        request.is_ok() && (is_quick || request.label("tier") != Some("paid"))
    }
}

veeksha_plugin::export_request_check!(PromptAnswers);
