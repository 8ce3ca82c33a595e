//! Fixtures, and grants that the tests can inspect.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use veeksha_model::{Request, Session};
use veeksha_ports::{AgentSource, PluginFailure, SessionSource, Workload};
use veeksha_wasm::{
    EngineLimits, EngineOptions, Grants, LogLevel, LogSink, NoLog, PluginComponent, PluginEngine,
};

/// Returns the folder of the committed components.
pub(crate) fn dist() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../tests/guests/dist")
}

/// Returns the bytes of a fixture.
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let path = dist().join(name).with_extension("wasm");
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; see tests/guests/README.md", path.display()))
}

/// Returns limits that expose misbehavior quickly. The deadline remains long, because filling
/// memory is slow on a machine under load; a test of endless loops shortens it.
pub(crate) fn tight() -> EngineLimits {
    EngineLimits {
        memory_bytes: 64 << 20,
        lift_bytes: 8 << 20,
        ..EngineLimits::default()
    }
}

/// Returns an engine with a cache shared by all tests, so that each fixture is compiled once. The
/// cache itself is tested in `cache.rs`.
pub(crate) fn engine(limits: EngineLimits) -> PluginEngine {
    let cache_dir = Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("plugin-cache"));
    PluginEngine::new(EngineOptions {
        cache_dir,
        limits,
        on_compile: None,
    })
    .unwrap()
}

pub(crate) fn load(limits: EngineLimits, name: &str) -> PluginComponent {
    engine(limits).load(name, &fixture(name)).unwrap()
}

pub(crate) fn grants() -> Grants {
    Grants::new(42, Arc::new(NoLog))
}

/// A sink that stores its lines.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Vec<(String, LogLevel, String)>>);

impl Kept {
    pub(crate) fn lines(&self) -> Vec<(String, LogLevel, String)> {
        self.0.lock().unwrap().clone()
    }
}

impl LogSink for Kept {
    fn line(&self, plugin: &str, level: LogLevel, message: &str) {
        self.0
            .lock()
            .unwrap()
            .push((plugin.into(), level, message.into()));
    }
}

pub(crate) fn open(
    plugin: &PluginComponent,
    config: &str,
    grants: Grants,
) -> Result<Workload, PluginFailure> {
    plugin.workload(config.into(), grants).unwrap().open()
}

pub(crate) fn planned(plugin: &PluginComponent, config: &str, grants: Grants) -> Box<dyn SessionSource> {
    match open(plugin, config, grants).unwrap() {
        Workload::Planned(source) => source,
        Workload::Reactive(_) => panic!("a reactive workload"),
    }
}

pub(crate) fn reactive(plugin: &PluginComponent, config: &str, grants: Grants) -> Box<dyn AgentSource> {
    match open(plugin, config, grants).unwrap() {
        Workload::Reactive(source) => source,
        Workload::Planned(_) => panic!("a planned workload"),
    }
}

/// Opens the session generator `hostile-sessions` with one of its behaviors.
pub(crate) fn behaving(limits: EngineLimits, behaviour: &str) -> Box<dyn SessionSource> {
    let plugin = load(limits, "hostile-sessions");
    planned(&plugin, &format!(r#"{{"behaviour": "{behaviour}"}}"#), grants())
}

/// Returns a label of a request.
pub(crate) fn label<'a>(request: &'a Request, name: &str) -> &'a str {
    let found = request.labels.iter().find(|(key, _)| key == name);
    &found
        .unwrap_or_else(|| panic!("no label {name} in {:?}", request.labels))
        .1
}

/// Returns the label `label` of the only node of a session.
pub(crate) fn only_label(session: &Session) -> u64 {
    label(&session.requests[0], "label").parse().unwrap()
}
