//! Opens the trace of a scenario: options, order, salt.

use std::sync::Arc;
use std::time::Duration;

use veeksha_ports::{PluginFailure, PluginFailureKind};
use veeksha_prompt::{Materializer, Tokenizer};
use veeksha_scenario::{
    FixedSchedule, OnBadRow, RowCheck, Salt, SaltName, Scenario, Shuffle, TraceKeys, Traffic,
};
use veeksha_stats::RandomStream;
use veeksha_trace::{BadRow, Check, Order, RowProblem, Trace, TraceError, TraceOptions};

use crate::failure::Failure;
use crate::mode::Mode;
use crate::source::Loaded;
use crate::{flavors, validated_flavor};
use veeksha_present::terminal;

/// Skipped rows that are shown; the rest is counted.
const SHOWN: usize = 5;

/// Opens a scenario's trace with its flavor; what was skipped becomes a note.
pub fn open(
    loaded: &Loaded,
    trace: &veeksha_scenario::Trace,
    tokenizer: &Tokenizer,
    materializer: &Arc<Materializer>,
    notes: &mut Vec<String>,
) -> Result<Trace, Failure> {
    let flavor = flavors::factory(loaded, &trace.flavor, tokenizer)?;
    let flavor = validated_flavor::checked(flavor, materializer.clone());
    let opened = veeksha_trace::open(options(loaded, &trace.keys), flavor).map_err(failure)?;
    let skipped = opened.skipped();
    if skipped.total > 0 {
        let mut note = format!(
            "{} of the trace left out, because on_bad_row is `skip`:",
            terminal::counted(skipped.total, "row")
        );
        for row in skipped.listed.iter().take(SHOWN) {
            note.push_str(&format!("\n  {row}"));
        }
        if skipped.total > SHOWN as u64 {
            note.push_str(&format!("\n  and {} more", skipped.total - SHOWN as u64));
        }
        notes.push(note);
    }
    Ok(opened)
}

/// What the user is told of a trace that cannot be read.
pub fn failure(error: TraceError) -> Failure {
    const SKIP: &str = "session_generator.on_bad_row: skip leaves such rows out, and says which";
    match error {
        // A flavor that refuses what stands in a row has no bug.
        TraceError::Plugin(failure) if is_about_rows(&failure) => {
            let hint = match &failure.kind {
                PluginFailureKind::Refused { hint: Some(hint), .. } => hint.clone(),
                _ => SKIP.to_owned(),
            };
            Failure::usage(refusal(&failure)).hinted(hint)
        }
        // So does one that refuses its configuration.
        TraceError::Plugin(failure) if matches!(failure.kind, PluginFailureKind::Refused { .. }) => {
            let mut told = Failure::from(failure);
            told.code = veeksha_exit::USAGE;
            told
        }
        // What it made of a row cannot be sent; that may be the row's doing.
        TraceError::Plugin(failure) if matches!(failure.kind, PluginFailureKind::Result) => {
            Failure::from(failure).hinted(SKIP)
        }
        TraceError::Plugin(failure) => failure.into(),
        TraceError::BadRow(BadRow {
            problem: RowProblem::NoArrival { .. },
            ..
        }) => Failure::usage(&error).hinted(
            "traffic of type `rate` or `concurrent` asks for none; `columns` renames the column that has them",
        ),
        TraceError::BadRow(_) => Failure::usage(&error).hinted(SKIP),
        other => Failure::usage(other),
    }
}

fn is_about_rows(failure: &PluginFailure) -> bool {
    failure.function == "flavor.sessions" && matches!(failure.kind, PluginFailureKind::Refused { .. })
}

/// What a flavor refuses: where in the trace it stands, and why.
fn refusal(failure: &PluginFailure) -> String {
    // The rows; behind them stands what only matters to the flavor's author.
    let input = failure.input.as_deref().unwrap_or("the trace");
    let place = input.split(';').next().unwrap_or(input);
    format!("{place}: the flavor `{}`: {}", failure.plugin, failure.message)
}

fn options(loaded: &Loaded, keys: &TraceKeys) -> TraceOptions {
    let scenario = &loaded.scenario;
    let schedule = match &scenario.traffic_scheduler {
        Traffic::FixedSchedule(schedule) => Some(schedule),
        Traffic::Rate(_) | Traffic::Concurrent(_) => None,
    };
    TraceOptions {
        path: loaded.folder().join(&keys.trace_file),
        columns: keys.columns.clone(),
        on_bad_row: match keys.on_bad_row {
            OnBadRow::Error => veeksha_trace::OnBadRow::Refuse,
            OnBadRow::Skip => veeksha_trace::OnBadRow::Skip,
        },
        check: match keys.check {
            RowCheck::Auto => Check::Auto,
            RowCheck::Whole => Check::Whole,
            RowCheck::Rows => Check::Rows,
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

/// Whether the flavor's warm-up requests are wanted.
pub(crate) fn warms_up(scenario: &Scenario) -> bool {
    match &scenario.session_generator {
        veeksha_scenario::Generator::Trace(trace) => trace.keys.warmup,
        _ => false,
    }
}

/// Largest salt: every number below 2^53 is exact wherever `config.yml` is read.
const SALTS: u64 = 1 << 53;

/// The salt of this run's text. A salt for each run is drawn here and put in its place in the scenario, so that `config.yml`
/// says which one it was.
pub(crate) fn salt(scenario: &mut Scenario, mode: Mode, notes: &mut Vec<String>) -> Option<u64> {
    let seed = scenario.seed;
    let veeksha_scenario::Generator::Trace(trace) = &mut scenario.session_generator else {
        return None;
    };
    let drawn = match (trace.keys.salt, mode) {
        (Salt::Named(SaltName::Off), _) => return None,
        (Salt::Fixed(salt), _) => salt,
        (Salt::Named(SaltName::Run), Mode::Run(part)) if part.0.count <= 1 => {
            drawn_from(veeksha_clock::wall_nanos() ^ u64::from(std::process::id()).rotate_left(32))
        }
        (Salt::Named(SaltName::Run), Mode::Run(_)) => {
            notes.push(
                "the parts of a run share their text, so its salt comes from the seed; another `session_generator.salt` keeps \
                 an earlier run's cache from knowing it"
                    .into(),
            );
            drawn_from(seed)
        }
        (Salt::Named(SaltName::Run), Mode::Simulate(_) | Mode::Check) => drawn_from(seed),
    };
    trace.keys.salt = Salt::Fixed(drawn);
    Some(drawn)
}

/// The salt that a seed gives.
fn drawn_from(seed: u64) -> u64 {
    let mut words = [0u32; 2];
    RandomStream::new(seed, 0, "salt").fill(0, &mut words);
    (u64::from(words[0]) << 32 | u64::from(words[1])) % SALTS
}
