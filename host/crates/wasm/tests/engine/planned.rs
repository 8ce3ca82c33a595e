//! A valid session generator: the same sessions for any order and split of calls.

use std::sync::Arc;
use std::thread;

use proptest::prelude::*;
use veeksha_model::{Edge, NodeId, Role, Seed, Segment, Session};
use veeksha_ports::{PluginFailureKind, Workload};
use veeksha_stats::RandomStream;
use veeksha_wasm::{EngineLimits, Kinds, LogLevel};

use crate::support::{Kept, grants, load, open, planned};

const CONFIG: &str = r#"{"turns": 3, "length": 1000}"#;

#[test]
fn a_component_becomes_a_workload() {
    let plugin = load(EngineLimits::default(), "planned");
    assert_eq!(
        plugin.kinds(),
        Kinds {
            session_generator: true,
            ..Kinds::default()
        }
    );
    assert_eq!(
        plugin.imports(),
        ["log", "random"],
        "it uses no other, so it imports no other"
    );
    let digest = blake3::hash(&crate::support::fixture("planned")).to_hex();
    assert_eq!(plugin.digest(), digest.as_str());
    let log = Arc::new(Kept::default());
    let factory = plugin
        .workload(
            CONFIG.into(),
            veeksha_wasm::Grants {
                log: log.clone(),
                ..grants()
            },
        )
        .unwrap();
    let info = factory.info();
    assert_eq!(
        (info.name.as_str(), info.version.as_str(), info.summary.as_str()),
        ("planned", "0.1.0", "chains of turns")
    );
    assert_eq!((info.engine, info.digest.as_str()), ("wasm", digest.as_str()));
    assert_eq!(info.granted, ["log", "random"]);
    let Workload::Planned(mut source) = factory.open().unwrap() else {
        panic!("not planned")
    };
    assert_eq!(log.lines(), [("planned".into(), LogLevel::Info, "opened".into())]);
    assert_eq!(source.length().unwrap(), Some(1000));
    assert_eq!(source.sessions(0, 3).unwrap().len(), 3);
}

/// Every field is preserved: the expected session is computed here from the fixture's rule and the
/// contract's randomness.
#[test]
fn a_session_arrives_as_the_guest_made_it() {
    let plugin = load(EngineLimits::default(), "planned");
    let mut source = planned(&plugin, CONFIG, grants());
    let session = source.sessions(17, 1).unwrap().remove(0);
    let mut words = [0; 9];
    RandomStream::new(42, 17, "chains").fill(0, &mut words);
    assert_eq!(session.requests.len(), 3);
    assert_eq!(session.labels, [("fixture".to_owned(), "planned".to_owned())]);
    for (i, request) in session.requests.iter().enumerate() {
        let [high, low, length] = [words[3 * i], words[3 * i + 1], words[3 * i + 2]];
        assert_eq!(request.node, NodeId(i as u32));
        let before: Vec<NodeId> = i
            .checked_sub(1)
            .map(|before| NodeId(before as u32))
            .into_iter()
            .collect();
        let edges: Vec<Edge> = before.iter().copied().map(Edge::from).collect();
        assert_eq!(request.parents, edges);
        assert_eq!(request.history_parent, before.first().copied());
        assert_eq!(
            request.wait_after_ready,
            if i == 0 {
                0
            } else {
                u64::from(length % 1000) * 1_000_000
            }
        );
        assert_eq!(request.output.target_tokens, Some(1 + low % 200));
        assert!(request.output.exact);
        assert_eq!(request.messages.len(), 1);
        assert_eq!(request.messages[0].role, Role::User);
        assert_eq!(
            request.messages[0].content,
            [
                Segment::Text(format!("turn {i} of session 17: ")),
                Segment::Synthetic {
                    seed: Seed { high, low },
                    tokens: 1 + length % 500
                },
            ]
        );
    }
}

#[test]
fn the_end_of_a_workload_is_no_error() {
    let plugin = load(EngineLimits::default(), "planned");
    let mut source = planned(&plugin, CONFIG, grants());
    assert_eq!(source.sessions(998, 64).unwrap().len(), 2);
    assert_eq!(source.sessions(1000, 64).unwrap(), []);
    assert_eq!(source.sessions(u64::MAX, u32::MAX).unwrap(), []);
    assert_eq!(source.sessions(5, 0).unwrap(), []);
}

#[test]
fn an_endless_workload_has_no_length() {
    let plugin = load(EngineLimits::default(), "planned");
    let mut source = planned(&plugin, r#"{"turns": 1}"#, grants());
    assert_eq!(source.length().unwrap(), None);
    assert_eq!(source.sessions((1 << 53) - 2, 2).unwrap().len(), 2);
}

#[test]
fn a_refused_configuration_is_reported_with_its_place_and_remedy() {
    let plugin = load(EngineLimits::default(), "planned");
    let failure = open(&plugin, r#"{"turns": 0}"#, grants()).err().unwrap();
    assert_eq!(
        failure.kind,
        PluginFailureKind::Refused {
            code: "no-turns".into(),
            hint: Some("set `turns` to 1 or more".into()),
            path: Some("/turns".into()),
        }
    );
    assert_eq!(
        failure.to_string(),
        "plugin `planned` failed in `workload.open`: a session needs at least one turn [no-turns]\n  \
         config: /turns\n  input: config = {\"turns\": 0}\n  code: VP0003 (docs/plugin-errors.md)"
    );
}

#[test]
fn threads_with_instances_of_their_own_see_the_same_sessions() {
    let plugin = load(EngineLimits::default(), "planned");
    let factory = plugin.workload(CONFIG.into(), grants()).unwrap();
    let all = |step: u32| -> Vec<Session> {
        let Workload::Planned(mut source) = factory.open().unwrap() else {
            panic!("not planned")
        };
        (0..1000)
            .step_by(step as usize)
            .flat_map(|first| source.sessions(first, step).unwrap())
            .collect()
    };
    let seen: Vec<Vec<Session>> = thread::scope(|scope| {
        let threads: Vec<_> = [64, 7, 1000, 1]
            .map(|step| scope.spawn(move || all(step)))
            .into_iter()
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(seen[0].len(), 1000);
    assert!(seen.iter().all(|sessions| *sessions == seen[0]));
}

#[test]
fn another_seed_gives_other_sessions() {
    let plugin = load(EngineLimits::default(), "planned");
    let first = |seed| {
        planned(&plugin, CONFIG, veeksha_wasm::Grants { seed, ..grants() })
            .sessions(0, 1)
            .unwrap()
    };
    assert_ne!(first(1), first(2));
    assert_eq!(first(1), first(1));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// The sessions of a range do not depend on the split into calls or on their order.
    #[test]
    fn any_split_gives_the_same_sessions(
        cuts in proptest::collection::btree_set(1u64..60, 0..8),
        backwards in any::<bool>(),
    ) {
        let plugin = load_once();
        let whole = planned(plugin, CONFIG, grants()).sessions(100, 60).unwrap();
        let mut source = planned(plugin, CONFIG, grants());
        let edges: Vec<u64> = [0].into_iter().chain(cuts).chain([60]).collect();
        let mut pieces: Vec<(u64, u64)> = edges.windows(2).map(|edge| (edge[0], edge[1])).collect();
        if backwards {
            pieces.reverse();
        }
        for (from, to) in pieces {
            let piece = source.sessions(100 + from, (to - from) as u32).unwrap();
            prop_assert_eq!(&piece[..], &whole[from as usize..to as usize]);
        }
    }
}

fn load_once() -> &'static veeksha_wasm::PluginComponent {
    static PLUGIN: std::sync::OnceLock<veeksha_wasm::PluginComponent> = std::sync::OnceLock::new();
    PLUGIN.get_or_init(|| load(EngineLimits::default(), "planned"))
}
