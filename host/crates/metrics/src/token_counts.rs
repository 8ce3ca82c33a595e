//! The independent counts of an answer's tokens, and their disagreement.

use veeksha_events::RequestRecord;

/// The output tokens of measured answers, counted by the server and by the host.
///
/// A server counts the token that ends an answer, which has no text: a difference of one token in
/// an answer is not a disagreement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerTokens {
    /// The sum over the chunks, of answers that have both counts.
    pub by_host: u64,
    /// The sum of the totals that the server reported, of the same answers.
    pub by_server: u64,
    /// The sum of the absolute differences over these answers.
    pub disagreement: u64,
    /// Answers of several chunks.
    pub answers: u64,
    /// Of these, answers whose total is less than the minimum for their chunks: each has at least
    /// one token.
    pub too_few: u64,
    /// Of these, answers with uncounted chunks of several tokens: the first chunk is assumed to
    /// have an equal share.
    pub assumed: u64,
}

impl AnswerTokens {
    /// Adds a measured answer.
    pub(crate) fn add(&mut self, record: &RequestRecord) {
        let chunks = record.generated_at().count() as u64;
        let total = u64::from(record.output_tokens);
        let by_chunk = record.tokens_by_chunk();
        if let (Some(tokens), true) = (&by_chunk, record.output_tokens_from_usage)
            && !record.chunk_tokens.is_empty()
        {
            let counted: u64 = tokens.iter().copied().map(u64::from).sum();
            self.by_host = self.by_host.saturating_add(counted);
            self.by_server += total;
            self.disagreement = self
                .disagreement
                .saturating_add(beyond_one(counted.abs_diff(total)));
        }
        if chunks < 2 {
            return;
        }
        self.answers += 1;
        // A chunk that ends within a character may have zero tokens.
        let with_tokens = match &by_chunk {
            Some(tokens) => tokens.iter().filter(|tokens| **tokens > 0).count() as u64,
            None => chunks,
        };
        if with_tokens > total + 1 {
            self.too_few += 1;
        } else if by_chunk.is_none() && total > chunks + 1 {
            self.assumed += 1;
        }
    }

    /// Returns the disagreement as a share of the server's count; `None` if no answer has both
    /// counts.
    pub fn disagreement_share(&self) -> Option<f64> {
        (self.by_server > 0).then(|| self.disagreement as f64 / self.by_server as f64)
    }
}

fn beyond_one(difference: u64) -> u64 {
    if difference > 1 { difference } else { 0 }
}
