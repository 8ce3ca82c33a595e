//! The host's state for one guest, kept in the guest's store.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use veeksha_ports::{PluginMeter, SandboxedAccess};
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::granted_folder::GrantedFolder;
use crate::grants::{Grants, LogLevel, PluginTokenizer};
use crate::guest_log::{GuestLog, LogCall, MAX_LINE_CHARS};
use crate::host_call::HostCall;
use crate::host_time::HostTime;
use crate::limits::EngineLimits;
use crate::memory::MemoryLimit;
use crate::ring::OutputRing;
use crate::ticker::EpochTicks;
use crate::wasi::{NO_SESSION, StandInClock};
use crate::{text, wasi};

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
    pub(crate) folder: GrantedFolder,
    /// The environment variables that the guest may read.
    pub(crate) environment: BTreeMap<String, String>,
    /// The time that the host took during the running call.
    pub(crate) host_time: HostTime,
    /// The last line of level `error` that the running call logged: the message of a panic hook, if
    /// the call then traps.
    pub(crate) last_error: Option<String>,
    /// The last host function that the running call used.
    pub(crate) last_host_call: Option<HostCall>,
    pub(crate) meter: Arc<PluginMeter>,
    uses_wasi: bool,
    wasi: WasiCtx,
    log: GuestLog,
    /// The session of the running call.
    session: Option<u64>,
    /// False while the guest is instantiated: runtimes of languages ask for more then than their
    /// programs do.
    is_called: bool,
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
        table.set_max_capacity(limits.handles);
        let (log, meter) = (Arc::clone(&grants.log), Arc::clone(&grants.meter));
        HostState {
            memory: MemoryLimit::new(Arc::clone(&plugin), limits),
            wasi: wasi::stand_ins(grants.seed, NO_SESSION, 0, &output),
            log: GuestLog::new(Arc::clone(&plugin), log, Arc::clone(&meter), limits),
            plugin,
            output,
            table,
            clock: StandInClock::default(),
            seed: grants.seed,
            tokens: grants.tokens.clone(),
            count_bytes: limits.count_bytes,
            blobs: grants.blobs.clone(),
            folder: grants.folder.clone(),
            environment: grants.environment.clone(),
            host_time: HostTime::new(ticks, limits.results_deadline),
            last_error: None,
            last_host_call: None,
            meter,
            uses_wasi,
            session: None,
            is_called: false,
        }
    }

    /// Notes the session of a call, and restarts the WASI stand-ins, so that they do not depend on
    /// earlier calls of the store. `call` counts the calls about the session, from 0.
    pub(crate) fn restart_wasi(&mut self, session: u64, call: u64) {
        self.session = Some(session);
        if self.uses_wasi {
            self.wasi = wasi::stand_ins(self.seed, session, call, &self.output);
            self.clock = StandInClock::default();
        }
    }

    /// Prepares for a call.
    pub(crate) fn enter(&mut self, function: &'static str) {
        self.memory.function = function;
        self.last_error = None;
        self.last_host_call = None;
        self.session = None;
        self.is_called = true;
        self.host_time.begin();
        self.log.begin();
    }

    /// Ends a call. What the guest printed becomes part of its log, unless the call trapped: then
    /// it is in the report.
    pub(crate) fn leave(&mut self, trapped: bool) {
        self.is_called = false;
        let call = self.call();
        if self.uses_wasi {
            let (lines, lost) = self.output.take_lines();
            if !trapped {
                for line in lines {
                    self.log.write(call, LogLevel::Info, &line);
                }
                self.log.lost(lost);
            }
        }
        self.log.end(call);
    }

    fn call(&self) -> LogCall {
        LogCall {
            function: self.memory.function,
            session: self.session,
        }
    }

    /// Logs a line of the guest.
    pub(crate) fn log(&mut self, level: LogLevel, message: &str) {
        self.last_error = (level == LogLevel::Error).then(|| text::cut(message, MAX_LINE_CHARS));
        self.log.write(self.call(), level, message);
    }

    /// Logs a warning of the host about the guest.
    pub(crate) fn warn(&self, message: &str) {
        self.log.remark(self.call(), message);
    }

    /// Notes that the guest asked for something that plugins do not have. Logged once per plugin.
    pub(crate) fn note_access(&self, access: SandboxedAccess) {
        if self.is_called {
            self.note(&access.message());
        }
    }

    /// Keeps a remark for the reports of later failures, and logs it once per plugin.
    pub(crate) fn note(&self, note: &str) {
        if self.meter.note(note) {
            self.warn(note);
        }
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
