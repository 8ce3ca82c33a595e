//! Thousands of concurrent streams. In a separate process, because the test uses most descriptors.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may panic, also in its functions"
)]
#![expect(dead_code, reason = "these tests need a part of what the others share")]

#[path = "transport/support.rs"]
mod support;

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::*;
use veeksha_model::ErrorClass;
use veeksha_ports::Transport;
use veeksha_transport::TransportConfig;

/// Raises the limit on open files to its maximum. Returns the number of streams that can have both
/// ends in this process.
fn streams() -> usize {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let files = usize::try_from(maximum.unwrap_or(20_000)).unwrap();
    ((files - 200) / 2).min(5_000)
}

/// Reads a small request to its end.
fn read_small_request(stream: &mut TcpStream) {
    let mut bytes = Vec::new();
    let mut piece = [0; 2048];
    // The only message of these tests is followed by two more fields of the body.
    while !bytes.ends_with(b"}") {
        let size = stream.read(&mut piece).unwrap();
        assert!(size > 0);
        bytes.extend_from_slice(&piece[..size]);
    }
}

#[test]
fn thousands_of_streams_cut_at_once_have_one_outcome_each() {
    let number = streams();
    assert!(
        number >= 2_000,
        "the limit on open files allows only {number} streams"
    );
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let client = Client::of(TransportConfig {
        threads: 2,
        ..TransportConfig::new(target(&base))
    });
    let (cut, wait) = channel::<()>();
    let server = std::thread::spawn(move || {
        let begun = format!("{STREAM_HEAD}{}", chunk(&text_event("a")));
        let streams: Vec<TcpStream> = (0..number)
            .map(|_| {
                let (mut stream, _) = listener.accept().unwrap();
                read_small_request(&mut stream);
                stream.write_all(begun.as_bytes()).unwrap();
                stream
            })
            .collect();
        wait.recv().unwrap();
        drop(streams);
    });
    let resident = |line: &str| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|known| known.strip_prefix(line)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap()
    };
    let before = resident("VmRSS:");
    for session in 0..number as u64 {
        client.transport.submit(job(session, "hi"));
    }
    // Every request has its first event, and none has its end.
    while client.transport.receive_stats().reads < number as u64 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let each = (resident("VmRSS:").saturating_sub(before)) * 1024 / number;
    println!("{number} streams, {each} bytes each, both ends and the job included");
    assert_eq!(client.transport.in_flight(), number);
    cut.send(()).unwrap();
    let mut ids = HashSet::new();
    for _ in 0..number {
        let outcome = client.outcome();
        assert_eq!(class(&outcome), ErrorClass::Truncated);
        assert_eq!(outcome.chunks.len(), 1);
        assert!(ids.insert(outcome.job.id), "{} has two outcomes", outcome.job.id);
    }
    server.join().unwrap();
    client.transport.stop();
    assert!(client.outcomes.try_recv().is_err());
}
