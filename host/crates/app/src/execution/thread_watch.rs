//! Observation of the run itself: the load of its threads, and steps of the wall clock.

use std::sync::{Arc, Mutex};

use veeksha_clock::RunClock;
use veeksha_events::{Event, ThreadSample};
use veeksha_machine::{ClockReading, ClockWatch, ThreadWatch};
use veeksha_model::Nanos;

/// Prefixes of the threads whose lack of processor time affects a measurement.
const THREADS: [&str; 4] = ["dispatcher-", "client-", "completion-", "plugin-"];

/// Minimum step of the wall clock that counts. Time servers slew by at most 500 µs between two
/// samples, and an interrupted reading is off by less than this.
const STEP_NANOS: Nanos = 2_000_000;

/// Sampler of threads and clock.
pub(crate) struct Watch {
    /// A separate clock, because only differences matter.
    clock: RunClock,
    threads: ThreadWatch,
    steps: ClockWatch,
}

impl Watch {
    /// Returns the function that the pipeline calls once a second.
    pub(crate) fn of_a_run() -> veeksha_pipeline::ThreadSampler {
        let mut watch = Watch {
            clock: RunClock::starting_now(),
            // Created before the threads of the run, so that the first sample covers all of their
            // work.
            threads: ThreadWatch::new(&THREADS, 0),
            steps: ClockWatch::new(STEP_NANOS),
        };
        Arc::new(Mutex::new(move |now| watch.sample(now)))
    }

    fn sample(&mut self, now: Nanos) -> Vec<Event> {
        let samples = self.threads.sample(now);
        let samples = samples.into_iter().map(|sample| {
            Event::ThreadSampled(ThreadSample {
                thread: sample.thread,
                at: sample.at,
                span: sample.span,
                busy: sample.busy,
                waiting: sample.waiting,
            })
        });
        let step = self.steps.look(ClockReading::take(self.clock));
        let step = step.map(|step| Event::ClockStepped { at: now, by: step.by });
        samples.chain(step).collect()
    }
}
