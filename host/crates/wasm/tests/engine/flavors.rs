//! Trace flavors: rows arrive unchanged, sessions and turns are complete, and invalid results are
//! refused.

use std::time::Duration;

use veeksha_model::{
    HistoryMode, NodeId, Recorded, RecordedAnswer, Replay, Request, Seed, Segment, Session, ToolCall,
};
use veeksha_ports::{
    ArrivalColumn, CellType, FlavorInstance, Grouping, Layout, MostFrequent, PluginFailure,
    PluginFailureKind, TimestampUnit, TraceColumn, TraceFacts, TraceGroup, TraceRow,
};
use veeksha_wasm::{EngineLimits, Kinds, PluginComponent};

use crate::support::{grants, load, only_label, tight};

fn facts() -> TraceFacts {
    TraceFacts {
        rows: 1000,
        groups: 40,
        first_row: r#"{"text": "é"}"#.into(),
    }
}

/// Returns a group of `rows` rows, which are numbered from `10 * (index + 1)`; the first has no
/// arrival.
fn group(index: u64, rows: u64) -> TraceGroup {
    let first = 10 * (index + 1);
    TraceGroup {
        index,
        key: format!("k{index}"),
        rows: (first..first + rows)
            .map(|number| TraceRow {
                number,
                at: (number > first).then_some(number * 1_000),
                fields: format!("{{\"count\": {number}}}"),
            })
            .collect(),
    }
}

fn groups(indices: impl IntoIterator<Item = u64>) -> Vec<TraceGroup> {
    indices.into_iter().map(|index| group(index, 1)).collect()
}

fn open(plugin: &PluginComponent, config: &str) -> Result<Box<dyn FlavorInstance>, PluginFailure> {
    plugin.flavor(config.into(), grants()).unwrap().open()
}

fn good(grouping: &str) -> Box<dyn FlavorInstance> {
    let plugin = load(EngineLimits::default(), "flavor");
    open(&plugin, &format!(r#"{{"grouping": "{grouping}"}}"#)).unwrap()
}

fn behaving(limits: EngineLimits, behaviour: &str) -> Box<dyn FlavorInstance> {
    let plugin = load(limits, "hostile-flavor");
    open(&plugin, &format!(r#"{{"behaviour": "{behaviour}"}}"#)).unwrap()
}

#[test]
fn a_component_becomes_a_flavor() {
    let plugin = load(EngineLimits::default(), "flavor");
    let kinds = Kinds {
        trace_flavor: true,
        ..Kinds::default()
    };
    assert_eq!(plugin.kinds(), kinds);
    assert_eq!(plugin.describe().unwrap().summary, "rows as requests");
    let factory = plugin.flavor(r#"{"grouping": "row"}"#.into(), grants()).unwrap();
    let info = factory.info();
    assert_eq!(
        (info.name.as_str(), info.version.as_str(), info.engine),
        ("flavor", "0.1.0", "wasm")
    );
    assert_eq!(info.digest, plugin.digest());
    assert!(info.granted.is_empty(), "it imports nothing");
}

/// A plugin of another kind is refused; the message names its actual kind.
#[test]
fn a_plugin_of_another_kind_is_refused_by_name() {
    let refusal = |failure: PluginFailure| {
        assert_eq!(
            (failure.function.as_str(), &failure.kind),
            ("load", &PluginFailureKind::Load)
        );
        failure.message
    };
    let flavor = load(EngineLimits::default(), "flavor");
    assert_eq!(
        refusal(flavor.workload("{}".into(), grants()).err().unwrap()),
        "it is a trace flavor, which does not generate sessions; set session_generator.type to `trace` and name the \
         plugin as its `flavor`"
    );
    for (plugin, kind) in [
        (load(EngineLimits::default(), "planned"), "a session generator"),
        (load(EngineLimits::default(), "agent"), "an agent generator"),
    ] {
        assert_eq!(
            refusal(plugin.flavor("{}".into(), grants()).err().unwrap()),
            format!(
                "it is {kind}, which does not read traces; name a plugin that exports `trace-flavor`, or use this one as the \
                 session_generator"
            )
        );
    }
}

#[test]
fn a_layout_arrives_as_the_guest_made_it() {
    let cells = [
        CellType::Text,
        CellType::Count,
        CellType::Integer,
        CellType::Number,
        CellType::Truth,
        CellType::Items,
        CellType::Members,
        CellType::Anything,
    ];
    let tree = Grouping::Tree {
        id: "text".into(),
        parent: "count".into(),
    };
    for (word, grouping) in [
        ("row", Grouping::Row),
        ("column", Grouping::Column("text".into())),
        ("tree", tree),
        ("pools", Grouping::Pools),
    ] {
        let expected = Layout {
            columns: cells
                .iter()
                .map(|cell| TraceColumn {
                    name: cell.name().into(),
                    aliases: [1, 2].map(|i| format!("{}-{i}", cell.name())).into(),
                    cell: *cell,
                    required: *cell == CellType::Text,
                })
                .collect(),
            rows_in: Some("rows".into()),
            grouping,
            arrival: Some(ArrivalColumn {
                column: "number".into(),
                unit: TimestampUnit::Milliseconds,
            }),
            keep: Some(MostFrequent {
                column: "text".into(),
                count: 3,
            }),
            warms_up: true,
        };
        assert_eq!(good(word).layout().unwrap(), expected);
    }
}

/// Every field is passed in both directions: the expected session is computed here from the
/// fixture's rule.
#[test]
fn a_group_becomes_a_session_with_what_is_known_of_it() {
    let group = group(5, 4);
    let sessions = good("row").sessions(&facts(), 7, &[group]).unwrap();
    let request = |node: u32| {
        let row = 60 + u64::from(node);
        let before: Option<NodeId> = node.checked_sub(1).map(NodeId);
        let answer = RecordedAnswer {
            reasoning: None,
            content: vec![Segment::Text(format!("answer {node}"))],
            tool_calls: vec![ToolCall {
                id: format!("call-{node}"),
                name: "look".into(),
                arguments: r#"{"at": 1}"#.into(),
            }],
        };
        let history = [
            HistoryMode::Live,
            HistoryMode::Recorded,
            HistoryMode::Fresh,
            HistoryMode::Live,
        ];
        let replay = Replay {
            history: history[node as usize],
            answer: (node > 0).then_some(answer),
            recorded: Recorded {
                at: (node > 0).then_some(row * 1_000),
                latency: Some(u64::from(node) * 1_000),
                prompt_tokens: Some(13),
                output_tokens: (node > 0).then_some(node),
            },
        };
        (node, before, format!("{{\"count\": {row}}}"), replay)
    };
    let [session] = &sessions[..] else {
        panic!("{sessions:?}")
    };
    let found: Vec<_> = session.requests.iter().map(outline).collect();
    assert_eq!(found, (0..4).map(request).collect::<Vec<_>>());
    assert_eq!(session.arrives_at, None);
    let labels = [("group", "5 k5"), ("trace", "1000 40 {\"text\": \"é\"}")];
    assert_eq!(
        session.labels,
        labels.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    let made = Segment::Synthetic {
        seed: Seed { high: 7, low: 3 },
        tokens: 1,
    };
    assert_eq!(
        session.requests[3].messages[0].content[1], made,
        "the epoch reaches the guest"
    );
}

fn outline(request: &Request) -> (u32, Option<NodeId>, String, Replay) {
    let Segment::Text(text) = &request.messages[0].content[0] else {
        panic!("{request:?}")
    };
    let replay = request.replay.as_deref().unwrap();
    (
        request.node.0,
        request.history_parent,
        text.clone(),
        replay.clone(),
    )
}

/// The sessions do not depend on the split into calls or on the order of the groups.
#[test]
fn any_split_gives_the_same_sessions() {
    let groups: Vec<_> = (0..60).map(|index| group(index, 1 + index % 3)).collect();
    let whole = good("row").sessions(&facts(), 3, &groups).unwrap();
    assert_eq!(whole.len(), 60);
    for size in [1, 7, 59] {
        let mut flavor = good("row");
        let mut pieces: Vec<Session> = Vec::new();
        for piece in groups.rchunks(size) {
            let made = flavor.sessions(&facts(), 3, piece).unwrap();
            pieces.splice(0..0, made);
        }
        assert_eq!(pieces, whole);
    }
    assert_eq!(good("row").sessions(&facts(), 3, &[]).unwrap(), []);
}

#[test]
fn warm_up_sessions_come_one_for_each_group_here() {
    let sessions = good("row").warmup(&facts(), &groups([0, 4])).unwrap();
    let texts: Vec<_> = sessions
        .iter()
        .map(|session| session.requests[0].messages[0].content[0].clone())
        .collect();
    assert_eq!(
        texts,
        ["warm k0 of 40", "warm k4 of 40"].map(|text| Segment::Text(text.into()))
    );
    assert_eq!(
        behaving(tight(), "good").warmup(&facts(), &groups([0])).unwrap(),
        []
    );
}

#[test]
fn a_refused_configuration_is_reported_with_its_place_and_remedy() {
    let failure = open(
        &load(EngineLimits::default(), "flavor"),
        r#"{"grouping": "heap"}"#,
    )
    .err()
    .unwrap();
    assert_eq!(
        failure.to_string(),
        "plugin `flavor` failed in `flavor.open`: `heap` is not a grouping [no-grouping]\n  config: /grouping\n  \
         input: config = {\"grouping\": \"heap\"}\n  code: VP0003 (docs/plugin-errors.md)"
    );
}

fn fails(behaviour: &str) -> PluginFailure {
    let failure = behaving(tight(), behaviour)
        .sessions(&facts(), 2, &groups(12..20))
        .unwrap_err();
    assert_eq!(failure.plugin, "hostile-flavor");
    assert_eq!(failure.function, "flavor.sessions");
    assert_eq!(failure.input.as_deref(), Some("epoch = 2, groups 12..20"));
    failure
}

#[test]
fn a_panic_is_reported_with_its_message_and_source_line() {
    let failure = fails("trap");
    assert_eq!(failure.kind, PluginFailureKind::Trap);
    assert!(
        failure.message.ends_with("group 12 cannot be replayed"),
        "{failure}"
    );
    let source = include_str!("../../../../../tests/guests/hostile-flavor/src/lib.rs");
    let line_of = |text: &str| source.lines().position(|line| line.contains(text)).unwrap() as u32 + 1;
    let innermost = &failure.frames[0];
    assert!(innermost.function.ends_with("fail"), "{failure}");
    assert!(
        innermost.file.as_deref().unwrap().ends_with("src/lib.rs"),
        "{failure}"
    );
    assert_eq!(
        innermost.line,
        Some(line_of("panic!(\"group {group}")),
        "{failure}"
    );
    assert_eq!(
        failure.frames[1].line,
        Some(line_of("\"trap\" => fail")),
        "{failure}"
    );
}

#[test]
fn after_a_trap_a_fresh_store_answers() {
    let mut flavor = behaving(tight(), "trap-at-7");
    for _ in 0..3 {
        let failure = flavor.sessions(&facts(), 0, &groups([7])).unwrap_err();
        assert_eq!(
            failure.input.as_deref(),
            Some("epoch = 0, group 7, key `k7`, rows 80")
        );
        assert_eq!(flavor.sessions(&facts(), 0, &groups([1, 9, 3])).unwrap().len(), 3);
    }
}

#[test]
fn an_endless_loop_is_stopped() {
    let limits = EngineLimits {
        call_deadline: Duration::from_millis(200),
        ..tight()
    };
    let failure = behaving(limits.clone(), "loop")
        .sessions(&facts(), 0, &groups([1, 5]))
        .unwrap_err();
    assert_eq!(failure.kind, PluginFailureKind::Deadline { allowed_ms: 200 });
    assert_eq!(failure.input.as_deref(), Some("epoch = 0, groups 1, 5"));
    let failure = behaving(limits, "layout-loop").layout().unwrap_err();
    assert_eq!(failure.kind, PluginFailureKind::Deadline { allowed_ms: 200 });
    assert_eq!(
        (failure.function.as_str(), failure.input),
        ("flavor.layout", None)
    );
}

#[test]
fn memory_and_answers_are_bounded() {
    let failure = fails("memory");
    assert!(
        matches!(failure.kind, PluginFailureKind::Memory { allowed, .. } if allowed == 64 << 20),
        "{failure}"
    );
    let roomy = EngineLimits {
        memory_bytes: 512 << 20,
        ..tight()
    };
    let too_much = "it handed over more data in one call than is taken (8 MiB)";
    let failure = behaving(roomy.clone(), "huge")
        .sessions(&facts(), 0, &groups([0]))
        .unwrap_err();
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (PluginFailureKind::Result, too_much)
    );
    let failure = behaving(roomy, "layout-huge").layout().unwrap_err();
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (PluginFailureKind::Result, too_much)
    );
}

#[test]
fn a_store_is_replaced_when_it_is_worn_or_swollen() {
    let worn = EngineLimits {
        calls_per_store: 3,
        ..tight()
    };
    let calls = |flavor: &mut Box<dyn FlavorInstance>| {
        only_label(&flavor.sessions(&facts(), 0, &groups([0])).unwrap()[0])
    };
    let mut flavor = behaving(worn, "calls");
    let seen: Vec<u64> = (0..8).map(|_| calls(&mut flavor)).collect();
    assert_eq!(seen, [1, 2, 3, 1, 2, 3, 1, 2]);
    let swollen = EngineLimits {
        recycle_memory_bytes: 20 << 20,
        ..tight()
    };
    let mut flavor = behaving(swollen, "swell");
    // Each call leaks 8 MiB: without replacement, the eighth one would exceed the limit of 64 MiB.
    assert!((0..20).all(|_| (1..=3).contains(&calls(&mut flavor))));
}

#[test]
fn an_error_is_not_a_bug() {
    let failure = fails("error");
    let kind = PluginFailureKind::Refused {
        code: "row".into(),
        hint: Some("leave it out".into()),
        path: None,
    };
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (kind, "row 130: it has no length")
    );
    assert!(failure.frames.is_empty());
}

#[test]
fn refuses_invalid_sessions_by_group() {
    let times = "it must be below 2^53 (was it negative?)";
    let cases = [
        ("too-few", "asked for the sessions of 8 groups, returned 7; one group gives one session".to_owned()),
        ("too-many", "asked for the sessions of 8 groups, returned 2,000; one group gives one session".to_owned()),
        ("none", "asked for the sessions of 8 groups, returned 0; one group gives one session".to_owned()),
        ("empty", "group 12: the session has no requests".to_owned()),
        ("cyclic", "group 12: the nodes 0, 1 wait for one another".to_owned()),
        ("twice", "group 12: node 4 is defined twice".to_owned()),
        ("late-session", format!("group 12: `arrives-at` is 9,007,199,254,740,992 ns, {times}")),
        ("late-recording", format!("group 12: node 0: `at` is 18,446,744,073,709,551,615 ns, {times}")),
        ("slow-recording", format!("group 12: node 0: `latency` is 9,007,199,254,740,992 ns, {times}")),
        (
            "long-answer",
            "group 12: node 0: recorded answer: 4,294,967,295 tokens of synthetic text, at most 16,777,216 are \
             allowed in one request"
                .to_owned(),
        ),
    ];
    for (behaviour, message) in cases {
        let failure = fails(behaviour);
        assert_eq!(
            (failure.kind, failure.message),
            (PluginFailureKind::Result, message),
            "{behaviour}"
        );
    }
}

#[test]
fn layouts_that_cannot_be_followed_are_refused() {
    let cases = [
        (
            "layout-empty",
            "the layout has no columns; a flavor reads at least one",
        ),
        ("layout-many", "the layout has 5000 columns, at most 256 are read"),
        (
            "layout-twins",
            "the layout has the name `id` twice; the names and aliases of its columns must differ",
        ),
        (
            "layout-grouping",
            "the layout's `grouping` is the column `ID`, which is not among its columns",
        ),
        (
            "layout-tree",
            "the layout's tree has the column `up` for both `id` and `parent`",
        ),
        (
            "layout-arrival",
            "the layout's `arrival` is the column `time`, which is not among its columns",
        ),
        (
            "layout-keep",
            "the layout keeps the rows with the 0 most frequent values of `id`; `keep` needs a count of 1 or more",
        ),
    ];
    for (behaviour, message) in cases {
        let failure = behaving(tight(), behaviour).layout().unwrap_err();
        assert_eq!(
            (failure.function.as_str(), &failure.kind),
            ("flavor.layout", &PluginFailureKind::Result)
        );
        assert_eq!(
            (failure.message.as_str(), failure.input),
            (message, None),
            "{behaviour}"
        );
    }
    let failure = behaving(tight(), "layout-trap").layout().unwrap_err();
    assert_eq!(failure.kind, PluginFailureKind::Trap);
    assert!(failure.message.ends_with("no layout today"), "{failure}");
}

#[test]
fn a_warm_up_that_cannot_be_is_refused() {
    let failure = behaving(tight(), "warmup-trap")
        .warmup(&facts(), &groups([3]))
        .unwrap_err();
    assert_eq!(
        (failure.function.as_str(), &failure.kind),
        ("flavor.warmup", &PluginFailureKind::Trap)
    );
    assert_eq!(failure.input.as_deref(), Some("group 3, key `k3`, rows 40"));
    let failure = behaving(tight(), "warmup-cyclic")
        .warmup(&facts(), &groups([3, 4]))
        .unwrap_err();
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (
            PluginFailureKind::Result,
            "warm-up session 1: the nodes 0 wait for one another"
        )
    );
    assert_eq!(failure.input.as_deref(), Some("groups 3..5"));
}
