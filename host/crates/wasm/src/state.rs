//! What the host keeps beside a guest, in its store.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::answering::Answering;
use crate::engine::Host;
use crate::grants::{Grants, LogLevel, LogSink, TokenCounter};
use crate::memory::MemoryLimit;
use crate::ring::Ring;
use crate::wasi::StandInClock;
use crate::{text, wasi};

/// Handles (open blobs, streams, pollables) that one guest may hold at once.
const HANDLES: usize = 1024;
/// Lines that one call may log.
const LINES_PER_CALL: u32 = 256;
/// Characters of a logged line.
const LINE_LENGTH: usize = 4096;

/// A store's state.
pub(crate) struct HostState {
    pub(crate) plugin: Arc<str>,
    pub(crate) memory: MemoryLimit,
    pub(crate) output: Ring,
    pub(crate) table: ResourceTable,
    pub(crate) clock: StandInClock,
    pub(crate) seed: u64,
    pub(crate) tokens: Option<Arc<dyn TokenCounter>>,
    pub(crate) blobs: BTreeMap<String, PathBuf>,
    /// The host's own time during the running call.
    pub(crate) answering: Answering,
    /// The last line of level `error` that the running call logged: a panic hook's, if the call then traps.
    pub(crate) last_error: Option<String>,
    wasi: WasiCtx,
    log: Arc<dyn LogSink>,
    lines: u32,
}

impl HostState {
    pub(crate) fn new(plugin: Arc<str>, host: &Host, grants: &Grants) -> Self {
        let limits = &host.limits;
        let output = Ring::new(limits.stderr_bytes);
        let mut table = ResourceTable::new();
        table.set_max_capacity(HANDLES);
        HostState {
            memory: MemoryLimit::new(Arc::clone(&plugin), limits.memory_bytes),
            wasi: wasi::stand_ins(grants.seed, &output),
            plugin,
            output,
            table,
            clock: StandInClock::default(),
            seed: grants.seed,
            tokens: grants.tokens.clone(),
            blobs: grants.blobs.clone(),
            answering: Answering::new(host.ticks.clone(), limits.results_deadline),
            last_error: None,
            log: Arc::clone(&grants.log),
            lines: 0,
        }
    }

    /// A call begins.
    pub(crate) fn enter(&mut self, function: &'static str) {
        self.memory.function = function;
        self.last_error = None;
        self.answering.begin();
        self.lines = 0;
    }

    /// A call has ended, in whatever way.
    pub(crate) fn leave(&mut self) {
        let cut = self.lines.saturating_sub(LINES_PER_CALL);
        if cut > 0 {
            let message = format!(
                "{} further lines of one call were left out",
                text::grouped(cut.into())
            );
            self.log.line(&self.plugin, LogLevel::Warn, &message);
        }
    }

    /// The guest logs a line.
    pub(crate) fn log(&mut self, level: LogLevel, message: &str) {
        self.lines = self.lines.saturating_add(1);
        self.last_error = (level == LogLevel::Error).then(|| text::cut(message, LINE_LENGTH));
        if self.lines <= LINES_PER_CALL {
            self.log
                .line(&self.plugin, level, &text::cut(message, LINE_LENGTH));
        }
    }

    /// The host says something about the guest.
    pub(crate) fn warn(&self, message: &str) {
        self.log.line(&self.plugin, LogLevel::Warn, message);
    }
}

impl WasiView for HostState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}
