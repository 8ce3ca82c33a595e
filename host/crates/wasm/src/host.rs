//! The state that all plugins of an engine share.

use std::sync::OnceLock;

use wasmtime::Engine;
use wasmtime::component::Linker;

use crate::cache::{CacheError, ComponentCache};
use crate::limits::EngineLimits;
use crate::state::HostState;
use crate::ticker::EpochTicks;

/// The engine, its linker, its limits and its cache.
pub(crate) struct EngineState {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<HostState>,
    pub(crate) limits: EngineLimits,
    pub(crate) ticks: EpochTicks,
    pub(crate) cache: Option<ComponentCache>,
    /// The first reason why the cache does not work.
    pub(crate) cache_note: OnceLock<String>,
}

impl EngineState {
    /// Remembers the first reason why the cache does not work.
    pub(crate) fn note_cache(&self, kept: Result<(), CacheError>) {
        if let Err(error) = kept {
            let _ = self.cache_note.set(cache_note(&error));
        }
    }
}

/// Returns the message about a cache that does not work.
pub(crate) fn cache_note(error: &CacheError) -> String {
    format!("compiled plugins are not cached: {error}")
}
