//! The flavor itself: a conversation becomes a chain of requests, with the pauses that its people
//! made.

use std::time::Duration;

use serde_json::Value;
use veeksha_plugin::conversation::{Exchange, RecordedMessage, bust_cache, chain, exchanges};
use veeksha_plugin::flavor::{
    Cell, Column, Group, HistoryMode, Layout, Replay, Row, Trace, TraceFlavor, Turn,
};
use veeksha_plugin::{Error, Nanos, Plugin, Request, Role, Session, tokens};

use crate::config::{Config, Unit};
use crate::filter::refusal;
use crate::instant::{self, Instant};
use crate::row::Cells;
use crate::times::Times;

/// An open corpus of conversations.
pub struct WildChat {
    config: Config,
    longest_thought: Duration,
    count: fn(&str) -> u32,
}

/// A request of a conversation, with what is known of it.
struct Asked {
    exchange: Exchange,
    prompt_tokens: u32,
    answer_tokens: u32,
    times: Times,
}

impl Plugin for WildChat {
    type Config = Config;
    const NAME: &'static str = "wildchat";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "conversations of WildChat's form, with the think times of their people";

    fn config_schema() -> String {
        include_str!("../schema.json").into()
    }
}

impl TraceFlavor for WildChat {
    type Row = Cells;

    fn open(config: Config) -> Result<Self, Error> {
        for (key, value) in [
            ("/max_turns", config.max_turns),
            ("/output_tokens", config.output_tokens),
        ] {
            if value == Some(0) {
                return Err(Error::config(key, "must be 1 or more"));
            }
        }
        if config.recorded_tokens_per_s.is_some_and(|rate| rate <= 0.0) {
            return Err(Error::config("/recorded_tokens_per_s", "must be above 0"));
        }
        let longest_thought = Duration::try_from_secs_f64(config.max_think_time_s).map_err(|_| {
            let why = format!(
                "must be a time of 0 seconds or more, and is {}",
                config.max_think_time_s
            );
            Error::config("/max_think_time_s", why)
        })?;
        Ok(WildChat {
            config,
            longest_thought,
            count: tokens::count,
        })
    }

    fn layout(&self) -> Layout {
        let unit = self.config.timestamp_unit;
        let time = match unit {
            Unit::DateTime => Cell::Text,
            Unit::Seconds | Unit::Milliseconds | Unit::Microseconds => Cell::Number,
        };
        Layout::new([
            Column::optional("conversation_hash", Cell::Text).or("conversation_id"),
            Column::optional("model", Cell::Text),
            Column::optional("timestamp", time),
            Column::required("conversation", Cell::Items),
            Column::optional("language", Cell::Text),
            Column::optional("toxic", Cell::Truth),
            Column::optional("redacted", Cell::Truth),
        ])
        .arrivals("timestamp", unit.into())
    }

    fn session(&self, _: &Trace<Cells>, epoch: u64, group: &Group<Cells>) -> Result<Replay, Error> {
        let row = &group.rows[0];
        if let Some(why) = refusal(&row.cells, &self.config) {
            return Err(Error {
                code: "filtered".into(),
                ..row.error(why)
            }
            .hint("`on_bad_row: skip` leaves out what the filters refuse"));
        }
        let asked = self.asked(row)?;
        let began = asked[0].times.asked;
        let arrival = arrival(row.at, self.instant(row, row.cells.timestamp.as_ref())?, began);
        let mut before = Times::default();
        let mut earlier_tokens: u32 = 0;
        let requests = asked.into_iter().map(|mut asked| {
            let wait = asked.times.think_time(before, self.longest_thought);
            before = asked.times;
            if self.config.history != HistoryMode::Fresh {
                asked.prompt_tokens = asked.prompt_tokens.saturating_add(earlier_tokens);
            }
            earlier_tokens = asked.prompt_tokens.saturating_add(asked.answer_tokens);
            self.request(asked, wait, arrival.zip(began))
        });
        let mut replay = chain(requests, self.config.history);
        bust_cache(
            &mut replay.session,
            self.config.cache_bust_tokens,
            epoch,
            group.index,
        );
        replay.session.arrives_at = arrival;
        replay.session = labelled(replay.session, &row.cells);
        Ok(replay)
    }
}

impl WildChat {
    /// The answered exchanges of a conversation, as many as are wanted; at least one.
    fn asked(&self, row: &Row<Cells>) -> Result<Vec<Asked>, Error> {
        let conversation = &row.cells.conversation;
        let messages = (1..).zip(conversation).map(|(number, value)| {
            RecordedMessage::read(value)
                .map_err(|why| row.error(format!("`conversation`, message {number}: {why}")))
        });
        let answered = exchanges(messages.collect::<Result<Vec<_>, Error>>()?)
            .into_iter()
            .filter(|exchange| exchange.answer.is_some());
        let asked: Vec<Asked> = answered
            .take(self.config.max_turns.map_or(usize::MAX, |most| most as usize))
            .map(|exchange| {
                let answer_tokens = (self.count)(&exchange.answer_text());
                let times = self.times(row, &exchange)?;
                Ok(Asked {
                    times: times.or_before_answer(answer_tokens, self.config.recorded_tokens_per_s),
                    prompt_tokens: exchange.prompt_tokens(self.count),
                    exchange,
                    answer_tokens,
                })
            })
            .collect::<Result<_, Error>>()?;
        if asked.is_empty() {
            return Err(row.error("`conversation` has no question with an answer"));
        }
        Ok(asked)
    }

    /// The recorded times of an exchange: of the last message that asks and of the last that
    /// answers.
    fn times(&self, row: &Row<Cells>, exchange: &Exchange) -> Result<Times, Error> {
        let last = |messages: &[Value], answers: bool| {
            let spoken = messages.iter().rev().find(|message| {
                let role = message["role"]
                    .as_str()
                    .and_then(veeksha_plugin::conversation::role);
                (role == Some(Role::Assistant)) == answers
            });
            self.instant(row, spoken.map(|message| &message["timestamp"]))
        };
        let conversation = &row.cells.conversation;
        Ok(Times {
            asked: last(&conversation[exchange.asked.clone()], false)?,
            answered: last(&conversation[exchange.answered.clone()], true)?,
        })
    }

    fn instant(&self, row: &Row<Cells>, value: Option<&Value>) -> Result<Option<Instant>, Error> {
        instant::read(value, self.config.timestamp_unit).map_err(|why| row.error(why))
    }

    /// `begun`: when the session arrives in the replay, and when it did in the recording.
    fn request(&self, asked: Asked, wait: Duration, begun: Option<(Nanos, Instant)>) -> (Request, Turn) {
        let request = Request {
            messages: asked.exchange.messages,
            ..Request::new(0).wait(wait)
        };
        let wanted = self.config.output_tokens.unwrap_or(asked.answer_tokens);
        let at = begun.zip(asked.times.asked).map(|((arrival, began), asked)| {
            arrival.saturating_add(u64::try_from((asked - began).max(0)).unwrap_or(u64::MAX))
        });
        let turn = Turn {
            answer: asked.exchange.answer,
            at,
            latency: asked.times.latency(),
            prompt_tokens: Some(asked.prompt_tokens),
            output_tokens: Some(asked.answer_tokens),
            ..Turn::new(0)
        };
        (self.config.output_control.ask(request, Some(wanted)), turn)
    }
}

/// When the session arrives. A row's timestamp is that of its last turn, and so the first question
/// is as much earlier as the conversation took; a conversation that began before the earliest
/// timestamp of the trace arrives at 0.
fn arrival(row: Option<Nanos>, stamped: Option<Instant>, began: Option<Instant>) -> Option<Nanos> {
    let row = row?;
    let earlier = stamped.zip(began).map_or(0, |(stamped, began)| stamped - began);
    let arrival = (Instant::from(row) - earlier).max(0);
    Some(u64::try_from(arrival).unwrap_or(u64::MAX))
}

fn labelled(session: Session, row: &Cells) -> Session {
    let labels = [
        ("conversation", &row.conversation_hash),
        ("language", &row.language),
        ("model", &row.model),
    ];
    labels
        .into_iter()
        .fold(session, |session, (name, value)| match value {
            Some(value) => session.label(name, value),
            None => session,
        })
}

#[cfg(test)]
mod tests;
