//! Completion: outcomes become answers for the scheduler, then records.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crossbeam_channel::{Receiver, Sender};
use veeksha_clock::RunClock;
use veeksha_events::{Event, RequestRecord, Status};
use veeksha_model::{ChunkKind, ErrorClass, FailureReason, History, Nanos, Prepared, Request, Response};
use veeksha_ports::{PendingOutcome, RequestOutcome};
use veeksha_prompt::Tokenizer;
use veeksha_scheduler::SchedulerInput;

use crate::chunk_tokens::tokens_by_chunk;
use crate::clients::ClientSpecs;
use crate::control::Control;
use crate::dispatcher::CoordinatorMessage;
use crate::entry::{EntryContent, EventEntry};
use crate::inbox::InputSender;
use crate::partition::Partition;
use crate::pieces::AnswerSource;

/// Channels and settings of a completion thread.
pub(crate) struct CompletionContext {
    pub(crate) clock: RunClock,
    /// Time between the start of the transport's clock and the run's: the duration of the warm-up.
    pub(crate) transport_lead: Nanos,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) part: Partition,
    pub(crate) dispatchers: Vec<InputSender<SchedulerInput<Prepared>>>,
    pub(crate) notices: Sender<CoordinatorMessage>,
    pub(crate) events: Sender<EventEntry>,
    pub(crate) include_content: bool,
    /// True if the events contain the answers, for their pieces.
    pub(crate) track_prefixes: bool,
    pub(crate) target: Arc<TargetWatch>,
}

/// The work of one completion thread: ends at an end mark (`None`).
pub(crate) fn complete(context: &CompletionContext, outcomes: &Receiver<Option<Box<dyn PendingOutcome>>>) {
    while let Ok(Some(returned)) = outcomes.recv() {
        let processed_at = context.clock.now();
        let mut outcome = returned.outcome();
        put_on_the_runs_clock(&mut outcome, context.transport_lead);
        if let Some(failure) = outcome.codec_failure.take() {
            // The coordinator outlives the completion threads.
            let _ = context.notices.send(CoordinatorMessage::CodecFailed(failure));
        }
        let answer = count_output(&context.tokenizer, outcome);
        context
            .target
            .observe(&answer.outcome.job.request.request, &answer.result);
        // The scheduler first: a child may be due at once.
        let request = answer.outcome.job.id;
        let at = answer.outcome.timings.completed_at;
        let input = match &answer.result {
            Ok(response) => SchedulerInput::Answered {
                request,
                response: response.clone(),
                at,
            },
            Err(reason) => SchedulerInput::Failed {
                request,
                reason: reason.clone(),
                at,
            },
        };
        // The collector outlives the run.
        context.dispatchers[context.part.dispatcher(request.session)].send(input);
        let content = match &answer.result {
            Ok(response) if context.include_content => Some(EntryContent::Answered(response.clone())),
            _ => None,
        };
        let tracked = answer.result.as_ref().ok().filter(|_| context.track_prefixes);
        let tracked = tracked.cloned().map(AnswerSource::Received);
        let chunk_tokens = chunk_tokens(&context.tokenizer, &answer);
        let event = Event::Finished(Box::new(record(
            &context.tokenizer,
            answer,
            chunk_tokens,
            processed_at,
        )));
        let _ = context.events.send(EventEntry {
            content,
            answer: tracked,
            ..event.into()
        });
    }
}

/// The transport's stamps count from its own start, which a warm-up puts before the run's.
fn put_on_the_runs_clock(outcome: &mut RequestOutcome, lead: Nanos) {
    if lead == 0 {
        return;
    }
    let timings = &mut outcome.timings;
    let optional = [
        &mut timings.picked_up_at,
        &mut timings.sent_at,
        &mut timings.first_byte_at,
    ];
    let failed_at = outcome.result.as_mut().err().map(|reason| &mut reason.at);
    let all = optional
        .into_iter()
        .flatten()
        .chain([&mut timings.completed_at])
        .chain(outcome.chunks.iter_mut().map(|chunk| &mut chunk.at))
        .chain(failed_at);
    for at in all {
        *at = at.saturating_sub(lead);
    }
}

/// Requests in a row that could not connect, after which the target is given up: a closed loop
/// would send tens of thousands a second to a server that is gone. An open loop of 100 requests a
/// second outlives a restart of ten seconds.
const LOST_AFTER: u32 = 1000;

/// Watches for a target that no longer takes connections. Shared by the completion threads.
pub(crate) struct TargetWatch {
    clients: ClientSpecs,
    /// By client: the others may still be answered.
    refused: Vec<AtomicU32>,
    control: Control,
}

impl TargetWatch {
    pub(crate) fn new(clients: ClientSpecs, control: Control) -> Self {
        TargetWatch {
            refused: clients.names().map(|_| AtomicU32::new(0)).collect(),
            clients,
            control,
        }
    }

    fn observe(&self, request: &Request, result: &Result<Arc<Response>, Arc<FailureReason>>) {
        let refused = &self.refused[self.clients.index(request.client.as_deref())];
        if let Err(reason) = result
            && reason.class == ErrorClass::Connect
        {
            if refused.fetch_add(1, Ordering::Relaxed) + 1 == LOST_AFTER {
                self.control.stop_for_lost_target(&reason.message);
            }
        } else if refused.load(Ordering::Relaxed) > 0 {
            // Loaded first: a store on every answer would invalidate the cache line of the other
            // threads.
            refused.store(0, Ordering::Relaxed);
        }
    }
}

/// Texts above this are counted in pieces: a tokenizer takes fifty times a text's size in memory.
const PIECE_BYTES: usize = 1 << 18;

/// Counts the tokens of a text. Pieces of a long text end before a space, where hardly any
/// tokenizer merges; within an endless word, anywhere.
fn count(tokenizer: &Tokenizer, mut text: &str) -> u32 {
    let mut tokens = 0u32;
    while text.len() > PIECE_BYTES {
        let limit = text.floor_char_boundary(PIECE_BYTES);
        let cut = text[..limit].rfind(' ').filter(|cut| *cut > 0).unwrap_or(limit);
        let (piece, rest) = text.split_at(cut);
        tokens = tokens.saturating_add(tokenizer.count(piece));
        text = rest;
    }
    tokens.saturating_add(tokenizer.count(text))
}

/// Returns the number of tokens in each generated chunk, where that differs from one per chunk.
/// Called after the dispatcher has the answer, because this encodes the text once more.
fn chunk_tokens(tokenizer: &Tokenizer, answer: &CountedOutcome) -> Vec<u32> {
    let Ok(response) = &answer.result else {
        return Vec::new();
    };
    let outcome = &answer.outcome;
    let kinds = outcome.chunks.iter().map(|chunk| chunk.kind);
    let kinds: Vec<ChunkKind> = kinds.filter(|kind| kind.is_generated()).collect();
    // The server's own counts are exact; the tokenizer may split the text otherwise.
    let counted = &outcome.chunk_tokens;
    if !counted.is_empty() && counted.len() == kinds.len() {
        let is_one_each = counted.iter().all(|tokens| *tokens == 1);
        return if is_one_each && counted.len() == response.output_tokens as usize {
            Vec::new()
        } else {
            counted.clone()
        };
    }
    // One token to a chunk is what nearly every server does.
    if kinds.len() == response.output_tokens as usize
        || response.text.len() + response.reasoning.len() > PIECE_BYTES
    {
        return Vec::new();
    }
    tokens_by_chunk(tokenizer, response, &kinds, &outcome.chunk_texts).unwrap_or_default()
}

struct CountedOutcome {
    outcome: RequestOutcome,
    result: Result<Arc<Response>, Arc<FailureReason>>,
    from_usage: bool,
}

/// Output tokens are the server's count; where it gave none, the tokenizer's. That of a part of an
/// answer is at most what was requested: another tokenizer than the server's may count more.
fn count_output(tokenizer: &Tokenizer, mut outcome: RequestOutcome) -> CountedOutcome {
    let from_usage = matches!(&outcome.result, Ok(response) if response.usage.is_some());
    let most = outcome.job.request.request.output.target_tokens;
    let result = std::mem::replace(&mut outcome.result, Ok(Response::default()));
    let result = result.map_err(Arc::new).map(|mut response| {
        if !from_usage {
            response.output_tokens =
                count(tokenizer, &response.reasoning).saturating_add(visible_tokens(tokenizer, &response));
            if let Some(most) = most.filter(|_| response.cancelled) {
                response.output_tokens = response.output_tokens.min(most);
            }
        }
        Arc::new(response)
    });
    CountedOutcome {
        outcome,
        result,
        from_usage,
    }
}

fn record(
    tokenizer: &Tokenizer,
    answer: CountedOutcome,
    chunk_tokens: Vec<u32>,
    processed_at: u64,
) -> RequestRecord {
    let CountedOutcome {
        outcome,
        result,
        from_usage,
    } = answer;
    let RequestOutcome {
        job,
        timings,
        connection,
        status: http_status,
        chunks,
        body_digest,
        response_id,
        trace_id,
        ..
    } = outcome;
    let (status, usage, output_tokens) = match &result {
        Ok(response) if response.cancelled => {
            (Status::CancelledByClient, response.usage, response.output_tokens)
        }
        Ok(response) => {
            let finish_reason = response.finish_reason.clone();
            (
                Status::Ok { finish_reason },
                response.usage,
                response.output_tokens,
            )
        }
        Err(reason) => (
            Status::Failed {
                class: reason.class,
                message: reason.message.clone(),
            },
            None,
            0,
        ),
    };
    let sent = PromptTokens::of(tokenizer, &job.request, &job.history);
    let request = &job.request.request;
    RequestRecord {
        id: job.id,
        session_requests: job.session_requests,
        parents: request.parents.clone(),
        history_parent: request.history_parent,
        wait_after_ready: request.wait_after_ready,
        cancellation: request.cancellation.clone(),
        intended: job.intended,
        held: job.held,
        dispatched_at: job.dispatched_at,
        picked_up_at: timings.picked_up_at,
        sent_at: timings.sent_at,
        first_byte_at: timings.first_byte_at,
        completed_at: timings.completed_at,
        processed_at,
        stamps: timings.stamps,
        chunks,
        chunk_tokens,
        status,
        http_status,
        target_prompt_tokens: job.request.target_tokens,
        prompt_tokens: job.request.prompt_tokens,
        total_prompt_tokens: sent.total,
        target_output_tokens: request.output.target_tokens,
        output_exact: request.output.exact,
        output_tokens,
        output_tokens_from_usage: from_usage,
        usage,
        connection_reused: connection.reused,
        server: connection.server,
        resolve: connection.resolve,
        connect: connection.connect,
        tls: connection.tls,
        retried: connection.retried,
        measured: job.measured,
        labels: request.labels.clone(),
        template_tokens: sent.template,
        history_mode: request.history_mode(),
        recorded: request.replay.as_ref().map(|replay| replay.recorded),
        ideal_cached_tokens: None,
        cache: None,
        body_digest,
        response_id,
        trace_id,
    }
}

/// Tokens of a prompt as it was sent: the functions that the model may call, every turn's messages
/// and the answer that was given for it, real or recorded.
struct PromptTokens {
    /// Of the chat template.
    template: u32,
    /// All, those of the template included.
    total: u32,
}

impl PromptTokens {
    fn of(tokenizer: &Tokenizer, request: &Prepared, history: &Option<Arc<History<Prepared>>>) -> Self {
        let (mut template, mut words) = (request.template_tokens, request.prompt_tokens);
        let mut tools = request.tools.as_ref();
        let mut next = history.as_ref();
        while let Some(turn) = next {
            tools = tools.or(turn.request.tools.as_ref());
            template = template.saturating_add(turn.request.template_tokens);
            words = words.saturating_add(turn.request.prompt_tokens);
            if let Some(response) = &turn.response {
                let sends_reasoning = request.sends_reasoning_of(&turn.request, response);
                words = words.saturating_add(tokens_in_history(tokenizer, response, sends_reasoning));
            }
            next = turn.before.as_ref();
        }
        words = words.saturating_add(tools.map_or(0, |tools| tools.tokens));
        PromptTokens {
            template,
            total: words.saturating_add(template),
        }
    }
}

/// Returns the tokens of an answer that later turns send again: its text, its calls, and its
/// reasoning if they send it; the server counts all of them as output.
fn tokens_in_history(tokenizer: &Tokenizer, response: &Response, sends_reasoning: bool) -> u32 {
    if sends_reasoning {
        return response.output_tokens;
    }
    match response.usage.and_then(|usage| usage.reasoning) {
        Some(reasoning) => response.output_tokens.saturating_sub(reasoning),
        None if response.reasoning.is_empty() => response.output_tokens,
        None => visible_tokens(tokenizer, response),
    }
}

/// Returns the tokens of an answer's text and calls, by the tokenizer.
fn visible_tokens(tokenizer: &Tokenizer, response: &Response) -> u32 {
    let calls = response
        .tool_calls
        .iter()
        .flat_map(|call| [&call.name, &call.arguments]);
    let calls = calls.map(|text| count(tokenizer, text));
    calls.fold(count(tokenizer, &response.text), u32::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::ClientSpec;
    use veeksha_model::{
        Chunk, ChunkKind, NodeId, ReasoningSupport, Request, RequestId, SessionId, ToolCall, Usage,
    };
    use veeksha_ports::{ConnectionUse, Job, Timings};

    fn prepared(prompt_tokens: u32, template_tokens: u32) -> Arc<Prepared> {
        Arc::new(Prepared {
            request: Request {
                node: NodeId(0),
                ..Request::default()
            },
            target_tokens: prompt_tokens,
            prompt_tokens,
            template_tokens,
            ..Prepared::default()
        })
    }

    /// The answers of another client do not hide that the server of one is gone.
    #[test]
    fn the_target_of_each_client_is_watched() {
        let judge = ClientSpec {
            name: "judge".into(),
            min_tokens_prompt: None,
        };
        let control = Control::default();
        let watch = TargetWatch::new(ClientSpecs::new(None, vec![judge]), control.clone());
        let refused = |request: &Request| {
            Err(Arc::new(FailureReason {
                request: RequestId {
                    session: SessionId(0),
                    node: request.node,
                },
                class: ErrorClass::Connect,
                status: None,
                message: "refused".into(),
                retry_after: None,
                at: 0,
            }))
        };
        let (of_default, mut of_judge) = (Request::default(), Request::default());
        of_judge.client = Some("judge".into());
        let answered = || Ok(Arc::new(Response::default()));
        for _ in 1..LOST_AFTER {
            watch.observe(&of_judge, &refused(&of_judge));
            watch.observe(&of_default, &answered());
        }
        assert_eq!(control.target_lost(), None);
        watch.observe(&of_judge, &refused(&of_judge));
        assert_eq!(control.target_lost(), Some("refused"));
        // An answer of the same client starts the count again.
        let control = Control::default();
        let watch = TargetWatch::new(ClientSpecs::default(), control.clone());
        for _ in 0..2 {
            (1..LOST_AFTER).for_each(|_| watch.observe(&of_default, &refused(&of_default)));
            watch.observe(&of_default, &answered());
        }
        assert_eq!(control.target_lost(), None);
    }

    #[test]
    fn prompt_tokens_cover_history_and_template() {
        let turn = |before, request, output_tokens: Option<u32>| {
            let response = output_tokens.map(|output_tokens| {
                Arc::new(Response {
                    output_tokens,
                    ..Response::default()
                })
            });
            Some(Arc::new(History {
                before,
                request,
                response,
            }))
        };
        let history = turn(None, prepared(100, 7), Some(20));
        let history = turn(history, prepared(1000, 5), None);
        let tokenizer = Tokenizer::embedded().unwrap();
        let sent = PromptTokens::of(&tokenizer, &prepared(10_000, 3), &history);
        assert_eq!((sent.template, sent.total), (15, 11_135));
    }

    /// An endpoint may send only reasoning with a signature, or none; hidden reasoning without one
    /// cannot be sent.
    #[test]
    fn reasoning_that_is_not_sent_is_not_counted() {
        let tokenizer = Tokenizer::embedded().unwrap();
        let answer = |reasoning: &str, signature: Option<&str>| Response {
            text: "yes".into(),
            reasoning: reasoning.into(),
            reasoning_signature: signature.map(str::to_owned),
            output_tokens: 50,
            usage: Some(Usage {
                prompt: 1,
                completion: 50,
                cached: None,
                reasoning: Some(40),
            }),
            ..Response::default()
        };
        let total = |response: Response, keeps: bool, support: ReasoningSupport| {
            let history = Some(Arc::new(History {
                before: None,
                request: prepared(100, 0),
                response: Some(Arc::new(response)),
            }));
            let mut request = Prepared::clone(&prepared(0, 0));
            request.request.keep_reasoning = keeps;
            request.reasoning = support.into();
            PromptTokens::of(&tokenizer, &request, &history).total
        };
        use ReasoningSupport::{All, Nothing, Signed};
        let (signed, unsigned) = (|| answer("so", Some("S")), || answer("so", None));
        assert_eq!(total(signed(), true, All), 150);
        assert_eq!(total(unsigned(), true, All), 150);
        assert_eq!(total(signed(), true, Signed), 150);
        assert_eq!(total(unsigned(), true, Signed), 110);
        assert_eq!(total(signed(), true, Nothing), 110);
        assert_eq!(total(signed(), false, All), 110);
        assert_eq!(total(answer("", None), true, All), 110);
        assert_eq!(total(answer("", Some("S")), true, All), 150);
    }

    /// The answer's message in a later prompt is its text; the reasoning stays out.
    #[test]
    fn reasoning_is_not_part_of_later_prompts() {
        let tokenizer = Tokenizer::embedded().unwrap();
        let text = "four words of answer";
        let counted = tokenizer.count(text);
        let mut response = Response {
            text: text.into(),
            reasoning: "a long chain of thought".into(),
            output_tokens: counted + 300,
            ..Response::default()
        };
        assert_eq!(tokens_in_history(&tokenizer, &response, false), counted);
        let usage = |reasoning| Usage {
            prompt: 1,
            completion: counted + 300,
            cached: None,
            reasoning,
        };
        response.usage = Some(usage(None));
        assert_eq!(tokens_in_history(&tokenizer, &response, false), counted);
        response.usage = Some(usage(Some(299)));
        assert_eq!(tokens_in_history(&tokenizer, &response, false), counted + 1);
        response.usage = Some(usage(Some(0)));
        response.reasoning.clear();
        assert_eq!(tokens_in_history(&tokenizer, &response, false), counted + 300);
    }

    /// A server without usage that answers with a call: its name and arguments were generated.
    #[test]
    fn calls_are_counted_if_usage_is_absent() {
        let tokenizer = Tokenizer::embedded().unwrap();
        let call = ToolCall {
            name: "search".into(),
            arguments: r#"{"query": "four words of text"}"#.into(),
            ..ToolCall::default()
        };
        let called = tokenizer.count(&call.name) + tokenizer.count(&call.arguments);
        let response = Response {
            text: "I search".into(),
            tool_calls: vec![call],
            ..Response::default()
        };
        let text = tokenizer.count(&response.text);
        let counted = count_output(&tokenizer, outcome(Ok(response)));
        assert!(!counted.from_usage && called > 0);
        assert_eq!(counted.result.unwrap().output_tokens, text + called);
    }

    #[test]
    fn part_of_an_answer_has_at_most_the_requested_tokens() {
        let tokenizer = Tokenizer::embedded().unwrap();
        let tokens = |cancelled| {
            let response = Response {
                text: "five words of an answer".into(),
                cancelled,
                ..Response::default()
            };
            let mut outcome = outcome(Ok(response));
            let mut request = Prepared::clone(&outcome.job.request);
            request.request.output.target_tokens = Some(3);
            outcome.job.request = Arc::new(request);
            count_output(&tokenizer, outcome).result.unwrap().output_tokens
        };
        assert_eq!(tokens(true), 3);
        // A whole answer shows that the server exceeded the limit.
        assert!(tokens(false) > 3);
    }

    #[test]
    fn long_text_counts_equal_in_pieces() {
        let tokenizer = Tokenizer::embedded().unwrap();
        let text = "four words of answer ".repeat(40_000);
        assert!(text.len() > 3 * PIECE_BYTES);
        assert_eq!(count(&tokenizer, &text), tokenizer.count(&text));
        // A word without an end, of characters of several bytes: pieces end between characters.
        assert!(count(&tokenizer, &"ä".repeat(300_000)) > 0);
    }

    fn outcome(result: Result<Response, FailureReason>) -> RequestOutcome {
        let request = prepared(1, 0);
        RequestOutcome {
            job: Job {
                id: RequestId {
                    session: SessionId(0),
                    node: NodeId(0),
                },
                intended: 4,
                held: Default::default(),
                dispatched_at: 5,
                request,
                history: None,
                session_requests: 1,
                measured: true,
                reports_first_chunk: true,
            },
            timings: Timings {
                picked_up_at: Some(1_006),
                sent_at: None,
                first_byte_at: Some(1_008),
                completed_at: 1_010,
                stamps: Default::default(),
            },
            connection: ConnectionUse {
                connect: Some(77),
                ..ConnectionUse::default()
            },
            status: None,
            chunk_texts: Vec::new(),
            chunk_tokens: Vec::new(),
            body_digest: Some(5),
            response_id: None,
            trace_id: None,
            chunks: [1_008, 1_009]
                .map(|at| Chunk {
                    lag: 0,
                    at,
                    bytes: 1,
                    kind: ChunkKind::Content,
                    merged: false,
                })
                .to_vec(),
            codec_failure: None,
            result,
        }
    }

    /// Instants move, lengths of time do not; what the dispatcher stamped is on the run's clock
    /// already.
    #[test]
    fn stamps_of_a_transport_that_began_earlier_are_moved() {
        let reason = FailureReason {
            request: outcome(Ok(Response::default())).job.id,
            class: ErrorClass::Truncated,
            status: None,
            retry_after: None,
            message: String::new(),
            at: 1_010,
        };
        let mut outcome = outcome(Err(reason));
        put_on_the_runs_clock(&mut outcome, 1_000);
        let timings = outcome.timings;
        assert_eq!(
            (
                timings.picked_up_at,
                timings.sent_at,
                timings.first_byte_at,
                timings.completed_at
            ),
            (Some(6), None, Some(8), 10)
        );
        let chunks: Vec<_> = outcome.chunks.iter().map(|chunk| chunk.at).collect();
        assert_eq!((chunks, outcome.result.unwrap_err().at), (vec![8, 9], 10));
        assert_eq!((outcome.job.intended, outcome.job.dispatched_at), (4, 5));
        assert_eq!(outcome.connection.connect, Some(77));
    }
}
