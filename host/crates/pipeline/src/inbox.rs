//! A dispatcher's wait: for its next deadline or for an input, whichever comes first.
//!
//! `examples/wait_precision.rs` compares the ways of waiting. On the machine where this was chosen
//! (two cores of a virtual machine, slack of 1 ns, medians of interleaved rounds) a bare
//! `clock_nanosleep` woke up 34 µs after its deadline, parking 36 µs, and the channel's own
//! `recv_timeout` 43 µs, because it yields its core several times before it sleeps; an input woke
//! both within 20 to 23 µs, and a bare sleep not at all. Parking is a futex with an absolute
//! deadline on the monotonic clock. With the last 100 µs spun, every way is within 0.2 µs at the
//! median.

use std::thread::Thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TryRecvError, unbounded};
use veeksha_clock::RunClock;
use veeksha_model::Nanos;

/// The longest sleep, after which a dispatcher notices that all senders are gone.
const LONGEST: Nanos = 1_000_000_000;

/// The receiving end of a dispatcher's inputs.
pub(crate) struct Inbox<T> {
    inputs: Receiver<T>,
    clock: RunClock,
    /// The last stretch before a deadline, in which it does not sleep.
    spin: Nanos,
}

/// The result of a wait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WaitResult<T> {
    Input(T),
    /// The deadline has passed.
    Deadline,
    /// No input will ever come.
    Disconnected,
}

/// Puts inputs into an inbox whose thread is not known yet.
pub(crate) struct UnboundSender<T>(Sender<T>);

/// Puts inputs into a dispatcher's inbox, and wakes it. Never blocks.
pub(crate) struct InputSender<T> {
    inputs: Sender<T>,
    dispatcher: Thread,
}

impl<T> Clone for InputSender<T> {
    fn clone(&self) -> Self {
        InputSender {
            inputs: self.inputs.clone(),
            dispatcher: self.dispatcher.clone(),
        }
    }
}

impl<T> Inbox<T> {
    pub(crate) fn new(clock: RunClock, spin: Nanos) -> (UnboundSender<T>, Inbox<T>) {
        let (sender, inputs) = unbounded();
        (UnboundSender(sender), Inbox { inputs, clock, spin })
    }

    /// Waits on the thread that owns the inbox, until the deadline if there is one. Inputs come
    /// before deadlines, because the caller checks deadlines after every input as well.
    pub(crate) fn wait(&self, deadline: Option<Nanos>) -> WaitResult<T> {
        loop {
            match self.inputs.try_recv() {
                Ok(input) => return WaitResult::Input(input),
                Err(TryRecvError::Disconnected) => return WaitResult::Disconnected,
                Err(TryRecvError::Empty) => {}
            }
            let now = self.clock.now();
            let sleep = match deadline {
                Some(deadline) if deadline <= now => return WaitResult::Deadline,
                Some(deadline) => (deadline - now).saturating_sub(self.spin),
                None => LONGEST,
            };
            match sleep {
                0 => std::hint::spin_loop(),
                // A token that was left by an input already taken ends this at once; then it is
                // tried again.
                _ => std::thread::park_timeout(Duration::from_nanos(sleep.min(LONGEST))),
            }
        }
    }
}

impl<T> UnboundSender<T> {
    /// Binds the sender to the waiting thread.
    pub(crate) fn bind(self, dispatcher: &Thread) -> InputSender<T> {
        InputSender {
            inputs: self.0,
            dispatcher: dispatcher.clone(),
        }
    }
}

impl<T> InputSender<T> {
    /// A dispatcher that has ended wants no more inputs.
    pub(crate) fn send(&self, input: T) {
        if self.inputs.send(input).is_ok() {
            self.dispatcher.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inbox(spin: Nanos) -> (InputSender<u32>, Inbox<u32>) {
        let (slot, inbox) = Inbox::new(RunClock::starting_now(), spin);
        (slot.bind(&std::thread::current()), inbox)
    }

    #[test]
    fn a_deadline_is_never_early_and_inputs_come_first() {
        for spin in [0, 300_000, u64::MAX] {
            let (sender, inbox) = inbox(spin);
            let deadline = inbox.clock.now() + 2_000_000;
            assert_eq!(inbox.wait(Some(deadline)), WaitResult::Deadline);
            assert!(inbox.clock.now() >= deadline);
            sender.send(7);
            assert_eq!(inbox.wait(Some(0)), WaitResult::Input(7));
            assert_eq!(inbox.wait(Some(0)), WaitResult::Deadline);
        }
    }

    /// An input ends a sleep that has an hour to go, and one that has no end.
    #[test]
    fn input_ends_sleep_and_spin() {
        for (spin, deadline) in [
            (0, Some(3_600_000_000_000)),
            (u64::MAX, Some(3_600_000_000_000)),
            (0, None),
        ] {
            let (sender, inbox) = inbox(spin);
            let other = std::thread::spawn(move || {
                for input in 0..200 {
                    veeksha_clock::sleep_until(RunClock::starting_now(), 20_000);
                    sender.send(input);
                }
            });
            for input in 0..200 {
                assert_eq!(inbox.wait(deadline), WaitResult::Input(input));
            }
            other.join().unwrap();
            assert_eq!(inbox.wait(deadline), WaitResult::Disconnected);
        }
    }

    /// Many senders at once: nothing is lost, whatever sleeps it meets.
    #[test]
    fn every_input_is_received() {
        let (sender, inbox) = inbox(0);
        let senders: Vec<_> = (0..4)
            .map(|_| {
                let sender = sender.clone();
                std::thread::spawn(move || (0..5_000).for_each(|input| sender.send(input)))
            })
            .collect();
        drop(sender);
        let mut sum = 0;
        while let WaitResult::Input(input) = inbox.wait(None) {
            sum += u64::from(input);
        }
        assert_eq!(sum, 4 * 5_000 * 4_999 / 2);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    }
}
