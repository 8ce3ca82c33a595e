//! `blocks`: prompts from hash blocks. A trace with the block ids of its prompts shows which
//! prompts share a prefix.

use std::rc::Rc;

use mlua::{Lua, Table, Value};
use veeksha_model::Seed;
use veeksha_stats::mix64;

use crate::content::{made_up, string};
use crate::fields::{each_field, whole};
use crate::host::LuaHost;
use crate::seeds::seed;
use crate::shape::{At, ShapeError, number_of};

const CALL: &str = "blocks(ids, size, tokens, options)";
const OPTIONS: [&str; 4] = ["last", "scope", "epoch", "rest"];
/// The default scope of blocks.
const SCOPE: &str = "blocks";
/// Maximum number of tokens of one prompt, equal to that of one synthetic segment.
const MAX_TOKENS: u32 = 1 << 24;
/// Integers above this limit are not exact in Lua.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The end of a prompt whose length is not a multiple of the block size.
#[derive(Clone, Copy)]
enum Last {
    /// The last id names a partial block.
    Partial,
    /// Only full blocks have ids; the rest of the prompt is unique.
    Full,
}

/// Registers the global function.
pub(crate) fn install(lua: &Lua, globals: &Table, host: &Rc<LuaHost>) -> mlua::Result<()> {
    let host = host.clone();
    let function = lua.create_function(
        move |lua, (ids, size, tokens, options): (Value, Value, Value, Value)| {
            let made = blocks(&host, &ids, &size, &tokens, &options)?;
            let list = lua.create_table_with_capacity(made.len(), 0)?;
            for (seed, tokens) in made {
                list.raw_push(made_up(lua, seed, tokens)?)?;
            }
            Ok(list)
        },
    )?;
    globals.raw_set("blocks", function)
}

/// Returns the seed and length of each segment. Block *k* is generated from the seed of its id, so
/// equal ids are equal text, and a partial block is a prefix of the full one.
fn blocks(
    host: &LuaHost,
    ids: &Value,
    size: &Value,
    tokens: &Value,
    options: &Value,
) -> Result<Vec<(Seed, u32)>, ShapeError> {
    let at = At::Root(CALL);
    let Value::Table(list) = ids else {
        return Err(At::Key(&at, "ids").expected("a list of ids", ids));
    };
    let positive = |what: &str, value: &Value| match whole(&at, value) {
        Ok(number) if (1..=MAX_TOKENS).contains(&number) => Ok(number),
        _ => Err(At::Key(&at, what).expected("a whole number of tokens from 1 to 16777216", value)),
    };
    let (size, tokens) = (positive("size", size)?, positive("tokens", tokens)?);
    let BlockOptions {
        last,
        scope,
        epoch,
        rest,
    } = BlockOptions::read(&at, options)?;
    let count = list.raw_len();
    let most = match last {
        Last::Partial => tokens.div_ceil(size),
        Last::Full => tokens / size,
    };
    if count > most as usize {
        return Err(at.shape(format!(
            "{count} hash ids for {tokens} tokens, which have {most} blocks of {size}; is the block size right?"
        )));
    }
    let mut left = tokens;
    let mut made = Vec::with_capacity(count + 1);
    for index in 1..=count {
        let item: Value = list.raw_get(index).unwrap_or(Value::Nil);
        let id = id(&At::Index(&At::Key(&at, "ids"), index), &item)?;
        let here = left.min(size);
        let seed = match epoch {
            Some(epoch) => seed_of(&scope, &[epoch, id]),
            None => seed_of(&scope, &[id]),
        };
        made.push((Seed::from(seed), here));
        left -= here;
    }
    if left > 0 {
        made.push((seed(&At::Key(&at, "rest"), host, &rest)?, left));
    }
    Ok(made)
}

struct BlockOptions {
    last: Last,
    scope: String,
    epoch: Option<u64>,
    rest: Value,
}

impl BlockOptions {
    fn read(at: &At<'_>, value: &Value) -> Result<Self, ShapeError> {
        let mut options = BlockOptions {
            last: Last::Partial,
            scope: SCOPE.to_owned(),
            epoch: None,
            rest: Value::Nil,
        };
        let table = match value {
            Value::Nil => return Ok(options),
            Value::Table(table) => table,
            other => return Err(at.expected("a table of options, or none", other)),
        };
        each_field(at, table, &OPTIONS, |key, at, value| {
            match key {
                "last" => options.last = Last::read(at, value)?,
                "scope" => options.scope = string(at, value)?,
                "epoch" => options.epoch = Some(id(at, value)?),
                _ => options.rest = value.clone(),
            }
            Ok(())
        })?;
        Ok(options)
    }
}

impl Last {
    fn read(at: &At<'_>, value: &Value) -> Result<Self, ShapeError> {
        match value.as_string() {
            Some(name) if *name == "partial" => Ok(Last::Partial),
            Some(name) if *name == "full" => Ok(Last::Full),
            _ => Err(at.expected("\"partial\" or \"full\"", value)),
        }
    }
}

/// Reads an integer: a number, or its digits where it is too large for a number.
fn id(at: &At<'_>, value: &Value) -> Result<u64, ShapeError> {
    let found = match value {
        Value::String(text) => text.to_str().ok().and_then(|digits| digits.parse().ok()),
        other => number_of(other)
            .filter(|number| number.fract() == 0.0 && (0.0..=EXACT).contains(number))
            .map(|number| number as u64),
    };
    found.ok_or_else(|| at.expected("a whole number, 0 or more", value))
}

/// Returns a seed that depends only on a scope and some numbers: FNV-1a over the bytes, finalized
/// as in SplitMix64. Other SDKs compute the same, so that flavors in different languages generate
/// the same text for the same ids.
fn seed_of(scope: &str, numbers: &[u64]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut eat = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    eat(scope.as_bytes());
    for number in numbers {
        eat(&[0xff]);
        eat(&number.to_le_bytes());
    }
    mix64(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed independently of this code, from the definitions of FNV-1a and of SplitMix64's
    /// finalizer. The Rust SDK's test has the same table.
    #[test]
    fn seeds_are_those_of_the_contract() {
        let cases: [(&str, &[u64], u64); 5] = [
            ("", &[], 0xf52a_15e9_a9b5_e89b),
            ("block", &[1, 2], 0x840e_6b43_62ae_2d5f),
            ("mooncake", &[0, 46], 0x5d42_8a95_aa6c_7800),
            ("blocks", &[59], 0x2ff5_dd52_8094_3a73),
            ("weka", &[3, u64::MAX], 0xc9b6_9351_5e01_1173),
        ];
        for (scope, numbers, seed) in cases {
            assert_eq!(seed_of(scope, numbers), seed, "{scope} {numbers:?}");
        }
    }
}
