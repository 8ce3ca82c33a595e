//! Validation of profiles.

use crate::profile::{Faults, Profile};

/// One hour: the maximum of any single time.
const MAX_TIME_MS: f64 = 3_600_000.0;

/// An invalid profile: the key, its value and the valid values.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProfileError {
    /// A time is negative, NaN, or longer than an hour.
    #[error("{key} is {value}: give milliseconds from 0 to 3600000")]
    Time {
        /// The key.
        key: &'static str,
        /// Its value.
        value: f64,
    },
    /// A probability is outside 0 to 1.
    #[error("{key} is {value}: give a probability from 0 to 1")]
    Probability {
        /// The key.
        key: &'static str,
        /// Its value.
        value: f64,
    },
    /// The probabilities of mutually exclusive faults add up to more than 1.
    #[error(
        "{keys} add up to {sum}: at most one of them happens to a request, so lower them to 1 or less together"
    )]
    ProbabilitySum {
        /// The keys.
        keys: &'static str,
        /// Their sum.
        sum: f64,
    },
    /// A count that must be at least 1 is 0.
    #[error("{key} is 0: give at least 1")]
    Zero {
        /// The key.
        key: &'static str,
    },
    /// Another number is out of range.
    #[error("{key} is {value}: give a number from {least} to {most}")]
    Range {
        /// The key.
        key: &'static str,
        /// Its value.
        value: f64,
        /// The smallest valid value.
        least: f64,
        /// The largest valid value.
        most: f64,
    },
    /// The longest request would not fit into the KV memory.
    #[error(
        "max_context is {max_context}, but the KV memory holds {holds} tokens (kv_capacity_tokens in whole blocks): \
         lower max_context or raise kv_capacity_tokens"
    )]
    ContextOverCapacity {
        /// The length of the longest request.
        max_context: u32,
        /// The capacity of the KV memory in tokens.
        holds: u64,
    },
    /// A rule of `faults.wire` does not select requests, or selects them twice.
    #[error("faults.wire[{index}] ({fault}): give either a probability above 0 or `every`, at least 1")]
    Rule {
        /// Its zero-based position in the list.
        index: usize,
        /// The fault's name.
        fault: &'static str,
    },
    /// A text is empty.
    #[error("{key} is empty: give a text, or leave the key out")]
    Empty {
        /// The key.
        key: &'static str,
    },
}

impl Profile {
    /// Checks every value. [`crate::Engine::new`] relies on it.
    pub fn check(&self) -> Result<(), ProfileError> {
        if self.model.is_empty() {
            return Err(ProfileError::Empty { key: "model" });
        }
        time("prefill_base_ms", self.prefill_base_ms)?;
        time("prefill_ms_per_token", self.prefill_ms_per_token)?;
        time("decode_base_ms", self.decode_base_ms)?;
        time("decode_ms_per_sequence", self.decode_ms_per_sequence)?;
        positive("max_batch", self.max_batch)?;
        positive("max_prefill_tokens_per_step", self.max_prefill_tokens_per_step)?;
        positive("block_size", self.block_size)?;
        positive("max_context", self.max_context)?;
        range("noise_cv", self.noise_cv, 0.0, 10.0)?;
        range("mean_output_tokens", self.mean_output_tokens, 1.0, 1e9)?;
        if let Some(constant) = self.constant {
            time("constant.first_token_ms", constant.first_token_ms)?;
            time("constant.gap_ms", constant.gap_ms)?;
        }
        let holds = self.kv_blocks() * u64::from(self.block_size);
        if u64::from(self.max_context) > holds {
            return Err(ProfileError::ContextOverCapacity {
                max_context: self.max_context,
                holds,
            });
        }
        self.faults.check()
    }
}

impl Faults {
    fn check(&self) -> Result<(), ProfileError> {
        time("faults.start_delay_ms", self.start_delay_ms)?;
        time("faults.stall_ms", self.stall_ms)?;
        at_most_one(
            "faults.refuse_probability, status_429_probability, status_500_probability and status_503_probability",
            &[
                ("faults.refuse_probability", self.refuse_probability),
                ("faults.status_429_probability", self.status_429_probability),
                ("faults.status_500_probability", self.status_500_probability),
                ("faults.status_503_probability", self.status_503_probability),
            ],
        )?;
        at_most_one(
            "faults.drop_connection_probability, midstream_error_probability, truncate_probability and stall_probability",
            &[
                (
                    "faults.drop_connection_probability",
                    self.drop_connection_probability,
                ),
                (
                    "faults.midstream_error_probability",
                    self.midstream_error_probability,
                ),
                ("faults.truncate_probability", self.truncate_probability),
                ("faults.stall_probability", self.stall_probability),
            ],
        )?;
        time("faults.accept_delay_ms", self.accept_delay_ms)?;
        if let Some(cut_at) = self.cut_at_ms {
            time("faults.cut_at_ms", cut_at)?;
        }
        for (index, rule) in self.wire.iter().enumerate() {
            let counted = rule.every.is_some_and(|every| every > 0);
            let drawn = rule.probability > 0.0;
            if counted == drawn || (rule.every == Some(0)) {
                let fault = rule.fault.name();
                return Err(ProfileError::Rule { index, fault });
            }
        }
        let drawn: Vec<_> = self
            .wire
            .iter()
            .map(|rule| ("faults.wire probability", rule.probability))
            .collect();
        at_most_one("the probabilities of faults.wire", &drawn)?;
        match &self.api_key {
            Some(key) if key.is_empty() => Err(ProfileError::Empty {
                key: "faults.api_key",
            }),
            _ => Ok(()),
        }
    }
}

fn time(key: &'static str, value: f64) -> Result<(), ProfileError> {
    if (0.0..=MAX_TIME_MS).contains(&value) {
        Ok(())
    } else {
        Err(ProfileError::Time { key, value })
    }
}

fn positive(key: &'static str, value: u32) -> Result<(), ProfileError> {
    if value > 0 {
        Ok(())
    } else {
        Err(ProfileError::Zero { key })
    }
}

fn range(key: &'static str, value: f64, least: f64, most: f64) -> Result<(), ProfileError> {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(ProfileError::Range {
            key,
            value,
            least,
            most,
        })
    }
}

fn at_most_one(keys: &'static str, each: &[(&'static str, f64)]) -> Result<(), ProfileError> {
    for &(key, value) in each {
        if !(0.0..=1.0).contains(&value) {
            return Err(ProfileError::Probability { key, value });
        }
    }
    let sum: f64 = each.iter().map(|(_, value)| value).sum();
    // Tolerates rounding: ten times 0.1 is not exactly 1.
    if sum > 1.0 + 1e-9 {
        Err(ProfileError::ProbabilitySum { keys, sum })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Constant, WireFault, WireRule};

    #[test]
    fn named_profiles_are_valid_and_differ() {
        let all: Vec<Profile> = Profile::names()
            .iter()
            .map(|name| Profile::named(name).unwrap())
            .collect();
        for profile in &all {
            assert_eq!(profile.check(), Ok(()));
        }
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(Profile::named("default"), Some(Profile::default()));
        assert_eq!(Profile::named("Default"), None);
        assert_eq!(Profile::reference(1, 0, 1).check(), Ok(()));
    }

    fn constant(first_token_ms: f64, gap_ms: f64) -> Constant {
        Constant {
            first_token_ms,
            gap_ms,
        }
    }

    fn drawn(probability: f64) -> WireRule {
        WireRule {
            fault: WireFault::Reset,
            probability,
            every: None,
        }
    }

    type Case = (fn(&mut Profile), &'static str);

    #[test]
    fn invalid_values_name_their_key() {
        let cases: [Case; 26] = [
            (|p| p.model.clear(), "model is empty"),
            (|p| p.prefill_base_ms = -1.0, "prefill_base_ms is -1"),
            (
                |p| p.prefill_ms_per_token = f64::NAN,
                "prefill_ms_per_token is NaN",
            ),
            (|p| p.decode_base_ms = f64::INFINITY, "decode_base_ms is inf"),
            (
                |p| p.decode_ms_per_sequence = 3.7e6,
                "decode_ms_per_sequence is 3700000",
            ),
            (|p| p.max_batch = 0, "max_batch is 0"),
            (
                |p| p.max_prefill_tokens_per_step = 0,
                "max_prefill_tokens_per_step is 0",
            ),
            (|p| p.block_size = 0, "block_size is 0"),
            (|p| p.max_context = 0, "max_context is 0"),
            (|p| p.noise_cv = 11.0, "noise_cv is 11"),
            (|p| p.mean_output_tokens = 0.5, "mean_output_tokens is 0.5"),
            (
                |p| p.kv_capacity_tokens = 32_767,
                "max_context is 32768, but the KV memory holds 32752 tokens",
            ),
            (|p| p.faults.stall_ms = -0.1, "faults.stall_ms is -0.1"),
            (
                |p| p.faults.start_delay_ms = f64::NAN,
                "faults.start_delay_ms is NaN",
            ),
            (
                |p| p.faults.status_500_probability = 1.1,
                "faults.status_500_probability is 1.1",
            ),
            (
                |p| p.faults.stall_probability = f64::NAN,
                "faults.stall_probability is NaN",
            ),
            (
                |p| p.faults.api_key = Some(String::new()),
                "faults.api_key is empty",
            ),
            (
                |p| {
                    p.faults.truncate_probability = 0.75;
                    p.faults.stall_probability = 0.5;
                },
                "add up to 1.25",
            ),
            (
                |p| p.constant = Some(constant(-1.0, 1.0)),
                "constant.first_token_ms is -1",
            ),
            (
                |p| p.constant = Some(constant(1.0, f64::NAN)),
                "constant.gap_ms is NaN",
            ),
            (|p| p.faults.cut_at_ms = Some(-5.0), "faults.cut_at_ms is -5"),
            (
                |p| p.faults.accept_delay_ms = 1e9,
                "faults.accept_delay_ms is 1000000000",
            ),
            (
                |p| p.faults.wire = vec![WireRule::every(0, WireFault::Gzip)],
                "faults.wire[0] (gzip): give either",
            ),
            (
                |p| {
                    p.faults.wire = vec![WireRule::every(1, WireFault::Drip), drawn(0.0)];
                },
                "faults.wire[1] (reset): give either",
            ),
            (
                |p| {
                    p.faults.wire = vec![WireRule {
                        every: Some(2),
                        ..drawn(0.5)
                    }];
                },
                "faults.wire[0] (reset): give either",
            ),
            (
                |p| p.faults.wire = vec![drawn(0.5), drawn(0.75)],
                "the probabilities of faults.wire add up to 1.25",
            ),
        ];
        for (spoil, expected) in cases {
            let mut profile = Profile::default();
            spoil(&mut profile);
            let message = profile.check().unwrap_err().to_string();
            assert!(message.contains(expected), "{message} does not say {expected}");
        }
    }

    #[test]
    fn refuses_unknown_keys_and_defaults_missing_ones() {
        let profile: Profile =
            serde_json::from_str(r#"{"max_batch": 3, "faults": {"stall_ms": 2.5}}"#).unwrap();
        let mut expected = Profile {
            max_batch: 3,
            ..Profile::default()
        };
        expected.faults.stall_ms = 2.5;
        assert_eq!(profile, expected);
        for bad in [
            r#"{"max_bach": 3}"#,
            r#"{"faults": {"stall": 1}}"#,
            r#"{"constant": {"first_token_ms": 1, "gap_ms": 1, "jitter": 0}}"#,
            r#"{"faults": {"wire": [{"fault": "drip", "each": 1}]}}"#,
        ] {
            let error = serde_json::from_str::<Profile>(bad).unwrap_err().to_string();
            assert!(error.contains("unknown field"), "{error}");
        }
    }
}
