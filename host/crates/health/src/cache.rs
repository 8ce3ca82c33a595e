//! Whether the server's prefix cache knew more than this run can have taught it.

use veeksha_model::RequestRecord;
use veeksha_stats::share;

use crate::expected::{Expected, WithoutAccount};
use crate::overtaken::{Overtaken, Surprise};
use crate::report::{Check, Culprits, Unit, count};

pub(crate) const NAME: &str = "Cold Cache";

/// Cached prompt tokens that the server reports, against what an unbounded cache that began the run empty would have known.
pub(crate) struct Cache {
    cold: Option<crate::expected::ColdCache>,
    reporting: u64,
    /// Those that report, and of whose prompts nobody knows what they began with.
    unknown: u64,
    prompt_tokens: u64,
    cached: u64,
    ideal: u64,
    /// Cached tokens that the server can know from this run.
    explained: u64,
    /// Cached tokens that are not counted: no more than the slack of each prompt.
    not_counted: u64,
    unexpected: u64,
    overtaken: Overtaken,
    culprits: Culprits,
}

impl Cache {
    pub(crate) fn new(expected: &Expected) -> Self {
        Cache {
            cold: expected.cold_cache,
            reporting: 0,
            unknown: 0,
            prompt_tokens: 0,
            cached: 0,
            ideal: 0,
            explained: 0,
            not_counted: 0,
            unexpected: 0,
            overtaken: Overtaken::default(),
            culprits: Culprits::default(),
        }
    }

    /// Takes a measured request. A server may also keep what it generated, so a conversation's past is never a surprise, whatever the
    /// account of prefixes says.
    pub(crate) fn on_record(&mut self, record: &RequestRecord) {
        let (Some(cold), Some(usage)) = (self.cold, record.usage) else {
            return;
        };
        let Some(cached) = usage.cached else {
            return;
        };
        if record.ideal_cached_tokens.is_none() && cold.without_account == WithoutAccount::Unknown {
            self.unknown += 1;
            return;
        }
        let history = match record.history_parent {
            Some(_) => record.total_prompt_tokens.saturating_sub(record.prompt_tokens),
            None => 0,
        };
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
        let surprise = Surprise {
            request: record.id,
            cached,
            known,
        };
        if let Some((surprise, tokens)) = self.overtaken.on(record, surprise, unexpected) {
            self.blame(surprise, tokens);
        }
    }

    fn blame(&mut self, of: Surprise, tokens: u32) {
        self.unexpected += u64::from(tokens);
        self.culprits
            .add(|| format!("{} ({} cached, {} known)", of.request, of.cached, of.known));
    }

    pub(crate) fn finish(mut self) -> Check {
        for (surprise, tokens) in std::mem::take(&mut self.overtaken).finish() {
            self.blame(surprise, tokens);
        }
        let Some(cold) = self.cold else {
            return Check::skipped(NAME, "nothing is asked of the server's cache");
        };
        if self.reporting == 0 {
            return Check::skipped(
                NAME,
                match self.unknown {
                    0 => "the server reports no cached tokens",
                    _ => "the record does not say which prompts begin alike, and those of this workload may",
                },
            );
        }
        let mut check = Check::new(NAME);
        if self.unknown > 0 {
            check.note(format!(
                "{} could not be judged: the record does not say what earlier prompts began like theirs",
                count(self.unknown, "request")
            ));
        }
        let of_all = |tokens: u64| tokens as f64 / self.prompt_tokens.max(1) as f64;
        let of_prompts = of_all(self.unexpected);
        if self.culprits.count > 0 {
            let what = format!(
                "{} of all prompt tokens were cached, and {} of all came from a cache that this run cannot have filled, not counting {} \
                 tokens of each prompt ({} is allowed), in {} of {}: {}",
                share(of_all(self.cached)),
                share(of_prompts),
                cold.slack,
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
        // These are all cached tokens, each once.
        let counted = self.explained + self.not_counted + self.unexpected;
        let out_of_turn = self.cached.saturating_sub(counted);
        let parts = [
            ("known from this run", self.explained),
            ("not counted", self.not_counted),
            ("known out of turn", out_of_turn),
        ];
        for (part, tokens) in parts {
            check.figure(&format!("cached tokens {part}"), Unit::Tokens, tokens as f64);
        }
        check.figure("unexpected tokens", Unit::Tokens, self.unexpected as f64);
        check.figure("unexpected share", Unit::Share, of_prompts);
        check
    }
}

/// As many tokens of a prompt as the server would count: its tokenizer may need more of them for the same words. Where it needs fewer,
/// its template makes up for some, and nothing is taken away.
fn in_tokens_of_the_server(known: u32, prompt: u32, of_server: u32) -> u32 {
    if prompt == 0 || of_server <= prompt {
        return known;
    }
    let scaled = (u64::from(known) * u64::from(of_server)).div_ceil(u64::from(prompt));
    u32::try_from(scaled).unwrap_or(u32::MAX)
}
