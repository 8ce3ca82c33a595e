//! Arrival times come from the kernel, and no step of the wall clock changes them.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use veeksha_clock::RunClock;
use veeksha_model::StampSource;
use veeksha_ports::{Sinks, Transport};
use veeksha_transport::{HttpTransport, TransportConfig};

use crate::support::*;

/// Sends two texts, the second one 30 ms after the first.
fn two_texts() -> Server {
    Server::start(|_, mut stream, _| {
        while read_request(&mut stream).is_some() {
            for part in [
                format!("{STREAM_HEAD}{}", chunk(&text_event("a"))),
                format!("{}0\r\n\r\n", chunk(&(text_event("b") + FINISH))),
            ] {
                stream.write_all(part.as_bytes()).unwrap();
                std::thread::sleep(Duration::from_millis(30));
            }
        }
    })
}

/// The client thread is kept busy while an answer arrives: the kernel's time is still correct.
#[test]
fn an_arrival_is_timed_while_the_client_is_busy() {
    const BUSY: Duration = Duration::from_millis(300);
    let server = two_texts();
    let clock = RunClock::starting_now();
    let (sender, outcomes) = channel();
    let sender = std::sync::Mutex::new(sender);
    let sinks = Sinks {
        returned: Arc::new(move |returned| sender.lock().unwrap().send(returned.outcome()).unwrap()),
        // Called on the client thread: the second text arrives while it sleeps.
        first_chunk: Arc::new(|_, _| std::thread::sleep(BUSY)),
    };
    let transport = HttpTransport::start(TransportConfig::new(target(&server.base())), clock, sinks).unwrap();
    transport.submit(job(0, "hi"));
    let outcome = outcomes.recv_timeout(PATIENCE).unwrap();
    assert_eq!(outcome.timings.stamps, StampSource::Kernel);
    let gap = outcome.chunks[1].at - outcome.chunks[0].at;
    assert!((25_000_000..200_000_000).contains(&gap), "{gap}");
    let lag = u64::from(outcome.chunks[1].lag);
    assert!(lag > 200_000_000, "{lag}");
    assert!(u64::from(outcome.chunks[0].lag) < lag);
    let counters = transport.receive_stats();
    assert_eq!(
        (counters.reads, counters.kernel_stamped, counters.stamps_refused),
        (2, 2, 0)
    );
    assert_eq!(
        counters.merged_reads, 1,
        "text, finish, usage and end share a read"
    );
    assert_eq!(counters.stamps(), StampSource::Kernel);
}

static STEP: AtomicI64 = AtomicI64::new(0);

/// The wall clock after a step. The kernel's stamps do not include the step: they are those from
/// before it.
fn stepped() -> u64 {
    veeksha_clock::wall_nanos().wrapping_add_signed(STEP.load(Ordering::SeqCst))
}

#[test]
fn a_step_of_the_wall_clock_does_not_move_arrivals() {
    let server = two_texts();
    let client = Client::of(TransportConfig {
        realtime: stepped,
        ..TransportConfig::new(target(&server.base()))
    });
    assert_eq!(client.ask(0).timings.stamps, StampSource::Kernel);
    for step in [3_600_000_000_000, -3_600_000_000_000, 50_000_000, -50_000_000, 0] {
        let refused = client.transport.receive_stats().stamps_refused;
        STEP.store(step, Ordering::SeqCst);
        let before = client.clock.now();
        let outcome = client.ask(0);
        let after = client.clock.now();
        assert_eq!(outcome.chunks.len(), 5, "{step}");
        for chunk in &outcome.chunks {
            assert!((before..=after).contains(&chunk.at), "{step}: {chunk:?}");
        }
        let gap = outcome.chunks[1].at - outcome.chunks[0].at;
        // The times of the reads: delayed by the load of the machine, but never by the step.
        assert!(gap < 1_000_000_000, "{step}: {gap}");
        assert!(
            client.transport.receive_stats().stamps_refused > refused,
            "{step}"
        );
        assert_eq!(outcome.timings.stamps, StampSource::Read, "{step}");
    }
}

#[test]
fn notifies_first_generated_chunk_once_and_before_the_outcome() {
    let role = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
    let answer = format!(
        "{STREAM_HEAD}{}{}{}0\r\n\r\n",
        chunk(role),
        chunk(&text_event("a")),
        chunk(&(text_event("b") + FINISH))
    );
    let server = Server::answering(answer);
    let clock = RunClock::starting_now();
    let (sender, notifications) = channel();
    let first = std::sync::Mutex::new(sender.clone());
    let last = std::sync::Mutex::new(sender);
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let sinks = Sinks {
        returned: Arc::new(move |returned| {
            last.lock()
                .unwrap()
                .send((returned.id(), None, Some(returned.outcome())))
                .unwrap();
        }),
        first_chunk: Arc::new(move |id, at| {
            counted.fetch_add(1, Ordering::SeqCst);
            first.lock().unwrap().send((id, Some(at), None)).unwrap();
        }),
    };
    let transport = HttpTransport::start(TransportConfig::new(target(&server.base())), clock, sinks).unwrap();
    for session in 0..3 {
        transport.submit(job(session, "hi"));
        let (id, at, _) = notifications.recv_timeout(PATIENCE).unwrap();
        let (ended, _, outcome) = notifications.recv_timeout(PATIENCE).unwrap();
        let outcome = outcome.unwrap();
        assert_eq!((id, id.session.0), (ended, session));
        assert_eq!(at, Some(outcome.chunks[1].at));
        assert_eq!(outcome.chunks.len(), 6);
        assert_eq!(count.load(Ordering::SeqCst), session + 1);
    }
}
