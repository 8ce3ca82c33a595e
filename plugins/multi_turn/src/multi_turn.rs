//! The flavor itself: each turn is a request that continues the one before it.

use serde::Deserialize;
use serde_json::Value;
use veeksha_plugin::conversation::{answer_text, bust_cache, chain, continue_answer};
use veeksha_plugin::flavor::{
    Answer, Cell, Column, Group, Layout, Replay, Row, TimeUnit, Trace, TraceFlavor, Turn,
};
use veeksha_plugin::{Error, Message, Nanos, Plugin, Request, tokens};

use crate::clock::Clock;
use crate::config::Config;
use crate::row::Cells;
use crate::turns::{Part, Written};

/// An open list of conversations.
pub struct MultiTurn {
    config: Config,
    count: fn(&str) -> u32,
}

/// A request, before its answer is known.
struct Asked {
    request: Request,
    at: Option<Nanos>,
    answer: Option<Answer>,
    /// The length of the answer, where the file gives it.
    length: Option<u32>,
}

impl Plugin for MultiTurn {
    type Config = Config;
    const NAME: &'static str = "multi_turn";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "AIPerf's conversations of several turns, with messages of any role";

    fn config_schema() -> String {
        include_str!("../schema.json").into()
    }
}

impl TraceFlavor for MultiTurn {
    type Row = Cells;

    fn open(config: Config) -> Result<Self, Error> {
        if config.output_tokens == Some(0) {
            return Err(Error::config("/output_tokens", "must be 1 or more"));
        }
        Ok(MultiTurn {
            config,
            count: tokens::count,
        })
    }

    fn layout(&self) -> Layout {
        Layout::new([
            Column::optional("session_id", Cell::Text),
            Column::required("turns", Cell::Items),
            Column::optional("timestamp", Cell::Number),
        ])
        .grouped_by("session_id")
        .arrivals("timestamp", TimeUnit::Milliseconds)
    }

    fn session(&self, trace: &Trace<Cells>, epoch: u64, group: &Group<Cells>) -> Result<Replay, Error> {
        let mut asked = Vec::new();
        for row in &group.rows {
            self.read(row, trace, &mut asked)?;
        }
        let arrival = asked.first().and_then(|first| first.at);
        let mut replay = chain(
            asked.into_iter().map(|asked| self.finished(asked)),
            self.config.history,
        );
        bust_cache(
            &mut replay.session,
            self.config.cache_bust_tokens,
            epoch,
            group.index,
        );
        replay.session.arrives_at = group.rows[0].at.or(arrival);
        if !group.key.is_empty() {
            replay.session = replay.session.label("conversation", &group.key);
        }
        Ok(replay)
    }
}

impl MultiTurn {
    /// Adds the requests of a row to those of its session.
    fn read(&self, row: &Row<Cells>, trace: &Trace<Cells>, asked: &mut Vec<Asked>) -> Result<(), Error> {
        let clock = Clock::of_row(row, trace.first_row(), self.config.timestamp_origin_ms);
        let before = asked.len();
        let mut preface: Vec<Message> = Vec::new();
        for (number, value) in (1..).zip(&row.cells.turns) {
            let invalid = |why: String| row.error(format!("`turns`, turn {number}: {why}"));
            let turn = Written::deserialize(value).map_err(|error| invalid(error.to_string()))?;
            match turn.part().map_err(invalid)? {
                Part::Preface(message) => preface.push(message),
                Part::Request(messages, answer) => {
                    preface.extend(messages);
                    asked.push(request(row, &clock, &turn, std::mem::take(&mut preface), answer)?);
                }
                Part::Answer(answer) => match asked.last_mut() {
                    Some(last) if preface.is_empty() => continue_answer(&mut last.answer, answer),
                    _ => return Err(invalid("an answer before any request".into())),
                },
            }
        }
        if !preface.is_empty() {
            return Err(row.error("`turns` ends with a system message that no request follows"));
        }
        if asked.len() == before {
            return Err(row.error("`turns` has no request"));
        }
        Ok(())
    }

    /// The request, asking for as many tokens as is known of its answer.
    fn finished(&self, asked: Asked) -> (Request, Turn) {
        let answered = asked
            .answer
            .as_ref()
            .map(|answer| (self.count)(&answer_text(answer)));
        let wanted = asked.length.or(self.config.output_tokens).or(answered);
        let turn = Turn {
            at: asked.at,
            answer: asked.answer,
            output_tokens: asked.length.or(answered),
            ..Turn::new(0)
        };
        (self.config.output_control.ask(asked.request, wanted), turn)
    }
}

fn request(
    row: &Row<Cells>,
    clock: &Clock,
    turn: &Written,
    messages: Vec<Message>,
    answer: Option<Answer>,
) -> Result<Asked, Error> {
    let mut request = Request {
        messages,
        ..Request::new(0)
    };
    if let Some(delay) = turn.delay {
        request = request.wait(row.milliseconds("delay", delay)?);
    }
    if let Some(extra) = &turn.extra {
        request = request.body(Value::Object(extra.clone()).to_string());
    }
    let length = turn
        .output_length
        .map(|length| row.tokens("output_length", length))
        .transpose()?;
    if length == Some(0) {
        return Err(row.error("an `output_length` is 0; an answer has at least one token"));
    }
    Ok(Asked {
        request,
        at: clock.sent(row, turn)?,
        answer,
        length,
    })
}

#[cfg(test)]
mod tests;
