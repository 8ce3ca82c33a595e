//! Replays the log of a gateway: each row of a CSV file is a request.

use veeksha_plugin::flavor::{
    Cell, Column, Group, Layout, Replay, TimeUnit, Trace, TraceFlavor, Turn,
};
use veeksha_plugin::{Error, Plugin, Request, Session, seed_of, synthetic};

#[derive(serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct GatewayLog {
    /// Tokens of the system prompt that all requests share, part of their input.
    system_tokens: u32,
}

impl Default for GatewayLog {
    fn default() -> Self {
        GatewayLog { system_tokens: 50 }
    }
}

/// The cells of a row, which the host has checked against the layout.
#[derive(serde::Deserialize)]
struct Row {
    input_tokens: u32,
    output_tokens: u32,
    tenant: String,
}

impl Plugin for GatewayLog {
    type Config = Self;
    const NAME: &'static str = "gateway_log";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "one request for each row of the log of a gateway";
}

impl TraceFlavor for GatewayLog {
    type Row = Row;

    fn open(config: Self) -> Result<Self, Error> {
        Ok(config)
    }

    fn layout(&self) -> Layout {
        Layout::new([
            Column::required("input_tokens", Cell::Count).or("prompt_tokens"),
            Column::required("output_tokens", Cell::Count).or("completion_tokens"),
            Column::required("tenant", Cell::Text),
            Column::required("time", Cell::Number),
        ])
        .arrivals("time", TimeUnit::Seconds)
    }

    fn session(
        &self,
        _trace: &Trace<Row>,
        epoch: u64,
        group: &Group<Row>,
    ) -> Result<Replay, Error> {
        let row = &group.rows[0];
        let prompt = row.positive("input_tokens", row.cells.input_tokens)?;
        // A different text for each row, and for each repetition of the trace.
        let question = synthetic(
            seed_of("question", &[epoch, row.number]),
            prompt.saturating_sub(self.system_tokens).max(1),
        );
        let request = Request::new(0)
            .system(synthetic(seed_of("system", &[]), self.system_tokens.max(1)))
            .user(question)
            .output_exactly(row.cells.output_tokens)
            .label("tenant", &row.cells.tenant);
        let turn = Turn {
            output_tokens: Some(row.cells.output_tokens),
            ..Turn::new(0)
        };
        Ok(Replay::new(
            Session {
                arrives_at: row.at,
                ..request.into()
            },
            [turn],
        ))
    }
}

veeksha_plugin::export_trace_flavor!(GatewayLog);
