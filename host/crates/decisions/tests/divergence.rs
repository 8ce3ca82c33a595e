//! The first difference between the decisions of two sessions.

#![expect(clippy::panic, reason = "a test reports an error by panicking")]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use veeksha_decisions::{
    DecisionField, Divergence, DivergenceSummary, RecordedStep, SessionComparison, divergence,
};
use veeksha_model::{Edge, Message, NodeId, Request, Role, Segment, Session, SessionId, ToolRun, Trigger};
use veeksha_ports::AgentStep;

fn request(node: u32, parents: &[u32], text: &str) -> Request {
    Request {
        node: NodeId(node),
        parents: parents.iter().map(|parent| NodeId(*parent).into()).collect(),
        history_parent: parents.first().map(|parent| NodeId(*parent)),
        messages: vec![Message::new(Role::User, vec![Segment::Text(text.to_owned())])],
        ..Request::default()
    }
}

fn step(after: Option<u32>, requests: Vec<Request>) -> RecordedStep {
    RecordedStep {
        redacted: Vec::new(),
        session: SessionId(0),
        after: after.map(NodeId),
        tool_call_ids: Vec::new(),
        step: AgentStep {
            added: Session::from(requests),
            ..AgentStep::default()
        },
    }
}

fn cancelling(mut step: RecordedStep, cancel: u32) -> RecordedStep {
    step.step.cancel.push(NodeId(cancel));
    step
}

fn done(after: u32) -> RecordedStep {
    let mut step = step(Some(after), Vec::new());
    step.step.done = true;
    step
}

/// 0 and then two chains: a1 -> a2 and b1 -> b2, joined by j.
fn two_chains() -> Vec<RecordedStep> {
    vec![
        step(None, vec![request(0, &[], "plan")]),
        step(Some(0), vec![request(1, &[0], "a1"), request(2, &[0], "b1")]),
        step(Some(1), vec![request(3, &[1], "a2")]),
        step(Some(2), vec![request(4, &[2], "b2")]),
        step(Some(4), vec![request(5, &[3, 4], "j")]),
        done(5),
    ]
}

fn diverged(one: &[RecordedStep], other: &[RecordedStep]) -> (u32, u32, DecisionField) {
    match divergence(one, other) {
        SessionComparison::Diverged(Divergence {
            turn, depth, field, ..
        }) => (turn, depth, field),
        same => panic!("{same:?}"),
    }
}

/// The second chain was faster: nodes have other numbers, and the join is decided after the other
/// one.
#[test]
fn order_of_concurrent_answers_is_not_a_decision() {
    let other = [
        step(None, vec![request(0, &[], "plan")]),
        step(Some(0), vec![request(1, &[0], "a1"), request(2, &[0], "b1")]),
        step(Some(2), vec![request(3, &[2], "b2")]),
        step(Some(1), vec![request(4, &[1], "a2")]),
        step(Some(4), vec![request(5, &[4, 3], "j")]),
        done(5),
    ];
    let mut recorded = two_chains();
    // The history of the join is chain a in both.
    recorded[4].step.added.requests[0].history_parent = Some(NodeId(3));
    assert_eq!(divergence(&recorded, &other), SessionComparison::Identical);
    assert_eq!(divergence(&other, &recorded), SessionComparison::Identical);
}

#[test]
fn reports_turn_depth_and_field_of_the_first_difference() {
    let changed = |change: &dyn Fn(&mut Vec<RecordedStep>)| {
        let mut other = two_chains();
        change(&mut other);
        diverged(&two_chains(), &other)
    };
    let text = |steps: &mut Vec<RecordedStep>, step: usize, text: &str| {
        steps[step].step.added.requests[0].messages[0].content = vec![Segment::Text(text.to_owned())];
    };
    assert_eq!(
        changed(&|steps| text(steps, 4, "J")),
        (5, 4, DecisionField::MessageContent)
    );
    // Nothing is reported below the first difference of each chain.
    assert_eq!(
        changed(&|steps| {
            text(steps, 2, "A2");
            text(steps, 4, "J");
        }),
        (3, 3, DecisionField::MessageContent)
    );
    assert_eq!(
        changed(&|steps| steps[3].step.added.requests[0].output.target_tokens = Some(5)),
        (4, 3, DecisionField::Output)
    );
    assert_eq!(
        changed(&|steps| steps[2].step.added.requests[0].history_parent = None),
        (3, 3, DecisionField::History)
    );
    assert_eq!(
        changed(&|steps| steps[2].step.added.requests[0].parents[0].delay = 7),
        (3, 3, DecisionField::Edges)
    );
    assert_eq!(
        changed(&|steps| steps[1].step.added.requests[1]
            .labels
            .push(("a".to_owned(), "b".to_owned()))),
        (2, 2, DecisionField::Labels)
    );
    assert_eq!(
        changed(&|steps| steps[1].step.added.requests[1].messages.clear()),
        (2, 2, DecisionField::Messages)
    );
    assert_eq!(
        changed(&|steps| steps[0]
            .step
            .added
            .headers
            .push(("x-a".to_owned(), "b".to_owned()))),
        (1, 1, DecisionField::Headers)
    );
}

#[test]
fn reports_additional_and_missing_nodes() {
    let mut more = two_chains();
    more[2].step.added.requests.push(request(9, &[1], "more"));
    assert_eq!(diverged(&two_chains(), &more), (3, 3, DecisionField::Requests));
    assert_eq!(diverged(&more, &two_chains()), (3, 3, DecisionField::Requests));

    let mut with_tool = two_chains();
    with_tool[2].step.added.tool_runs.push(ToolRun {
        node: NodeId(9),
        parents: vec![Edge {
            parent: NodeId(1),
            trigger: Trigger::Completed,
            delay: 0,
        }],
        class: "sandbox".to_owned(),
        ..ToolRun::default()
    });
    assert_eq!(
        diverged(&two_chains(), &with_tool),
        (3, 3, DecisionField::ToolRuns)
    );
    let mut other_tool = with_tool.clone();
    other_tool[2].step.added.tool_runs[0].class = "search".to_owned();
    assert_eq!(
        diverged(&with_tool, &other_tool),
        (3, 3, DecisionField::ToolClass)
    );

    // The other agent goes on after the join.
    let mut longer = two_chains();
    longer[5] = step(Some(5), vec![request(6, &[5], "k")]);
    longer.push(done(6));
    assert_eq!(diverged(&two_chains(), &longer), (6, 5, DecisionField::Done));
}

/// The node of a join waits for other nodes.
#[test]
fn reports_other_parents_as_edges() {
    let mut other = two_chains();
    let join = &mut other[4].step.added.requests[0];
    join.parents.pop();
    assert_eq!(diverged(&two_chains(), &other), (5, 4, DecisionField::Edges));
}

/// The winner of a race cancels the other request.
#[test]
fn reports_other_cancellations() {
    let race = |winner: u32, loser: u32| {
        vec![
            step(None, vec![request(0, &[], "one"), request(1, &[], "two")]),
            cancelling(step(Some(winner), vec![request(2, &[winner], "end")]), loser),
            done(2),
        ]
    };
    assert_eq!(divergence(&race(0, 1), &race(0, 1)), SessionComparison::Identical);
    assert_eq!(diverged(&race(0, 1), &race(1, 0)), (2, 1, DecisionField::Cancel));
}

/// A run that ended first may have gone on in the same way.
#[test]
fn cut_sessions_are_compared_as_far_as_both_go() {
    let whole = two_chains();
    for length in 1..whole.len() {
        let cut = &whole[..length];
        assert_eq!(
            divergence(&whole, cut),
            SessionComparison::IdenticalSoFar,
            "{length}"
        );
        assert_eq!(
            divergence(cut, &whole),
            SessionComparison::IdenticalSoFar,
            "{length}"
        );
    }
    let mut other = two_chains();
    other.truncate(3);
    other[2].step.added.requests[0].keep_reasoning = true;
    assert_eq!(diverged(&whole, &other), (3, 3, DecisionField::History));
}

/// Servers make up the ids of tool calls.
#[test]
fn ids_of_tool_calls_are_compared_by_their_calls() {
    let session = |ids: [&str; 2], answered: &str| {
        let mut result = request(1, &[0], "found");
        result.messages[0].role = Role::Tool;
        result.messages[0].tool_call_id = Some(answered.to_owned());
        let mut steps = vec![
            step(None, vec![request(0, &[], "search")]),
            step(Some(0), vec![result]),
            done(1),
        ];
        steps[1].tool_call_ids = ids.map(str::to_owned).to_vec();
        steps
    };
    let recorded = session(["a", "b"], "b");
    assert_eq!(
        divergence(&recorded, &session(["x", "y"], "y")),
        SessionComparison::Identical
    );
    assert_eq!(
        diverged(&recorded, &session(["x", "y"], "x")),
        (2, 2, DecisionField::MessageToolCalls)
    );
}

/// Both subagents' servers number the calls of each answer from 0.
#[test]
fn repeated_ids_of_tool_calls_belong_to_the_answer_before() {
    let session = |places: [usize; 2], ids: [&str; 2]| {
        let result = |node: u32, parent: u32, place: usize| {
            let mut result = request(node, &[parent], "found");
            result.messages[0].role = Role::Tool;
            result.messages[0].tool_call_id = Some(ids[place].to_owned());
            let mut step = step(Some(parent), vec![result]);
            step.tool_call_ids = ids.map(str::to_owned).to_vec();
            step
        };
        vec![
            step(None, vec![request(0, &[], "one"), request(1, &[], "two")]),
            result(2, 0, places[0]),
            result(3, 1, places[1]),
            step(Some(3), vec![request(4, &[2, 3], "join")]),
            done(4),
        ]
    };
    let recorded = session([0, 1], ["0", "1"]);
    assert_eq!(
        divergence(&recorded, &session([0, 1], ["0", "1"])),
        SessionComparison::Identical
    );
    // Another server numbers them from 1: `1` is the first call there.
    assert_eq!(
        divergence(&recorded, &session([0, 1], ["1", "2"])),
        SessionComparison::Identical
    );
    assert_eq!(
        diverged(&recorded, &session([0, 0], ["1", "2"])),
        (3, 2, DecisionField::MessageToolCalls)
    );
}

/// An agent that sends the whole conversation names a repeated id once for each answer.
#[test]
fn repeated_ids_in_one_request_belong_to_successive_answers() {
    let session = |ids: [&str; 2]| {
        let results = |count: usize| {
            ids[..count].iter().map(|id| {
                let mut result = Message::new(Role::Tool, vec![Segment::Text("found".to_owned())]);
                result.tool_call_id = Some((*id).to_owned());
                result
            })
        };
        let mut steps = vec![step(None, vec![request(0, &[], "search")])];
        for count in 1..3 {
            let after = count as u32 - 1;
            let mut next = request(after + 1, &[after], "");
            next.history_parent = None;
            next.messages = results(count).collect();
            let mut step = step(Some(after), vec![next]);
            step.tool_call_ids = vec![ids[count - 1].to_owned()];
            steps.push(step);
        }
        steps.push(done(2));
        steps
    };
    for ids in [["0", "0"], ["a", "b"]] {
        assert_eq!(
            divergence(&session(["0", "0"]), &session(ids)),
            SessionComparison::Identical
        );
    }
}

fn chain(turns: u32, text: &dyn Fn(u32) -> String) -> Vec<RecordedStep> {
    let mut steps = vec![step(None, vec![request(0, &[], "plan")])];
    steps.extend((1..turns).map(|turn| step(Some(turn - 1), vec![request(turn, &[turn - 1], &text(turn))])));
    steps.push(done(turns - 1));
    steps
}

/// Comparing all pairs of nodes would take hours.
#[test]
fn large_sessions_are_compared() {
    let siblings = |text: &dyn Fn(u32) -> String| {
        let all = (1..20_000).map(|node| request(node, &[0], &text(node)));
        let mut steps = vec![
            step(None, vec![request(0, &[], "plan")]),
            step(Some(0), all.collect()),
        ];
        steps.push(done(1));
        steps
    };
    let recorded = siblings(&|node| node.to_string());
    let reversed = siblings(&|node| (20_000 - node).to_string());
    assert_eq!(divergence(&recorded, &reversed), SessionComparison::Identical);
    let unlike = siblings(&|node| format!("{node} is another text"));
    assert_eq!(
        diverged(&recorded, &unlike),
        (2, 2, DecisionField::MessageContent)
    );

    let recorded = chain(20_000, &|turn| turn.to_string());
    assert_eq!(divergence(&recorded, &recorded), SessionComparison::Identical);
    let unlike = chain(20_000, &|turn| (turn % 15_000).to_string());
    assert_eq!(
        diverged(&recorded, &unlike),
        (15_001, 15_001, DecisionField::MessageContent)
    );

    // One step whose nodes have their parents behind them.
    let nodes = (0..19_999).map(|node| request(node, &[node + 1], "a"));
    let nodes = nodes.chain([request(19_999, &[], "a")]).collect();
    let one_step = [step(None, nodes), done(0)];
    assert_eq!(divergence(&one_step, &one_step), SessionComparison::Identical);
    assert!(one_step[0].named_nodes().is_empty());
}

proptest! {
    /// Numbers of nodes and the order of siblings have no meaning; the text of any node has.
    #[test]
    fn graphs_are_equal_up_to_names(
        parents in vec((any::<Index>(), 0..4u32), 1..30),
        order in any::<u64>(),
        changed in any::<Index>(),
    ) {
        let tree = |name: &dyn Fn(u32) -> u32, changed: Option<usize>| {
            let nodes = parents.iter().enumerate().map(|(node, (parent, text))| {
                let parent = (node > 0).then(|| name(parent.index(node) as u32));
                let parent: Vec<u32> = parent.into_iter().collect();
                // Siblings differ: which of two equal ones is which, only what follows shows.
                let text = if changed == Some(node) { 9 } else { *text };
                request(name(node as u32), &parent, &format!("{node} {text}"))
            });
            let mut nodes: Vec<Request> = nodes.collect();
            nodes.sort_by_key(|node| node.node);
            vec![step(None, nodes), done(name(0))]
        };
        let count = parents.len() as u32;
        // A permutation: the numbers are ranked by a hash.
        let mut ranks: Vec<u32> = (0..count).collect();
        ranks.sort_by_key(|node| (u64::from(*node) + 1).wrapping_mul(order | 1));
        let other = |node: u32| ranks[node as usize];
        let recorded = tree(&|node| node, None);
        prop_assert_eq!(divergence(&recorded, &tree(&other, None)), SessionComparison::Identical);
        let changed = tree(&other, Some(changed.index(parents.len())));
        prop_assert!(matches!(divergence(&recorded, &changed), SessionComparison::Diverged(_)));
    }
}

#[test]
fn summary_counts_sessions_by_place_and_field() {
    let mut other = two_chains();
    other[4].step.added.requests[0].messages[0].content = vec![Segment::Text("K".to_owned())];
    let mut summary = DivergenceSummary::default();
    for session in 0..3 {
        summary.add(SessionId(session), divergence(&two_chains(), &other));
    }
    summary.add(SessionId(3), divergence(&two_chains(), &two_chains()));
    summary.add(SessionId(4), divergence(&two_chains(), &two_chains()[..2]));
    let mut both = summary.clone();
    both.merge(summary.clone());
    assert_eq!((both.compared(), both.diverged, both.by_turn[&5]), (10, 6, 6));
    let lines = summary.lines();
    assert_eq!(
        lines[..4],
        [
            "5 sessions compared: 2 identical (1 only as far as both runs recorded), 3 diverged",
            "by field: messages.content: 3 sessions",
            "by turn: 5: 3 sessions",
            "by depth: 4: 3 sessions",
        ]
    );
    assert_eq!(
        lines[4],
        "session 0 at turn 5, depth 4: messages.content was `j`, is `K`"
    );
    assert_eq!(summary.json()["by_field"]["messages.content"], 3);
    assert_eq!(summary.json()["examples"][0]["turn"], 5);
}
