//! Check that the server's prefix cache held nothing beyond what this run can explain.

use veeksha_model::RequestRecord;
use veeksha_stats::share;

use crate::expected::Expected;
use crate::overtaken::{CacheSurplus, Overtaken};
use crate::report::{HealthCheck, ValueUnit, Violations};

pub(crate) const NAME: &str = "Cold Cache";

/// Cached prompt tokens reported by the server, compared with an unbounded cache that was empty at
/// the start of the run.
pub(crate) struct CacheCheck {
    cold: Option<crate::expected::ColdCache>,
    reporting: u64,
    prompt_tokens: u64,
    cached: u64,
    ideal: u64,
    /// Cached tokens that earlier requests of this run explain.
    explained: u64,
    /// Cached tokens excluded from the check: at most the slack of each prompt.
    not_counted: u64,
    unexpected: u64,
    overtaken: Overtaken,
    violations: Violations,
}

impl CacheCheck {
    pub(crate) fn new(expected: &Expected) -> Self {
        CacheCheck {
            cold: expected.cold_cache,
            reporting: 0,
            prompt_tokens: 0,
            cached: 0,
            ideal: 0,
            explained: 0,
            not_counted: 0,
            unexpected: 0,
            overtaken: Overtaken::default(),
            violations: Violations::default(),
        }
    }

    /// Records a measured request. A server may also cache what it generated, so a conversation's
    /// history is always explained, even if the prefix account does not include it.
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
        // A record without an account of prefixes belongs to a workload that guarantees distinct
        // prompts: the host compares the prompts of all others.
        let known = record.ideal_cached_tokens.unwrap_or(0).max(history);
        let known = in_tokens_of_the_server(known, record.total_prompt_tokens, usage.prompt);
        let beyond = cached.saturating_sub(known);
        let not_counted = beyond.min(cold.slack);
        let unexpected = beyond - not_counted;
        self.reporting += 1;
        self.prompt_tokens += u64::from(usage.prompt);
        self.cached += u64::from(cached);
        self.ideal += u64::from(known);
        self.explained += u64::from(cached.min(known));
        self.not_counted += u64::from(not_counted);
        let surprise = CacheSurplus {
            request: record.id,
            cached,
            known,
        };
        if let Some((surprise, tokens)) = self.overtaken.on(record, surprise, unexpected) {
            self.add_unexpected(surprise, tokens);
        }
    }

    fn add_unexpected(&mut self, of: CacheSurplus, tokens: u32) {
        self.unexpected += u64::from(tokens);
        self.violations
            .add(|| format!("{} ({} cached, {} explained)", of.request, of.cached, of.known));
    }

    pub(crate) fn finish(mut self) -> HealthCheck {
        for (surprise, tokens) in std::mem::take(&mut self.overtaken).finish() {
            self.add_unexpected(surprise, tokens);
        }
        let Some(cold) = self.cold else {
            return HealthCheck::skipped(NAME, "the scenario does not require a cold cache");
        };
        if self.reporting == 0 {
            return HealthCheck::skipped(NAME, "the server reports no cached tokens");
        }
        let mut check = HealthCheck::new(NAME);
        let of_all = |tokens: u64| tokens as f64 / self.prompt_tokens.max(1) as f64;
        let of_prompts = of_all(self.unexpected);
        if self.violations.count > 0 {
            let what = format!(
                "{} of all prompt tokens were cached although no request of this run had sent them before ({} allowed, and {} tokens of each \
                 prompt), in {} of {}: {}; in total {} were cached",
                share(of_prompts),
                share(cold.allowed_share),
                cold.slack,
                self.violations.count,
                veeksha_stats::counted(self.reporting, "request"),
                self.violations.names(),
                share(of_all(self.cached))
            );
            if of_prompts > cold.allowed_share {
                check.fail(
                    what,
                    "restart the server or clear its prefix cache before each run",
                );
            } else {
                check.note(what);
            }
        }
        check.value("requests reporting", ValueUnit::Count, self.reporting as f64);
        check.value("prompt tokens", ValueUnit::Tokens, self.prompt_tokens as f64);
        check.value("cached tokens", ValueUnit::Tokens, self.cached as f64);
        check.value(
            "cached tokens with an ideal cache",
            ValueUnit::Tokens,
            self.ideal as f64,
        );
        // Every cached token is counted exactly once.
        let counted = self.explained + self.not_counted + self.unexpected;
        let out_of_turn = self.cached.saturating_sub(counted);
        let parts = [
            ("from earlier requests", self.explained),
            ("allowed in each prompt", self.not_counted),
            ("from concurrent requests", out_of_turn),
        ];
        for (part, tokens) in parts {
            check.value(&format!("cached tokens {part}"), ValueUnit::Tokens, tokens as f64);
        }
        check.value(
            "cached tokens unexplained",
            ValueUnit::Tokens,
            self.unexpected as f64,
        );
        check.value("share unexplained", ValueUnit::Share, of_prompts);
        check
    }
}

/// Converts a token count of the host's tokenizer into the server's. The server may need more
/// tokens for the same text. Where it needs fewer, its chat template makes up for some of them, so
/// the count is never reduced.
fn in_tokens_of_the_server(known: u32, prompt: u32, of_server: u32) -> u32 {
    if prompt == 0 || of_server <= prompt {
        return known;
    }
    let scaled = (u64::from(known) * u64::from(of_server)).div_ceil(u64::from(prompt));
    u32::try_from(scaled).unwrap_or(u32::MAX)
}
