//! Computation of a trace's statistics, session by session.

use std::collections::{BTreeMap, HashMap};

use veeksha_model::{HistoryMode, Message, Nanos, NodeId, Request, Segment, Session};
use veeksha_prefix::PrefixCensus;

use crate::arrivals::{ArrivalStats, SECONDS};
use crate::conversation::{SessionTurns, length, output_tokens};
use crate::distribution::{Distribution, QuantityUnit};
use crate::labels::Labels;
use crate::tally::Tally;
use crate::trace_stats::{GraphCounts, PrefixReport, TraceStats};

/// Nodes of the tree of prompts that are kept; beyond it the hit rate is an estimate. About 300 MB
/// when full.
const CENSUS: usize = 8_000_000;

/// Computes statistics of a trace from its sessions, in any order. Memory is bounded except for
/// eight bytes per recorded arrival: distributions keep at most about ten thousand distinct values,
/// and the tree of prompts is sampled beyond eight million nodes.
#[derive(Clone, Debug)]
pub struct TraceStatsBuilder {
    sessions: u64,
    requests: u64,
    graph: GraphCounts,
    turns: Tally,
    new_prompt_tokens: Tally,
    prompt_tokens: Tally,
    output_tokens: Tally,
    think_time: Tally,
    latency: Tally,
    session_arrivals: Vec<Nanos>,
    request_arrivals: Vec<Nanos>,
    roles: BTreeMap<&'static str, u64>,
    media: BTreeMap<&'static str, u64>,
    labels: Labels,
    census: PrefixCensus,
    /// Tokens of all prompts as they are sent.
    sent: u64,
    /// Number of live answers so far.
    answers: u64,
}

impl Default for TraceStatsBuilder {
    fn default() -> Self {
        TraceStatsBuilder::new()
    }
}

impl TraceStatsBuilder {
    /// Creates statistics without sessions.
    pub fn new() -> Self {
        TraceStatsBuilder {
            sessions: 0,
            requests: 0,
            graph: GraphCounts::default(),
            turns: Tally::default(),
            new_prompt_tokens: Tally::default(),
            prompt_tokens: Tally::default(),
            output_tokens: Tally::default(),
            think_time: Tally::default(),
            latency: Tally::default(),
            session_arrivals: Vec::new(),
            request_arrivals: Vec::new(),
            roles: BTreeMap::new(),
            media: BTreeMap::new(),
            labels: Labels::default(),
            census: PrefixCensus::new(CENSUS),
            sent: 0,
            answers: 0,
        }
    }

    /// Adds a session; `count` tokenizes a text.
    pub fn add(&mut self, session: &Session, count: &dyn Fn(&str) -> u32) {
        self.sessions += 1;
        self.turns.add(session.requests.len() as u64);
        self.session_arrivals.extend(session.arrives_at);
        self.labels.add(&session.labels);
        self.add_graph(session);
        let conversation = SessionTurns::of(session, &mut self.answers, count);
        let sent = conversation.count_prompts(&mut self.census);
        for (turn, sent) in conversation.turns.iter().zip(sent) {
            self.sent += sent;
            self.new_prompt_tokens.add(length(&turn.new));
            let recorded = turn.request.replay.as_ref().map(|replay| replay.recorded);
            let recorded = recorded.unwrap_or_default();
            self.prompt_tokens
                .add(recorded.prompt_tokens.map_or(sent, u64::from));
            if let Some(latency) = recorded.latency {
                self.latency.add(latency);
            }
            self.request_arrivals.extend(recorded.at);
            self.add_request(turn.request, count);
        }
    }

    fn add_request(&mut self, request: &Request, count: &dyn Fn(&str) -> u32) {
        self.requests += 1;
        self.labels.add(&request.labels);
        if !request.parents.is_empty() {
            self.think_time.add(request.wait_after_ready);
        }
        if let Some(tokens) = output_tokens(request, count) {
            self.output_tokens.add(u64::from(tokens));
        }
        request
            .messages
            .iter()
            .for_each(|message| self.add_message(message));
        if let Some(answer) = request.replay.as_ref().and_then(|replay| replay.answer.as_ref()) {
            *self.roles.entry(RECORDED_ANSWERS).or_default() += 1;
            let calls = answer.tool_calls.len() as u64;
            if calls > 0 {
                *self.roles.entry(RECORDED_CALLS).or_default() += calls;
            }
        }
    }

    fn add_message(&mut self, message: &Message) {
        *self.roles.entry(message.role.name()).or_default() += 1;
        for segment in &message.content {
            if let Segment::Media { kind, .. } = segment {
                *self.media.entry(kind.name()).or_default() += 1;
            }
        }
    }

    fn add_graph(&mut self, session: &Session) {
        let mut children: HashMap<NodeId, u64> = HashMap::new();
        for request in &session.requests {
            self.graph.edges += request.parents.len() as u64;
            self.graph.joins += u64::from(request.parents.len() > 1);
            self.graph.roots += u64::from(request.parents.is_empty());
            for edge in &request.parents {
                *children.entry(edge.parent).or_default() += 1;
            }
            let continued = match request.history_mode() {
                _ if request.history_parent.is_none() => continue,
                HistoryMode::Live => &mut self.graph.continued_live,
                HistoryMode::Recorded => &mut self.graph.continued_recorded,
                HistoryMode::Fresh => &mut self.graph.continued_fresh,
            };
            *continued += 1;
        }
        self.graph.forks += children.values().filter(|children| **children > 1).count() as u64;
    }

    /// Returns the statistics of the added sessions.
    pub fn finish(self) -> TraceStats {
        let tokens = |tally: &Tally| Distribution::of(tally, QuantityUnit::Tokens, 1.0);
        let seconds = |tally: &Tally| Distribution::of(tally, QuantityUnit::Seconds, SECONDS);
        let hits = self.sent.saturating_sub(self.census.new_tokens());
        TraceStats {
            sessions: self.sessions,
            requests: self.requests,
            turns: Distribution::of(&self.turns, QuantityUnit::Count, 1.0),
            graph: self.graph,
            new_prompt_tokens: tokens(&self.new_prompt_tokens),
            prompt_tokens: tokens(&self.prompt_tokens),
            output_tokens: tokens(&self.output_tokens),
            think_time: seconds(&self.think_time),
            latency: seconds(&self.latency),
            session_arrivals: ArrivalStats::of(self.session_arrivals),
            request_arrivals: ArrivalStats::of(self.request_arrivals),
            messages: self.roles,
            media: self.media,
            labels: self.labels.finish(),
            prefix: PrefixReport {
                prompt_tokens: self.sent,
                hit_tokens: hits,
                hit_rate: (self.sent > 0).then(|| hits as f64 / self.sent as f64),
                exact: self.census.is_exact(),
            },
        }
    }
}

const RECORDED_ANSWERS: &str = "recorded answers";
const RECORDED_CALLS: &str = "recorded tool calls";

#[cfg(test)]
mod tests {
    use veeksha_model::{MediaKind, Recorded, Replay, Role};

    use super::*;
    use crate::fixture::{blocks, request, session, synthetic, text, user};

    fn text_formats(text: &str) -> u32 {
        text.split_whitespace().count() as u32
    }

    fn stats_builder(sessions: &[Session]) -> TraceStats {
        let mut stats_builder = TraceStatsBuilder::new();
        sessions
            .iter()
            .for_each(|session| stats_builder.add(session, &text_formats));
        stats_builder.finish()
    }

    /// Mooncake's structure: blocks 1, 2, 3 (partial) and 1, 2, 4 and 5.
    #[test]
    fn block_hit_rate_equals_id_hit_rate() {
        let report = stats_builder(&[
            blocks(&[1, 2, 3], 512, 1200, 0, 10),
            blocks(&[1, 2, 4], 512, 1536, 1_000_000_000, 20),
            blocks(&[5], 512, 100, 4_000_000_000, 30),
        ]);
        assert_eq!((report.sessions, report.requests), (3, 3));
        assert_eq!(
            (report.prefix.prompt_tokens, report.prefix.hit_tokens),
            (2836, 1024)
        );
        assert_eq!(report.prefix.hit_rate, Some(1024.0 / 2836.0));
        assert_eq!(report.prompt_tokens.unwrap().max, 1536.0);
        assert_eq!(report.output_tokens.unwrap().mean, 20.0);
        let arrivals = report.session_arrivals.unwrap();
        assert_eq!((arrivals.last, arrivals.rate), (4.0, Some(0.5)));
        assert!(report.think_time.is_none() && report.latency.is_none());
    }

    #[test]
    fn counts_edges_forks_and_joins() {
        // 0 -> 1, 2; 1, 2 -> 3: one fork, one join, four edges.
        let mut nodes = vec![
            request(0, None, 10),
            request(1, Some(0), 5),
            request(2, Some(0), 5),
            request(3, Some(1), 1),
        ];
        nodes[3].parents.push(NodeId(2).into());
        nodes[1].wait_after_ready = 2_000_000_000;
        nodes[2].replay = Some(Box::new(Replay {
            history: HistoryMode::Fresh,
            recorded: Recorded {
                latency: Some(500_000_000),
                prompt_tokens: Some(77),
                ..Recorded::default()
            },
            ..Replay::default()
        }));
        let report = stats_builder(&[session(nodes)]);
        let expected = GraphCounts {
            roots: 1,
            edges: 4,
            forks: 1,
            joins: 1,
            continued_live: 2,
            continued_recorded: 0,
            continued_fresh: 1,
        };
        assert_eq!(report.graph, expected);
        assert_eq!(report.turns.unwrap().max, 4.0);
        // Think times of the three that wait: 2, 0, 0.
        let think = report.think_time.unwrap();
        assert_eq!((think.count, think.max, think.total), (3, 2.0, 2.0));
        assert_eq!(report.latency.unwrap().mean, 0.5);
        // Prompts: 10, 15, 16 as sent; 77 as recorded, although 5 are sent.
        let prompts = report.prompt_tokens.unwrap();
        assert_eq!((prompts.max, prompts.total), (77.0, 118.0));
        assert_eq!(report.prefix.prompt_tokens, 10 + 15 + 5 + 16);
        assert!(report.output_tokens.is_none());
    }

    #[test]
    fn counts_messages_media_and_labels() {
        let mut only = request(0, None, 1);
        let mut system = user(vec![text("you are a host")]);
        system.role = Role::System;
        let picture = Segment::Media {
            kind: MediaKind::Image,
            source: "a.png".into(),
        };
        only.messages = vec![system, user(vec![synthetic(1, 3), picture])];
        only.labels = vec![("model".into(), "m".into())];
        let mut one = session(vec![only]);
        one.labels = vec![("type".into(), "text".into())];
        let report = stats_builder(&[one]);
        assert_eq!(report.messages, BTreeMap::from([("system", 1), ("user", 1)]));
        assert_eq!(report.media, BTreeMap::from([("image", 1)]));
        let names: Vec<_> = report.labels.iter().map(|label| label.name.as_str()).collect();
        assert_eq!(names, ["model", "type"]);
        assert_eq!(report.new_prompt_tokens.unwrap().total, 7.0);
    }

    #[test]
    fn empty_trace_has_empty_statistics() {
        let report = stats_builder(&[]);
        assert_eq!((report.sessions, report.prefix.hit_rate), (0, None));
        assert!(report.turns.is_none() && report.session_arrivals.is_none());
        assert!(serde_json::to_string(&report).is_ok());
    }
}
