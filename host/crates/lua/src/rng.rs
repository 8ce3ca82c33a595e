//! `rng`: draws from the host's counter-based random stream of a session.

use std::borrow::Cow;
use std::rc::Rc;

use mlua::{MultiValue, Table, UserData, UserDataMethods, Value};
use veeksha_stats::{Draws, RandomStream};

use crate::shape::{At, ShapeError, number_of};

/// Name of the stream of `rng` outside subagents, in addition to the run's seed and the session's
/// index.
const STREAM: &str = "lua";

/// Maximum bytes of the name of a stream.
const MAX_NAME: usize = 256;

/// The random generator object of scripts.
pub(crate) struct Rng {
    draws: Draws,
    seed: u64,
    session: u64,
    /// Place of the subagent that it belongs to; empty outside subagents.
    subagent: Rc<str>,
}

impl Rng {
    /// Creates the stream of session `index`, or of one of its subagents (`1.2`).
    pub(crate) fn new(seed: u64, index: u64, subagent: &str) -> Self {
        Self::of_stream(seed, index, subagent, STREAM)
    }

    /// Creates a stream with another name. Components draw the same words from a stream of the same
    /// name.
    pub(crate) fn of_stream(seed: u64, session: u64, subagent: &str, stream: &str) -> Self {
        Rng {
            draws: RandomStream::new(seed, session, &stream_of(stream, subagent)).draws(),
            seed,
            session,
            subagent: subagent.into(),
        }
    }

    /// Creates the stream of this name of the same session or subagent, from its beginning.
    fn stream(&self, name: &Value) -> Result<Self, ShapeError> {
        let at = At::Root("rng:stream(name)");
        let Value::String(name) = name else {
            return Err(at.expected("the name of a stream", name));
        };
        match name.to_str() {
            Ok(name) if !name.is_empty() && name.len() <= MAX_NAME => {
                Ok(Self::of_stream(self.seed, self.session, &self.subagent, &name))
            }
            _ => Err(at.shape(format!("expected UTF-8 text of 1 to {MAX_NAME} bytes"))),
        }
    }

    fn integer(&mut self, low: f64, high: f64) -> Result<f64, ShapeError> {
        let at = At::Root("rng:int(low, high)");
        let exact = |n: f64| n.fract() == 0.0 && n.abs() <= 9_007_199_254_740_992.0;
        if !exact(low) || !exact(high) {
            return Err(at.shape(format!("expected two integers, found {low} and {high}")));
        }
        let span = high - low;
        if !(0.0..4_294_967_295.0).contains(&span) {
            return Err(at.shape(format!(
                "expected low <= high, less than 2^32 - 1 apart; found {low} and {high}"
            )));
        }
        Ok(low + f64::from(self.draws.below(span as u32 + 1)))
    }
}

/// Returns the arguments as finite numbers.
///
/// # Errors
/// If an argument is not a finite number; the message shows the call.
fn numbers<const N: usize>(call: &str, arguments: &MultiValue) -> Result<[f64; N], ShapeError> {
    let mut numbers = [0.0; N];
    for (i, slot) in numbers.iter_mut().enumerate() {
        let value = arguments.get(i).cloned().unwrap_or(Value::Nil);
        match number_of(&value) {
            Some(number) if number.is_finite() => *slot = number,
            _ => return Err(At::Root(call).expected("a finite number for each argument", &value)),
        }
    }
    Ok(numbers)
}

fn not_negative(call: &str, value: f64) -> Result<f64, ShapeError> {
    if value >= 0.0 {
        Ok(value)
    } else {
        Err(At::Root(call).shape(format!("{value} is negative")))
    }
}

/// Returns the name of a random stream of a subagent (`1.2/lua`), or of a whole session.
pub(crate) fn stream_of<'a>(name: &'a str, subagent: &str) -> Cow<'a, str> {
    if subagent.is_empty() {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(format!("{subagent}/{name}"))
    }
}

impl UserData for Rng {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("stream", |_, rng, name: Value| Ok(rng.stream(&name)?));
        methods.add_method_mut("word", |_, rng, ()| Ok(rng.draws.next_u32()));
        methods.add_method_mut("unit", |_, rng, ()| Ok(rng.draws.unit()));
        methods.add_method_mut("int", |_, rng, arguments: MultiValue| {
            let [low, high] = numbers("rng:int(low, high)", &arguments)?;
            Ok(rng.integer(low, high)?)
        });
        methods.add_method_mut("exponential", |_, rng, arguments: MultiValue| {
            let call = "rng:exponential(mean)";
            let [mean] = numbers(call, &arguments)?;
            Ok(not_negative(call, mean)? * rng.draws.exponential())
        });
        methods.add_method_mut("normal", |_, rng, arguments: MultiValue| {
            let call = "rng:normal(mean, sd)";
            let [mean, deviation] = numbers(call, &arguments)?;
            Ok(mean + not_negative(call, deviation)? * rng.draws.normal())
        });
        methods.add_method_mut("gamma", |_, rng, arguments: MultiValue| {
            let call = "rng:gamma(mean, cv)";
            let [mean, cv] = numbers(call, &arguments)?;
            let (mean, cv) = (not_negative(call, mean)?, not_negative(call, cv)?);
            // A gamma variable of shape k and scale s has mean k s and coefficient of variation 1 /
            // sqrt(k).
            if cv == 0.0 {
                return Ok(mean);
            }
            let shape = 1.0 / (cv * cv);
            Ok(rng.draws.gamma(shape) * mean / shape)
        });
        methods.add_method_mut("choice", |_, rng, list: Value| {
            let at = At::Root("rng:choice(list)");
            let Value::Table(list) = list else {
                return Err(at.expected("a list", &list).into());
            };
            choose(&mut rng.draws, &list, &at)
        });
    }
}

fn choose(draws: &mut Draws, list: &Table, at: &At<'_>) -> mlua::Result<Value> {
    let length = u32::try_from(list.raw_len()).unwrap_or(u32::MAX);
    if length == 0 {
        return Err(at.shape("the list is empty").into());
    }
    list.raw_get(draws.below(length) + 1)
}
