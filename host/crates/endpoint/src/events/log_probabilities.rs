//! Log-probabilities of tokens in the forms of chat completions, of the Responses API and of
//! completions.
//!
//! Most requests do not ask for any, and servers disagree on the values of members that are empty,
//! so a member of another form is ignored. An entry of another form keeps its place without a
//! value, so that the others belong to their tokens.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::Usable;
use crate::answer::Answer;

/// Log-probabilities of some tokens, in the form of chat completions or of completions.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LogProbabilitiesWire {
    /// Chat completions: one entry for each token.
    content: Usable<TokensWire>,
    /// Completions: the text of each token.
    tokens: Usable<Vec<Usable<String>>>,
    /// Completions: one entry for each token; `null` for the first one of a repeated prompt.
    token_logprobs: Usable<Vec<Usable<f64>>>,
    /// Completions: the alternatives to each token, by their text.
    top_logprobs: Usable<Vec<Usable<AlternativesByText>>>,
}

/// Log-probabilities by the text of their tokens.
type AlternativesByText = HashMap<String, Usable<f64>>;

/// One entry for each token: the form of chat completions and of the Responses API.
type TokensWire = Vec<Usable<TokenWire>>;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TokenWire {
    logprob: Usable<f64>,
    /// The most probable tokens; the token itself may be among them.
    top_logprobs: Usable<Vec<Usable<AlternativeWire>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AlternativeWire {
    logprob: Usable<f64>,
}

/// Reads the `logprobs` of a choice. Returns the texts of the tokens of completions.
pub(super) fn read(logprobs: &RawValue, answer: &mut Answer) -> Vec<String> {
    let Ok(wire) = serde_json::from_str::<LogProbabilitiesWire>(logprobs.get()) else {
        return Vec::new();
    };
    add_tokens(wire.content.0.unwrap_or_default(), answer);
    let mut alternatives = wire.top_logprobs.0.into_iter().flatten();
    for logarithm in wire.token_logprobs.0.into_iter().flatten() {
        let best = alternatives.next().and_then(|best| best.0);
        let best = best.and_then(|best| highest(best.into_values()));
        answer.log_probability(logarithm.0, best);
    }
    let tokens = wire.tokens.0.into_iter().flatten();
    tokens.map(|token| token.0.unwrap_or_default()).collect()
}

/// Reads a list with one entry for each token.
pub(super) fn read_tokens(logprobs: &RawValue, answer: &mut Answer) {
    add_tokens(serde_json::from_str(logprobs.get()).unwrap_or_default(), answer);
}

fn add_tokens(tokens: TokensWire, answer: &mut Answer) {
    for token in tokens {
        let token = token.0.unwrap_or_default();
        let alternatives = token.top_logprobs.0.into_iter().flatten();
        let alternatives = alternatives.filter_map(|alternative| alternative.0);
        let best = highest(alternatives.map(|alternative| alternative.logprob));
        answer.log_probability(token.logprob.0, best);
    }
}

fn highest(logarithms: impl Iterator<Item = Usable<f64>>) -> Option<f64> {
    logarithms.filter_map(|logarithm| logarithm.0).reduce(f64::max)
}
