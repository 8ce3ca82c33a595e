//! Distributions of lengths and counts: whole numbers, 1 or more.

use veeksha_plugin::Error;

use crate::config::Length;
use crate::draw::Draw;
use crate::inverse_gaussian::InverseGaussian;
use crate::zipf::Zipf;

/// A distribution whose parameters are possible.
#[derive(Debug)]
pub(crate) enum LengthSampler {
    Fixed(u32),
    Uniform {
        min: u32,
        max: u32,
    },
    Stair {
        values: Vec<u32>,
        repeat_each: u32,
        wrap: bool,
    },
    Zipf(Zipf),
    InverseGaussian(InverseGaussian),
}

impl LengthSampler {
    /// Checks the parameters; `path` is where they stand.
    pub(crate) fn new(length: Length, path: &str) -> Result<Self, Error> {
        Ok(match length {
            Length::Fixed { value } => LengthSampler::Fixed(positive(value, path, "value")?),
            Length::Uniform { min, max } => {
                check_range(min, max, path)?;
                LengthSampler::Uniform { min, max }
            }
            Length::FixedStair {
                values,
                repeat_each,
                wrap,
            } => {
                if values.is_empty() {
                    return Err(Error::config(
                        format!("{path}/values"),
                        "a stair has at least one value",
                    ));
                }
                for (index, &value) in values.iter().enumerate() {
                    positive(value, path, &format!("values/{index}"))?;
                }
                positive(repeat_each, path, "repeat_each")?;
                LengthSampler::Stair {
                    values,
                    repeat_each,
                    wrap,
                }
            }
            Length::Zipf {
                theta,
                alpha,
                scramble,
                min,
                max,
            } => {
                check_range(min, max, path)?;
                LengthSampler::Zipf(Zipf::new(min, max, exponent(theta, alpha, path)?, scramble))
            }
            Length::InverseGaussian { mean, shape } => LengthSampler::InverseGaussian(InverseGaussian {
                mean: above_zero(mean, path, "mean")?,
                shape: above_zero(shape, path, "shape")?,
            }),
        })
    }

    /// The next number.
    pub(crate) fn sample(&self, draw: &mut Draw<'_>) -> u32 {
        let step = draw.next_step();
        match self {
            LengthSampler::Fixed(value) => *value,
            LengthSampler::Uniform { min, max } => draw.draws.between(*min, *max),
            LengthSampler::Stair {
                values,
                repeat_each,
                wrap,
            } => {
                let position = step / u64::from(*repeat_each);
                let count = values.len() as u64;
                let index = if *wrap {
                    position % count
                } else {
                    position.min(count - 1)
                };
                values[index as usize]
            }
            LengthSampler::Zipf(zipf) => zipf.sample(draw),
            LengthSampler::InverseGaussian(wald) => wald.sample_whole(&mut draw.draws),
        }
    }

    /// Returns the largest number, if there is one.
    pub(crate) fn largest(&self) -> Option<u32> {
        match self {
            LengthSampler::Fixed(value) => Some(*value),
            LengthSampler::Uniform { max, .. } => Some(*max),
            LengthSampler::Stair { values, .. } => values.iter().max().copied(),
            LengthSampler::Zipf(zipf) => Some(zipf.max()),
            LengthSampler::InverseGaussian(_) => None,
        }
    }

    /// Returns the number, if it is always the same.
    pub(crate) fn constant(&self) -> Option<u32> {
        match self {
            LengthSampler::Fixed(value) => Some(*value),
            LengthSampler::Uniform { min, max } if min == max => Some(*min),
            LengthSampler::Stair { values, .. } if values.iter().all(|value| *value == values[0]) => {
                Some(values[0])
            }
            _ => None,
        }
    }
}

fn positive(value: u32, path: &str, key: &str) -> Result<u32, Error> {
    if value == 0 {
        return Err(Error::config(format!("{path}/{key}"), "must be 1 or more"));
    }
    Ok(value)
}

fn check_range(min: u32, max: u32, path: &str) -> Result<(), Error> {
    positive(min, path, "min")?;
    if min > max {
        return Err(Error::config(
            format!("{path}/min"),
            format!("the smallest value, {min}, is above the largest, {max}"),
        ));
    }
    Ok(())
}

/// A finite number above 0.
pub(crate) fn above_zero(value: f64, path: &str, key: &str) -> Result<f64, Error> {
    if value > 0.0 && value.is_finite() {
        return Ok(value);
    }
    Err(Error::config(
        format!("{path}/{key}"),
        format!("must be above 0, and is {value}"),
    ))
}

fn exponent(theta: Option<f64>, alpha: Option<f64>, path: &str) -> Result<f64, Error> {
    let (key, value) = match (theta, alpha) {
        (Some(_), Some(_)) => {
            return Err(Error::config(
                format!("{path}/alpha"),
                "`alpha` and `theta` are two names of one exponent",
            )
            .hint("give only one of them"));
        }
        (_, Some(alpha)) => ("alpha", alpha),
        (theta, None) => ("theta", theta.unwrap_or(0.6)),
    };
    if (0.0..=20.0).contains(&value) {
        return Ok(value);
    }
    Err(Error::config(
        format!("{path}/{key}"),
        format!("must lie between 0 and 20, and is {value}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chi_square, random, sampler};

    fn refused(json: &str) -> String {
        let length = veeksha_plugin::config::from_json(json).unwrap();
        LengthSampler::new(length, "/x").unwrap_err().path.unwrap()
    }

    #[test]
    fn refuses_impossible_parameters_with_their_path() {
        let cases = [
            (r#"{"type": "fixed", "value": 0}"#, "/x/value"),
            (r#"{"type": "uniform", "min": 0}"#, "/x/min"),
            (r#"{"type": "uniform", "min": 13}"#, "/x/min"),
            (r#"{"type": "uniform", "max": 5}"#, "/x/min"),
            (r#"{"type": "fixed_stair", "values": []}"#, "/x/values"),
            (r#"{"type": "fixed_stair", "values": [4, 0]}"#, "/x/values/1"),
            (r#"{"type": "fixed_stair", "repeat_each": 0}"#, "/x/repeat_each"),
            (r#"{"type": "zipf", "min": 9, "max": 8}"#, "/x/min"),
            (r#"{"type": "zipf", "theta": -0.1}"#, "/x/theta"),
            (r#"{"type": "zipf", "alpha": 21}"#, "/x/alpha"),
            (r#"{"type": "zipf", "alpha": 1, "theta": 1}"#, "/x/alpha"),
            (r#"{"type": "inverse_gaussian", "mean": 0}"#, "/x/mean"),
            (r#"{"type": "inverse_gaussian", "shape": -1}"#, "/x/shape"),
        ];
        for (json, path) in cases {
            assert_eq!(refused(json), path, "{json}");
        }
    }

    fn walk(json: &str, first: u64, count: usize) -> Vec<u32> {
        let random = random(1, 0);
        let mut draw = Draw::new(&random, "s", first);
        let sampler = sampler(json);
        (0..count).map(|_| sampler.sample(&mut draw)).collect()
    }

    #[test]
    fn a_stair_climbs_by_steps_and_wraps_or_stays() {
        let stair = |wrap| {
            format!(r#"{{"type": "fixed_stair", "values": [8, 16, 32], "repeat_each": 2, "wrap": {wrap}}}"#)
        };
        assert_eq!(walk(&stair(true), 0, 8), [8, 8, 16, 16, 32, 32, 8, 8]);
        assert_eq!(walk(&stair(false), 0, 8), [8, 8, 16, 16, 32, 32, 32, 32]);
        assert_eq!(walk(&stair(true), 9, 2), [16, 32]);
        assert_eq!(walk(&stair(false), u64::MAX, 2), [32, 32]);
    }

    /// Every value with probability 1/7, the largest included (which Veeksha never draws):
    /// chi-square with 6 degrees of freedom exceeds 27.9 once in 10,000.
    #[test]
    fn uniform_is_uniform_up_to_its_largest() {
        let n = 70_000;
        let mut counts = [0u32; 7];
        for value in walk(r#"{"type": "uniform"}"#, 0, n) {
            counts[value as usize - 6] += 1;
        }
        assert!(chi_square(&counts, &[n as f64 / 7.0; 7]) < 27.9, "{counts:?}");
    }

    #[test]
    fn constant_lengths_are_known() {
        assert_eq!(sampler(r#"{"type": "fixed"}"#).constant(), Some(8));
        assert_eq!(
            sampler(r#"{"type": "uniform", "min": 5, "max": 5}"#).constant(),
            Some(5)
        );
        assert_eq!(sampler(r#"{"type": "uniform"}"#).constant(), None);
        assert_eq!(
            sampler(r#"{"type": "fixed_stair", "values": [3, 3]}"#).constant(),
            Some(3)
        );
    }
}
