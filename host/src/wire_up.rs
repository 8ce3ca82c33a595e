//! Joins scenario, plugins, tokenizer and limits into what the pipeline takes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use veeksha_lua::{LuaGrants, LuaLimits, LuaScenario};
use veeksha_pipeline::{MinTokensPrompt, Plan};
use veeksha_ports::WorkloadFactory;
use veeksha_prompt::{Materialiser, Tokenizer};
use veeksha_scenario::{Document, Generator, Grace, IntervalGenerator, LuaKind, Scenario, Traffic};
use veeksha_scheduler::SchedulerConfig;
use veeksha_wasm::{EngineOptions, Grants, Limits, LogLevel, Plugin, PluginEngine};

use crate::cli::args::ScenarioArgs;
use crate::failure::Failure;
use crate::say;
use crate::shipped;

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
    /// Things the user should know.
    pub(crate) notes: Vec<String>,
}

/// Reads a scenario, applies the overrides, checks it, and fills in what comes from the environment.
pub(crate) fn load(args: &ScenarioArgs, overrides: &[(String, String)]) -> Result<Loaded, Failure> {
    let path = &args.scenario;
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let is_lua = path
        .extension()
        .is_some_and(|extension| extension == "lua" || extension == "luau");
    let (mut document, mut lua) = if is_lua {
        let lua = LuaScenario::load(path, LuaLimits::default()).map_err(Failure::usage)?;
        (lua.document.clone(), Some(lua))
    } else {
        let shown = path.display();
        let bytes = read(path)
            .map_err(|reason| Failure::usage(format!("cannot read the scenario {shown}: {reason}")))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Failure::usage(format!("cannot read the scenario {shown}: it is not UTF-8")))?;
        (
            Document::from_yaml(&text, &shown.to_string()).map_err(Failure::usage)?,
            None,
        )
    };
    for assignment in &args.set {
        let Some((key, value)) = assignment.split_once('=') else {
            return Err(Failure::usage(format!("--set {assignment}: expected KEY=VALUE"))
                .hinted("for example --set runtime.max_sessions=100"));
        };
        document
            .set(key, value)
            .map_err(|error| Failure::usage(format!("--set {assignment}: {error}")))?;
    }
    for (key, value) in overrides {
        // A key is text whatever it looks like, and a message never repeats it.
        if key.ends_with("api_key") {
            let quoted = serde_json::Value::from(value.as_str()).to_string();
            document
                .set(key, &quoted)
                .map_err(|_| Failure::usage(format!("--{key}: cannot be set")))?;
            continue;
        }
        document
            .set(key, value)
            .map_err(|error| Failure::usage(format!("--{key} {value}: {error}")))?;
    }
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
    let cache = if args.no_cache { None } else { cache_folder() };
    Ok(Loaded {
        scenario,
        lua,
        folder,
        cache,
    })
}

/// A whole file: a device or a pipe could go on for ever.
fn read(path: &Path) -> Result<Vec<u8>, String> {
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

/// Where Hugging Face's own tools keep what they fetched.
fn huggingface_cache() -> Option<PathBuf> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("HF_HUB_CACHE")
        .or_else(|| set("HF_HOME").map(|home| home.join("hub")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/huggingface/hub")))
}

impl Loaded {
    /// The folder of the scenario's file: relative paths in it start there.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Loads the plugin and the tokenizer and resolves the plan.
pub(crate) fn wire(loaded: &Loaded) -> Result<Wired, Failure> {
    let scenario = &loaded.scenario;
    let mut notes = scenario.notes.clone();
    let tokenizer = tokenizer(loaded, &mut notes)?;
    let materialiser = Materialiser::new(tokenizer.clone())
        .map_err(|error| Failure::usage(format!("the tokenizer {}: {error}", tokenizer.name())))?;
    let factory = workload(loaded, &tokenizer)?;
    let plan = plan(scenario);
    Ok(Wired {
        factory,
        tokenizer,
        materialiser: Arc::new(materialiser),
        plan,
        notes,
    })
}

/// The tokenizer that the scenario names; else the model's own, if it is on this machine; else the embedded one.
fn tokenizer(loaded: &Loaded, notes: &mut Vec<String>) -> Result<Tokenizer, Failure> {
    let client = &loaded.scenario.client;
    let embedded = || Tokenizer::embedded().map_err(Failure::internal);
    let open = |path: &Path| {
        Tokenizer::load(path).map_err(|error| Failure::usage(format!("client.tokenizer: {error}")))
    };
    let huggingface = huggingface_cache();
    let on_this_machine = |name: &str| {
        let roots = [huggingface.clone(), loaded.cache.clone()];
        roots
            .iter()
            .flatten()
            .find_map(|root| veeksha_prompt::hub::cached(name, root))
    };
    let simulated = client
        .api_base
        .as_deref()
        .is_some_and(|base| base.starts_with("sim://"));
    match client.tokenizer.as_deref() {
        Some("embedded") => embedded(),
        Some(name) if loaded.folder.join(name).exists() => open(&loaded.folder.join(name)),
        Some(name) if Path::new(name).exists() => open(Path::new(name)),
        Some(name) if veeksha_prompt::hub::is_hub_name(name) => match on_this_machine(name) {
            Some(path) => open(&path),
            None => open(&download(name, loaded)?),
        },
        Some(name) => Err(Failure::usage(format!("client.tokenizer: {name} does not exist"))
            .hinted("give a tokenizer.json, a folder that holds one, or a hub name such as `org/model`")),
        // The simulated engine uses the embedded one too.
        None if simulated => embedded(),
        None => {
            let model = client.model.as_deref().unwrap_or_default();
            if let Some(path) = beside(Path::new(model)).or_else(|| on_this_machine(model)) {
                return open(&path);
            }
            let named = if model.is_empty() {
                "the model's own is not known"
            } else {
                model
            };
            notes.push(format!(
                "prompts are measured with the embedded tokenizer, not with that of the model ({named}); \
                 --client.tokenizer names a tokenizer.json, a model's folder or a hub name"
            ));
            embedded()
        }
    }
}

/// The tokenizer in a model's folder, or beside a model's file.
fn beside(model: &Path) -> Option<PathBuf> {
    let folder = if model.is_dir() {
        model
    } else {
        model.parent().filter(|_| model.is_file())?
    };
    Some(folder.join("tokenizer.json")).filter(|path| path.is_file())
}

fn download(name: &str, loaded: &Loaded) -> Result<PathBuf, Failure> {
    let Some(cache) = &loaded.cache else {
        return Err(
            Failure::usage(format!("client.tokenizer: {name} is not on this machine"))
                .hinted("without a cache it cannot be fetched; give a path to a tokenizer.json"),
        );
    };
    let url = veeksha_prompt::hub::url(name);
    let file = veeksha_prompt::hub::cache_file(name, cache);
    let token = std::env::var("HF_TOKEN")
        .ok()
        .filter(|value| !value.is_empty())
        .map(veeksha_transport::Secret::new);
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent)
            .map_err(|error| Failure::internal(format!("cannot make {}: {error}", parent.display())))?;
    }
    veeksha_transport::untimed::download(&url, token.as_ref(), &file).map_err(|error| {
        Failure::usage(format!(
            "client.tokenizer: {name} is not on this machine and cannot be fetched: {error}"
        ))
        .hinted("give a path to a tokenizer.json, or `embedded`")
    })?;
    Ok(file)
}

fn workload(loaded: &Loaded, tokenizer: &Tokenizer) -> Result<Arc<dyn WorkloadFactory>, Failure> {
    let scenario = &loaded.scenario;
    match &scenario.session_generator {
        Generator::Shipped { name, config } => {
            let Some(bytes) = shipped::generator(name) else {
                return Err(Failure::internal(format!(
                    "the component {name} is not in this binary"
                )));
            };
            component(
                loaded,
                name,
                bytes,
                config.to_string(),
                &BTreeMap::new(),
                tokenizer,
            )
        }
        Generator::Trace(_) => Err(Failure::internal("traces are being built into this program")),
        Generator::Wasm { path, config, files } => {
            let path = loaded.folder.join(path);
            let shown = path.display();
            let bytes = read(&path).map_err(|reason| {
                Failure::usage(format!("session_generator.path: cannot read {shown}: {reason}"))
            })?;
            let name = path
                .file_stem()
                .unwrap_or(path.as_os_str())
                .to_string_lossy()
                .into_owned();
            component(loaded, &name, &bytes, config.to_string(), files, tokenizer)
        }
        Generator::Lua { kind, length, .. } => {
            let Some(lua) = &loaded.lua else {
                return Err(Failure::usage(
                    "session_generator: a Lua function can only stand in a Lua scenario",
                ));
            };
            let kind = match kind {
                LuaKind::Sessions => veeksha_lua::LuaKind::Sessions,
                LuaKind::Agent => veeksha_lua::LuaKind::Agent,
            };
            let counter = tokenizer.clone();
            let grants = LuaGrants {
                seed: scenario.seed,
                tokens: Some(Arc::new(move |text: &str| counter.count(text))),
                log: Arc::new(|level: &str, line: &str| say::err(format!("[lua {level}] {line}"))),
            };
            let function = match kind {
                veeksha_lua::LuaKind::Sessions => "session_generator.sessions",
                veeksha_lua::LuaKind::Agent => "session_generator.agent",
            };
            lua.workload(function, kind, *length, grants)
                .map_err(Failure::usage)
        }
    }
}

fn component(
    loaded: &Loaded,
    name: &str,
    bytes: &[u8],
    config: String,
    files: &BTreeMap<String, PathBuf>,
    tokenizer: &Tokenizer,
) -> Result<Arc<dyn WorkloadFactory>, Failure> {
    let scenario = &loaded.scenario;
    let plugin = plugin(loaded, name, bytes)?;
    if let Generator::Wasm { .. } = &scenario.session_generator {
        check_config(&plugin, &config)?;
    }
    let blobs = files
        .iter()
        .map(|(name, path)| (name.clone(), loaded.folder.join(path)))
        .collect();
    let grants = Grants {
        seed: scenario.seed,
        tokens: Some(Arc::new(Counter(tokenizer.clone()))),
        blobs,
        log: Arc::new(Log),
    };
    Ok(plugin.workload(config, grants)?)
}

/// Compiles a component, or takes it from the cache.
fn plugin(loaded: &Loaded, name: &str, bytes: &[u8]) -> Result<Plugin, Failure> {
    let limits = &loaded.scenario.runtime.plugin_limits;
    let limits = Limits {
        call_deadline: limits.call_deadline(),
        memory_bytes: limits.memory_bytes(),
        ..Limits::default()
    };
    let engine = PluginEngine::new(EngineOptions {
        cache_dir: loaded.cache.clone(),
        limits,
    })
    .map_err(|error| Failure::internal(format!("the plugin engine cannot start: {error}")))?;
    Ok(engine.load(name, bytes)?)
}

/// A third party's component says in its schema what its configuration may hold; it is checked before the component sees it.
fn check_config(plugin: &Plugin, config: &str) -> Result<(), Failure> {
    let schema = plugin.describe()?.config_schema;
    let Ok(schema) = serde_json::from_str(&schema) else {
        return Err(Failure::new(
            crate::exit::PLUGIN,
            "the component's config-schema is not JSON",
        ));
    };
    let document = Document::from_yaml(config, "session_generator.config").map_err(Failure::usage)?;
    let problems = veeksha_scenario::check_value(&schema, &document.root, "session_generator.config");
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Failure::usage(veeksha_scenario::Problems::from(problems))),
    }
}

struct Counter(Tokenizer);

impl veeksha_wasm::TokenCounter for Counter {
    fn count(&self, text: &str) -> u32 {
        self.0.count(text)
    }

    fn vocabulary(&self) -> u32 {
        self.0.vocabulary()
    }
}

struct Log;

impl veeksha_wasm::LogSink for Log {
    fn line(&self, plugin: &str, level: LogLevel, line: &str) {
        let level = match level {
            LogLevel::Debug => return,
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        };
        say::err(format!("[{plugin} {level}] {line}"));
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
            cancel_session_on_failure: scenario.traffic_scheduler.cancel_session_on_failure(),
            max_sessions: runtime.session_limit(),
            benchmark_timeout: runtime.timeout().map(nanos),
            grace: match runtime.grace() {
                Grace::Unlimited => veeksha_scheduler::Grace::Unbounded,
                Grace::For(grace) => veeksha_scheduler::Grace::Bounded(nanos(grace)),
            },
            seed: scenario.seed,
            shard: veeksha_scheduler::Shard { index: 0, count: 1 },
        },
        dispatchers: runtime.num_dispatcher_threads,
        completion_threads: runtime.num_completion_threads,
        plugin_threads: runtime.plugin_threads(cores) as u32,
        pregenerate: runtime.pregenerate_sessions,
        min_tokens_prompt: client.use_min_tokens_prompt_fallback.then(|| MinTokensPrompt {
            template: client.min_tokens_prompt.clone(),
        }),
        include_content: scenario.trace_recorder.include_content,
    }
}

/// Processor cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
