//! A request as written in a script, read from its table.

use std::collections::BTreeMap;

use mlua::{Table, Value};
use veeksha_coroutines::{Event, NodeEdge, Start, StartEdge, join_edges};
use veeksha_model::{
    AnswerForm, Cancellation, Edge, HeaderField, Label, Message, Nanos, NodeId, OutputSpec, Replay, Request,
    Role, ToolDefinitions, Trigger,
};
use veeksha_ports::MAX_LABEL_BYTES;

use crate::budget::Budget;
use crate::content::counted;
use crate::duration;
use crate::fields::{each_field, flag, whole};
use crate::json;
use crate::messages::{message, messages};
use crate::recorded;
use crate::shape::{At, ShapeError};
use crate::tools;

const FIELDS: [&str; 25] = {
    let [mode, answer, at, latency, prompt, output] = recorded::FIELDS;
    let [tools, choice, schema, log_probabilities, of_prompt] = tools::FIELDS;
    [
        "node",
        "system",
        "messages",
        "user",
        "history",
        "keep_reasoning",
        "after",
        "wait",
        "cancel",
        "output",
        "client",
        "body",
        "headers",
        "labels",
        mode,
        answer,
        at,
        latency,
        prompt,
        output,
        tools,
        choice,
        schema,
        log_probabilities,
        of_prompt,
    ]
};
const EDGE_FIELDS: [&str; 3] = ["node", "trigger", "delay"];
const CANCEL_FIELDS: [&str; 4] = ["node", "trigger", "delay", "chunks"];

/// Contents of a request's table.
#[derive(Default)]
pub(crate) struct RequestDraft {
    pub(crate) node: Option<NodeId>,
    pub(crate) history: Option<NodeId>,
    pub(crate) after: Vec<Edge>,
    pub(crate) wait: Nanos,
    cancel: Vec<CancelEvent>,
    messages: Vec<Message>,
    keep_reasoning: bool,
    tools: Option<Box<ToolDefinitions>>,
    form: Option<Box<AnswerForm>>,
    output: OutputSpec,
    client: Option<String>,
    body: Option<String>,
    headers: Vec<HeaderField>,
    pub(crate) labels: Vec<Label>,
    /// `None` for a request without recorded data of a trace.
    pub(crate) replay: Option<Box<Replay>>,
}

impl RequestDraft {
    /// Reads a request's table.
    pub(crate) fn read(at: &At<'_>, value: &Value, budget: &Budget) -> Result<Self, ShapeError> {
        let Value::Table(table) = value else {
            return Err(at.expected("a table: a request", value));
        };
        let mut draft = RequestDraft::default();
        let (mut system, mut user) = (None, None);
        each_field(at, table, &FIELDS, |key, at, value| {
            match key {
                "node" => draft.node = Some(NodeId(whole(at, value)?)),
                "system" => system = Some(message(Role::System, at, value, budget)?),
                "user" => user = Some(message(Role::User, at, value, budget)?),
                "messages" => draft.messages = messages(at, value, budget)?,
                "history" => draft.history = Some(history(at, value)?),
                "keep_reasoning" => draft.keep_reasoning = flag(at, value)?,
                "tools" => draft.tools = Some(Box::new(tools::tools(at, value, budget)?)),
                _ if tools::FIELDS.contains(&key) => {
                    tools::read_form(key, at, value, budget, draft.form.get_or_insert_default())?;
                }
                "after" => draft.after = edges(at, value)?,
                "wait" => draft.wait = duration::nanos(at, value)?,
                "cancel" => draft.cancel = cancel_events(at, value)?,
                "output" => draft.output = output(at, value)?,
                "client" => draft.client = Some(counted(at, value, budget)?),
                "body" => draft.body = Some(json::object(at, value, budget)?),
                "headers" => draft.headers = headers(at, value, budget)?,
                "labels" => draft.labels = labels(at, value, budget)?,
                _ => recorded::read(key, at, value, budget, draft.replay.get_or_insert_default())?,
            }
            Ok(())
        })?;
        draft.messages.splice(0..0, system);
        draft.messages.extend(user);
        if draft.messages.is_empty() {
            return Err(at.shape("the request is empty; give it `user`, `system` or `messages`"));
        }
        Ok(draft)
    }

    /// Builds the request with the number `node`. It starts when its history, the nodes in its
    /// table and the edges of `start` are met, after both waits.
    pub(crate) fn finish(self, node: NodeId, start: &Start) -> Request {
        // The history comes first; the details of its edge are in `after`.
        let history = self.history.map(|parent| {
            let waits = |edge: &&Edge| edge.parent == parent && edge.trigger == Trigger::Completed;
            let written = self.after.iter().find(waits);
            written.copied().unwrap_or_else(|| parent.into())
        });
        let mut parents: Vec<Edge> = Vec::with_capacity(1 + self.after.len() + start.edges.len());
        parents.extend(history);
        for edge in self.after {
            if !parents.contains(&edge) {
                parents.push(edge);
            }
        }
        join_start(&mut parents, &start.edges);
        Request {
            node,
            parents,
            history_parent: self.history,
            wait_after_ready: self.wait.saturating_add(start.wait),
            cancellation: cancellation(node, &self.cancel),
            messages: self.messages,
            keep_reasoning: self.keep_reasoning,
            tools: self.tools,
            output: OutputSpec {
                form: self.form,
                ..self.output
            },
            client: self.client,
            body: self.body,
            headers: self.headers,
            labels: self.labels,
            replay: self.replay,
        }
    }
}

/// Adds a label, unless the author has set it.
pub(crate) fn default_label(
    at: &At<'_>,
    labels: &mut Vec<Label>,
    name: &str,
    value: impl FnOnce() -> String,
) -> Result<(), ShapeError> {
    if labels.iter().any(|(known, _)| known == name) {
        return Ok(());
    }
    labels.push((name.to_owned(), value()));
    labels.sort();
    check_size(at, labels)
}

/// Adds the edges of a node's start to those that the author wrote.
pub(crate) fn join_start(parents: &mut Vec<Edge>, start: &[StartEdge]) {
    let mut joined: Vec<_> = parents.drain(..).map(ModelEdge).collect();
    join_edges(&mut joined, start);
    parents.extend(joined.into_iter().map(|edge| edge.0));
}

pub(crate) fn edge_of(edge: &StartEdge) -> Edge {
    ModelEdge::new(edge.node, edge.event, edge.delay).0
}

struct ModelEdge(Edge);

impl NodeEdge for ModelEdge {
    fn new(node: u32, event: Event, delay: Nanos) -> Self {
        ModelEdge(Edge {
            parent: NodeId(node),
            trigger: match event {
                Event::Dispatched => Trigger::Dispatched,
                Event::Completed => Trigger::Completed,
            },
            delay,
        })
    }

    fn has_event_of(&self, other: &Self) -> bool {
        (self.0.parent, self.0.trigger) == (other.0.parent, other.0.trigger)
    }

    fn delay_mut(&mut self) -> &mut Nanos {
        &mut self.0.delay
    }
}

/// Reads a node, given by its number or by its response.
pub(crate) fn node(at: &At<'_>, value: &Value) -> Result<NodeId, ShapeError> {
    match value {
        Value::Table(response) => match response.raw_get("node") {
            Ok(number @ (Value::Integer(_) | Value::Number(_))) => Ok(NodeId(whole(at, &number)?)),
            _ => Err(
                at.shape("expected a response or the number of a node, found a table that is not a response")
            ),
        },
        Value::Integer(_) | Value::Number(_) => Ok(NodeId(whole(at, value)?)),
        other => Err(at.expected("a response or the number of a node", other)),
    }
}

fn is_list(value: &Value) -> Option<&Table> {
    match value {
        Value::Table(table) if table.raw_len() > 0 || table.is_empty() => Some(table),
        _ => None,
    }
}

fn history(at: &At<'_>, value: &Value) -> Result<NodeId, ShapeError> {
    match is_list(value) {
        Some(list) if list.raw_len() > 1 => Err(at.shape(format!(
            "a request continues one conversation, and this one names {} history parents; put the others into `after`",
            list.raw_len()
        ))),
        Some(list) => node(at, &list.raw_get(1).unwrap_or(Value::Nil)),
        None => node(at, value),
    }
}

/// Reads the nodes that are waited for. A later edge to the same event of a node replaces the
/// earlier one.
pub(crate) fn edges(at: &At<'_>, value: &Value) -> Result<Vec<Edge>, ShapeError> {
    let Some(list) = is_list(value) else {
        return Ok(vec![edge(at, value)?]);
    };
    let mut edges: Vec<Edge> = Vec::with_capacity(list.raw_len());
    let mut places = BTreeMap::new();
    for index in 1..=list.raw_len() {
        let item = list.raw_get::<Value>(index).unwrap_or(Value::Nil);
        let edge = edge(&At::Index(at, index), &item)?;
        let place = *places
            .entry((edge.parent, edge.trigger.name()))
            .or_insert(edges.len());
        match edges.get_mut(place) {
            Some(known) => *known = edge,
            None => edges.push(edge),
        }
    }
    Ok(edges)
}

/// Reads a node that is waited for: alone, or in a table with the awaited event and a delay.
fn edge(at: &At<'_>, value: &Value) -> Result<Edge, ShapeError> {
    let table = match value {
        Value::Table(table) if !is_response(table) => table,
        _ => return Ok(node(at, value)?.into()),
    };
    let (mut parent, mut trigger, mut delay) = (None, Trigger::default(), 0);
    each_field(at, table, &EDGE_FIELDS, |key, at, value| {
        match key {
            "node" => parent = Some(node(at, value)?),
            "trigger" => trigger = read_trigger(at, value)?,
            _ => delay = duration::nanos(at, value)?,
        }
        Ok(())
    })?;
    let Some(parent) = parent else {
        return Err(at.shape("expected a response, the number of a node, or a table with `node`"));
    };
    Ok(Edge {
        parent,
        trigger,
        delay,
    })
}

/// What cancels a request.
#[derive(Clone, Copy)]
enum CancelEvent {
    /// An event of a node; `None`: of the request itself.
    Event(Option<NodeId>, Trigger, Nanos),
    /// This number of generated chunks.
    Chunks(u32),
}

fn cancellation(node: NodeId, events: &[CancelEvent]) -> Option<Box<Cancellation>> {
    if events.is_empty() {
        return None;
    }
    let mut cancellation = Cancellation::default();
    for event in events {
        match *event {
            CancelEvent::Chunks(chunks) => {
                let known = cancellation.after_chunks.unwrap_or(chunks);
                cancellation.after_chunks = Some(known.min(chunks));
            }
            CancelEvent::Event(parent, trigger, delay) => cancellation.when.push(Edge {
                parent: parent.unwrap_or(node),
                trigger,
                delay,
            }),
        }
    }
    Some(Box::new(cancellation))
}

fn cancel_events(at: &At<'_>, value: &Value) -> Result<Vec<CancelEvent>, ShapeError> {
    let events = match is_list(value) {
        Some(list) => {
            let item = |index: usize| list.raw_get::<Value>(index).unwrap_or(Value::Nil);
            (1..=list.raw_len())
                .map(|index| cancel_event(&At::Index(at, index), &item(index)))
                .collect()
        }
        None => cancel_event(at, value).map(|event| vec![event]),
    }?;
    if events.is_empty() {
        return Err(at.shape("names no event; leave it out, or name one: { delay = \"2s\" }"));
    }
    Ok(events)
}

/// Reads an event that cancels a request: as in `after`, or of the request itself if it names no
/// node.
fn cancel_event(at: &At<'_>, value: &Value) -> Result<CancelEvent, ShapeError> {
    let table = match value {
        Value::Table(table) if !is_response(table) => table,
        _ => return Ok(CancelEvent::Event(Some(node(at, value)?), Trigger::Completed, 0)),
    };
    let (mut parent, mut trigger, mut delay, mut chunks) = (None, None, None, None);
    each_field(at, table, &CANCEL_FIELDS, |key, at, value| {
        match key {
            "node" => parent = Some(node(at, value)?),
            "trigger" => trigger = Some(read_trigger(at, value)?),
            "delay" => delay = Some(duration::nanos(at, value)?),
            _ => chunks = Some(whole(at, value)?),
        }
        Ok(())
    })?;
    match (chunks, parent, trigger, delay) {
        (Some(chunks), None, None, None) => Ok(CancelEvent::Chunks(chunks)),
        (Some(_), ..) => {
            Err(at.shape("`chunks` is a condition of its request alone; give it a separate table"))
        }
        (None, parent, trigger, delay) => {
            let usual = if parent.is_some() {
                Trigger::Completed
            } else {
                Trigger::Dispatched
            };
            Ok(CancelEvent::Event(
                parent,
                trigger.unwrap_or(usual),
                delay.unwrap_or(0),
            ))
        }
    }
}

/// A response is a table with a node, too, but it has `ok`.
fn is_response(table: &Table) -> bool {
    table.raw_get::<Value>("ok").is_ok_and(|value| !value.is_nil())
}

fn read_trigger(at: &At<'_>, value: &Value) -> Result<Trigger, ShapeError> {
    let found = value
        .as_string()
        .and_then(|name| Trigger::ALL.into_iter().find(|trigger| *name == trigger.name()));
    found.ok_or_else(|| at.expected("\"dispatched\", \"first_chunk\" or \"completed\"", value))
}

fn output(at: &At<'_>, value: &Value) -> Result<OutputSpec, ShapeError> {
    let tokens = |at: &At<'_>, value: &Value| match whole(at, value) {
        Ok(tokens) if tokens > 0 => Ok(Some(tokens)),
        _ => Err(at.expected("a whole number of tokens, at least 1", value)),
    };
    let Value::Table(table) = value else {
        return Ok(OutputSpec {
            target_tokens: tokens(at, value)?,
            ..OutputSpec::default()
        });
    };
    let mut output = OutputSpec::default();
    each_field(at, table, &["tokens", "exact"], |key, at, value| {
        match key {
            "tokens" => output.target_tokens = tokens(at, value)?,
            _ => output.exact = flag(at, value)?,
        }
        Ok(())
    })?;
    if output.exact && output.target_tokens.is_none() {
        return Err(at.shape("`exact` needs `tokens`"));
    }
    Ok(output)
}

/// Reads HTTP headers, a table of names and values.
pub(crate) fn headers(at: &At<'_>, value: &Value, budget: &Budget) -> Result<Vec<HeaderField>, ShapeError> {
    names_and_values(at, value, budget, "header")
}

/// Reads labels, a table of names and values.
pub(crate) fn labels(at: &At<'_>, value: &Value, budget: &Budget) -> Result<Vec<Label>, ShapeError> {
    let labels = names_and_values(at, value, budget, "label")?;
    check_size(at, &labels)?;
    Ok(labels)
}

pub(crate) fn check_size(at: &At<'_>, labels: &[Label]) -> Result<(), ShapeError> {
    let bytes: usize = labels.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > MAX_LABEL_BYTES {
        return Err(at.shape(format!(
            "{bytes} bytes of labels, at most {MAX_LABEL_BYTES} are carried"
        )));
    }
    Ok(())
}

/// Reads the name and the value of a header or label, which is `what`.
pub(crate) fn name_and_value(
    at: &At<'_>,
    (name, value): (&Value, &Value),
    budget: &Budget,
    what: &str,
) -> Result<(String, String), ShapeError> {
    let Value::String(name) = name else {
        return Err(at.expected(&format!("a name for each {what}"), name));
    };
    budget.take(at, name.as_bytes().len())?;
    let name = name
        .to_str()
        .map_err(|_| at.shape(format!("the name of a {what} is not UTF-8")))?
        .to_owned();
    if name.is_empty() {
        return Err(at.shape(format!("a {what} has an empty name")));
    }
    let at = At::Key(at, &name);
    let text = match value {
        Value::String(_) => counted(&at, value, budget)?,
        Value::Boolean(flag) => flag.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        other => return Err(at.expected("a string, a number or a boolean", other)),
    };
    Ok((name, text))
}

/// Reads a table of names and values, in the order of the names. `what` is one of its entries.
fn names_and_values(
    at: &At<'_>,
    value: &Value,
    budget: &Budget,
    what: &str,
) -> Result<Vec<(String, String)>, ShapeError> {
    let Value::Table(table) = value else {
        return Err(at.expected("a table of names and values", value));
    };
    let mut entries = Vec::new();
    let walked = table.for_each(|key: Value, value: Value| {
        entries.push(name_and_value(at, (&key, &value), budget, what)?);
        Ok(())
    });
    walked.map_err(|error| match &error {
        mlua::Error::ExternalError(shape) => shape
            .downcast_ref::<ShapeError>()
            .cloned()
            .unwrap_or_else(|| at.shape(error.to_string())),
        other => at.shape(other.to_string()),
    })?;
    entries.sort();
    Ok(entries)
}
