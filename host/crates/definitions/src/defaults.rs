//! The values that entries of the table of metrics share.

use veeksha_model::Better;

use crate::definition::{Certification, Definition};
use crate::scope::{Needs, Samples, Scope};

/// The defaults of an entry: a latency of requests that appears in files only.
pub(crate) const LATENCY: Definition = Definition {
    name: "",
    aliases: &[],
    slo_name: None,
    display: "",
    title: "",
    short: "",
    unit: "s",
    is_share: false,
    better: Better::Less,
    scope: Scope::Request,
    definition: "",
    source: "",
    samples: Samples::Session,
    of_failed: false,
    of_cancelled: false,
    certification: Certification::Exempt,
    uses_token_counts: false,
    uses_tokens_of_chunks: false,
    uses_prompt_tokens: false,
    from_schedule: false,
    needs: Needs::Nothing,
    not_comparable: None,
    rank: None,
    in_slices: false,
    charted: false,
};

/// The defaults of a token count.
pub(crate) const TOKENS: Definition = Definition {
    unit: "tokens",
    better: Better::Neither,
    ..LATENCY
};

/// The defaults of a session metric.
pub(crate) const SESSION: Definition = Definition {
    scope: Scope::Session,
    samples: Samples::Session,
    ..LATENCY
};

/// The defaults of a metric of tool runs.
pub(crate) const TOOL_RUN: Definition = Definition {
    scope: Scope::ToolRun,
    needs: Needs::Tools,
    ..LATENCY
};
