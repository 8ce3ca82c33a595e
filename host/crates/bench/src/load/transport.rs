//! The client under test: the transport of a real run, behind the pipeline's port.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use veeksha_clock::RunClock;
use veeksha_endpoint::Api;
use veeksha_model::{Nanos, Prepared};
use veeksha_ports::{PendingOutcome, RequestOutcome, Sinks, Transport};
use veeksha_transport::{HttpTransport, Server, Target, TransportConfig};

use super::job::{job, prompt};
use crate::error::BenchError;

/// The submitter side, usable from any thread.
pub(crate) struct Submitter {
    transport: HttpTransport,
    prompt: Arc<Prepared>,
    pub(crate) clock: RunClock,
}

/// A transport with one client thread. The owning thread does the work of a run's completion
/// threads: it decodes responses.
pub(crate) struct TransportClient {
    pub(crate) submitter: Submitter,
    returned: Receiver<Box<dyn PendingOutcome>>,
}

impl TransportClient {
    /// Starts a transport that requests responses of `tokens` tokens from `address`. Its thread
    /// inherits the caller's cores.
    pub(crate) fn start(address: SocketAddr, tokens: u32) -> Result<Self, BenchError> {
        let api = Api {
            model: "bench".to_owned(),
            ..Api::default()
        };
        let target = Target::single(Server::at(format!("http://{address}/v1")), api);
        let (sender, returned) = channel();
        let sinks = Sinks {
            // The receiver is gone only when the client has been dropped.
            returned: Arc::new(move |outcome| drop(sender.send(outcome))),
            first_chunk: Arc::new(|_, _| {}),
        };
        let clock = RunClock::starting_now();
        let transport = HttpTransport::start(TransportConfig::new(target), clock, sinks)
            .map_err(|error| BenchError::Transport(error.to_string()))?;
        let submitter = Submitter {
            transport,
            prompt: prompt(tokens),
            clock,
        };
        Ok(TransportClient { submitter, returned })
    }

    /// Waits for the next outcome and decodes it on this thread.
    pub(crate) fn next(&self) -> Result<RequestOutcome, BenchError> {
        let returned = self
            .returned
            .recv()
            .map_err(|_| BenchError::Transport("its threads have ended".to_owned()))?;
        Ok(returned.outcome())
    }
}

impl Submitter {
    /// Sends request `number` now; it was due at `intended`.
    pub(crate) fn submit(&self, number: u64, intended: Nanos) {
        self.transport
            .submit(job(&self.prompt, number, intended, self.clock.now()));
    }
}
