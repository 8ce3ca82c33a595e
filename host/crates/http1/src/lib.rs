//! The client side of HTTP/1.1 (RFC 9112) over bytes: it converts requests to bytes and bytes to
//! answers. Pure: no sockets, no clock, no tasks.
//!
//! A [`RequestTemplate`] is built once for an endpoint and appends requests to a buffer. A
//! [`Decoder`] belongs to one connection. Its input is the received bytes, in pieces of any size;
//! its output is the parts of the answer. Bytes of the body are borrowed from the input: an
//! ordinary chunk that is complete in one read costs neither a copy nor an allocation.
//!
//! ```
//! use veeksha_http1::{BodyFraming, DecodedPart, Decoder, DecoderLimits, RequestTemplate};
//!
//! let template = RequestTemplate::new("POST", "/v1/completions", &[("host", b"localhost:8000")])?;
//! let mut request = Vec::new();
//! template.write(&mut request, &[("x-request-id", "7")], 2)?;
//! request.extend_from_slice(b"{}");
//!
//! let mut decoder = Decoder::new(DecoderLimits::default());
//! let mut read: &[u8] =
//!     b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
//! let mut body = Vec::new();
//! // Until `None`, not until `read` is empty: the end of an answer may consume no byte.
//! while let Some(part) = decoder.next(&mut read)? {
//!     match part {
//!         DecodedPart::Interim(_) => {}
//!         DecodedPart::Head(head) => {
//!             assert_eq!((head.status, head.framing), (200, BodyFraming::Chunked));
//!         }
//!         DecodedPart::Body(bytes) => body.extend_from_slice(bytes),
//!         DecodedPart::End => break,
//!     }
//! }
//! assert_eq!(body, b"hi");
//! assert!(decoder.can_be_reused());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Deliberate differences from hyper 1
//!
//! A property test feeds both decoders the same bytes at the same cuts and requires the same
//! answer. They differ only in the following cases, each with a dedicated test.
//!
//! * `101 Switching Protocols`: rejected here, since no upgrade was requested; hyper returns it as
//!   an upgrade.
//! * `Transfer-Encoding` other than one `chunked` (`gzip, chunked`): rejected here, with the value
//!   in the error; hyper reads it as chunks that are still encoded.
//! * `Transfer-Encoding: gzip`, without `chunked`: rejected here, with the value in the error;
//!   hyper reads until the connection closes.
//! * `Transfer-Encoding: chunked` with an empty element after it (`chunked,`): chunks here, since
//!   empty elements are ignored; hyper reads until the connection closes.
//! * `Transfer-Encoding` with only `identity` or empty elements: treated as absent here; hyper
//!   reads until the connection closes.
//! * `Content-Length` of 2^64 − 1 or 2^64 − 2: a length like any other here; hyper rejects it.
//! * The size line of a chunk with its extensions: at most [`DecoderLimits::chunk_line_bytes`] for
//!   each line here; hyper allows at most 16 KiB of extensions for the whole body.
//! * A lone LF in the trailers that ends them before the end of the answer: rejected here, like any
//!   lone LF in the trailers; hyper drops what follows it.
//! * A folded line in the head (obs-fold): always unfolded here, as RFC 9112 requires of a client;
//!   hyper rejects it unless this is enabled.
//! * The maximum size of a head: [`DecoderLimits::head_bytes`] here; in hyper, the size of the read
//!   buffer.
#![forbid(unsafe_code)]

mod chunks;
mod decoder;
mod error;
mod framing;
mod head;
mod headers;
mod limits;
mod request;

pub use decoder::{Closed, DecodedPart, Decoder};
pub use error::{DecodeError, DecodePosition};
pub use framing::BodyFraming;
pub use head::Head;
pub use headers::{Headers, Iter};
pub use limits::DecoderLimits;
pub use request::{RequestError, RequestTemplate};
