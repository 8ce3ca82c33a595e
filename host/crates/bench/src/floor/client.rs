//! The floor client: connections, an event queue, and nothing between them.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use veeksha_clock::RunClock;

use super::answer::Answer;
use crate::BenchError;
use crate::load::{Cost, Meter};

/// A connection and the answer on it.
#[derive(Debug)]
struct Stream {
    socket: TcpStream,
    answer: Answer,
}

/// One thread that drives many streams.
#[derive(Debug)]
pub(crate) struct Floor {
    queue: OwnedFd,
    streams: Vec<Stream>,
    request: Vec<u8>,
    buffer: Vec<u8>,
}

impl Floor {
    /// Opens so many connections.
    pub(crate) fn connect(address: SocketAddr, streams: u32, tokens: u32) -> Result<Self, BenchError> {
        let failed = BenchError::io("the floor client's connection");
        let queue = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|error| BenchError::io("the floor client's event queue")(error.into()))?;
        let open = || -> std::io::Result<Vec<Stream>> {
            (0..streams)
                .map(|place| {
                    let socket = TcpStream::connect(address)?;
                    socket.set_nodelay(true)?;
                    socket.set_nonblocking(true)?;
                    epoll::add(
                        &queue,
                        &socket,
                        EventData::new_u64(u64::from(place)),
                        EventFlags::IN,
                    )?;
                    Ok(Stream {
                        socket,
                        answer: Answer::new(),
                    })
                })
                .collect()
        };
        let streams = open().map_err(failed)?;
        Ok(Floor {
            queue,
            streams,
            request: request(address, tokens),
            buffer: vec![0; 64 << 10],
        })
    }

    /// Drives so many answers to their ends, as many at the same time as there are connections.
    pub(crate) fn run(&mut self, replies: u64) -> Result<Cost, BenchError> {
        let clock = RunClock::starting_now();
        let meter = Meter::start();
        let mut cost = Cost::default();
        let mut reads = 0;
        let mut begun = replies.min(self.streams.len() as u64);
        for place in 0..begun as usize {
            self.ask(place)?;
        }
        let mut events = Vec::with_capacity(1_024);
        while cost.replies < replies {
            events.clear();
            match epoll::wait(&self.queue, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(BenchError::io("the floor client's event queue")(error.into())),
            }
            for event in &events {
                let place = event.data.u64() as usize;
                let Some(stream) = self.streams.get_mut(place) else {
                    continue;
                };
                let count = match stream.socket.read(&mut self.buffer) {
                    Ok(0) => return Err(BenchError::Floor("was left by the server".to_owned())),
                    Ok(count) => count,
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                        continue;
                    }
                    Err(error) => return Err(BenchError::io("the floor client's read")(error)),
                };
                reads += 1;
                let bytes = self.buffer.get(..count).unwrap_or_default();
                if !stream
                    .answer
                    .receive(bytes, clock.now())
                    .map_err(BenchError::Floor)?
                {
                    continue;
                }
                cost.replies += 1;
                cost.events += stream.answer.events;
                cost.tokens += stream.answer.stamps.len() as u64;
                if begun < replies {
                    begun += 1;
                    self.ask(place)?;
                }
            }
        }
        cost.reads = Some(reads);
        meter.read(&mut cost);
        Ok(cost)
    }

    fn ask(&mut self, place: usize) -> Result<(), BenchError> {
        let Some(stream) = self.streams.get_mut(place) else {
            return Ok(());
        };
        stream.answer.begin();
        // A request is far smaller than an empty socket's buffer.
        stream
            .socket
            .write_all(&self.request)
            .map_err(BenchError::io("the floor client's request"))
    }
}

/// The request, made once.
fn request(address: SocketAddr, tokens: u32) -> Vec<u8> {
    let body = format!(
        r#"{{"model":"bench","messages":[{{"role":"user","content":"{}"}}],"stream":true,"stream_options":{{"include_usage":true}},"max_completion_tokens":{tokens}}}"#,
        crate::load::PROMPT
    );
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: text/event-stream\r\nx-request-id: floor\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::played::server;
    use crate::server::{Plan, Writes};

    #[test]
    fn every_event_of_every_answer_is_counted() {
        for writes in [Writes::EachToken, Writes::Whole] {
            let plan = Plan::busy(33, writes);
            let (mut server, address) = server(plan);
            let mut floor = Floor::connect(address, 8, 33).expect("connections");
            let cost = floor.run(50).expect("answers");
            assert_eq!(
                (cost.replies, cost.events, cost.tokens),
                (50, 50 * 35, 50 * 33),
                "{writes:?}"
            );
            assert!(cost.cpu > 0 && cost.reads.is_some_and(|reads| reads >= 50));
            // The connections are used again.
            floor.run(20).expect("answers");
            let counts = server.counts();
            assert_eq!((counts.connections, counts.replies, counts.in_flight), (8, 70, 0));
            assert!((1..=8).contains(&counts.peak_in_flight));
            server.end().expect("an end");
        }
    }

    #[test]
    fn fewer_answers_than_connections() {
        let (server, address) = server(Plan::busy(2, Writes::EachToken));
        let cost = Floor::connect(address, 4, 2)
            .expect("connections")
            .run(3)
            .expect("answers");
        assert_eq!((cost.replies, cost.events), (3, 12));
        server.end().expect("an end");
    }

    #[test]
    fn a_server_that_leaves_is_an_error_not_a_wait() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut floor = Floor::connect(address, 1, 1).expect("a connection");
        drop(listener.accept().expect("a connection"));
        let error = floor.run(1).expect_err("nobody answers").to_string();
        assert!(error.contains("floor client"), "{error}");
    }
}
