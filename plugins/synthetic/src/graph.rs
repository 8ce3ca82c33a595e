//! The graphs of sessions: who waits for whom, and whose conversation goes on.

use std::time::Duration;

use veeksha_plugin::{Draws, Error, Random};

use crate::config::Graph;
use crate::draw::Draw;
use crate::interval::IntervalSampler;
use crate::length::LengthSampler;

/// Requests in one session at most: far beyond what a conversation has, and small enough to build
/// at once.
const MOST_REQUESTS: u32 = 100_000;

/// Edges drawn in one session at most.
const MOST_EDGES: u64 = 1_000_000;

/// A node without its content. Its place in the list is its id.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Node {
    /// Ids of the nodes it waits for, ascending.
    pub(crate) parents: Vec<u32>,
    pub(crate) history_parent: Option<u32>,
    pub(crate) wait: Duration,
}

/// A shape whose parameters are possible.
#[derive(Debug)]
pub(crate) enum GraphPlan {
    SingleRequest,
    Linear {
        inherit_history: bool,
        requests: LengthSampler,
        wait: IntervalSampler,
    },
    Branching(Box<Branching>),
}

#[derive(Debug)]
pub(crate) struct Branching {
    layers: LengthSampler,
    width: LengthSampler,
    fan_out: LengthSampler,
    fan_in: LengthSampler,
    distance: LengthSampler,
    wait: IntervalSampler,
    inherit_history: bool,
    single_root: bool,
}

impl GraphPlan {
    /// Checks the parameters; `inherit_history` is the one that may stand outside of the graph.
    pub(crate) fn new(graph: Graph, outer: Option<bool>) -> Result<Self, Error> {
        let length = |length, key: &str| LengthSampler::new(length, &format!("/session_graph/{key}"));
        let wait = |interval| IntervalSampler::new(interval, "/session_graph/request_wait_generator");
        Ok(match graph {
            Graph::SingleRequest {} => {
                if outer == Some(true) {
                    return Err(Error::config(
                        "/inherit_history",
                        "a single request has no history to inherit",
                    ));
                }
                GraphPlan::SingleRequest
            }
            Graph::Linear {
                inherit_history,
                num_request_generator,
                request_wait_generator,
            } => GraphPlan::Linear {
                inherit_history: history(inherit_history, outer)?,
                requests: length(num_request_generator, "num_request_generator")?,
                wait: wait(request_wait_generator)?,
            },
            Graph::Branching {
                num_layers_generator,
                layer_width_generator,
                fan_out_generator,
                fan_in_generator,
                connection_dist_generator,
                request_wait_generator,
                inherit_history,
                single_root,
            } => GraphPlan::Branching(Box::new(Branching {
                layers: length(num_layers_generator, "num_layers_generator")?,
                width: length(layer_width_generator, "layer_width_generator")?,
                fan_out: length(fan_out_generator, "fan_out_generator")?,
                fan_in: length(fan_in_generator, "fan_in_generator")?,
                distance: length(connection_dist_generator, "connection_dist_generator")?,
                wait: wait(request_wait_generator)?,
                inherit_history: history(inherit_history, outer)?,
                single_root,
            })),
        })
    }

    /// Returns the longest chain of requests in which each waits for another, if it is bounded.
    pub(crate) fn max_depth(&self) -> Option<u32> {
        match self {
            GraphPlan::SingleRequest => Some(1),
            GraphPlan::Linear { requests, .. } => requests.largest(),
            GraphPlan::Branching(plan) => plan.layers.largest(),
        }
    }

    /// Returns the requests of every session, if their number is constant.
    pub(crate) fn requests_per_session(&self) -> Option<u64> {
        match self {
            GraphPlan::SingleRequest => Some(1),
            GraphPlan::Linear { requests, .. } => requests.constant().map(u64::from),
            GraphPlan::Branching(plan) => {
                let (layers, width) = (plan.layers.constant()?, plan.width.constant()?);
                let first = if plan.single_root { 1 } else { width };
                Some(u64::from(first) + u64::from(layers - 1) * u64::from(width))
            }
        }
    }

    /// The graph of a session. Every id in `parents` is smaller than the node's own, so there is no
    /// cycle.
    pub(crate) fn nodes(&self, random: &Random) -> Result<Vec<Node>, Error> {
        match self {
            GraphPlan::SingleRequest => Ok(vec![Node::default()]),
            GraphPlan::Linear {
                inherit_history,
                requests,
                wait,
            } => {
                let count = requests.sample(&mut Draw::new(random, "requests", random.session()));
                if count > MOST_REQUESTS {
                    return Err(too_large("num_request_generator", u64::from(count)));
                }
                let mut waits = random.stream("wait");
                let node = |id: u32| match id.checked_sub(1) {
                    None => Node::default(),
                    Some(previous) => Node {
                        parents: vec![previous],
                        history_parent: inherit_history.then_some(previous),
                        wait: wait.sample(&mut waits),
                    },
                };
                Ok((0..count).map(node).collect())
            }
            GraphPlan::Branching(plan) => plan.nodes(random),
        }
    }
}

/// Veeksha's documents show `inherit_history` next to the graph, its code reads it in the graph:
/// either is taken.
fn history(inner: Option<bool>, outer: Option<bool>) -> Result<bool, Error> {
    match (inner, outer) {
        (Some(inner), Some(outer)) if inner != outer => Err(Error::config(
            "/inherit_history",
            "contradicts `inherit_history` of the session graph",
        )
        .hint("give only one of them")),
        (inner, outer) => Ok(inner.or(outer).unwrap_or(true)),
    }
}

fn too_large(key: &str, count: u64) -> Error {
    Error::new(
        "session_too_large",
        format!("a session of {count} requests; at most {MOST_REQUESTS} are possible"),
    )
    .at(format!("/session_graph/{key}"))
}

impl Branching {
    fn nodes(&self, random: &Random) -> Result<Vec<Node>, Error> {
        let layers = self.layers(random)?;
        let mut nodes = vec![Node::default(); layers.last().map_or(0, |layer| layer.end as usize)];
        let mut waits = random.stream("wait");
        for node in nodes.iter_mut().skip(layers[0].len()) {
            node.wait = self.wait.sample(&mut waits);
        }
        let mut edges = random.stream("edges");
        self.reach_forward(random, &layers, &mut nodes, &mut edges)?;
        self.reach_back(random, &layers, &mut nodes, &mut edges);
        if self.inherit_history {
            let mut histories = random.stream("history");
            for node in nodes.iter_mut().filter(|node| !node.parents.is_empty()) {
                node.history_parent = Some(pick(&node.parents, &mut histories));
            }
        }
        Ok(nodes)
    }

    /// The ids of each layer.
    fn layers(&self, random: &Random) -> Result<Vec<std::ops::Range<u32>>, Error> {
        let count = self
            .layers
            .sample(&mut Draw::new(random, "layers", random.session()));
        let mut widths = Draw::new(random, "widths", random.session());
        let mut layers = Vec::new();
        let mut end = 0u32;
        for layer in 0..count {
            let width = self.width.sample(&mut widths);
            let width = if layer == 0 && self.single_root { 1 } else { width };
            let start = end;
            end = start.saturating_add(width);
            if end > MOST_REQUESTS {
                let key = if width > 1 {
                    "layer_width_generator"
                } else {
                    "num_layers_generator"
                };
                return Err(too_large(key, u64::from(start) + u64::from(width)));
            }
            layers.push(start..end);
        }
        Ok(layers)
    }

    /// Edges from every layer but the last to later ones.
    fn reach_forward(
        &self,
        random: &Random,
        layers: &[std::ops::Range<u32>],
        nodes: &mut [Node],
        edges: &mut Draws,
    ) -> Result<(), Error> {
        let mut fan_outs = Draw::new(random, "fan_out", random.session());
        let mut distances = Draw::new(random, "distance", random.session());
        let mut drawn = 0u64;
        let last = layers.len() - 1;
        for (layer, ids) in layers[..last].iter().enumerate() {
            for id in ids.clone() {
                let fan_out = self.fan_out.sample(&mut fan_outs);
                drawn += u64::from(fan_out);
                if drawn > MOST_EDGES {
                    return Err(Error::new(
                        "session_too_large",
                        format!("a session of more than {MOST_EDGES} edges; fewer are possible"),
                    )
                    .at("/session_graph/fan_out_generator"));
                }
                for _ in 0..fan_out {
                    let distance = self.distance.sample(&mut distances) as usize;
                    let target = &layers[layer.saturating_add(distance).min(last)];
                    let child = target.start + edges.below(target.end - target.start);
                    add_parent(&mut nodes[child as usize], id);
                }
            }
        }
        Ok(())
    }

    /// Parents from the layer before, until each node has as many as it should, and one at least.
    fn reach_back(
        &self,
        random: &Random,
        layers: &[std::ops::Range<u32>],
        nodes: &mut [Node],
        edges: &mut Draws,
    ) {
        let mut fan_ins = Draw::new(random, "fan_in", random.session());
        for pair in layers.windows(2) {
            let (previous, ids) = (&pair[0], &pair[1]);
            for id in ids.clone() {
                let node = &mut nodes[id as usize];
                let wanted = (self.fan_in.sample(&mut fan_ins) as usize).min(previous.len());
                if node.parents.len() >= wanted {
                    continue;
                }
                let mut free: Vec<u32> = previous
                    .clone()
                    .filter(|parent| node.parents.binary_search(parent).is_err())
                    .collect();
                while node.parents.len() < wanted && !free.is_empty() {
                    let parent = free.swap_remove(edges.below(free.len() as u32) as usize);
                    add_parent(node, parent);
                }
            }
        }
    }
}

fn add_parent(node: &mut Node, parent: u32) {
    if let Err(place) = node.parents.binary_search(&parent) {
        node.parents.insert(place, parent);
    }
}

fn pick(ids: &[u32], draws: &mut Draws) -> u32 {
    ids[draws.below(ids.len() as u32) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random;

    fn plan(json: &str) -> Result<GraphPlan, Error> {
        GraphPlan::new(veeksha_plugin::config::from_json(json)?, None)
    }

    fn sessions(json: &str, count: u64) -> Vec<Vec<Node>> {
        let plan = plan(json).unwrap();
        (0..count)
            .map(|index| plan.nodes(&random(42, index)).unwrap())
            .collect()
    }

    #[test]
    fn a_chain_waits_and_continues_step_by_step() {
        for nodes in sessions(
            r#"{"type": "linear", "request_wait_generator": {"type": "fixed", "interval": 2}}"#,
            200,
        ) {
            assert!((6..=12).contains(&nodes.len()));
            assert_eq!(nodes[0], Node::default());
            for (id, node) in (0u32..).zip(&nodes).skip(1) {
                let expected = Node {
                    parents: vec![id - 1],
                    history_parent: Some(id - 1),
                    wait: Duration::from_secs(2),
                };
                assert_eq!(*node, expected);
            }
        }
        let silent = sessions(r#"{"type": "linear", "inherit_history": false}"#, 1);
        assert!(silent[0].iter().all(|node| node.history_parent.is_none()));
        assert_eq!(silent[0][1].parents, [0]);
    }

    fn check_branching(nodes: &[Node], roots: usize, inherits: bool) {
        for (id, node) in (0u32..).zip(nodes) {
            let is_root = (id as usize) < roots;
            assert_eq!(node.parents.is_empty(), is_root, "node {id}");
            assert!(
                node.parents.windows(2).all(|pair| pair[0] < pair[1]),
                "each parent once"
            );
            assert!(node.parents.iter().all(|&parent| parent < id), "no cycle");
            assert_eq!(node.history_parent.is_some(), inherits && !is_root);
            assert!(
                node.history_parent
                    .is_none_or(|parent| node.parents.contains(&parent))
            );
            assert_eq!(
                node.wait == Duration::ZERO,
                is_root,
                "roots start at once, the others think"
            );
        }
    }

    #[test]
    fn branches_have_parents_one_history_and_no_cycle() {
        for nodes in sessions(r#"{"type": "branching"}"#, 500) {
            check_branching(&nodes, 1, true);
            assert!(nodes.len() <= 1 + 4 * 3);
        }
        let wide = r#"{"type": "branching", "single_root": false, "inherit_history": false,
            "num_layers_generator": {"type": "uniform", "min": 1, "max": 6},
            "layer_width_generator": {"type": "fixed", "value": 5},
            "fan_out_generator": {"type": "uniform", "min": 1, "max": 9},
            "connection_dist_generator": {"type": "uniform", "min": 1, "max": 3}}"#;
        for nodes in sessions(wide, 500) {
            check_branching(&nodes, 5, false);
            assert_eq!(nodes.len() % 5, 0);
        }
    }

    /// Layers of 4 joined one to the next, fan-in 9: more parents than the layer before has are not
    /// asked for.
    #[test]
    fn fan_in_ends_at_the_width_of_the_layer_before() {
        let full = r#"{"type": "branching", "num_layers_generator": {"type": "fixed", "value": 4},
            "layer_width_generator": {"type": "fixed", "value": 4},
            "fan_in_generator": {"type": "fixed", "value": 9}}"#;
        for nodes in sessions(full, 100) {
            assert_eq!(nodes.len(), 13);
            assert!(nodes[1..5].iter().all(|node| node.parents == [0]));
            assert!(nodes[5..9].iter().all(|node| node.parents == [1, 2, 3, 4]));
            assert!(nodes[9..].iter().all(|node| node.parents == [5, 6, 7, 8]));
        }
    }

    /// Fan-out 1 and distance 1: each node of a layer reaches exactly one of the next, so that its
    /// edges are the drawn ones plus the one that fan-in 1 adds to nodes without a child.
    #[test]
    fn every_node_but_the_last_layers_reaches_forward() {
        let thin = r#"{"type": "branching", "num_layers_generator": {"type": "fixed", "value": 3},
            "layer_width_generator": {"type": "fixed", "value": 6},
            "fan_out_generator": {"type": "fixed", "value": 1}, "fan_in_generator": {"type": "fixed", "value": 1}}"#;
        for nodes in sessions(thin, 100) {
            for id in 1..7 {
                assert!(
                    nodes[7..].iter().any(|node| node.parents.contains(&id)),
                    "node {id} has no child"
                );
            }
        }
    }

    /// Distance 2 in four layers of one: 0 reaches 2, 1 and 2 reach 3 (the last layer); fan-in 1
    /// gives 1 the parent 0.
    #[test]
    fn an_edge_may_skip_layers_and_stops_at_the_last() {
        let skipping = r#"{"type": "branching", "num_layers_generator": {"type": "fixed", "value": 4},
            "layer_width_generator": {"type": "fixed", "value": 1},
            "fan_out_generator": {"type": "fixed", "value": 1}, "fan_in_generator": {"type": "fixed", "value": 1},
            "connection_dist_generator": {"type": "fixed", "value": 2}}"#;
        let nodes = &sessions(skipping, 1)[0];
        let parents: Vec<&[u32]> = nodes.iter().map(|node| &node.parents[..]).collect();
        assert_eq!(parents, [&[][..], &[0], &[0], &[1, 2]]);
    }

    /// Each of two parents is the history with probability 1/2: standard deviation 22 of 2000.
    #[test]
    fn the_history_parent_is_drawn_among_the_parents() {
        let diamond = r#"{"type": "branching", "single_root": false,
            "num_layers_generator": {"type": "fixed", "value": 2}, "layer_width_generator": {"type": "fixed", "value": 2},
            "fan_in_generator": {"type": "fixed", "value": 2}}"#;
        let graphs = sessions(diamond, 2000);
        let zero = graphs
            .iter()
            .filter(|nodes| nodes[2].history_parent == Some(0))
            .count();
        assert!(zero.abs_diff(1000) < 112, "{zero}");
    }

    #[test]
    fn refuses_sessions_above_the_limit() {
        let refused = |json: &str| plan(json).unwrap().nodes(&random(0, 0)).unwrap_err();
        let chain =
            refused(r#"{"type": "linear", "num_request_generator": {"type": "fixed", "value": 4000000000}}"#);
        assert_eq!(
            chain.path.as_deref(),
            Some("/session_graph/num_request_generator")
        );
        assert_eq!(
            chain.message,
            "a session of 4000000000 requests; at most 100000 are possible"
        );
        let deep = refused(
            r#"{"type": "branching", "num_layers_generator": {"type": "fixed", "value": 4000000000},
            "layer_width_generator": {"type": "fixed", "value": 1}}"#,
        );
        assert_eq!(deep.path.as_deref(), Some("/session_graph/num_layers_generator"));
        let wide = refused(
            r#"{"type": "branching", "layer_width_generator": {"type": "fixed", "value": 4000000000}}"#,
        );
        assert_eq!(wide.path.as_deref(), Some("/session_graph/layer_width_generator"));
        let dense =
            refused(r#"{"type": "branching", "fan_out_generator": {"type": "fixed", "value": 4000000000}}"#);
        assert_eq!(dense.path.as_deref(), Some("/session_graph/fan_out_generator"));
    }

    #[test]
    fn the_number_of_requests_is_known_where_it_is_constant() {
        let known = |json: &str| plan(json).unwrap().requests_per_session();
        assert_eq!(known(r#"{"type": "single_request"}"#), Some(1));
        assert_eq!(known(r#"{"type": "linear"}"#), None);
        assert_eq!(
            known(r#"{"type": "linear", "num_request_generator": {"type": "fixed", "value": 3}}"#),
            Some(3)
        );
        let branching = |root| {
            format!(
                r#"{{"type": "branching", "single_root": {root},
                "num_layers_generator": {{"type": "fixed", "value": 4}},
                "layer_width_generator": {{"type": "fixed", "value": 3}}}}"#
            )
        };
        assert_eq!(known(&branching(true)), Some(10));
        assert_eq!(known(&branching(false)), Some(12));
    }

    #[test]
    fn refuses_contradicting_history_settings() {
        let linear =
            |inner: &str| veeksha_plugin::config::from_json(&format!(r#"{{"type": "linear"{inner}}}"#));
        let inherits = |inner: &str, outer| match GraphPlan::new(linear(inner).unwrap(), outer) {
            Ok(GraphPlan::Linear { inherit_history, .. }) => Ok(inherit_history),
            Ok(other) => unreachable!("{other:?}"),
            Err(error) => Err(error.path.unwrap()),
        };
        assert_eq!(inherits("", None), Ok(true));
        assert_eq!(inherits("", Some(false)), Ok(false));
        assert_eq!(inherits(r#", "inherit_history": false"#, None), Ok(false));
        assert_eq!(inherits(r#", "inherit_history": false"#, Some(false)), Ok(false));
        assert_eq!(
            inherits(r#", "inherit_history": false"#, Some(true)),
            Err("/inherit_history".into())
        );
        let single = GraphPlan::new(Graph::SingleRequest {}, Some(true)).unwrap_err();
        assert_eq!(single.path.as_deref(), Some("/inherit_history"));
    }
}
