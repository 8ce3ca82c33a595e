//! The reads that delivered an answer, and the effect of this process's lateness on its arrival
//! times.
//!
//! Several events from one read share one arrival time: that of the last segment. If the server
//! sent them together, it is correct for all of them. If this process was late, the earlier ones
//! had waited in the kernel's queue, and their arrival times are lost. The lag of the read
//! distinguishes the two cases: a read long after its last segment was late.

use veeksha_events::RequestRecord;
use veeksha_model::{Chunk, Nanos, StampSource};

/// The lag above which a read lost the times of the events before its last one, regardless of the
/// stream's pace.
const LATE_AT_MOST: Nanos = 1_000_000;

/// Returns the events of an answer, grouped by read.
pub(crate) fn reads(chunks: &[Chunk]) -> impl Iterator<Item = &[Chunk]> {
    chunks.chunk_by(|_, later| later.merged)
}

/// The information lost by a late read. Exists for kernel stamps only: without them the lag of a
/// read is unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LateRead {
    /// Generated chunks in the read.
    pub(crate) chunks: u64,
    /// The chunks among them that are flagged as merged.
    pub(crate) flagged: u64,
    /// True if the answer's first generated chunk is among them.
    pub(crate) first: bool,
    /// The possible time per chunk.
    pub(crate) gap: Nanos,
    /// The number of chunks that the server sends together: the mean of the answer's timely reads.
    pub(crate) bundle: u64,
}

impl LateRead {
    /// Returns the number of gaps in it that are recorded as 0 and may have been
    /// [`between`](Self::between).
    pub(crate) fn lost_gaps(&self) -> u64 {
        self.chunks.div_ceil(self.bundle) - 1
    }

    /// Returns the possible gap between two bundles.
    pub(crate) fn between(&self) -> Nanos {
        self.bundle * self.gap
    }

    /// Returns how much earlier than its stamp the first of its chunks may have arrived.
    pub(crate) fn shift(&self) -> Nanos {
        self.lost_gaps() * self.between()
    }
}

/// Returns the late reads of an answer that contained several generated chunks: late by half of the
/// stream's mean gap, or by a millisecond.
///
/// The chunks of such a read may have arrived at the stream's pace (its mean gap, which bunching
/// does not change), but not before the preceding chunk or request. If the whole answer came from
/// one read, its pace is unknown, and the chunks may have arrived at any time since the request.
/// The lag of the read does not bound this: it is the age of the last chunk, less than one gap,
/// however long the first one had waited.
///
/// The lag of a late read is uniform between 0 and one gap, so one whose lag is below the threshold
/// is not detected. The detected ones are scaled up by gap / (gap − threshold), at most by a factor
/// of two.
pub(crate) fn late_reads(record: &RequestRecord) -> Vec<LateRead> {
    // Nearly every answer has no late read, so nothing is computed before one is found.
    if record.stamps != StampSource::Kernel || !record.chunks.iter().any(|chunk| chunk.merged) {
        return Vec::new();
    }
    let pace = pace(record);
    let threshold = pace.map_or(LATE_AT_MOST as f64, |pace| (pace / 2.0).min(LATE_AT_MOST as f64));
    let bundle = bundle(record, threshold);
    let mut before: Option<Nanos> = None;
    let mut late = Vec::new();
    for read in reads(&record.chunks) {
        let generated = || read.iter().filter(|chunk| chunk.kind.is_generated());
        let Some(last) = generated().next_back() else {
            continue;
        };
        let earliest = before.unwrap_or(record.sent_at.unwrap_or(record.dispatched_at));
        let chunks = generated().count() as u64;
        if chunks > 1 && f64::from(last.lag) >= threshold {
            let room = last.at.saturating_sub(earliest) as f64 / chunks as f64;
            let unseen = pace.map_or(1.0, |pace| pace / (pace - threshold));
            let gap = pace.map_or(room, |pace| pace.min(room));
            late.push(LateRead {
                chunks,
                flagged: generated().filter(|chunk| chunk.merged).count() as u64,
                first: before.is_none(),
                gap: (gap * unseen).round() as Nanos,
                bundle,
            });
        }
        before = Some(last.at);
    }
    late
}

/// Returns the mean number of generated chunks in the reads of an answer that were not late; 1 if
/// there are none.
fn bundle(record: &RequestRecord, threshold: f64) -> u64 {
    let (mut timely, mut chunks) = (0u64, 0u64);
    for read in reads(&record.chunks) {
        let generated = read.iter().filter(|chunk| chunk.kind.is_generated()).count() as u64;
        let is_timely = read.last().is_some_and(|last| f64::from(last.lag) < threshold);
        if generated > 0 && is_timely {
            (timely, chunks) = (timely + 1, chunks + generated);
        }
    }
    if timely == 0 {
        return 1;
    }
    (chunks + timely / 2) / timely
}

/// Returns the mean gap of a stream, in nanoseconds; `None` if all chunks arrived at once.
///
/// The gaps are those after the first read: if it was late, its earlier chunks arrived before its
/// stamp, and their gaps are not part of the time from the stamp to the last chunk.
fn pace(record: &RequestRecord) -> Option<f64> {
    let mut times = record.generated_at();
    let first = times.next()?;
    let mut last = first;
    let mut count = 0u64;
    for at in times {
        count += u64::from(at > first);
        last = at;
    }
    (count > 0).then(|| (last - first) as f64 / count as f64)
}

#[cfg(test)]
mod tests {
    use veeksha_model::ChunkKind;

    use super::*;

    fn chunk(at: Nanos, lag: u32, merged: bool, kind: ChunkKind) -> Chunk {
        Chunk {
            at,
            lag,
            bytes: 1,
            kind,
            merged,
        }
    }

    fn record(stamps: StampSource, chunks: Vec<Chunk>) -> RequestRecord {
        RequestRecord {
            stamps,
            chunks,
            ..crate::blank::record()
        }
    }

    const MS: u64 = 1_000_000;

    /// One chunk every 10 ms; the process slept from 25 to 57 ms, and a read at 57 ms returned
    /// those of 30, 40 and 50.
    fn overslept() -> Vec<Chunk> {
        use ChunkKind::{Content, Role};
        vec![
            chunk(10 * MS, 20_000, false, Role),
            chunk(10 * MS, 20_000, true, Content),
            chunk(20 * MS, 20_000, false, Content),
            chunk(50 * MS, 7_000_000, false, Content),
            chunk(50 * MS, 7_000_000, true, Content),
            chunk(50 * MS, 7_000_000, true, Content),
            chunk(60 * MS, 20_000, false, Content),
        ]
    }

    #[test]
    fn a_read_that_overslept_is_late_and_one_of_two_kinds_of_event_is_not() {
        let late = late_reads(&record(StampSource::Kernel, overslept()));
        // Mean gap (60 - 10) / 5 = 10 ms; three chunks had (50 - 20) / 3 = 10 ms each. The
        // threshold is 1 ms, so a tenth is undetected.
        assert_eq!(late.len(), 1);
        assert_eq!((late[0].chunks, late[0].flagged, late[0].first), (3, 2, false));
        assert_eq!((late[0].gap, late[0].shift()), (11_111_111, 22_222_222));
    }

    #[test]
    fn what_the_server_sent_together_is_no_lateness() {
        let mut chunks = overslept();
        chunks.iter_mut().for_each(|chunk| chunk.lag = 40_000);
        assert_eq!(late_reads(&record(StampSource::Kernel, chunks)), []);
    }

    #[test]
    fn read_lag_is_unknown_without_kernel_stamps() {
        assert_eq!(late_reads(&record(StampSource::Read, overslept())), []);
    }

    #[test]
    fn a_fast_stream_is_late_by_half_of_its_gap() {
        use ChunkKind::Content;
        // Gaps of 200 µs on average: (1000 - 200) / 4.
        let at = |lag| {
            vec![
                chunk(200_000, 0, false, Content),
                chunk(400_000, 0, false, Content),
                chunk(800_000, lag, false, Content),
                chunk(800_000, lag, true, Content),
                chunk(1_000_000, 0, false, Content),
            ]
        };
        assert_eq!(late_reads(&record(StampSource::Kernel, at(99_999))), []);
        let late = late_reads(&record(StampSource::Kernel, at(100_000)));
        // 200 µs each, doubled for the undetected ones.
        assert_eq!(late[0].gap, 400_000);
    }

    #[test]
    fn a_late_read_of_bundles_loses_the_gaps_between_bundles() {
        use ChunkKind::Content;
        // Bundles of two, each 20 ms after the one before; the third and fourth came from one read.
        let read = |at, lag, count| (0..count).map(move |place| chunk(at, lag, place > 0, Content));
        let chunks = read(20 * MS, 0, 2)
            .chain(read(40 * MS, 0, 2))
            .chain(read(80 * MS, 5_000_000, 4))
            .chain(read(100 * MS, 5_000_000, 2));
        let late = late_reads(&record(StampSource::Kernel, chunks.collect()));
        // Mean gap 80 / 8 ms, scaled up by the undetected reads: 10 * 10 / (10 - 1).
        let gap = 11_111_111;
        assert_eq!((late[0].gap, late[0].bundle), (gap, 2));
        assert_eq!((late[0].lost_gaps(), late[0].between()), (1, 2 * gap));
        // A late read of one bundle lost nothing.
        assert_eq!((late[1].lost_gaps(), late[1].shift()), (0, 0));
    }

    #[test]
    fn an_answer_from_one_late_read_may_have_arrived_since_the_request() {
        use ChunkKind::Content;
        let read = |at, lag| {
            let chunks = vec![chunk(at, lag, false, Content), chunk(at, lag, true, Content)];
            late_reads(&record(StampSource::Kernel, chunks))
        };
        // Sent at 0, so each of two chunks had half of the time, whatever the lag.
        for lag in [1_000_000, 3_000_000, 30_000_000] {
            assert_eq!(
                (read(40 * MS, lag)[0].gap, read(40 * MS, lag)[0].first),
                (20 * MS, true)
            );
        }
        assert_eq!(read(10 * MS, 3_000_000)[0].gap, 5 * MS);
        assert_eq!(read(40 * MS, 999_999), []);
    }

    /// Sixteen chunks, one every 4 ms from 12.6 ms on. The client slept until 75 ms and read them
    /// at once, 2.4 ms after the last one: the first is stamped 60 ms late.
    #[test]
    fn the_shift_of_an_answer_from_one_late_read_is_not_less_than_the_truth() {
        let at = 72_600_000;
        let chunks = (0..16).map(|place| chunk(at, 2_400_000, place > 0, ChunkKind::Content));
        let late = late_reads(&record(StampSource::Kernel, chunks.collect()));
        assert!(late[0].shift() >= at - 12_600_000, "{late:?}");
        assert!(late[0].shift() < at, "{late:?}");
    }
}
