//! Measures the cost of a streamed chunk on the client thread: 64 streams from a server that writes
//! as fast as it can, once with one write for each chunk and once with whole answers in one write.
//!
//! `cargo run --release -p veeksha-transport --example receive_cost`. The official benchmarks of
//! the project are in `veeksha-bench`, which compares with a minimal client; this example is for
//! quick checks during work on the receive path.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};

use veeksha_clock::RunClock;
use veeksha_endpoint::Api;
use veeksha_model::{NodeId, Prepared, PreparedMessage, Request, RequestId, Role, SessionId};
use veeksha_ports::{Job, PendingOutcome, Sinks, Transport};
use veeksha_transport::{HttpTransport, Server, Target, TransportConfig};

const STREAMS: u64 = 64;
const TOKENS: usize = 64;
const ROUNDS: u64 = 60;

/// Write pattern of a server.
#[derive(Clone, Copy, Debug)]
enum Writes {
    EachChunk,
    WholeAnswers,
}

fn main() -> Result<(), Box<dyn Error>> {
    for writes in [Writes::EachChunk, Writes::WholeAnswers] {
        measure(writes)?;
    }
    Ok(())
}

fn measure(writes: Writes) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let base = format!("http://{}/v1", listener.local_addr()?);
    std::thread::spawn(move || serve(&listener, writes));
    let (sender, outcomes) = mpsc::channel::<Box<dyn PendingOutcome>>();
    let sender = Mutex::new(sender);
    let sinks = Sinks {
        returned: Arc::new(move |returned| {
            // The receiver may already be gone after the end of a measurement.
            let _ = sender.lock().map(|sender| sender.send(returned));
        }),
        first_chunk: Arc::new(|_, _| {}),
    };
    let thread = Arc::new(Mutex::new(String::new()));
    let reported = Arc::clone(&thread);
    let config = TransportConfig {
        on_thread_start: Some(Arc::new(move |_| {
            let path = std::fs::read_link("/proc/thread-self").unwrap_or_default();
            if let Ok(mut reported) = reported.lock() {
                *reported = format!("/proc/{}/schedstat", path.display());
            }
        })),
        ..TransportConfig::new(Target::single(Server::at(base), Api::default()))
    };
    let transport = HttpTransport::start(config, RunClock::starting_now(), sinks)?;
    let path = thread.lock().map_err(|_| "no thread")?.clone();
    let cpu = || -> Result<u64, Box<dyn Error>> {
        let text = std::fs::read_to_string(&path)?;
        Ok(text.split(' ').next().unwrap_or_default().parse()?)
    };
    let mut chunks = 0;
    let mut begun = 0;
    for round in 0..ROUNDS {
        if round == 1 {
            // The first round opens connections, so it is excluded.
            begun = cpu()?;
        }
        (0..STREAMS).for_each(|session| transport.submit(job(session)));
        for _ in 0..STREAMS {
            let outcome = outcomes.recv()?.outcome();
            outcome.result.map_err(|failure| failure.message)?;
            if round > 0 {
                chunks += outcome.chunks.len() as u64;
            }
        }
    }
    let counters = transport.receive_stats();
    println!(
        "{writes:?}: {} ns of CPU for each of {chunks} chunks; {} reads, {} of them merged",
        (cpu()? - begun) / chunks,
        counters.reads,
        counters.merged_reads
    );
    Ok(())
}

/// Serves all streams from one thread: a round begins when each stream has sent its request.
fn serve(listener: &TcpListener, writes: Writes) -> std::io::Result<()> {
    let text = r#"data: {"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1790000000,"model":"tiny","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null,"token_ids":null}]}"#;
    let event = format!("{:x}\r\n{text}\n\n\r\n", text.len() + 2);
    let finish = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":64}}\n\ndata: [DONE]\n\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let end = format!("{:x}\r\n{finish}\r\n0\r\n\r\n", finish.len());
    let mut streams: Vec<TcpStream> = Vec::new();
    loop {
        while streams.len() < STREAMS as usize {
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            streams.push(stream);
        }
        for stream in &mut streams {
            let mut request = Vec::new();
            let mut piece = [0; 4096];
            while !request.ends_with(b"}}") {
                let size = stream.read(&mut piece)?;
                if size == 0 {
                    return Ok(());
                }
                request.extend_from_slice(&piece[..size]);
            }
        }
        match writes {
            Writes::EachChunk => {
                for stream in &mut streams {
                    stream.write_all(head.as_bytes())?;
                }
                for _ in 0..TOKENS {
                    for stream in &mut streams {
                        stream.write_all(event.as_bytes())?;
                    }
                }
                for stream in &mut streams {
                    stream.write_all(end.as_bytes())?;
                }
            }
            Writes::WholeAnswers => {
                let answer = format!("{head}{}{end}", event.repeat(TOKENS));
                for stream in &mut streams {
                    stream.write_all(answer.as_bytes())?;
                }
            }
        }
    }
}

fn job(session: u64) -> Job {
    let request = Request {
        node: NodeId(0),
        ..Request::default()
    };
    let message = PreparedMessage::new(Role::User, "hi");
    Job {
        id: RequestId {
            session: SessionId(session),
            node: NodeId(0),
        },
        intended: 0,
        held: Default::default(),
        dispatched_at: 0,
        request: Arc::new(Prepared {
            request,
            messages: vec![message],
            target_tokens: 1,
            prompt_tokens: 1,
            ..Prepared::default()
        }),
        history: None,
        session_requests: 1,
        measured: true,
        reports_first_chunk: true,
    }
}
