//! The client side of HTTP/1.1 (RFC 9112) over bytes: requests to bytes, bytes to answers. Pure: no sockets, no clock,
//! no tasks.
//!
//! A [`RequestTemplate`] is made once for an endpoint and appends requests to a buffer. A [`Decoder`] belongs to one
//! connection; it is given what was read, in pieces of any size, and hands back the parts of the answer. Bytes of the
//! body are borrowed from what was read: an ordinary chunk that lies wholly in one read costs neither a copy nor an
//! allocation.
//!
//! ```
//! use veeksha_http1::{Decoder, Framing, Limits, Part, RequestTemplate};
//!
//! let template = RequestTemplate::new("POST", "/v1/completions", &[("host", b"localhost:8000")])?;
//! let mut request = Vec::new();
//! template.write(&mut request, &[("x-request-id", "7")], 2)?;
//! request.extend_from_slice(b"{}");
//!
//! let mut decoder = Decoder::new(Limits::default());
//! let mut read: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
//! let mut body = Vec::new();
//! // Until `None`, and not until `read` is empty: the end of an answer may need no further byte.
//! while let Some(part) = decoder.next(&mut read)? {
//!     match part {
//!         Part::Interim(_) => {}
//!         Part::Head(head) => assert_eq!((head.status, head.framing), (200, Framing::Chunked)),
//!         Part::Body(bytes) => body.extend_from_slice(bytes),
//!         Part::End => break,
//!     }
//! }
//! assert_eq!(body, b"hi");
//! assert!(decoder.can_be_reused());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where this decoder differs from hyper's, on purpose
//! A property test feeds both the same bytes at the same cuts and demands the same answer. They differ in these cases
//! only, each with a test of its own:
//!
//! | case | here | hyper 1 |
//! |---|---|---|
//! | `101 Switching Protocols` | refused: no upgrade was asked for | handed out as an upgrade |
//! | `Transfer-Encoding` other than one `chunked` (`gzip, chunked`) | refused, by name | read as chunks, still encoded |
//! | `Transfer-Encoding: gzip`, no `chunked` | refused, by name | read until the connection closes |
//! | `Transfer-Encoding: chunked` with an empty element after it (`chunked,`) | chunks: empty elements are none | read until the connection closes |
//! | `Transfer-Encoding` of nothing but `identity` or empty elements | as if it were absent | read until the connection closes |
//! | `Content-Length` of 2^64 − 1 or 2^64 − 2 | a length like any other | refused |
//! | a line of a chunk's size and extensions | at most [`Limits::chunk_line_bytes`] for each line | at most 16 KiB of extensions for the body |
//! | a lone LF in the trailers that ends them before the end of the answer | refused, as any lone LF there | what follows it is dropped |
//! | a line folded in the head (obs-fold) | always unfolded, as RFC 9112 asks of a client | refused unless switched on |
//! | a head larger than the limit | [`Limits::head_bytes`] | the size of the read buffer |
#![forbid(unsafe_code)]

mod chunks;
mod decoder;
mod error;
mod framing;
mod head;
mod headers;
mod limits;
mod request;

pub use decoder::{Closed, Decoder, Part};
pub use error::{DecodeError, Place};
pub use framing::Framing;
pub use head::Head;
pub use headers::{Headers, Iter};
pub use limits::Limits;
pub use request::{RequestError, RequestTemplate};
