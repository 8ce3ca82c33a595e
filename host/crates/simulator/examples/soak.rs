//! Sends requests to a reference server at a constant rate and prints the server's resources: open
//! files, memory, records. None of these should grow.
//!
//! `soak [REQUESTS_PER_SECOND [SECONDS [TOKENS]]]`: half of the requests use kept-alive
//! connections, half use a new connection each, and one in 16 disconnects in the middle of its
//! answer.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on has no result")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use veeksha_clock::{RunClock, sleep_until};
use veeksha_simulator::{SimOptions, SimServer, TruthOutcome};

const SENDERS: u64 = 64;

fn main() {
    let mut numbers = std::env::args()
        .skip(1)
        .map(|argument| argument.parse::<u64>().unwrap());
    let mut next = |default| numbers.next().unwrap_or(default);
    let (rate, seconds, tokens) = (next(2000), next(30), next(8));
    let clock = RunClock::with_origin(0);
    let options = SimOptions {
        truth_capacity: 20_000,
        truth_chunks: 100_000,
        ..SimOptions::reference(5_000_000, 1_000_000, u32::MAX)
    };
    let server = SimServer::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options, clock).unwrap();
    let addr = server.addr();
    let begin = clock.now();
    let end = begin + seconds * 1_000_000_000;
    let gap = SENDERS * 1_000_000_000 / rate;
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            std::thread::spawn(move || send(addr, clock, begin + sender * gap / SENDERS, gap, end, tokens))
        })
        .collect();
    for second in (0..=seconds).step_by(5) {
        sleep_until(clock, begin + second * 1_000_000_000);
        let stats = server.stats();
        println!(
            "{second:3} s: {} requests, {} running, {} connections, {} files, {} MiB, {} records, lateness p50 {:.1} p99 {:.1} us",
            stats.engine.requests_total,
            stats.engine.running,
            stats.connections_open,
            std::fs::read_dir("/proc/self/fd").unwrap().count(),
            resident() >> 20,
            server.truth().len(),
            stats.pacing.p50 as f64 / 1e3,
            stats.pacing.p99 as f64 / 1e3,
        );
    }
    let sent: u64 = senders.into_iter().map(|sender| sender.join().unwrap()).sum();
    sleep_until(clock, clock.now() + 200_000_000);
    let stats = server.stats();
    let finished = server
        .truth()
        .iter()
        .filter(|record| matches!(record.outcome, TruthOutcome::Finished(_)))
        .count();
    println!(
        "sent {sent}, arrived {}, finished {}, withdrawn {}; {finished} of the {} kept records are of finished answers; {} \
         connections and {} files are open, {} MiB",
        stats.engine.requests_total,
        stats.engine.finished_length_total,
        stats.engine.cancelled_total,
        server.truth().len(),
        stats.connections_open,
        std::fs::read_dir("/proc/self/fd").unwrap().count(),
        resident() >> 20
    );
    server.stop();
}

fn send(addr: SocketAddr, clock: RunClock, first: u64, gap: u64, end: u64, tokens: u64) -> u64 {
    let body = format!(
        r#"{{"messages":[{{"role":"user","content":"hello"}}],"max_tokens":{tokens},"stream":true}}"#
    );
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: sim\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut kept: Option<TcpStream> = None;
    let (mut due, mut sent) = (first, 0);
    while due < end {
        sleep_until(clock, due);
        due += gap;
        let mut socket = match kept.take() {
            Some(socket) => socket,
            None => TcpStream::connect(addr).unwrap(),
        };
        socket.set_nodelay(true).unwrap();
        socket.write_all(request.as_bytes()).unwrap();
        sent += 1;
        if sent % 16 != 0 {
            read_answer(&mut socket);
            if sent % 2 == 0 {
                kept = Some(socket);
            }
        }
    }
    sent
}

fn read_answer(socket: &mut TcpStream) {
    let mut tail = Vec::new();
    let mut buffer = [0; 8192];
    while !tail.ends_with(b"\r\n0\r\n\r\n") {
        let count = socket.read(&mut buffer).unwrap();
        assert!(count > 0, "the server closed the connection");
        tail.extend_from_slice(&buffer[..count]);
        tail.drain(..tail.len().saturating_sub(7));
    }
}

/// Returns the process's resident memory in bytes.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}
