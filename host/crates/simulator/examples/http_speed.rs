//! Prints how many token chunks per second the HTTP server sends over a number of connections, and
//! the delay between a chunk's recorded send time and its arrival at a client (the client reads
//! connection by connection, so the delay is meaningful for one connection only).
//!
//! `cargo run --release -p veeksha-simulator --example http_speed -- [CONNECTIONS] [TOKENS]
//! [PROFILE]`

use std::error::Error;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use veeksha_clock::RunClock;
use veeksha_model::ChunkKind;
use veeksha_simulator::{Profile, SimOptions, SimServer, TruthOutcome};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let connections: usize = arguments.next().map_or(Ok(64), |text| text.parse())?;
    let tokens: u32 = arguments.next().map_or(Ok(256), |text| text.parse())?;
    let name = arguments.next().unwrap_or_else(|| "fast".into());
    let profile = Profile::named(&name).ok_or("no such profile")?;
    let clock = RunClock::starting_now();
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = SimServer::start(addr, SimOptions::new(profile, 1), clock)?;
    let body = format!(
        r#"{{"messages":[{{"role":"user","content":"hello"}}],"max_tokens":{tokens},"ignore_eos":true,"stream":true}}"#
    );
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: sim\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut streams = Vec::with_capacity(connections);
    for _ in 0..connections {
        streams.push(TcpStream::connect(server.addr())?);
    }
    println!(
        "{connections} connections after {:.3} s",
        clock.now() as f64 / 1e9
    );
    let begin = clock.now();
    for stream in &mut streams {
        stream.write_all(request.as_bytes())?;
    }
    let mut buffer = vec![0; 1 << 16];
    let mut reads = Vec::new();
    for stream in &mut streams {
        let mut tail = Vec::new();
        while !tail.ends_with(b"\r\n0\r\n\r\n") {
            let count = stream.read(&mut buffer)?;
            if count == 0 {
                return Err("the server closed a connection".into());
            }
            reads.push(clock.now());
            tail.extend_from_slice(&buffer[..count]);
            tail.drain(..tail.len().saturating_sub(7));
        }
    }
    let seconds = (clock.now() - begin) as f64 / 1e9;
    let truth = server.truth();
    let finished = truth
        .iter()
        .filter(|record| matches!(record.outcome, TruthOutcome::Finished(_)))
        .count();
    let chunks = truth
        .iter()
        .flat_map(|record| &record.chunks)
        .filter(|(_, kind)| *kind == ChunkKind::Content);
    let sent: Vec<u64> = chunks.map(|(at, _)| *at).collect();
    println!(
        "{finished} answers, {} token chunks in {seconds:.3} s: {:.0} chunks/s",
        sent.len(),
        sent.len() as f64 / seconds
    );
    // The first read returns the head; with one connection and a paced profile, each further one
    // returns one chunk.
    if connections == 1 && reads.len() == sent.len() + 1 {
        let mut lags: Vec<u64> = reads[1..]
            .iter()
            .zip(&sent)
            .map(|(read, sent)| read.saturating_sub(*sent))
            .collect();
        lags.sort_unstable();
        let at = |part: f64| lags[((lags.len() - 1) as f64 * part) as usize] as f64 / 1e3;
        println!(
            "read after send: p50 {:.1} us, p99 {:.1} us, max {:.1} us",
            at(0.5),
            at(0.99),
            at(1.0)
        );
    }
    server.stop();
    Ok(())
}
