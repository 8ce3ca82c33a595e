//! The baseline client: connections and an event queue.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use veeksha_clock::RunClock;
use veeksha_model::Nanos;

use super::response_reader::ResponseReader;
use crate::error::BenchError;
use crate::load::{Cost, Meter, Pace};
use crate::timer::Timer;

/// Event-queue token of the timer.
const TIMER: u64 = u64::MAX;

/// A connection and its current response.
#[derive(Debug)]
struct BaselineStream {
    socket: TcpStream,
    answer: ResponseReader,
}

/// One thread that drives many streams.
#[derive(Debug)]
pub(crate) struct Baseline {
    queue: OwnedFd,
    streams: Vec<BaselineStream>,
    request: (String, String),
    written: Vec<u8>,
    buffer: Vec<u8>,
    clock: RunClock,
}

/// A response as this client observed it, with the times of its reads on `CLOCK_MONOTONIC`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObservedResponse {
    /// Request name in the server's log.
    pub(crate) request: String,
    /// Just before the request was written.
    pub(crate) asked: Nanos,
    /// Read time of each token.
    pub(crate) stamps: Vec<Nanos>,
}

impl Baseline {
    /// Opens `streams` connections.
    pub(crate) fn connect(address: SocketAddr, streams: u32, tokens: u32) -> Result<Self, BenchError> {
        let failed = BenchError::io("the baseline client's connection");
        let queue = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|error| BenchError::io("the baseline client's event queue")(error.into()))?;
        let open = || -> std::io::Result<Vec<BaselineStream>> {
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
                    Ok(BaselineStream {
                        socket,
                        answer: ResponseReader::new(),
                    })
                })
                .collect()
        };
        let streams = open().map_err(failed)?;
        Ok(Baseline {
            queue,
            streams,
            request: request(address, tokens),
            written: Vec::new(),
            buffer: vec![0; 64 << 10],
            clock: RunClock::with_origin(0),
        })
    }

    /// Drives `replies` responses to completion, one at a time per connection.
    pub(crate) fn run(&mut self, replies: u64) -> Result<Cost, BenchError> {
        let meter = Meter::start();
        let mut cost = Cost::default();
        let mut reads = 0;
        let mut begun = replies.min(self.streams.len() as u64);
        for place in 0..begun as usize {
            self.ask(place, "baseline")?;
        }
        let mut events = Vec::with_capacity(1_024);
        while cost.replies < replies {
            events.clear();
            match epoll::wait(&self.queue, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(BenchError::io("the baseline client's event queue")(error.into())),
            }
            for event in &events {
                let place = event.data.u64() as usize;
                let (true, Some(stream)) = (self.read(place, &mut reads)?, self.streams.get(place)) else {
                    continue;
                };
                cost.replies += 1;
                cost.events += stream.answer.events;
                cost.tokens += stream.answer.stamps.len() as u64;
                if begun < replies {
                    begun += 1;
                    self.ask(place, "baseline")?;
                }
            }
        }
        cost.reads = Some(reads);
        meter.read(&mut cost);
        Ok(cost)
    }

    /// Sends a request at every interval, each on a free connection.
    pub(crate) fn run_open(&mut self, pace: Pace) -> Result<Vec<ObservedResponse>, BenchError> {
        let mut timer = Timer::new()?;
        epoll::add(&self.queue, &timer, EventData::new_u64(TIMER), EventFlags::IN)
            .map_err(|error| BenchError::io("the baseline client's event queue")(error.into()))?;
        let mut free: Vec<usize> = (0..self.streams.len()).collect();
        let mut asked: Vec<(String, Nanos)> = vec![(String::new(), 0); self.streams.len()];
        let mut seen = Vec::new();
        let (begin, mut begun, mut reads) = (self.clock.now(), 0, 0);
        let mut events = Vec::with_capacity(1_024);
        while (seen.len() as u64) < pace.requests {
            let due = begin + begun * pace.interval;
            if begun < pace.requests && due <= self.clock.now() {
                let place = free
                    .pop()
                    .ok_or_else(|| BenchError::Baseline("has no connection that is free".to_owned()))?;
                let request = format!("baseline-{begun}");
                let now = self.clock.now();
                self.ask(place, &request)?;
                if let Some(slot) = asked.get_mut(place) {
                    *slot = (request, now);
                }
                begun += 1;
                continue;
            }
            timer.arm((begun < pace.requests).then_some(due))?;
            events.clear();
            match epoll::wait(&self.queue, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(BenchError::io("the baseline client's event queue")(error.into())),
            }
            for event in &events {
                if event.data.u64() == TIMER {
                    timer.clear();
                    continue;
                }
                let place = event.data.u64() as usize;
                if !self.read(place, &mut reads)? {
                    continue;
                }
                if let (Some(stream), Some((request, at))) =
                    (self.streams.get_mut(place), asked.get_mut(place))
                {
                    seen.push(ObservedResponse {
                        request: std::mem::take(request),
                        asked: *at,
                        stamps: std::mem::take(&mut stream.answer.stamps),
                    });
                    free.push(place);
                }
            }
        }
        Ok(seen)
    }

    /// Reads once; returns true if this completes a response.
    fn read(&mut self, place: usize, reads: &mut u64) -> Result<bool, BenchError> {
        let Some(stream) = self.streams.get_mut(place) else {
            return Ok(false);
        };
        let count = match stream.socket.read(&mut self.buffer) {
            Ok(0) => {
                return Err(BenchError::Baseline(
                    "lost its connection to the server".to_owned(),
                ));
            }
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(false);
            }
            Err(error) => return Err(BenchError::io("the baseline client's read")(error)),
        };
        *reads += 1;
        let bytes = self.buffer.get(..count).unwrap_or_default();
        stream
            .answer
            .receive(bytes, self.clock.now())
            .map_err(BenchError::Baseline)
    }

    fn ask(&mut self, place: usize, id: &str) -> Result<(), BenchError> {
        let Some(stream) = self.streams.get_mut(place) else {
            return Ok(());
        };
        stream.answer.begin();
        self.written.clear();
        let (head, rest) = &self.request;
        for part in [head.as_str(), id, rest.as_str()] {
            self.written.extend_from_slice(part.as_bytes());
        }
        // A request is far smaller than an empty socket buffer.
        stream
            .socket
            .write_all(&self.written)
            .map_err(BenchError::io("the baseline client's request"))
    }
}

/// Returns the request bytes before and after its name.
fn request(address: SocketAddr, tokens: u32) -> (String, String) {
    let body = format!(
        r#"{{"model":"bench","messages":[{{"role":"user","content":"{}"}}],"stream":true,"stream_options":{{"include_usage":true}},"max_completion_tokens":{tokens}}}"#,
        crate::load::PROMPT
    );
    (
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: text/event-stream\r\nx-request-id: "
        ),
        format!("\r\ncontent-length: {}\r\n\r\n{body}", body.len()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_process_child::server;
    use crate::server::{ResponsePlan, WriteMode};

    #[test]
    fn counts_every_event() {
        for writes in [WriteMode::EachToken, WriteMode::Whole] {
            let plan = ResponsePlan::busy(33, writes);
            let (mut server, address) = server(plan);
            let mut baseline = Baseline::connect(address, 8, 33).expect("connections");
            let cost = baseline.run(50).expect("answers");
            assert_eq!(
                (cost.replies, cost.events, cost.tokens),
                (50, 50 * 35, 50 * 33),
                "{writes:?}"
            );
            assert!(cost.cpu > 0 && cost.reads.is_some_and(|reads| reads >= 50));
            // Connections are reused.
            baseline.run(20).expect("answers");
            let counts = server.counts();
            assert_eq!((counts.connections, counts.replies, counts.in_flight), (8, 70, 0));
            assert!((1..=8).contains(&counts.peak_in_flight));
            server.end().expect("an end");
        }
    }

    #[test]
    fn open_loop_keeps_its_pace() {
        let (mut server, address) = server(ResponsePlan::paced(3, 1, 4));
        let mut baseline = Baseline::connect(address, 16, 4).expect("connections");
        let pace = Pace {
            interval: 2_000_000,
            requests: 20,
        };
        let seen = baseline.run_open(pace).expect("answers");
        let log = server.log();
        assert_eq!((seen.len(), log.len()), (20, 20));
        for answer in &seen {
            let truth = log
                .iter()
                .find(|served| served.request.as_deref() == Some(&answer.request))
                .expect("in the log");
            assert!(answer.asked <= truth.arrived);
            assert_eq!((answer.stamps.len(), truth.writes.len()), (4, 4));
            for (stamp, write) in answer.stamps.iter().zip(&truth.writes) {
                assert!(stamp >= write);
            }
        }
        let mut asked: Vec<u64> = seen.iter().map(|answer| answer.asked).collect();
        asked.sort_unstable();
        assert!(asked[19] - asked[0] >= 19 * 2_000_000 - 2_000_000, "{asked:?}");
        server.end().expect("an end");
    }

    #[test]
    fn drives_fewer_responses_than_connections() {
        let (server, address) = server(ResponsePlan::busy(2, WriteMode::EachToken));
        let cost = Baseline::connect(address, 4, 2)
            .expect("connections")
            .run(3)
            .expect("answers");
        assert_eq!((cost.replies, cost.events), (3, 12));
        server.end().expect("an end");
    }

    #[test]
    fn closed_connection_is_an_error() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut baseline = Baseline::connect(address, 1, 1).expect("a connection");
        drop(listener.accept().expect("a connection"));
        let error = baseline.run(1).expect_err("no answer").to_string();
        assert!(error.contains("baseline client"), "{error}");
    }
}
