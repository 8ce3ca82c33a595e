//! Opening of a scenario's trace: options, order, salt.

use std::sync::Arc;
use std::time::Duration;

use veeksha_ports::{PluginFailure, PluginFailureKind};
use veeksha_prompt::{Materializer, Tokenizer};
use veeksha_scenario::{FixedSchedule, OnBadRow, RowCheck, Salt, SaltName, Scenario, Shuffle, TraceKeys};
use veeksha_stats::RandomStream;
use veeksha_trace::{BadRow, CheckExtent, OpenTrace, Order, RowProblem, TraceError, TraceOptions};

use crate::execution::mode::Mode;
use crate::failure::CommandFailure;
use crate::scenario::source::Loaded;
use crate::workload::flavors;
use crate::workload::validated_flavor;

/// Maximum number of skipped rows that are listed.
const LISTED: usize = 5;

/// Opens the trace of a scenario with its flavor. Skipped rows become a note.
pub fn open(
    loaded: &Loaded,
    trace: &veeksha_scenario::Trace,
    tokenizer: &Tokenizer,
    materializer: &Arc<Materializer>,
    notes: &mut Vec<String>,
) -> Result<OpenTrace, CommandFailure> {
    let flavor = flavors::factory(loaded, &trace.flavor, tokenizer)?;
    let flavor = validated_flavor::validated(flavor, materializer.clone());
    let opened = veeksha_trace::open(options(loaded, &trace.keys), flavor).map_err(failure)?;
    let skipped = opened.skipped();
    if skipped.total > 0 {
        let mut note = format!(
            "{} of the trace skipped (on_bad_row is `skip`):",
            veeksha_stats::counted(skipped.total, "row")
        );
        for row in skipped.listed.iter().take(LISTED) {
            note.push_str(&format!("\n  {row}"));
        }
        if skipped.total > LISTED as u64 {
            note.push_str(&format!("\n  and {} more", skipped.total - LISTED as u64));
        }
        notes.push(note);
    }
    Ok(opened)
}

/// Converts the error of a trace that cannot be read.
pub fn failure(error: TraceError) -> CommandFailure {
    const SKIP: &str = "set session_generator.on_bad_row: skip to skip such rows";
    match error {
        // A flavor that rejects a row is not faulty.
        TraceError::Plugin(failure) if is_about_rows(&failure) => {
            let hint = match &failure.kind {
                PluginFailureKind::Refused { hint: Some(hint), .. } => hint.clone(),
                _ => SKIP.to_owned(),
            };
            CommandFailure::usage(refusal(&failure)).hinted(hint)
        }
        // Neither is one that rejects its configuration.
        TraceError::Plugin(failure) if matches!(failure.kind, PluginFailureKind::Refused { .. }) => {
            let mut refused = CommandFailure::from(failure);
            refused.code = veeksha_exit::USAGE;
            refused
        }
        // A session that cannot be sent may be caused by its row.
        TraceError::Plugin(failure) if matches!(failure.kind, PluginFailureKind::Result) => {
            CommandFailure::from(failure).hinted(SKIP)
        }
        TraceError::Plugin(failure) => failure.into(),
        TraceError::BadRow(BadRow {
            problem: RowProblem::NoArrival { .. },
            ..
        }) => CommandFailure::usage(&error).hinted(
            "traffic of type `rate` or `concurrent` needs no arrivals; `columns` renames the column with them",
        ),
        TraceError::BadRow(_) => CommandFailure::usage(&error).hinted(SKIP),
        other => CommandFailure::usage(other),
    }
}

fn is_about_rows(failure: &PluginFailure) -> bool {
    failure.function == "flavor.sessions" && matches!(failure.kind, PluginFailureKind::Refused { .. })
}

/// Describes a rejection by a flavor: the location in the trace, and the reason.
fn refusal(failure: &PluginFailure) -> String {
    // Only the rows; the rest of the input is relevant only to the author of the flavor.
    let input = failure.input.as_deref().unwrap_or("the trace");
    let place = input.split(';').next().unwrap_or(input);
    format!("{place}: the flavor `{}`: {}", failure.plugin, failure.message)
}

fn options(loaded: &Loaded, keys: &TraceKeys) -> TraceOptions {
    let scenario = &loaded.scenario;
    let schedule = scenario.traffic_scheduler.recorded_arrivals();
    TraceOptions {
        path: loaded.folder().join(&keys.trace_file),
        columns: keys.columns.clone(),
        on_bad_row: match keys.on_bad_row {
            OnBadRow::Error => veeksha_trace::BadRowRule::Refuse,
            OnBadRow::Skip => veeksha_trace::BadRowRule::Skip,
        },
        check: match keys.check {
            RowCheck::Auto => CheckExtent::Auto,
            RowCheck::Whole => CheckExtent::Whole,
            RowCheck::Rows => CheckExtent::Rows,
        },
        max_row_bytes: (keys.max_row_mib as usize) << 20,
        order: match schedule {
            Some(schedule) => by_arrival(schedule),
            None => match keys.shuffle {
                Shuffle::Never => Order::File,
                Shuffle::Wrapped => Order::ShuffledAfterFirst,
                Shuffle::Always => Order::Shuffled,
            },
        },
        wrap: keys.wrap_mode.unwrap_or(schedule.is_none()),
        seed: scenario.seed,
        scratch: None,
    }
}

fn by_arrival(schedule: &FixedSchedule) -> Order {
    let nanos = |seconds: f64| {
        let instant = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        u64::try_from(instant.as_nanos()).unwrap_or(u64::MAX)
    };
    Order::ByArrival {
        start: schedule.start.map(nanos),
        end: schedule.end.map(nanos),
    }
}

/// Returns true if the warm-up requests of the flavor are sent.
pub(crate) fn warms_up(scenario: &Scenario) -> bool {
    match &scenario.session_generator {
        veeksha_scenario::Generator::Trace(trace) => trace.keys.warmup,
        _ => false,
    }
}

/// Upper bound of salts: every integer below 2^53 is exact in all readers of `config.yml`.
const SALT_RANGE: u64 = 1 << 53;

/// Returns the salt of the run's text. A salt per run is drawn here and set in the scenario, so
/// that `config.yml` contains it.
pub(crate) fn salt(scenario: &mut Scenario, mode: Mode, notes: &mut Vec<String>) -> Option<u64> {
    let seed = scenario.seed;
    let veeksha_scenario::Generator::Trace(trace) = &mut scenario.session_generator else {
        return None;
    };
    let drawn = match (trace.keys.salt, mode) {
        (Salt::Named(SaltName::Off), _) => return None,
        (Salt::Fixed(salt), _) => salt,
        (Salt::Named(SaltName::Run), Mode::Run(shard)) if shard.0.count <= 1 => {
            drawn_from(veeksha_clock::wall_nanos() ^ u64::from(std::process::id()).rotate_left(32))
        }
        (Salt::Named(SaltName::Run), Mode::Run(_)) => {
            notes.push(
                "the shards of a run share their text, so its salt comes from the seed; set another \
                 `session_generator.salt` to avoid hits in the cache of an earlier run"
                    .into(),
            );
            drawn_from(seed)
        }
        (Salt::Named(SaltName::Run), Mode::Simulate(_) | Mode::Check) => drawn_from(seed),
    };
    trace.keys.salt = Salt::Fixed(drawn);
    Some(drawn)
}

/// Derives a salt from a seed.
fn drawn_from(seed: u64) -> u64 {
    let mut words = [0u32; 2];
    RandomStream::new(seed, 0, "salt").fill(0, &mut words);
    (u64::from(words[0]) << 32 | u64::from(words[1])) % SALT_RANGE
}
