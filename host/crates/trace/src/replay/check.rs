//! Runs every group of the first epoch through the flavor before the run begins.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use veeksha_ports::PluginFailure;

use crate::options::BadRowRule;
use crate::replay::source::{SessionReader, refused};
use crate::replay::trace_data::TraceData;

/// Groups per call.
const BATCH: u64 = 64;

/// Returns the places of the first epoch whose groups the flavor refuses, in order, each with its
/// failure. A failure that does not concern a group, and with [`BadRowRule::Refuse`] the first one
/// of any kind, ends the search.
pub(crate) fn refusals(
    trace: &Arc<TraceData>,
    on_bad_row: BadRowRule,
) -> Result<Vec<(u64, PluginFailure)>, PluginFailure> {
    let places = trace.sequence.len();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(usize::try_from(places.div_ceil(BATCH)).unwrap_or(usize::MAX));
    let work = CheckWork {
        next: AtomicU64::new(0),
        // Nothing beyond this place needs to be checked.
        end: AtomicU64::new(places),
        found: Mutex::default(),
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| work.run(trace, on_bad_row));
        }
        work.run(trace, on_bad_row);
    });
    let mut found = work.found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(place, _)| *place);
    let end = work.end.into_inner();
    match found.binary_search_by_key(&end, |(place, _)| *place) {
        Ok(fatal) => Err(found.swap_remove(fatal).1),
        Err(_) => Ok(found),
    }
}

struct CheckWork {
    next: AtomicU64,
    end: AtomicU64,
    found: Mutex<Vec<(u64, PluginFailure)>>,
}

impl CheckWork {
    fn run(&self, trace: &Arc<TraceData>, on_bad_row: BadRowRule) {
        let mut instance = CheckedInstance { trace, source: None };
        loop {
            // Batches are taken in order, so everything before the first failure is checked,
            // whichever thread finds it.
            let first = self.next.fetch_add(BATCH, Ordering::Relaxed);
            let end = self.end.load(Ordering::Relaxed);
            if first >= end {
                return;
            }
            self.batch(&mut instance, first, BATCH.min(end - first), on_bad_row);
        }
    }

    fn batch(&self, instance: &mut CheckedInstance<'_>, first: u64, count: u64, on_bad_row: BadRowRule) {
        let Err(whole) = instance.places(first, count) else {
            return;
        };
        // One by one, to find the refused one.
        let mut failed = false;
        for place in first..first + count {
            if place >= self.end.load(Ordering::Relaxed) {
                return;
            }
            if let Err(failure) = instance.places(place, 1) {
                failed = true;
                match on_bad_row {
                    BadRowRule::Skip if refused(&failure) => self.add(place, failure),
                    _ => return self.fatal(place, failure),
                }
            }
        }
        if !failed {
            // They are too large only together.
            self.fatal(first, whole);
        }
    }

    fn fatal(&self, place: u64, failure: PluginFailure) {
        self.end.fetch_min(place, Ordering::Relaxed);
        self.add(place, failure);
    }

    fn add(&self, place: u64, failure: PluginFailure) {
        self.found
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((place, failure));
    }
}

/// An instance of the flavor, replaced after a failure.
struct CheckedInstance<'a> {
    trace: &'a Arc<TraceData>,
    source: Option<SessionReader>,
}

impl CheckedInstance<'_> {
    fn places(&mut self, first: u64, count: u64) -> Result<(), PluginFailure> {
        let mut source = match self.source.take() {
            Some(source) => source,
            None => SessionReader::open(Arc::clone(self.trace))?,
        };
        let result = source.check_places(first, count);
        if result.as_ref().map_or_else(refused, |()| true) {
            self.source = Some(source);
        }
        result
    }
}
