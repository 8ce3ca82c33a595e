//! The session of an asynchronous agent: requests, tool runs, subagents and waits.

use std::cell::RefCell;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use veeksha_coroutines::{
    CoroutineId, Coroutines, Event, IssuedNode, Mode, NewNode, NodeEdge, Outcome, Resumption, SUBAGENT,
    Target, join_edges, lacks_subagent,
};

use crate::agent::Step;
use crate::random::Random;
use crate::session::nanos;
use crate::types::{Edge, Error, Failure, Request, Response, ToolResult, ToolRun, Trigger};

/// The code of a coroutine.
pub(crate) type Body = Pin<Box<dyn Future<Output = ()>>>;

/// The end of a node or of a coroutine.
#[derive(Clone)]
pub(crate) enum Ended {
    Request(Rc<Result<Response, Failure>>),
    ToolRun(ToolResult),
    /// The value of a subagent is in its handle.
    Coroutine,
}

/// The state that the objects of a session share.
pub(crate) struct State {
    pub(crate) coroutines: Coroutines<Ended, WrittenNode>,
    /// The coroutine that is running.
    pub(crate) current: CoroutineId,
    /// Its reason for running, until it takes it.
    pub(crate) resumption: Option<Resumption<Ended>>,
    /// True once the running coroutine waits.
    pub(crate) waits: bool,
    pub(crate) spawned: Vec<Body>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) labels: Vec<(String, String)>,
    /// True until the first step is complete.
    pub(crate) opens: bool,
    /// The error that ends the session.
    pub(crate) fault: Option<Error>,
}

impl State {
    pub(crate) fn fail(&mut self, message: impl Into<String>) {
        self.fault.get_or_insert_with(|| Error::new("agent", message));
    }

    /// Lets the running coroutine wait.
    fn wait(&mut self, mode: Mode, targets: Vec<Target<WrittenNode>>) {
        if self.waits {
            self.fail(
                "a subagent waits for two things at once; use `parallel` or `race`, or spawn another subagent",
            );
            return;
        }
        for target in &targets {
            if let Target::Coroutine(id) = target
                && let Err(error) = self.coroutines.check_wait(self.current, *id)
            {
                self.fail(error.to_string());
                return;
            }
        }
        if let Err(error) = self.coroutines.check_nodes(&targets) {
            self.fail(error.to_string());
            return;
        }
        self.waits = true;
        self.coroutines.wait(self.current, mode, targets);
    }

    /// Takes what the coroutines have started and stopped since the last answer.
    pub(crate) fn take_step(&mut self) -> Step {
        let issued = self.coroutines.take_step();
        let mut step = Step {
            cancel: issued.cancelled,
            done: issued.done,
            ..Step::wait()
        };
        for node in issued.nodes {
            self.add_node(node, &mut step);
        }
        step
    }

    fn add_node(&self, issued: IssuedNode<WrittenNode>, step: &mut Step) {
        let IssuedNode {
            node,
            coroutine,
            written,
            start,
        } = issued;
        let path = self.coroutines.path(coroutine);
        let run = match written {
            Some(WrittenNode::Request(written)) => {
                let mut request = written.renumbered(node);
                request.wait_after_ready = request.wait_after_ready.saturating_add(start.wait);
                join_edges(&mut request.parents, &start.edges);
                label(&mut request.labels, path);
                step.requests.push(request);
                return;
            }
            Some(WrittenNode::ToolRun(run)) => run,
            None => ToolRun::timer(node, Duration::ZERO),
        };
        let mut run = ToolRun { node, ..run };
        join_edges(&mut run.parents, &start.edges);
        label(&mut run.labels, path);
        step.tool_runs.push(run);
    }
}

/// A node that a coroutine starts.
pub(crate) enum WrittenNode {
    Request(Box<Request>),
    ToolRun(ToolRun),
}

impl NewNode for WrittenNode {
    fn is_tool_run(&self) -> bool {
        matches!(self, WrittenNode::ToolRun(_))
    }

    fn root_wait(&self) -> Option<u64> {
        let (parents, wait) = match self {
            WrittenNode::Request(request) => (&request.parents, request.wait_after_ready),
            WrittenNode::ToolRun(run) => (&run.parents, 0),
        };
        parents.is_empty().then_some(wait)
    }
}

impl NodeEdge for Edge {
    fn new(node: u32, event: Event, delay: u64) -> Self {
        Edge {
            parent: node,
            trigger: match event {
                Event::Dispatched => Trigger::Dispatched,
                Event::Completed => Trigger::Completed,
            },
            delay,
        }
    }

    fn has_event_of(&self, other: &Self) -> bool {
        (self.parent, self.trigger) == (other.parent, other.trigger)
    }

    fn delay_mut(&mut self) -> &mut u64 {
        &mut self.delay
    }
}

/// Adds the label of a subagent, unless the author has set it.
fn label(labels: &mut Vec<(String, String)>, path: String) {
    if !path.is_empty() && lacks_subagent(labels) {
        labels.push((SUBAGENT.to_owned(), path));
    }
}

/// The session of an agent, or of one of its subagents.
///
/// Requests and tool runs are numbered from 1 in the order in which they start; the number in a
/// [`Request`] or [`ToolRun`] is ignored, so begin with [`Request::default`] or [`ToolRun::of`].
/// Events of the request itself that cancel it, as in [`Request::cancel_after`], remain its own. A
/// node waits for what the code has awaited before it, in addition to its own edges.
pub struct AgentSession {
    state: Rc<RefCell<State>>,
    id: CoroutineId,
    index: u64,
    random: Random,
}

impl AgentSession {
    /// Creates a session with its main function, which is ready.
    pub(crate) fn open(index: u64, random: Random) -> (Self, Rc<RefCell<State>>) {
        let state = Rc::new(RefCell::new(State {
            coroutines: Coroutines::new(),
            current: CoroutineId::MAIN,
            resumption: None,
            waits: false,
            spawned: Vec::new(),
            headers: Vec::new(),
            labels: Vec::new(),
            opens: true,
            fault: None,
        }));
        let session = AgentSession {
            state: Rc::clone(&state),
            id: CoroutineId::MAIN,
            index,
            random,
        };
        (session, state)
    }

    /// The index of the session.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// The random streams of the session. Those of a subagent are others, and depend on its place
    /// alone.
    pub fn random(&self) -> &Random {
        &self.random
    }

    /// The place of the subagent: its number within its parent, counted from 1, after the place of
    /// its parent (`1.2`). It is the label `subagent` of its requests. Empty for the agent itself.
    pub fn subagent(&self) -> String {
        self.state.borrow().coroutines.path(self.id)
    }

    /// Adds an HTTP header to each request of the session, in the place of one with this name in
    /// any case. To be called before the session first waits for an answer.
    pub fn header(&self, name: impl Into<String>, value: impl Into<String>) {
        let mut state = self.state.borrow_mut();
        if !state.opens {
            state.fail("the headers of a session are set before it first waits for an answer");
        }
        let name = name.into();
        state
            .headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
        state.headers.push((name, value.into()));
    }

    /// Adds a label to the record of each request of the session, in the place of one with this
    /// name. To be called before the session first waits for an answer.
    pub fn label(&self, name: impl Into<String>, value: impl Into<String>) {
        let mut state = self.state.borrow_mut();
        if !state.opens {
            state.fail("the labels of a session are set before it first waits for an answer");
        }
        let name = name.into();
        state.labels.retain(|(known, _)| *known != name);
        state.labels.push((name, value.into()));
    }

    /// Sends a request and waits for its answer. One that the client cancels has the part of its
    /// answer that had arrived.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn request(&self, request: Request) -> Result<Response, Failure> {
        let mut answers = self.parallel([request]).await;
        match answers.pop() {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }

    /// Runs a tool of the scenario and waits for its end. The failure of a tool is a result.
    pub async fn tool(&self, run: ToolRun) -> ToolResult {
        match self.parallel([run]).await.pop() {
            Some(result) => result,
            None => std::future::pending().await,
        }
    }

    /// Starts requests and tool runs, waits for subagents and sleeps, all at once. Returns their
    /// results in order.
    pub async fn parallel<T>(&self, branches: impl IntoIterator<Item = impl Into<Branch<T>>>) -> Vec<T> {
        let (targets, takes): (Vec<_>, Vec<_>) = parts(branches);
        if targets.is_empty() {
            return Vec::new();
        }
        let outcomes = match self.wait(Mode::All, targets).await {
            Resumption::All(outcomes) => outcomes,
            Resumption::Started | Resumption::First(..) => Vec::new(),
        };
        let mut results = Vec::with_capacity(outcomes.len());
        for (take, outcome) in takes.into_iter().zip(outcomes) {
            results.push(self.taken(take, outcome).await);
        }
        results
    }

    /// Starts requests and tool runs, waits for subagents and sleeps, until the first of them has
    /// ended. Returns its position and result. The others are stopped: nodes in flight are
    /// cancelled, and subagents do not run on. With [`Branch::sleep`] it is a time limit.
    pub async fn race<T>(&self, branches: impl IntoIterator<Item = impl Into<Branch<T>>>) -> (usize, T) {
        let (targets, mut takes): (Vec<_>, Vec<_>) = parts(branches);
        if targets.is_empty() {
            self.state
                .borrow_mut()
                .fail("a race has at least one request, tool run, sleep or subagent");
        }
        match self.wait(Mode::First, targets).await {
            Resumption::First(index, outcome) if index < takes.len() => {
                (index, self.taken(takes.swap_remove(index), outcome).await)
            }
            _ => std::future::pending().await,
        }
    }

    /// Starts a subagent, with a separate session object. It runs concurrently with the code after
    /// this call; the session ends when all of them have ended. Await the handle for its value.
    pub fn spawn<T, F>(&self, run: F) -> Subagent<T>
    where
        T: 'static,
        F: AsyncFnOnce(AgentSession) -> T + 'static,
    {
        let value = Rc::new(RefCell::new(None));
        let handle = Subagent {
            state: Rc::clone(&self.state),
            id: self.id,
            value: Rc::clone(&value),
        };
        let mut state = self.state.borrow_mut();
        if !self.is_running(&mut state) {
            return handle;
        }
        let id = match state.coroutines.spawn(self.id) {
            Ok(id) => id,
            Err(error) => {
                state.fail(error.to_string());
                return handle;
            }
        };
        let session = AgentSession {
            state: Rc::clone(&self.state),
            id,
            index: self.index,
            random: self.random.of_subagent(&state.coroutines.path(id)),
        };
        state.spawned.push(Box::pin(async move {
            let ended = run(session).await;
            *value.borrow_mut() = Some(ended);
        }));
        Subagent { id, ..handle }
    }

    /// Think time: what follows in this code, and in the code that awaits it, starts this much
    /// later.
    pub fn sleep(&self, time: Duration) {
        let mut state = self.state.borrow_mut();
        if self.is_running(&mut state) {
            state.coroutines.sleep(self.id, nanos(time));
        }
    }

    /// Notes an error if the code of another subagent uses this object.
    fn is_running(&self, state: &mut State) -> bool {
        let is_running = state.current == self.id;
        if !is_running {
            state.fail("a subagent uses the session object of another one");
        }
        is_running
    }

    fn wait(&self, mode: Mode, targets: Vec<Target<WrittenNode>>) -> Wait {
        self.is_running(&mut self.state.borrow_mut());
        Wait {
            state: Rc::clone(&self.state),
            mode,
            targets: Some(targets),
        }
    }

    async fn taken<T>(&self, take: Take<T>, outcome: Outcome<Ended>) -> T {
        match take(outcome) {
            Some(value) => value,
            None => stopped(&self.state).await,
        }
    }
}

/// Ends the session, because a subagent has no value.
async fn stopped<T>(state: &RefCell<State>) -> T {
    state
        .borrow_mut()
        .fail("a subagent was awaited that was stopped, because it lost a race");
    std::future::pending().await
}

type Take<T> = Box<dyn FnOnce(Outcome<Ended>) -> Option<T>>;

/// A request, a tool run, a sleep or a subagent, in [`AgentSession::parallel`] and
/// [`AgentSession::race`].
pub struct Branch<T> {
    target: Target<WrittenNode>,
    take: Take<T>,
}

fn parts<T>(
    branches: impl IntoIterator<Item = impl Into<Branch<T>>>,
) -> (Vec<Target<WrittenNode>>, Vec<Take<T>>) {
    let branches = branches.into_iter().map(Into::into);
    branches.map(|Branch { target, take }| (target, take)).unzip()
}

impl From<Request> for Branch<Result<Response, Failure>> {
    fn from(request: Request) -> Self {
        Branch {
            target: Target::Node(WrittenNode::Request(Box::new(request))),
            take: Box::new(|outcome| match outcome {
                Outcome::Value(Ended::Request(answer)) => {
                    Some(Rc::try_unwrap(answer).unwrap_or_else(|answer| (*answer).clone()))
                }
                _ => None,
            }),
        }
    }
}

impl From<ToolRun> for Branch<ToolResult> {
    fn from(run: ToolRun) -> Self {
        Branch {
            target: Target::Node(WrittenNode::ToolRun(run)),
            take: Box::new(|outcome| match outcome {
                Outcome::Value(Ended::ToolRun(result)) => Some(result),
                _ => None,
            }),
        }
    }
}

impl Branch<()> {
    /// A branch that ends after this time. In [`AgentSession::race`] it limits the time of the
    /// others:
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use veeksha_plugin::{AgentSession, Branch, Request};
    /// # async fn limited(session: AgentSession) {
    /// let request = Branch::from(Request::default().user("Answer soon.")).map(Some);
    /// let limit = Branch::sleep(Duration::from_secs(2)).map(|()| None);
    /// if let (_, Some(Ok(answer))) = session.race([request, limit]).await {
    ///     let _ = session.request(Request::default().history(answer.node).user("Go on.")).await;
    /// }
    /// # }
    /// ```
    pub fn sleep(time: Duration) -> Self {
        Branch {
            target: Target::Sleep(nanos(time)),
            take: Box::new(|outcome| matches!(outcome, Outcome::Slept).then_some(())),
        }
    }
}

impl<T: 'static> Branch<T> {
    /// Converts the result, so that requests, tool runs, sleeps and subagents fit into one list.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U + 'static) -> Branch<U> {
        let Branch { target, take } = self;
        Branch {
            target,
            take: Box::new(move |outcome| take(outcome).map(convert)),
        }
    }
}

impl<T: 'static> From<Subagent<T>> for Branch<T> {
    fn from(subagent: Subagent<T>) -> Self {
        Branch {
            target: Target::Coroutine(subagent.id),
            take: Box::new(move |_| subagent.value.borrow_mut().take()),
        }
    }
}

/// A subagent. Awaiting it waits for its end and gives its value. One that is not awaited runs to
/// its end nevertheless.
#[must_use = "await the subagent, or state with `drop` that its value is not needed"]
pub struct Subagent<T> {
    state: Rc<RefCell<State>>,
    id: CoroutineId,
    value: Rc<RefCell<Option<T>>>,
}

impl<T: 'static> IntoFuture for Subagent<T> {
    type Output = T;
    type IntoFuture = Pin<Box<dyn Future<Output = T>>>;

    fn into_future(self) -> Self::IntoFuture {
        let wait = Wait {
            state: Rc::clone(&self.state),
            mode: Mode::All,
            targets: Some(vec![Target::Coroutine(self.id)]),
        };
        Box::pin(async move {
            wait.await;
            let value = self.value.borrow_mut().take();
            match value {
                Some(value) => value,
                None => stopped(&self.state).await,
            }
        })
    }
}

/// The wait of the coroutine that polls it.
struct Wait {
    state: Rc<RefCell<State>>,
    mode: Mode,
    targets: Option<Vec<Target<WrittenNode>>>,
}

impl Future for Wait {
    type Output = Resumption<Ended>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let targets = self.targets.take();
        let mode = self.mode;
        let state = &mut *self.state.borrow_mut();
        if let Some(targets) = targets {
            state.wait(mode, targets);
            return Poll::Pending;
        }
        match state.resumption.take() {
            Some(resumption) => Poll::Ready(resumption),
            None => Poll::Pending,
        }
    }
}
