//! What the receive path counts about itself.

use std::sync::atomic::{AtomicU64, Ordering};

use veeksha_model::{Chunk, StampSource};

/// Figures of the receive path, over all client threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveFigures {
    /// Reads of sockets that returned bytes.
    pub reads: u64,
    /// Of those, reads whose arrival time is the kernel's.
    pub kernel_stamped: u64,
    /// Reads whose kernel stamp was refused, because the wall clock had been set.
    pub stamps_refused: u64,
    /// Reads out of which more than one event came; known once an answer is understood.
    pub merged_reads: u64,
}

impl ReceiveFigures {
    /// What arrival times are: the kernel's, unless no read has such a stamp.
    pub fn stamps(&self) -> StampSource {
        if self.kernel_stamped > 0 {
            StampSource::Kernel
        } else {
            StampSource::Read
        }
    }
}

/// The counters of one client thread. They lie apart from those of the others, and one thread writes them.
#[derive(Debug, Default)]
pub(crate) struct ThreadFigures {
    pub(crate) reads: AtomicU64,
    pub(crate) kernel_stamped: AtomicU64,
    pub(crate) stamps_refused: AtomicU64,
    /// The exception: this one is counted where answers are understood.
    pub(crate) merged_reads: AtomicU64,
}

impl ThreadFigures {
    /// Adds to the sum over all threads.
    pub(crate) fn add_to(&self, sum: &mut ReceiveFigures) {
        sum.reads += self.reads.load(Ordering::Relaxed);
        sum.kernel_stamped += self.kernel_stamped.load(Ordering::Relaxed);
        sum.stamps_refused += self.stamps_refused.load(Ordering::Relaxed);
        sum.merged_reads += self.merged_reads.load(Ordering::Relaxed);
    }
}

/// Counts one more, where only this thread counts: cheaper than an atomic addition.
pub(crate) fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// The number of reads that more than one of these events came out of.
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
    fn a_run_of_merged_events_is_one_read() {
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
