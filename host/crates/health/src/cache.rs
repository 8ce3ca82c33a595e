//! Whether the server's prefix cache knew more than this run can have taught it.

use veeksha_model::RequestRecord;
use veeksha_stats::share;

use crate::{
    Expected,
    report::{Check, Culprits, Unit, count},
};

pub(crate) const NAME: &str = "Cold Cache";

/// Cached prompt tokens that the server reports, against what an unbounded cache that began the run empty would have known.
pub(crate) struct Cache {
    cold: Option<crate::ColdCache>,
    reporting: u64,
    prompt_tokens: u64,
    cached: u64,
    ideal: u64,
    unexpected: u64,
    culprits: Culprits,
}

impl Cache {
    pub(crate) fn new(expected: &Expected) -> Self {
        Cache {
            cold: expected.cold_cache,
            reporting: 0,
            prompt_tokens: 0,
            cached: 0,
            ideal: 0,
            unexpected: 0,
            culprits: Culprits::default(),
        }
    }

    /// Takes a measured request. Where no account of prefixes was kept, nothing was known but its own history: a server may
    /// also keep what it generated, so a conversation's past is never a surprise.
    pub(crate) fn on_record(&mut self, record: &RequestRecord) {
        let (Some(cold), Some(usage)) = (self.cold, record.usage) else {
            return;
        };
        let Some(cached) = usage.cached else {
            return;
        };
        let history = match record.history_parent {
            Some(_) => record.total_prompt_tokens.saturating_sub(record.prompt_tokens),
            None => 0,
        };
        let known = record.ideal_cached_tokens.unwrap_or(0).max(history);
        let unexpected = cached.saturating_sub(known.saturating_add(cold.slack));
        self.reporting += 1;
        self.prompt_tokens += u64::from(usage.prompt);
        self.cached += u64::from(cached);
        self.ideal += u64::from(known);
        self.unexpected += u64::from(unexpected);
        if unexpected > 0 {
            self.culprits
                .add(|| format!("{} ({cached} cached, {known} known)", record.id));
        }
    }

    pub(crate) fn finish(self) -> Check {
        let Some(cold) = self.cold else {
            return Check::skipped(NAME, "nothing is asked of the server's cache");
        };
        if self.reporting == 0 {
            return Check::skipped(NAME, "the server reports no cached tokens");
        }
        let mut check = Check::new(NAME);
        let of_prompts = self.unexpected as f64 / self.prompt_tokens.max(1) as f64;
        if self.culprits.count > 0 {
            let what = format!(
                "{} of all prompt tokens came from a cache that this run cannot have filled ({} is allowed), in {} of {}: {}",
                share(of_prompts),
                share(cold.allowed_share),
                self.culprits.count,
                count(self.reporting, "request"),
                self.culprits.names()
            );
            if of_prompts > cold.allowed_share {
                check.fail(what);
            } else {
                check.note(what);
            }
        }
        check.figure("requests reporting", Unit::Count, self.reporting as f64);
        check.figure("prompt tokens", Unit::Tokens, self.prompt_tokens as f64);
        check.figure("cached tokens", Unit::Tokens, self.cached as f64);
        check.figure("cached tokens to be expected", Unit::Tokens, self.ideal as f64);
        check.figure("unexpected tokens", Unit::Tokens, self.unexpected as f64);
        check.figure("unexpected share", Unit::Share, of_prompts);
        check
    }
}
