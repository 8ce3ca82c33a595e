//! Prints the deviation of the truth log from the client's kernel timestamps, the lateness of
//! writes, and the cost of a chunk.
//!
//! `truth_accuracy [STREAMS [GAP_MS [TOKENS [REQUESTS [BATCH]]]]]`: each of `STREAMS` threads sends
//! chat requests one after another over a plain socket with `SO_TIMESTAMPNS` and reads the events.
//! Client and server share the machine, as in a self-test. With `BATCH` 1 all streams share the
//! steps of a batch, else each has separate constant times. Nothing is asserted: the results depend
//! on the machine.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a measurement that cannot go on has no result"
)]

use std::io::{IoSliceMut, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd as _;

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use veeksha_clock::{RunClock, wall_nanos};
use veeksha_simulator::{Profile, SimOptions, SimServer};

fn main() {
    let mut numbers = std::env::args()
        .skip(1)
        .map(|argument| argument.parse::<u64>().unwrap());
    let mut next = |default| numbers.next().unwrap_or(default);
    let (streams, gap_ms, tokens, requests) = (next(64), next(10), next(200), next(2));
    let clock = RunClock::with_origin(0);
    let gap = gap_ms * 1_000_000;
    let options = match next(0) {
        0 => SimOptions::reference(gap, gap, u32::MAX),
        _ => SimOptions::new(
            Profile {
                prefill_base_ms: gap_ms as f64,
                prefill_ms_per_token: 0.0,
                decode_base_ms: gap_ms as f64,
                decode_ms_per_sequence: 0.0,
                noise_cv: 0.0,
                max_batch: 4096,
                ..Profile::default()
            },
            1,
        ),
    };
    let server = SimServer::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options, clock).unwrap();
    let addr = server.addr();
    let before = Cost::of_server();
    let clients: Vec<_> = (0..streams)
        .map(|stream| std::thread::spawn(move || converse(addr, stream, tokens, requests)))
        .collect();
    let mut lag = Vec::new();
    let mut seen = std::collections::HashMap::new();
    for client in clients {
        for (id, stamps) in client.join().unwrap() {
            seen.insert(id, stamps);
        }
    }
    let cost = Cost::of_server().since(before);
    let truth = server.truth();
    let mut chunks = 0;
    for record in &truth {
        let stamps = &seen[record.request_id.as_deref().unwrap()];
        let writes: Vec<u64> = {
            let mut times: Vec<u64> = record.chunks.iter().map(|(at, _)| *at).collect();
            times.dedup();
            times
        };
        chunks += record.chunks.len() as u64;
        // One read per write: requests with additional reads are excluded from the comparison.
        if writes.len() == stamps.len() {
            lag.extend(
                writes
                    .iter()
                    .zip(stamps)
                    .map(|(at, stamp)| *stamp as i64 - *at as i64),
            );
        }
    }
    print_quantiles("kernel stamp - truth", &mut lag);
    let pacing = server.stats().pacing;
    let us = |nanos: u64| nanos as f64 / 1e3;
    println!(
        "write - deadline: p50 {:.1} p99 {:.1} max {:.1} us of {} tokens",
        us(pacing.p50),
        us(pacing.p99),
        us(pacing.max),
        pacing.count
    );
    println!(
        "requests {}, chunks {chunks}, compared {}",
        truth.len(),
        lag.len()
    );
    for (name, nanos) in &cost.threads {
        println!(
            "{name}: {:.2} us of CPU per chunk",
            *nanos as f64 / 1e3 / chunks as f64
        );
    }
    server.stop();
}

fn print_quantiles(name: &str, values: &mut [i64]) {
    if values.is_empty() {
        return println!("{name}: nothing to compare");
    }
    values.sort_unstable();
    let at = |q: f64| values[((values.len() - 1) as f64 * q) as usize] as f64 / 1e3;
    println!(
        "{name}: min {:.1} p50 {:.1} p90 {:.1} p99 {:.1} max {:.1} us",
        at(0.0),
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    );
}

/// CPU time of the server's threads in this process.
#[derive(Default)]
struct Cost {
    threads: Vec<(String, u64)>,
}

impl Cost {
    fn of_server() -> Self {
        let mut threads = Vec::new();
        for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
            let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            let spent = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            if name.starts_with("sim-") {
                let nanos = spent
                    .split(' ')
                    .next()
                    .and_then(|first| first.parse().ok())
                    .unwrap_or(0);
                threads.push((name.trim().to_owned(), nanos));
            }
        }
        threads.sort();
        Cost { threads }
    }

    fn since(mut self, earlier: Cost) -> Cost {
        for (name, nanos) in &mut self.threads {
            let before = earlier.threads.iter().find(|(other, _)| other == name);
            *nanos -= before.map_or(0, |(_, nanos)| *nanos);
        }
        self
    }
}

/// Returns for each request its id and the monotonic kernel timestamp of each read that returned a
/// part of the body.
fn converse(addr: SocketAddr, stream: u64, tokens: u64, requests: u64) -> Vec<(String, Vec<u64>)> {
    let mut socket = TcpStream::connect(addr).unwrap();
    socket.set_nodelay(true).unwrap();
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true).unwrap();
    let offset = monotonic_minus_wall();
    (0..requests)
        .map(|turn| {
            let id = format!("{stream}/{turn}");
            let body = format!(
                r#"{{"model":"m","messages":[{{"role":"user","content":"hello {id}"}}],"max_tokens":{tokens},"ignore_eos":true,"stream":true}}"#
            );
            let request = format!(
                "POST /v1/chat/completions HTTP/1.1\r\nhost: sim\r\nx-request-id: {id}\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            socket.write_all(request.as_bytes()).unwrap();
            (id, read_answer(&socket, offset))
        })
        .collect()
}

fn read_answer(socket: &TcpStream, offset: i64) -> Vec<u64> {
    let mut stamps = Vec::new();
    let mut buffer = vec![0; 65536];
    let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
    loop {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let message = recvmsg::<()>(
            socket.as_raw_fd(),
            &mut parts,
            Some(&mut control),
            MsgFlags::empty(),
        )
        .unwrap();
        let stamp = message.cmsgs().unwrap().find_map(|one| match one {
            ControlMessageOwned::ScmTimestampns(at) => Some(at.tv_sec() * 1_000_000_000 + at.tv_nsec()),
            _ => None,
        });
        let count = message.bytes;
        if count == 0 {
            panic!("the server closed the connection");
        }
        let bytes = &buffer[..count];
        if !bytes.starts_with(b"HTTP/1.1 200") && !bytes.starts_with(b"0\r\n\r\n") {
            stamps.push((stamp.unwrap() + offset) as u64);
        }
        if bytes.ends_with(b"\r\n0\r\n\r\n") || bytes == b"0\r\n\r\n" {
            return stamps;
        }
    }
}

/// Returns the offset from wall-clock to monotonic time: the tightest of several readings.
fn monotonic_minus_wall() -> i64 {
    let clock = RunClock::with_origin(0);
    (0..100)
        .map(|_| {
            let (before, wall, after) = (clock.now(), wall_nanos(), clock.now());
            (
                after - before,
                (before + (after - before) / 2) as i64 - wall as i64,
            )
        })
        .min()
        .unwrap()
        .1
}
