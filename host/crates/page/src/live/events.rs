//! Server-sent events of the live page.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;

/// Server-sent events from a channel.
pub(crate) struct EventStream(mpsc::Receiver<Bytes>);

impl EventStream {
    pub(crate) fn new(receiver: mpsc::Receiver<Bytes>) -> EventStream {
        EventStream(receiver)
    }
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0
            .poll_recv(context)
            .map(|event| event.map(|bytes| Ok(Frame::data(bytes))))
    }
}
