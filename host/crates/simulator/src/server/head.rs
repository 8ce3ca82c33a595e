//! Response heads.

use std::io::Write as _;

use super::answer_framing::{AnswerFraming, ChunkStyle};
use crate::wire_fault::WireFault;

/// Values of the request that appear in response heads.
#[derive(Clone, Debug, Default)]
pub(super) struct AnswerHead {
    /// The value of `x-request-id`, which is echoed.
    pub(super) request_id: Option<Vec<u8>>,
}

impl AnswerHead {
    /// Returns the head of an answer with a body, with a length of `length` bytes if the framing is
    /// by length.
    pub(super) fn of_body(
        &self,
        status: u16,
        content_type: &str,
        length: Option<usize>,
        keep_alive: bool,
        (framing, fault): (AnswerFraming, Option<WireFault>),
    ) -> Vec<u8> {
        let mut head = self.begin(status, content_type);
        // Writing to a Vec does not fail.
        let _ = match (framing, length) {
            (AnswerFraming::Length, Some(length)) => write!(head, "content-length: {length}\r\n"),
            (AnswerFraming::Chunked(style), _) => {
                head.extend_from_slice(b"transfer-encoding: chunked\r\n");
                match style {
                    ChunkStyle::Trailers => write!(head, "trailer: x-sim-checksum, x-sim-note\r\n"),
                    _ => Ok(()),
                }
            }
            (AnswerFraming::Close | AnswerFraming::Length, _) => Ok(()),
        };
        if fault == Some(WireFault::Gzip) {
            head.extend_from_slice(b"content-encoding: gzip\r\n");
        }
        self.end(head, keep_alive)
    }

    /// Returns the head of an error.
    pub(super) fn of_error(&self, status: u16, length: usize, keep_alive: bool) -> Vec<u8> {
        let mut head = self.begin(status, "application/json");
        match status {
            401 => head.extend_from_slice(b"www-authenticate: Bearer\r\n"),
            429 | 503 => head.extend_from_slice(b"retry-after: 1\r\n"),
            _ => {}
        }
        // Writing to a Vec does not fail.
        let _ = write!(head, "content-length: {length}\r\n");
        self.end(head, keep_alive)
    }

    /// Returns the head of a redirection without a body.
    pub(super) fn of_redirect(&self, location: &str, keep_alive: bool) -> Vec<u8> {
        let mut head = self.begin(307, "text/plain");
        // Writing to a Vec does not fail.
        let _ = write!(head, "location: {location}\r\ncontent-length: 0\r\n");
        self.end(head, keep_alive)
    }

    fn begin(&self, status: u16, content_type: &str) -> Vec<u8> {
        let mut head = Vec::with_capacity(256);
        // Writing to a Vec does not fail.
        let _ = write!(
            head,
            "HTTP/1.1 {status} {}\r\ncontent-type: {content_type}\r\n",
            reason(status)
        );
        head
    }

    fn end(&self, mut head: Vec<u8>, keep_alive: bool) -> Vec<u8> {
        if let Some(id) = &self.request_id {
            head.extend_from_slice(b"x-request-id: ");
            head.extend_from_slice(id);
            head.extend_from_slice(b"\r\n");
        }
        if !keep_alive {
            head.extend_from_slice(b"connection: close\r\n");
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        424 => "Failed Dependency",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}
