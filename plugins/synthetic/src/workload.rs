//! The generator itself: a graph, and for each of its nodes a text and a length of the answer.

use veeksha_plugin::{
    Edge, Error, Guarantees, Message, Plugin, Random, Request, Role, Session, SessionGenerator,
};

use crate::config::{Config, OutputSpec};
use crate::content::{ContentPlan, unsupported};
use crate::draw::Draw;
use crate::graph::GraphPlan;
use crate::length::LengthSampler;

/// An open synthetic workload; endless.
pub struct Synthetic {
    graph: GraphPlan,
    content: ContentPlan,
    output: LengthSampler,
}

impl Plugin for Synthetic {
    type Config = Config;
    const NAME: &'static str = "synthetic";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "planned sessions with lengths and waits from distributions";

    fn config_schema() -> String {
        include_str!("../schema.json").into()
    }
}

impl SessionGenerator for Synthetic {
    fn open(config: Config) -> Result<Self, Error> {
        Ok(Synthetic {
            graph: GraphPlan::new(config.session_graph, config.inherit_history)?,
            content: ContentPlan::new(config.channels)?,
            output: output(config.output_spec)?,
        })
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees {
            max_output_tokens: self.output.largest(),
            max_depth: self.graph.max_depth(),
            distinct_prompts: !self.content.shares_prefixes(),
        }
    }

    fn session(&self, index: u64, random: Random) -> Result<Session, Error> {
        let step = index.saturating_mul(self.graph.requests_per_session().unwrap_or(1));
        let mut contents = self.content.draws(&random, step);
        let mut outputs = Draw::new(&random, "output_length", step);
        let mut request = |(id, node): (u32, crate::graph::Node)| {
            let content = self.content.content(&mut contents, node.parents.is_empty());
            Request {
                parents: node.parents.into_iter().map(Edge::from).collect(),
                history_parent: node.history_parent,
                ..Request::new(id)
                    .wait(node.wait)
                    .message(Message::new(Role::User, content))
                    .output_exactly(self.output.sample(&mut outputs))
            }
        };
        let nodes = self.graph.nodes(&random)?;
        Ok(Session::new(
            (0u32..).zip(nodes).map(&mut request).collect::<Vec<_>>(),
        ))
    }
}

fn output(spec: OutputSpec) -> Result<LengthSampler, Error> {
    for (kind, asked) in [
        ("image", &spec.image),
        ("audio", &spec.audio),
        ("video", &spec.video),
    ] {
        if asked.is_some() {
            return Err(unsupported(&format!("/output_spec/{kind}"), kind, "`text` is"));
        }
    }
    LengthSampler::new(
        spec.text.output_length_generator,
        "/output_spec/text/output_length_generator",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{random, tokens};

    fn open(json: &str) -> Result<Synthetic, Error> {
        Synthetic::open(veeksha_plugin::config::from_json(json)?)
    }

    fn session(workload: &Synthetic, index: u64) -> Session {
        workload.session(index, random(42, index)).unwrap()
    }

    fn prompt_tokens(request: &Request) -> u32 {
        request.messages[0].content.iter().map(tokens).sum()
    }

    #[test]
    fn guarantees_the_largest_output_of_a_bounded_distribution() {
        let largest = |lengths: &str| {
            let text = format!(r#"{{"output_length_generator": {lengths}}}"#);
            let json = format!(r#"{{"output_spec": {{"text": {text}}}}}"#);
            open(&json).unwrap().guarantees().max_output_tokens
        };
        assert_eq!(largest(r#"{"type": "fixed", "value": 1}"#), Some(1));
        assert_eq!(largest(r#"{"type": "uniform", "min": 1, "max": 2}"#), Some(2));
        assert_eq!(largest(r#"{"type": "zipf", "min": 1, "max": 3}"#), Some(3));
        assert_eq!(
            largest(r#"{"type": "fixed_stair", "values": [1, 4, 2]}"#),
            Some(4)
        );
        assert_eq!(largest(r#"{"type": "inverse_gaussian", "mean": 1}"#), None);
    }

    #[test]
    fn guarantees_the_depth_of_the_graph() {
        let depth = |graph: &str| {
            let json = format!(r#"{{"session_graph": {graph}}}"#);
            open(&json).unwrap().guarantees().max_depth
        };
        let one = r#"{"type": "fixed", "value": 1}"#;
        let up_to_two = r#"{"type": "uniform", "min": 1, "max": 2}"#;
        assert_eq!(depth(r#"{"type": "single_request"}"#), Some(1));
        for (key, graph) in [
            ("num_request_generator", "linear"),
            ("num_layers_generator", "branching"),
        ] {
            let graph = |lengths| format!(r#"{{"type": "{graph}", "{key}": {lengths}}}"#);
            assert_eq!(depth(&graph(one)), Some(1));
            assert_eq!(depth(&graph(up_to_two)), Some(2));
        }
    }

    #[test]
    fn guarantees_distinct_prompts_without_a_shared_prefix() {
        let distinct = |channel: &str| {
            let json = format!(r#"{{"channels": [{channel}]}}"#);
            open(&json).unwrap().guarantees().distinct_prompts
        };
        assert!(open("{}").unwrap().guarantees().distinct_prompts);
        assert!(distinct(r#"{"type": "text", "shared_prefix_ratio": 0}"#));
        assert!(!distinct(r#"{"type": "text", "shared_prefix_ratio": 0.3}"#));
    }

    const RICH: &str = r#"{
        "session_graph": {"type": "branching"},
        "channels": [{"type": "text", "shared_prefix_ratio": 0.4, "shared_prefix_probability": 0.5,
                      "body_length_generator": {"type": "zipf", "min": 50, "max": 2000, "alpha": 1.5, "scramble": true}}],
        "output_spec": {"text": {"output_length_generator": {"type": "inverse_gaussian"}}}}"#;

    /// Whatever was asked before, by this or by another instance, session i is the same.
    #[test]
    fn a_session_depends_on_its_index_alone() {
        for json in ["{}", RICH, r#"{"session_graph": {"type": "single_request"}}"#] {
            let one = open(json).unwrap();
            let forward: Vec<Session> = (0..50).map(|index| session(&one, index)).collect();
            let two = open(json).unwrap();
            for index in (0..50).rev() {
                assert_eq!(session(&two, index), forward[index as usize]);
            }
            assert_eq!(session(&open(json).unwrap(), 31), forward[31]);
            assert_ne!(forward[1], forward[2]);
            let other = one.session(31, random(43, 31)).unwrap();
            assert_ne!(other, forward[31], "another seed, another session");
        }
    }

    /// `{}` is Veeksha's default: a chain of 6 to 12 requests with history, 6 to 12 tokens in and
    /// out, waits of mean 1 s.
    #[test]
    fn the_defaults_are_veekshas() {
        let workload = open("{}").unwrap();
        assert_eq!(workload.length(), None);
        let sessions: Vec<Session> = (0..400).map(|index| session(&workload, index)).collect();
        let sizes: Vec<usize> = sessions.iter().map(|session| session.requests.len()).collect();
        assert_eq!((sizes.iter().min(), sizes.iter().max()), (Some(&6), Some(&12)));
        let requests: Vec<&Request> = sessions.iter().flat_map(|session| &session.requests).collect();
        let extremes = |lengths: Vec<u32>| (lengths.iter().min().copied(), lengths.iter().max().copied());
        assert_eq!(
            extremes(requests.iter().map(|r| prompt_tokens(r)).collect()),
            (Some(6), Some(12))
        );
        let outputs = requests.iter().map(|r| r.output.target_tokens.unwrap()).collect();
        assert_eq!(extremes(outputs), (Some(6), Some(12)));
        assert!(
            requests
                .iter()
                .all(|r| r.output.exact && r.messages[0].role == Role::User)
        );
        assert!(requests.iter().all(|r| r.history_parent == r.node.checked_sub(1)));
        let waits: Vec<f64> = requests
            .iter()
            .filter(|r| r.node > 0)
            .map(|r| r.wait_after_ready as f64 / 1e9)
            .collect();
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        assert!((mean - 1.0).abs() < 5.0 / (waits.len() as f64).sqrt(), "{mean}");
    }

    /// Ten requests at each value, whichever sessions they belong to.
    #[test]
    fn a_stair_runs_on_from_session_to_session() {
        let stair = r#""channels": [{"type": "text", "body_length_generator":
            {"type": "fixed_stair", "values": [8, 16, 32], "repeat_each": 2}}]"#;
        let walk = |graph: &str, sessions: u64| -> Vec<u32> {
            let workload = open(&format!(r#"{{"session_graph": {graph}, {stair}}}"#)).unwrap();
            (0..sessions)
                .flat_map(|index| session(&workload, index).requests)
                .map(|r| prompt_tokens(&r))
                .collect()
        };
        assert_eq!(
            walk(r#"{"type": "single_request"}"#, 7),
            [8, 8, 16, 16, 32, 32, 8]
        );
        let linear = r#"{"type": "linear", "num_request_generator": {"type": "fixed", "value": 3}}"#;
        assert_eq!(walk(linear, 3), [8, 8, 16, 16, 32, 32, 8, 8, 16]);
        let varying =
            r#"{"type": "linear", "num_request_generator": {"type": "fixed_stair", "values": [1, 2]}}"#;
        assert_eq!(
            walk(varying, 4),
            [8, 8, 16, 16, 16, 32],
            "request j of session i is at step i + j"
        );
    }

    /// A changed output leaves the prompts, the graph and the waits as they were.
    #[test]
    fn independent_streams_do_not_affect_each_other() {
        let plain = session(&open("{}").unwrap(), 9);
        let longer = session(
            &open(r#"{"output_spec": {"text": {"output_length_generator": {"type": "inverse_gaussian"}}}}"#)
                .unwrap(),
            9,
        );
        let without_output = |session: &Session| -> Vec<Request> {
            session
                .requests
                .iter()
                .cloned()
                .map(|r| r.output_exactly(0))
                .collect()
        };
        assert_ne!(plain, longer);
        assert_eq!(without_output(&plain), without_output(&longer));
    }

    #[test]
    fn errors_name_the_path_and_the_nearest_key() {
        let refused = |json: &str| {
            let error = open(json).err().unwrap();
            (error.path.unwrap(), error.message, error.hint)
        };
        let (path, _, hint) = refused(r#"{"sesion_graph": {}}"#);
        assert_eq!(
            (path.as_str(), hint.as_deref()),
            ("/sesion_graph", Some("did you mean `session_graph`?"))
        );
        let (path, _, hint) = refused(
            r#"{"channels": [{"type": "text", "body_length_generator":
            {"type": "fixed", "vlaue": 3}}]}"#,
        );
        assert_eq!(path, "/channels/0/body_length_generator/vlaue");
        assert_eq!(hint.as_deref(), Some("did you mean `value`?"));
        let (path, _, hint) = refused(r#"{"session_graph": {"type": "branchin"}}"#);
        assert_eq!(
            (path.as_str(), hint.as_deref()),
            ("/session_graph/type", Some("did you mean `branching`?"))
        );
        let (path, message, _) = refused(r#"{"output_spec": {"image": {}}}"#);
        assert_eq!(
            (path.as_str(), message.as_str()),
            ("/output_spec/image", "`image` is not supported yet")
        );
        let (path, ..) =
            refused(r#"{"output_spec": {"text": {"output_length_generator": {"type": "zipf", "min": 20}}}}"#);
        assert_eq!(path, "/output_spec/text/output_length_generator/min");
        let (path, message, _) = refused(r#"{"channels": [{"type": "text", "body_length_generator": 5}]}"#);
        assert_eq!(path, "/channels/0/body_length_generator");
        assert!(
            message.starts_with("expected an object whose `type` is one of `fixed`, `uniform`"),
            "{message}"
        );
    }
}
