//! Host functions that Lua functions may call.

use std::sync::Arc;

use veeksha_lua::{LuaGrants, LuaTokenizer};
use veeksha_present::terminal;
use veeksha_prompt::Tokenizer;

use crate::scenario::source::Loaded;

/// Returns the grants of a scenario's Lua functions: its seed, its tokenizer, and a log.
pub(crate) fn lua_grants(loaded: &Loaded, tokenizer: &Tokenizer) -> LuaGrants {
    let (counter, encoder) = (tokenizer.clone(), tokenizer.clone());
    LuaGrants {
        seed: loaded.scenario.seed,
        tokens: Some(LuaTokenizer {
            count: Arc::new(move |text| counter.count(text)),
            encode: Arc::new(move |text| encoder.encode(text).unwrap_or_default()),
        }),
        log: Arc::new(|level: &str, line: &str| terminal::err(format!("[lua {level}] {line}"))),
    }
}
