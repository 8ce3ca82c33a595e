//! The definitions of the metrics of cached prompt tokens, which [`Metric`](crate::Metric) lists.

use veeksha_model::Better;

use crate::defaults::TOKENS;
use crate::definition::Definition;
use crate::observation::Observation;
use crate::scope::Samples;

/// The source of the metrics of cached tokens.
const CACHE_SOURCE: &str =
    "the server's count of cached tokens, compared with all prompts and answers of the run";

pub(crate) const REUSED: Definition = Definition {
    name: "cache_reused_tokens",
    display: "Reused Prompt Tokens",
    title: "Reused prompt tokens",
    short: "reused prompt tokens",
    definition: "prompt tokens that the server found in its prefix cache, as it reports them; absent where it does \
        not report them, as are the following four, which add up to its prompt tokens with these",
    source: CACHE_SOURCE,
    samples: Samples::Request(Observation::cache_reused),
    ..TOKENS
};

pub(crate) const EVICTED: Definition = Definition {
    name: "cache_evicted_tokens",
    display: "Evicted Prompt Tokens",
    title: "Evicted prompt tokens",
    short: "evicted prompt tokens",
    better: Better::Less,
    definition: "tokens of the longest beginning of the prompt that the same server had computed before the \
        dispatch - cache_reused_tokens, if positive: whole blocks of `client.prefix_cache`",
    source: CACHE_SOURCE,
    samples: Samples::Request(Observation::cache_evicted),
    ..TOKENS
};

pub(crate) const REROUTED: Definition = Definition {
    name: "cache_rerouted_tokens",
    display: "Rerouted Prompt Tokens",
    title: "Prompt tokens routed elsewhere",
    short: "rerouted prompt tokens",
    better: Better::Less,
    definition: "tokens of the longest beginning of the prompt that any server of `client.targets` had computed \
        before the dispatch - those reused or evicted, if positive",
    source: CACHE_SOURCE,
    samples: Samples::Request(Observation::cache_rerouted),
    ..TOKENS
};

pub(crate) const CHANGED: Definition = Definition {
    name: "cache_changed_tokens",
    display: "Changed-Prefix Prompt Tokens",
    title: "Prompt tokens behind a changed prefix",
    short: "changed-prefix prompt tokens",
    better: Better::Less,
    definition: "tokens of the rest of the prompt whose text any server had computed before the dispatch, behind \
        another beginning: after a change of the template, the tools or the system prompt, \
        dropped reasoning, a salt",
    source: CACHE_SOURCE,
    samples: Samples::Request(Observation::cache_changed),
    ..TOKENS
};

pub(crate) const NEW: Definition = Definition {
    name: "cache_new_tokens",
    display: "First-Seen Prompt Tokens",
    title: "Prompt tokens first seen",
    short: "first-seen prompt tokens",
    definition: "prompt tokens - those reused, evicted, routed elsewhere or behind a changed prefix: new text, the \
        incomplete block behind a known beginning, and the last token of a known prompt",
    source: CACHE_SOURCE,
    samples: Samples::Request(Observation::cache_new),
    ..TOKENS
};
