//! Plugins outside of a scenario: loaded and granted as a scenario with all defaults does.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use veeksha_lua::{LuaGrants, LuaScenario};
use veeksha_ports::FlavorFactory;
use veeksha_prompt::{Materializer, Tokenizer};
use veeksha_scenario::LuaLayout;
use veeksha_wasm::{Grants, PluginComponent};

use crate::failure::CommandFailure;
use crate::scenario::source::{Loaded, Source};
use crate::workload::components;
use crate::workload::flavors;
use crate::workload::grants::lua_grants;
use crate::workload::prompts;
use crate::workload::tokenizers;

/// A host of plugins that no scenario names.
pub struct StandaloneHost {
    loaded: Loaded,
    tokenizer: Tokenizer,
    materializer: Arc<Materializer>,
}

impl StandaloneHost {
    /// Creates a host with the defaults of a scenario, except for the keys in `set` (`KEY=VALUE`),
    /// whose paths are relative to `folder`. `no_cache` disables the cache of compiled components.
    ///
    /// # Errors
    /// If a key does not exist or has a wrong value, or the tokenizer cannot be opened.
    pub fn new(folder: PathBuf, set: &[String], no_cache: bool) -> Result<Self, CommandFailure> {
        let mut loaded = Source::empty(folder)?.settle(set, &[], no_cache)?;
        let found = tokenizers::tokenizer(&loaded, &mut Vec::new())?;
        found.note_in(&mut loaded.scenario);
        let materializer = Arc::new(prompts::materializer(&loaded, &found, None)?);
        Ok(StandaloneHost {
            loaded,
            tokenizer: found.tokenizer,
            materializer,
        })
    }

    /// Returns the scenario: all defaults, except for the keys that were set.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// Returns the tokenizer of the host.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Returns the conversion of segments to text.
    pub fn materializer(&self) -> &Arc<Materializer> {
        &self.materializer
    }

    /// Compiles a component or takes it from the cache. `name` identifies it in messages.
    ///
    /// # Errors
    /// If it is not a plugin of this contract.
    pub fn load(&self, name: &str, bytes: &[u8]) -> Result<PluginComponent, CommandFailure> {
        components::load(&self.loaded, name, bytes)
    }

    /// Returns the grants of a component: the seed, the tokenizer, a log, and `files` by name.
    pub fn grants(&self, files: &BTreeMap<String, PathBuf>) -> Grants {
        components::grants(&self.loaded, files, &self.tokenizer)
    }

    /// Returns the grants of the functions of a Lua file.
    pub fn lua_grants(&self) -> LuaGrants {
        lua_grants(&self.loaded, &self.tokenizer)
    }

    /// Returns the flavor of a table with `session` and `columns` in a Lua file: at `path`, or, if
    /// it is empty, the table that the file returns.
    ///
    /// # Errors
    /// If the table is not a flavor.
    pub fn lua_flavor(
        &self,
        lua: &LuaScenario,
        path: &str,
        grants: LuaGrants,
    ) -> Result<Arc<dyn FlavorFactory>, CommandFailure> {
        let node = lua.root().nearest_to(path);
        let layout: LuaLayout = serde_json::from_value(node.to_json())
            .map_err(|error| CommandFailure::usage(format!("the flavor of the Lua file: {error}")))?;
        let has_warmup = node.get("warmup").is_some();
        let layout = flavors::layout(&layout, has_warmup);
        lua.flavor(path, layout, has_warmup, grants)
            .map_err(CommandFailure::usage)
    }

    /// Validates the configuration of a component against its schema; `key` is its place in
    /// messages.
    ///
    /// # Errors
    /// The problems, with their places in the configuration.
    pub fn check_config(
        &self,
        plugin: &PluginComponent,
        config: &str,
        key: &str,
    ) -> Result<(), CommandFailure> {
        components::check_config(plugin, config, key)
    }
}
