//! Loading of a Lua file, and access to its functions.

use std::path::Path;
use std::sync::{Arc, Mutex};

use veeksha_ports::{
    ArrivalFactory, FlavorFactory, Layout, MetricFactory, RequestCheckFactory, SloCheck, WorkloadFactory,
    WorkloadInfo, check_layout,
};
use veeksha_scenario::{Documents, LuaKind, Node, Value};

use crate::arrivals::LuaArrivalFactory;
use crate::error::LuaError;
use crate::evaluator::{self, LuaEvaluator, Wrong};
use crate::fault::{LuaFault, LuaFaultKind};
use crate::flavor::LuaFlavorFactory;
use crate::host::LuaHost;
use crate::limits::{LuaGrants, LuaLimits};
use crate::log::LuaLog;
use crate::metrics::LuaMetricFactory;
use crate::modules::ModuleOrigin;
use crate::opening::{ScenarioOpening, join};
use crate::places::Places;
use crate::request_check::LuaRequestCheckFactory;
use crate::returns::{DefinedAt, WithoutReturn, without_return};
use crate::slo_check::LuaSloCheck;
use crate::sources::{self, Sources};
use crate::value;
use crate::vm::Vm;
use crate::workload::LuaFactory;

/// Maximum number of log lines of a scenario's top level.
const MAX_MESSAGES: usize = 200;

/// A loaded Lua file: its document, and the text of its files. It returns a scenario, a list of
/// scenarios, or a table of metrics and checks ([`LuaScenario::evaluator`] with an empty path).
#[derive(Clone, Debug)]
pub struct LuaScenario {
    /// The returned value with source locations: one scenario, or several. Functions appear as
    /// [`Value::Function`].
    pub documents: Documents,
    /// Output of the top level with `log.*` and `print`: level and line.
    pub messages: Vec<(String, String)>,
    root: Node,
    /// The returned value with all scenarios of the file.
    whole: Arc<Node>,
    /// Path of `root` in the returned value: empty, or the index of a scenario in a list.
    within: String,
    sources: Arc<Sources>,
    /// Functions without `return`, by their paths in the returned value.
    without_return: Arc<WithoutReturn>,
    limits: LuaLimits,
}

impl LuaScenario {
    /// Executes the file at `path` in a sandbox and reads the table it returns.
    ///
    /// # Errors
    /// A separate [`LuaError`] for each reason why a file is not a scenario.
    pub fn load(path: &Path, limits: LuaLimits) -> Result<Self, LuaError> {
        let sources = Sources::read(path)?;
        let file = sources.main.name.to_string();
        let messages = Arc::new(Mutex::new(Vec::new()));
        let sink = messages.clone();
        let log = Arc::new(move |level: &str, line: &str| {
            if let Ok(mut messages) = sink.lock()
                && messages.len() < MAX_MESSAGES
            {
                messages.push((level.to_owned(), line.to_owned()));
            }
        });
        let failed = |fault: LuaFault| load_error(fault, &file);
        // The seed of a run is not known yet. Values that the top level derives from it (seeds of
        // shared text) are not part of the document, so any seed gives the same document.
        let log = LuaLog::new(&limits, log, Arc::default());
        let vm = Vm::new(limits, LuaHost::new(0, None, log, &limits)).map_err(failed)?;
        let (result, sources) = vm.execute(sources, ModuleOrigin::Disk).map_err(failed)?;
        let mlua::Value::Table(table) = result else {
            let found = crate::shape::describe(&result);
            return Err(LuaError::NotATable { file, found });
        };
        let places = Places::scan(&sources.main.text);
        let root = value::document(&table, &places, &sources.main.name)?;
        let without_return = without_return(&root, &mlua::Value::Table(table), &sources);
        drop(vm);
        let messages = messages
            .lock()
            .map(|mut lines| std::mem::take(&mut *lines))
            .unwrap_or_default();
        Ok(LuaScenario {
            documents: Documents::new(root.clone()),
            messages,
            whole: Arc::new(root.clone()),
            root,
            within: String::new(),
            sources: Arc::new(sources),
            without_return: Arc::new(without_return),
            limits,
        })
    }

    /// Returns the scenario at an index of the list that the file returned
    /// ([`veeksha_scenario::SweepCell::scenario`]). Its functions are found by their paths in that
    /// scenario. A single scenario has index 0.
    ///
    /// # Errors
    /// [`LuaError::NoScenario`] if the list is shorter.
    pub fn of(&self, scenario: usize) -> Result<LuaScenario, LuaError> {
        let (root, within) = match &self.root.value {
            Value::List(items) => (items.get(scenario), scenario.to_string()),
            _ => (Some(&self.root).filter(|_| scenario == 0), self.within.clone()),
        };
        let root = root.cloned().ok_or_else(|| LuaError::NoScenario {
            file: self.sources.main.name.to_string(),
            scenario,
        })?;
        Ok(LuaScenario {
            documents: Documents::new(root.clone()),
            messages: self.messages.clone(),
            root,
            whole: self.whole.clone(),
            within,
            sources: self.sources.clone(),
            without_return: self.without_return.clone(),
            limits: self.limits,
        })
    }

    /// Sets the limits of workloads opened from now on. The limits of a scenario are known only
    /// after it was read.
    pub fn set_limits(&mut self, limits: LuaLimits) {
        self.limits = limits;
    }

    /// Returns the table that the file returned, with its functions as [`Value::Function`].
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Returns the value that the file returned, with all of its scenarios.
    pub fn whole(&self) -> &Node {
        &self.whole
    }

    /// Returns the path and the text of each file: first the scenario, then the files that it
    /// required, by their paths below its folder.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.sources.files()
    }

    /// Returns the digest of a scenario with these files ([`LuaScenario::digest`]).
    pub fn digest_of<'f>(files: impl Iterator<Item = (&'f str, &'f str)>) -> String {
        sources::digest_of(files)
    }

    /// Returns the BLAKE3 digest of the names and texts of the scenario's files, in hex.
    pub fn digest(&self) -> String {
        self.sources.digest()
    }

    /// Returns a factory for the function at `function_path` (`session_generator.sessions`).
    ///
    /// `length` is the number of sessions. Without it the workload continues until the function
    /// returns nil (for agents: without end).
    ///
    /// # Errors
    /// [`LuaError::NotAFunction`] if the value there is missing or not a function.
    pub fn workload(
        &self,
        function_path: &str,
        kind: LuaKind,
        length: Option<u64>,
        grants: LuaGrants,
    ) -> Result<Arc<dyn WorkloadFactory>, LuaError> {
        self.is_function(function_path)?;
        if kind == LuaKind::Sessions {
            self.returns(function_path, "{ requests = { ... } }")?;
        }
        Ok(Arc::new(LuaFactory {
            info: self.info(format!("the Lua function `{function_path}`"), &grants),
            opening: self.opening(grants),
            path: self.place(function_path),
            kind,
            length,
        }))
    }

    /// Returns a factory for the arrival process that the function at `function_path` opens
    /// (`traffic_scheduler.process.arrivals`).
    ///
    /// # Errors
    /// [`LuaError::NotAFunction`] if the value there is missing or not a function.
    pub fn arrivals(
        &self,
        function_path: &str,
        grants: LuaGrants,
    ) -> Result<Arc<dyn ArrivalFactory>, LuaError> {
        self.is_function(function_path)?;
        self.returns(function_path, "a function that returns a list of seconds")?;
        Ok(Arc::new(LuaArrivalFactory {
            info: self.info(format!("the Lua function `{function_path}`"), &grants),
            opening: self.opening(grants),
            function: self.place(function_path),
        }))
    }

    /// Returns a factory for the flavor whose functions `session` and, with warm-up, `warmup` are
    /// in the table at `place` (`session_generator.flavor`). `layout` describes the columns of the
    /// trace; `has_warmup` is true if there is a warm-up.
    ///
    /// # Errors
    /// [`LuaError::NotAFunction`] if a function is missing or another value is there;
    /// [`LuaError::Layout`] for an invalid layout.
    pub fn flavor(
        &self,
        place: &str,
        layout: Layout,
        has_warmup: bool,
        grants: LuaGrants,
    ) -> Result<Arc<dyn FlavorFactory>, LuaError> {
        let function = join(place, "session");
        self.is_function(&function)?;
        self.returns(&function, "{ requests = { ... } }")?;
        if has_warmup {
            let warmup = join(place, "warmup");
            self.is_function(&warmup)?;
            self.returns(&warmup, "a list of sessions")?;
        }
        check_layout(&layout).map_err(|error| LuaError::Layout {
            file: self.sources.main.name.to_string(),
            path: place.to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Arc::new(LuaFlavorFactory {
            info: self.info(format!("the Lua function `{function}`"), &grants),
            opening: self.opening(grants),
            place: self.place(place),
            layout: Layout {
                warms_up: has_warmup,
                ..layout
            },
        }))
    }

    /// Returns the metrics of the evaluator at `path` (`evaluators.1`; empty where the file returns
    /// an evaluator). `name` identifies it in results and messages.
    ///
    /// # Errors
    /// [`LuaError::Value`] for invalid metrics: an invalid name, an unknown key, no `observe`;
    /// [`LuaError::NotAFunction`] if there are none.
    pub fn metric(
        &self,
        path: &str,
        name: &str,
        grants: LuaGrants,
    ) -> Result<Arc<dyn MetricFactory>, LuaError> {
        let place = join(path, "metrics");
        let Some(node) = find(&self.root, &place) else {
            return Err(self.no_function(&place, "nothing"));
        };
        let metrics = evaluator::metrics(node, name).map_err(|wrong| self.wrong(&place, wrong))?;
        for metric in &metrics {
            // Without samples of requests, a metric may have some at the end of the run.
            let function = if metric.has_finish { "finish" } else { "observe" };
            let function = join(&place, &format!("{}.{function}", metric.definition.name));
            self.returns(&function, "a number, or a list of samples")?;
        }
        Ok(Arc::new(LuaMetricFactory {
            info: self.judging(name, &place, &grants),
            opening: self.opening(grants),
            place: self.place(&place),
            metrics,
        }))
    }

    /// Returns the function `good` of the evaluator at `path`.
    ///
    /// # Errors
    /// [`LuaError::NotAFunction`] if there is none.
    pub fn request_check(
        &self,
        path: &str,
        name: &str,
        grants: LuaGrants,
    ) -> Result<Arc<dyn RequestCheckFactory>, LuaError> {
        let function = join(path, "good");
        self.is_function(&function)?;
        self.returns(&function, "true or false")?;
        Ok(Arc::new(LuaRequestCheckFactory {
            info: self.judging(name, &function, &grants),
            opening: self.opening(grants),
            function: self.place(&function),
        }))
    }

    /// Returns the function `check` of the evaluator at `path`.
    ///
    /// # Errors
    /// [`LuaError::NotAFunction`] if there is none.
    pub fn slo_check(
        &self,
        path: &str,
        name: &str,
        grants: LuaGrants,
    ) -> Result<Arc<dyn SloCheck>, LuaError> {
        let function = join(path, "check");
        self.is_function(&function)?;
        self.returns(&function, "{ { name = ..., met = ..., threshold = ... } }")?;
        Ok(Arc::new(LuaSloCheck {
            info: self.judging(name, &function, &grants),
            opening: self.opening(grants),
            function: self.place(&function),
        }))
    }

    /// Returns all parts of the evaluator at `path`: `metrics`, `good`, `check`. Its name is
    /// `name`, else the one in its table, else the file name without extension.
    ///
    /// # Errors
    /// [`LuaError::Value`] for a table that is not an evaluator; otherwise as for the functions of
    /// its parts.
    pub fn evaluator(
        &self,
        path: &str,
        name: Option<&str>,
        grants: LuaGrants,
    ) -> Result<LuaEvaluator, LuaError> {
        let Some(node) = find(&self.root, path) else {
            return Err(self.no_function(path, "nothing"));
        };
        let parts = evaluator::parts(node).map_err(|wrong| self.wrong(path, wrong))?;
        let title = || {
            let stem = Path::new(&self.sources.title).file_stem();
            stem.map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
        };
        let name = name.map(str::to_owned).or(parts.name).unwrap_or_else(title);
        Ok(LuaEvaluator {
            metric: if parts.measures {
                Some(self.metric(path, &name, grants.clone())?)
            } else {
                None
            },
            request_check: if parts.judges_requests {
                Some(self.request_check(path, &name, grants.clone())?)
            } else {
                None
            },
            slo_check: if parts.judges_run {
                Some(self.slo_check(path, &name, grants)?)
            } else {
                None
            },
            name,
        })
    }

    /// Returns the full path of a value in the returned table.
    fn place(&self, path: &str) -> String {
        join(&self.within, path)
    }

    fn wrong(&self, path: &str, wrong: Wrong<'_>) -> LuaError {
        let path = join(path, &wrong.path);
        LuaError::Value {
            file: self.sources.main.name.to_string(),
            line: wrong.node.place.as_ref().map(|place| place.line),
            path: if path.is_empty() {
                "the table".to_owned()
            } else {
                path
            },
            message: wrong.message,
        }
    }

    fn is_function(&self, path: &str) -> Result<(), LuaError> {
        let found = match find(&self.root, path).map(|node| &node.value) {
            Some(Value::Function) => return Ok(()),
            Some(_) => "a value of another kind",
            None => "nothing",
        };
        Err(self.no_function(path, found))
    }

    /// Refuses a function that has no `return`.
    fn returns(&self, path: &str, value: &str) -> Result<(), LuaError> {
        match self.without_return.get(&self.place(path)) {
            None => Ok(()),
            Some(DefinedAt { file, line }) => Err(LuaError::Value {
                file: file.clone(),
                line: Some(*line),
                path: path.to_owned(),
                message: format!("the function has no `return`; end it with `return` and {value}"),
            }),
        }
    }

    fn no_function(&self, path: &str, found: &str) -> LuaError {
        LuaError::NotAFunction {
            file: self.sources.main.name.to_string(),
            path: path.to_owned(),
            found: found.to_owned(),
        }
    }

    fn judging(&self, name: &str, place: &str, grants: &LuaGrants) -> WorkloadInfo {
        WorkloadInfo {
            name: name.to_owned(),
            ..self.info(format!("`{place}` of {}", self.sources.title), grants)
        }
    }

    fn info(&self, summary: String, grants: &LuaGrants) -> WorkloadInfo {
        let digest = self.digest();
        let mut granted = vec!["log".to_owned(), "random".to_owned()];
        if grants.tokens.is_some() {
            granted.push("tokens".to_owned());
        }
        WorkloadInfo {
            name: self.sources.title.clone(),
            // A script has no version number; its digest identifies it.
            version: digest.chars().take(12).collect(),
            summary,
            engine: "lua",
            digest,
            granted,
        }
    }

    fn opening(&self, grants: LuaGrants) -> ScenarioOpening {
        ScenarioOpening {
            sources: self.sources.clone(),
            limits: self.limits,
            grants,
        }
    }
}

fn find<'a>(root: &'a Node, path: &str) -> Option<&'a Node> {
    if path.is_empty() {
        return Some(root);
    }
    path.split('.').try_fold(root, |node, step| match &node.value {
        Value::Map(entries) => entries.iter().find(|(key, _)| key == step).map(|(_, node)| node),
        Value::List(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
        _ => None,
    })
}

fn load_error(fault: LuaFault, main: &str) -> LuaError {
    let LuaFault {
        kind,
        message,
        file,
        line,
        frames,
        source: _,
    } = fault;
    match kind {
        LuaFaultKind::Syntax => LuaError::Syntax {
            file: file.unwrap_or_else(|| main.to_owned()),
            line: line.unwrap_or(1),
            message,
        },
        LuaFaultKind::Deadline(allowed) => LuaError::Deadline {
            file,
            line,
            allowed_ms: u64::try_from(allowed.as_millis()).unwrap_or(u64::MAX),
            frames,
        },
        LuaFaultKind::Memory(allowed) => LuaError::Memory {
            file: main.to_owned(),
            allowed: allowed as u64,
        },
        LuaFaultKind::Raised | LuaFaultKind::Shape | LuaFaultKind::Refused => {
            let file = Some(file.unwrap_or_else(|| main.to_owned()));
            LuaError::Runtime {
                file,
                line,
                message,
                frames,
            }
        }
    }
}
