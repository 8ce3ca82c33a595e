//! How well the host itself did: what says whether the other figures can be trusted.

use veeksha_events::RequestRecord;
use veeksha_model::Nanos;
use veeksha_stats::Summary;

use crate::latencies::seconds_between;

/// Figures of the host over all measured requests that were sent, failed ones included. Times are in seconds; a summary is
/// `None` where nothing was observed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostFigures {
    /// Dispatched − intended. Negative values are early dispatches.
    pub dispatch_lateness: Option<Summary>,
    /// Picked up by a client − dispatched.
    pub pickup_delay: Option<Summary>,
    /// Last request byte handed to the socket − dispatched; connecting is in it.
    pub send_lateness: Option<Summary>,
    /// Result processed − completed.
    pub processing_delay: Option<Summary>,
    /// TCP connect time of new connections.
    pub connect_time: Option<Summary>,
    /// TLS handshake time of new connections.
    pub tls_time: Option<Summary>,
    /// Generated chunks that shared a read with an earlier event ÷ generated chunks: their gaps are not the server's.
    pub merged_chunk_share: Option<f64>,
    /// Sent on a connection that had carried an earlier request ÷ sent.
    pub connection_reuse_share: Option<f64>,
    /// How often the scheduler wanted a session that the plugin had not delivered yet.
    pub starvations: u64,
    /// How long it waited for them in all.
    pub starved_seconds: f64,
}

/// What [`HostFigures`] is computed from.
#[derive(Debug, Default)]
pub(crate) struct HostSamples {
    dispatch_lateness: Vec<f64>,
    pickup_delay: Vec<f64>,
    send_lateness: Vec<f64>,
    processing_delay: Vec<f64>,
    connect_time: Vec<f64>,
    tls_time: Vec<f64>,
    generated: u64,
    merged: u64,
    sent: u64,
    reused: u64,
    starvations: u64,
    starved: Nanos,
}

impl HostSamples {
    pub(crate) fn add_measured(&mut self, record: &RequestRecord) {
        let dispatched = record.dispatched_at;
        self.dispatch_lateness
            .push(seconds_between(record.intended, dispatched));
        self.pickup_delay
            .extend(record.picked_up_at.map(|at| seconds_between(dispatched, at)));
        self.processing_delay
            .push(seconds_between(record.completed_at, record.processed_at));
        self.connect_time
            .extend(record.connect.map(|time| time as f64 / 1e9));
        self.tls_time.extend(record.tls.map(|time| time as f64 / 1e9));
        if let Some(sent) = record.sent_at {
            self.send_lateness.push(seconds_between(dispatched, sent));
            self.sent += 1;
            self.reused += u64::from(record.connection_reused);
        }
        for chunk in record.chunks.iter().filter(|chunk| chunk.kind.is_generated()) {
            self.generated += 1;
            self.merged += u64::from(chunk.merged);
        }
    }

    pub(crate) fn add_starvation(&mut self, due: Nanos, at: Nanos) {
        self.starvations += 1;
        self.starved += at.saturating_sub(due);
    }

    pub(crate) fn figures(mut self) -> HostFigures {
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        HostFigures {
            dispatch_lateness: Summary::of(&mut self.dispatch_lateness),
            pickup_delay: Summary::of(&mut self.pickup_delay),
            send_lateness: Summary::of(&mut self.send_lateness),
            processing_delay: Summary::of(&mut self.processing_delay),
            connect_time: Summary::of(&mut self.connect_time),
            tls_time: Summary::of(&mut self.tls_time),
            merged_chunk_share: share(self.merged, self.generated),
            connection_reuse_share: share(self.reused, self.sent),
            starvations: self.starvations,
            starved_seconds: self.starved as f64 / 1e9,
        }
    }
}
