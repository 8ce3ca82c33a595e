//! Scenarios in temporary folders, and helpers to open them.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use veeksha_lua::{LuaError, LuaGrants, LuaLimits, LuaScenario};
use veeksha_model::{NodeId, Request, Response, Segment, Session, SessionId};
use veeksha_ports::{AgentSource, PluginFailure, PluginMeter, SessionSource, Workload};
use veeksha_scenario::LuaKind;

/// A folder with a scenario.
pub(crate) struct Folder {
    pub(crate) folder: TempDir,
    pub(crate) limits: LuaLimits,
    pub(crate) log: Arc<Mutex<Vec<(String, String)>>>,
    pub(crate) meter: Arc<PluginMeter>,
}

impl Folder {
    /// Writes `scenario.lua`.
    pub(crate) fn new(source: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("scenario.lua"), source).unwrap();
        let limits = LuaLimits {
            load_deadline: Duration::from_secs(60),
            call_deadline: Duration::from_secs(60),
            memory_bytes: 32 * 1024 * 1024,
            ..LuaLimits::default()
        };
        Folder {
            folder,
            limits,
            log: Arc::default(),
            meter: Arc::default(),
        }
    }

    /// Sets deadlines short enough for tests.
    pub(crate) fn hurried(mut self) -> Self {
        self.limits.load_deadline = Duration::from_millis(300);
        self.limits.call_deadline = Duration::from_millis(300);
        self
    }

    pub(crate) fn with(self, file: &str, source: impl AsRef<[u8]>) -> Self {
        let path = self.folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, source).unwrap();
        self
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("scenario.lua")
    }

    pub(crate) fn load(&self) -> Result<LuaScenario, LuaError> {
        LuaScenario::load(&self.path(), self.limits)
    }

    /// Returns the error of loading, without the folder's name.
    pub(crate) fn load_error(&self) -> String {
        self.clean(&self.load().expect_err("the scenario should not load").to_string())
    }

    pub(crate) fn clean(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.folder.path().display()), "")
    }

    pub(crate) fn grants(&self, seed: u64) -> LuaGrants {
        let log = self.log.clone();
        LuaGrants {
            seed,
            tokens: Some(Arc::new(|text| {
                let words = text.split_whitespace();
                Ok(words.map(|word| word.len() as u32).collect())
            })),
            log: Arc::new(move |level: &str, line: &str| {
                log.lock().unwrap().push((level.into(), line.into()))
            }),
            meter: Arc::clone(&self.meter),
        }
    }

    pub(crate) fn planned(&self, seed: u64, length: Option<u64>) -> Box<dyn SessionSource> {
        let scenario = self.load().unwrap();
        let factory = scenario
            .workload(
                "session_generator.sessions",
                LuaKind::Sessions,
                length,
                self.grants(seed),
            )
            .unwrap();
        match factory.open().unwrap() {
            Workload::Planned(source) => source,
            Workload::Reactive(_) => panic!("a planned workload was expected"),
        }
    }

    pub(crate) fn agents(&self, seed: u64) -> Box<dyn AgentSource> {
        let scenario = self.load().unwrap();
        let factory = scenario
            .workload("session_generator.agent", LuaKind::Agent, None, self.grants(seed))
            .unwrap();
        match factory.open().unwrap() {
            Workload::Reactive(source) => source,
            Workload::Planned(_) => panic!("an agent was expected"),
        }
    }
}

/// Creates a scenario whose session function has this body.
pub(crate) fn sessions(body: &str) -> Folder {
    Folder::new(&format!(
        "return {{ session_generator = {{ type = \"lua\", sessions = function(index, rng) if index < 0 then return end\n{body}\nend }} }}"
    ))
}

/// Creates a scenario whose agent has this body.
pub(crate) fn agent(body: &str) -> Folder {
    Folder::new(&format!(
        "return {{ session_generator = {{ type = \"lua\", agent = function(session)\n{body}\nend }} }}"
    ))
}

/// Returns session 0 of a session function with this body.
pub(crate) fn first(body: &str) -> Result<Session, PluginFailure> {
    sessions(body)
        .planned(1, None)
        .sessions(0, 1)
        .map(|mut sessions| sessions.remove(0))
}

/// Returns the failure of session 0.
pub(crate) fn first_failure(body: &str) -> PluginFailure {
    first(body).expect_err("the session should fail")
}

pub(crate) fn parents(request: &Request) -> Vec<u32> {
    request.parents.iter().map(|edge| edge.parent.0).collect()
}

pub(crate) fn answer(text: &str) -> Response {
    Response {
        text: text.into(),
        finish_reason: "stop".into(),
        ..Response::default()
    }
}

pub(crate) fn text_of(request: &Request) -> &str {
    match &request.messages[0].content[0] {
        Segment::Text(text) => text,
        _ => panic!("text was expected"),
    }
}

pub(crate) const S: SessionId = SessionId(0);

pub(crate) fn node(number: u32) -> NodeId {
    NodeId(number)
}
