//! hyper's client connection on bytes from a script: the second opinion on every answer.
//!
//! The connection is polled by hand, without a runtime: the script returns one piece for each read,
//! so that hyper sees the same cuts as the decoder under test, and a connection that waits forever
//! is detected.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The result of hyper for some bytes.
#[derive(Debug, Default)]
pub(crate) struct Opinion {
    pub(crate) interim: Vec<u16>,
    pub(crate) status: Option<u16>,
    /// Lower-case names, in order for each name, sorted by name.
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    /// Reason why the answer did not end, if it did not.
    pub(crate) error: Option<String>,
    /// Set if the connection accepted another request afterwards. Only known if it was left open.
    pub(crate) reusable: bool,
}

/// Behaviour of the server after the last byte.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Afterwards {
    Close,
    StayOpen,
}

/// Returns hyper's opinion on the answer in these pieces.
pub(crate) fn ask(pieces: &[&[u8]], afterwards: Afterwards) -> Opinion {
    let script = Script {
        pieces: pieces.iter().map(|piece| piece.to_vec()).collect(),
        afterwards,
        asked: false,
    };
    let patience = pieces.iter().map(|piece| piece.len() + 1).sum::<usize>() * 4 + 100;
    let interim = Arc::new(Mutex::new(Vec::new()));
    let mut opinion = Opinion::default();
    let finished = run(exchange(script, interim.clone(), &mut opinion), patience);
    assert!(finished, "hyper waits for ever: {opinion:?}");
    opinion.interim = std::mem::take(&mut interim.lock().unwrap());
    opinion
}

async fn exchange(script: Script, interim: Arc<Mutex<Vec<u16>>>, opinion: &mut Opinion) {
    let (mut sender, connection) = http1::Builder::new()
        .allow_obsolete_multiline_headers_in_responses(true)
        .max_headers(veeksha_http1::DecoderLimits::default().headers)
        .handshake(TokioIo::new(script))
        .await
        .unwrap();
    let mut request = hyper::Request::builder()
        .uri("/")
        .header("host", "h")
        .body(Empty::<Bytes>::new())
        .unwrap();
    hyper::ext::on_informational(&mut request, move |answer| {
        interim.lock().unwrap().push(answer.status().as_u16());
    });
    let answer = async {
        let answer = match sender.send_request(request).await {
            Ok(answer) => answer,
            Err(error) => {
                opinion.error = Some(format!("{error:?}"));
                return;
            }
        };
        opinion.status = Some(answer.status().as_u16());
        opinion.headers = answer
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
            .collect();
        opinion.headers.sort_by(|one, other| one.0.cmp(&other.0));
        let mut body = answer.into_body();
        loop {
            match body.frame().await {
                Some(Ok(frame)) => opinion
                    .body
                    .extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new())),
                Some(Err(error)) => {
                    opinion.error = Some(format!("{error:?}"));
                    return;
                }
                None => break,
            }
        }
        opinion.reusable = sender.ready().await.is_ok();
    };
    // The connection has to be driven until the answer has arrived, and may end before the answer
    // has been taken. A completed future is dropped, since the sender would not be notified
    // otherwise.
    let mut connection = Some(Box::pin(connection));
    let mut answer = pin!(answer);
    std::future::poll_fn(|cx| {
        connection.take_if(|connection| connection.as_mut().poll(cx).is_ready());
        answer.as_mut().poll(cx)
    })
    .await;
}

/// Polls at most `patience` times. Returns true if the future completed.
fn run(future: impl Future<Output = ()>, patience: usize) -> bool {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    (0..patience).any(|_| future.as_mut().poll(&mut cx).is_ready())
}

/// A server that sends the same bytes after the first request.
struct Script {
    pieces: VecDeque<Vec<u8>>,
    afterwards: Afterwards,
    /// Set once the request has arrived. A server that sends before the request is a separate case.
    asked: bool,
}

impl AsyncRead for Script {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.asked {
            return Poll::Pending;
        }
        let Some(piece) = this.pieces.front_mut() else {
            return match this.afterwards {
                Afterwards::Close => Poll::Ready(Ok(())),
                Afterwards::StayOpen => Poll::Pending,
            };
        };
        let size = piece.len().min(buffer.remaining());
        buffer.put_slice(&piece[..size]);
        piece.drain(..size);
        if piece.is_empty() {
            this.pieces.pop_front();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Script {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().asked |= bytes.ends_with(b"\r\n\r\n");
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
