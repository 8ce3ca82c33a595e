//! The host's state for one guest, kept in the guest's store.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::grants::{Grants, LogLevel, LogSink, PluginTokenizer};
use crate::host_time::HostTime;
use crate::limits::EngineLimits;
use crate::memory::MemoryLimit;
use crate::ring::OutputRing;
use crate::ticker::EpochTicks;
use crate::wasi::{NO_SESSION, StandInClock};
use crate::{text, wasi};

/// Maximum number of handles (open blobs, streams, pollables) of one guest.
const MAX_HANDLES: usize = 1024;
/// Maximum number of lines that one call may log.
const MAX_LINES_PER_CALL: u32 = 256;
/// Maximum length of a log line, in characters.
const MAX_LINE_CHARS: usize = 4096;

/// A store's state.
pub(crate) struct HostState {
    pub(crate) plugin: Arc<str>,
    pub(crate) memory: MemoryLimit,
    pub(crate) output: OutputRing,
    pub(crate) table: ResourceTable,
    pub(crate) clock: StandInClock,
    pub(crate) seed: u64,
    pub(crate) tokens: Option<Arc<dyn PluginTokenizer>>,
    /// Maximum length of the text of one call of `tokens.count`, in bytes.
    pub(crate) count_bytes: usize,
    pub(crate) blobs: BTreeMap<String, PathBuf>,
    /// The time that the host took during the running call.
    pub(crate) host_time: HostTime,
    /// The last line of level `error` that the running call logged: the message of a panic hook, if
    /// the call then traps.
    pub(crate) last_error: Option<String>,
    uses_wasi: bool,
    wasi: WasiCtx,
    log: Arc<dyn LogSink>,
    lines: u32,
}

impl HostState {
    pub(crate) fn new(
        plugin: Arc<str>,
        limits: &EngineLimits,
        ticks: EpochTicks,
        grants: &Grants,
        uses_wasi: bool,
    ) -> Self {
        let output = OutputRing::new(limits.stderr_bytes);
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_HANDLES);
        HostState {
            memory: MemoryLimit::new(Arc::clone(&plugin), limits.memory_bytes),
            wasi: wasi::stand_ins(grants.seed, NO_SESSION, 0, &output),
            plugin,
            output,
            table,
            clock: StandInClock::default(),
            seed: grants.seed,
            tokens: grants.tokens.clone(),
            count_bytes: limits.count_bytes,
            blobs: grants.blobs.clone(),
            host_time: HostTime::new(ticks, limits.results_deadline),
            last_error: None,
            uses_wasi,
            log: Arc::clone(&grants.log),
            lines: 0,
        }
    }

    /// Restarts the WASI stand-ins for a call about a session, so that they do not depend on
    /// earlier calls of the store. `call` counts the calls about the session, from 0.
    pub(crate) fn restart_wasi(&mut self, session: u64, call: u64) {
        if self.uses_wasi {
            self.wasi = wasi::stand_ins(self.seed, session, call, &self.output);
            self.clock = StandInClock::default();
        }
    }

    /// Prepares for a call.
    pub(crate) fn enter(&mut self, function: &'static str) {
        self.memory.function = function;
        self.last_error = None;
        self.host_time.begin();
        self.lines = 0;
    }

    /// Ends a call, whether it returned or trapped.
    pub(crate) fn leave(&mut self) {
        let cut = self.lines.saturating_sub(MAX_LINES_PER_CALL);
        if cut > 0 {
            let message = format!(
                "{} more lines of one call were not logged",
                text::grouped(cut.into())
            );
            self.log.line(&self.plugin, LogLevel::Warn, &message);
        }
    }

    /// Logs a line of the guest.
    pub(crate) fn log(&mut self, level: LogLevel, message: &str) {
        self.lines = self.lines.saturating_add(1);
        self.last_error = (level == LogLevel::Error).then(|| text::cut(message, MAX_LINE_CHARS));
        if self.lines <= MAX_LINES_PER_CALL {
            self.log
                .line(&self.plugin, level, &text::cut(message, MAX_LINE_CHARS));
        }
    }

    /// Logs a warning of the host about the guest.
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
