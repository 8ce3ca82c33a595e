//! Joins scenario, plugins, tokenizer and limits into what the pipeline takes.

use std::collections::BTreeMap;
use std::sync::Arc;

use veeksha_lua::LuaGrants;
use veeksha_metrics::Objectives;
use veeksha_model::MetricDefinition;
use veeksha_pipeline::Plan;
use veeksha_ports::WorkloadFactory;
use veeksha_prompt::{Materialiser, Tokenizer};
use veeksha_scenario::{Generator, LuaKind};

use crate::failure::Failure;
use crate::judges::{self, Judges};
use crate::mode::Mode;
use crate::source::Loaded;
use crate::{impossible, objectives, plan, plugins, prompts, say, shipped, tokenizers, traces};

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
    /// Things the user should know.
    pub(crate) notes: Vec<String>,
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
    found.note_in(&mut loaded.scenario);
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
    let mut catalogue = objectives::catalogue(&definitions)?;
    impossible::exclude(&mut catalogue, &loaded.scenario);
    let objectives = objectives::of_scenario(loaded, judges.of_requests(), &catalogue)?;
    let mut plan = plan::plan(&loaded.scenario);
    plan.shard = mode.shard();
    if let Some(trace) = &trace
        && traces::warms_up(&loaded.scenario)
    {
        plan.warmup = trace.warmup()?;
    }
    Ok(Wired {
        factory,
        tokenizer,
        materialiser,
        plan,
        judges,
        definitions,
        objectives,
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

/// Processor cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
