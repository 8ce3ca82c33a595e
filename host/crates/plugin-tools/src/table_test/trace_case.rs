//! Tests of flavors: the sessions of a trace.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use veeksha_app::{CommandFailure, traces};
use veeksha_trace::{BadRowRule, CheckExtent, OpenTrace, Order, TraceError, TraceOptions};

use super::format::TestCase;
use super::session_case::{CaseFailure, CaseResult, play};
use super::session_view::{sessions_json, sessions_view};
use crate::opened::{OpenError, OpenedPlugin, PluginSettings};
use crate::play::AnswerScript;

/// Maximum length of a row, in bytes.
const MAX_ROW_BYTES: usize = 16 << 20;

/// Makes the sessions of a test's trace. Without `sessions`, those of one pass.
pub(crate) fn flavor(
    plugin: &OpenedPlugin,
    settings: &PluginSettings,
    folder: &Path,
    case: &TestCase,
) -> Result<CaseResult, CaseFailure> {
    let rows = RowsFile::of(case)?;
    let path = match (&rows, &case.trace) {
        (Some(rows), _) => rows.0.path().to_owned(),
        (None, Some(trace)) => folder.join(trace),
        (None, None) => {
            return Err(CaseFailure::Test(
                "a test of a flavor needs `rows` or `trace`".to_owned(),
            ));
        }
    };
    let opened = open(plugin, settings, path).map_err(trace_failure)?;
    let one_pass = || (0..opened.sessions_per_epoch()).collect();
    let indices = case
        .sessions
        .as_ref()
        .map_or_else(one_pass, |choice| choice.indices());
    let mut workload = opened.factory().open_silent()?;
    let played = play(
        plugin.host().tokenizer(),
        &mut workload,
        &indices,
        &AnswerScript::default(),
    )?;
    Ok(CaseResult {
        value: sessions_view(&played)?,
        snapshot: sessions_json(&played)?,
    })
}

/// The reason why a trace cannot be opened.
pub(crate) enum TraceFailure {
    Open(OpenError),
    Trace(Box<TraceError>),
}

/// Opens a trace with a flavor, in the order of the file.
pub(crate) fn open(
    plugin: &OpenedPlugin,
    settings: &PluginSettings,
    path: PathBuf,
) -> Result<OpenTrace, TraceFailure> {
    let flavor = plugin.flavor(settings).map_err(TraceFailure::Open)?;
    let options = TraceOptions {
        path,
        columns: BTreeMap::new(),
        on_bad_row: BadRowRule::Refuse,
        check: CheckExtent::Auto,
        max_row_bytes: MAX_ROW_BYTES,
        order: Order::File,
        wrap: true,
        seed: settings.seed,
        scratch: None,
    };
    veeksha_trace::open(options, flavor).map_err(|error| TraceFailure::Trace(Box::new(error)))
}

fn trace_failure(failure: TraceFailure) -> CaseFailure {
    match failure {
        TraceFailure::Open(error) => error.into(),
        TraceFailure::Trace(error) => match *error {
            TraceError::Plugin(failure) => failure.into(),
            error => traces::failure(error).into(),
        },
    }
}

impl From<TraceFailure> for CommandFailure {
    fn from(failure: TraceFailure) -> Self {
        match failure {
            TraceFailure::Open(error) => error.into(),
            TraceFailure::Trace(error) => traces::failure(*error),
        }
    }
}

/// The rows of a test as a file, which is removed when this is dropped.
struct RowsFile(tempfile::NamedTempFile);

impl RowsFile {
    fn of(case: &TestCase) -> Result<Option<Self>, CaseFailure> {
        if case.rows.is_empty() {
            return Ok(None);
        }
        let write = || {
            let mut file = tempfile::Builder::new().suffix(".jsonl").tempfile()?;
            for row in &case.rows {
                writeln!(file, "{}", serde_json::to_string(row)?)?;
            }
            file.flush()?;
            Ok(file)
        };
        let file = write().map_err(|error: std::io::Error| {
            CommandFailure::internal(format!("cannot write the rows of the test: {error}"))
        })?;
        Ok(Some(RowsFile(file)))
    }
}
