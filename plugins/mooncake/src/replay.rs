//! The rows of a session into its requests.

use serde_json::{Map, Value};
use veeksha_plugin::flavor::{Group, HistoryMode, Layout, Replay, Row, TimeUnit, Trace, TraceFlavor, Turn};
use veeksha_plugin::{
    Error, LastBlock, Message, Plugin, Request, Role, Segment, Session, blocks, seed_of, synthetic,
};

use crate::config::{Config, History};
use crate::content::{self, Prompt};
use crate::order::{self, Place};
use crate::row::{Cells, columns};

/// An open flavor.
pub struct Mooncake {
    config: Config,
}

impl Plugin for Mooncake {
    type Config = Config;
    const NAME: &'static str = "mooncake";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str =
        "Mooncake's traces of hash blocks, with the columns that Dynamo and AIPerf added";

    fn config_schema() -> String {
        include_str!("../schema.json").into()
    }
}

impl TraceFlavor for Mooncake {
    type Row = Cells;

    fn open(config: Config) -> Result<Self, Error> {
        if config.block_size == 0 {
            return Err(Error::config("/block_size", "a block has at least one token"));
        }
        Ok(Mooncake { config })
    }

    fn layout(&self) -> Layout {
        Layout::new(columns())
            .grouped_by("session_id")
            .arrivals("timestamp", TimeUnit::Milliseconds)
    }

    fn session(&self, _: &Trace<Cells>, epoch: u64, group: &Group<Cells>) -> Result<Replay, Error> {
        for row in &group.rows {
            Cells::check_format(row)?;
        }
        let (begin, places) = order::places(group)?;
        let session = Rows {
            config: &self.config,
            epoch,
            group,
            scopes: scopes(group, &places),
            places,
        };
        let mut requests = Vec::with_capacity(group.rows.len());
        let mut turns = Vec::with_capacity(group.rows.len());
        for (node, row) in (0u32..).zip(&group.rows) {
            let (request, turn) = session.turn(node, row)?;
            requests.push(request);
            turns.push(turn);
        }
        let mut session = Session::new(requests);
        session.arrives_at = begin;
        if !group.key.is_empty() {
            session = session.label("session_id", &group.key);
        }
        Ok(Replay::new(session, turns))
    }
}

/// The rows of one session.
struct Rows<'a> {
    config: &'a Config,
    epoch: u64,
    group: &'a Group<Cells>,
    places: Vec<Place>,
    scopes: Vec<u32>,
}

impl Rows<'_> {
    fn turn(&self, node: u32, row: &Row<Cells>) -> Result<(Request, Turn), Error> {
        let place = &self.places[node as usize];
        let mut request = place
            .parents
            .iter()
            .fold(Request::new(node), |request, parent| request.after(*parent));
        request = request.wait(place.wait);
        let mut body = row.cells.extra.clone().unwrap_or_default();
        let continued = self.continued(node, row)?;
        let prompt = Prompt::of(row)?;
        request = match &prompt {
            Prompt::Length(tokens) => {
                let content = match continued {
                    Some(parent) => vec![synthetic(self.own(row), self.new_tokens(row, *tokens, parent)?)],
                    None => self.whole(node, row, *tokens)?,
                };
                request.message(Message::new(Role::User, content))
            }
            Prompt::Text(text) => request.user(*text),
            Prompt::Messages(messages) => content::messages(row, messages, &mut body, request)?,
            Prompt::Payload(payload) => content::payload(payload, &mut body, request),
        };
        if let Some(tools) = &row.cells.tools {
            body.insert("tools".into(), Value::Array(tools.clone()));
        }
        let output = output(row)?;
        if let Some(output) = output {
            request = request.output_exactly(output.max(1));
        }
        request.history_parent = continued;
        let turn = Turn {
            history: match continued {
                Some(_) => HistoryMode::Live,
                None => HistoryMode::Fresh,
            },
            at: row.at,
            prompt_tokens: match prompt {
                Prompt::Length(tokens) => Some(tokens),
                _ => None,
            },
            output_tokens: output,
            ..Turn::new(node)
        };
        Ok((row.cells.label(with_body(request, body)), turn))
    }

    /// The row whose conversation a row continues with its real answers.
    fn continued(&self, node: u32, row: &Row<Cells>) -> Result<Option<u32>, Error> {
        let whole = matches!(Prompt::of(row)?, Prompt::Messages(_) | Prompt::Payload(_));
        match self.config.history {
            History::Live if !whole && !row.cells.prefix_reset => {
                Ok(self.places[node as usize].parents.first().copied())
            }
            _ => Ok(None),
        }
    }

    /// A whole prompt, of the blocks that the row names.
    fn whole(&self, node: u32, row: &Row<Cells>, tokens: u32) -> Result<Vec<Segment>, Error> {
        if tokens == 0 {
            return Err(row.error("`input_length` is 0: there is nothing to send"));
        }
        let scope = self.scopes[node as usize];
        let block = |id| match scope {
            0 => seed_of("mooncake block", &[self.epoch, id]),
            scope => seed_of(
                "mooncake block",
                &[self.epoch, id, self.group.index, u64::from(scope)],
            ),
        };
        let (ids, size) = (&row.cells.hash_ids, self.config.block_size);
        blocks(ids, size, tokens, LastBlock::Partial, block, self.own(row))
            .map_err(|why| row.error(format!("`hash_ids` do not fit `input_length`: {why}")))
    }

    /// The part of a row's prompt beyond the conversation that it continues.
    fn new_tokens(&self, row: &Row<Cells>, tokens: u32, parent: u32) -> Result<u32, Error> {
        let before = &self.group.rows[parent as usize];
        let (Prompt::Length(input), Some(output)) = (Prompt::of(before)?, output(before)?) else {
            return Err(row.error(format!(
                "it continues row {}, which does not have both `input_length` and `output_length`",
                before.number
            )));
        };
        let so_far = u64::from(input) + u64::from(output.max(1));
        let new = u64::from(tokens).checked_sub(so_far).filter(|new| *new > 0);
        new.map(|new| new as u32).ok_or_else(|| {
            let error = row.error(format!(
                "`input_length` is {tokens}, no more than the {so_far} tokens of the conversation that it continues (row {})",
                before.number
            ));
            error.hint("set `history` of the flavor to `fresh`: each turn then sends its whole prompt")
        })
    }

    /// The seed of text that no other row has.
    fn own(&self, row: &Row<Cells>) -> u64 {
        seed_of("mooncake row", &[self.epoch, row.number])
    }
}

fn output(row: &Row<Cells>) -> Result<Option<u32>, Error> {
    let tokens = row
        .cells
        .output_length
        .map(|tokens| row.tokens("output_length", tokens));
    tokens.transpose()
}

fn with_body(request: Request, body: Map<String, Value>) -> Request {
    if body.is_empty() {
        request
    } else {
        request.body(Value::Object(body).to_string())
    }
}

/// The scope of each row's block ids: 0 is the whole file; after a reset of the
/// prefix, something else, for the row and all that continue it.
fn scopes(group: &Group<Cells>, places: &[Place]) -> Vec<u32> {
    let mut scopes: Vec<u32> = Vec::with_capacity(places.len());
    for node in 0..places.len() {
        let mut origin = node;
        // A parent may stand after its child, and what waits for itself is refused by the host, not
        // here.
        let scope = (0..places.len()).find_map(|_| {
            let parent = places[origin].parents.first();
            match parent {
                _ if group.rows[origin].cells.prefix_reset => Some(origin as u32 + 1),
                None => Some(0),
                Some(parent) if (*parent as usize) < scopes.len() => Some(scopes[*parent as usize]),
                Some(parent) => {
                    origin = *parent as usize;
                    None
                }
            }
        });
        scopes.push(scope.unwrap_or(0));
    }
    scopes
}

#[cfg(test)]
mod tests;
