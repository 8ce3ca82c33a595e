//! Differences between the client's token counts and the server's.

use veeksha_model::RequestRecord;

use crate::answer;
use crate::table::grouped;

/// Counts of both sides, for answered requests where both are known.
#[derive(Debug, Default)]
pub(crate) struct TokenCounts {
    prompts: CountPair,
    answers: CountPair,
}

#[derive(Debug, Default)]
struct CountPair {
    client: u64,
    server: u64,
    requests: u64,
}

impl CountPair {
    fn add(&mut self, client: u64, server: u32) {
        self.client += client;
        self.server += u64::from(server);
        self.requests += 1;
    }

    /// Formats the difference: `7.2 % more in answers (11,540 against 10,765, of 280 requests)`.
    fn result(&self, what: &str) -> Option<String> {
        if self.requests == 0 || self.server == 0 {
            return None;
        }
        let of = format!(
            "{} against {}, of {} {}",
            grouped(self.client as f64, 0),
            grouped(self.server as f64, 0),
            grouped(self.requests as f64, 0),
            if self.requests == 1 { "request" } else { "requests" },
        );
        if self.client == self.server {
            return Some(format!("equally many in {what} ({of})"));
        }
        let share = (self.client as f64 / self.server as f64 - 1.0) * 100.0;
        let side = if share > 0.0 { "more" } else { "fewer" };
        Some(format!("{:.1} % {side} in {what} ({of})", share.abs()))
    }
}

impl TokenCounts {
    /// Records a measured request.
    pub(crate) fn take(&mut self, record: &RequestRecord) {
        let Some(usage) = record.usage.filter(|_| record.is_ok()) else {
            return;
        };
        self.prompts
            .add(answer::client_prompt_tokens(record), usage.prompt);
        let counted = answer::client_tokens(record, |kind| kind.is_generated());
        if counted.exact {
            self.answers.add(counted.tokens, usage.completion);
        }
    }

    /// Returns the note that belongs to every token count of the client; `None` if the tokenizer is
    /// unknown.
    pub(crate) fn note(&self, tokenizer: Option<&str>) -> Option<String> {
        let tokenizer = tokenizer?;
        let sides = [
            self.answers.result("answers"),
            self.prompts
                .result("prompts, where the server's count includes its chat template"),
        ];
        let sides: Vec<String> = sides.into_iter().flatten().collect();
        let against = if sides.is_empty() {
            "the server reported no usage to compare with".to_owned()
        } else {
            format!("against the server's usage it counts {}", sides.join("; "))
        };
        Some(format!(
            "Tokens that the tool counts itself were counted here with {tokenizer}; {against}."
        ))
    }
}

#[cfg(test)]
mod tests {
    use veeksha_model::{ChunkKind, Usage};

    use super::*;
    use crate::fixture::{self, Request};

    /// Ten chunks with 107 tokens for the client and 100 for the server; a prompt of 90 against
    /// 120.
    #[test]
    fn note_states_both_counts() {
        let mut request = Request {
            chunk_tokens: vec![10, 10, 10, 10, 10, 10, 10, 10, 10, 17],
            prompt: 90,
            output: 100,
            from_usage: true,
            usage: Some(Usage {
                prompt: 120,
                completion: 100,
                cached: None,
                reasoning: None,
            }),
            ..Request::default()
        };
        for at in 1..=10 {
            request = request.chunk(f64::from(at), ChunkKind::Content);
        }
        let record = fixture::record(&request);
        let mut counts = TokenCounts::default();
        counts.take(&record);
        assert_eq!(counts.note(None), None);
        assert_eq!(
            counts.note(Some("the embedded tokenizer")).as_deref(),
            Some(
                "Tokens that the tool counts itself were counted here with the embedded tokenizer; against the server's usage it \
                 counts 7.0 % more in answers (107 against 100, of 1 request); 25.0 % fewer in prompts, where the server's count \
                 includes its chat template (90 against 120, of 1 request)."
            )
        );
        let silent = TokenCounts::default().note(Some("the embedded tokenizer"));
        assert!(silent.is_some_and(|note| note.ends_with("the server reported no usage to compare with.")));
    }
}
