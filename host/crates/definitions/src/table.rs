//! The table of the built-in metrics.

use veeksha_model::Better;

use crate::cached_tokens;
use crate::defaults::{LATENCY, SESSION, TOKENS, TOOL_RUN};
use crate::definition::{Certification, Definition};
use crate::observation::Observation;
use crate::scope::{Needs, Samples, Scope};
use crate::tool_times::ToolTimes;

/// The source of the metrics of critical paths.
const PATH_SOURCE: &str = "the critical path method on the measured instants: from the last completion of a session \
    back over the edge that was met last; the times add up to the makespan";

/// Declares the metrics together with their definitions: a metric without a definition does not
/// compile.
macro_rules! metrics {
    ($($(#[$doc:meta])* $metric:ident = $definition:expr,)*) => {
        /// A built-in metric; [`Metric::definition_of`] is its entry in the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Metric {
            $($(#[$doc])* $metric,)*
        }

        const DEFINITIONS: &[Definition] = &[$($definition,)*];

        impl Metric {
            pub(crate) const ALL: &[Metric] = &[$(Metric::$metric,)*];
        }
    };
}

impl Metric {
    /// Returns the metric's entry in the table.
    pub fn definition_of(self) -> &'static Definition {
        // The macro lists variants and definitions in the same order.
        &DEFINITIONS[self as usize]
    }
}

metrics! {
    /// `num_prompt_tokens`
    PromptTokens = Definition {
        name: "num_prompt_tokens",
        display: "Number of Prompt Tokens",
        title: "New prompt tokens (without history)",
        short: "prompt tokens",
        definition: "tokens of the new messages of the request, without history, by the host's tokenizer",
        source: "Veeksha",
        samples: Samples::Request(Observation::prompt_tokens),
        uses_prompt_tokens: true,
        rank: Some(7),
        ..TOKENS
    },
    /// `num_output_tokens`
    OutputTokens = Definition {
        name: "num_output_tokens",
        aliases: &["output_sequence_length", "osl"],
        display: "Number of Output Tokens",
        title: "Output tokens",
        short: "output tokens",
        definition: "tokens generated, as the server reports them, else by the host's tokenizer",
        source: "Veeksha, which always counts with its own tokenizer",
        samples: Samples::Request(Observation::output_tokens),
        uses_token_counts: true,
        rank: Some(8),
        charted: true,
        ..TOKENS
    },
    /// `num_total_tokens`
    TotalTokens = Definition {
        name: "num_total_tokens",
        display: "Number of Total Tokens",
        title: "Total tokens",
        short: "total tokens",
        definition: "tokens of history and new messages, by the host's tokenizer, and of the output, as the \
            server reports them, else by the host's tokenizer",
        source: "Veeksha",
        samples: Samples::Request(Observation::total_tokens),
        uses_prompt_tokens: true,
        uses_token_counts: true,
        ..TOKENS
    },
    /// `num_reasoning_tokens`
    ReasoningTokens = Definition {
        name: "num_reasoning_tokens",
        display: "Number of Reasoning Tokens",
        title: "Reasoning tokens",
        short: "reasoning tokens",
        definition: "tokens of the output that were reasoning, as the server reports them; absent where \
            it does not",
        source: "the `completion_tokens_details.reasoning_tokens` of the OpenAI API",
        samples: Samples::Request(Observation::reasoning_tokens),
        ..TOKENS
    },
    /// `cached_token_share`
    CachedTokenShare = Definition {
        name: "cached_token_share",
        display: "Cached Token Share",
        title: "Cached token share",
        short: "cached token share",
        unit: "1",
        is_share: true,
        better: Better::Higher,
        definition: "prompt tokens that came from the server's prefix cache / prompt tokens, both as the \
            server counts them (with its chat template; the host's num_prompt_tokens is \
            without); absent where it does not report them, or reports more cached tokens than \
            there were",
        source: "the `prompt_tokens_details.cached_tokens` of the OpenAI API",
        samples: Samples::Request(Observation::cached_token_share),
        ..LATENCY
    },
    /// `cache_reused_tokens`
    CacheReused = cached_tokens::REUSED,
    /// `cache_evicted_tokens`
    CacheEvicted = cached_tokens::EVICTED,
    /// `cache_rerouted_tokens`
    CacheRerouted = cached_tokens::REROUTED,
    /// `cache_changed_tokens`
    CacheChanged = cached_tokens::CHANGED,
    /// `cache_new_tokens`
    CacheNew = cached_tokens::NEW,
    /// `tpot`
    Tpot = Definition {
        name: "tpot",
        aliases: &["time_per_output_token"],
        display: "Time per Output Token",
        title: "Time per Output Token (TPOT)",
        short: "TPOT",
        definition: "(last generated chunk - first generated chunk) / (output tokens - tokens of the \
            first chunk), of answers with chunks that did not all come in one read; the tokens \
            of the first chunk are those that the server reports with it, else those that the \
            host counts, scaled to the server's total, else an equal share",
        source: "the formula of vLLM's benchmark, for servers that send several tokens in a chunk; an \
            answer without a second token, or with a single chunk or read, has none instead of 0",
        samples: Samples::Request(Observation::tpot),
        uses_token_counts: true,
        uses_tokens_of_chunks: true,
        certification: Certification::Own,
        needs: Needs::TwoTokens,
        rank: Some(4),
        in_slices: true,
        charted: true,
        ..LATENCY
    },
    /// `ttfc`
    Ttfc = Definition {
        name: "ttfc",
        aliases: &["ttft", "time_to_first_token"],
        display: "Time to First Chunk",
        title: "Time to First Chunk (TTFC)",
        short: "TTFC",
        definition: "first generated chunk (reasoning, content or tool call) - dispatched",
        source: "Veeksha's documentation; its code counts from the sending",
        samples: Samples::Request(Observation::ttfc),
        of_failed: true,
        of_cancelled: true,
        certification: Certification::Own,
        rank: Some(1),
        in_slices: true,
        charted: true,
        ..LATENCY
    },
    /// `ttfc_from_intended`
    TtfcFromIntended = Definition {
        name: "ttfc_from_intended",
        aliases: &["ttft_from_intended"],
        display: "Time to First Chunk from Intended",
        title: "TTFC from intended",
        short: "TTFC from intended",
        definition: "first generated chunk (reasoning, content or tool call) - the instant the schedule \
            asked for",
        source: "wrk2's correction for coordinated omission, applied to TTFC",
        samples: Samples::Request(Observation::ttfc_from_intended),
        of_failed: true,
        of_cancelled: true,
        certification: Certification::Own,
        from_schedule: true,
        rank: Some(2),
        in_slices: true,
        charted: true,
        ..LATENCY
    },
    /// `ttfc_content`
    TtfcContent = Definition {
        name: "ttfc_content",
        aliases: &["time_to_first_output_token"],
        display: "Time to First Content Chunk",
        title: "Time to first content",
        short: "TTFC of content",
        definition: "first chunk of visible text (not reasoning, not a tool call) - dispatched; absent \
            where no text came",
        source: "guidellm's `time_to_first_output_token`, AIPerf's `time_to_first_output_token`",
        samples: Samples::Request(Observation::ttfc_content),
        of_cancelled: true,
        certification: Certification::As("ttfc"),
        ..LATENCY
    },
    /// `time_to_second_chunk`
    TimeToSecondChunk = Definition {
        name: "time_to_second_chunk",
        aliases: &["time_to_second_token"],
        display: "Time to Second Chunk",
        title: "Time to second chunk",
        short: "time to second chunk",
        definition: "second generated chunk - first generated chunk",
        source: "genai-perf's and AIPerf's `time_to_second_token`",
        samples: Samples::Request(Observation::time_to_second_chunk),
        of_cancelled: true,
        certification: Certification::As("tbc"),
        needs: Needs::TwoTokens,
        ..LATENCY
    },
    /// `tbc`
    Tbc = Definition {
        name: "tbc",
        aliases: &["inter_chunk_latency"],
        display: "Time Between Chunks",
        title: "Time Between Chunks (TBC)",
        short: "TBC",
        scope: Scope::Gap,
        definition: "gaps between successive generated chunks of a request, those of all requests \
            together",
        source: "Veeksha; what vLLM and SGLang call ITL",
        samples: Samples::ChunkGaps,
        of_cancelled: true,
        certification: Certification::Own,
        needs: Needs::TwoTokens,
        rank: Some(3),
        in_slices: true,
        ..LATENCY
    },
    /// `itl`
    Itl = Definition {
        name: "itl",
        aliases: &["inter_token_latency"],
        display: "Inter-Token Latency",
        title: "Inter-Token Latency (ITL)",
        short: "ITL",
        scope: Scope::Gap,
        definition: "the gap before a chunk / the chunk's tokens, once for each of its tokens, those of \
            all requests together; tokens that the host counts are scaled to the server's total; \
            absent where the tokens of the chunks are not known; equal to tbc where each chunk \
            carries one token",
        source: "genai-perf divides the gap in the same way, and counts each chunk once",
        samples: Samples::TokenGaps,
        uses_token_counts: true,
        uses_tokens_of_chunks: true,
        of_cancelled: true,
        certification: Certification::As("tbc"),
        needs: Needs::TwoTokens,
        ..LATENCY
    },
    /// `end_to_end_latency`
    EndToEnd = Definition {
        name: "end_to_end_latency",
        aliases: &["e2e", "e2el", "e2e_latency", "request_latency"],
        slo_name: Some("e2e"),
        display: "End to End Latency",
        title: "End-to-End Latency (E2E)",
        short: "E2E",
        definition: "last generated chunk (of a tool call, or without streaming: the finish event) - \
                     dispatched",
        source: "Veeksha's documentation; usage, [DONE] and the end of the stream do not count",
        samples: Samples::Request(Observation::end_to_end),
        certification: Certification::Own,
        rank: Some(5),
        in_slices: true,
        charted: true,
        ..LATENCY
    },
    /// `e2e_from_intended`
    EndToEndFromIntended = Definition {
        name: "e2e_from_intended",
        aliases: &["end_to_end_latency_from_intended"],
        display: "End to End Latency from Intended",
        title: "E2E from intended",
        short: "E2E from intended",
        definition: "last generated chunk - the instant the schedule asked for",
        source: "wrk2's correction for coordinated omission, applied to the end-to-end latency",
        samples: Samples::Request(Observation::end_to_end_from_intended),
        certification: Certification::Own,
        from_schedule: true,
        rank: Some(6),
        in_slices: true,
        charted: true,
        ..LATENCY
    },
    /// `normalized_end_to_end_latency`
    NormalizedEndToEnd = Definition {
        name: "normalized_end_to_end_latency",
        display: "Normalized End to End Latency",
        title: "Normalized E2E latency",
        short: "normalized E2E",
        unit: "s/token",
        definition: "end to end latency / output tokens",
        source: "Veeksha; the normalised latency of the Orca paper (OSDI '22)",
        samples: Samples::Request(Observation::normalized_end_to_end),
        uses_token_counts: true,
        certification: Certification::As("end_to_end_latency"),
        ..LATENCY
    },
    /// `output_throughput`
    OutputThroughput = Definition {
        name: "output_throughput",
        display: "Output Throughput",
        title: "Output throughput per request",
        short: "output throughput",
        unit: "tokens/s",
        better: Better::Higher,
        definition: "output tokens / end to end latency, of one request",
        source: "Veeksha",
        samples: Samples::Request(Observation::output_throughput),
        uses_token_counts: true,
        certification: Certification::As("end_to_end_latency"),
        in_slices: true,
        charted: true,
        ..LATENCY
    },
    /// `prefill_time`
    PrefillTime = Definition {
        name: "prefill_time",
        display: "Prefill Time",
        title: "Prefill time",
        short: "prefill time",
        definition: "first generated chunk - the last request byte handed to the socket: the network, the \
            server's queue and its prefill, without the client's part",
        source: "the prefill phase as a client can see it",
        samples: Samples::Request(Observation::prefill_time),
        of_cancelled: true,
        certification: Certification::As("ttfc"),
        ..LATENCY
    },
    /// `decode_time`
    DecodeTime = Definition {
        name: "decode_time",
        aliases: &["decode_duration"],
        display: "Decode Time",
        title: "Decode time",
        short: "decode time",
        definition: "last generated chunk - first generated chunk, of answers with chunks that did not \
            all come in one read",
        source: "AIPerf's `decode_duration`",
        samples: Samples::Request(Observation::decode_time),
        certification: Certification::As("tpot"),
        needs: Needs::TwoTokens,
        ..LATENCY
    },
    /// `fluidity`
    Fluidity = Definition {
        name: "fluidity",
        display: "Fluidity Index",
        title: "Fluidity index",
        short: "fluidity",
        unit: "1",
        is_share: true,
        better: Better::Higher,
        definition: "1 - missed deadlines / deadlines: the first token is due D_prefill (100 ms, if \
            nothing else is asked for) after dispatch, each further one D_decode (50 ms) after \
            the one before it, and time that tokens came early is saved up; a late token misses \
            one deadline for each D_decode it is late, and nothing is saved any more; absent \
            where the tokens of the chunks are not known",
        source: "etalon's code (`get_request_level_deadline_miss_rate`)",
        samples: Samples::Request(Observation::fluidity),
        uses_token_counts: true,
        uses_tokens_of_chunks: true,
        certification: Certification::As("tbc"),
        ..LATENCY
    },
    /// `fluidity_tokens`
    FluidityTokens = Definition {
        name: "fluidity_tokens",
        display: "Fluidity Index by Tokens",
        title: "Fluidity index by tokens",
        short: "fluidity by tokens",
        unit: "1",
        is_share: true,
        better: Better::Higher,
        definition: "tokens that came by their deadline / tokens, with the deadlines of fluidity: a late \
            token counts once, however late it is",
        source: "etalon's documentation, which differs from its code",
        samples: Samples::Request(Observation::fluidity_tokens),
        uses_token_counts: true,
        uses_tokens_of_chunks: true,
        certification: Certification::As("tbc"),
        ..LATENCY
    },
    /// `session_size`
    SessionSize = Definition {
        name: "session_size",
        display: "Requests per Session",
        title: "Requests per session",
        short: "session size",
        unit: "requests",
        better: Better::Neither,
        definition: "requests sent in a session of which every request was tried",
        source: "Veeksha",
        ..SESSION
    },
    /// `session_duration`
    SessionDuration = Definition {
        name: "session_duration",
        display: "Session Duration",
        title: "Session duration",
        short: "session duration",
        definition: "first dispatch (or call of a tool) to last completion (or end of a tool run) of a \
            session of which every request was tried",
        source: "Veeksha's documentation; its code gives 0 for sessions of one request",
        certification: Certification::As("end_to_end_latency"),
        ..SESSION
    },
    /// `session_makespan`
    SessionMakespan = Definition {
        name: "session_makespan",
        display: "Session Makespan",
        title: "Session makespan",
        short: "session makespan",
        definition: "the earliest instant the schedule asked for to the last completion (or end of a tool \
            run), of a session of which every request was tried: what its user waited, with every \
            delay of host, server and tools",
        source: "the makespan of scheduling theory, from the intended instant",
        certification: Certification::As("e2e_from_intended"),
        ..SESSION
    },
    /// `session_critical_path_llm_time`
    SessionCriticalPath = Definition {
        name: "session_critical_path_llm_time",
        display: "Session Critical Path LLM Time",
        title: "Session critical path",
        short: "session critical path",
        definition: "the longest path through the session's graph when a request takes from dispatch to \
            completion and waits take nothing, of a session of which every request was tried",
        source: "the critical path method; waits and tools count nothing",
        certification: Certification::As("end_to_end_latency"),
        ..SESSION
    },
    /// `critical_path_client_queueing`
    PathClientQueueing = Definition {
        name: "critical_path_client_queueing",
        display: "Critical Path Client Queueing",
        title: "Client queueing",
        short: "client queueing on the critical path",
        definition: "time on the critical path of a session from the scheduled instant of a request until its \
            last byte was sent, including the time for which limits held it back, added up",
        source: PATH_SOURCE,
        ..SESSION
    },
    /// `critical_path_prefill`
    PathPrefill = Definition {
        name: "critical_path_prefill",
        display: "Critical Path Prefill",
        title: "Prefill",
        short: "prefill on the critical path",
        definition: "time on the critical path of a session from the last byte of a request to its first \
            generated chunk (to its end, if it had none), added up",
        source: PATH_SOURCE,
        certification: Certification::As("ttfc"),
        ..SESSION
    },
    /// `critical_path_decode`
    PathDecode = Definition {
        name: "critical_path_decode",
        display: "Critical Path Decode",
        title: "Decode",
        short: "decode on the critical path",
        definition: "time on the critical path of a session from the first generated chunk of a request to \
            its end, added up; 0 for a request whose first chunk the next one waited for",
        source: PATH_SOURCE,
        certification: Certification::As("end_to_end_latency"),
        ..SESSION
    },
    /// `critical_path_tool_waiting`
    PathToolWaiting = Definition {
        name: "critical_path_tool_waiting",
        display: "Critical Path Tool Waiting",
        title: "Tool waiting",
        short: "tool waiting on the critical path",
        definition: "time on the critical path of a session from the call of a tool to the start of its \
            service, added up",
        source: PATH_SOURCE,
        needs: Needs::Tools,
        ..SESSION
    },
    /// `critical_path_tool_service`
    PathToolService = Definition {
        name: "critical_path_tool_service",
        display: "Critical Path Tool Service",
        title: "Tool service",
        short: "tool service on the critical path",
        better: Better::Neither,
        definition: "time on the critical path of a session in which a server of a tool worked for it, cold \
            starts included, added up",
        source: PATH_SOURCE,
        needs: Needs::Tools,
        ..SESSION
    },
    /// `critical_path_think`
    PathThink = Definition {
        name: "critical_path_think",
        display: "Critical Path Think Time",
        title: "Think time",
        short: "think time on the critical path",
        better: Better::Neither,
        definition: "time on the critical path of a session from an event of a node to the scheduled \
            instant of the one that waited for it, including the delays of edges, added up",
        source: PATH_SOURCE,
        ..SESSION
    },
    /// `critical_path_requests`
    PathRequests = Definition {
        name: "critical_path_requests",
        display: "Critical Path Requests",
        title: "Requests on the critical path",
        short: "requests on the critical path",
        unit: "requests",
        better: Better::Neither,
        definition: "requests on the critical path of a session, without its tool runs",
        source: PATH_SOURCE,
        ..SESSION
    },
    /// `session_think_time`
    SessionThinkTime = Definition {
        name: "session_think_time",
        display: "Intra-session Think Time",
        title: "Think time within sessions",
        short: "think time",
        better: Better::Neither,
        definition: "the instant the schedule asked for - the last event of a parent that the request \
            waits for, of each request that has parents: a session has a value for each of them",
        source: "Veeksha, which takes the request finished last for the parent",
        samples: Samples::ThinkTimes,
        needs: Needs::TwoRequests,
        ..SESSION
    },
    /// `session_tool_time`
    SessionToolTime = Definition {
        name: "session_tool_time",
        display: "Session Tool Time",
        title: "Session tool time",
        short: "session tool time",
        better: Better::Neither,
        definition: "the waiting and service times of the tool runs of a session, and the think times of \
            those requests that follow an answer with a part of a tool call and no tool run, added \
            up; absent where no tool was called",
        source: "the time between a tool call and the request that brings its result",
        needs: Needs::TwoRequests,
        ..SESSION
    },
    /// `session_slowdown`
    SessionSlowdown = Definition {
        name: "session_slowdown",
        display: "Session Slowdown",
        title: "Session slowdown",
        short: "session slowdown",
        unit: "1",
        definition: "makespan / the makespan without queueing: the longest path through the session's \
            graph with the waits that the workload asked for, each request taking the shortest \
            TTFC that any request of the run with at least as many prompt tokens had, and then \
            its own time from first chunk to completion, and each tool run its service time; of \
            sessions of which every request was answered with something",
        source: "the slowdown of scheduling theory, against what the server showed it can do in this \
            run",
        not_comparable: Some("each run is measured by its own shortest times: a server that is slower all the way \
            can have the smaller slowdown"),
        ..SESSION
    },
    /// `tool_waiting_time`
    ToolWaitingTime = Definition {
        name: "tool_waiting_time",
        display: "Tool Waiting Time",
        title: "Tool waiting time",
        short: "tool waiting time",
        definition: "the instant at which a server took a call of a tool - the instant of the call; of each \
            tool run, with the class as label `tool`",
        source: "the waiting time of queueing theory",
        samples: Samples::ToolRun(ToolTimes::waiting),
        ..TOOL_RUN
    },
    /// `tool_service_time`
    ToolServiceTime = Definition {
        name: "tool_service_time",
        display: "Tool Service Time",
        title: "Tool service time",
        short: "tool service time",
        better: Better::Neither,
        definition: "the end of a tool run - the instant at which a server took the call, a cold start \
            included; of each tool run, with the class as label `tool`",
        source: "the service time of queueing theory",
        samples: Samples::ToolRun(ToolTimes::service),
        ..TOOL_RUN
    },
}
