//! A codec: what an endpoint's requests look like, asked once; and what the events of its answers mean, asked by many threads.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use veeksha_model::AnswerPart;
use veeksha_ports::{Codec, EndpointShape, PluginFailure, WorkloadInfo};
use wasmtime::Store;
use wasmtime::component::ResourceAny;

use crate::bindings::endpoint_codec::{Guest, Parts};
use crate::bindings::types::Error;
use crate::instance::Instance;
use crate::opened::{Opened, Opens};
use crate::parts::Allowance;
use crate::state::HostState;
use crate::text::{grouped, one_line};
use crate::workload::Bound;
use crate::{convert, endpoint, parts};

const ENDPOINT: &str = "codec.endpoint";
const DECODE: &str = "codec.decode";

/// Events of one call. From some 64 on, a call's own cost no longer counts; thousands at once leave the processor's caches.
const CALL_EVENTS: usize = 256;
/// Bytes of one call, unless a single event has more.
const CALL_BYTES: usize = 256 << 10;
/// Failures whose event is looked for, one event at a time. A codec that fails on every answer need not say so twice as slowly.
const LOCATED: u32 = 16;
/// Characters of an event shown in a report.
const EVENT: usize = 200;

impl Opens for Guest {
    const OPEN: &'static str = "codec.open";

    fn instance(bound: &Bound) -> Result<Instance<Self>, PluginFailure> {
        bound.loaded.codec(&bound.grants)
    }

    fn open(
        &self,
        store: &mut Store<HostState>,
        config: &str,
    ) -> wasmtime::Result<Result<ResourceAny, Error>> {
        self.codec().call_open(store, config)
    }
}

/// An endpoint that a plugin knows how to speak to.
#[derive(Clone)]
pub struct PluginEndpoint {
    /// What is said of the plugin.
    pub info: WorkloadInfo,
    /// What requests look like, checked; the placeholders of the request are not looked at here.
    pub shape: EndpointShape,
    /// What reads the answers. Every thread may call it at any time: an instance serves one call after another, and there are
    /// as many as there were calls at once.
    pub codec: Arc<dyn Codec>,
}

/// Opens a codec and asks for its endpoint.
pub(crate) fn open(bound: Arc<Bound>, info: WorkloadInfo) -> Result<PluginEndpoint, PluginFailure> {
    let mut first = Opened::<Guest>::new(Arc::clone(&bound))?;
    let endpoint = first.call(
        ENDPOINT,
        || None,
        |store, guest, codec| guest.codec().call_endpoint(store, codec),
    )?;
    let shape = endpoint::shape(endpoint).map_err(|why| {
        let mut failure = bound.unusable(ENDPOINT, String::new(), why);
        failure.input = None;
        failure
    })?;
    let codec = Reader {
        bound,
        idle: Mutex::new(vec![first]),
        located: AtomicU32::new(0),
    };
    Ok(PluginEndpoint {
        info,
        shape,
        codec: Arc::new(codec),
    })
}

/// Reads answers with whichever instance is idle.
struct Reader {
    bound: Arc<Bound>,
    /// Instances that no call is using; the one used last is taken first.
    idle: Mutex<Vec<Opened<Guest>>>,
    located: AtomicU32,
}

impl Codec for Reader {
    fn decode(&self, events: &[&[u8]]) -> Result<Vec<Vec<AnswerPart>>, PluginFailure> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let mut instance = self.take()?;
        let read = self.read(&mut instance, events);
        // A trapped store serves nothing any more; the next answer opens another.
        if !instance.is_trapped() {
            self.idle().push(instance);
        }
        read
    }
}

impl Reader {
    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Opened<Guest>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Result<Opened<Guest>, PluginFailure> {
        let idle = self.idle().pop();
        idle.map_or_else(|| Opened::new(Arc::clone(&self.bound)), Ok)
    }

    fn read(
        &self,
        instance: &mut Opened<Guest>,
        events: &[&[u8]],
    ) -> Result<Vec<Vec<AnswerPart>>, PluginFailure> {
        let mut allowance = Allowance::new(self.bound.loaded.host.limits.lift_bytes);
        let mut said = Vec::with_capacity(events.len());
        let mut next = 0;
        while let Some(rest) = events.get(next..).filter(|rest| !rest.is_empty()) {
            let call = next..next + call_length(rest);
            next = call.end;
            let batch = events.get(call.clone()).unwrap_or_default();
            self.ask(instance, batch, &mut allowance, &mut said)
                .map_err(|mut failure| {
                    failure.input = Some(self.locate(instance, events, call));
                    failure
                })?;
        }
        Ok(said)
    }

    /// One call.
    fn ask(
        &self,
        instance: &mut Opened<Guest>,
        events: &[&[u8]],
        allowance: &mut Allowance,
        said: &mut Vec<Vec<AnswerPart>>,
    ) -> Result<(), PluginFailure> {
        let unusable = |why| self.bound.unusable(DECODE, String::new(), why);
        let (bytes, ends) = joined(events).map_err(unusable)?;
        let answer = instance.call(
            DECODE,
            || None,
            |store, guest, codec| guest.codec().call_decode(store, codec, &bytes, &ends),
        )?;
        let parts: Parts =
            answer.map_err(|error| convert::refusal(&self.bound.loaded.name, DECODE, None, error))?;
        parts::append(parts, events.len(), allowance, said).map_err(unusable)
    }

    /// Which event a call failed on, in words. What an event says depends on nothing else, so each may be shown again by itself.
    fn locate(&self, instance: &mut Opened<Guest>, events: &[&[u8]], call: Range<usize>) -> String {
        let shown = |index: usize| {
            let event = events.get(index).copied().unwrap_or_default();
            let head = String::from_utf8_lossy(event.get(..16 * EVENT).unwrap_or(event));
            let printable = head.replace(|c: char| c.is_control() && !c.is_whitespace(), "\u{fffd}");
            format!(
                "event {} of {} ({} bytes): {}",
                grouped(index as u64 + 1),
                grouped(events.len() as u64),
                grouped(event.len() as u64),
                one_line(&printable, EVENT)
            )
        };
        let search = call.len() == 1 || self.located.fetch_add(1, Ordering::Relaxed) < LOCATED;
        let mut fails = |index: &usize| {
            let event = events.get(*index..index + 1).unwrap_or_default();
            let mut allowance = Allowance::new(self.bound.loaded.host.limits.lift_bytes);
            self.ask(instance, event, &mut allowance, &mut Vec::new())
                .is_err()
        };
        let culprit = match call.len() {
            1 => Some(call.start),
            _ if search => call.clone().find(&mut fails),
            _ => None,
        };
        match culprit {
            Some(index) => shown(index),
            None => format!("{} events, beginning with {}", call.len(), shown(call.start)),
        }
    }
}

/// How many of these events go into the next call; at least one.
fn call_length(events: &[&[u8]]) -> usize {
    let mut bytes = 0;
    let fitting = events.iter().take(CALL_EVENTS).take_while(|event| {
        bytes += event.len();
        bytes <= CALL_BYTES
    });
    fitting.count().max(1)
}

/// The events as they cross: one after the other, and where each ends.
fn joined(events: &[&[u8]]) -> Result<(Vec<u8>, Vec<u32>), String> {
    let mut bytes = Vec::with_capacity(events.iter().map(|event| event.len()).sum());
    let mut ends = Vec::with_capacity(events.len());
    for event in events {
        bytes.extend_from_slice(event);
        let end = u32::try_from(bytes.len()).map_err(|_| {
            format!(
                "an event of {} bytes is too large for a plugin",
                grouped(event.len() as u64)
            )
        })?;
        ends.push(end);
    }
    Ok((bytes, ends))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_takes_some_events_and_never_none() {
        let long = vec![0u8; CALL_BYTES];
        let (small, half, huge) = (&long[..1], &long[..CALL_BYTES / 2], vec![0u8; CALL_BYTES + 1]);
        assert_eq!(call_length(&vec![small; CALL_EVENTS + 9]), CALL_EVENTS);
        assert_eq!(call_length(&[half, half, small]), 2);
        assert_eq!(call_length(&[&long, small]), 1);
        assert_eq!(call_length(&[&huge, small]), 1);
        assert_eq!(call_length(&[small, &huge]), 1);
    }

    #[test]
    fn events_lie_one_after_the_other() {
        assert_eq!(joined(&[b"ab", b"", b"c"]), Ok((b"abc".to_vec(), vec![2, 2, 3])));
    }
}
