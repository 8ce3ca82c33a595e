//! Tool runs of a workload: their class, service time, outcome and result.
//!
//! What a class draws is a function of (seed, session, key of the run), so that a run is the same
//! in virtual and in real time and with other answers, and the text of its result can be made
//! before it starts.

use std::collections::HashMap;
use std::sync::Arc;

use veeksha_model::{
    HistoryMode, Label, MAX_SYNTHETIC_TOKENS, ReplayedSession, Session, SessionId, TIMER, ToolRun,
};
use veeksha_ports::resolve_tool_results;
use veeksha_scheduler::{NodePlan, NodeWork, ToolClass, ToolRunPlan};
use veeksha_stats::{DrawnQuantity, RandomStream};

/// A class of tools as the scenario declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// The name by which tool runs call it.
    pub name: Arc<str>,
    /// Its servers.
    pub class: ToolClass,
    /// Service time in seconds, of runs that do not state theirs.
    pub service_seconds: DrawnQuantity,
    /// Tokens of the result, of runs that do not state theirs; rounded.
    pub result_tokens: DrawnQuantity,
    /// The probability that a run fails.
    pub failure_rate: f64,
}

/// The classes of tools of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolSpecs {
    specs: Arc<[ToolSpec]>,
    seed: u64,
}

/// The longest service time: one day beyond every run.
const MAX_SERVICE_SECONDS: f64 = 1e8;

impl ToolSpecs {
    /// The classes of a run with this seed: those that the scenario declares, and timers.
    pub fn new(declared: Vec<ToolSpec>, seed: u64) -> Self {
        let timer = ToolSpec {
            name: TIMER.into(),
            class: ToolClass {
                servers: None,
                cold_start: 0,
                keep_warm: None,
                spacing: 0,
            },
            service_seconds: DrawnQuantity::Constant(0.0),
            result_tokens: DrawnQuantity::Constant(0.0),
            failure_rate: 0.0,
        };
        ToolSpecs {
            specs: declared.into_iter().chain([timer]).collect(),
            seed,
        }
    }

    /// Returns what the scheduler knows of them.
    pub fn classes(&self) -> Vec<ToolClass> {
        self.specs.iter().map(|spec| spec.class.clone()).collect()
    }

    /// Checks that the classes of a session's tool runs exist.
    ///
    /// # Errors
    /// One line for the workload's author.
    pub fn check(&self, session: &Session) -> Result<(), String> {
        let known = |class: &str| self.specs.iter().any(|spec| *spec.name == *class);
        match session.tool_runs.iter().find(|run| !known(&run.class)) {
            Some(run) => Err(self.unknown(run)),
            None => Ok(()),
        }
    }

    /// Returns the scheduler's nodes for the tool runs of a session. A request's text is made of
    /// the runs' results in the same call.
    ///
    /// # Errors
    /// One line for the workload's author, if a class does not exist.
    pub(crate) fn take<P>(&self, id: SessionId, session: &mut Session) -> Result<Vec<NodePlan<P>>, String> {
        let runs = std::mem::take(&mut session.tool_runs);
        let session_labels = &session.labels;
        // A replay has the service times, failures and results of the recorded run, although its
        // session has another id, or its run another seed.
        let (id, seed) = match session.replays {
            Some(ReplayedSession { session, seed }) => (session, seed),
            None => (id, self.seed),
        };
        let mut results = HashMap::new();
        let plan = |run: ToolRun| {
            let node = run.node;
            let plan = self.plan(id, seed, &run, session_labels)?;
            results.insert(node, (run.key, plan.result_tokens));
            Ok(NodePlan {
                node,
                parents: run.parents,
                history_parent: None,
                wait_after_ready: 0,
                not_before: None,
                history_mode: HistoryMode::Fresh,
                recorded_answer: None,
                cancel_when: Vec::new(),
                work: NodeWork::ToolRun(plan),
            })
        };
        let nodes: Vec<NodePlan<P>> = runs.into_iter().map(plan).collect::<Result<_, String>>()?;
        if !results.is_empty() {
            resolve_tool_results(id, session, |run| results.get(&run).copied());
        }
        Ok(nodes)
    }

    fn plan(
        &self,
        session: SessionId,
        seed: u64,
        run: &ToolRun,
        labels: &[Label],
    ) -> Result<ToolRunPlan, String> {
        let Some((class, spec)) = self
            .specs
            .iter()
            .enumerate()
            .find(|(_, spec)| *spec.name == *run.class)
        else {
            return Err(self.unknown(run));
        };
        let stream = |name: &str| RandomStream::new(seed ^ run.key, session.0, name);
        let mut draws = stream("tool").draws();
        // Drawn in any case, so that what a run states does not change its other values.
        let drawn = draws.unit() < spec.failure_rate;
        let fails = run.fails.unwrap_or(drawn);
        let service_time = run.service_time.unwrap_or_else(|| {
            let seconds = spec
                .service_seconds
                .draw(&mut draws)
                .clamp(0.0, MAX_SERVICE_SECONDS);
            (seconds * 1e9).round() as u64
        });
        // A separate stream: whether a run states its service time does not change its result.
        let mut draws = stream("tool result").draws();
        let result_tokens = run.result_tokens.unwrap_or_else(|| {
            let tokens = spec.result_tokens.draw(&mut draws);
            tokens.round().clamp(0.0, f64::from(MAX_SYNTHETIC_TOKENS)) as u32
        });
        Ok(ToolRunPlan {
            class,
            service_time,
            fails,
            result_tokens,
            name: spec.name.clone(),
            labels: run.labels.iter().chain(labels).cloned().collect(),
        })
    }

    fn unknown(&self, run: &ToolRun) -> String {
        let names = self.specs.iter().map(|spec| &*spec.name);
        let remedy = match veeksha_slo::nearest(&run.class, names) {
            Some(name) => format!("; did you mean `{name}`?"),
            None => {
                let declared = self.specs.iter().filter(|spec| *spec.name != *TIMER);
                let declared: Vec<_> = declared.map(|spec| format!("`{}`", spec.name)).collect();
                if declared.is_empty() {
                    "; declare it in `tools` of the scenario".to_owned()
                } else {
                    format!("; the scenario's `tools` are {}", declared.join(", "))
                }
            }
        };
        format!(
            "node {} runs the tool `{}`, which does not exist{remedy}",
            run.node, run.class
        )
    }
}
