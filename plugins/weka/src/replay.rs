//! A conversation into a session of requests.

use veeksha_plugin::flavor::{Group, HistoryMode, Layout, Replay, Row, Trace, TraceFlavor, Turn};
use veeksha_plugin::{Edge, Error, Message, Plugin, Request, Role, Segment, Session, seed_of, synthetic};

use crate::calls::{Call, calls};
use crate::config::{Config, Scope, Subagents};
use crate::row::{Cells, columns};
use crate::runs::{Runs, UNKNOWN};

/// An open flavor.
pub struct Weka {
    config: Config,
}

/// Tokens of a block where the row does not say.
const BLOCK_SIZE: u32 = 64;

impl Plugin for Weka {
    type Config = Config;
    const NAME: &'static str = "weka";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "captures of coding agents with their subagents, prompts of hash blocks";

    fn config_schema() -> String {
        include_str!("../schema.json").into()
    }
}

impl TraceFlavor for Weka {
    type Row = Cells;

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Weka { config })
    }

    fn layout(&self) -> Layout {
        Layout::new(columns())
    }

    fn session(&self, _: &Trace<Cells>, epoch: u64, group: &Group<Cells>) -> Result<Replay, Error> {
        let [row] = group.rows.as_slice() else {
            return Err(Error::new("row", "a session of this trace is one row"));
        };
        let mut calls = calls(row)?;
        if self.config.subagents == Subagents::Shared {
            calls.iter_mut().for_each(|call| call.space = 0);
        }
        let mut prompts = Prompts {
            row,
            epoch,
            group: group.index,
            block_size: block_size(row)?,
            file: self.is_file_scope(row)?,
            runs: Vec::new(),
        };
        prompts.look_at(&calls);
        let mut requests = Vec::with_capacity(calls.len());
        let mut turns = Vec::with_capacity(calls.len());
        for (node, call) in (0u32..).zip(&calls) {
            let content = prompts.content(node, call)?;
            requests.push(request(row, node, call, content)?);
            turns.push(turn(row, node, call)?);
        }
        let mut session = Session::new(requests);
        // Conversations have no clock in common: each begins with the trace.
        session.arrives_at = Some(0);
        if let Some(id) = &row.cells.id {
            session = session.label("conversation", id);
        }
        Ok(Replay::new(session, turns))
    }
}

impl Weka {
    fn is_file_scope(&self, row: &Row<Cells>) -> Result<bool, Error> {
        match (self.config.scope, row.cells.hash_id_scope.as_deref()) {
            (Scope::File, _) | (Scope::Recorded, Some("global")) => Ok(true),
            (Scope::Conversation, _) | (Scope::Recorded, None | Some("local")) => Ok(false),
            (Scope::Recorded, Some(other)) => {
                let error = row.error(format!(
                    "`hash_id_scope` is `{other}`; known are `global` and `local`"
                ));
                Err(error.hint("set `scope` of the flavor to `conversation` or `file`"))
            }
        }
    }
}

fn block_size(row: &Row<Cells>) -> Result<u32, Error> {
    match row.cells.block_size {
        Some(0) => Err(row.error("`block_size` is 0: a block has at least one token")),
        size => Ok(size.unwrap_or(BLOCK_SIZE)),
    }
}

fn request(row: &Row<Cells>, node: u32, call: &Call<'_>, content: Vec<Segment>) -> Result<Request, Error> {
    let item = call.item;
    let output = row.tokens("out", item.output)?;
    let mut request = Request::new(node)
        .message(Message::new(Role::User, content))
        .wait(row.seconds("t", call.wait)?)
        // A server refuses to answer with nothing.
        .output_exactly(output.max(1));
    request.parents = call.parents.iter().copied().map(Edge::from).collect();
    let list = |types: &[String]| (!types.is_empty()).then(|| types.join(","));
    let labels = [
        ("model", item.model.clone()),
        ("type", item.kind.clone()),
        ("input_types", list(&item.input_types)),
        ("output_types", list(&item.output_types)),
        ("stop", item.stop.clone().filter(|stop| !stop.is_empty())),
        ("recorded_ttft", item.ttft.map(|seconds| seconds.to_string())),
        ("agent_id", call.agent.and_then(|agent| agent.agent_id.clone())),
        (
            "subagent_type",
            call.agent.and_then(|agent| agent.subagent_type.clone()),
        ),
    ];
    for (name, value) in labels {
        if let Some(value) = value {
            request = request.label(name, value);
        }
    }
    Ok(request)
}

fn turn(row: &Row<Cells>, node: u32, call: &Call<'_>) -> Result<Turn, Error> {
    let nanos = |name, seconds| Ok(row.seconds(name, seconds)?.as_nanos() as u64);
    Ok(Turn {
        history: HistoryMode::Fresh,
        at: Some(nanos("t", call.at)?),
        latency: call
            .item
            .api_time
            .map(|seconds| nanos("api_time", seconds))
            .transpose()?,
        prompt_tokens: Some(row.tokens("in", call.item.input)?),
        output_tokens: Some(row.tokens("out", call.item.output)?),
        ..Turn::new(node)
    })
}

/// The prompts of one conversation.
struct Prompts<'a> {
    row: &'a Row<Cells>,
    epoch: u64,
    group: u64,
    block_size: u32,
    /// True if the ids of the conversation itself mean the same in the whole file.
    file: bool,
    /// Of each space of ids that no other conversation knows.
    runs: Vec<Runs<'a>>,
}

impl<'a> Prompts<'a> {
    fn look_at(&mut self, calls: &[Call<'a>]) {
        for call in calls {
            let space = call.space as usize;
            if self.runs.len() <= space {
                self.runs.resize_with(space + 1, Runs::default);
            }
            let ids = self.ids(call);
            self.runs[space].add(ids);
        }
        self.runs.iter_mut().for_each(Runs::rewind);
    }

    /// The ids of a call, as far as they lie within its prompt.
    fn ids(&self, call: &Call<'a>) -> &'a [u64] {
        let blocks = call.item.input.div_ceil(u64::from(self.block_size));
        let ids = &call.item.hash_ids;
        &ids[..ids.len().min(usize::try_from(blocks).unwrap_or(usize::MAX))]
    }

    /// The whole prompt of a call: its blocks, and unique text for what they do not cover.
    fn content(&mut self, node: u32, call: &Call<'a>) -> Result<Vec<Segment>, Error> {
        let mut left = self.row.tokens("in", call.item.input)?;
        if left == 0 {
            return Err(self.row.error("`in` of a request is 0: there is nothing to send"));
        }
        let ids = self.ids(call);
        let shared = self.file && call.space == 0;
        let size = self.block_size;
        let (epoch, group, space) = (self.epoch, self.group, u64::from(call.space));
        let own = |part: usize| seed_of("weka request", &[epoch, group, u64::from(node), part as u64]);
        let mut segments = Vec::new();
        let mut piece = |seed: u64, blocks: usize| {
            let tokens = left.min(size.saturating_mul(blocks as u32));
            segments.push(synthetic(seed, tokens));
            left -= tokens;
        };
        if shared {
            // Other conversations may part what is together in this one.
            for (at, id) in ids.iter().enumerate() {
                let seed = match *id {
                    UNKNOWN => own(at),
                    id => seed_of("weka block", &[epoch, id]),
                };
                piece(seed, 1);
            }
        } else {
            let starts = self.runs[call.space as usize].cut(ids);
            let ends = starts.iter().skip(1).copied().chain([ids.len()]);
            for (start, end) in starts.iter().copied().zip(ends) {
                let seed = match ids[start] {
                    UNKNOWN => own(start),
                    id => seed_of("weka block", &[epoch, id, group, space]),
                };
                piece(seed, end - start);
            }
        }
        if left > 0 {
            segments.push(synthetic(own(ids.len()), left));
        }
        Ok(segments)
    }
}

#[cfg(test)]
mod tests;
