//! Joins scenario, plugins, tokenizer and limits into what the pipeline takes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use veeksha_evaluate::Objectives;
use veeksha_lua::{LuaGrants, LuaLimits, LuaScenario};
use veeksha_model::MetricDefinition;
use veeksha_pipeline::{MinTokensPrompt, Plan, Schedule};
use veeksha_ports::WorkloadFactory;
use veeksha_prompt::{Materialiser, Tokenizer};
use veeksha_scenario::{
    Document, Documents, Generator, Grace, IntervalGenerator, LuaKind, Scenario, Setting, Traffic,
};
use veeksha_scheduler::{SchedulerConfig, Shard};
use veeksha_trace::Trace;

use crate::cli::args::ScenarioArgs;
use crate::failure::Failure;
use crate::judges::{self, Judges};
use crate::mode::Mode;
use crate::{objectives, plugins, prompts, say, shipped, tokenizers, traces};

/// Components of interpreted languages have tens of MiB; nothing that is a scenario or a component has this many.
const LARGEST_FILE: u64 = 256 << 20;

/// A scenario that has been read and checked.
pub(crate) struct Loaded {
    /// What it says, resolved.
    pub(crate) scenario: Scenario,
    lua: Option<LuaScenario>,
    folder: PathBuf,
    cache: Option<PathBuf>,
}

/// What a run needs besides its target.
pub(crate) struct Wired {
    /// Makes plugin instances.
    pub(crate) factory: Arc<dyn WorkloadFactory>,
    /// Counts tokens.
    pub(crate) tokenizer: Tokenizer,
    /// Makes prompts.
    pub(crate) materialiser: Arc<Materialiser>,
    /// Traffic and threads.
    pub(crate) plan: Plan,
    /// What measures and judges besides the host.
    pub(crate) judges: Judges,
    /// The metrics that they define.
    pub(crate) definitions: Vec<MetricDefinition>,
    /// What is asked of the run.
    pub(crate) objectives: Objectives,
    /// The trace that is replayed, if one is.
    pub(crate) trace: Option<Trace>,
    /// Things the user should know.
    pub(crate) notes: Vec<String>,
}

/// Reads a scenario, applies the overrides, checks it, and fills in what comes from the environment.
///
/// # Errors
/// If it cannot be read or is wrong; or if it is a sweep: the commands that use this take one scenario.
pub(crate) fn load(args: &ScenarioArgs, overrides: &[(String, String)]) -> Result<Loaded, Failure> {
    Source::read(&args.scenario)?.settle(&args.set, overrides, args.no_cache)
}

/// The same for commands that take sweeps: one scenario, or several.
pub(crate) fn cells(args: &ScenarioArgs, overrides: &[(String, String)]) -> Result<Vec<Cell>, Failure> {
    Source::read(&args.scenario)?.cells(&args.set, overrides, args.no_cache)
}

/// One scenario of a sweep.
pub(crate) struct Cell {
    /// What tells it from the others; empty where there is only one.
    pub(crate) settings: Vec<Setting>,
    /// The scenario.
    pub(crate) loaded: Loaded,
}

/// A scenario that was read and is still open for overrides.
pub(crate) struct Source {
    documents: Documents,
    lua: Option<LuaScenario>,
    folder: PathBuf,
}

impl Source {
    /// Reads a scenario's file.
    pub(crate) fn read(path: &Path) -> Result<Source, Failure> {
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let is_lua = path
            .extension()
            .is_some_and(|extension| extension == "lua" || extension == "luau");
        if is_lua {
            let lua = LuaScenario::load(path, LuaLimits::default()).map_err(Failure::usage)?;
            return Ok(Source {
                documents: lua.documents.clone(),
                lua: Some(lua),
                folder,
            });
        }
        let text = read_text(path).map_err(|reason| {
            Failure::usage(format!("cannot read the scenario {}: {reason}", path.display()))
        })?;
        let documents = Documents::from_yaml(&text, path, &mut |path: &Path| read_text(path));
        Ok(Source {
            documents: documents.map_err(Failure::usage)?,
            lua: None,
            folder,
        })
    }

    /// A scenario that stands in no file; its relative paths start at `folder`.
    pub(crate) fn of(document: Document, folder: PathBuf) -> Source {
        Source {
            documents: Documents::new(document.root),
            lua: None,
            folder,
        }
    }

    /// Applies overrides (`KEY=VALUE`, then the flags), checks, and fills in what comes from the environment.
    pub(crate) fn settle(
        mut self,
        set: &[String],
        overrides: &[(String, String)],
        no_cache: bool,
    ) -> Result<Loaded, Failure> {
        self.override_with(set, overrides)?;
        let document = self.documents.single().map_err(Failure::usage)?;
        let lua = self
            .lua
            .map(|lua| lua.of(0))
            .transpose()
            .map_err(Failure::usage)?;
        settled(document, lua, self.folder, no_cache)
    }

    fn cells(
        mut self,
        set: &[String],
        overrides: &[(String, String)],
        no_cache: bool,
    ) -> Result<Vec<Cell>, Failure> {
        self.override_with(set, overrides)?;
        let cells = self.documents.cells().map_err(Failure::usage)?;
        let mut settled_cells = Vec::new();
        for cell in cells {
            let lua = self.lua.as_ref().map(|lua| lua.of(cell.scenario));
            let lua = lua.transpose().map_err(Failure::usage)?;
            settled_cells.push(Cell {
                settings: cell.settings,
                loaded: settled(cell.document, lua, self.folder.clone(), no_cache)?,
            });
            // What the top level wrote is shown once.
            if let Some(lua) = &mut self.lua {
                lua.messages.clear();
            }
        }
        Ok(settled_cells)
    }

    fn override_with(&mut self, set: &[String], overrides: &[(String, String)]) -> Result<(), Failure> {
        for assignment in set {
            let Some((key, value)) = assignment.split_once('=') else {
                return Err(Failure::usage(format!("--set {assignment}: expected KEY=VALUE"))
                    .hinted("for example --set runtime.max_sessions=100"));
            };
            self.documents
                .set(key, value)
                .map_err(|error| Failure::usage(format!("--set {assignment}: {error}")))?;
        }
        for (key, value) in overrides {
            // A key is text whatever it looks like, and a message never repeats it.
            if key.ends_with("api_key") {
                let quoted = serde_json::Value::from(value.as_str()).to_string();
                self.documents
                    .set(key, &quoted)
                    .map_err(|_| Failure::usage(format!("--{key}: cannot be set")))?;
                continue;
            }
            self.documents
                .set(key, value)
                .map_err(|error| Failure::usage(format!("--{key} {value}: {error}")))?;
        }
        Ok(())
    }
}

fn settled(
    document: Document,
    mut lua: Option<LuaScenario>,
    folder: PathBuf,
    no_cache: bool,
) -> Result<Loaded, Failure> {
    let mut scenario = document.check(&shipped::schemas()).map_err(Failure::usage)?;
    fill_from_environment(&mut scenario);
    if let Some(lua) = &mut lua {
        for (level, line) in &lua.messages {
            say::err(format!("[lua {level}] {line}"));
        }
        let limits = &scenario.runtime.plugin_limits;
        lua.set_limits(LuaLimits {
            call_deadline: limits.call_deadline(),
            memory_bytes: usize::try_from(limits.memory_bytes()).unwrap_or(usize::MAX),
            ..LuaLimits::default()
        });
    }
    let cache = if no_cache { None } else { cache_folder() };
    Ok(Loaded {
        scenario,
        lua,
        folder,
        cache,
    })
}

fn read_text(path: &Path) -> Result<String, String> {
    String::from_utf8(read(path)?).map_err(|_| "it is not UTF-8".to_owned())
}

/// A whole file: a device or a pipe could go on for ever.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let about = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("it is not a regular file".into());
    }
    if about.len() > LARGEST_FILE {
        return Err(format!("it is larger than {} MiB", LARGEST_FILE >> 20));
    }
    std::fs::read(path).map_err(|error| error.to_string())
}

fn fill_from_environment(scenario: &mut Scenario) {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if scenario.client.api_base.is_none() {
        scenario.client.api_base = variable("OPENAI_API_BASE");
    }
    if scenario.client.api_key.is_none() {
        scenario.client.api_key = variable("OPENAI_API_KEY").map(veeksha_scenario::Secret::new);
    }
}

/// `$XDG_CACHE_HOME/veeksha-host`, else `~/.cache/veeksha-host`; none where neither is known.
pub(crate) fn cache_folder() -> Option<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
        Some(base) => PathBuf::from(base),
        None => PathBuf::from(std::env::var_os("HOME").filter(|value| !value.is_empty())?).join(".cache"),
    };
    Some(base.join("veeksha-host"))
}

impl Loaded {
    /// The folder of the scenario's file: relative paths in it start there.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where what was compiled or fetched is kept; none if the user wants none.
    pub(crate) fn cache(&self) -> Option<&Path> {
        self.cache.as_deref()
    }

    /// The Lua scenario, for a function at `key`.
    pub(crate) fn lua(&self, key: &str) -> Result<&LuaScenario, Failure> {
        self.lua
            .as_ref()
            .ok_or_else(|| Failure::usage(format!("{key}: a Lua function can only stand in a Lua scenario")))
    }
}

/// What a Lua function may use.
pub(crate) fn lua_grants(loaded: &Loaded, tokenizer: &Tokenizer) -> LuaGrants {
    let counter = tokenizer.clone();
    LuaGrants {
        seed: loaded.scenario.seed,
        tokens: Some(Arc::new(move |text: &str| counter.count(text))),
        log: Arc::new(|level: &str, line: &str| say::err(format!("[lua {level}] {line}"))),
    }
}

/// Loads the plugin and the tokenizer and resolves the plan. A salt that is drawn for this run is put into the scenario.
pub(crate) fn wire(loaded: &mut Loaded, mode: Mode) -> Result<Wired, Failure> {
    let mut notes = loaded.scenario.notes.clone();
    let found = tokenizers::tokenizer(loaded, &mut notes)?;
    let salt = traces::salt(&mut loaded.scenario, mode, &mut notes);
    let materialiser = Arc::new(prompts::materialiser(loaded, &found, salt)?);
    let tokenizer = found.tokenizer;
    let trace = match &loaded.scenario.session_generator {
        Generator::Trace(trace) => Some(traces::open(
            loaded,
            trace,
            &tokenizer,
            &materialiser,
            &mut notes,
        )?),
        _ => None,
    };
    let factory = match &trace {
        Some(trace) => trace.factory(),
        None => workload(loaded, &tokenizer)?,
    };
    let judges = judges::of_scenario(loaded, &tokenizer)?;
    let definitions = judges.definitions()?;
    let catalogue = objectives::catalogue(&definitions)?;
    let objectives = objectives::of_scenario(&loaded.scenario, judges.of_requests(), &catalogue)?;
    let mut plan = plan(&loaded.scenario);
    plan.shard = mode.shard();
    if let Some(trace) = &trace {
        plan.track_prefixes = true;
        if traces::warms_up(&loaded.scenario) {
            plan.warmup = trace.warmup()?;
        }
    }
    Ok(Wired {
        factory,
        tokenizer,
        materialiser,
        plan,
        judges,
        definitions,
        objectives,
        trace,
        notes,
    })
}

/// The session generator of a scenario that replays no trace.
fn workload(loaded: &Loaded, tokenizer: &Tokenizer) -> Result<Arc<dyn WorkloadFactory>, Failure> {
    match &loaded.scenario.session_generator {
        Generator::Shipped { name, config } => {
            let Some(bytes) = shipped::generator(name) else {
                return Err(Failure::internal(format!(
                    "the component {name} is not in this binary"
                )));
            };
            let nothing = BTreeMap::new();
            plugins::workload(loaded, name, bytes, config.to_string(), &nothing, tokenizer)
        }
        Generator::Wasm { path, config, files } => {
            let (name, bytes) = plugins::file(loaded, path, "session_generator.path")?;
            let plugin = plugins::load(loaded, &name, &bytes)?;
            let config = config.to_string();
            plugins::check_config(&plugin, &config, "session_generator.config")?;
            Ok(plugin.workload(config, plugins::grants(loaded, files, tokenizer))?)
        }
        Generator::Lua { kind, length, .. } => {
            let kind = match kind {
                LuaKind::Sessions => veeksha_lua::LuaKind::Sessions,
                LuaKind::Agent => veeksha_lua::LuaKind::Agent,
            };
            let function = match kind {
                veeksha_lua::LuaKind::Sessions => "session_generator.sessions",
                veeksha_lua::LuaKind::Agent => "session_generator.agent",
            };
            loaded
                .lua("session_generator")?
                .workload(function, kind, *length, lua_grants(loaded, tokenizer))
                .map_err(Failure::usage)
        }
        Generator::Trace(_) => Err(Failure::internal("a trace is not a session generator")),
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn plan(scenario: &Scenario) -> Plan {
    let runtime = &scenario.runtime;
    let cores = cores();
    let traffic = match &scenario.traffic_scheduler {
        Traffic::Rate(rate) => veeksha_scheduler::Traffic::Rate(match rate.interval_generator {
            IntervalGenerator::Fixed { interval } => veeksha_scheduler::Interval::Fixed { interval },
            IntervalGenerator::Poisson { arrival_rate } => {
                veeksha_scheduler::Interval::Poisson { rate: arrival_rate }
            }
            IntervalGenerator::Gamma { arrival_rate, cv } => veeksha_scheduler::Interval::Gamma {
                rate: arrival_rate,
                cv,
            },
        }),
        Traffic::FixedSchedule(_) => veeksha_scheduler::Traffic::Scheduled,
        Traffic::Concurrent(concurrent) => veeksha_scheduler::Traffic::Concurrent {
            target: concurrent.target_concurrent_sessions,
            ramp: nanos(Duration::try_from_secs_f64(concurrent.rampup_seconds).unwrap_or(Duration::MAX)),
        },
    };
    let client = &scenario.client;
    Plan {
        scheduler: SchedulerConfig {
            traffic,
            limits: limits(&scenario.traffic_scheduler),
            cancel_session_on_failure: scenario.traffic_scheduler.cancel_session_on_failure(),
            max_sessions: runtime.session_limit(),
            benchmark_timeout: runtime.timeout().map(nanos),
            grace: match runtime.grace() {
                Grace::Unlimited => veeksha_scheduler::Grace::Unbounded,
                Grace::For(grace) => veeksha_scheduler::Grace::Bounded(nanos(grace)),
            },
            seed: scenario.seed,
            shard: Shard::WHOLE,
        },
        dispatchers: runtime.num_dispatcher_threads,
        completion_threads: runtime.num_completion_threads,
        plugin_threads: runtime.plugin_threads(cores) as u32,
        pregenerate: runtime.pregenerate_sessions,
        min_tokens_prompt: client.use_min_tokens_prompt_fallback.then(|| MinTokensPrompt {
            template: client.min_tokens_prompt.clone(),
        }),
        include_content: scenario.trace_recorder.include_content,
        // Threads are prepared where they are started.
        spin: 0,
        on_dispatcher_start: None,
        thread_watch: None,
        shard: Shard::WHOLE,
        schedule: match &scenario.traffic_scheduler {
            Traffic::FixedSchedule(fixed) => Schedule {
                offset: nanos(Duration::try_from_secs_f64(fixed.offset).unwrap_or(Duration::MAX)),
                speedup: fixed.speedup,
            },
            Traffic::Rate(_) | Traffic::Concurrent(_) => Schedule::default(),
        },
        warmup: Vec::new(),
        track_prefixes: false,
    }
}

fn limits(traffic: &Traffic) -> veeksha_scheduler::Limits {
    let limits = traffic.limits();
    veeksha_scheduler::Limits {
        sessions: limits.sessions,
        in_flight: limits.requests_in_flight,
        in_prefill: limits.requests_in_prefill,
    }
}

/// Processor cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
