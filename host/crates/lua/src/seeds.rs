//! Seeds of generated text, as arguments of a script's calls.

use mlua::Value;
use veeksha_model::Seed;
use veeksha_stats::RandomStream;

use crate::host::{LuaHost, stream_seed};
use crate::shape::{At, ShapeError, number_of};

/// Reads a seed of a script; without one, the text is unique.
pub(crate) fn seed(at: &At<'_>, host: &LuaHost, seed: &Value) -> Result<Seed, ShapeError> {
    Ok(match seed {
        Value::Nil => host.next_seed(),
        Value::String(name) => {
            let name = name.to_str().map_err(|_| at.shape("the seed is not UTF-8"))?;
            stream_seed(&RandomStream::new(0, 0, &name), 0)
        }
        other => match number_of(other)
            .filter(|n| n.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(n))
        {
            Some(number) => Seed::from(number as u64),
            None => return Err(at.expected("a string or a whole number from 0 to 2^53 as the seed", other)),
        },
    })
}
