//! The independent counts of the answers' output tokens, and their disagreement.
//!
//! The tokens of an answer can be counted in three ways: by the server (usage), by the host's
//! tokenizer, and by the number of generated chunks. A server counts the token that ends an
//! answer, which has no text: a difference of one token in an answer is not a disagreement.

use veeksha_events::RequestRecord;

/// Two counts of the output tokens of the same answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountComparison {
    /// Number of answers.
    pub answers: u64,
    /// Sum of the counts from which metrics are computed.
    pub used: u64,
    /// Sum of the other counts.
    pub other: u64,
    /// Sum of the absolute differences of more than one token.
    pub difference: u64,
    /// Generated chunks of these answers.
    pub chunks: u64,
}

/// The output tokens of measured answers by each count.
///
/// An answer belongs to at most one comparison: `usage_and_chunks` if the server's total is the
/// number of chunks, otherwise `usage_and_chunk_tokens` if the tokens of its chunks are known, and
/// `tokenizer_and_chunks` if the server reported no total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerTokens {
    /// Usage and the number of chunks, of answers with one token in each chunk: they agree.
    pub usage_and_chunks: CountComparison,
    /// Usage and the sum over the chunks, of answers whose chunks contain several tokens. The
    /// tokens of chunks are the server's running counts where it reports them, otherwise the
    /// tokenizer's.
    pub usage_and_chunk_tokens: CountComparison,
    /// The tokenizer's total and the number of chunks, of answers without usage.
    pub tokenizer_and_chunks: CountComparison,
    /// Answers without usage and with fewer than two chunks: the tokenizer's total is the only
    /// count.
    pub only_tokenizer: u64,
    /// Answers of several chunks.
    pub answers: u64,
    /// Of these, answers whose usage is less than the minimum for their chunks: each has at least
    /// one token.
    pub too_few: u64,
    /// Of these, answers with uncounted chunks of several tokens: the first chunk is assumed to
    /// have an equal share.
    pub assumed: u64,
}

/// The prompt tokens of answered requests with two counts: the host's, from which metrics are
/// computed, and the server's usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PromptCounts {
    /// Number of requests.
    pub requests: u64,
    /// Prompt tokens (history and new messages) by the host's tokenizer.
    pub by_host: u64,
    /// Prompt tokens that the server reported.
    pub by_server: u64,
}

impl PromptCounts {
    /// Adds a measured request.
    pub(crate) fn add(&mut self, record: &RequestRecord) {
        let usage = record.usage.filter(|usage| usage.prompt > 0 && record.is_ok());
        if let Some(usage) = usage {
            self.requests += 1;
            self.by_host += u64::from(record.total_prompt_tokens);
            self.by_server += u64::from(usage.prompt);
        }
    }

    /// Returns server's count ÷ host's count − 1; `None` if the host counted no tokens.
    pub fn excess_share(&self) -> Option<f64> {
        (self.by_host > 0).then(|| self.by_server as f64 / self.by_host as f64 - 1.0)
    }
}

impl CountComparison {
    fn add(&mut self, used: u64, other: u64, chunks: u64) {
        let difference = used.abs_diff(other);
        self.answers += 1;
        self.used = self.used.saturating_add(used);
        self.other = self.other.saturating_add(other);
        self.chunks = self.chunks.saturating_add(chunks);
        if difference > 1 {
            self.difference = self.difference.saturating_add(difference);
        }
    }

    /// Returns the sums of both.
    fn plus(self, more: CountComparison) -> CountComparison {
        CountComparison {
            answers: self.answers + more.answers,
            used: self.used.saturating_add(more.used),
            other: self.other.saturating_add(more.other),
            difference: self.difference.saturating_add(more.difference),
            chunks: self.chunks.saturating_add(more.chunks),
        }
    }
}

impl AnswerTokens {
    /// Adds a measured answer.
    pub(crate) fn add(&mut self, record: &RequestRecord) {
        let chunks = record.generated_at().count() as u64;
        let total = u64::from(record.output_tokens);
        let by_chunk = record.tokens_by_chunk();
        let has_usage = record.output_tokens_from_usage;
        if has_usage && chunks > 0 {
            if total.abs_diff(chunks) <= 1 {
                self.usage_and_chunks.add(total, chunks, chunks);
            } else if let Some(tokens) = &by_chunk {
                let counted = tokens.iter().copied().map(u64::from).sum();
                self.usage_and_chunk_tokens.add(total, counted, chunks);
            }
        } else if !has_usage && chunks > 1 {
            self.tokenizer_and_chunks.add(total, chunks, chunks);
        } else if !has_usage && record.has_output() {
            self.only_tokenizer += 1;
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
        if has_usage && with_tokens > total + 1 {
            self.too_few += 1;
        } else if by_chunk.is_none() && total > chunks + 1 {
            self.assumed += 1;
        }
    }

    /// Returns the sums over all answers that have two counts.
    pub fn compared(&self) -> CountComparison {
        self.usage_and_chunks
            .plus(self.usage_and_chunk_tokens)
            .plus(self.tokenizer_and_chunks)
    }

    /// Returns the disagreement of a comparison as a share of the tokens of all answers that have
    /// two counts; `None` if there are none.
    pub fn share_of_all(&self, comparison: &CountComparison) -> Option<f64> {
        let all = self.compared();
        // Without any token in use, the share relates to the other counts.
        let tokens = if all.used > 0 { all.used } else { all.other };
        (tokens > 0).then(|| comparison.difference as f64 / tokens as f64)
    }

    /// Returns the disagreement of all comparisons: the sum of the absolute differences ÷ the
    /// tokens in use, over all answers that have two counts; `None` if no answer has two.
    pub fn disagreement_share(&self) -> Option<f64> {
        self.share_of_all(&self.compared())
    }
}

#[cfg(test)]
mod tests {
    use veeksha_model::{Chunk, ChunkKind, NodeId, RequestId, SessionId};

    use super::*;

    /// An answer with `chunks` chunks and `total` tokens.
    fn answer(chunks: u64, total: u32, from_usage: bool, by_chunk: &[u32]) -> RequestRecord {
        let chunk = |at| Chunk {
            at,
            lag: 0,
            bytes: 1,
            kind: ChunkKind::Content,
            merged: false,
        };
        RequestRecord {
            chunks: (0..chunks).map(chunk).collect(),
            chunk_tokens: by_chunk.to_vec(),
            output_tokens: total,
            output_tokens_from_usage: from_usage,
            ..RequestRecord::answered(RequestId {
                session: SessionId(0),
                node: NodeId(0),
            })
        }
    }

    fn counted(answers: impl IntoIterator<Item = RequestRecord>) -> AnswerTokens {
        let mut tokens = AnswerTokens::default();
        answers.into_iter().for_each(|record| tokens.add(&record));
        tokens
    }

    /// Of 100 answers with 100 tokens, one has chunks of two tokens that the tokenizer counts as
    /// three: 50 of 10,000 tokens differ.
    #[test]
    fn disagreement_relates_to_all_answers_with_two_counts() {
        let plain = (0..99).map(|_| answer(100, 100, true, &[]));
        let tokens = counted(plain.chain([answer(50, 100, true, &[3; 50])]));
        assert_eq!(tokens.usage_and_chunks.answers, 99);
        assert_eq!(
            tokens.usage_and_chunk_tokens,
            CountComparison {
                answers: 1,
                used: 100,
                other: 150,
                difference: 50,
                chunks: 50
            }
        );
        assert_eq!(tokens.disagreement_share(), Some(0.005));
    }

    /// The token that ends an answer makes usage one more than the chunks; a tokenizer that is not
    /// the server's is then irrelevant.
    #[test]
    fn chunks_that_confirm_usage_outweigh_the_tokenizer() {
        let tokens = counted([answer(9, 10, true, &[2; 9])]);
        assert_eq!(
            (tokens.usage_and_chunks.answers, tokens.disagreement_share()),
            (1, Some(0.0))
        );
        assert_eq!(tokens.usage_and_chunk_tokens.answers, 0);
    }

    #[test]
    fn tokenizer_totals_are_compared_with_chunks_if_usage_is_absent() {
        let tokens = counted([answer(10, 20, false, &[2; 10]), answer(20, 20, false, &[])]);
        assert_eq!(tokens.tokenizer_and_chunks.answers, 2);
        assert_eq!(tokens.disagreement_share(), Some(0.25));
        assert_eq!((tokens.too_few, tokens.only_tokenizer), (0, 0));
    }

    #[test]
    fn one_chunk_or_none_does_not_confirm_the_tokenizer() {
        let mut whole = answer(1, 20, false, &[]);
        whole.chunks[0].kind = ChunkKind::Finish;
        let tokens = counted([answer(1, 20, false, &[20]), whole, answer(0, 0, false, &[])]);
        assert_eq!((tokens.only_tokenizer, tokens.disagreement_share()), (2, None));
    }

    #[test]
    fn disagreement_of_no_tokens_at_all_relates_to_the_other_count() {
        assert_eq!(
            counted([answer(10, 0, false, &[])]).disagreement_share(),
            Some(1.0)
        );
    }
}
