//! Opening of a trace: reads it, orders it, and tries the flavor on it.

use std::sync::Arc;

use veeksha_ports::{FlavorFactory, Grouping, TraceFacts};

use crate::columns::TraceColumns;
use crate::error::{BadRow, TraceError};
use crate::index::{Groups, IndexedRows, RowIndex, build};
use crate::options::{BadRowRule, CheckExtent, Order, TraceOptions};
use crate::problem::RowProblem;
use crate::replay::check::refusals;
use crate::replay::read::GroupReader;
use crate::replay::sequence::{GroupSequence, sequence, without_arrival};
use crate::replay::trace::OpenTrace;
use crate::replay::trace_data::{RowPool, TraceData, place};
use crate::rows::{ReadLimits, check_beginning};
use crate::store::{BeginningCheck, Store};

/// Traces up to this size are checked completely by default.
const WHOLE_UP_TO: u64 = 256 << 20;

/// Opens a trace for a flavor. Every row is checked and indexed; with [`CheckExtent::Whole`] the
/// flavor has also made every session of the first epoch once.
///
/// # Errors
/// Returns a [`TraceError`]. With [`BadRowRule::Skip`], unusable rows are errors only if no usable
/// one is left.
pub fn open(options: TraceOptions, flavor: Arc<dyn FlavorFactory>) -> Result<OpenTrace, TraceError> {
    let limits = ReadLimits::rows_of(options.max_row_bytes);
    open_within(options, flavor, limits)
}

/// Opens a trace like [`open`], with explicit limits.
pub(crate) fn open_within(
    options: TraceOptions,
    flavor: Arc<dyn FlavorFactory>,
    limits: ReadLimits,
) -> Result<OpenTrace, TraceError> {
    let layout = flavor.open()?.layout()?;
    let arrivals_wanted = matches!(options.order, Order::ByArrival { .. });
    if arrivals_wanted && layout.grouping == Grouping::Pools {
        return Err(TraceError::ArrivalsOfPools);
    }
    if arrivals_wanted && layout.arrival.is_none() {
        return Err(TraceError::NoArrivals);
    }
    let columns = TraceColumns::new(&layout, &options.columns, &flavor.info().name)?;
    let look = BeginningCheck {
        after: (limits.row as u64).saturating_add(2 * limits.chunk as u64),
        check: &|beginning| check_beginning(beginning, layout.rows_in.as_deref(), options.on_bad_row, limits),
    };
    let store = Store::open(&options.path, options.scratch.as_deref(), look)?;
    let IndexedRows {
        rows,
        groups,
        headers,
        skipped,
        kept,
    } = build(&store, &layout, &columns, options.on_bad_row, limits)?;
    let mut inner = TraceData {
        sequence: GroupSequence::File { groups: 0 },
        facts: TraceFacts::default(),
        pools: Vec::new(),
        store,
        layout,
        columns,
        headers,
        rows,
        groups,
        kept,
        skipped,
        flavor,
        seed: options.seed,
        wrap: options.wrap,
    };
    put_in_order(&mut inner, &options)?;
    describe(&mut inner)?;
    let whole = match options.check {
        CheckExtent::Whole => true,
        CheckExtent::Rows => false,
        CheckExtent::Auto => inner.store.bytes() <= WHOLE_UP_TO || options.on_bad_row == BadRowRule::Skip,
    };
    if whole {
        inner = try_flavor(inner, &options)?;
    }
    Ok(OpenTrace(Arc::new(inner)))
}

/// Determines the groups to replay and their order.
fn put_in_order(trace: &mut TraceData, options: &TraceOptions) -> Result<(), TraceError> {
    if trace.draws() {
        trace.pools = pools(&trace.store, &trace.rows, &trace.groups);
        let longest = trace
            .pools
            .iter()
            .map(|pool| pool.rows.len())
            .max()
            .unwrap_or_default();
        trace.sequence = GroupSequence::File {
            groups: longest as u64,
        };
        return Ok(());
    }
    if let (Order::ByArrival { .. }, Some(arrival)) = (options.order, &trace.layout.arrival) {
        let problem = RowProblem::NoArrival {
            column: arrival.column.clone(),
        };
        let without = without_arrival(&trace.rows, &trace.groups);
        if options.on_bad_row == BadRowRule::Refuse
            && let Some(row) = without.first().and_then(|group| trace.groups.rows(*group).next())
        {
            let place = trace.place(row);
            return Err(BadRow { place, problem }.into());
        }
        leave_out(trace, without.into_iter().map(|group| (group, problem.clone())))?;
    }
    let place = |row| trace.place(row);
    trace.sequence = sequence(options.order, options.seed, &trace.rows, &trace.groups, &place)?;
    Ok(())
}

/// Skips whole groups: each of their rows is counted and listed.
fn leave_out(
    trace: &mut TraceData,
    bad: impl IntoIterator<Item = (u32, RowProblem)>,
) -> Result<(), TraceError> {
    let mut dropped = vec![false; trace.groups.len() as usize];
    for (group, problem) in bad {
        dropped[group as usize] = true;
        for row in trace.groups.rows(group) {
            trace.skipped.add(BadRow {
                place: place(&trace.store, &trace.rows, row),
                problem: problem.clone(),
            });
        }
    }
    if dropped.contains(&true) {
        trace.groups = trace.groups.without(|group| dropped[group as usize]);
    }
    match (trace.groups.len(), trace.skipped.listed.first()) {
        (0, Some(first)) => Err(TraceError::NoGoodRows {
            path: trace.store.path.clone(),
            total: trace.skipped.total,
            first: Box::new(first.clone()),
        }),
        _ => Ok(()),
    }
}

fn pools(store: &Store, rows: &RowIndex, groups: &Groups) -> Vec<RowPool> {
    let mut pools: Vec<RowPool> = (0..store.regions.len())
        .map(|file| RowPool {
            stream: format!("trace pool {file}"),
            rows: Vec::new(),
        })
        .collect();
    for row in (0..groups.len()).flat_map(|group| groups.rows(group)) {
        pools[rows.file_of(row)].rows.push(row);
    }
    pools
}

/// Computes the facts about the trace that flavors receive.
fn describe(trace: &mut TraceData) -> Result<(), TraceError> {
    let first = trace.groups.rows(0).next().unwrap_or_default();
    let first_row = GroupReader::new(trace).group(trace, 0, [first])?.rows;
    trace.facts = TraceFacts {
        rows: trace.groups.total(),
        groups: if trace.draws() {
            trace.sequence.len()
        } else {
            u64::from(trace.groups.len())
        },
        first_row: first_row
            .into_iter()
            .next()
            .map(|row| row.fields)
            .unwrap_or_default(),
    };
    Ok(())
}

/// Makes every session of the first epoch once. Refused groups are skipped or end the opening.
fn try_flavor(trace: TraceData, options: &TraceOptions) -> Result<TraceData, TraceError> {
    let trace = Arc::new(trace);
    let refused = refusals(&trace, options.on_bad_row);
    let Some(mut trace) = Arc::into_inner(trace) else {
        unreachable!("all threads of the check have ended, and their sources with them")
    };
    let refused = refused?;
    if refused.is_empty() {
        return Ok(trace);
    }
    let mut bad = Vec::with_capacity(refused.len());
    let epoch = trace.sequence.epoch(0);
    for (at, failure) in refused {
        let group = match trace.pools.as_slice() {
            [] => epoch.group(at),
            // A row of the only pool is a group by itself.
            [only] => only.rows[at as usize],
            // The faulty row cannot be determined.
            _ => return Err(failure.into()),
        };
        let message = failure.message;
        bad.push((group, RowProblem::Refused { message }));
    }
    // Places may be in another order than groups.
    bad.sort_by_key(|(group, _)| *group);
    leave_out(&mut trace, bad)?;
    put_in_order(&mut trace, options)?;
    describe(&mut trace)?;
    Ok(trace)
}
