//! Assembly of a scenario with its plugins, tokenizer and limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use veeksha_decisions::{DecisionsFile, ReplayFactory};
use veeksha_metrics::Objectives;
use veeksha_model::{MetricDefinition, Session, SessionId};
use veeksha_pipeline::Plan;
use veeksha_ports::{
    Guarantees, PluginFailure, PluginFailureKind, STEP_CHECK, WorkloadFactory, WorkloadInfo,
};
use veeksha_prompt::{Materializer, Tokenizer};
use veeksha_scenario::{Generator, LuaKind};

use crate::endpoint;
use crate::evaluation::excluded_metrics;
use crate::evaluation::objectives;
use crate::evaluator_plugins::{EvaluatorPlugins, open_scenario, reject_unknown_metrics};
use crate::execution::client_cache::ClientCache;
use crate::execution::mode::Mode;
use crate::execution::pipeline_plan;
use crate::execution::prefix_tracking::TrackedWorkload;
use crate::failure::CommandFailure;
use crate::scenario::decision_redaction::DecisionRedaction;
use crate::scenario::scenario_copy::ARRIVAL_PROCESS;
use crate::scenario::source::Loaded;
use crate::workload::arrivals;
use crate::workload::client_changes;
use crate::workload::components;
use crate::workload::grants::lua_grants;
use crate::workload::plugin_registry::PluginRegistry;
use crate::workload::prompts;
use crate::workload::recorded_decisions;
use crate::workload::redacted::RedactedFactory;
use crate::workload::shipped;
use crate::workload::tokenizers;
use crate::workload::traces;

/// Components of a run, without its target.
pub struct Wired {
    /// Opens instances of the session generator.
    pub factory: Arc<dyn WorkloadFactory>,
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// Converts segments to prompts.
    pub(crate) materializer: Arc<Materializer>,
    /// Traffic, limits and threads.
    pub(crate) plan: Plan,
    /// The work that the tracking of prompts can omit.
    pub(crate) tracked: TrackedWorkload,
    /// The prefix caches of the servers, by client.
    pub(crate) caches: Vec<ClientCache>,
    /// Plugins that measure and check the run.
    pub evaluators: EvaluatorPlugins,
    /// Metrics that the plugins define.
    pub definitions: Vec<MetricDefinition>,
    /// The objectives.
    pub objectives: Objectives,
    /// Remarks for the user before the run.
    pub notes: Vec<String>,
    /// The decisions that those of this run are compared with, if the scenario names a run.
    pub(crate) recorded_run: Option<Arc<DecisionsFile>>,
    /// Keeps secrets out of recorded decisions.
    pub(crate) redaction: Arc<DecisionRedaction>,
    /// The use of resources by the plugins.
    pub(crate) registry: PluginRegistry,
}

impl Wired {
    /// Checks that the clients and the tools that a session names exist, and that its requests can
    /// be sent to their targets.
    ///
    /// # Errors
    /// Names the request or the tool run, and the reason.
    pub fn check(&self, id: SessionId, session: &Session) -> Result<(), PluginFailure> {
        let clients = self.plan.clients.check(session);
        let requests = session.requests.iter();
        let refused = requests.map(|request| {
            let form = self.materializer.check_form(request);
            form.map_err(|error| format!("node {}: {error}", request.node))
        });
        let refused = refused.collect::<Result<(), String>>();
        clients
            .and(refused)
            .and_then(|()| self.plan.tools.check(session))
            .map_err(|why| {
                let plugin = &*self.factory.info().name;
                let message = format!("session {id}: {why}");
                PluginFailure::new(plugin, STEP_CHECK, PluginFailureKind::Result, message)
            })
    }

    /// Returns the role and the description of each plugin.
    pub(crate) fn plugins(&self) -> Vec<(String, WorkloadInfo)> {
        let workload = ("workload".to_owned(), self.factory.info().clone());
        let arrivals = self.plan.arrivals.iter();
        let arrivals = arrivals.map(|process| (ARRIVAL_PROCESS.to_owned(), process.info().clone()));
        let evaluators = self.evaluators.infos().into_iter();
        let evaluators = evaluators.map(|(role, info)| (role.to_owned(), info.clone()));
        std::iter::once(workload)
            .chain(arrivals)
            .chain(evaluators)
            .collect()
    }
}

/// Loads the plugins and the tokenizer and converts the scenario to a plan. A salt that is drawn
/// for this run is set in the scenario.
pub(crate) fn wire(loaded: &mut Loaded, mode: Mode) -> Result<Wired, CommandFailure> {
    loaded.plugins.clear();
    let mut notes = loaded.scenario.notes.clone();
    let found = tokenizers::tokenizer(loaded, &mut notes)?;
    found.note_in(&mut loaded.scenario);
    let salt = traces::salt(&mut loaded.scenario, mode, &mut notes);
    let clients = endpoint::of_clients(loaded, &found.tokenizer)?;
    let filter = endpoint::filter(clients.clone());
    let materializer = Arc::new(prompts::materializer(loaded, &found, salt)?.with_filter(filter));
    let tokenizer = found.tokenizer;
    let trace = match &loaded.scenario.session_generator {
        Generator::Trace(trace) => Some(traces::open(
            loaded,
            trace,
            &tokenizer,
            &materializer,
            &mut notes,
        )?),
        _ => None,
    };
    if mode.shard().count > 1 && !loaded.scenario.tools.is_empty() {
        // Each process would have all servers and the whole rate of every class.
        return Err(CommandFailure::usage(
            "`--shard` cannot divide a scenario with `tools`: their servers are one queue; run it in one \
             process, or state the times of tools as think times (`wait`, `session:sleep`) without `tools`",
        ));
    }
    let factory = match &trace {
        Some(trace) => trace.factory(),
        None => workload(loaded, &tokenizer, &mut notes)?,
    };
    let guarantees = guarantees(loaded, factory.as_ref())?;
    let factory = client_changes::checked(factory, clients);
    let redaction = Arc::new(loaded.redaction());
    let factory = Arc::new(RedactedFactory::new(factory, redaction.clone()));
    let arrivals = arrivals::open(loaded, &tokenizer)?;
    let evaluators = open_scenario(loaded, &tokenizer)?;
    let definitions = evaluators.definitions()?;
    let mut catalogue = objectives::catalogue(&definitions)?;
    reject_unknown_metrics(&evaluators.slo_checks, &catalogue)?;
    excluded_metrics::exclude(&mut catalogue, &loaded.scenario, &guarantees);
    let objectives = objectives::of_scenario(loaded, evaluators.request_check_names(), &catalogue)?;
    let mut plan = pipeline_plan::plan(&loaded.scenario, arrivals);
    plan.shard = mode.shard();
    if let Some(trace) = &trace
        && traces::warms_up(&loaded.scenario)
    {
        plan.warmup = trace.warmup()?;
    }
    let wired = Wired {
        tracked: tracked(&loaded.scenario.session_generator, &guarantees),
        caches: ClientCache::of_scenario(&loaded.scenario),
        factory,
        tokenizer,
        materializer,
        plan,
        evaluators,
        definitions,
        objectives,
        notes,
        recorded_run: recorded_decisions::to_compare_with(loaded)?,
        redaction,
        registry: loaded.plugins.clone(),
    };
    veeksha_ports::check_purity(wired.factory.as_ref(), &|id, added| wired.check(id, added))?;
    Ok(wired)
}

/// Returns the properties that all sessions share: declared by a Lua scenario, or by the component.
fn guarantees(loaded: &Loaded, factory: &dyn WorkloadFactory) -> Result<Guarantees, CommandFailure> {
    Ok(match &loaded.scenario.session_generator {
        Generator::Lua { guarantees, .. } => Guarantees {
            max_output_tokens: guarantees.max_output_tokens,
            max_depth: guarantees.max_depth,
            distinct_prompts: guarantees.distinct_prompts,
        },
        Generator::Shipped { .. }
        | Generator::Wasm { .. }
        | Generator::Trace(_)
        | Generator::Replay { .. } => factory.guarantees()?,
    })
}

/// Returns the properties of the workload that matter for the tracking of prompts. A component may
/// be an agent.
fn tracked(generator: &Generator, guarantees: &Guarantees) -> TrackedWorkload {
    TrackedWorkload {
        distinct_prompts: guarantees.distinct_prompts,
        is_planned: match generator {
            Generator::Shipped { .. } | Generator::Trace(_) => true,
            Generator::Lua { kind, .. } => *kind == LuaKind::Sessions,
            Generator::Wasm { .. } | Generator::Replay { .. } => false,
        },
    }
}

/// Returns the session generator of a scenario that replays no trace.
fn workload(
    loaded: &Loaded,
    tokenizer: &Tokenizer,
    notes: &mut Vec<String>,
) -> Result<Arc<dyn WorkloadFactory>, CommandFailure> {
    match &loaded.scenario.session_generator {
        Generator::Shipped { name, config } => {
            let Some(bytes) = shipped::generator(name) else {
                return Err(CommandFailure::internal(format!(
                    "the component {name} is missing in this binary"
                )));
            };
            let nothing = BTreeMap::new();
            components::workload(loaded, name, bytes, config.to_string(), &nothing, tokenizer)
        }
        Generator::Wasm { component, .. } => {
            let opened = components::open(loaded, component, "session_generator", tokenizer)?;
            Ok(opened.plugin.workload(opened.config, opened.grants)?)
        }
        Generator::Replay { run, .. } => {
            let file = recorded_decisions::open(&loaded.folder().join(run), "session_generator.run")?;
            notes.extend(recorded_decisions::redaction_note(&file, run)?);
            notes.extend(recorded_decisions::incomplete_note(&file, run));
            Ok(Arc::new(ReplayFactory::new(file)))
        }
        Generator::Lua { kind, length, .. } => {
            let function = format!("session_generator.{}", kind.key());
            loaded
                .lua("session_generator")?
                .workload(&function, *kind, *length, lua_grants(loaded, tokenizer))
                .map_err(CommandFailure::usage)
        }
        Generator::Trace(_) => Err(CommandFailure::internal("a trace is not a session generator")),
    }
}
