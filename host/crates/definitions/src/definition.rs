//! The facts about a metric, from which every view derives.

use veeksha_model::Better;

use crate::scope::{Needs, Samples, Scope};

/// The method by which the client's error of a metric is certified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certification {
    /// The metric has a separate error bound.
    Own,
    /// The metric is computed from the same instants as the one with this name, whose bound covers
    /// it.
    As(&'static str),
    /// The client's timing does not affect it.
    Exempt,
}

/// The facts about a metric.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// The name in configuration and files; Veeksha's name where Veeksha has the metric.
    pub name: &'static str,
    /// Further accepted names, mostly those of other tools.
    pub aliases: &'static [&'static str],
    /// The name in Veeksha's `slo_results.json`, where it differs.
    pub slo_name: Option<&'static str>,
    /// The name in the keys of `summary_stats.json`.
    pub display: &'static str,
    /// The name in terminal tables and plots, in industry terms.
    pub title: &'static str,
    /// The abbreviation in messages.
    pub short: &'static str,
    /// The unit of its values; `1` for a ratio.
    pub unit: &'static str,
    /// True if the values are shares, from 0 to 1.
    pub is_share: bool,
    /// The direction in which it improves.
    pub better: Better,
    /// The thing that one sample describes.
    pub scope: Scope,
    /// One line: the formula in prose.
    pub definition: &'static str,
    /// The author of the definition, or the origin of the formula.
    pub source: &'static str,
    /// The origin of the samples.
    pub samples: Samples,
    /// True if an answer that failed midway still has a sample.
    pub of_failed: bool,
    /// True if a request that its workload cancelled has a sample: the metric describes what had
    /// arrived, and not the whole answer.
    pub of_cancelled: bool,
    /// The method by which the client's error is certified.
    pub certification: Certification,
    /// True if the value depends on the number of an answer's output tokens. Where independent
    /// counts disagree, such metrics are marked.
    pub uses_token_counts: bool,
    /// True if the value also depends on the number of tokens of each chunk, not only on the total.
    pub uses_tokens_of_chunks: bool,
    /// True if the value depends on the number of prompt tokens, which the host counts. Where the
    /// server's count differs, such metrics are marked.
    pub uses_prompt_tokens: bool,
    /// True if the metric starts at the scheduled instant. Where traffic has no schedule, the
    /// certificate does not rate such metrics.
    pub from_schedule: bool,
    /// The property that a workload must have for the metric to have samples.
    pub needs: Needs,
    /// The reason why two runs cannot be compared by this metric, if any.
    pub not_comparable: Option<&'static str>,
    /// The rank in the summary table on the terminal and at the top of the report page; `None` for
    /// metrics that appear in files only.
    pub rank: Option<u8>,
    /// True if time slices summarize the metric.
    pub in_slices: bool,
    /// True if the report page has a value for each request, and charts of the values.
    pub charted: bool,
}
