//! When questions were asked and answers were there, and how long people thought in between.

use std::time::Duration;

use veeksha_plugin::Nanos;

use crate::instant::Instant;

/// The recorded times of an exchange, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// When the question was asked.
    pub(crate) asked: Option<Instant>,
    /// When its answer was there.
    pub(crate) answered: Option<Instant>,
}

impl Times {
    /// Guesses when the question was asked, where only its answer has a time: as long before the
    /// answer as writing `tokens` took, at `rate` tokens a second; without a rate, at the time of
    /// the answer.
    pub(crate) fn or_before_answer(self, tokens: u32, rate: Option<f64>) -> Self {
        let writing = rate.map_or(0, |rate| (f64::from(tokens) / rate * 1e9) as Instant);
        Times {
            asked: self.asked.or(self.answered.map(|answered| answered - writing)),
            ..self
        }
    }

    /// The duration of the answer, where both times are known.
    pub(crate) fn latency(self) -> Option<Nanos> {
        let latency = self.answered? - self.asked?;
        u64::try_from(latency).ok()
    }

    /// The think time after the answer before, at most `most`. None where a time is
    /// unknown, or where clocks say that the question came before the answer.
    pub(crate) fn think_time(self, before: Times, most: Duration) -> Duration {
        let (Some(asked), Some(answered)) = (self.asked, before.answered) else {
            return Duration::ZERO;
        };
        let thought = u64::try_from((asked - answered).max(0)).unwrap_or(u64::MAX);
        Duration::from_nanos(thought).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_secs(60);

    fn times(asked: i128, answered: i128) -> Times {
        Times {
            asked: Some(asked * 1_000_000_000),
            answered: Some(answered * 1_000_000_000),
        }
    }

    #[test]
    fn thinking_is_from_an_answer_to_the_next_question() {
        let before = times(100, 110);
        assert_eq!(times(125, 130).think_time(before, MOST), Duration::from_secs(15));
        assert_eq!(times(9000, 9010).think_time(before, MOST), MOST);
        assert_eq!(
            times(105, 120).think_time(before, MOST),
            Duration::ZERO,
            "before the answer"
        );
        assert_eq!(Times::default().think_time(before, MOST), Duration::ZERO);
        assert_eq!(times(125, 130).think_time(Times::default(), MOST), Duration::ZERO);
    }

    #[test]
    fn a_question_is_sent_before_its_answer_by_the_latency() {
        let only_answer = Times {
            asked: None,
            ..times(0, 110)
        };
        assert_eq!(only_answer.or_before_answer(200, Some(40.0)), times(105, 110));
        assert_eq!(only_answer.or_before_answer(200, None), times(110, 110));
        assert_eq!(times(1, 110).or_before_answer(200, Some(40.0)), times(1, 110));
        assert_eq!(
            Times::default().or_before_answer(200, Some(40.0)),
            Times::default()
        );
    }

    #[test]
    fn a_latency_needs_both_times_in_order() {
        assert_eq!(times(100, 110).latency(), Some(10_000_000_000));
        assert_eq!(times(110, 100).latency(), None);
        assert_eq!(Times::default().latency(), None);
    }
}
