//! The text of a request: a body of exact length, whose beginning may be common to all sessions.

use std::cell::OnceCell;

use veeksha_plugin::{Draws, Error, Random, Segment, synthetic};

use crate::config::Length;
use crate::draw::Draw;
use crate::length::LengthSampler;

/// A text channel whose parameters are possible.
#[derive(Debug)]
pub(crate) struct TextPlan {
    length: LengthSampler,
    prefix_ratio: f64,
    prefix_probability: f64,
    /// The seed of what is common, from the seed of the run; drawn at the first use.
    prefix_seed: OnceCell<u64>,
}

/// The draws of one session.
pub(crate) struct TextDraws<'a> {
    lengths: Draw<'a>,
    seeds: Draws,
    prefixes: Draws,
}

impl TextPlan {
    /// Checks the parameters; `path` is where they stand.
    pub(crate) fn new(length: Length, ratio: f64, probability: f64, path: &str) -> Result<Self, Error> {
        Ok(TextPlan {
            length: LengthSampler::new(length, &format!("{path}/body_length_generator"))?,
            prefix_ratio: share(ratio, &format!("{path}/shared_prefix_ratio"))?,
            prefix_probability: share(probability, &format!("{path}/shared_prefix_probability"))?,
            prefix_seed: OnceCell::new(),
        })
    }

    /// Returns true if first requests of several sessions can begin with the common text.
    pub(crate) fn shares_prefix(&self) -> bool {
        self.prefix_ratio > 0.0 && self.prefix_probability > 0.0
    }

    /// The draws of a session whose first request is at `step`.
    pub(crate) fn draws<'a>(&self, random: &'a Random, step: u64) -> TextDraws<'a> {
        TextDraws {
            lengths: Draw::new(random, "body_length", step),
            seeds: random.stream("text"),
            prefixes: random.stream("shared_prefix"),
        }
    }

    /// The content of the next request: exactly as many tokens as its length. Only a root,
    /// which continues nothing, may begin with what is common; prefixes of different lengths are
    /// nested.
    pub(crate) fn content(&self, draws: &mut TextDraws<'_>, is_root: bool) -> Vec<Segment> {
        let length = self.length.sample(&mut draws.lengths);
        let seed = draws.seeds.long_word();
        let prefix = if is_root && self.prefix_ratio > 0.0 && draws.prefixes.chance(self.prefix_probability) {
            prefix_length(length, self.prefix_ratio)
        } else {
            0
        };
        let mut content = Vec::with_capacity(2);
        if prefix > 0 {
            let common = *self
                .prefix_seed
                .get_or_init(|| draws.lengths.random.shared_stream("shared_prefix").long_word());
            content.push(synthetic(common, prefix));
        }
        if prefix < length {
            content.push(synthetic(seed, length - prefix));
        }
        content
    }
}

/// `length · ratio`, rounded down; what decimal fractions lose in binary is given back first (100 ·
/// 0.29 is 29).
fn prefix_length(length: u32, ratio: f64) -> u32 {
    ((f64::from(length) * ratio * (1.0 + f64::EPSILON)).floor() as u32).min(length)
}

fn share(value: f64, path: &str) -> Result<f64, Error> {
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    Err(Error::config(
        path,
        format!("must lie between 0 and 1, and is {value}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Channel;
    use crate::testing::{random, tokens};

    fn plan(json: &str) -> Result<TextPlan, Error> {
        match veeksha_plugin::config::from_json(json)? {
            Channel::Text {
                body_length_generator,
                shared_prefix_ratio,
                shared_prefix_probability,
            } => TextPlan::new(
                body_length_generator,
                shared_prefix_ratio,
                shared_prefix_probability,
                "",
            ),
            other => unreachable!("{other:?}"),
        }
    }

    /// The contents of the roots of many sessions.
    fn roots(json: &str, count: u64) -> Vec<Vec<Segment>> {
        let plan = plan(json).unwrap();
        let content = |index| plan.content(&mut plan.draws(&random(42, index), index), true);
        (0..count).map(content).collect()
    }

    #[test]
    fn a_shared_prefix_is_cut_out_of_the_exact_length() {
        let contents = roots(
            r#"{"type": "text", "shared_prefix_ratio": 0.29,
                "body_length_generator": {"type": "fixed_stair", "values": [1, 3, 100, 101, 1000]}}"#,
            10,
        );
        let lengths: Vec<Vec<u32>> = contents
            .iter()
            .map(|content| content.iter().map(tokens).collect())
            .collect();
        let expected: [&[u32]; 5] = [&[1], &[3], &[29, 71], &[29, 72], &[290, 710]];
        assert_eq!(lengths[..5], expected);
        assert_eq!(lengths[5..], expected);
    }

    #[test]
    fn sessions_share_the_prefix_and_nothing_else() {
        let contents = roots(r#"{"type": "text", "shared_prefix_ratio": 0.5}"#, 100);
        let seed = |segment: &Segment| match segment {
            Segment::Synthetic(text) => text.seed,
            other => unreachable!("{other:?}"),
        };
        let mut rests: Vec<_> = contents.iter().map(|content| seed(&content[1])).collect();
        assert!(
            contents
                .iter()
                .all(|content| seed(&content[0]) == seed(&contents[0][0]))
        );
        rests.sort_by_key(|seed| (seed.high, seed.low));
        rests.dedup();
        assert_eq!(rests.len(), 100);
    }

    /// Binomial(5000, 0.8): standard deviation 28.3.
    #[test]
    fn the_prefix_comes_with_its_probability() {
        let contents = roots(
            r#"{"type": "text", "shared_prefix_ratio": 0.5, "shared_prefix_probability": 0.8}"#,
            5000,
        );
        let with = contents.iter().filter(|content| content.len() == 2).count();
        assert!(with.abs_diff(4000) < 142, "{with}");
    }

    #[test]
    fn the_whole_may_be_common_and_later_requests_have_none() {
        assert_eq!(
            roots(r#"{"type": "text", "shared_prefix_ratio": 1}"#, 1)[0].len(),
            1
        );
        let plan = plan(r#"{"type": "text", "shared_prefix_ratio": 0.5}"#).unwrap();
        let random = random(1, 0);
        let mut draws = plan.draws(&random, 0);
        assert_eq!(plan.content(&mut draws, true).len(), 2);
        assert_eq!(plan.content(&mut draws, false).len(), 1);
    }

    #[test]
    fn refuses_invalid_values_with_their_path() {
        let refused = |json: &str| plan(json).unwrap_err().path.unwrap();
        assert_eq!(
            refused(r#"{"type": "text", "shared_prefix_ratio": 1.5}"#),
            "/shared_prefix_ratio"
        );
        assert_eq!(
            refused(r#"{"type": "text", "shared_prefix_probability": -0.5}"#),
            "/shared_prefix_probability"
        );
        assert_eq!(
            refused(r#"{"type": "text", "body_length_generator": {"type": "uniform", "min": 9, "max": 8}}"#),
            "/body_length_generator/min"
        );
    }
}
