//! Host functions that Lua functions may call.

use std::sync::Arc;

use veeksha_decisions::Redact;
use veeksha_lua::LuaGrants;
use veeksha_present::terminal;
use veeksha_prompt::Tokenizer;

use crate::scenario::source::Loaded;

/// Returns the grants of a scenario's Lua functions: its seed, its tokenizer, and a log.
pub(crate) fn lua_grants(loaded: &Loaded, tokenizer: &Tokenizer) -> LuaGrants {
    let tokenizer = tokenizer.clone();
    let redaction = loaded.redaction();
    LuaGrants {
        seed: loaded.scenario.seed,
        tokens: Some(Arc::new(move |text| {
            tokenizer.encode(text).map_err(|error| error.to_string())
        })),
        log: Arc::new(move |level: &str, line: &str| {
            terminal::err(format!("[lua {level}] {}", redaction.text(line)));
        }),
    }
}
