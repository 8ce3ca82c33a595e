//! The ends of requests: answered, failed, cancelled, out of time.

use std::collections::VecDeque;
use std::sync::Arc;

use veeksha_events::{Event, RequestRecord, Status};
use veeksha_model::{ErrorClass, FailureReason, Nanos, Request, Response, Seed, ToolCall, Usage};
use veeksha_scheduler::SchedulerInput;

use super::Simulation;
use crate::entry::EventEntry;
use crate::live_agents::OpenWorkload;
use crate::pieces::{AnswerSource, answer_identity};
use crate::virtual_time::in_flight::{InFlight, record_of};
use crate::virtual_time::servers::ClientServer;

impl Simulation<'_> {
    pub(super) fn answer(
        &mut self,
        number: u64,
        at: Nanos,
        finish_reason: &str,
        usage: Usage,
        inputs: &mut VecDeque<SchedulerInput<Request>>,
    ) {
        let Some(flight) = self.take_flight(number) else {
            return;
        };
        let text = self.text(&flight, usage.completion);
        // Like the simulator's HTTP server: the words are the argument of the call.
        let finish_reason = match (&flight.tool, finish_reason) {
            (Some(_), "stop") => "tool_calls",
            (_, other) => other,
        };
        let (text, tool_calls) = match &flight.tool {
            Some(name) => {
                let call = ToolCall {
                    id: format!("call_{number}"),
                    name: name.clone(),
                    arguments: serde_json::json!({ "text": text }).to_string(),
                };
                (String::new(), vec![call])
            }
            None => (text, Vec::new()),
        };
        let response = Response {
            text,
            tool_calls,
            finish_reason: finish_reason.to_owned(),
            usage: Some(usage),
            output_tokens: usage.completion,
            ..Response::default()
        };
        inputs.push_back(SchedulerInput::Answered {
            request: flight.id,
            response: Arc::new(response),
            at,
        });
        let status = Status::Ok {
            finish_reason: finish_reason.to_owned(),
        };
        let record = record_of(flight, at, status, Some(200), Some(usage));
        self.record_answer(record);
    }

    pub(super) fn fail(
        &mut self,
        number: u64,
        at: Nanos,
        class: ErrorClass,
        status: Option<u16>,
        message: &str,
        inputs: &mut VecDeque<SchedulerInput<Request>>,
    ) {
        let Some(flight) = self.take_flight(number) else {
            return;
        };
        let request = flight.id;
        let reason = FailureReason {
            request,
            class,
            status,
            retry_after: None,
            message: message.to_owned(),
            at,
        };
        inputs.push_back(SchedulerInput::Failed {
            request,
            reason: Arc::new(reason),
            at,
        });
        let failed = Status::Failed {
            class,
            message: message.to_owned(),
        };
        let record = record_of(flight, at, failed, status, None);
        (self.record)(Event::Finished(Box::new(record)).into());
    }

    /// Ends a request that its workload cancels, with the part of its answer that has arrived.
    pub(super) fn cancel(&mut self, number: u64, at: Nanos, inputs: &mut VecDeque<SchedulerInput<Request>>) {
        let Some(flight) = self.take_flight(number) else {
            return;
        };
        self.servers.cancel(flight.client, self.now, number);
        let output_tokens = flight.chunks.len() as u32;
        // The argument of a call is not complete.
        let text = match flight.tool {
            Some(_) => String::new(),
            None => self.text(&flight, output_tokens),
        };
        let response = Response {
            text,
            output_tokens,
            cancelled: true,
            ..Response::default()
        };
        inputs.push_back(SchedulerInput::Answered {
            request: flight.id,
            response: Arc::new(response),
            at,
        });
        let http_status = (output_tokens > 0).then_some(200);
        let record = RequestRecord {
            output_tokens,
            ..record_of(flight, at, Status::CancelledByClient, http_status, None)
        };
        self.record_answer(record);
    }

    fn record_answer(&mut self, record: RequestRecord) {
        let answer = AnswerSource::Simulated {
            request: record.id,
            tokens: record.output_tokens,
        };
        (self.record)(EventEntry {
            answer: Some(answer).filter(|_| self.plan.track_prefixes),
            ..Event::Finished(Box::new(record)).into()
        });
    }

    /// Returns the text of an answer's first tokens, which only an agent reads.
    pub(super) fn text(&self, flight: &InFlight, tokens: u32) -> String {
        match &self.source.workload {
            OpenWorkload::Planned(_) => String::new(),
            OpenWorkload::Reactive(_) => {
                let seed = Seed::from(answer_identity(flight.id.session, flight.id.node));
                self.materializer.text(seed, tokens).to_string()
            }
        }
    }

    pub(super) fn take_flight(&mut self, number: u64) -> Option<InFlight> {
        let flight = self.flights.remove(&number)?;
        self.numbers.remove(&flight.id);
        Some(flight)
    }

    /// Returns the next total deadline of a request in flight.
    pub(super) fn next_deadline(&mut self) -> Option<Nanos> {
        let flights = &self.flights;
        let of_client = |client: &mut ClientServer<'_>| {
            let deadlines = &mut client.deadlines;
            while deadlines
                .front()
                .is_some_and(|(_, number)| !flights.contains_key(number))
            {
                deadlines.pop_front();
            }
            deadlines.front().map(|(at, _)| *at)
        };
        self.servers.iter_mut().filter_map(of_client).min()
    }

    /// Removes a deadline at an instant. Returns the client and the number of its flight.
    fn take_deadline(&mut self, at: Nanos) -> Option<(usize, u64)> {
        let mut clients = self.servers.iter_mut().enumerate();
        clients.find_map(|(index, client)| {
            let (_, number) = client.deadlines.pop_front_if(|(known, _)| *known == at)?;
            Some((index, number))
        })
    }

    /// Gives up the requests whose total deadline has come.
    pub(super) fn expire(&mut self, inputs: &mut VecDeque<SchedulerInput<Request>>) {
        while let Some(at) = self.next_deadline().filter(|at| *at <= self.now) {
            let Some((client, number)) = self.take_deadline(at) else {
                return;
            };
            self.servers.cancel(client, self.now, number);
            self.fail(
                number,
                at,
                ErrorClass::Timeout,
                None,
                "the request's total deadline passed",
                inputs,
            );
        }
    }

    pub(super) fn cancel_all(&mut self, inputs: &mut VecDeque<SchedulerInput<Request>>) {
        let flights = self.flights.iter();
        let mut flights: Vec<(u64, usize)> =
            flights.map(|(number, flight)| (*number, flight.client)).collect();
        flights.sort_unstable();
        for (number, client) in flights {
            self.servers.cancel(client, self.now, number);
            self.fail(
                number,
                self.now,
                ErrorClass::Cancelled,
                None,
                "the run ended",
                inputs,
            );
        }
    }
}
