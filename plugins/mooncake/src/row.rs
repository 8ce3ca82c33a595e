//! A row, with the columns of Mooncake, of Dynamo and of AIPerf.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use veeksha_plugin::flavor::{Cell, Column, Row};
use veeksha_plugin::{Error, Request};

/// The columns that are read.
pub(crate) fn columns() -> Vec<Column> {
    vec![
        Column::optional("timestamp", Cell::Number).or("created_time"),
        Column::optional("input_length", Cell::Count).or("input_tokens"),
        Column::optional("output_length", Cell::Count).or("output_tokens"),
        Column::optional("hash_ids", Cell::Items),
        // Dynamo's.
        Column::optional("session_id", Cell::Text),
        Column::optional("request_id", Cell::Text),
        Column::optional("delay", Cell::Number).or("delay_ms"),
        Column::optional("wait_for", Cell::Items),
        Column::optional("tool_wait_ms", Cell::Number),
        Column::optional("tool_events", Cell::Items),
        Column::optional("prefix_reset", Cell::Truth),
        Column::optional("request_kind", Cell::Text),
        Column::optional("model", Cell::Text),
        Column::optional("priority", Cell::Integer),
        Column::optional("strict_priority", Cell::Count),
        Column::optional("policy_class", Cell::Text),
        // The mark of Dynamo's newer format.
        Column::optional("schema", Cell::Text),
        Column::optional("play_id", Cell::Text),
        Column::optional("dependencies", Cell::Items),
        // AIPerf's.
        Column::optional("text_input", Cell::Text),
        Column::optional("messages", Cell::Items),
        Column::optional("tools", Cell::Items),
        Column::optional("payload", Cell::Members),
        Column::optional("extra", Cell::Members),
    ]
}

/// A row.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Cells {
    pub(crate) input_length: Option<u64>,
    pub(crate) output_length: Option<u64>,
    pub(crate) hash_ids: Vec<u64>,
    pub(crate) request_id: Option<String>,
    pub(crate) delay: Option<f64>,
    pub(crate) wait_for: Option<Vec<Name>>,
    pub(crate) tool_wait_ms: Option<f64>,
    pub(crate) tool_events: Vec<ToolEvent>,
    pub(crate) prefix_reset: bool,
    request_kind: Option<String>,
    model: Option<String>,
    priority: Option<i64>,
    strict_priority: Option<u64>,
    policy_class: Option<String>,
    schema: Option<String>,
    play_id: Option<String>,
    dependencies: Option<Vec<Value>>,
    pub(crate) text_input: Option<String>,
    pub(crate) messages: Option<Vec<Map<String, Value>>>,
    pub(crate) tools: Option<Vec<Value>>,
    pub(crate) payload: Option<Map<String, Value>>,
    pub(crate) extra: Option<Map<String, Value>>,
}

/// The id of a request: text, or a number that is taken as its digits.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Name {
    Number(i64),
    Text(String),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Number(number) => number.fmt(f),
            Name::Text(text) => text.fmt(f),
        }
    }
}

/// A call of a tool between two turns.
#[derive(Debug, Deserialize)]
pub(crate) struct ToolEvent {
    started_at_unix_ms: Option<f64>,
    ended_at_unix_ms: Option<f64>,
    duration_ms: Option<f64>,
}

impl Cells {
    /// Refuses rows of Dynamo's versioned agentic format, which look like Mooncake's and mean
    /// something else.
    pub(crate) fn check_format(row: &Row<Self>) -> Result<(), Error> {
        let cells = &row.cells;
        if let Some(schema) = &cells.schema {
            let error = row.error(format!(
                "this is the header of another format, `{schema}`, and no request"
            ));
            return Err(error.hint(
                "where the rows after it have `input_length` and `hash_ids`, remove it or set `on_bad_row` to `skip`, \
                 and set `block_size` of the flavor to the header's",
            ));
        }
        let newer = [
            ("play_id", cells.play_id.is_some()),
            ("dependencies", cells.dependencies.is_some()),
        ];
        if let Some((name, _)) = newer.iter().find(|(_, there)| *there) {
            let error = row.error(format!(
                "`{name}` belongs to `dynamo.agentic_mooncake`, which this flavor does not read"
            ));
            return Err(error.hint("export rows with `session_id`, `wait_for` and `delay`"));
        }
        Ok(())
    }

    /// The wait of the turn once everything that it waits for is answered: `delay`, and the
    /// tools. `None` where the row has neither.
    pub(crate) fn wait(row: &Row<Self>) -> Result<Option<Duration>, Error> {
        let delay = row.cells.delay.map(|delay| row.milliseconds("delay", delay));
        let (delay, tools) = (delay.transpose()?, Self::tools(row)?);
        Ok(match (delay, tools) {
            (Some(delay), Some(tools)) => Some(delay + tools),
            (delay, tools) => delay.or(tools),
        })
    }

    /// `tool_wait_ms`; without it, what the tool events took: from the first start to the last end
    /// where all of them say so, else the longest of their durations, for tools of one turn run
    /// side by side.
    fn tools(row: &Row<Self>) -> Result<Option<Duration>, Error> {
        if let Some(wait) = row.cells.tool_wait_ms {
            return row.milliseconds("tool_wait_ms", wait).map(Some);
        }
        let events = &row.cells.tool_events;
        let spans: Option<Vec<_>> = events
            .iter()
            .map(|event| event.started_at_unix_ms.zip(event.ended_at_unix_ms))
            .collect();
        let took = match spans {
            Some(spans) => {
                let start = spans.iter().map(|(start, _)| *start).reduce(f64::min);
                let end = spans.iter().map(|(_, end)| *end).reduce(f64::max);
                start.zip(end).map(|(start, end)| end - start)
            }
            None => events
                .iter()
                .filter_map(|event| event.duration_ms)
                .reduce(f64::max),
        };
        took.map(|took| row.milliseconds("tool_events", took)).transpose()
    }

    /// Adds the row's labels to its request.
    pub(crate) fn label(&self, mut request: Request) -> Request {
        let labels = [
            ("request_id", self.request_id.clone()),
            ("request_kind", self.request_kind.clone()),
            ("model", self.model.clone()),
            ("priority", self.priority.map(|number| number.to_string())),
            (
                "strict_priority",
                self.strict_priority.map(|number| number.to_string()),
            ),
            ("policy_class", self.policy_class.clone()),
        ];
        for (name, value) in labels {
            if let Some(value) = value {
                request = request.label(name, value);
            }
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::row;

    fn wait(cells: &str) -> Result<Option<Duration>, String> {
        Cells::wait(&row(3, cells)).map_err(|error| error.message)
    }

    #[test]
    fn a_wait_is_the_delay_and_the_tools() {
        let millis = |millis| Ok(Some(Duration::from_millis(millis)));
        assert_eq!(wait("{}"), Ok(None));
        assert_eq!(wait(r#"{"delay": 250}"#), millis(250));
        assert_eq!(
            wait(r#"{"delay": 250, "tool_wait_ms": 30.5}"#),
            Ok(Some(Duration::from_micros(280_500)))
        );
    }

    #[test]
    fn tool_events_count_where_no_tool_wait_is_given() {
        let spans = r#"{"started_at_unix_ms": 1000, "ended_at_unix_ms": 1400, "duration_ms": 400},
                       {"started_at_unix_ms": 1300, "ended_at_unix_ms": 1900, "duration_ms": 600}"#;
        assert_eq!(
            wait(&format!(r#"{{"tool_events": [{spans}]}}"#)),
            Ok(Some(Duration::from_millis(900)))
        );
        assert_eq!(
            wait(&format!(r#"{{"tool_wait_ms": 5, "tool_events": [{spans}]}}"#)),
            Ok(Some(Duration::from_millis(5)))
        );
        let partly = format!(r#"{{"delay": 1, "tool_events": [{spans}, {{"duration_ms": 700}}]}}"#);
        assert_eq!(wait(&partly), Ok(Some(Duration::from_millis(701))));
        assert_eq!(wait(r#"{"tool_events": [{"status": "ok"}]}"#), Ok(None));
    }

    #[test]
    fn negative_times_are_refused_by_name() {
        assert_eq!(
            wait(r#"{"delay": -1}"#).unwrap_err(),
            "row 3: `delay` is -1, not a time from 0 milliseconds to 104 days"
        );
        let backwards = r#"{"tool_events": [{"started_at_unix_ms": 9, "ended_at_unix_ms": 4}]}"#;
        assert!(
            wait(backwards)
                .unwrap_err()
                .starts_with("row 3: `tool_events` is -5")
        );
    }

    #[test]
    fn rows_of_the_versioned_format_are_recognised() {
        let header = r#"{"schema": "dynamo.agentic_mooncake", "version": 2, "block_size": 64}"#;
        let error = Cells::check_format(&row(1, header)).unwrap_err();
        assert_eq!(
            error.message,
            "row 1: this is the header of another format, `dynamo.agentic_mooncake`, and no request"
        );
        assert!(error.hint.unwrap().contains("`block_size`"));
        let error = Cells::check_format(&row(2, r#"{"play_id": "p", "dependencies": []}"#)).unwrap_err();
        assert!(
            error
                .message
                .contains("`play_id` belongs to `dynamo.agentic_mooncake`")
        );
        assert_eq!(Cells::check_format(&row(2, "{}")), Ok(()));
    }
}
