//! What a run watches of itself while it goes on: how busy its threads are, and whether the wall clock was set.

use std::sync::{Arc, Mutex};

use veeksha_clock::RunClock;
use veeksha_events::{Event, ThreadSample};
use veeksha_machine::{ClockReading, ClockWatch, ThreadWatch};
use veeksha_model::Nanos;

/// Threads by whose lack of time a measurement suffers.
const THREADS: [&str; 4] = ["dispatcher-", "client-", "completion-", "plugin-"];

/// Time servers slew by at most 500 µs in the second between two looks; a reading that was interrupted is off by less than this.
const STEP_NANOS: Nanos = 2_000_000;

/// Looks at threads and clock.
pub(crate) struct Watch {
    /// Of its own: only differences matter.
    clock: RunClock,
    threads: ThreadWatch,
    steps: ClockWatch,
}

impl Watch {
    /// What the pipeline calls once a second.
    pub(crate) fn of_a_run() -> veeksha_pipeline::ThreadWatch {
        let mut watch = Watch {
            clock: RunClock::starting_now(),
            // Before the run's threads are there: what the first look sees of them is all that they have done.
            threads: ThreadWatch::new(&THREADS, 0),
            steps: ClockWatch::new(STEP_NANOS),
        };
        Arc::new(Mutex::new(move |now| watch.look(now)))
    }

    fn look(&mut self, now: Nanos) -> Vec<Event> {
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
