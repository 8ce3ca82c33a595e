//! Log-probabilities of tokens in the forms of chat completions and of completions.

use std::collections::HashMap;

use serde::Deserialize;

use crate::answer::Answer;

/// Log-probabilities of some tokens, in either form.
#[derive(Debug, Deserialize)]
pub(super) struct LogProbabilitiesWire {
    /// Chat completions: one entry for each token.
    #[serde(default)]
    content: Option<Vec<TokenWire>>,
    /// Completions: one entry for each token; `null` for the first one of an echoed prompt.
    #[serde(default)]
    token_logprobs: Option<Vec<Option<f64>>>,
    /// Completions: the alternatives to each token, by their text.
    #[serde(default)]
    top_logprobs: Option<Vec<Option<HashMap<String, f64>>>>,
}

#[derive(Debug, Deserialize)]
struct TokenWire {
    logprob: f64,
    /// The most probable tokens; the token itself may be among them.
    #[serde(default)]
    top_logprobs: Vec<AlternativeWire>,
}

#[derive(Debug, Deserialize)]
struct AlternativeWire {
    logprob: f64,
}

impl LogProbabilitiesWire {
    pub(super) fn read(self, answer: &mut Answer) {
        for token in self.content.into_iter().flatten() {
            let best = highest(token.top_logprobs.iter().map(|alternative| alternative.logprob));
            answer.log_probability(token.logprob, best);
        }
        let mut alternatives = self.top_logprobs.into_iter().flatten();
        for logarithm in self.token_logprobs.into_iter().flatten() {
            let best = alternatives.next().flatten();
            let best = best.and_then(|best| highest(best.into_values()));
            if let Some(logarithm) = logarithm {
                answer.log_probability(logarithm, best);
            }
        }
    }
}

fn highest(logarithms: impl Iterator<Item = f64>) -> Option<f64> {
    logarithms.reduce(f64::max)
}
