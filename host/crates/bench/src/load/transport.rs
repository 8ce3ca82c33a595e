//! The client that is measured: the transport of a real run, behind the port that the pipeline uses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use veeksha_clock::RunClock;
use veeksha_endpoint::Api;
use veeksha_model::{Nanos, Prepared};
use veeksha_ports::{Outcome, Returned, Sinks, Transport};
use veeksha_transport::{HttpTransport, Server, Target, TransportConfig};

use super::job::{job, question};
use crate::BenchError;

/// The sending side, which any thread may use.
pub(crate) struct Sending {
    transport: HttpTransport,
    question: Arc<Prepared>,
    pub(crate) clock: RunClock,
}

/// A transport with one client thread. The thread that holds the client does what a run's completion threads do: it understands
/// what has come back.
pub(crate) struct Client {
    pub(crate) sending: Sending,
    returned: Receiver<Box<dyn Returned>>,
}

impl Client {
    /// Starts a transport that asks the server at `address` for answers of so many tokens. Its thread inherits the cores of the caller.
    pub(crate) fn start(address: SocketAddr, tokens: u32) -> Result<Self, BenchError> {
        let api = Api {
            model: "bench".to_owned(),
            ..Api::default()
        };
        let target = Target::single(Server::at(format!("http://{address}/v1")), api);
        let (sender, returned) = channel();
        let sinks = Sinks {
            // Nobody receives once the client is dropped, and then nobody is interested.
            returned: Arc::new(move |outcome| drop(sender.send(outcome))),
            first_chunk: None,
        };
        let clock = RunClock::starting_now();
        let transport = HttpTransport::start(TransportConfig::new(target), clock, sinks)
            .map_err(|error| BenchError::Transport(error.to_string()))?;
        let sending = Sending {
            transport,
            question: question(tokens),
            clock,
        };
        Ok(Client { sending, returned })
    }

    /// Waits for the next outcome and decodes it on this thread.
    pub(crate) fn next(&self) -> Result<Outcome, BenchError> {
        let returned = self
            .returned
            .recv()
            .map_err(|_| BenchError::Transport("its threads have ended".to_owned()))?;
        Ok(returned.outcome())
    }
}

impl Sending {
    /// Sends the request with this number now; it was due at `intended`.
    pub(crate) fn submit(&self, number: u64, intended: Nanos) {
        self.transport
            .submit(job(&self.question, number, intended, self.clock.now()));
    }
}
