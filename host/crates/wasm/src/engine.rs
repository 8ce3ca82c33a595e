//! The engine: how components are compiled and what they are linked to.

use std::io;
use std::sync::{Arc, OnceLock};

use veeksha_ports::{PluginFailure, PluginFailureKind};
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Config, Engine, WasmBacktraceDetails};

use crate::bindings::Everything;
use crate::cache::{Cache, CacheError};
use crate::discovery::discover;
use crate::limits::{EngineOptions, Limits};
use crate::loaded::{Loaded, Origin};
use crate::plugin::Plugin;
use crate::state::HostState;
use crate::text::one_line;
use crate::ticker::Ticks;
use crate::{ticker, wasi};

/// Stack of a guest's machine code. Plugin threads have 2 MiB; the rest is the host's.
const STACK_BYTES: usize = 512 << 10;

/// Why there is no engine. None of these has to do with a plugin.
#[derive(Debug, thiserror::Error)]
pub enum WasmError {
    /// This machine cannot run what the engine needs.
    #[error("the WebAssembly engine cannot be set up on this machine: {0}")]
    Engine(String),
    /// The thread that watches deadlines could not be started.
    #[error("cannot start the thread that watches the plugins' deadlines: {0}")]
    Ticker(#[from] io::Error),
}

/// What all plugins of an engine share.
pub(crate) struct Host {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<HostState>,
    pub(crate) limits: Limits,
    pub(crate) ticks: Ticks,
    cache: Option<Cache>,
    note: OnceLock<String>,
}

impl Host {
    pub(crate) fn cache(&self) -> Option<&Cache> {
        self.cache.as_ref()
    }

    /// Remembers the first reason why the cache does not do its work.
    pub(crate) fn note(&self, kept: Result<(), CacheError>) {
        if let Err(error) = kept {
            let _ = self.note.set(note(&error));
        }
    }
}

fn note(error: &CacheError) -> String {
    format!("compiled plugins are not kept: {error}")
}

/// Loads plugins. One per process is enough; it may be shared between threads.
#[derive(Clone)]
pub struct PluginEngine {
    host: Arc<Host>,
}

impl PluginEngine {
    /// Sets up the engine, its deadline thread and its cache. A cache that cannot be used is no error; see
    /// [`PluginEngine::cache_note`].
    pub fn new(options: EngineOptions) -> Result<Self, WasmError> {
        let failed = |error: wasmtime::Error| WasmError::Engine(format!("{error:#}"));
        let engine = Engine::new(&config()).map_err(failed)?;
        let linker = linker(&engine).map_err(failed)?;
        let ticks = ticker::start(&engine)?;
        let opened = options
            .cache_dir
            .as_deref()
            .map(|dir| Cache::open(dir, &engine))
            .transpose();
        let noted = OnceLock::new();
        let cache = opened.unwrap_or_else(|error| {
            let _ = noted.set(note(&error));
            None
        });
        let host = Host {
            engine,
            linker,
            limits: options.limits,
            ticks,
            cache,
            note: noted,
        };
        Ok(PluginEngine { host: Arc::new(host) })
    }

    /// Why compiled plugins are not kept, if a cache was asked for and does not work. Also after [`PluginEngine::load`].
    pub fn cache_note(&self) -> Option<&str> {
        self.host.note.get().map(String::as_str)
    }

    /// Makes a plugin of a component's bytes. `name` is what messages call it.
    pub fn load(&self, name: &str, bytes: &[u8]) -> Result<Plugin, PluginFailure> {
        let refuse = |message: String| PluginFailure::new(name, "load", PluginFailureKind::Load, message);
        let discovered = discover(bytes).map_err(refuse)?;
        let digest = blake3::hash(bytes).to_hex().to_string();
        let (component, origin) = self.component(&digest, bytes).map_err(refuse)?;
        let loaded = Loaded::new(
            Arc::clone(&self.host),
            name,
            digest,
            discovered,
            origin,
            component,
        );
        Ok(Plugin::new(loaded.map_err(|error| refuse(load_error(&error)))?))
    }

    fn component(&self, digest: &str, bytes: &[u8]) -> Result<(Component, Origin), String> {
        let Host { engine, cache, .. } = &*self.host;
        if let Some(component) = cache.as_ref().and_then(|cache| cache.component(engine, digest)) {
            return Ok((component, Origin::Cache));
        }
        let component = Component::from_binary(engine, bytes).map_err(|error| load_error(&error))?;
        if let Some(cache) = cache {
            self.host.note(cache.keep_component(digest, &component));
        }
        Ok((component, Origin::Compiler))
    }
}

fn load_error(error: &wasmtime::Error) -> String {
    one_line(&format!("{error:#}"), 1000)
}

fn config() -> Config {
    let mut config = Config::new();
    config
        // Contract 0.1 is synchronous, and calls are three times as cheap without.
        .concurrency_support(false)
        .epoch_interruption(true)
        .max_wasm_stack(STACK_BYTES)
        .wasm_backtrace_details(WasmBacktraceDetails::Enable)
        // A session is the same on every machine: no part of WebAssembly that may differ between processors.
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true);
    config
}

fn linker(engine: &Engine) -> wasmtime::Result<Linker<HostState>> {
    let mut linker = Linker::new(engine);
    wasi::link(&mut linker)?;
    Everything::add_to_linker::<HostState, HasSelf<HostState>>(&mut linker, |state| state)?;
    Ok(linker)
}
