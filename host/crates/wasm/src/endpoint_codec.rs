//! An endpoint codec: describes the requests of an endpoint once, and decodes the events of its
//! answers on many threads.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use veeksha_model::AnswerPart;
use veeksha_ports::{Codec, EndpointShape, PluginFailure, WorkloadInfo};

use crate::bindings::endpoint_codec::{Guest, Parts};
use crate::bound::BoundPlugin;
use crate::parts::PartAllowance;
use crate::resource::RenewableResource;
use crate::text::{grouped, one_line};
use crate::{convert, endpoint_shape, parts};

const ENDPOINT: &str = "codec.endpoint";
const DECODE: &str = "codec.decode";

/// Maximum number of events per call. From about 64 on, the cost of the call itself is negligible;
/// thousands at once exceed the processor's caches.
const MAX_CALL_EVENTS: usize = 256;
/// Maximum number of bytes per call, unless a single event has more.
const MAX_CALL_BYTES: usize = 256 << 10;
/// Maximum number of failures whose event is searched for, one event at a time. Bounds the cost of
/// a codec that fails on every answer.
const MAX_SEARCHES: u32 = 16;
/// Maximum length of an event's excerpt in a report, in characters.
const MAX_EVENT_CHARS: usize = 200;

/// An endpoint whose API a plugin implements.
#[derive(Clone)]
pub struct PluginEndpoint {
    /// The description of the plugin.
    pub info: WorkloadInfo,
    /// The shape of requests, checked except for the placeholders of the request.
    pub shape: EndpointShape,
    /// The decoder of answers. Every thread may call it at any time: an instance serves one call
    /// after another, and there are as many instances as there were concurrent calls.
    pub codec: Arc<dyn Codec>,
}

/// Opens a codec and asks for its endpoint.
pub(crate) fn open(bound: Arc<BoundPlugin>, info: WorkloadInfo) -> Result<PluginEndpoint, PluginFailure> {
    let mut first = RenewableResource::<Guest>::new(Arc::clone(&bound))?;
    let endpoint = first.call(
        ENDPOINT,
        || None,
        |store, guest, codec| guest.codec().call_endpoint(store, codec),
    )?;
    let shape = endpoint_shape::shape(endpoint).map_err(|why| bound.unusable(ENDPOINT, None, why))?;
    let codec = WasmCodec {
        bound,
        idle: Mutex::new(vec![first]),
        searches: AtomicU32::new(0),
    };
    Ok(PluginEndpoint {
        info,
        shape,
        codec: Arc::new(codec),
    })
}

/// Decodes answers with an idle instance, or with a new one.
struct WasmCodec {
    bound: Arc<BoundPlugin>,
    /// Idle instances; the one used last is taken first.
    idle: Mutex<Vec<RenewableResource<Guest>>>,
    searches: AtomicU32,
}

impl Codec for WasmCodec {
    fn decode(&self, events: &[&[u8]]) -> Result<Vec<Vec<AnswerPart>>, PluginFailure> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let mut instance = self.take()?;
        let decoded = self.decode_all(&mut instance, events);
        // A trapped store cannot be used again; the next answer opens another.
        if instance.is_trapped() {
            self.bound.grants.meter.restarted();
        } else {
            self.idle().push(instance);
        }
        decoded
    }
}

impl WasmCodec {
    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<RenewableResource<Guest>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Result<RenewableResource<Guest>, PluginFailure> {
        let idle = self.idle().pop();
        idle.map_or_else(|| RenewableResource::new(Arc::clone(&self.bound)), Ok)
    }

    fn decode_all(
        &self,
        instance: &mut RenewableResource<Guest>,
        events: &[&[u8]],
    ) -> Result<Vec<Vec<AnswerPart>>, PluginFailure> {
        let mut allowance = PartAllowance::new(self.bound.loaded.host.limits.lift_bytes);
        let mut decoded = Vec::with_capacity(events.len());
        let mut next = 0;
        while let Some(rest) = events.get(next..).filter(|rest| !rest.is_empty()) {
            let call = next..next + call_length(rest);
            next = call.end;
            let batch = events.get(call.clone()).unwrap_or_default();
            self.ask(instance, batch, &mut allowance, &mut decoded)
                .map_err(|mut failure| {
                    failure.input = Some(self.locate(instance, events, call));
                    failure
                })?;
        }
        Ok(decoded)
    }

    /// Decodes some events in one call.
    fn ask(
        &self,
        instance: &mut RenewableResource<Guest>,
        events: &[&[u8]],
        allowance: &mut PartAllowance,
        decoded: &mut Vec<Vec<AnswerPart>>,
    ) -> Result<(), PluginFailure> {
        let unusable = |why| self.bound.unusable(DECODE, None, why);
        let (bytes, ends) = joined(events).map_err(unusable)?;
        let answer = instance.call(
            DECODE,
            || None,
            |store, guest, codec| guest.codec().call_decode(store, codec, &bytes, &ends),
        )?;
        let parts: Parts =
            answer.map_err(|error| convert::refusal(&self.bound.loaded.name, DECODE, None, error))?;
        parts::append(parts, events.len(), allowance, decoded).map_err(unusable)
    }

    /// Describes the event that a call failed on. An event is decoded independently of the others,
    /// so each may be passed again separately.
    fn locate(
        &self,
        instance: &mut RenewableResource<Guest>,
        events: &[&[u8]],
        call: Range<usize>,
    ) -> String {
        let shown = |index: usize| {
            let event = events.get(index).copied().unwrap_or_default();
            let head = String::from_utf8_lossy(event.get(..16 * MAX_EVENT_CHARS).unwrap_or(event));
            let printable = head.replace(|c: char| c.is_control() && !c.is_whitespace(), "\u{fffd}");
            format!(
                "event {} of {} ({} bytes): {}",
                grouped(index as u64 + 1),
                grouped(events.len() as u64),
                grouped(event.len() as u64),
                one_line(&printable, MAX_EVENT_CHARS)
            )
        };
        let search = call.len() > 1
            && !self.bound.is_disabled()
            && self.searches.fetch_add(1, Ordering::Relaxed) < MAX_SEARCHES;
        let mut fails = |index: &usize| {
            let event = events.get(*index..index + 1).unwrap_or_default();
            let mut allowance = PartAllowance::new(self.bound.loaded.host.limits.lift_bytes);
            self.ask(instance, event, &mut allowance, &mut Vec::new())
                .is_err()
        };
        let failing = match call.len() {
            1 => Some(call.start),
            _ if search => call.clone().find(&mut fails),
            _ => None,
        };
        match failing {
            Some(index) => shown(index),
            None => format!("{} events, beginning with {}", call.len(), shown(call.start)),
        }
    }
}

/// Returns the number of events that go into the next call; at least one.
fn call_length(events: &[&[u8]]) -> usize {
    let mut bytes = 0;
    let fitting = events.iter().take(MAX_CALL_EVENTS).take_while(|event| {
        bytes += event.len();
        bytes <= MAX_CALL_BYTES
    });
    fitting.count().max(1)
}

/// Concatenates the events and returns the end of each.
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
    fn a_call_takes_at_least_one_event() {
        let long = vec![0u8; MAX_CALL_BYTES];
        let (small, half, huge) = (
            &long[..1],
            &long[..MAX_CALL_BYTES / 2],
            vec![0u8; MAX_CALL_BYTES + 1],
        );
        assert_eq!(call_length(&vec![small; MAX_CALL_EVENTS + 9]), MAX_CALL_EVENTS);
        assert_eq!(call_length(&[half, half, small]), 2);
        assert_eq!(call_length(&[&long, small]), 1);
        assert_eq!(call_length(&[&huge, small]), 1);
        assert_eq!(call_length(&[small, &huge]), 1);
    }

    #[test]
    fn concatenates_events_with_their_ends() {
        assert_eq!(joined(&[b"ab", b"", b"c"]), Ok((b"abc".to_vec(), vec![2, 2, 3])));
    }
}
