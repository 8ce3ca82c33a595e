//! Export of a run as AIPerf's files.

use veeksha_events::Event;
use veeksha_model::Nanos;

use super::files::{self, AiperfFiles, AiperfInfo, ExportMetadata};
use super::row;
use super::state::AiperfState;
use crate::options::{OptionsError, ViewOptions};
use crate::tokens::TokenCounts;
use crate::tool::Tool;

/// Produces AIPerf's files of a run: `profile_export_aiperf.json`, `.csv`, `profile_export.jsonl`
/// and, on request, the time slices.
///
/// Keeps about 250 bytes per request and four per gap between chunks.
#[derive(Debug)]
pub struct AiperfExport {
    info: AiperfInfo,
    state: AiperfState,
    tokens: TokenCounts,
}

impl AiperfExport {
    /// Creates an export of an empty run.
    ///
    /// # Errors
    ///
    /// Returns an error if a goodput threshold names an unknown metric, is repeated, negative or
    /// not a number.
    pub fn new(info: AiperfInfo) -> Result<Self, OptionsError> {
        let options = ViewOptions {
            goodput: info.goodput.clone(),
            ..ViewOptions::default()
        };
        options.check(Tool::Aiperf)?;
        Ok(AiperfExport {
            info,
            state: AiperfState::default(),
            tokens: TokenCounts::default(),
        })
    }

    /// Sets the length of the time slices, in nanoseconds, which may be known only at the end.
    pub fn with_slices(mut self, length: Nanos) -> Self {
        self.info.slice = Some(length);
        self
    }

    /// Processes an event.
    pub fn on(&mut self, event: &Event) {
        if let Event::Finished(record) = event
            && record.measured
        {
            self.tokens.take(record);
        }
        self.state.on(event);
    }

    /// Returns the line of `profile_export.jsonl`, with its line end, for a finished and measured
    /// request; `None` for other events. It depends only on the start of the run, so lines can be
    /// written immediately.
    pub fn jsonl_line(&self, event: &Event) -> Option<Vec<u8>> {
        match event {
            Event::Finished(record) if record.measured => Some(row::line(
                record,
                self.state.run_id.as_deref(),
                self.state.epoch,
                &self.info.goodput,
            )),
            _ => None,
        }
    }

    /// Returns the files. A truncated run gives files of what exists, marked as incomplete.
    pub fn finish(self) -> AiperfFiles {
        let AiperfExport { info, state, tokens } = self;
        let metrics = state.metrics(&info.goodput);
        let slices = info.slice.filter(|&slice| slice > 0).map(|slice| {
            files::slices(
                &state.slices(slice, &info.goodput),
                state.epoch,
                &info.input_config,
            )
        });
        let frame = ExportMetadata {
            info: &info,
            epoch: state.epoch,
            end: state.end,
            interrupted: state.interrupted,
            ended: state.ended,
            errors: state.error_summary(),
        };
        AiperfFiles {
            json: files::json(&metrics, &frame),
            csv: files::csv(&metrics),
            timeslices: slices,
            remarks: tokens.note(info.tokenizer.as_deref()).into_iter().collect(),
        }
    }
}
