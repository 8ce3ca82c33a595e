//! A closed loop: each stream sends its next request as soon as its response is complete.

use veeksha_machine::ThreadWatch;
use veeksha_model::ChunkKind;
use veeksha_ports::RequestOutcome;

use crate::error::BenchError;
use crate::load::cost::{Cost, Meter, StreamLoad};
use crate::load::transport::TransportClient;

/// Drives the load through the transport.
pub(crate) fn drive_closed(client: &TransportClient, load: StreamLoad) -> Result<Cost, BenchError> {
    let clock = client.submitter.clock;
    let mut threads = ThreadWatch::new(&["client-"], clock.now());
    let meter = Meter::start();
    let mut cost = Cost {
        merged: Some(0),
        ..Cost::default()
    };
    let mut begun = load.replies.min(u64::from(load.streams));
    for number in 0..begun {
        client.submitter.submit(number, clock.now());
    }
    for _ in 0..load.replies {
        cost.count(&client.next()?);
        if begun < load.replies {
            client.submitter.submit(begun, clock.now());
            begun += 1;
        }
    }
    meter.read(&mut cost);
    let samples = threads.sample(clock.now());
    if !samples.is_empty() {
        cost.client_cpu = Some(samples.iter().map(|sample| sample.busy).sum());
    }
    Ok(cost)
}

impl Cost {
    /// Adds one outcome.
    pub(crate) fn count(&mut self, outcome: &RequestOutcome) {
        match &outcome.result {
            Ok(_) => self.replies += 1,
            Err(failure) => {
                self.failed += 1;
                self.first_failure.get_or_insert_with(|| failure.message.clone());
            }
        }
        for chunk in &outcome.chunks {
            if matches!(chunk.kind, ChunkKind::Done | ChunkKind::Comment) {
                continue;
            }
            self.events += 1;
            self.tokens += u64::from(chunk.kind.is_generated());
            if let Some(merged) = &mut self.merged {
                *merged += u64::from(chunk.merged);
            }
        }
    }
}
