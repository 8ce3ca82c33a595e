//! Statistics of the host's own performance, which determine how far the metrics can be trusted.

use std::collections::BTreeMap;

use veeksha_events::{Event, RequestRecord};
use veeksha_model::{Nanos, StampSource};
use veeksha_stats::{LiveHistogram, Summary};

use crate::error_estimates::ErrorEstimate;
use crate::error_estimates::ErrorSamples;
use crate::row::RequestRow;
use crate::threads::ThreadUse;
use crate::threads::Threads;
use veeksha_definitions::seconds_between;

/// The lateness above which a dispatch is counted as late.
const LATE_DISPATCH: Nanos = 1_000_000;

/// Statistics of the host over all measured requests that were sent, including failed ones. Times
/// are in seconds; a summary is `None` if nothing was observed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostPerformance {
    /// Dispatched − intended − held back by limits. Negative values are early dispatches.
    pub dispatch_lateness: Option<Summary>,
    /// Dispatches that were more than a millisecond late.
    pub late_dispatches: u64,
    /// Delays imposed by limits.
    pub held: HeldDelays,
    /// Picked up by a client − dispatched.
    pub pickup_delay: Option<Summary>,
    /// Last request byte handed to the socket − dispatched, for requests on a reused connection.
    pub send_lateness: Option<Summary>,
    /// The same for requests that waited for a new connection.
    pub send_lateness_with_opening: Option<Summary>,
    /// Result processed − completed.
    pub processing_delay: Option<Summary>,
    /// Name resolution for new connections.
    pub resolve_time: Option<Summary>,
    /// TCP connect time of new connections.
    pub connect_time: Option<Summary>,
    /// TLS handshake time of new connections.
    pub tls_time: Option<Summary>,
    /// Times to first chunk that include the opening of a connection.
    pub ttfc_with_opening: u64,
    /// Client lag: read returned − received by the kernel, of generated chunks of kernel-stamped
    /// answers.
    pub client_lag: Option<LagDistribution>,
    /// Requests with kernel arrival times.
    pub kernel_stamped: u64,
    /// Requests whose arrival times are read times.
    pub read_stamped: u64,
    /// Generated chunks that shared a read with an earlier event ÷ generated chunks: their gaps are
    /// recorded as 0.
    pub merged_chunk_share: Option<f64>,
    /// Generated chunks that were merged because the client was late, not because the server sent
    /// them together, ÷ generated chunks of answered, kernel-stamped requests; `None` if there is
    /// no such chunk. A read is late if it returned longer after the arrival of its last segment
    /// than half of the stream's mean gap, or than a millisecond.
    pub late_merged_chunk_share: Option<f64>,
    /// Connections that were opened by requests.
    pub connections_opened: u64,
    /// Requests that were sent on a reused connection.
    pub connections_reused: u64,
    /// Requests on a reused connection ÷ requests sent.
    pub connection_reuse_share: Option<f64>,
    /// The same without unavoidable openings: as many as the peak number of requests in flight. 1
    /// if every further request reused a connection; `None` if there was no further request.
    pub connection_reuse_share_after_first: Option<f64>,
    /// The number of times that the scheduler needed a session that the plugin had not delivered
    /// yet.
    pub starvations: u64,
    /// Total time that the scheduler waited for sessions.
    pub starved_seconds: f64,
    /// The monitored threads.
    pub threads: Vec<ThreadUse>,
    /// The number of wall clock steps during the run.
    pub clock_steps: u64,
    /// The largest step by magnitude, in seconds; negative if the clock was set back.
    pub largest_clock_step: Option<f64>,
    /// The error estimates of the metrics.
    pub errors: Vec<ErrorEstimate>,
}

/// Delays imposed by limits, in seconds, over the requests that each limit held back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HeldDelays {
    /// Waiting for a session to end.
    pub sessions: Option<Summary>,
    /// Waiting for a request to end.
    pub in_flight: Option<Summary>,
    /// Waiting for another request's first generated chunk.
    pub in_prefill: Option<Summary>,
}

/// The distribution of the client's lag, in seconds, to three significant digits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LagDistribution {
    /// Chunks.
    pub count: u64,
    /// Arithmetic mean (exact).
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

/// The samples from which [`HostPerformance`] is computed.
#[derive(Debug, Default)]
pub(crate) struct HostSamples {
    dispatch_lateness: Vec<f64>,
    late_dispatches: u64,
    held: [Vec<f64>; 3],
    pickup_delay: Vec<f64>,
    send_lateness: Vec<f64>,
    send_lateness_with_opening: Vec<f64>,
    processing_delay: Vec<f64>,
    resolve_time: Vec<f64>,
    connect_time: Vec<f64>,
    tls_time: Vec<f64>,
    ttfc_with_opening: u64,
    lags: Lags,
    stamped: BTreeMap<StampSource, u64>,
    generated: u64,
    merged: u64,
    /// Generated chunks of answered, kernel-stamped requests.
    kernel_generated: u64,
    sent: u64,
    reused: u64,
    flights: RequestSpans,
    starvations: u64,
    starved: Nanos,
    threads: Threads,
    clock_steps: u64,
    largest_clock_step: i64,
    errors: ErrorSamples,
}

/// Begin and end instants of requests that were sent.
#[derive(Debug, Default)]
struct RequestSpans {
    begins: Vec<Nanos>,
    ends: Vec<Nanos>,
}

impl RequestSpans {
    /// Returns the peak number of concurrent requests, which is the number of connections that
    /// cannot be avoided. A request that ends at the instant another begins does not overlap it.
    fn most(&mut self) -> u64 {
        self.begins.sort_unstable();
        self.ends.sort_unstable();
        let (mut ended, mut most) = (0, 0);
        for (begun, at) in self.begins.iter().enumerate() {
            ended += self.ends[ended..]
                .iter()
                .take_while(|end| *end <= at)
                .count()
                .min(begun - ended);
            most = most.max(begun + 1 - ended);
        }
        most as u64
    }
}

/// The lags of kernel-stamped chunks.
#[derive(Debug, Default)]
pub(crate) struct Lags {
    pub(crate) histogram: LiveHistogram,
    sum: u64,
}

impl Lags {
    fn add(&mut self, lag: u32) {
        self.histogram.record(u64::from(lag));
        self.sum += u64::from(lag);
    }

    /// In nanoseconds.
    fn mean(&self) -> Option<f64> {
        let count = self.histogram.count();
        (count > 0).then(|| self.sum as f64 / count as f64)
    }

    fn distribution(&self) -> Option<LagDistribution> {
        let quantile = |p| self.histogram.quantile(p).map(|nanos| nanos as f64 / 1e9);
        Some(LagDistribution {
            count: self.histogram.count(),
            mean: self.mean()? / 1e9,
            p50: quantile(0.5)?,
            p99: quantile(0.99)?,
            max: quantile(1.0)?,
        })
    }
}

/// Dispatched − intended − held, in nanoseconds.
pub(crate) fn dispatch_lateness(record: &RequestRecord) -> i64 {
    record.dispatched_at as i64 - record.intended as i64 - record.held.total() as i64
}

/// Returns the time for opening a connection, in nanoseconds; `None` if none was opened.
fn opening(record: &RequestRecord) -> Option<Nanos> {
    let parts = [record.resolve, record.connect, record.tls];
    let opened = parts.iter().any(Option::is_some);
    opened.then(|| parts.into_iter().flatten().sum())
}

impl HostSamples {
    /// Adds a measured request.
    pub(crate) fn add_measured(&mut self, record: &RequestRecord, row: &RequestRow) {
        let late = dispatch_lateness(record);
        self.dispatch_lateness.push(late as f64 / 1e9);
        self.late_dispatches += u64::from(late > LATE_DISPATCH as i64);
        let held = record.held;
        for (times, held) in self
            .held
            .iter_mut()
            .zip([held.sessions, held.in_flight, held.in_prefill])
        {
            times.extend((held > 0).then_some(held as f64 / 1e9));
        }
        self.pickup_delay.extend(
            record
                .picked_up_at
                .map(|at| seconds_between(record.dispatched_at, at)),
        );
        self.processing_delay
            .push(seconds_between(record.completed_at, record.processed_at));
        self.add_connection(record);
        self.add_chunks(record);
        if row.has_samples() {
            let opening = opening(record);
            self.ttfc_with_opening += u64::from(row.observed.first.get().is_some() && opening.is_some());
            let sent = record.sent_at.unwrap_or(record.dispatched_at);
            let sending = sent
                .saturating_sub(record.dispatched_at)
                .saturating_sub(opening.unwrap_or(0));
            self.errors.add(record, row, late, sending);
        }
    }

    fn add_connection(&mut self, record: &RequestRecord) {
        let seconds = |time: Option<Nanos>| time.map(|time| time as f64 / 1e9);
        self.resolve_time.extend(seconds(record.resolve));
        self.connect_time.extend(seconds(record.connect));
        self.tls_time.extend(seconds(record.tls));
        if let Some(sent) = record.sent_at {
            let lateness = seconds_between(record.dispatched_at, sent);
            if record.connection_reused {
                self.send_lateness.push(lateness);
            } else {
                self.send_lateness_with_opening.push(lateness);
            }
            self.sent += 1;
            self.flights.begins.push(record.dispatched_at);
            self.flights.ends.push(record.completed_at);
            self.reused += u64::from(record.connection_reused);
        }
    }

    fn add_chunks(&mut self, record: &RequestRecord) {
        if record.chunks.is_empty() {
            return;
        }
        *self.stamped.entry(record.stamps).or_default() += 1;
        let by_kernel = record.stamps == StampSource::Kernel;
        for chunk in record.chunks.iter().filter(|chunk| chunk.kind.is_generated()) {
            self.generated += 1;
            self.merged += u64::from(chunk.merged);
            if by_kernel {
                self.lags.add(chunk.lag);
                self.kernel_generated += u64::from(!record.is_failed());
            }
        }
    }

    /// Processes events about the host other than requests.
    pub(crate) fn on(&mut self, event: &Event) {
        match event {
            Event::Starved { due, at } => {
                self.starvations += 1;
                self.starved += at.saturating_sub(*due);
            }
            Event::ThreadSampled(sample) => self.threads.add(sample),
            Event::ClockStepped { by, .. } => {
                self.clock_steps += 1;
                if by.unsigned_abs() > self.largest_clock_step.unsigned_abs() {
                    self.largest_clock_step = *by;
                }
            }
            _ => {}
        }
    }

    /// Returns the 99th percentile of the client's lag so far, in seconds.
    pub(crate) fn live_lag_p99(&self) -> Option<f64> {
        self.lags.histogram.quantile(0.99).map(|nanos| nanos as f64 / 1e9)
    }

    pub(crate) fn finish(mut self) -> HostPerformance {
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let opened = self.sent - self.reused;
        let needed = opened.min(self.flights.most());
        let threads = self.threads.finish();
        let errors = self
            .errors
            .estimates(&self.lags.histogram, self.lags.mean(), &threads);
        let stamped = |source| self.stamped.get(&source).copied().unwrap_or(0);
        let [sessions, in_flight, in_prefill] = &mut self.held;
        HostPerformance {
            dispatch_lateness: Summary::of(&mut self.dispatch_lateness),
            late_dispatches: self.late_dispatches,
            held: HeldDelays {
                sessions: Summary::of(sessions),
                in_flight: Summary::of(in_flight),
                in_prefill: Summary::of(in_prefill),
            },
            pickup_delay: Summary::of(&mut self.pickup_delay),
            send_lateness: Summary::of(&mut self.send_lateness),
            send_lateness_with_opening: Summary::of(&mut self.send_lateness_with_opening),
            processing_delay: Summary::of(&mut self.processing_delay),
            resolve_time: Summary::of(&mut self.resolve_time),
            connect_time: Summary::of(&mut self.connect_time),
            tls_time: Summary::of(&mut self.tls_time),
            ttfc_with_opening: self.ttfc_with_opening,
            client_lag: self.lags.distribution(),
            kernel_stamped: stamped(StampSource::Kernel),
            read_stamped: stamped(StampSource::Read),
            merged_chunk_share: share(self.merged, self.generated),
            late_merged_chunk_share: share(self.errors.late_flagged, self.kernel_generated),
            connections_opened: opened,
            connections_reused: self.reused,
            connection_reuse_share: share(self.reused, self.sent),
            connection_reuse_share_after_first: share(self.reused, self.sent - needed),
            starvations: self.starvations,
            starved_seconds: self.starved as f64 / 1e9,
            threads,
            clock_steps: self.clock_steps,
            largest_clock_step: (self.clock_steps > 0).then(|| self.largest_clock_step as f64 / 1e9),
            errors,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn most(flights: &[(Nanos, Nanos)]) -> u64 {
        let (begins, ends) = flights.iter().copied().unzip();
        RequestSpans { begins, ends }.most()
    }

    #[test]
    fn one_that_ends_makes_room() {
        assert_eq!(most(&[]), 0);
        assert_eq!(most(&[(0, 10), (10, 20), (20, 20)]), 1);
        assert_eq!(most(&[(5, 30), (0, 10), (9, 12), (11, 13)]), 3);
    }

    proptest! {
        /// Compares against a direct count at each begin instant.
        #[test]
        fn the_most_at_once(flights in prop::collection::vec((0u64..40, 1u64..20), 0..30)) {
            let flights: Vec<(Nanos, Nanos)> = flights.into_iter().map(|(begin, took)| (begin, begin + took)).collect();
            let at = |now: Nanos| flights.iter().filter(|(begin, end)| *begin <= now && now < *end).count() as u64;
            let literal = flights.iter().map(|(begin, _)| at(*begin)).max().unwrap_or(0);
            prop_assert_eq!(most(&flights), literal);
        }
    }
}
