//! Lateness of a thread's wake-ups at its deadlines, and delay of an input, for each way of waiting
//! that a dispatcher could use: the choice in `inbox.rs` rests on this.
//!
//! ```text
//! cargo run --release -p veeksha-pipeline --example wait_precision [rounds]
//! ```
//!
//! Prints p50 and p99 in microseconds. The ways take turns, so that all of them meet the same noise
//! of the machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, unbounded};
use veeksha_clock::{RunClock, minimal_timer_slack, sleep_until};

/// 1,000 deadlines a second.
const GAP: u64 = 1_000_000;
const DEADLINES: u64 = 250;

#[derive(Clone, Copy, Debug)]
enum Way {
    /// Does not notice inputs while it sleeps: the lower bound.
    Nanosleep,
    /// The channel's own wait: spins and yields a little, then a futex.
    Receive,
    /// `std`'s parking: a futex at once. Whoever sends unparks.
    Park,
}

fn wait(way: Way, clock: RunClock, inbox: &Receiver<u64>, deadline: u64, spin: u64) -> Option<u64> {
    let sleep_to = deadline.saturating_sub(spin);
    loop {
        let now = clock.now();
        if let Ok(sent) = inbox.try_recv() {
            return Some(sent);
        }
        if now >= deadline {
            return None;
        }
        if now >= sleep_to {
            std::hint::spin_loop();
            continue;
        }
        match way {
            Way::Nanosleep => sleep_until(clock, sleep_to),
            Way::Receive => match inbox.recv_timeout(Duration::from_nanos(sleep_to - now)) {
                Ok(sent) => return Some(sent),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            },
            Way::Park => std::thread::park_timeout(Duration::from_nanos(sleep_to - now)),
        }
    }
}

fn deadlines(way: Way, spin: u64, late: &mut Vec<u64>) {
    let (_sender, inbox) = unbounded();
    let clock = RunClock::starting_now();
    for number in 1..=DEADLINES {
        let deadline = number * GAP;
        wait(way, clock, &inbox, deadline, spin);
        late.push(clock.now().saturating_sub(deadline));
    }
}

/// Inputs at odd moments, while the next deadline is far away.
fn inputs(way: Way, late: &mut Vec<u64>) {
    let (sender, inbox) = unbounded();
    let clock = RunClock::starting_now();
    let waiter = std::thread::current();
    let (done, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let other = {
        let (done, seen) = (done.clone(), seen.clone());
        std::thread::spawn(move || {
            minimal_timer_slack();
            for number in 1..=DEADLINES {
                sleep_until(clock, number * GAP + number * 7_919 % 400_000);
                if sender.send(clock.now()).is_err() {
                    return;
                }
                if matches!(way, Way::Park) {
                    waiter.unpark();
                }
                seen.store(number, Ordering::Relaxed);
            }
            done.store(true, Ordering::Release);
        })
    };
    for _ in 0..DEADLINES {
        if let Some(sent) = wait(way, clock, &inbox, clock.now() + 1_000_000_000, 0) {
            late.push(clock.now().saturating_sub(sent));
        }
    }
    let _ = other.join();
}

fn row(name: &str, mut late: Vec<u64>) {
    late.sort_unstable();
    let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize] as f64 / 1_000.0;
    println!(
        "{name:36} p50 {:8.1}  p90 {:8.1}  p99 {:8.1} µs",
        at(0.5),
        at(0.9),
        at(0.99)
    );
}

fn main() {
    let rounds = std::env::args()
        .nth(1)
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(20);
    println!("timer slack of 1 ns: {}", minimal_timer_slack());
    let ways = [Way::Nanosleep, Way::Receive, Way::Park];
    let spins = [0, 50_000, 100_000, 200_000];
    let mut waits = vec![Vec::new(); ways.len() * spins.len()];
    let mut wakes = vec![Vec::new(); ways.len()];
    for _ in 0..rounds {
        for (index, late) in waits.iter_mut().enumerate() {
            deadlines(ways[index / spins.len()], spins[index % spins.len()], late);
        }
        for (way, late) in ways.iter().zip(&mut wakes).skip(1) {
            inputs(*way, late);
        }
    }
    for (index, late) in waits.into_iter().enumerate() {
        let (way, spin) = (ways[index / spins.len()], spins[index % spins.len()] / 1_000);
        row(&format!("deadline, {way:?}, {spin} µs of spin"), late);
    }
    for (way, late) in ways.iter().zip(wakes).skip(1) {
        row(&format!("input, {way:?}"), late);
    }
}
