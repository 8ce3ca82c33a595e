//! Where in a workload a number is drawn.

use veeksha_plugin::{Draws, Random};

/// One random stream, and the step of a stair for its next number.
pub(crate) struct Draw<'a> {
    /// Numbers of this concern.
    pub(crate) draws: Draws,
    /// The session, for what is common to the run.
    pub(crate) random: &'a Random,
    /// The step, counted through the workload.
    pub(crate) step: u64,
}

impl<'a> Draw<'a> {
    /// The stream of a name in a session, at a step.
    pub(crate) fn new(random: &'a Random, name: &'static str, step: u64) -> Self {
        Draw {
            draws: random.stream(name),
            random,
            step,
        }
    }

    /// Goes to the next step and answers with the one before.
    pub(crate) fn next_step(&mut self) -> u64 {
        let step = self.step;
        self.step = step.saturating_add(1);
        step
    }
}
