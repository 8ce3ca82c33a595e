//! Instants of a run in the unit of the page.

use veeksha_model::Nanos;

/// Converts an instant since the start of the run to seconds.
pub(super) fn seconds(at: Nanos) -> f64 {
    at as f64 / 1e9
}
