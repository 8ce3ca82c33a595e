//! The client side of HTTP/1.1: requests to bytes, bytes to answers. Pure: no sockets, no clock.
#![forbid(unsafe_code)]
