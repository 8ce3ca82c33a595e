//! The state that all plugins of an engine share.

use std::sync::OnceLock;
use std::time::Duration;

use veeksha_clock::RunClock;
use wasmtime::component::Linker;
use wasmtime::{Engine, Store};

use crate::cache::{CacheError, ComponentCache};
use crate::limits::{CallBudget, EngineLimits};
use crate::state::HostState;
use crate::ticker::{self, EpochTicks};

/// The engine, its linker, its limits and its cache.
pub(crate) struct EngineState {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<HostState>,
    pub(crate) limits: EngineLimits,
    pub(crate) clock: RunClock,
    pub(crate) ticks: EpochTicks,
    pub(crate) cache: Option<ComponentCache>,
    /// The first reason why the cache does not work.
    pub(crate) cache_note: OnceLock<String>,
}

impl EngineState {
    /// Sets the time and the fuel of a store's next call.
    pub(crate) fn allow_call(&self, store: &mut Store<HostState>) -> wasmtime::Result<()> {
        store.set_epoch_deadline(ticker::epochs(self.call_deadline()));
        match self.limits.call_budget {
            CallBudget::Time => Ok(()),
            CallBudget::Fuel => store.set_fuel(self.limits.call_fuel),
        }
    }

    /// Returns the fuel that a store's last call used, if fuel is counted.
    pub(crate) fn used_fuel(&self, store: &Store<HostState>) -> Option<u64> {
        match self.limits.call_budget {
            CallBudget::Time => None,
            CallBudget::Fuel => Some(self.limits.call_fuel.saturating_sub(store.get_fuel().ok()?)),
        }
    }

    /// Returns the time after which a call is stopped.
    pub(crate) fn call_deadline(&self) -> Duration {
        match self.limits.call_budget {
            CallBudget::Time => self.limits.call_deadline,
            CallBudget::Fuel => self
                .limits
                .call_deadline
                .saturating_mul(EngineLimits::FUEL_TIME_FACTOR),
        }
    }

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
