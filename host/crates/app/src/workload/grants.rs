//! Host functions that Lua functions may call.

use std::sync::Arc;

use veeksha_decisions::Redact;
use veeksha_lua::LuaGrants;
use veeksha_present::terminal;
use veeksha_prompt::Tokenizer;

use crate::scenario::source::Loaded;
use crate::workload::plugin_limits;
use crate::workload::plugin_registry::PluginLogEntry;

/// The name of a scenario's functions in logs and in the report on resources.
const LUA: &str = "lua";

/// Returns the grants of a scenario's Lua functions: its seed, its tokenizer, and a log.
pub(crate) fn lua_grants(loaded: &Loaded, tokenizer: &Tokenizer) -> LuaGrants {
    let tokenizer = tokenizer.clone();
    let redaction = loaded.redaction();
    let plugins = loaded.plugins.clone();
    let limits = &loaded.scenario.runtime.plugin_limits;
    LuaGrants {
        seed: loaded.scenario.seed,
        tokens: Some(Arc::new(move |text| {
            tokenizer.encode(text).map_err(|error| error.to_string())
        })),
        log: Arc::new(move |level: &str, line: &str| {
            let text = redaction.text(line);
            plugins.write(&PluginLogEntry {
                plugin: LUA,
                level,
                function: None,
                session: None,
                text: &text,
            });
            terminal::err(format!("[lua {level}] {text}"));
        }),
        meter: loaded.plugins.meter(LUA, plugin_limits::allowance_of_lua(limits)),
    }
}
