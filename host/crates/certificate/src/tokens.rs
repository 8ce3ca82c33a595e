//! Disagreement between independent token counts. It affects the metrics that are computed from
//! counts, but does not appear in timing errors.

use veeksha_metrics::{AnswerTokens, Metric};
use veeksha_stats::share;

use crate::verdict::{CertFinding, Verdict};

/// Counts that differ by more than this share are reported, and the metric is marked.
const DISAGREE: f64 = 0.01;

/// Tokenizers of current models differ by up to about a quarter on ordinary text. If counts differ
/// by more, one of them is wrong.
const WRONG: f64 = 0.25;

/// Returns the disagreement of the run's token counts, if it is above 1 %.
pub(crate) fn disagreement(tokens: &AnswerTokens) -> Option<f64> {
    tokens.disagreement_share().filter(|share| *share > DISAGREE)
}

/// Returns the metrics that are computed from token counts.
pub(crate) fn affected() -> impl Iterator<Item = Metric> {
    Metric::all().filter(|metric| metric.definition_of().uses_token_counts)
}

/// Returns a finding for each pair of token counts that contradict each other.
pub(crate) fn token_findings(tokens: &AnswerTokens) -> Vec<CertFinding> {
    let mut findings = Vec::new();
    if let Some(differ) = disagreement(tokens) {
        let names: Vec<&str> = affected().map(Metric::short_name).collect();
        let what = format!(
            "token counts differ by {}: the host's tokenizer counts {} in the chunks of answers that have {} by the \
             server's usage. Metrics that depend on them use the server's counts: {}",
            share(differ),
            tokens.by_host,
            tokens.by_server,
            names.join(", ")
        );
        findings.push(CertFinding {
            metric: (differ > WRONG).then_some(Metric::Tpot),
            verdict: if differ > WRONG {
                Verdict::Degraded
            } else {
                Verdict::Valid
            },
            remedy: Some(
                "name the model's tokenizer (`client.tokenizer`); if it is, the server's usage is wrong"
                    .into(),
            ),
            ..CertFinding::remark(what)
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

fn about_tpot(what: String, remedy: &str) -> CertFinding {
    CertFinding {
        metric: Some(Metric::Tpot),
        verdict: Verdict::Degraded,
        what,
        remedy: Some(remedy.into()),
    }
}
