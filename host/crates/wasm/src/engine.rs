//! The engine: loads and compiles components.

use std::io;
use std::sync::{Arc, OnceLock};

use veeksha_clock::RunClock;
use veeksha_ports::{PluginFailure, PluginFailureKind};
use wasmtime::component::Component;
use wasmtime::{Config, Engine, WasmBacktraceDetails};

use crate::cache::ComponentCache;
use crate::compile::{self, CompileError};
use crate::discovery::discover;
use crate::host::{EngineState, cache_note};
use crate::limits::{CallBudget, EngineOptions};
use crate::linker::linker;
use crate::loaded::{CodeOrigin, LoadedComponent};
use crate::plugin::PluginComponent;
use crate::text::one_line;
use crate::ticker;

/// Stack size of a guest's machine code. Plugin threads have 2 MiB; the rest is for the host.
const STACK_BYTES: usize = 512 << 10;
/// Maximum length of the message about a component that cannot be loaded, in characters.
const MAX_MESSAGE_CHARS: usize = 1000;

/// Failure to set up the engine, for reasons unrelated to a plugin.
#[derive(Debug, thiserror::Error)]
pub enum WasmError {
    /// This machine cannot run the engine.
    #[error("the WebAssembly engine cannot be set up on this machine: {0}")]
    Engine(String),
    /// The thread that enforces deadlines could not be started.
    #[error("cannot start the thread that enforces the deadlines of plugins: {0}")]
    Ticker(#[from] io::Error),
}

/// A loader of plugins. One per process is sufficient; it may be shared between threads.
#[derive(Clone)]
pub struct PluginEngine {
    host: Arc<EngineState>,
    on_compile: Option<compile::CompileProgress>,
}

impl PluginEngine {
    /// Sets up the engine, its deadline thread and its cache. A cache that cannot be used is not an
    /// error; see [`PluginEngine::cache_note`].
    pub fn new(options: EngineOptions) -> Result<Self, WasmError> {
        let failed = |error: wasmtime::Error| WasmError::Engine(format!("{error:#}"));
        let engine = Engine::new(&config(options.limits.call_budget)).map_err(failed)?;
        let linker = linker(&engine).map_err(failed)?;
        let ticks = ticker::start(&engine)?;
        let opened = options
            .cache_dir
            .as_deref()
            .map(|dir| ComponentCache::open(dir, &engine))
            .transpose();
        let note = OnceLock::new();
        let cache = opened.unwrap_or_else(|error| {
            let _ = note.set(cache_note(&error));
            None
        });
        let host = EngineState {
            engine,
            linker,
            limits: options.limits,
            clock: RunClock::starting_now(),
            ticks,
            cache,
            cache_note: note,
        };
        Ok(PluginEngine {
            host: Arc::new(host),
            on_compile: options.on_compile,
        })
    }

    /// Returns the reason why compiled plugins are not cached, if a cache was requested and does
    /// not work. Also valid after [`PluginEngine::load`].
    pub fn cache_note(&self) -> Option<&str> {
        self.host.cache_note.get().map(String::as_str)
    }

    /// Loads a component's bytes. `name` identifies the plugin in messages.
    pub fn load(&self, name: &str, bytes: &[u8]) -> Result<PluginComponent, PluginFailure> {
        let refuse = |message: String| PluginFailure::new(name, "load", PluginFailureKind::Load, message);
        let discovered = discover(bytes).map_err(refuse)?;
        let digest = blake3::hash(bytes).to_hex().to_string();
        let (component, origin) = self.component(name, &digest, bytes).map_err(|error| {
            let kind = match error {
                CompileError::Deadline { allowed_ms, .. } => PluginFailureKind::Deadline { allowed_ms },
                CompileError::Thread(_) | CompileError::Invalid(_) => PluginFailureKind::Load,
            };
            let message = one_line(&error.to_string(), MAX_MESSAGE_CHARS);
            PluginFailure::new(name, "load", kind, message)
        })?;
        let loaded = LoadedComponent::new(
            Arc::clone(&self.host),
            name,
            digest,
            discovered,
            origin,
            component,
        );
        let loaded = loaded.map_err(|error| refuse(one_line(&format!("{error:#}"), MAX_MESSAGE_CHARS)))?;
        Ok(PluginComponent::new(loaded))
    }

    fn component(
        &self,
        name: &str,
        digest: &str,
        bytes: &[u8],
    ) -> Result<(Component, CodeOrigin), CompileError> {
        let EngineState { engine, cache, .. } = &*self.host;
        if let Some(component) = cache.as_ref().and_then(|cache| cache.component(engine, digest)) {
            return Ok((component, CodeOrigin::Cache));
        }
        let deadline = self.host.limits.compile_deadline;
        let component = compile::component(engine, name, bytes, deadline, self.on_compile.as_ref())?;
        if let Some(cache) = cache {
            self.host.note_cache(cache.keep_component(digest, &component));
        }
        Ok((component, CodeOrigin::Compiler))
    }
}

fn config(call_budget: CallBudget) -> Config {
    let mut config = Config::new();
    config
        // Contract 0.1 is synchronous. Without concurrency support, a call takes a third of the
        // time.
        .concurrency_support(false)
        .epoch_interruption(true)
        .consume_fuel(call_budget == CallBudget::Fuel)
        .max_wasm_stack(STACK_BYTES)
        .wasm_backtrace_details(WasmBacktraceDetails::Enable)
        // A session is the same on every machine, so features of WebAssembly that may differ
        // between processors are made deterministic.
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true);
    config
}
