//! Counters of the receive path.

use std::sync::atomic::{AtomicU64, Ordering};

use veeksha_model::{Chunk, StampSource};

/// Counters of the receive path, summed over all client threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveStats {
    /// Socket reads that returned bytes.
    pub reads: u64,
    /// The subset of `reads` with an arrival time from the kernel.
    pub kernel_stamped: u64,
    /// Reads whose kernel stamp was rejected because the wall clock was set.
    pub stamps_refused: u64,
    /// Reads that contained more than one event. Known once the answer is decoded.
    pub merged_reads: u64,
}

impl ReceiveStats {
    /// Returns the source of arrival times: the kernel, unless no read has a kernel stamp.
    pub fn stamps(&self) -> StampSource {
        if self.kernel_stamped > 0 {
            StampSource::Kernel
        } else {
            StampSource::Read
        }
    }
}

/// The counters of one client thread, separate from those of the other threads. Only this thread
/// writes them.
#[derive(Debug, Default)]
pub(crate) struct ThreadCounters {
    pub(crate) reads: AtomicU64,
    pub(crate) kernel_stamped: AtomicU64,
    pub(crate) stamps_refused: AtomicU64,
    /// The exception: incremented where answers are decoded.
    pub(crate) merged_reads: AtomicU64,
}

impl ThreadCounters {
    /// Adds the counters to the sum over all threads.
    pub(crate) fn add_to(&self, sum: &mut ReceiveStats) {
        sum.reads += self.reads.load(Ordering::Relaxed);
        sum.kernel_stamped += self.kernel_stamped.load(Ordering::Relaxed);
        sum.stamps_refused += self.stamps_refused.load(Ordering::Relaxed);
        sum.merged_reads += self.merged_reads.load(Ordering::Relaxed);
    }
}

/// Increments a counter that only this thread writes. This is cheaper than an atomic addition.
pub(crate) fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Returns the number of reads that contained more than one of these events.
pub(crate) fn merged_reads(chunks: &[Chunk]) -> u64 {
    chunks
        .windows(2)
        .filter(|pair| !pair[0].merged && pair[1].merged)
        .count() as u64
}

#[cfg(test)]
mod tests {
    use veeksha_model::ChunkKind;

    use super::*;

    #[test]
    fn merged_events_count_as_one_read() {
        let chunks: Vec<Chunk> = [false, true, true, false, false, true]
            .map(|merged| Chunk {
                at: 0,
                lag: 0,
                bytes: 0,
                kind: ChunkKind::Content,
                merged,
            })
            .to_vec();
        assert_eq!(merged_reads(&chunks), 2);
        assert_eq!(merged_reads(&[]), 0);
    }
}
