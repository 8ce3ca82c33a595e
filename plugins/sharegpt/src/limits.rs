//! Which conversations are long and short enough.

use crate::config::Config;

/// The tokens of a conversation: of each request's own messages, and of its answer.
pub(crate) struct Lengths<'a> {
    pub(crate) turns: &'a [(u32, u32)],
}

impl Lengths<'_> {
    /// Why the conversation is not used; `None` if it is.
    pub(crate) fn refusal(&self, config: &Config) -> Option<String> {
        let shortest = config
            .min_output_tokens
            .filter(|_| config.output_tokens.is_none());
        for (number, &(prompt, answer)) in (1..).zip(self.turns) {
            let bounds = [
                (
                    "prompt",
                    prompt,
                    "min_prompt_tokens",
                    config.min_prompt_tokens,
                    "max_prompt_tokens",
                    config.max_prompt_tokens,
                ),
                (
                    "answer",
                    answer,
                    "min_output_tokens",
                    shortest,
                    "max_output_tokens",
                    config.max_output_tokens,
                ),
            ];
            for (what, tokens, min_key, min, max_key, max) in bounds {
                if min.is_some_and(|min| tokens < min) {
                    return Some(format!(
                        "the {what} of request {number} has {tokens} tokens, less than `{min_key}`"
                    ));
                }
                if max.is_some_and(|max| tokens > max) {
                    return Some(format!(
                        "the {what} of request {number} has {tokens} tokens, more than `{max_key}`"
                    ));
                }
            }
        }
        let total: u64 = self
            .turns
            .iter()
            .map(|&(prompt, answer)| u64::from(prompt) + u64::from(answer))
            .sum();
        let most = config.max_total_tokens?;
        (total > u64::from(most))
            .then(|| format!("the conversation has {total} tokens, more than `max_total_tokens`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(config: &str, turns: &[(u32, u32)]) -> Option<String> {
        Lengths { turns }.refusal(&veeksha_plugin::config::from_json(config).unwrap())
    }

    #[test]
    fn both_ends_of_a_range_are_inside_it() {
        let config = r#"{"min_prompt_tokens": 4, "max_prompt_tokens": 8, "min_output_tokens": 2, "max_output_tokens": 5}"#;
        for inside in [(4, 2), (8, 5)] {
            assert_eq!(refusal(config, &[inside]), None);
        }
        for (outside, key) in [
            ((3, 3), "min_prompt_tokens"),
            ((9, 3), "max_prompt_tokens"),
            ((5, 1), "min_output_tokens"),
            ((5, 6), "max_output_tokens"),
        ] {
            let message = refusal(config, &[(5, 3), outside]).unwrap();
            assert!(
                message.contains(key) && message.contains("request 2"),
                "{message}"
            );
        }
    }

    #[test]
    fn the_whole_has_a_limit_and_no_limit_is_none() {
        assert_eq!(refusal(r#"{"max_total_tokens": 20}"#, &[(5, 5), (5, 5)]), None);
        assert_eq!(
            refusal(r#"{"max_total_tokens": 19}"#, &[(5, 5), (5, 5)]).unwrap(),
            "the conversation has 20 tokens, more than `max_total_tokens`"
        );
        assert_eq!(refusal("{}", &[(u32::MAX, u32::MAX), (0, 0)]), None);
    }

    /// vLLM: with a fixed output length, the shortest answer is ignored.
    #[test]
    fn a_chosen_length_has_no_shortest_answer() {
        assert_eq!(
            refusal(r#"{"min_output_tokens": 4, "output_tokens": 2}"#, &[(5, 2)]),
            None
        );
    }
}
