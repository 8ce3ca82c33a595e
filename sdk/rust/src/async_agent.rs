//! Agents as straight-line code: an executor over the step interface.

use std::cell::RefCell;
use std::future::Future;
use std::marker::PhantomData;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::agent::{Agent, Opening, Step};
use crate::agent_session::{AgentSession, Body, Ended, State};
use crate::plugin::Plugin;
use crate::random::Random;
use crate::types::{Error, Failure, Guarantees, Response, ToolResult};

/// An agent that is one asynchronous function.
///
/// The function awaits answers, tools and subagents only: it runs in the component, without
/// threads, and no other event exists. A session must depend on (configuration, seed, index, the
/// answers, the results of tools) and on nothing else.
///
/// ```
/// use std::time::Duration;
///
/// use veeksha_plugin::{AgentSession, AsyncAgent, Error, Plugin, Request, synthetic};
///
/// /// A plan, two subagents that work on it at once, and a summary.
/// struct Team;
///
/// impl Plugin for Team {
///     type Config = ();
///     const NAME: &'static str = "team";
///     const VERSION: &'static str = "0.1.0";
///     const SUMMARY: &'static str = "two subagents work on a plan";
/// }
///
/// impl AsyncAgent for Team {
///     async fn run(_config: (), session: AgentSession) -> Result<(), Error> {
///         let first = Request::default().user(synthetic(session.index(), 200));
///         let Ok(plan) = session.request(first).await else {
///             return Ok(());
///         };
///         let workers = [2, 3].map(|turns| {
///             let plan = plan.node;
///             session.spawn(async move |sub| {
///                 let mut last = plan;
///                 for _ in 0..turns {
///                     let next = Request::default().history(last).user("Go on.");
///                     let Ok(answer) = sub.request(next).await else { break };
///                     last = answer.node;
///                     sub.sleep(Duration::from_millis(300)); // a tool
///                 }
///                 last
///             })
///         });
///         let found = session.parallel(workers).await;
///         let summary = Request::default().history(found[0]).after(found[1]).user("Summarize.");
///         let _ = session.request(summary).await;
///         Ok(())
///     }
/// }
///
/// veeksha_plugin::export_async_agent!(Team);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an asynchronous agent",
    label = "does not implement `AsyncAgent`",
    note = "write `impl AsyncAgent for {Self} {{ .. }}`; the documentation of `AsyncAgent` has a whole one"
)]
pub trait AsyncAgent: Plugin<Config: Clone> {
    /// Returns the properties that all sessions share. By default nothing is guaranteed.
    fn guarantees(config: &Self::Config) -> Guarantees {
        let _ = config;
        Guarantees::default()
    }

    /// Returns the number of sessions; `None` for an endless workload.
    fn length(config: &Self::Config) -> Option<u64> {
        let _ = config;
        None
    }

    /// Plays a session. Write it as
    /// `async fn run(config: Config, session: AgentSession) -> Result<(), Error>`.
    ///
    /// # Errors
    /// A configuration that cannot be, or an answer that the agent cannot go on from; it ends the
    /// session.
    fn run(config: Self::Config, session: AgentSession) -> impl Future<Output = Result<(), Error>> + 'static;
}

/// A live session of an [`AsyncAgent`], as an [`Agent`].
pub struct AsyncSession<T> {
    state: Rc<RefCell<State>>,
    /// The coroutines that have not ended, by number.
    bodies: Vec<Option<Body>>,
    agent: PhantomData<T>,
}

impl<T: AsyncAgent> Plugin for AsyncSession<T> {
    type Config = T::Config;
    const NAME: &'static str = T::NAME;
    const VERSION: &'static str = T::VERSION;
    const SUMMARY: &'static str = T::SUMMARY;

    fn config_schema() -> String {
        T::config_schema()
    }
}

impl<T: AsyncAgent> Agent for AsyncSession<T> {
    fn guarantees(config: &Self::Config) -> Guarantees {
        T::guarantees(config)
    }

    fn length(config: &Self::Config) -> Option<u64> {
        T::length(config)
    }

    fn start(config: &Self::Config, index: u64, random: Random) -> Result<(Self, Opening), Error> {
        let (session, state) = AgentSession::open(index, random);
        let main = T::run(config.clone(), session);
        let shared = Rc::clone(&state);
        let body: Body = Box::pin(async move {
            if let Err(error) = main.await {
                shared.borrow_mut().fault.get_or_insert(error);
            }
        });
        let mut session = AsyncSession {
            state,
            bodies: vec![Some(body)],
            agent: PhantomData,
        };
        let step = session.step()?;
        let mut state = session.state.borrow_mut();
        state.opens = false;
        let opening = Opening {
            step,
            headers: std::mem::take(&mut state.headers),
            labels: std::mem::take(&mut state.labels),
        };
        drop(state);
        Ok((session, opening))
    }

    fn answered(&mut self, response: Response) -> Result<Step, Error> {
        self.ended(response.node, Ended::Request(Rc::new(Ok(response))))
    }

    fn failed(&mut self, failure: Failure) -> Result<Step, Error> {
        self.ended(failure.node, Ended::Request(Rc::new(Err(failure))))
    }

    fn cancelled(&mut self, response: Response) -> Result<Step, Error> {
        self.answered(response)
    }

    fn tool_ended(&mut self, ended: ToolResult) -> Result<Step, Error> {
        self.ended(ended.node, Ended::ToolRun(ended))
    }
}

impl<T> AsyncSession<T> {
    fn ended(&mut self, node: u32, end: Ended) -> Result<Step, Error> {
        let awaited = self.state.borrow_mut().coroutines.answer(node, end);
        awaited.map_err(|_| Error::new("agent", format!("the session does not wait for node {node}")))?;
        self.step()
    }

    /// Runs the coroutines until all of them wait or have ended.
    fn step(&mut self) -> Result<Step, Error> {
        loop {
            let stopped = self.state.borrow_mut().coroutines.take_stopped();
            for id in stopped {
                // The destructors of its values may use the session.
                drop(self.bodies.get_mut(id.index()).and_then(Option::take));
            }
            let next = self.state.borrow_mut().coroutines.take_ready();
            let Some((id, resumption)) = next else { break };
            let Some(mut body) = self.bodies.get_mut(id.index()).and_then(Option::take) else {
                continue;
            };
            {
                let mut state = self.state.borrow_mut();
                state.current = id;
                state.resumption = Some(resumption);
                state.waits = false;
            }
            let polled = body.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            let mut state = self.state.borrow_mut();
            self.bodies.extend(state.spawned.drain(..).map(Some));
            match polled {
                Poll::Ready(()) => state.coroutines.end(id, Ended::Coroutine),
                Poll::Pending if state.waits => self.bodies[id.index()] = Some(body),
                Poll::Pending => state.fail("the agent awaits something that is not of its session"),
            }
            if let Some(error) = state.fault.take() {
                return Err(error);
            }
        }
        let mut state = self.state.borrow_mut();
        if state.coroutines.is_stuck() {
            return Err(Error::new(
                "agent",
                "subagents of the session wait for one another, so that none of them can end",
            ));
        }
        Ok(state.take_step())
    }
}

/// Makes a type that is an [`AsyncAgent`] the agent generator of this component.
///
/// The crate must be a `cdylib`. On other targets than WebAssembly nothing is exported, so that the
/// plugin's own tests run natively.
#[macro_export]
macro_rules! export_async_agent {
    ($agent:ty) => {
        $crate::export_agent!($crate::AsyncSession<$agent>);
    };
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::agent_session::{Branch, Subagent};
    use crate::tool::result_of;
    use crate::types::{Edge, Request, Segment, ToolOutcome, ToolRun, Trigger};

    /// Declares an agent whose function has this body.
    macro_rules! agent {
        ($name:ident, |$session:ident| $body:block) => {
            struct $name;

            impl Plugin for $name {
                type Config = ();
                const NAME: &'static str = "test";
                const VERSION: &'static str = "0";
                const SUMMARY: &'static str = "";
            }

            impl AsyncAgent for $name {
                async fn run(_: (), $session: AgentSession) -> Result<(), Error> {
                    $body
                    Ok(())
                }
            }
        };
    }

    fn try_start<T: AsyncAgent<Config = ()>>() -> Result<(AsyncSession<T>, Opening), Error> {
        AsyncSession::start(&(), 7, Random::seeded(1, 7))
    }

    fn start<T: AsyncAgent<Config = ()>>() -> (AsyncSession<T>, Step) {
        let (session, opening) = try_start().unwrap();
        (session, opening.step)
    }

    fn response(node: u32, text: &str) -> Response {
        Response {
            node,
            cancelled: false,
            text: text.into(),
            reasoning: String::new(),
            reasoning_signature: None,
            tool_calls: Vec::new(),
            finish_reason: "stop".into(),
            usage: None,
            output_tokens: 1,
            log_probabilities: None,
            completed_at: 1,
        }
    }

    fn go<T: AsyncAgent>(session: &mut AsyncSession<T>, node: u32) -> Step {
        session.answered(response(node, "answer")).unwrap()
    }

    fn user(text: &str) -> Request {
        Request::default().user(text)
    }

    /// The number and the subagent of each request.
    fn sent(step: &Step) -> Vec<(u32, &str)> {
        let label = |request: &'_ Request| {
            let mut labels = request.labels.iter().filter(|(name, _)| name == "subagent");
            labels.next().map_or(0, |_| 1)
        };
        step.requests
            .iter()
            .map(|request| match label(request) {
                0 => (request.node, ""),
                _ => (request.node, request.labels[request.labels.len() - 1].1.as_str()),
            })
            .collect()
    }

    const MS: u64 = 1_000_000;

    agent!(Team, |session| {
        session.header("x-team", "1");
        session.label("team", "1");
        assert_eq!((session.index(), session.subagent().as_str()), (7, ""));
        let Ok(plan) = session.request(user("plan")).await else {
            return Err(Error::new("no-plan", "no plan"));
        };
        let worker = |turns: u32| {
            let plan = plan.node;
            session.spawn(async move |sub| {
                let mut last = plan;
                for _ in 0..turns {
                    if let Ok(answer) = sub.request(user("turn").history(last)).await {
                        last = answer.node;
                    }
                    sub.sleep(Duration::from_millis(2));
                }
                last
            })
        };
        let (one, two) = (worker(2), worker(1));
        session.sleep(Duration::from_millis(50));
        let last = one.await.max(two.await);
        let _ = session.request(user("last").history(last)).await;
    });

    #[test]
    fn subagents_run_concurrently_with_several_turns() {
        let (mut session, opening) = try_start::<Team>().unwrap();
        let pair = |name: &str| (name.to_owned(), "1".to_owned());
        assert_eq!(
            (opening.headers, opening.labels),
            (vec![pair("x-team")], vec![pair("team")])
        );
        assert_eq!(sent(&opening.step), [(1, "")]);
        let step = go(&mut session, 1);
        assert_eq!(sent(&step), [(2, "1"), (3, "2")]);
        assert_eq!(go(&mut session, 3), Step::wait());
        let step = session.failed(Failure {
            status: None,
            retry_after: None,
            node: 2,
            code: "timeout".into(),
            message: String::new(),
            completed_at: 2,
        });
        let step = step.unwrap();
        assert_eq!(sent(&step), [(4, "1")]);
        let request = &step.requests[0];
        assert_eq!(request.parents, [Edge::from(1), Edge::from(2)]);
        assert_eq!(
            (request.wait_after_ready, request.history_parent),
            (2 * MS, Some(1))
        );
        let step = go(&mut session, 4);
        let request = &step.requests[0];
        let plan = Edge::from(1).delay(Duration::from_millis(48));
        assert_eq!(request.parents, [Edge::from(4), plan, Edge::from(3)]);
        assert_eq!(
            (request.wait_after_ready, request.history_parent),
            (2 * MS, Some(4))
        );
        assert!(go(&mut session, 5).done);
    }

    agent!(Racer, |session| {
        let slow = session.spawn(async |sub| {
            let inner = sub.spawn(async |inner| inner.request(user("inner")).await);
            inner.await
        });
        let hedges = [Branch::from(user("one")), Branch::from(user("two")), slow.into()];
        let (index, answer) = session.race(hedges).await;
        assert_eq!((index, answer.unwrap().text.as_str()), (1, "answer"));
        let answers = session.parallel([user("three"), user("four")]).await;
        assert_eq!(
            answers
                .iter()
                .map(|answer| answer.as_ref().unwrap().node)
                .collect::<Vec<_>>(),
            [4, 5]
        );
        let none: [Request; 0] = [];
        assert!(session.parallel(none).await.is_empty());
    });

    #[test]
    fn a_race_cancels_its_losers() {
        let (mut session, step) = start::<Racer>();
        assert_eq!(sent(&step), [(1, ""), (2, ""), (3, "1.1")]);
        let step = go(&mut session, 2);
        assert_eq!(step.cancel, [1, 3]);
        assert_eq!(sent(&step), [(4, ""), (5, "")]);
        assert_eq!(session.cancelled(response(1, "par")).unwrap(), Step::wait());
        assert_eq!(go(&mut session, 5), Step::wait());
        assert!(go(&mut session, 4).done);
    }

    agent!(Unawaited, |session| {
        drop(session.spawn(async |sub| sub.request(user("x")).await));
    });

    #[test]
    fn a_session_ends_with_its_last_subagent() {
        let (mut session, step) = start::<Unawaited>();
        assert_eq!((sent(&step), step.done), (vec![(1, "1")], false));
        assert!(go(&mut session, 1).done);
    }

    agent!(Sleeper, |session| {
        let sub = session.spawn(async |sub| sub.request(user("x").wait(Duration::from_millis(1))).await);
        session.sleep(Duration::from_millis(9));
        let _ = sub.await;
        let _ = session.request(user("y")).await;
    });

    #[test]
    fn a_sleep_since_the_start_counts_from_the_first_request() {
        let (mut session, _) = start::<Sleeper>();
        let dispatched = Edge {
            parent: 1,
            trigger: Trigger::Dispatched,
            delay: 8 * MS,
        };
        assert_eq!(
            go(&mut session, 1).requests[0].parents,
            [Edge::from(1), dispatched]
        );
    }

    agent!(Draws, |session| {
        let draws = |session: &AgentSession| session.random().stream("a").word();
        let shared = |session: &AgentSession| session.random().shared_stream("a").word();
        let subs = [(); 2].map(|()| session.spawn(async move |sub| (draws(&sub), shared(&sub))));
        let [one, two] = session.parallel(subs).await.try_into().unwrap();
        assert_ne!(one.0, two.0);
        assert_ne!(one.0, draws(&session));
        assert_eq!([one.1, two.1], [shared(&session); 2]);
        let _ = session.request(user("x")).await;
    });

    #[test]
    fn a_subagent_has_streams_that_no_other_has() {
        start::<Draws>();
    }

    agent!(Tools, |session| {
        let plan = session.request(user("plan")).await.unwrap();
        session.sleep(Duration::from_millis(30));
        let sandbox = || ToolRun::of("sandbox");
        let sub = session.spawn(async |sub| sub.tool(ToolRun::of("search")).await);
        let branches = [sandbox().into(), Branch::from(sub)];
        let found = session.parallel(branches).await;
        assert_eq!((found[0].node, found[1].node, found[0].tokens), (2, 3, 17));
        assert_eq!(
            (found[0].outcome, found[1].outcome),
            (ToolOutcome::Succeeded, ToolOutcome::Failed)
        );
        let request = user("read").user(result_of(found[0].node)).history(plan.node);
        let answer = Branch::from(request).map(|answer| answer.unwrap().node);
        let other = Branch::from(sandbox().after(found[0].node)).map(|result| result.node);
        assert_eq!(session.race([answer, other]).await, (1, 5));
    });
    agent!(SleepsFirst, |session| {
        session.sleep(Duration::from_millis(1));
        session.tool(ToolRun::of("sandbox")).await;
    });

    #[test]
    fn a_timer_represents_the_start_before_a_tool_run() {
        let (mut session, step) = start::<SleepsFirst>();
        let [anchor, run] = &step.tool_runs[..] else {
            panic!("{step:?}")
        };
        assert_eq!((anchor.tool.as_deref(), anchor.service_time), (None, None));
        let dispatched = Edge {
            parent: 1,
            trigger: Trigger::Dispatched,
            delay: MS,
        };
        assert_eq!(
            (run.tool.as_deref(), &run.parents[..]),
            (Some("sandbox"), &[dispatched][..])
        );
        let ended = session.tool_ended(tool_result(1, ToolOutcome::Succeeded));
        assert_eq!(ended.unwrap(), Step::wait());
        assert!(
            session
                .tool_ended(tool_result(2, ToolOutcome::Succeeded))
                .unwrap()
                .done
        );
    }

    agent!(Limited, |session| {
        let plan = session.request(user("plan")).await.unwrap();
        let limit = || Branch::sleep(Duration::from_millis(20)).map(|()| None);
        let race = [Branch::from(user("slow")).map(Some), limit()];
        let (index, answer) = session.race(race).await;
        assert!(index == 1 && answer.is_none());
        // A subagent that returns at once wins before anything is sent.
        let quick = session.spawn(async |_| None);
        let race = [
            Branch::from(user("never").after(plan.node)).map(Some),
            quick.into(),
        ];
        assert_eq!(session.race(race).await.0, 1);
        let both = session
            .parallel([Branch::from(user("next")).map(Some), limit()])
            .await;
        assert!(both[0].is_some() && both[1].is_none());
        let _ = session.request(user("last")).await;
    });

    #[test]
    fn a_sleep_limits_a_race() {
        let (mut session, _) = start::<Limited>();
        let step = go(&mut session, 1);
        assert_eq!(sent(&step), [(2, "")]);
        let slept = Edge::from(1).delay(Duration::from_millis(20));
        let timer = ToolRun::timer(3, Duration::ZERO).after(slept);
        assert_eq!((&step.tool_runs[..], &step.cancel[..]), (&[timer][..], &[][..]));
        let step = session
            .tool_ended(tool_result(3, ToolOutcome::Succeeded))
            .unwrap();
        assert_eq!((sent(&step), &step.cancel[..]), (vec![(5, "")], &[2][..]));
        assert_eq!(step.requests[0].parents, [Edge::from(3)]);
        assert_eq!(session.cancelled(response(2, "")).unwrap(), Step::wait());
        let step = go(&mut session, 5);
        let slept = Edge::from(3).delay(Duration::from_millis(20));
        assert_eq!(step.requests[0].parents, [slept, Edge::from(5)]);
        assert!(go(&mut session, 6).done);
    }

    fn tool_result(node: u32, outcome: ToolOutcome) -> ToolResult {
        ToolResult {
            node,
            outcome,
            tokens: 17,
            waiting_time: 5,
            service_time: 7,
            completed_at: 9,
        }
    }

    #[test]
    fn tool_runs_are_awaited_like_requests() {
        let (mut session, _) = start::<Tools>();
        let step = go(&mut session, 1);
        let slept = Edge::from(1).delay(Duration::from_millis(30));
        let runs: Vec<_> = step
            .tool_runs
            .iter()
            .map(|run| {
                (
                    run.node,
                    run.tool.as_deref().unwrap_or_default(),
                    &run.parents[..],
                    run.labels.len(),
                )
            })
            .collect();
        assert_eq!(
            runs,
            [(2, "sandbox", &[slept][..], 0), (3, "search", &[slept][..], 1)]
        );
        assert_eq!(
            session.tool_ended(tool_result(3, ToolOutcome::Failed)).unwrap(),
            Step::wait()
        );
        let step = session
            .tool_ended(tool_result(2, ToolOutcome::Succeeded))
            .unwrap();
        assert_eq!((step.requests[0].node, step.tool_runs[0].node), (4, 5));
        assert!(
            step.requests[0]
                .messages
                .iter()
                .any(|message| { message.content.contains(&Segment::ResultOf(2)) })
        );
        let step = session
            .tool_ended(tool_result(5, ToolOutcome::Succeeded))
            .unwrap();
        assert_eq!((step.cancel, step.done), (vec![4], true));
    }

    agent!(Million, |session| {
        for _ in 0..1_000_000 {
            drop(session.spawn(async |_| ()));
        }
        let _ = session.request(user("x")).await;
    });
    agent!(Foreign, |_session| {
        std::future::pending::<()>().await;
    });
    agent!(Borrowed, |session| {
        let outer = Rc::new(session);
        let used = Rc::clone(&outer);
        let sub = outer.spawn(async move |_| used.request(user("x")).await.is_ok());
        sub.await;
    });
    agent!(Late, |session| {
        let _ = session.request(user("x")).await;
        session.header("x", "y");
        let _ = session.request(user("x")).await;
    });
    agent!(Described, |session| {
        for (name, value) in [("x-a", "1"), ("x-b", "2"), ("X-A", "3")] {
            session.header(name, value);
            session.label(name, value);
        }
        session.label("x-b", "4");
        let _ = session.request(user("x")).await;
    });

    #[test]
    fn a_later_header_of_a_session_replaces_an_earlier_one() {
        let own = |fields: &[(&str, &str)]| -> Vec<(String, String)> {
            let fields = fields.iter();
            fields
                .map(|&(name, value)| (name.to_owned(), value.to_owned()))
                .collect()
        };
        let (_, opening) = try_start::<Described>().unwrap();
        assert_eq!(opening.headers, own(&[("x-b", "2"), ("X-A", "3")]));
        assert_eq!(opening.labels, own(&[("x-a", "1"), ("X-A", "3"), ("x-b", "4")]));
    }

    agent!(Impatient, |session| {
        let limited = user("x").cancel_after(Duration::from_secs(2));
        let _ = session.request(limited.clone()).await;
        let other = limited.cancel_at_first_chunk(Duration::from_millis(5));
        let _ = session.request(other.cancel_when(1)).await;
    });

    #[test]
    fn events_of_a_request_itself_cancel_it() {
        let (mut session, step) = start::<Impatient>();
        let when = |step: &Step| step.requests[0].cancellation.clone().unwrap().when;
        let sent = |node| Edge::dispatched(node).delay(Duration::from_secs(2));
        assert_eq!(when(&step), [sent(1)]);
        let chunk = Edge::first_chunk(2).delay(Duration::from_millis(5));
        assert_eq!(when(&go(&mut session, 1)), [sent(2), chunk, Edge::from(1)]);
    }

    agent!(Deadlock, |session| {
        let slots: [Rc<RefCell<Option<Subagent<()>>>>; 2] = Default::default();
        for i in 0..2 {
            let other = Rc::clone(&slots[1 - i]);
            let sub = session.spawn(async move |_| {
                let other = other.borrow_mut().take();
                if let Some(other) = other {
                    other.await;
                }
            });
            *slots[i].borrow_mut() = Some(sub);
        }
        let _ = session.request(user("x")).await;
    });
    agent!(NoBranch, |session| {
        let none: [Request; 0] = [];
        let _ = session.race(none).await;
    });

    #[test]
    fn wrong_uses_end_the_session_with_one_error() {
        let refused = |error: Result<(), Error>| error.unwrap_err().message;
        let started = [
            refused(try_start::<Million>().map(drop)),
            refused(try_start::<Foreign>().map(drop)),
            refused(try_start::<Borrowed>().map(drop)),
            refused(try_start::<NoBranch>().map(drop)),
        ];
        let expected = [
            "4096 subagents of the session are live",
            "awaits something that is not of its session",
            "uses the session object of another one",
            "at least one request, tool run, sleep or subagent",
        ];
        for (message, expected) in started.iter().zip(expected) {
            assert!(message.contains(expected), "{message}");
        }
        let answered = |message: Result<Step, Error>| message.unwrap_err().message;
        let late = answered(start::<Late>().0.answered(response(1, "")));
        assert!(late.contains("before it first waits for an answer"), "{late}");
        let stuck = answered(start::<Deadlock>().0.answered(response(1, "")));
        assert!(stuck.contains("wait for one another"), "{stuck}");
        let unknown = answered(start::<Late>().0.answered(response(9, "")));
        assert!(unknown.contains("does not wait for node 9"), "{unknown}");
    }
}
