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
    /// `None`: the server sent none that can be used.
    logarithm: Option<f64>,
    /// `None`: the server sent no alternatives.
    greedy: Option<bool>,
}

impl TokenValues {
    /// Adds a token. One without probability (llama.cpp sends the lowest number there is) is kept
    /// as the lowest finite number. A probability above 1 by more than rounding is not used.
    pub(crate) fn push(&mut self, logarithm: Option<f64>, greedy: Option<bool>) {
        let logarithm = logarithm.filter(|logarithm| *logarithm < ROUNDING);
        let logarithm = logarithm.map(|logarithm| logarithm.clamp(f64::MIN, 0.0));
        self.tokens.push(TokenValue { logarithm, greedy });
    }

    /// Returns the values, divided into those of the prompt and those of the answer.
    /// `prompt_tokens` is the server's count; `is_part` is true for a cancelled answer, which may
    /// have ended before its prompt and its counts.
    ///
    /// # Errors
    /// If a value is missing among others (the first token of a prompt has none), or if the values
    /// of a repeated prompt are incomplete or cannot be told from the answer's.
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
            prompt: probabilities(prompt.get(1..).unwrap_or_default(), "prompt", 2)?,
            answer: match answer {
                // A prompt that the server repeats although only the body asks for it.
                [first, others @ ..] if first.logarithm.is_none() => probabilities(others, "answer", 2)?,
                all => probabilities(all, "answer", 1)?,
            },
        };
        Ok((parts != LogProbabilities::default()).then(|| Box::new(parts)))
    }
}

/// Returns the values of the tokens of the prompt or of the answer. `first` is the number of the
/// first token. Without any value, the server sent none.
fn probabilities(tokens: &[TokenValue], of: &str, first: usize) -> Result<TokenProbabilities, Failure> {
    if tokens.iter().all(|token| token.logarithm.is_none()) && of == "answer" {
        return Ok(TokenProbabilities::default());
    }
    let values = tokens.iter().zip(first..).map(|(token, number)| {
        token.logarithm.ok_or_else(|| {
            refusal(format!(
                "the server sent no number up to 0 as the log-probability of token {number} of the {of}"
            ))
        })
    });
    Ok(TokenProbabilities {
        logarithms: values.collect::<Result<_, _>>()?,
        greedy: tokens
            .iter()
            .map(|token| token.greedy)
            .collect::<Option<_>>()
            .unwrap_or_default(),
    })
}

/// A log-probability that exceeds 0 by less is 0.
const ROUNDING: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(values: &[Option<f64>]) -> Result<Vec<f64>, String> {
        let mut tokens = TokenValues::default();
        values.iter().for_each(|value| tokens.push(*value, None));
        match tokens.divide(None, None, false) {
            Ok(parts) => Ok(parts.map_or_else(Vec::new, |parts| parts.answer.logarithms)),
            Err(failure) => Err(failure.message),
        }
    }

    #[test]
    fn values_belong_to_their_tokens_or_fail_the_answer() {
        assert_eq!(divided(&[Some(-1.0), Some(1e-9)]).unwrap(), [-1.0, 0.0]);
        assert_eq!(divided(&[Some(f64::NEG_INFINITY)]).unwrap(), [f64::MIN]);
        assert!(
            divided(&[None, None]).unwrap().is_empty(),
            "the server sends none"
        );
        for second in [None, Some(7.5), Some(f64::NAN)] {
            let refused = divided(&[Some(-1.0), second, Some(-2.0)]).unwrap_err();
            assert!(refused.ends_with("of token 2 of the answer"), "{refused}");
        }
    }
}
