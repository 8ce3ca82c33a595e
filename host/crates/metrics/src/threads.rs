//! The processor use of the measurement threads.

use std::collections::BTreeMap;

use veeksha_events::ThreadSample;
use veeksha_model::Nanos;

/// The minimum length of an interval: samples are merged to intervals of about a second, because
/// shares of shorter ones are too noisy.
const STRETCH: Nanos = 900_000_000;

/// The processor use of one thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadUse {
    /// The thread name: `client-0`, `dispatcher-0`, ...
    pub thread: String,
    /// The monitored time, in seconds.
    pub seconds: f64,
    /// Time on a processor, in seconds.
    pub busy_seconds: f64,
    /// Time runnable without a processor, in seconds.
    pub waiting_seconds: f64,
    /// The largest share of an interval of about a second (at least 0.9 s) on a processor; `None`
    /// if the thread was monitored for less time.
    pub busiest: Option<f64>,
    /// The largest share of such an interval spent waiting for a processor.
    pub most_waiting: Option<f64>,
}

impl ThreadUse {
    /// Returns true if the thread serves sockets.
    pub fn is_client(&self) -> bool {
        self.thread.starts_with("client")
    }

    /// Returns the share of all time on a processor; `None` without time.
    pub fn busy_share(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.busy_seconds / self.seconds)
    }

    /// Returns the share of all time spent waiting for a processor; `None` without time.
    pub fn waiting_share(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.waiting_seconds / self.seconds)
    }
}

/// Samples so far, by thread.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    by_name: BTreeMap<String, Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    all: ThreadInterval,
    current: ThreadInterval,
    busiest: Option<f64>,
    most_waiting: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ThreadInterval {
    span: Nanos,
    busy: Nanos,
    waiting: Nanos,
}

impl ThreadInterval {
    fn add(&mut self, sample: &ThreadSample) {
        self.span += sample.span;
        self.busy += sample.busy;
        self.waiting += sample.waiting;
    }

    /// Returns the share of an interval. The kernel counts in steps, so a part may slightly exceed
    /// the whole.
    fn share(&self, part: Nanos) -> f64 {
        (part as f64 / self.span as f64).min(1.0)
    }
}

impl Threads {
    pub(crate) fn add(&mut self, sample: &ThreadSample) {
        if sample.span == 0 {
            return;
        }
        if !self.by_name.contains_key(&sample.thread) {
            self.by_name.insert(sample.thread.clone(), Watched::default());
        }
        let Some(watched) = self.by_name.get_mut(&sample.thread) else {
            return;
        };
        watched.all.add(sample);
        watched.current.add(sample);
        if watched.current.span >= STRETCH {
            let stretch = std::mem::take(&mut watched.current);
            let larger = |known: Option<f64>, share: f64| Some(known.map_or(share, |known| known.max(share)));
            watched.busiest = larger(watched.busiest, stretch.share(stretch.busy));
            watched.most_waiting = larger(watched.most_waiting, stretch.share(stretch.waiting));
        }
    }

    /// Returns the statistics in the order of the thread names.
    pub(crate) fn finish(self) -> Vec<ThreadUse> {
        let seconds = |nanos: Nanos| nanos as f64 / 1e9;
        let summary = |(thread, watched): (String, Watched)| ThreadUse {
            thread,
            seconds: seconds(watched.all.span),
            busy_seconds: seconds(watched.all.busy),
            waiting_seconds: seconds(watched.all.waiting),
            busiest: watched.busiest,
            most_waiting: watched.most_waiting,
        };
        self.by_name.into_iter().map(summary).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(thread: &str, span_ms: u64, busy_ms: u64, waiting_ms: u64) -> ThreadSample {
        ThreadSample {
            thread: thread.into(),
            at: 0,
            span: span_ms * 1_000_000,
            busy: busy_ms * 1_000_000,
            waiting: waiting_ms * 1_000_000,
        }
    }

    fn finish(samples: &[ThreadSample]) -> Vec<ThreadUse> {
        let mut threads = Threads::default();
        samples.iter().for_each(|sample| threads.add(sample));
        threads.finish()
    }

    #[test]
    fn short_samples_are_put_together_to_a_second() {
        // Two intervals of 1 s: 100 + 700 of 1000, then 300 of 1000. A fully busy remainder of 200
        // ms is too short to count.
        let seen = finish(&[
            sample("client-0", 500, 100, 50),
            sample("dispatcher-0", 1000, 10, 0),
            sample("client-0", 500, 700, 0),
            sample("client-0", 1000, 300, 400),
            sample("client-0", 200, 200, 0),
        ]);
        assert_eq!(seen.len(), 2);
        assert_eq!((seen[0].busiest, seen[0].most_waiting), (Some(0.8), Some(0.4)));
        assert!((seen[0].busy_seconds - 1.3).abs() < 1e-12 && (seen[0].waiting_seconds - 0.45).abs() < 1e-12);
        assert!(seen[0].is_client() && !seen[1].is_client());
        assert_eq!(seen[1].busiest, Some(0.01));
    }

    #[test]
    fn a_thread_that_was_watched_for_less_has_no_busiest_second() {
        let seen = finish(&[sample("client-0", 300, 300, 0), sample("client-1", 0, 0, 0)]);
        assert_eq!((seen.len(), seen[0].busiest), (1, None));
        assert_eq!(seen[0].busy_share(), Some(1.0));
    }

    #[test]
    fn no_share_is_above_one() {
        assert_eq!(finish(&[sample("client-0", 1000, 1003, 0)])[0].busiest, Some(1.0));
    }
}
