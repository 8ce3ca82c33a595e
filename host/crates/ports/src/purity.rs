//! A check that the sessions of a workload do not depend on the instance that makes them.

use std::collections::VecDeque;
use std::sync::Arc;

use veeksha_model::{Nanos, NodeId, NodeKind, RequestId, Response, Session, SessionId, ToolRunRecord};

use crate::plugin_error::PluginErrorCode;
use crate::plugin_failure::{PluginFailure, PluginFailureKind};
use crate::workload::{AgentSource, AgentStep, SessionSource, ToolRunEnd, Workload, WorkloadFactory};

/// Sessions that are made twice.
const SAMPLE: u32 = 4;
/// Answers that each agent of the sample receives.
const ANSWERS: usize = 3;

/// Checks what a step of an agent adds to its session.
pub type StepCheck<'a> = dyn Fn(SessionId, &Session) -> Result<(), PluginFailure> + 'a;

/// The function that failures of the host's checks of a session or a step name.
pub const STEP_CHECK: &str = "check";

/// Makes the first sessions of a workload with two instances, in different order and in batches of
/// different size, and compares them. Agents receive a few answers, those of one instance in turn,
/// those of the other one after another. Detects a static counter, the order of a hash map, and the
/// random generator of a language; each would make the sessions depend on the number of threads.
///
/// `check_step` is called with each step of the agents of the sample: what later steps send is not
/// known before the run.
///
/// # Errors
/// The first session that differs; the error of `check_step`, or an agent's failure that names
/// [`STEP_CHECK`]; or the failure of a workload that cannot be opened, cannot make its first
/// session, or exceeds a limit in the sample. Other failures are not reported here: they occur
/// again where the session is needed.
pub fn check_purity(factory: &dyn WorkloadFactory, check_step: &StepCheck<'_>) -> Result<(), PluginFailure> {
    let (first, second) = match (factory.open_silent(), factory.open_silent()) {
        (Ok(first), Ok(second)) => (first, second),
        _ => return first_session(factory),
    };
    let compared = match (first, second) {
        (Workload::Planned(first), Workload::Planned(second)) => {
            differing_session(first, second).map(|differs| ("workload.sessions", differs))
        }
        (Workload::Reactive(first), Workload::Reactive(second)) => {
            let (in_turn, one_by_one) = match sampled_agents(first, second) {
                Ok(agents) => agents,
                Err(failure) if ends_sample(&failure) => return Err(failure),
                Err(_) => return first_session(factory),
            };
            check_steps(&in_turn, check_step)?;
            Ok(match differing_agent(&in_turn, &one_by_one) {
                Some((session, 0)) => ("generator.start", Some(session)),
                Some((session, _)) => ("agent.answered", Some(session)),
                None => ("generator.start", None),
            })
        }
        _ => return Ok(()),
    };
    let (function, session) = match compared {
        Ok((function, Some(session))) => (function, session),
        Ok((_, None)) => return Ok(()),
        Err(failure) if exceeds_a_limit(&failure) => return Err(failure),
        Err(_) => return first_session(factory),
    };
    let mut failure = PluginFailure::new(
        &factory.info().name,
        function,
        PluginFailureKind::Result,
        format!(
            "session {session} came out differently when another instance made it again: a session must \
             depend on the configuration, the seed and its index alone, not on earlier calls (a counter, a \
             cache), on the order of a hash map or on the random generator of the language; use the \
             contract's `random`"
        ),
    );
    failure.input = Some(format!("session = {session}"));
    Err(failure.with_code(PluginErrorCode::Impure))
}

/// Returns true if a repetition of the call would only take the same time or memory again.
fn exceeds_a_limit(failure: &PluginFailure) -> bool {
    matches!(
        failure.kind,
        PluginFailureKind::Deadline { .. }
            | PluginFailureKind::Memory { .. }
            | PluginFailureKind::Fuel { .. }
    )
}

/// Returns true if no other call is needed to report the failure of an agent.
fn ends_sample(failure: &PluginFailure) -> bool {
    failure.function == STEP_CHECK || exceeds_a_limit(failure)
}

/// Makes the first session with an instance whose log lines are written, and returns its failure.
fn first_session(factory: &dyn WorkloadFactory) -> Result<(), PluginFailure> {
    match factory.open()? {
        Workload::Planned(mut source) => source.sessions(0, 1).map(drop),
        Workload::Reactive(mut agents) => match agents.length()? {
            Some(0) => Ok(()),
            _ => agents.start(SessionId(0)).map(drop),
        },
    }
}

/// Returns the first session that differs: one batch in order against single sessions in reverse.
fn differing_session(
    mut first: Box<dyn SessionSource>,
    mut second: Box<dyn SessionSource>,
) -> Result<Option<u64>, PluginFailure> {
    let batch = first.sessions(0, SAMPLE)?;
    let mut again: Vec<Option<Session>> = Vec::new();
    for index in (0..batch.len() as u64).rev() {
        again.push(match second.sessions(index, 1) {
            Ok(mut made) => made.pop(),
            Err(failure) if exceeds_a_limit(&failure) => return Err(failure),
            Err(_) => None,
        });
    }
    again.reverse();
    let differs = (0..)
        .zip(batch.iter().zip(&again))
        .find(|(_, (one, other))| other.as_ref().is_some_and(|other| other != *one));
    Ok(differs.map(|(index, _)| index))
}

/// Passes answers to the first agents of two instances: to those of one in turn, to those of the
/// other one after another.
fn sampled_agents(
    mut first: Box<dyn AgentSource>,
    mut second: Box<dyn AgentSource>,
) -> Result<(Vec<SampledAgent>, Vec<SampledAgent>), PluginFailure> {
    let length = first.length()?.unwrap_or(u64::MAX).min(u64::from(SAMPLE));
    let agents = || (0..length).map(SampledAgent::new).collect::<Vec<_>>();
    let (mut in_turn, mut one_by_one) = (agents(), agents());
    for _ in 0..=ANSWERS {
        in_turn
            .iter_mut()
            .try_for_each(|agent| agent.advance(first.as_mut()))?;
    }
    for agent in one_by_one.iter_mut().rev() {
        (0..=ANSWERS).try_for_each(|_| agent.advance(second.as_mut()))?;
    }
    Ok((in_turn, one_by_one))
}

/// Checks the steps of the sample, session by session.
fn check_steps(agents: &[SampledAgent], check_step: &StepCheck<'_>) -> Result<(), PluginFailure> {
    let mut steps = agents
        .iter()
        .flat_map(|agent| agent.steps.iter().map(|step| (agent.session, &step.added)));
    steps.try_for_each(|(session, added)| check_step(session, added))
}

/// Returns the first agent with a step that differs, and the index of the step.
fn differing_agent(in_turn: &[SampledAgent], one_by_one: &[SampledAgent]) -> Option<(u64, usize)> {
    in_turn.iter().zip(one_by_one).find_map(|(one, other)| {
        let mut pairs = one.steps.iter().zip(&other.steps);
        let step = pairs.position(|(one, other)| one != other)?;
        Some((one.session.0, step))
    })
}

/// An agent of the sample, and its steps so far.
struct SampledAgent {
    session: SessionId,
    steps: Vec<AgentStep>,
    /// Nodes that have not ended.
    open: VecDeque<(NodeId, NodeKind)>,
    is_over: bool,
}

impl SampledAgent {
    fn new(session: u64) -> Self {
        SampledAgent {
            session: SessionId(session),
            steps: Vec::new(),
            open: VecDeque::new(),
            is_over: false,
        }
    }

    /// Starts the agent, or ends its oldest node. A failure ends it.
    ///
    /// # Errors
    /// If the first agent cannot be started, or a limit is exceeded.
    fn advance(&mut self, source: &mut dyn AgentSource) -> Result<(), PluginFailure> {
        if self.is_over {
            return Ok(());
        }
        let step = if self.steps.is_empty() {
            Some(source.start(self.session))
        } else {
            let completed_at = self.steps.len() as u64 * 1_000_000_000;
            self.open.pop_front().map(|(node, kind)| {
                if kind.is_open_tool_run() {
                    let run = tool_run(self.session, node, completed_at);
                    return source.tool_ended(self.session, ToolRunEnd::Served(&run));
                }
                let response = Response {
                    text: "an answer".into(),
                    finish_reason: "stop".into(),
                    output_tokens: 2,
                    ..Response::default()
                };
                source.answered(self.session, node, &response, completed_at)
            })
        };
        match step {
            Some(Ok(step)) => {
                self.open.extend(step.added.kinds());
                self.is_over = step.done && self.open.is_empty();
                self.steps.push(step);
            }
            Some(Err(failure)) => {
                self.is_over = true;
                let is_first = self.steps.is_empty() && self.session == SessionId(0);
                if is_first || ends_sample(&failure) {
                    return Err(failure);
                }
            }
            None => self.is_over = true,
        }
        Ok(())
    }
}

/// A tool run that ended without waiting.
fn tool_run(session: SessionId, node: NodeId, completed_at: Nanos) -> ToolRunRecord {
    ToolRunRecord {
        id: RequestId { session, node },
        class: Arc::from("tool"),
        parents: Vec::new(),
        ready_at: completed_at,
        started_at: completed_at,
        completed_at,
        is_cold: false,
        failed: false,
        result_tokens: 2,
        measured: true,
        labels: Arc::from([]),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use veeksha_model::{Label, Session};

    use super::*;
    use crate::workload::WorkloadInfo;

    /// A workload of three sessions with one label.
    struct Labelled {
        info: WorkloadInfo,
        label: fn(u64) -> String,
    }

    struct Sessions(fn(u64) -> String);

    impl WorkloadFactory for Labelled {
        fn info(&self) -> &WorkloadInfo {
            &self.info
        }

        fn open(&self) -> Result<Workload, PluginFailure> {
            Ok(Workload::Planned(Box::new(Sessions(self.label))))
        }
    }

    impl SessionSource for Sessions {
        fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
            Ok(Some(3))
        }

        fn sessions(&mut self, first: u64, count: u32) -> Result<Vec<Session>, PluginFailure> {
            let end = first.saturating_add(u64::from(count)).min(3);
            let session = |index| Session {
                labels: vec![Label::from(("label".to_owned(), (self.0)(index)))],
                ..Session::default()
            };
            Ok((first..end).map(session).collect())
        }
    }

    fn info(name: &str) -> WorkloadInfo {
        WorkloadInfo {
            name: name.into(),
            version: String::new(),
            summary: String::new(),
            engine: "wasm",
            digest: String::new(),
            granted: Vec::new(),
        }
    }

    fn check(label: fn(u64) -> String) -> Result<(), PluginFailure> {
        let labelled = Labelled {
            info: info("labelled"),
            label,
        };
        check_purity(&labelled, &|_, _| Ok(()))
    }

    #[test]
    fn accepts_sessions_that_depend_on_the_index() {
        assert_eq!(check(|index| index.to_string()), Ok(()));
    }

    /// A workload whose sessions fail from an index on, and the number of its calls.
    struct Failing {
        info: WorkloadInfo,
        from: u64,
        kind: PluginFailureKind,
        calls: std::sync::Arc<AtomicU32>,
    }

    impl WorkloadFactory for Failing {
        fn info(&self) -> &WorkloadInfo {
            &self.info
        }

        fn open(&self) -> Result<Workload, PluginFailure> {
            Ok(Workload::Planned(Box::new(FailingSessions {
                from: self.from,
                kind: self.kind.clone(),
                calls: self.calls.clone(),
            })))
        }
    }

    struct FailingSessions {
        from: u64,
        kind: PluginFailureKind,
        calls: std::sync::Arc<AtomicU32>,
    }

    impl SessionSource for FailingSessions {
        fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
            Ok(None)
        }

        fn sessions(&mut self, first: u64, count: u32) -> Result<Vec<Session>, PluginFailure> {
            self.calls.fetch_add(1, Ordering::Relaxed);
            if first + u64::from(count) > self.from {
                let kind = self.kind.clone();
                return Err(PluginFailure::new("failing", "workload.sessions", kind, "no"));
            }
            Ok((0..count).map(|_| Session::default()).collect())
        }
    }

    fn check_failing(from: u64, kind: PluginFailureKind) -> (Result<(), PluginFailureKind>, u32) {
        let calls = std::sync::Arc::new(AtomicU32::new(0));
        let failing = Failing {
            info: info("failing"),
            from,
            kind,
            calls: calls.clone(),
        };
        let checked = check_purity(&failing, &|_, _| Ok(()));
        (
            checked.map_err(|failure| failure.kind),
            calls.load(Ordering::Relaxed),
        )
    }

    #[test]
    fn reports_a_failure_of_the_first_session_only() {
        let trap = PluginFailureKind::Trap;
        assert_eq!(check_failing(0, trap.clone()).0, Err(trap.clone()));
        assert_eq!(check_failing(2, trap).0, Ok(()));
    }

    #[test]
    fn reports_an_exceeded_limit_after_one_call() {
        for kind in [
            PluginFailureKind::Deadline { allowed_ms: 5 },
            PluginFailureKind::Memory { asked: 2, allowed: 1 },
        ] {
            assert_eq!(check_failing(2, kind.clone()), (Err(kind), 1));
        }
    }

    #[test]
    fn reports_the_first_session_that_differs() {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let failure = check(|index| {
            let calls = CALLS.fetch_add(1, Ordering::Relaxed);
            if index == 0 {
                String::new()
            } else {
                calls.to_string()
            }
        })
        .unwrap_err();
        assert_eq!(failure.kind, PluginFailureKind::Result);
        assert!(
            failure.message.starts_with("session 1 came out differently"),
            "{failure}"
        );
    }

    /// An agent of requests without end. Each is labelled with the answers that its instance
    /// received: of the agent's own session, or of all sessions.
    struct Agents {
        is_pure: bool,
        answered: Vec<u64>,
        /// The function that the failure of every second step names, if it fails.
        fails_in: Option<&'static str>,
    }

    impl Agents {
        fn step(&self, node: u32, label: usize) -> AgentStep {
            AgentStep {
                added: vec![veeksha_model::Request {
                    node: NodeId(node),
                    output: veeksha_model::OutputSpec::default(),
                    labels: vec![Label::from(("answers".to_owned(), label.to_string()))],
                    ..veeksha_model::Request::default()
                }]
                .into(),
                ..AgentStep::default()
            }
        }
    }

    impl AgentSource for Agents {
        fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
            Ok(None)
        }

        fn start(&mut self, _: SessionId) -> Result<AgentStep, PluginFailure> {
            Ok(self.step(0, 0))
        }

        fn answered(
            &mut self,
            session: SessionId,
            node: NodeId,
            _: &Response,
            _: veeksha_model::Nanos,
        ) -> Result<AgentStep, PluginFailure> {
            if let Some(function) = self.fails_in
                && node == NodeId(1)
            {
                return Err(PluginFailure::new(
                    "agents",
                    function,
                    PluginFailureKind::Result,
                    "no",
                ));
            }
            self.answered.push(session.0);
            let answers = self.answered.iter();
            let label = answers.filter(|of| !self.is_pure || **of == session.0).count();
            Ok(self.step(node.0 + 1, label))
        }

        fn failed(
            &mut self,
            _: SessionId,
            _: &veeksha_model::FailureReason,
        ) -> Result<AgentStep, PluginFailure> {
            Ok(AgentStep::default())
        }

        fn finish(&mut self, _: SessionId) {}
    }

    struct AgentFactory {
        info: WorkloadInfo,
        is_pure: bool,
        fails_in: Option<&'static str>,
    }

    impl WorkloadFactory for AgentFactory {
        fn info(&self) -> &WorkloadInfo {
            &self.info
        }

        fn open(&self) -> Result<Workload, PluginFailure> {
            Ok(Workload::Reactive(Box::new(Agents {
                is_pure: self.is_pure,
                answered: Vec::new(),
                fails_in: self.fails_in,
            })))
        }
    }

    /// The first step of every agent is the same.
    #[test]
    fn reports_agents_whose_later_steps_depend_on_other_sessions() {
        let check = |is_pure| {
            let agents = AgentFactory {
                info: info("agents"),
                is_pure,
                fails_in: None,
            };
            check_purity(&agents, &|_, _| Ok(()))
        };
        assert_eq!(check(true), Ok(()));
        let failure = check(false).unwrap_err();
        assert_eq!(failure.function, "agent.answered");
        assert!(
            failure.message.starts_with("session 0 came out differently"),
            "{failure}"
        );
    }

    /// Each agent has the step of its start and those after three answers.
    #[test]
    fn checks_the_steps_of_the_sample() {
        let agents = AgentFactory {
            info: info("agents"),
            is_pure: true,
            fails_in: None,
        };
        let seen = std::cell::RefCell::new(Vec::new());
        let check = |refused: Option<u32>| {
            check_purity(&agents, &|session: SessionId, added: &Session| {
                let node = added.requests[0].node.0;
                seen.borrow_mut().push((session.0, node));
                if refused == Some(node) {
                    let kind = PluginFailureKind::Result;
                    return Err(PluginFailure::new("agents", "check", kind, "no such client"));
                }
                Ok(())
            })
        };
        assert_eq!(check(None), Ok(()));
        let expected = (0..4).flat_map(|session| (0..4).map(move |node| (session, node)));
        assert_eq!(seen.take(), expected.collect::<Vec<_>>());
        assert_eq!(check(Some(2)).unwrap_err().message, "no such client");
        assert_eq!(seen.take(), [(0, 0), (0, 1), (0, 2)]);
    }

    /// Failures of the plugin itself in later steps occur again in the run.
    #[test]
    fn reports_steps_that_the_host_refuses() {
        let check = |function| {
            let agents = AgentFactory {
                info: info("agents"),
                is_pure: true,
                fails_in: Some(function),
            };
            check_purity(&agents, &|_, _| Ok(()))
        };
        assert_eq!(check("agent.answered"), Ok(()));
        assert_eq!(check(STEP_CHECK).unwrap_err().message, "no");
    }
}
