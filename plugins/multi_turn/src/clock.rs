//! The send times of turns. AIPerf writes them into the turns; a row may also have the arrival of
//! its session, in a separate column.

use veeksha_plugin::Error;
use veeksha_plugin::Nanos;
use veeksha_plugin::flavor::Row;

use crate::row::Cells;
use crate::turns::Written;

/// The origin of the times of a row's turns.
pub(crate) struct Clock {
    /// A time of the file, in milliseconds.
    origin_ms: f64,
    /// The same instant, relative to the beginning of the trace.
    origin: Nanos,
}

impl Clock {
    /// The clock of a row: its own arrival if it has one, else the origin of the trace, which is
    /// `given` or the first timestamp of the first row.
    pub(crate) fn of_row(row: &Row<Cells>, first: Option<&Cells>, given: Option<f64>) -> Self {
        if let (Some(origin), Some(origin_ms)) = (row.at, row.cells.timestamp) {
            return Clock { origin_ms, origin };
        }
        let of_first = || first?.turns.iter().find_map(|turn| turn["timestamp"].as_f64());
        Clock {
            origin_ms: given.or_else(of_first).unwrap_or(0.0),
            origin: 0,
        }
    }

    /// The send time of a turn, relative to the beginning of the trace.
    ///
    /// # Errors
    /// A time before the clock's origin.
    pub(crate) fn sent(&self, row: &Row<Cells>, turn: &Written) -> Result<Option<Nanos>, Error> {
        let Some(timestamp) = turn.timestamp else {
            return Ok(None);
        };
        let later = timestamp - self.origin_ms;
        if later < 0.0 {
            let why = format!(
                "the `timestamp` {timestamp} of a turn is before {}, where the trace begins",
                self.origin_ms
            );
            return Err(row
                .error(why)
                .hint("`timestamp_origin_ms` is the instant at which it begins"));
        }
        let later = row.milliseconds("timestamp", later)?;
        let later = u64::try_from(later.as_nanos()).unwrap_or(u64::MAX);
        Ok(Some(self.origin.saturating_add(later)))
    }
}
