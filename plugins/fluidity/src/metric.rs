//! The metrics, request by request.

use veeksha_plugin::metric::{Better, Definition, Metric, Samples};
use veeksha_plugin::{Completion, Error};

use crate::config::Config;
use crate::deadlines::Deadlines;

/// Places of the definitions.
const INDEX: u32 = 0;
const INDEX_TOKENS: u32 = 1;
const MISSES: u32 = 2;

/// The longest deadline: times of the contract stay below 2^53 nanoseconds.
const LONGEST: f64 = 9_007_199_254_740_991.0;

/// An open metric.
pub struct Fluidity {
    deadlines: Deadlines,
}

impl Metric for Fluidity {
    type Config = Config;

    const NAME: &'static str = "fluidity";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str =
        "how smoothly tokens came: etalon's fluidity index, in both published forms";

    fn config_schema() -> String {
        include_str!("../schema.json").into()
    }

    fn open(config: Config) -> Result<Self, Error> {
        let nanos = |path: &str, seconds: f64| {
            let nanos = (seconds * 1e9).round();
            match (0.0..=LONGEST).contains(&nanos) {
                true => Ok(nanos as u64),
                false => Err(Error::config(
                    path,
                    "a deadline is a number of seconds, from 0 to 104 days",
                )),
            }
        };
        let deadlines = Deadlines {
            prefill: nanos("/prefill_deadline", config.prefill_deadline)?,
            decode: nanos("/decode_deadline", config.decode_deadline)?,
        };
        if deadlines.decode == 0 {
            return Err(
                Error::config("/decode_deadline", "tokens cannot all be due at once")
                    .hint("0.05 asks for 20 tokens a second"),
            );
        }
        Ok(Fluidity { deadlines })
    }

    fn definitions(&self) -> Vec<Definition> {
        let Deadlines { prefill, decode } = self.deadlines;
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let due = format!(
            "the first token is due {} s after dispatch, each further one {} s later",
            seconds(prefill),
            seconds(decode)
        );
        vec![
            Definition::new(
                "fluidity_index",
                "1",
                Better::Higher,
                format!("tokens on time ÷ (tokens on time + deadlines missed), where {due}"),
            ),
            Definition::new(
                "fluidity_index_tokens",
                "1",
                Better::Higher,
                format!("tokens on time ÷ tokens, where {due}"),
            ),
            Definition::new(
                "fluidity_misses",
                "deadlines",
                Better::Less,
                format!("deadlines that passed while late tokens were awaited, where {due}"),
            ),
        ]
    }

    fn observe(&mut self, request: &Completion<'_>, samples: &mut Samples) {
        let Some(tokens) = request.chunk_tokens.filter(|_| request.is_ok()) else {
            return;
        };
        let chunks = request.chunk_at.iter().copied().zip(tokens.iter().copied());
        let counts = self.deadlines.count(request.dispatched_at, chunks);
        if let (Some(index), Some(by_tokens)) = (counts.by_deadlines(), counts.by_tokens()) {
            samples.add(INDEX, index);
            samples.add(INDEX_TOKENS, by_tokens);
            samples.add(MISSES, counts.misses as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use veeksha_plugin::{Status, metric};

    use super::*;

    fn open(config: &str) -> Result<Fluidity, Error> {
        Fluidity::open(veeksha_plugin::config::from_json(config)?)
    }

    const MS: u64 = 1_000_000;

    /// Dispatched at 1 s; its tokens come 100 ms later, and again 10 s later.
    fn stalled() -> Completion<'static> {
        Completion {
            dispatched_at: 1_000 * MS,
            chunk_at: &[1_100 * MS, 11_100 * MS],
            chunk_tokens: Some(&[1, 1]),
            ..Completion::default()
        }
    }

    #[test]
    fn each_answer_has_the_three_metrics() {
        let samples = metric::observe(&mut open("{}").unwrap(), &[stalled()]);
        let given: Vec<_> = samples
            .iter()
            .map(|s| (s.metric, s.value, s.weight, s.of))
            .collect();
        assert_eq!(
            given,
            [
                (0, 1.0 / 201.0, 1.0, Some(0)),
                (1, 0.5, 1.0, Some(0)),
                (2, 200.0, 1.0, Some(0))
            ]
        );
    }

    /// With 60 ms for the first token and 5 s for the next: 1 + floor(40 ms / 5 s) = 1 miss, then 10 s are floor(10 / 5) = 2.
    #[test]
    fn the_deadlines_are_the_users() {
        let mut patient = open(r#"{"prefill_deadline": 0.06, "decode_deadline": 5}"#).unwrap();
        let samples = metric::observe(&mut patient, &[stalled()]);
        assert_eq!(
            [samples[0].value, samples[1].value, samples[2].value],
            [0.0, 0.0, 3.0]
        );
        assert_eq!(
            patient.definitions()[0].summary,
            "tokens on time ÷ (tokens on time + deadlines missed), where the first token is due 0.06 s after dispatch, each \
             further one 5 s later"
        );
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let failed = Completion {
            status: Status::Failed,
            ..stalled()
        };
        let uncounted = Completion {
            chunk_tokens: None,
            ..stalled()
        };
        let silent = Completion {
            chunk_at: &[],
            chunk_tokens: Some(&[]),
            ..stalled()
        };
        let samples = metric::observe(&mut open("{}").unwrap(), &[failed, uncounted, silent, stalled()]);
        assert!(samples.iter().all(|sample| sample.of == Some(3)));
        assert_eq!(samples.len(), 3);
    }

    #[test]
    fn deadlines_that_cannot_be_are_refused() {
        let path = |config| open(config).err().unwrap().path.unwrap();
        assert_eq!(path(r#"{"prefill_deadline": -0.1}"#), "/prefill_deadline");
        assert_eq!(path(r#"{"prefill_deadline": 1e300}"#), "/prefill_deadline");
        assert_eq!(path(r#"{"decode_deadline": 0}"#), "/decode_deadline");
        assert_eq!(path(r#"{"decode_deadline": 1e-10}"#), "/decode_deadline");
        assert_eq!(path(r#"{"decode": 1}"#), "/decode");
        assert!(open(r#"{"prefill_deadline": 0}"#).is_ok());
    }
}
