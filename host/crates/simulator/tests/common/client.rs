//! A small HTTP/1.1 client on a plain socket that records when each read returned.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use veeksha_clock::RunClock;

pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    clock: RunClock,
    /// Bytes after the end of the last answer.
    rest: Vec<u8>,
}

/// The end of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// As its head stated.
    Whole,
    /// The connection was closed earlier.
    Cut,
}

#[derive(Debug)]
pub(crate) struct RouteReply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
    /// For each read: its return time, and the length of the (decoded) body then.
    pub(crate) reads: Vec<(u64, usize)>,
    pub(crate) ended: Ended,
}

impl RouteReply {
    /// Returns the data of each server-sent event, with the time of the read that completed it.
    pub(crate) fn events(&self) -> Vec<(u64, String)> {
        let mut events = Vec::new();
        let mut start = 0;
        while let Some(end) = self.body[start..].find("\n\n") {
            let data = self.body[start..start + end].strip_prefix("data: ").unwrap();
            start += end + 2;
            let at = self.reads.iter().find(|(_, length)| *length >= start).unwrap().0;
            events.push((at, data.to_owned()));
        }
        events
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

impl Connection {
    pub(crate) fn open(addr: SocketAddr, clock: RunClock) -> Self {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Connection {
            stream,
            clock,
            rest: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, method: &str, path: &str, headers: &str, body: &str) {
        let length = body.len();
        let text = format!(
            "{method} {path} HTTP/1.1\r\nhost: sim\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        );
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn get(&mut self, path: &str) -> RouteReply {
        self.send("GET", path, "", "");
        self.reply().unwrap()
    }

    pub(crate) fn post(&mut self, path: &str, headers: &str, body: &str) -> RouteReply {
        self.send("POST", path, headers, body);
        self.reply().unwrap()
    }

    pub(crate) fn close(self) {
        self.stream.shutdown(Shutdown::Both).unwrap();
    }

    /// Returns the next answer; `None` if the connection is closed without one.
    pub(crate) fn reply(&mut self) -> Option<RouteReply> {
        let mut raw = std::mem::take(&mut self.rest);
        let mut stamps = Vec::new();
        loop {
            if let Some(reply) = self.parse(&raw, &stamps, None) {
                return Some(reply);
            }
            let mut buffer = [0; 65536];
            let count = match self.stream.read(&mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
                Err(error) => panic!("{error}; so far {:?}", String::from_utf8_lossy(&raw)),
            };
            if count == 0 {
                return self.parse(&raw, &stamps, Some(Ended::Cut));
            }
            raw.extend_from_slice(&buffer[..count]);
            stamps.push((self.clock.now(), raw.len()));
        }
    }

    fn parse(&mut self, raw: &[u8], stamps: &[(u64, usize)], at_end: Option<Ended>) -> Option<RouteReply> {
        let head_end = raw.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
        let head = String::from_utf8(raw[..head_end].to_vec()).unwrap();
        let mut reply = RouteReply {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head,
            body: String::new(),
            reads: Vec::new(),
            ended: Ended::Whole,
        };
        // For each decoded stretch: the position of its last byte in the raw bytes.
        let mut stretches = Vec::new();
        let mut at = head_end;
        let mut body = Vec::new();
        let complete = if let Some(length) = reply.header("content-length") {
            let length: usize = length.parse().unwrap();
            let end = (at + length).min(raw.len());
            body.extend_from_slice(&raw[at..end]);
            at = end;
            stretches.push((at, body.len()));
            body.len() == length
        } else {
            assert_eq!(reply.header("transfer-encoding"), Some("chunked"));
            loop {
                let Some(line) = raw[at..].windows(2).position(|window| window == b"\r\n") else {
                    break false;
                };
                let size = std::str::from_utf8(&raw[at..at + line]).unwrap();
                let size = usize::from_str_radix(size, 16).unwrap();
                let start = at + line + 2;
                if raw.len() < start + size + 2 {
                    break false;
                }
                assert_eq!(&raw[start + size..start + size + 2], b"\r\n");
                at = start + size + 2;
                if size == 0 {
                    break true;
                }
                body.extend_from_slice(&raw[start..start + size]);
                stretches.push((at, body.len()));
            }
        };
        if !complete {
            reply.ended = at_end?;
        } else {
            self.rest = raw[at..].to_vec();
        }
        for (stamp, length) in stamps {
            let decoded = stretches
                .iter()
                .rev()
                .find(|(end, _)| end <= length)
                .map_or(0, |(_, decoded)| *decoded);
            reply.reads.push((*stamp, decoded));
        }
        reply.body = String::from_utf8(body).unwrap();
        Some(reply)
    }
}
