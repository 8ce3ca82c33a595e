//! A live session: its coroutines, and the nodes that they make between two answers.

use std::cell::RefCell;
use std::rc::Rc;

use mlua::thread::ThreadStatus;
use mlua::{Function, IntoLua, IntoLuaMulti, Lua, MultiValue, Table, Thread, Value};
use veeksha_coroutines::{
    CoroutineId, Coroutines, IssuedNode, Mode, NewNode, Outcome, Resumption, SUBAGENT, Target,
};
use veeksha_model::{HeaderField, Label, Nanos, NodeId, Recorded, Session, SessionId, TIMER, ToolRun};
use veeksha_ports::AgentStep;

use crate::budget::Budget;
use crate::duration;
use crate::fields::each_field;
use crate::host::LuaHost;
use crate::recorded;
use crate::request::{RequestDraft, check_size, default_label, edge_of, name_and_value};
use crate::rng::Rng;
use crate::shape::{At, ShapeError};
use crate::tool_run::ToolRunDraft;

/// The field of a session object with the number of its coroutine.
const NUMBER: &str = "coroutine";
/// The field of a sleep.
const SLEEP: &str = "sleep";

/// The end of a node or of a coroutine.
pub(crate) enum Ended {
    Values(MultiValue),
    Raised(mlua::Error),
}

/// The values that a wait returns of each thing that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Returned {
    /// All of the only one.
    AllValues,
    /// The first of each; of a race, also the position of its winner.
    FirstValues,
}

/// What the running coroutine will wait for once it yields.
pub(crate) struct PendingWait {
    pub(crate) mode: Mode,
    pub(crate) returned: Returned,
    pub(crate) targets: Vec<Target<NodeDraft>>,
}

/// A property of all requests of a session.
#[derive(Clone, Copy)]
pub(crate) enum SessionProperty {
    Header,
    Label,
}

impl SessionProperty {
    fn name(self) -> &'static str {
        match self {
            SessionProperty::Header => "header",
            SessionProperty::Label => "label",
        }
    }
}

/// A node that a coroutine starts once it yields.
pub(crate) enum NodeDraft {
    Request(RequestDraft),
    ToolRun(ToolRunDraft),
}

impl NewNode for NodeDraft {
    fn is_tool_run(&self) -> bool {
        matches!(self, NodeDraft::ToolRun(_))
    }

    fn root_wait(&self) -> Option<Nanos> {
        match self {
            NodeDraft::Request(draft) => {
                (draft.history.is_none() && draft.after.is_empty()).then_some(draft.wait)
            }
            NodeDraft::ToolRun(draft) => draft.after.is_empty().then_some(0),
        }
    }
}

/// The Lua side of a coroutine that has not ended.
struct LiveCoroutine {
    thread: Thread,
    /// Its session object, until it starts.
    object: Option<Table>,
    /// Its place in the session; empty for the main function.
    path: Rc<str>,
    /// Synthetic segments created so far.
    made: u64,
    returned: Returned,
}

/// The session whose coroutines are running.
pub(crate) type RunningTurn = Rc<RefCell<Option<AgentTurn>>>;

/// State of a live session that its functions change.
pub(crate) struct AgentTurn {
    host: Rc<LuaHost>,
    session: SessionId,
    pub(crate) coroutines: Coroutines<Rc<Ended>, NodeDraft>,
    /// By number.
    live: Vec<Option<LiveCoroutine>>,
    /// The coroutine that is running.
    current: CoroutineId,
    pub(crate) pending: Option<PendingWait>,
    budget: Budget,
    /// Of all requests of the session.
    headers: Vec<HeaderField>,
    labels: Vec<Label>,
    /// True until the first step is complete.
    opens: bool,
}

impl AgentTurn {
    /// Creates a session whose main function is ready.
    pub(crate) fn new(
        lua: &Lua,
        host: &Rc<LuaHost>,
        session: SessionId,
        function: &Function,
    ) -> mlua::Result<Self> {
        let mut turn = AgentTurn {
            host: host.clone(),
            session,
            coroutines: Coroutines::new(),
            live: Vec::new(),
            current: CoroutineId::MAIN,
            pending: None,
            budget: Budget::new(),
            headers: Vec::new(),
            labels: Vec::new(),
            opens: true,
        };
        turn.add(lua, CoroutineId::MAIN, function)?;
        Ok(turn)
    }

    /// Adds the Lua side of a new coroutine and returns its session object.
    fn add(&mut self, lua: &Lua, id: CoroutineId, function: &Function) -> mlua::Result<Table> {
        let path = self.coroutines.path(id);
        let object = lua.create_table_with_capacity(0, 4)?;
        object.raw_set("index", self.session.0 as f64)?;
        object.raw_set(NUMBER, id.number())?;
        let rng = Rng::new(self.host.seed, self.session.0, &path);
        object.raw_set("rng", lua.create_userdata(rng)?)?;
        if !path.is_empty() {
            object.raw_set(SUBAGENT, path.as_str())?;
        }
        object.set_metatable(self.host.session_methods.get().cloned())?;
        object.set_readonly(true);
        self.live.push(Some(LiveCoroutine {
            thread: lua.create_thread(function.clone())?,
            object: Some(object.clone()),
            path: path.into(),
            made: 0,
            returned: Returned::AllValues,
        }));
        Ok(object)
    }

    fn current(&mut self) -> Option<&mut LiveCoroutine> {
        self.live.get_mut(self.current.index())?.as_mut()
    }

    /// Returns true if `thread` is the coroutine that the host runs.
    pub(crate) fn is_running(&mut self, thread: &Thread) -> bool {
        self.current().is_some_and(|live| live.thread == *thread)
    }

    /// Returns the coroutine of a session object; `None` for other values.
    fn coroutine_of(&self, at: &At<'_>, value: &Value) -> Option<Result<CoroutineId, ShapeError>> {
        let Value::Table(table) = value else { return None };
        if table.metatable().as_ref() != self.host.session_methods.get() {
            return None;
        }
        // Scripts cannot make such tables and cannot change them.
        let index: mlua::Result<f64> = table.raw_get("index");
        let number: mlua::Result<u32> = table.raw_get(NUMBER);
        Some(match (index, number) {
            (Ok(index), Ok(number))
                if index == self.session.0 as f64 && (number as usize) < self.live.len() =>
            {
                Ok(CoroutineId::new(number))
            }
            _ => Err(at.shape("this is the object of another session")),
        })
    }

    /// Refuses a call with another object than that of the running coroutine.
    pub(crate) fn check_object(&self, at: &At<'_>, this: &Value) -> Result<(), ShapeError> {
        match self.coroutine_of(at, this).transpose()? {
            Some(id) if id == self.current => Ok(()),
            Some(_) => Err(at.shape(
                "this is the object of another subagent; call it with the object that the function received",
            )),
            None => Err(at.shape(format!("call it with a colon: {at}(...)"))),
        }
    }

    /// Reads a subagent that the running coroutine may wait for.
    pub(crate) fn subagent(&self, at: &At<'_>, value: &Value) -> Result<Target<NodeDraft>, ShapeError> {
        let Some(id) = self.coroutine_of(at, value) else {
            return Err(at.expected("a subagent; call it with a colon: subagent:join()", value));
        };
        let id = id?;
        let checked = self.coroutines.check_wait(self.current, id);
        checked.map_err(|error| at.shape(error.to_string()))?;
        Ok(Target::Coroutine(id))
    }

    /// Reads a subagent, a sleep, a tool run or a request.
    pub(crate) fn target(&self, at: &At<'_>, value: &Value) -> Result<Target<NodeDraft>, ShapeError> {
        if self.coroutine_of(at, value).is_some() {
            return self.subagent(at, value);
        }
        match value {
            Value::Table(table) if is_sleep(table) => Ok(Target::Sleep(read_sleep(at, table)?)),
            Value::Table(table) if ToolRunDraft::is_meant(table) => {
                self.tool_run(at, ToolRunDraft::read(at, table, &self.budget)?)
            }
            request => self.request(at, request),
        }
    }

    /// Reads a tool run: its class, and a table or nil.
    pub(crate) fn tool_call(
        &self,
        at: &At<'_>,
        class: &Value,
        options: &Value,
    ) -> Result<Target<NodeDraft>, ShapeError> {
        self.tool_run(at, ToolRunDraft::of_call(at, class, options, &self.budget)?)
    }

    fn tool_run(&self, at: &At<'_>, mut draft: ToolRunDraft) -> Result<Target<NodeDraft>, ShapeError> {
        check_unnumbered(at, draft.node)?;
        self.label(at, &mut draft.labels)?;
        Ok(Target::Node(NodeDraft::ToolRun(draft)))
    }

    /// Adds the label of the running subagent.
    fn label(&self, at: &At<'_>, labels: &mut Vec<Label>) -> Result<(), ShapeError> {
        if self.current == CoroutineId::MAIN {
            return Ok(());
        }
        default_label(at, labels, SUBAGENT, || self.coroutines.path(self.current))
    }

    /// Reads a request.
    pub(crate) fn request(&self, at: &At<'_>, request: &Value) -> Result<Target<NodeDraft>, ShapeError> {
        if let Value::Table(table) = request
            && ToolRunDraft::is_meant(table)
        {
            return Err(at.shape("this is a tool run; call session:tool(class, options)"));
        }
        let mut draft = RequestDraft::read(at, request, &self.budget)?;
        check_unnumbered(at, draft.node)?;
        let facts = draft.replay.as_deref();
        if facts.is_some_and(|facts| facts.answer.is_some() || facts.recorded != Recorded::default()) {
            let fields = &recorded::FIELDS[1..];
            return Err(at.shape(format!(
                "an agent's requests were never recorded: {} are for sessions; an agent has only `history_mode`",
                fields.join(", ")
            )));
        }
        self.label(at, &mut draft.labels)?;
        Ok(Target::Node(NodeDraft::Request(draft)))
    }

    /// Refuses more nodes than a session may have.
    pub(crate) fn check_number(&self, at: &At<'_>, targets: &[Target<NodeDraft>]) -> Result<(), ShapeError> {
        let checked = self.coroutines.check_nodes(targets);
        checked.map_err(|error| at.shape(error.to_string()))
    }

    /// Creates a subagent of the running coroutine and returns its session object.
    pub(crate) fn spawn(&mut self, lua: &Lua, at: &At<'_>, run: &Function) -> mlua::Result<Table> {
        let spawned = self.coroutines.spawn(self.current);
        let id = spawned.map_err(|error| at.shape(error.to_string()))?;
        self.add(lua, id, run)
    }

    /// Adds a header or a label to all requests of the session.
    pub(crate) fn describe_session(
        &mut self,
        at: &At<'_>,
        what: SessionProperty,
        entry: (&Value, &Value),
    ) -> Result<(), ShapeError> {
        let name = what.name();
        if !self.opens {
            return Err(at.shape(format!(
                "the {name}s of a session are set before it first waits for an answer; set those of a request in its `{name}s`"
            )));
        }
        let entry = name_and_value(at, entry, &self.budget, name)?;
        // HTTP ignores the case of a header's name.
        match what {
            SessionProperty::Header => {
                self.headers
                    .retain(|(known, _)| !known.eq_ignore_ascii_case(&entry.0));
                self.headers.push(entry);
            }
            SessionProperty::Label => {
                self.labels.retain(|(known, _)| *known != entry.0);
                self.labels.push(entry);
            }
        }
        check_size(at, &self.labels)
    }

    /// Delays what follows in the running coroutine.
    pub(crate) fn sleep(&mut self, time: Nanos) {
        self.coroutines.sleep(self.current, time);
    }

    /// Takes the coroutine that runs next, with the arguments of its resumption.
    pub(crate) fn next(&mut self, lua: &Lua) -> mlua::Result<Option<(Thread, MultiValue)>> {
        for stopped in self.coroutines.take_stopped() {
            self.live[stopped.index()] = None;
        }
        let Some((id, resumption)) = self.coroutines.take_ready() else {
            return Ok(None);
        };
        self.current = id;
        let session = self.session.0;
        let host = self.host.clone();
        let Some(live) = self.current() else {
            return Ok(None);
        };
        host.enter_subagent(session, live.path.clone(), live.made);
        let arguments = match resumption {
            Resumption::Started => live.object.take().into_lua_multi(lua)?,
            Resumption::All(outcomes) => arguments(lua, outcomes, live.returned)?,
            Resumption::First(index, outcome) => {
                let mut values = arguments(lua, vec![outcome], live.returned)?;
                values.push_back((index + 1).into_lua(lua)?);
                values
            }
        };
        Ok(Some((live.thread.clone(), arguments)))
    }

    /// Notes the end or the wait of the coroutine that has run. Returns false if it yielded without
    /// a wait.
    ///
    /// # Errors
    /// The error of the main function.
    pub(crate) fn ran(&mut self, result: mlua::Result<MultiValue>) -> mlua::Result<bool> {
        let made = self.host.made.get();
        let pending = self.pending.take();
        let Some(live) = self.current() else {
            return Ok(false);
        };
        live.made = made;
        let ended = match result {
            Ok(_) if live.thread.status() == ThreadStatus::Resumable => {
                let Some(pending) = pending else {
                    return Ok(false);
                };
                live.returned = pending.returned;
                self.coroutines.wait(self.current, pending.mode, pending.targets);
                return Ok(true);
            }
            Ok(values) => Ended::Values(values),
            Err(error) if self.current == CoroutineId::MAIN => return Err(error),
            Err(error) => Ended::Raised(error),
        };
        self.live[self.current.index()] = None;
        self.coroutines.end(self.current, Rc::new(ended));
        Ok(true)
    }

    /// Takes what the coroutines have started and stopped since the last answer.
    pub(crate) fn take_step(&mut self) -> AgentStep {
        self.budget = Budget::new();
        let step = self.coroutines.take_step();
        self.opens = false;
        let mut added = Session {
            headers: self.headers.clone(),
            labels: self.labels.clone(),
            ..Session::default()
        };
        for issued in step.nodes {
            self.add_node(issued, &mut added);
        }
        AgentStep {
            added,
            cancel: step.cancelled.into_iter().map(NodeId).collect(),
            done: step.done,
        }
    }

    fn add_node(&self, issued: IssuedNode<NodeDraft>, added: &mut Session) {
        let IssuedNode {
            node,
            coroutine,
            written,
            start,
        } = issued;
        let node = NodeId(node);
        match written {
            Some(NodeDraft::Request(draft)) => added.requests.push(draft.finish(node, &start)),
            Some(NodeDraft::ToolRun(draft)) => added.tool_runs.push(draft.finish(node, &start.edges)),
            None => {
                let path = self.coroutines.path(coroutine);
                let label = (!path.is_empty()).then(|| (SUBAGENT.to_owned(), path));
                added.tool_runs.push(ToolRun {
                    node,
                    parents: start.edges.iter().map(edge_of).collect(),
                    class: TIMER.to_owned(),
                    service_time: None,
                    result_tokens: None,
                    fails: None,
                    labels: label.into_iter().collect(),
                    key: 0,
                });
            }
        }
    }
}

/// Returns true if a table is a sleep: a branch of `parallel` or `race`.
fn is_sleep(table: &Table) -> bool {
    table.raw_get::<Value>(SLEEP).is_ok_and(|time| !time.is_nil())
}

fn read_sleep(at: &At<'_>, table: &Table) -> Result<Nanos, ShapeError> {
    let mut slept = 0;
    each_field(at, table, &[SLEEP], |_, at, value| {
        slept = duration::nanos(at, value)?;
        Ok(())
    })?;
    Ok(slept)
}

fn check_unnumbered(at: &At<'_>, node: Option<NodeId>) -> Result<(), ShapeError> {
    match node {
        Some(_) => Err(At::Key(at, "node").shape("the host numbers the nodes of an agent; leave it out")),
        None => Ok(()),
    }
}

/// The arguments with which the prelude resumes: true and the values, or false and an error.
fn arguments(lua: &Lua, outcomes: Vec<Outcome<Rc<Ended>>>, returned: Returned) -> mlua::Result<MultiValue> {
    let mut arguments = MultiValue::new();
    arguments.push_back(Value::Boolean(true));
    for outcome in outcomes {
        let raised = match outcome {
            Outcome::Value(ended) => match &*ended {
                Ended::Values(values) => {
                    match returned {
                        Returned::AllValues => arguments.extend(values.iter().cloned()),
                        Returned::FirstValues => {
                            arguments.push_back(values.front().cloned().unwrap_or(Value::Nil));
                        }
                    }
                    continue;
                }
                Ended::Raised(error) => raised(lua, error)?,
            },
            Outcome::Slept => {
                arguments.push_back(Value::Nil);
                continue;
            }
            Outcome::Stopped => "the subagent was stopped, because it lost a race".into_lua(lua)?,
        };
        return Ok(MultiValue::from_iter([Value::Boolean(false), raised]));
    }
    Ok(arguments)
}

/// The value that raises the error of a subagent again: its message, or the host's error.
fn raised(lua: &Lua, error: &mlua::Error) -> mlua::Result<Value> {
    match error {
        mlua::Error::RuntimeError(text) => {
            let message = text.split("\nstack traceback:").next().unwrap_or_default();
            message.into_lua(lua)
        }
        other => Ok(Value::Error(Box::new(other.clone()))),
    }
}
