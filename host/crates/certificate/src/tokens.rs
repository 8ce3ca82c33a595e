//! Doubts about the run's token counts. They affect the metrics that are computed from counts, but
//! do not appear in timing errors.

use std::fmt;

use veeksha_metrics::{AnswerTokens, CountComparison, Metric, PromptCounts, RunMetric};
use veeksha_stats::share;

use crate::conditions::RunConditions;
use crate::verdict::{CertFinding, Verdict};

/// Counts that differ by more than this share are reported, and the metric is marked.
const DISAGREE: f64 = 0.01;

/// Tokenizers of current models differ by up to about a quarter on ordinary text. If counts differ
/// by more, one of them is wrong.
const WRONG: f64 = 0.25;

/// The advice for servers that report no total.
const REPORT_USAGE: &str = "have the server report usage (vLLM: `stream_options.include_usage`), or name the model's tokenizer (`client.tokenizer`)";

/// The reason why the token counts of a run are doubtful.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TokenDoubt {
    /// The share by which independent counts differ, if it is above 1 %.
    pub disagreement: Option<f64>,
    /// True if the tokenizer's counts are used, nothing confirms them, and the tokenizer is not
    /// known to be the server's.
    pub is_unverified: bool,
    /// True if only the tokens of the chunks are doubtful: the server's total is used, and no count
    /// contradicts it.
    pub is_of_chunks_only: bool,
}

impl TokenDoubt {
    /// Returns the doubt about the token counts of a run; `None` if there is none.
    pub(crate) fn of(tokens: &AnswerTokens, conditions: &RunConditions) -> Option<TokenDoubt> {
        let tokens = &comparable(tokens, conditions);
        let doubt = TokenDoubt {
            disagreement: tokens.disagreement_share().filter(|share| *share > DISAGREE),
            is_unverified: !conditions.tokenizer_is_of_model
                && (is_relevant(tokens, &tokens.tokenizer_and_chunks) || has_only_tokenizer(tokens)),
            is_of_chunks_only: false,
        };
        (doubt != TokenDoubt::default()).then(|| TokenDoubt {
            is_of_chunks_only: !doubt.is_unverified && has_plausible_totals(tokens),
            ..doubt
        })
    }

    /// Returns true if a metric is computed from doubtful counts.
    pub fn affects(&self, metric: Metric) -> bool {
        let definition = metric.definition_of();
        if self.is_of_chunks_only {
            definition.uses_tokens_of_chunks
        } else {
            definition.uses_token_counts
        }
    }
}

impl fmt::Display for TokenDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.disagreement, self.is_unverified) {
            (None, _) => f.write_str("token counts are not verified"),
            (Some(differ), false) => write!(f, "token counts differ by {}", share(differ)),
            (Some(differ), true) => {
                write!(f, "token counts differ by {} and are not verified", share(differ))
            }
        }
    }
}

/// The server's count of prompt tokens differs from the host's, from which metrics are computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PromptDoubt {
    /// Both counts.
    pub counts: PromptCounts,
    /// Server's count ÷ host's count − 1.
    pub excess: f64,
}

impl PromptDoubt {
    /// Returns the doubt about the prompt tokens of a run; `None` if there is none.
    pub(crate) fn of(counts: PromptCounts) -> Option<PromptDoubt> {
        let excess = counts.excess_share().filter(|excess| excess.abs() > DISAGREE)?;
        Some(PromptDoubt { counts, excess })
    }

    /// Returns the finding on the difference. It does not change the verdict.
    pub(crate) fn finding(&self, conditions: &RunConditions) -> CertFinding {
        let PromptCounts {
            requests,
            by_host,
            by_server,
        } = self.counts;
        // A template only adds tokens.
        let may_be_template = conditions.may_have_uncounted_template && self.excess > 0.0;
        let remedy = if !conditions.tokenizer_is_of_model {
            Some("name the model's tokenizer (`client.tokenizer`)")
        } else {
            may_be_template.then_some(
                "if the server applies a chat template, count with it (`client.apply_chat_template`)",
            )
        };
        let template = if may_be_template {
            " Chat templates that the host does not apply are part of the difference."
        } else {
            ""
        };
        let names: Vec<&str> = prompt_metric_names().collect();
        CertFinding {
            remedy: remedy.map(str::to_owned),
            ..CertFinding::remark(format!(
                "prompt tokens: {self}: {by_server}, and the host's tokenizer {by_host}, in {}.{template} Metrics \
                 computed from the host's count: {}",
                veeksha_stats::counted(requests, "request"),
                names.join(", ")
            ))
        }
    }
}

impl fmt::Display for PromptDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.excess > 0.0 { "more" } else { "fewer" };
        write!(
            f,
            "the server counted {} {direction} prompt tokens",
            share(self.excess.abs())
        )
    }
}

/// Returns the names of the metrics and run metrics that are computed from prompt tokens.
pub(crate) fn prompt_metric_names() -> impl Iterator<Item = &'static str> {
    let metrics = Metric::all().filter(|metric| metric.definition_of().uses_prompt_tokens);
    let run_metrics = [RunMetric::InputTokensPerSecond, RunMetric::TotalTokensPerSecond];
    metrics
        .map(Metric::name)
        .chain(run_metrics.into_iter().map(RunMetric::name))
}

/// Returns true if the server's total is used wherever counts differ, is not less than the number
/// of chunks, and differs from the tokens of the chunks by no more than tokenizers do.
fn has_plausible_totals(tokens: &AnswerTokens) -> bool {
    let usage = &tokens.usage_and_chunk_tokens;
    !is_relevant(tokens, &tokens.tokenizer_and_chunks)
        && tokens.share_of_all(usage).is_none_or(|share| share <= WRONG)
        && tokens.too_few as f64 <= DISAGREE * tokens.answers as f64
}

/// Returns true if the tokens of the chunks are as many as the chunks, unlike usage.
fn chunks_agree(usage: &CountComparison) -> bool {
    usage.other.abs_diff(usage.chunks) as f64 <= DISAGREE * usage.chunks as f64
}

/// Returns the counts that can contradict each other. A server may send several tokens in a chunk,
/// so the tokenizer of the model contradicts the chunks only if it counts fewer tokens.
fn comparable(tokens: &AnswerTokens, conditions: &RunConditions) -> AnswerTokens {
    let mut comparable = *tokens;
    let without_usage = &mut comparable.tokenizer_and_chunks;
    if conditions.tokenizer_is_of_model && without_usage.used >= without_usage.other {
        *without_usage = CountComparison::default();
    }
    comparable
}

/// Returns true if a comparison contributes more than 1 % to the disagreement of the run.
fn is_relevant(tokens: &AnswerTokens, comparison: &CountComparison) -> bool {
    tokens
        .share_of_all(comparison)
        .is_some_and(|share| share > DISAGREE)
}

/// Returns true if the tokenizer's total is the only count of more than 1 % of the answers.
fn has_only_tokenizer(tokens: &AnswerTokens) -> bool {
    let answers = tokens.compared().answers + tokens.only_tokenizer;
    tokens.only_tokenizer as f64 > DISAGREE * answers as f64
}

/// Returns a finding for each pair of token counts that contradict each other, and for counts that
/// nothing confirms.
pub(crate) fn token_findings(tokens: &AnswerTokens, conditions: &RunConditions) -> Vec<CertFinding> {
    let tokens = &comparable(tokens, conditions);
    let mut findings = Vec::new();
    if is_relevant(tokens, &tokens.usage_and_chunk_tokens) {
        findings.push(usage_differs(tokens, conditions));
    }
    if is_relevant(tokens, &tokens.tokenizer_and_chunks) {
        findings.push(tokenizer_differs(tokens, conditions));
    }
    if !conditions.tokenizer_is_of_model && has_only_tokenizer(tokens) {
        findings.push(CertFinding {
            remedy: Some(REPORT_USAGE.into()),
            ..CertFinding::remark(format!(
                "token counts are not verified: {} have no usage and fewer than two chunks, so the host's tokenizer is \
                 the only count. Metrics that depend on it: {}",
                veeksha_stats::counted(tokens.only_tokenizer, "answer"),
                names(TokenDoubt::of(tokens, conditions))
            ))
        });
    }
    let affected = |count: u64| count as f64 > DISAGREE * tokens.answers as f64;
    if affected(tokens.too_few) {
        findings.push(about_tpot(
            format!(
                "TPOT: in {} of {} answers the server's usage has fewer tokens than the answer has chunks",
                tokens.too_few, tokens.answers
            ),
            "the server's usage is wrong; do not rely on metrics per token",
        ));
    }
    if affected(tokens.assumed) {
        findings.push(about_tpot(
            format!(
                "TPOT: in {} of {} answers the tokens of the first chunk are not known, and an equal share is assumed",
                tokens.assumed, tokens.answers
            ),
            "have the server report usage with each chunk (vLLM: `stream_options.continuous_usage_stats`)",
        ));
    }
    findings
}

/// Returns the finding on answers whose usage is neither the number of chunks nor the sum over the
/// chunks. A number of chunks that differs from usage is normal: the server sends several tokens in
/// a chunk.
fn usage_differs(tokens: &AnswerTokens, conditions: &RunConditions) -> CertFinding {
    let CountComparison {
        answers, used, other, ..
    } = tokens.usage_and_chunk_tokens;
    let differ = tokens.share_of_all(&tokens.usage_and_chunk_tokens).unwrap_or(0.0);
    let (reasons, remedy) = if chunks_agree(&tokens.usage_and_chunk_tokens) && differ > WRONG {
        (
            "",
            Some("the server's usage is wrong: tokens and chunks of the answers agree"),
        )
    } else {
        let remedy = "name the model's tokenizer (`client.tokenizer`)";
        (
            " Possible reasons: the host's tokenizer is not the server's, encoding generated text again does not give \
             the generated tokens, or usage is wrong.",
            (!conditions.tokenizer_is_of_model).then_some(remedy),
        )
    };
    let is_wrong = differ > WRONG;
    CertFinding {
        metric: is_wrong.then_some(Metric::Tpot),
        verdict: if is_wrong {
            Verdict::Degraded
        } else {
            Verdict::Valid
        },
        remedy: remedy.map(str::to_owned),
        ..CertFinding::remark(format!(
            "token counts differ by {} of all tokens with two counts: the server's usage has {used} in {}, and their \
             chunks have {other}. Usage is used.{reasons} Metrics that depend on the difference: {}",
            share(differ),
            veeksha_stats::counted(answers, "answer"),
            names(TokenDoubt::of(tokens, conditions))
        ))
    }
}

/// Returns the finding on answers without usage whose number of tokens, by the host's tokenizer, is
/// not the number of chunks: either the server sends several tokens in a chunk, or the tokenizer is
/// not the server's. Fewer tokens than chunks contradict the tokenizer of the model as well.
fn tokenizer_differs(tokens: &AnswerTokens, conditions: &RunConditions) -> CertFinding {
    let CountComparison {
        answers, used, other, ..
    } = tokens.tokenizer_and_chunks;
    let differ = tokens.share_of_all(&tokens.tokenizer_and_chunks).unwrap_or(0.0);
    let counts = format!(
        "token counts differ by {} of all tokens with two counts: the host's tokenizer counts {used} in {} without usage, \
         which have {other} chunks",
        share(differ),
        veeksha_stats::counted(answers, "answer"),
    );
    if conditions.tokenizer_is_of_model {
        return CertFinding::remark(format!(
            "{counts}. The tokenizer's counts are used: {}",
            names(TokenDoubt::of(tokens, conditions))
        ));
    }
    CertFinding {
        metric: Some(Metric::Tpot),
        verdict: Verdict::Degraded,
        what: format!(
            "{counts}. The tokenizer is not known to be the server's, so these metrics are not verified: {}",
            names(TokenDoubt::of(tokens, conditions))
        ),
        remedy: Some(REPORT_USAGE.into()),
    }
}

/// Returns the names of the metrics that a doubt affects.
fn names(doubt: Option<TokenDoubt>) -> String {
    let affected = Metric::all().filter(|metric| doubt.is_some_and(|doubt| doubt.affects(*metric)));
    let names: Vec<&str> = affected.map(Metric::short_name).collect();
    names.join(", ")
}

fn about_tpot(what: String, remedy: &str) -> CertFinding {
    CertFinding {
        metric: Some(Metric::Tpot),
        verdict: Verdict::Degraded,
        what,
        remedy: Some(remedy.into()),
    }
}
