//! Log-probabilities of an answer's tokens while they arrive.

use veeksha_model::{LogProbabilities, TokenProbabilities};

use crate::echo::{Echo, refusal};
use crate::failure::Failure;

/// One entry for each token of an answer, and of the prompt that the server repeats before it.
#[derive(Debug, Default)]
pub(crate) struct TokenValues {
    tokens: Vec<TokenValue>,
}

/// The values of a token.
#[derive(Clone, Copy, Debug)]
struct TokenValue {
    /// `None`: the first token of a prompt.
    logarithm: Option<f64>,
    /// `None`: the server sent no alternatives.
    greedy: Option<bool>,
}

impl TokenValues {
    /// Adds a token. One without probability (llama.cpp sends the lowest number there is) is kept
    /// as the lowest finite number.
    pub(crate) fn push(&mut self, logarithm: Option<f64>, greedy: Option<bool>) {
        let logarithm = logarithm.map(|logarithm| logarithm.clamp(f64::MIN, 0.0));
        self.tokens.push(TokenValue { logarithm, greedy });
    }

    /// Returns the values, divided into those of the prompt and those of the answer.
    /// `prompt_tokens` is the server's count; `is_part` is true for a cancelled answer, which may
    /// have ended before its prompt and its counts.
    ///
    /// # Errors
    /// If the values of a repeated prompt are incomplete, or cannot be told from the answer's.
    pub(crate) fn divide(
        self,
        echo: Option<&Echo>,
        prompt_tokens: Option<usize>,
        is_part: bool,
    ) -> Result<Option<Box<LogProbabilities>>, Failure> {
        let tokens = self.tokens.as_slice();
        let (prompt, answer) = match echo {
            None => (&[][..], tokens),
            Some(echo) => match (echo.tokens(prompt_tokens)?, is_part) {
                (None, true) => (&[][..], &[][..]),
                (Some(count), true) => tokens.split_at(count.min(tokens.len())),
                (None, false) => {
                    return Err(refusal(
                        "the log-probabilities of the prompt cannot be told from the answer's, because the server sent no token counts (`usage`); send the prompt as token ids"
                            .to_owned(),
                    ));
                }
                (Some(count), false) => tokens.split_at_checked(count).ok_or_else(|| {
                    refusal(format!(
                        "the server sent {} log-probabilities for a prompt of {count} tokens",
                        tokens.len()
                    ))
                })?,
            },
        };
        let parts = LogProbabilities {
            prompt: probabilities(prompt),
            answer: probabilities(answer),
        };
        Ok((parts != LogProbabilities::default()).then(|| Box::new(parts)))
    }
}

fn probabilities(tokens: &[TokenValue]) -> TokenProbabilities {
    let known = || tokens.iter().filter(|token| token.logarithm.is_some());
    TokenProbabilities {
        logarithms: known().filter_map(|token| token.logarithm).collect(),
        greedy: known()
            .map(|token| token.greedy)
            .collect::<Option<_>>()
            .unwrap_or_default(),
    }
}
