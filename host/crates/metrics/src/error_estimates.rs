//! The client's contribution to each metric, estimated from the run's own record.
//!
//! A metric's *error* is the part of a sample's time that this process caused, not the server:
//!
//! | metric | error of one sample |
//! |---|---|
//! | `ttfc` | send + stamp of the first generated chunk |
//! | `ttfc_from_intended` | the same + dispatch |
//! | `tbc` | stamps of two adjacent chunks |
//! | `tpot` | (stamp of first + stamp of last generated chunk) / (tokens after first chunk) |
//! | `end_to_end_latency` | send + stamp of the last generated chunk |
//! | `e2e_from_intended` | the same + dispatch |
//!
//! * *dispatch*: |dispatched − intended − held|. Delays by limits are requested by the user, so
//!   they are not errors.
//! * *send*: last request byte handed to the socket − dispatched, without the opening of a
//!   connection (name resolution, connect, TLS), which belongs to the network and is reported
//!   separately. A large body on a slow network waits for the socket: this time counts as the
//!   client's, although it is not.
//! * *stamp*, kernel: a constant for the time between the wire and the kernel's stamp ([`STAMP`],
//!   [`GAP`]); and, where a late read lost the times of several chunks, how much earlier they may
//!   have arrived ([`crate::reads`]).
//! * *stamp*, read: the same constant, plus the client's lag, which such a stamp contains but does
//!   not reveal. The lag is estimated from the run's kernel-stamped chunks. Without these it is
//!   estimated from the client threads: the time they waited for a processor, and the queueing
//!   delay for random arrivals and constant service (Pollaczek and Khinchine: ρ/2(1 − ρ) of the
//!   service time), both per event, and a constant for the wake-up ([`WAKE_UP`]). Without thread
//!   statistics the lag is unknown, which the certificate reports.

use std::collections::BTreeMap;

use veeksha_events::RequestRecord;
use veeksha_model::{Nanos, StampSource};
use veeksha_stats::LiveHistogram;

use crate::reads::late_reads;
use crate::row::RequestRow;
use crate::threads::ThreadUse;
use veeksha_definitions::{Metric, Samples};

/// Typical value and 99th percentile, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DelaySpread {
    pub(crate) typical: f64,
    pub(crate) p99: f64,
}

/// Delay between the server's write and the kernel's stamp: 3 µs at the median and 8 to 16 µs at
/// P99 over loopback, measured against a sender on the same clock, with and without a loaded
/// processor.
const STAMP: DelaySpread = DelaySpread {
    typical: 5e3,
    p99: 20e3,
};

/// The same delay for a gap, where most of it cancels out: 0 to 1 µs at the median and 9 to 27 µs
/// at P99.
const GAP: DelaySpread = DelaySpread {
    typical: 2e3,
    p99: 20e3,
};

/// Delay, in nanoseconds, from the kernel's stamp to the return of the read in a thread that had to
/// be woken and found a free processor: 22 to 27 µs at the median, measured as above.
const WAKE_UP: f64 = 25e3;

/// The number of chunks with an observed lag that is required before the lag is applied to the
/// chunks of other requests.
const LAGS_ENOUGH: u64 = 30;

/// The largest contribution to an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorPart {
    /// The dispatcher was late.
    Dispatch,
    /// Between dispatch and the last byte sent.
    Send,
    /// Reads that were so late that the arrival times of several chunks were lost.
    LateReads,
    /// The time of the read is used as the time of arrival.
    Lag,
    /// The unavoidable delay between the wire and the kernel's stamp.
    Kernel,
}

impl ErrorPart {
    /// Returns the snake_case name used in files.
    pub fn name(self) -> &'static str {
        match self {
            ErrorPart::Dispatch => "dispatch",
            ErrorPart::Send => "send",
            ErrorPart::LateReads => "late_reads",
            ErrorPart::Lag => "lag",
            ErrorPart::Kernel => "kernel",
        }
    }
}

/// The error of a metric over the samples of answered, measured requests, in the metric's unit
/// (seconds).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorEstimate {
    /// The metric.
    pub metric: Metric,
    /// Samples.
    pub count: u64,
    /// Mean of the absolute errors.
    pub mean: f64,
    /// 99th percentile of the absolute errors (an upper estimate: percentiles of parts are added).
    pub p99: f64,
    /// The part that contributes most to the mean.
    pub main: ErrorPart,
    /// Samples with an unknown lag: their errors are larger than estimated.
    pub unknown: u64,
}

/// The error of one stamp in fixed-point units. A sample of `tpot` has a fraction of a stamp, and
/// sums of integers do not depend on their order.
const STAMP_UNIT: u64 = 1_000_000;

/// Errors of one metric's samples, in nanoseconds.
#[derive(Debug, Default)]
struct MetricErrors {
    count: u64,
    /// Sums by part, for the parts that are known when a request ends.
    dispatch: Nanos,
    send: Nanos,
    late_reads: Nanos,
    /// The number of stamps in all samples, and the number of stamps taken from reads, in units of
    /// [`STAMP_UNIT`].
    stamps: u64,
    read_stamps: u64,
    /// Samples with a read stamp.
    with_read_stamp: u64,
    /// The known parts of each sample. Almost all known parts of `tbc` are 0 and only counted.
    known: LiveHistogram,
    without_known: u64,
}

impl MetricErrors {
    fn add_sample(&mut self, known: Nanos, stamps: u64, source: StampSource) {
        self.add_samples(1, known, stamps, source);
    }

    /// Adds samples with the same error.
    fn add_samples(&mut self, count: u64, known: Nanos, stamps: u64, source: StampSource) {
        self.count += count;
        self.stamps += count * stamps;
        if source == StampSource::Read {
            self.read_stamps += count * stamps;
            self.with_read_stamp += count;
        }
        if known > 0 {
            self.known.record_many(known, count);
        } else {
            self.without_known += count;
        }
    }

    fn p99_of_known(&self) -> f64 {
        let rank = 0.99 * self.count as f64 - self.without_known as f64;
        let with_known = self.known.count();
        if rank <= 0.0 || with_known == 0 {
            return 0.0;
        }
        let quantile = (rank / with_known as f64).min(1.0);
        self.known.quantile(quantile).map_or(0.0, |nanos| nanos as f64)
    }

    fn estimate(
        &self,
        metric: Metric,
        constant: DelaySpread,
        lag: Option<DelaySpread>,
    ) -> Option<ErrorEstimate> {
        if self.count == 0 {
            return None;
        }
        let count = self.count as f64;
        let stamps = self.stamps as f64 / STAMP_UNIT as f64;
        let read_stamps = self.read_stamps as f64 / STAMP_UNIT as f64;
        let parts = [
            (ErrorPart::Kernel, stamps * constant.typical),
            (ErrorPart::Lag, lag.map_or(0.0, |lag| read_stamps * lag.typical)),
            (ErrorPart::LateReads, self.late_reads as f64),
            (ErrorPart::Send, self.send as f64),
            (ErrorPart::Dispatch, self.dispatch as f64),
        ];
        let largest = parts.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
        // One percent of the read-stamped samples is enough to determine the 99th percentile.
        let lag_in_p99 = lag
            .filter(|_| self.with_read_stamp * 100 > self.count)
            .map_or(0.0, |lag| lag.p99 * read_stamps / self.with_read_stamp as f64);
        let p99 = self.p99_of_known() + constant.p99 * stamps / count + lag_in_p99;
        let mean = parts.iter().map(|(_, sum)| sum).sum::<f64>() / count;
        Some(ErrorEstimate {
            metric,
            count: self.count,
            mean: mean / 1e9,
            p99: p99.max(mean) / 1e9,
            main: largest.0,
            unknown: if lag.is_none() { self.with_read_stamp } else { 0 },
        })
    }
}

/// The errors of a run so far.
#[derive(Debug, Default)]
pub(crate) struct ErrorSamples {
    /// Of each metric of [`Metric::certified`] that has samples.
    by_metric: BTreeMap<Metric, MetricErrors>,
    /// Events of all measured answers: the work that used the client threads' time.
    events: u64,
    /// Generated chunks whose arrival times were lost by late reads.
    pub(crate) late_flagged: u64,
}

impl ErrorSamples {
    /// Adds an answered, measured request. `late` is its dispatch lateness in nanoseconds;
    /// `sending` is the time between dispatch and last byte without the opening of a connection.
    pub(crate) fn add(&mut self, record: &RequestRecord, row: &RequestRow, late: i64, sending: Nanos) {
        self.events += record.chunks.len() as u64;
        if !row.observed.has_output() {
            return;
        }
        let lost = late_reads(record);
        self.late_flagged += lost.iter().map(|read| read.flagged).sum::<u64>();
        let first_shift = lost.iter().find(|read| read.first).map_or(0, |read| read.shift());
        let late = late.unsigned_abs();
        let source = record.stamps;
        // The last chunk of a read has a correct stamp however late the read was, so lateness does
        // not shift the end.
        let to_end = [(Metric::EndToEnd, 0, 0), (Metric::EndToEndFromIntended, late, 0)];
        // Unknown if the response was not streamed.
        let has_first = row.observed.first.get().is_some();
        let to_first = [
            (Metric::Ttfc, 0, first_shift),
            (Metric::TtfcFromIntended, late, first_shift),
        ];
        let to_first = to_first.into_iter().filter(|_| has_first);
        for (metric, late, shift) in to_first.chain(to_end) {
            let errors = self.of(metric);
            errors.dispatch += late;
            errors.send += sending;
            errors.late_reads += shift;
            errors.add_sample(late + sending + shift, STAMP_UNIT, source);
        }
        if let Some(tokens) = row
            .observed
            .decoded_tokens()
            .filter(|_| row.sample(Metric::Tpot).is_some())
        {
            let per_token = |amount: u64| (amount as f64 / tokens) as u64;
            let tpot = self.of(Metric::Tpot);
            tpot.late_reads += per_token(first_shift);
            tpot.add_sample(per_token(first_shift), per_token(2 * STAMP_UNIT), source);
        }
        add_gaps(self.of(Metric::Tbc), u64::from(row.gaps.count), &lost, source);
    }

    fn of(&mut self, metric: Metric) -> &mut MetricErrors {
        self.by_metric.entry(metric).or_default()
    }

    /// Returns the estimates of all metrics that have samples. `lags` are the lags of
    /// kernel-stamped chunks.
    pub(crate) fn estimates(
        &self,
        lags: &LiveHistogram,
        mean_lag: Option<f64>,
        threads: &[ThreadUse],
    ) -> Vec<ErrorEstimate> {
        let observed = mean_lag
            .filter(|_| lags.count() >= LAGS_ENOUGH)
            .map(|typical| DelaySpread {
                typical,
                p99: lags.quantile(0.99).map_or(typical, |nanos| nanos as f64),
            });
        let lag = observed.or_else(|| lag_by_threads(threads, self.events));
        Metric::certified()
            .filter_map(|metric| {
                let constant = match metric.definition_of().samples {
                    Samples::ChunkGaps | Samples::TokenGaps => GAP,
                    Samples::Request(_) | Samples::Session | Samples::ThinkTimes | Samples::ToolRun(_) => {
                        STAMP
                    }
                };
                self.by_metric.get(&metric)?.estimate(metric, constant, lag)
            })
            .collect()
    }
}

/// Adds the gaps of an answer. In a late read of n bundles, n − 1 gaps are recorded as 0 and may
/// have been the gap between bundles; the gap before them is too long by the sum.
fn add_gaps(tbc: &mut MetricErrors, gaps: u64, lost: &[crate::reads::LateRead], source: StampSource) {
    let mut exact = gaps;
    for read in lost {
        let within = read.lost_gaps().min(exact);
        tbc.late_reads += within * read.between();
        tbc.add_samples(within, read.between(), STAMP_UNIT, source);
        exact -= within;
        if !read.first && exact > 0 {
            tbc.late_reads += read.shift();
            tbc.add_sample(read.shift(), STAMP_UNIT, source);
            exact -= 1;
        }
    }
    tbc.add_samples(exact, 0, STAMP_UNIT, source);
}

/// Estimates the lag of reads from the activity of the client threads; see the module
/// documentation. Queueing delays are approximately exponential, so P99 is ln 100 times the mean.
fn lag_by_threads(threads: &[ThreadUse], events: u64) -> Option<DelaySpread> {
    let clients = || {
        threads
            .iter()
            .filter(|thread| thread.is_client() && thread.seconds > 0.0)
    };
    if events == 0 || clients().next().is_none() {
        return None;
    }
    let queueing = |thread: &ThreadUse| {
        let load = (thread.busy_seconds / thread.seconds).clamp(0.0, 0.99);
        thread.waiting_seconds + thread.busy_seconds * load / (2.0 * (1.0 - load))
    };
    let typical = WAKE_UP + clients().map(queueing).sum::<f64>() * 1e9 / events as f64;
    Some(DelaySpread {
        typical,
        p99: typical * 100f64.ln(),
    })
}
