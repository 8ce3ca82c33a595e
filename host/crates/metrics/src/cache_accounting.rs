//! The prompt tokens of a run by what the servers' caches could have known, in total, by subagent
//! and by edge.

use std::collections::BTreeMap;

use veeksha_definitions::{CacheClass, CacheTokens};
use veeksha_model::{Edge, EventInstants, NodeId, RequestId, SUBAGENT_LABEL};

use crate::requests::RequestTable;
use crate::row::RequestRow;

/// The name of the requests without this label.
const MAIN_AGENT: &str = "main";

/// The prompts of some requests, by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassifiedPrompts {
    /// Requests whose prompts are classified.
    pub requests: u64,
    /// Their prompt tokens.
    pub tokens: CacheTokens,
}

impl ClassifiedPrompts {
    pub(crate) fn add(&mut self, tokens: &CacheTokens) {
        self.requests += 1;
        self.tokens.add(tokens);
    }

    /// Returns the share of a class; `None` without tokens.
    pub fn share(&self, class: CacheClass) -> Option<f64> {
        let total = self.tokens.total();
        (total > 0).then(|| self.tokens.class(class) as f64 / total as f64)
    }
}

/// The way in which a request follows others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheEdgeKind {
    /// It waits for no other node.
    Start,
    /// It continues the conversation of another request.
    History,
    /// It waits for another node, and begins a conversation.
    NoHistory,
}

impl CacheEdgeKind {
    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        match self {
            CacheEdgeKind::Start => "start",
            CacheEdgeKind::History => "history",
            CacheEdgeKind::NoHistory => "no_history",
        }
    }
}

/// A kind of edge of the sessions: between agents, with or without history.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CacheEdge {
    /// The way in which the request follows.
    pub kind: CacheEdgeKind,
    /// The subagent of the request that it follows: the one whose conversation it continues, else
    /// the one whose event it waited for last. `tool` for a tool run, empty for a start.
    pub from: String,
    /// The subagent of the request.
    pub to: String,
}

/// The prompts of a run, by class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CacheAccounting {
    /// Of all measured answers whose prompts are classified.
    pub total: ClassifiedPrompts,
    /// By the label `subagent`; `main` for requests without it.
    pub subagents: Vec<(String, ClassifiedPrompts)>,
    /// By kind of edge.
    pub edges: Vec<(CacheEdge, ClassifiedPrompts)>,
}

impl CacheAccounting {
    /// Adds up the prompts of sorted requests; `None` if no prompt is classified.
    pub(crate) fn of(requests: &RequestTable) -> Option<Self> {
        let mut total = ClassifiedPrompts::default();
        let mut subagents: BTreeMap<&str, ClassifiedPrompts> = BTreeMap::new();
        let mut edges: BTreeMap<(CacheEdgeKind, &str, &str), ClassifiedPrompts> = BTreeMap::new();
        for row in requests.rows.iter().filter(|row| row.counts()) {
            let Some(tokens) = row.observed.cache_tokens() else {
                continue;
            };
            let to = agent(requests, row);
            let (kind, from) = edge(requests, row);
            total.add(&tokens);
            subagents.entry(to).or_default().add(&tokens);
            edges.entry((kind, from, to)).or_default().add(&tokens);
        }
        let edge = |((kind, from, to), prompts)| {
            let (from, to) = (str::to_owned(from), str::to_owned(to));
            (CacheEdge { kind, from, to }, prompts)
        };
        (total.requests > 0).then(|| CacheAccounting {
            total,
            subagents: subagents
                .into_iter()
                .map(|(name, prompts)| (name.to_owned(), prompts))
                .collect(),
            edges: edges.into_iter().map(edge).collect(),
        })
    }

    /// Returns the columns and rows of `metrics/cache_accounting.csv`.
    pub fn table(&self) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let mut columns = vec!["scope", "edge", "from", "to", "requests", "prompt_tokens"];
        columns.extend(CacheClass::ALL.map(CacheClass::name));
        let row = |scope: &str, edge: &str, from: &str, to: &str, prompts: &ClassifiedPrompts| {
            let mut cells = [scope, edge, from, to].map(str::to_owned).to_vec();
            cells.push(prompts.requests.to_string());
            cells.push(prompts.tokens.total().to_string());
            cells.extend(CacheClass::ALL.map(|class| prompts.tokens.class(class).to_string()));
            cells
        };
        let subagents = self.subagents.iter();
        let edges = self.edges.iter();
        let rows = std::iter::once(row("run", "", "", "", &self.total))
            .chain(subagents.map(|(name, prompts)| row("subagent", "", "", name, prompts)))
            .chain(edges.map(|(edge, prompts)| row("edge", edge.kind.name(), &edge.from, &edge.to, prompts)));
        (columns, rows.collect())
    }
}

/// Returns the name of a request's subagent.
fn agent<'a>(requests: &'a RequestTable, row: &RequestRow) -> &'a str {
    let labels = requests.labels.labels(row.labels).iter();
    let mut named = labels.filter(|(name, _)| name == SUBAGENT_LABEL);
    named.next().map_or(MAIN_AGENT, |(_, value)| value)
}

/// Returns the kind of a request's edge, and the agent from which it comes.
fn edge<'a>(requests: &'a RequestTable, row: &RequestRow) -> (CacheEdgeKind, &'a str) {
    if let Some(parent) = row.history_parent {
        let from = request(requests, row, parent).map_or("", |parent| agent(requests, parent));
        return (CacheEdgeKind::History, from);
    }
    let parents = requests.parents(row.parents).iter();
    let met = |edge: &&Edge| {
        let events = events(requests, row, edge.parent)?;
        Some(events.of(edge.trigger).saturating_add(edge.delay))
    };
    match parents.max_by_key(|edge| (met(edge), edge.parent)) {
        None => (CacheEdgeKind::Start, ""),
        Some(last) => {
            let parent = request(requests, row, last.parent);
            let from = parent.map_or("tool", |parent| agent(requests, parent));
            (CacheEdgeKind::NoHistory, from)
        }
    }
}

fn request<'a>(requests: &'a RequestTable, row: &RequestRow, node: NodeId) -> Option<&'a RequestRow> {
    let session = row.id.session;
    let place = requests.find(RequestId { session, node })?;
    Some(&requests.rows[place])
}

fn events(requests: &RequestTable, row: &RequestRow, node: NodeId) -> Option<EventInstants> {
    if let Some(parent) = request(requests, row, node) {
        return Some(parent.events());
    }
    let runs = requests.tool_runs_of(row.id.session);
    let run = runs.iter().find(|run| run.id.node == node)?;
    Some(veeksha_definitions::NodePhases::of_tool_run(&run.times).events())
}

#[cfg(test)]
mod tests {
    use veeksha_events::RequestRecord;
    use veeksha_model::{CacheKnowledge, SessionId, Usage};

    use super::*;
    use crate::Deadlines;

    /// A request of 100 prompt tokens, of which `cached` were cached and `known` known.
    fn record(node: u32, subagent: Option<&str>, cached: u32, known: u32) -> RequestRecord {
        RequestRecord {
            usage: Some(Usage {
                prompt: 100,
                completion: 1,
                cached: Some(cached),
                reasoning: None,
            }),
            cache: Some(CacheKnowledge {
                same_server: known,
                any_server: known,
                moved: 0,
            }),
            labels: subagent
                .map(|name| vec![("subagent".to_owned(), name.to_owned())])
                .unwrap_or_default(),
            ..RequestRecord::answered(RequestId {
                session: SessionId(0),
                node: NodeId(node),
            })
        }
    }

    fn tokens(prompts: &ClassifiedPrompts) -> [u64; 5] {
        CacheClass::ALL.map(|class| prompts.tokens.class(class))
    }

    #[test]
    fn edges_name_both_agents() {
        let mut requests = RequestTable::new(Deadlines::default());
        let start = RequestRecord {
            completed_at: 10,
            ..record(0, None, 0, 0)
        };
        let sub = RequestRecord {
            parents: vec![NodeId(0).into()],
            completed_at: 30,
            ..record(1, Some("1"), 40, 50)
        };
        let next = RequestRecord {
            parents: vec![NodeId(1).into()],
            history_parent: Some(NodeId(1)),
            completed_at: 20,
            ..record(2, Some("1"), 90, 90)
        };
        // It waited for node 1 last, although node 2 has the higher number.
        let join = RequestRecord {
            parents: vec![NodeId(1).into(), NodeId(2).into(), NodeId(0).into()],
            history_parent: None,
            ..record(3, None, 0, 0)
        };
        let unreported = RequestRecord {
            cache: None,
            ..record(4, None, 10, 0)
        };
        let drained = RequestRecord {
            measured: false,
            ..record(5, None, 10, 10)
        };
        for record in [&join, &next, &sub, &start, &unreported, &drained] {
            requests.add(record);
        }
        requests.sort();
        let accounting = CacheAccounting::of(&requests).expect("classified prompts");
        assert_eq!(accounting.total.requests, 4);
        assert_eq!(tokens(&accounting.total), [130, 10, 0, 0, 260]);
        let subagents: Vec<_> = accounting
            .subagents
            .iter()
            .map(|(name, prompts)| (name.as_str(), tokens(prompts)))
            .collect();
        assert_eq!(
            subagents,
            [("1", [130, 10, 0, 0, 60]), ("main", [0, 0, 0, 0, 200])]
        );
        let edges: Vec<_> = accounting
            .edges
            .iter()
            .map(|(edge, prompts)| {
                (
                    edge.kind.name(),
                    edge.from.as_str(),
                    edge.to.as_str(),
                    tokens(prompts)[0],
                )
            })
            .collect();
        let expected = [
            ("start", "", "main", 0),
            ("history", "1", "1", 90),
            ("no_history", "1", "main", 0),
            ("no_history", "main", "1", 40),
        ];
        assert_eq!(edges, expected);
        let (columns, rows) = accounting.table();
        assert_eq!(rows.len(), 1 + 2 + 4);
        assert!(rows.iter().all(|row| row.len() == columns.len()));
        assert_eq!(
            rows[0][4..],
            ["4", "400", "130", "10", "0", "0", "260"].map(str::to_owned)
        );
    }

    #[test]
    fn nothing_is_accounted_without_classified_prompts() {
        let mut requests = RequestTable::new(Deadlines::default());
        requests.add(&RequestRecord {
            cache: None,
            ..record(0, None, 0, 0)
        });
        assert_eq!(CacheAccounting::of(&requests), None);
    }
}
