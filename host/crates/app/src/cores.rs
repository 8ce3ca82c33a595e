//! The processor cores of this process.

/// Returns the number of processor cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
