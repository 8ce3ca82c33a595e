//! Sweeps: `!expand`, `!include` and lists of scenarios.
#![expect(
    clippy::unwrap_used,
    reason = "outside a test function the configuration does not know that this is a test"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use common::generators;
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use veeksha_scenario::{Document, Documents, Node, ScenarioError, SweepCell, Value};

/// Reads `s.yml` of some files, each of which may be read once.
fn read(files: &[(&str, &str)]) -> Result<Documents, ScenarioError> {
    let mut left: BTreeMap<&Path, &str> = files
        .iter()
        .map(|(name, text)| (Path::new(*name), *text))
        .collect();
    let main = left.remove(Path::new("s.yml")).unwrap();
    let mut reader = |path: &Path| {
        left.remove(path)
            .map(str::to_owned)
            .ok_or_else(|| "there is no such file".to_owned())
    };
    Documents::from_yaml(main, Path::new("s.yml"), &mut reader)
}

fn cells(yaml: &str) -> Vec<SweepCell> {
    read(&[("s.yml", yaml)]).unwrap().cells().unwrap()
}

/// Returns the cells as JSON.
fn values(yaml: &str) -> Vec<Json> {
    cells(yaml)
        .iter()
        .map(|cell| cell.document.root.to_json())
        .collect()
}

fn refused(files: &[(&str, &str)]) -> String {
    let documents = match read(files) {
        Ok(documents) => documents,
        Err(error) => return error.to_string(),
    };
    documents.cells().unwrap_err().to_string()
}

/// Returns the settings of each cell as `path=value`.
fn settings(cells: &[SweepCell]) -> Vec<String> {
    cells
        .iter()
        .map(|cell| {
            let words: Vec<String> = cell
                .settings
                .iter()
                .map(|setting| format!("{}={}", setting.path, setting.text()))
                .collect();
            words.join(" ")
        })
        .collect()
}

/// Veeksha's test of its tag (`test_expand_tag_cartesian_product`), with this program's order.
#[test]
fn two_tags_give_every_combination() {
    assert_eq!(
        values("a: !expand [1, 2]\nb: !expand [3, 4]\n"),
        [
            json!({"a": 1, "b": 3}),
            json!({"a": 1, "b": 4}),
            json!({"a": 2, "b": 3}),
            json!({"a": 2, "b": 4}),
        ]
    );
}

/// Veeksha's `test_expand_tag_inside_nested_dict` and `test_list_without_expand_tag_kept_as_is`.
#[test]
fn expands_tags_in_tables_but_not_plain_lists() {
    let expected: Vec<Json> = [(1, 3), (1, 4), (2, 3), (2, 4)]
        .iter()
        .map(|(a, x)| json!({"a": a, "opts": {"x": x}}))
        .collect();
    assert_eq!(
        values("a: !expand [1, 2]\nopts:\n  x: !expand [3, 4]\n"),
        expected
    );
    assert_eq!(values("a: [1, 2]\n"), [json!({"a": [1, 2]})]);
}

/// The prompt-length sweep of Veeksha's documentation. Veeksha's loader leaves the list in place of
/// the value.
#[test]
fn expands_tags_inside_lists() {
    let yaml = "
session_generator:
  type: synthetic
  session_graph: {type: single_request}
  channels:
    - type: text
      body_length_generator:
        type: fixed
        value: !expand [128, 256, 512]
client: {api_base: http://localhost:8000/v1}
";
    let cells = cells(yaml);
    assert_eq!(
        settings(&cells),
        [128, 256, 512]
            .map(|length| format!("session_generator.channels[0].body_length_generator.value={length}"))
    );
    for (cell, length) in cells.into_iter().zip([128, 256, 512]) {
        let scenario = cell.document.check(&generators()).unwrap();
        let veeksha_scenario::Generator::Shipped { config, .. } = scenario.session_generator else {
            panic!("the synthetic generator")
        };
        assert_eq!(
            config.pointer("/channels/0/body_length_generator/value"),
            Some(&json!(length))
        );
    }
}

#[test]
fn expands_nested_tags() {
    let yaml = "
traffic: !expand
  - {type: rate, rate: !expand [1, 2]}
  - {type: concurrent, target: !expand [4, !expand [8, 16]], ramp: !expand [0]}
list: [!expand [a, b], c]
";
    let cells = cells(yaml);
    assert_eq!(
        settings(&cells),
        [
            "traffic.type=rate traffic.rate=1 list=[\"a\",\"c\"]",
            "traffic.type=rate traffic.rate=1 list=[\"b\",\"c\"]",
            "traffic.type=rate traffic.rate=2 list=[\"a\",\"c\"]",
            "traffic.type=rate traffic.rate=2 list=[\"b\",\"c\"]",
            "traffic.type=concurrent traffic.target=4 traffic.ramp=0 list=[\"a\",\"c\"]",
            "traffic.type=concurrent traffic.target=4 traffic.ramp=0 list=[\"b\",\"c\"]",
            "traffic.type=concurrent traffic.target=8 traffic.ramp=0 list=[\"a\",\"c\"]",
            "traffic.type=concurrent traffic.target=8 traffic.ramp=0 list=[\"b\",\"c\"]",
            "traffic.type=concurrent traffic.target=16 traffic.ramp=0 list=[\"a\",\"c\"]",
            "traffic.type=concurrent traffic.target=16 traffic.ramp=0 list=[\"b\",\"c\"]",
        ]
    );
}

#[test]
fn value_may_be_a_list() {
    assert_eq!(
        values("lengths: !expand [[1, 2], [3]]"),
        [json!({"lengths": [1, 2]}), json!({"lengths": [3]})]
    );
}

#[test]
fn top_level_list_is_a_list_of_scenarios() {
    let yaml = "
- {seed: 1, output_dir: a}
- seed: !expand [2, 3]
  output_dir: b
- {seed: 1, runtime: {max_sessions: 5}}
";
    let cells = cells(yaml);
    assert_eq!(
        settings(&cells),
        [
            "seed=1 output_dir=a",
            "seed=2 output_dir=b",
            "seed=3 output_dir=b",
            "seed=1 runtime.max_sessions=5",
        ]
    );
    assert_eq!(
        cells.iter().map(|cell| cell.scenario).collect::<Vec<_>>(),
        [0, 1, 1, 2]
    );
    for cell in cells {
        cell.document.check(&generators()).unwrap();
    }
}

/// JSON has no tags, but its lists are YAML's.
#[test]
fn list_of_scenarios_may_be_json() {
    assert_eq!(
        settings(&cells(r#"[{"seed": 1}, {"seed": 2}]"#)),
        ["seed=1", "seed=2"]
    );
}

#[test]
fn swept_table_merges_with_shared_keys() {
    let yaml = "
base: &base {b: 1, c: 2}
x: !expand
  - {<<: *base, c: 3}
  - {<<: *base, d: 4}
";
    assert_eq!(
        values(yaml),
        [
            json!({"base": {"b": 1, "c": 2}, "x": {"b": 1, "c": 3}}),
            json!({"base": {"b": 1, "c": 2}, "x": {"b": 1, "c": 2, "d": 4}}),
        ]
    );
}

#[test]
fn single_scenario_has_no_settings() {
    for yaml in ["seed: 1", "", "- seed: 1", "seed: !expand [1]"] {
        let documents = read(&[("s.yml", yaml)]).unwrap();
        let cells = documents.cells().unwrap();
        assert_eq!(cells.len(), 1, "{yaml}");
        assert!(cells[0].settings.is_empty(), "{yaml}");
        assert_eq!(documents.single().unwrap(), cells[0].document, "{yaml}");
        assert_eq!(
            cells[0].document,
            Document::from_yaml(yaml, "s.yml").unwrap(),
            "{yaml}"
        );
    }
}

#[test]
fn sweep_is_refused_where_one_scenario_is_required() {
    let sweep = "\nseed: !expand [1, 2]\noutput_dir: !expand [a, b, c]\n";
    let message = "s.yml:2: this is a sweep of 6 scenarios (`!expand`, or a list of scenarios); a single one is required here";
    assert_eq!(
        Document::from_yaml(sweep, "s.yml").unwrap_err().to_string(),
        message
    );
    let documents = read(&[("s.yml", sweep)]).unwrap();
    assert_eq!(documents.count(), 6);
    assert_eq!(documents.single().unwrap_err().to_string(), message);
}

/// The order of keys does not distinguish scenarios.
#[test]
fn equal_scenarios_have_no_settings() {
    let cells = cells(
        "- {seed: 1, client: {model: m, headers: {a: b}}}\n- {client: {headers: {a: b}, model: m}, seed: 1}",
    );
    assert_eq!(settings(&cells), ["", ""]);
}

/// A hundred thousand keys in two orders are walked once, not once per key.
#[test]
fn compares_large_tables_in_one_pass() {
    let keys: Vec<String> = (0..100_000).map(|key| format!("k{key}: {key}")).collect();
    let backwards: Vec<String> = keys.iter().rev().cloned().collect();
    let yaml = format!(
        "- {{a: {{{}}}, b: {{x: 1, {}}}}}\n- {{a: {{{}}}, b: {{x: 2, {}}}}}",
        keys.join(", "),
        keys.join(", "),
        backwards.join(", "),
        backwards.join(", ")
    );
    assert_eq!(settings(&cells(&yaml)), ["b.x=1", "b.x=2"]);
}

#[test]
fn overrides_apply_to_every_scenario() {
    let yaml = "
- {seed: !expand [1, 2], client: {model: m}}
- {seed: 3, traffic_scheduler: !expand [{type: rate}, {type: concurrent}]}
";
    let mut documents = read(&[("s.yml", yaml)]).unwrap();
    documents.set("client.model", "other").unwrap();
    documents
        .set("traffic_scheduler.cancel_session_on_failure", "false")
        .unwrap();
    let cells = documents.cells().unwrap();
    assert_eq!(cells.len(), 4);
    for cell in &cells {
        let root = cell.document.root.to_json();
        assert_eq!(root["client"]["model"], "other");
        assert_eq!(root["traffic_scheduler"]["cancel_session_on_failure"], "false");
        cell.document.clone().check(&generators()).unwrap();
    }
    // An overridden value is not swept.
    documents.set("seed", "9").unwrap();
    assert_eq!(documents.count(), 3);
    // The command line can sweep too.
    documents.set("seed", "!expand [7, 8]").unwrap();
    let cells = documents.cells().unwrap();
    let seeds: Vec<Json> = cells
        .iter()
        .map(|cell| cell.document.root.to_json()["seed"].clone())
        .collect();
    assert_eq!(seeds, [7, 8, 7, 7, 8, 8]);
    let refused = Document::from_yaml("seed: 1", "s.yml")
        .unwrap()
        .set("seed", "!expand [1, 2]");
    assert_eq!(
        refused.unwrap_err().to_string(),
        "cannot set `seed` to `!expand [1, 2]`: a sweep is not allowed here; give a single value"
    );
    assert_eq!(
        documents
            .set("seed", "!include x.yml")
            .map_err(|error| error.to_string()),
        Ok(()),
        "a word of the command line is text unless it begins like a list"
    );
    assert_eq!(
        documents.set("seed", "[!include x.yml]").unwrap_err().to_string(),
        "cannot set `seed` to `[!include x.yml]`: cannot include `x.yml`: a value of the command line cannot include a file"
    );
}

#[test]
fn includes_files_in_place_of_values() {
    let documents = read(&[
        (
            "s.yml",
            "
client: !include parts/client.yml
evaluators:
  - !include parts/evaluator.yml
runtime:
  <<: !include parts/short.yml
  max_sessions: 3
seed: !include parts/seed.yml
nothing: !include parts/empty.yml
",
        ),
        (
            "parts/client.yml",
            "model: !include names/model.yml\nheaders: {a: !expand [b, c]}",
        ),
        ("parts/names/model.yml", "my-model\n"),
        ("parts/evaluator.yml", "{type: performance}"),
        ("parts/short.yml", "max_sessions: 99\nbenchmark_timeout: 5"),
        ("parts/seed.yml", "7"),
        ("parts/empty.yml", "# nothing"),
    ])
    .unwrap();
    let cells = documents.cells().unwrap();
    assert_eq!(settings(&cells), ["client.headers.a=b", "client.headers.a=c"]);
    assert_eq!(
        cells[0].document.root.to_json(),
        json!({
            "client": {"model": "my-model", "headers": {"a": "b"}},
            "evaluators": [{"type": "performance"}],
            "runtime": {"max_sessions": 3, "benchmark_timeout": 5},
            "seed": 7,
            "nothing": null,
        })
    );
}

#[test]
fn includes_whole_scenarios() {
    let one = read(&[("s.yml", "!include base.yml"), ("base.yml", "seed: 5")]).unwrap();
    assert_eq!(one.single().unwrap().root.to_json(), json!({"seed": 5}));
    let list = read(&[
        ("s.yml", "!include list.yml"),
        ("list.yml", "[{seed: 5}, {seed: 6}]"),
    ])
    .unwrap();
    assert_eq!(list.count(), 2);
    let items = read(&[
        ("s.yml", "- !include a.yml\n- {seed: 2}"),
        ("a.yml", "seed: !expand [8, 9]"),
    ])
    .unwrap();
    assert_eq!(settings(&items.cells().unwrap()), ["seed=8", "seed=9", "seed=2"]);
}

/// The helper returns each file once.
#[test]
fn reads_each_file_once() {
    let twice = [
        (
            "s.yml",
            "a: !include x.yml\nb: [!include ./x.yml, !include y/../x.yml]",
        ),
        ("x.yml", "{k: 1}"),
    ];
    assert_eq!(
        read(&twice).unwrap().single().unwrap().root.to_json(),
        json!({"a": {"k": 1}, "b": [{"k": 1}, {"k": 1}]})
    );
}

#[test]
fn errors_have_their_place() {
    for (files, message) in [
        (
            &[("s.yml", "\na: !include x.yml"), ("x.yml", "\n\nb: 1\nb: 2")][..],
            "x.yml:4: the key `b` is a duplicate; the first is on line 3",
        ),
        (
            &[("s.yml", "a: !include x/y.yml"), ("x/y.yml", "b: !include z.yml")],
            "x/y.yml:1: cannot include `x/z.yml`: there is no such file",
        ),
        (
            &[
                ("s.yml", "\na: !include b.yml"),
                ("b.yml", "c: !include c.yml"),
                ("c.yml", "\n\n- !include s.yml"),
            ],
            "c.yml:3: the files include each other: s.yml → b.yml → c.yml → s.yml",
        ),
        (
            &[("s.yml", "a: !include ./x/../s.yml")],
            "s.yml:1: the files include each other: s.yml → s.yml",
        ),
        (
            &[("s.yml", "a: !include ''")],
            "s.yml:1: `!include` takes the name of a file: `!include other.yml`",
        ),
        (
            &[("s.yml", "a: !include [x]")],
            "s.yml:1: `!include` takes the name of a file: `!include other.yml`",
        ),
        (
            &[("s.yml", "!include x: 1")],
            "s.yml:1: a key must be a single word, not an included file",
        ),
        (
            &[("s.yml", "a:\n  - !expand []")],
            "s.yml:2: `!expand` is empty; give at least one value",
        ),
        (
            &[("s.yml", "a: !expand 5")],
            "s.yml:1: `!expand` takes a list of values: `!expand [1, 2, 4]`",
        ),
        (
            &[("s.yml", "a: !expand {b: 1}")],
            "s.yml:1: `!expand` takes a list of values: `!expand [1, 2, 4]`",
        ),
        (
            &[("s.yml", "\na:\n  <<: !expand [{b: 1}, {b: 2}]")],
            "s.yml:3: `<<` takes a table, or a list of tables; put `!expand` on the keys that differ, or on the whole table",
        ),
        (&[("s.yml", "\n[]")], "s.yml:2: the list of scenarios is empty"),
        (
            &[("s.yml", "a: 1\n---\nb: 2")],
            "s.yml:2: a second document begins here; a scenario is one document, and several scenarios are a list",
        ),
    ] {
        assert_eq!(refused(files), message);
    }
}

/// A value with a problem is reported at its place: in the included file, or in the list of a tag.
#[test]
fn problems_of_a_cell_name_their_line() {
    let documents = read(&[
        ("s.yml", "seed: !expand\n  - 1\n  - many\nruntime: !include r.yml"),
        ("r.yml", "\nmax_sessions: x"),
    ])
    .unwrap();
    let problems: Vec<String> = documents
        .cells()
        .unwrap()
        .into_iter()
        .map(|cell| cell.document.check(&generators()).unwrap_err().to_string())
        .collect();
    let runtime = "r.yml:2: runtime.max_sessions: expected a whole number, got the text `x`";
    assert_eq!(
        problems,
        [
            runtime.to_owned(),
            format!("s.yml:3: seed: expected a whole number, got the text `many`\n{runtime}"),
        ]
    );
    let list = read(&[("s.yml", "- {seed: 1}\n- 5\n")]).unwrap().cells().unwrap();
    let problems = list[1].document.clone().check(&generators()).unwrap_err();
    assert!(
        problems.to_string().starts_with("s.yml:2: expected "),
        "{problems}"
    );
}

#[test]
fn limits_nesting_of_includes() {
    let chain = |files: usize| -> Vec<(String, String)> {
        (0..=files)
            .map(|index| {
                let name = if index == 0 {
                    "s.yml".to_owned()
                } else {
                    format!("{index}.yml")
                };
                let text = if index == files {
                    "1".to_owned()
                } else {
                    format!("a: !include {}.yml", index + 1)
                };
                (name, text)
            })
            .collect()
    };
    let borrowed = |files: &[(String, String)]| -> Result<Documents, ScenarioError> {
        read(
            &files
                .iter()
                .map(|(name, text)| (name.as_str(), text.as_str()))
                .collect::<Vec<_>>(),
        )
    };
    assert!(borrowed(&chain(10)).is_ok());
    assert_eq!(
        borrowed(&chain(11)).unwrap_err().to_string(),
        "10.yml:1: more than 10 files include each other: s.yml → 1.yml → 2.yml → 3.yml → 4.yml → 5.yml → 6.yml → 7.yml → \
         8.yml → 9.yml → 10.yml → 11.yml"
    );
}

#[test]
fn refuses_large_sweeps_before_expanding() {
    let ten = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
    let power = |exponent: usize| -> String {
        (0..exponent)
            .map(|key| format!("k{key}: !expand {ten}\n"))
            .collect()
    };
    assert_eq!(cells(&power(4)).len(), 10_000);
    assert_eq!(
        refused(&[("s.yml", &power(5))]),
        "s.yml:1: the sweep has 100000 scenarios; at most 10000 are allowed: reduce the values of `!expand`"
    );
    assert_eq!(
        refused(&[("s.yml", &power(40))]),
        "s.yml:1: the sweep has more than 10^19 scenarios; at most 10000 are allowed: reduce the values of `!expand`"
    );
    let long = format!("{}ballast: [{}]", power(4), "0, ".repeat(1_000));
    // Each scenario has its table, four values, the list and its thousand items.
    assert_eq!(
        refused(&[("s.yml", &long)]),
        "s.yml:1: the 10000 scenarios of the sweep have 10060000 values together; at most 4000000 are allowed: move long values into separate files"
    );
    let large = format!("[{}]", "x, ".repeat(3_000));
    let many = format!("[{}]", "!include x.yml, ".repeat(1_000));
    assert_eq!(
        refused(&[("s.yml", &many), ("x.yml", &large)]),
        "s.yml:1: the scenario has more than a million values, its aliases and included files expanded (a long text counts as \
         several)"
    );
    let text = "x".repeat(1_000_000);
    let copies = format!("a: &a {text}\nb: [{}]", "*a, ".repeat(1_000));
    assert!(refused(&[("s.yml", &copies)]).contains("more than a million values"));
    let huge = "x".repeat(11 << 20);
    assert_eq!(
        refused(&[("s.yml", "a: !include x.yml"), ("x.yml", &huge)]),
        "x.yml: 11534336 bytes exceed the limit of 10 MiB for a scenario"
    );
    let deep = format!("{}1{}", "[".repeat(60), "]".repeat(60));
    let within = format!("{}!include x.yml{}", "[".repeat(60), "]".repeat(60));
    assert!(
        refused(&[("s.yml", &within), ("x.yml", &deep)]).ends_with("values are nested more than 96 deep")
    );
}

/// A tree with alternatives. Its expansions are found independently by choosing for each tag in
/// turn.
fn tree() -> impl Strategy<Value = Node> {
    let leaf =
        prop_oneof![(0..4i64).prop_map(Value::Int), "[a-c]{0,2}".prop_map(Value::Text)].prop_map(Node::new);
    leaf.prop_recursive(4, 24, 4, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            list.clone().prop_map(Value::List),
            prop::collection::vec(inner, 1..4).prop_map(Value::Expand),
            list.prop_map(|nodes| Value::Map(
                nodes
                    .into_iter()
                    .enumerate()
                    .map(|(key, node)| (format!("k{key}"), node))
                    .collect()
            )),
        ]
        .prop_map(Node::new)
    })
}

/// Replaces the first tag, outermost and from the left, by each of its values and expands the rest
/// likewise.
fn by_choosing(node: &Node) -> Vec<Json> {
    fn first(node: &Node, choice: usize) -> Option<(Node, usize)> {
        let with = |value| Some(Node::new(value));
        match &node.value {
            Value::Expand(items) => Some((items.get(choice)?.clone(), items.len())),
            Value::List(items) => items.iter().enumerate().find_map(|(at, item)| {
                let (new, of) = first(item, choice)?;
                let mut items = items.clone();
                items[at] = new;
                Some((with(Value::List(items))?, of))
            }),
            Value::Map(entries) => entries.iter().enumerate().find_map(|(at, (_, item))| {
                let (new, of) = first(item, choice)?;
                let mut entries = entries.clone();
                entries[at].1 = new;
                Some((with(Value::Map(entries))?, of))
            }),
            _ => None,
        }
    }
    match first(node, 0) {
        None => vec![node.to_json()],
        Some((_, of)) => (0..of)
            .flat_map(|choice| by_choosing(&first(node, choice).unwrap().0))
            .collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn count_is_the_product_of_alternatives(sizes in prop::collection::vec(1..5usize, 0..6)) {
        let yaml: String = sizes
            .iter()
            .enumerate()
            .map(|(key, size)| format!("k{key}: !expand {:?}\n", (0..*size).collect::<Vec<_>>()))
            .collect();
        let product: usize = sizes.iter().product();
        let cells = cells(&yaml);
        prop_assert_eq!(cells.len(), product);
        // Every combination once, in the order of nested loops.
        let combinations: BTreeSet<String> = cells.iter().map(|cell| cell.document.root.to_json().to_string()).collect();
        prop_assert_eq!(combinations.len(), product);
        for (index, cell) in cells.iter().enumerate() {
            let mut rest = index;
            for (key, size) in sizes.iter().enumerate().rev() {
                let name = format!("k{key}");
                prop_assert_eq!(cell.document.root.get(&name).unwrap().to_json(), json!(rest % size));
                rest /= size;
            }
        }
    }

    #[test]
    fn expansion_matches_reference_implementation(root in tree()) {
        let root = Node::new(Value::Map(vec![("root".to_owned(), root)]));
        let documents = Documents::new(root.clone());
        prop_assume!(documents.count() <= 2_000);
        let cells = documents.cells().unwrap();
        prop_assert_eq!(cells.len() as u64, documents.count());
        let found: Vec<Json> = cells.iter().map(|cell| cell.document.root.to_json()).collect();
        prop_assert_eq!(&found, &by_choosing(&root));
        // Settings distinguish all that differs.
        for (one, other) in cells.iter().zip(cells.iter().skip(1)) {
            prop_assert_eq!(
                one.settings == other.settings,
                one.document.root.to_json() == other.document.root.to_json()
            );
        }
    }

    #[test]
    fn text_with_tags_does_not_panic(
        text in "([ \n:,&*\\[\\]{}]|a|<<|!expand |!include |x\\.yml|s\\.yml|1|&a |\\*a|- |: |\n  ){0,60}"
    ) {
        if let Ok(documents) = read(&[("s.yml", &text), ("x.yml", "- !expand [1, {a: 2}]")])
            && let Ok(cells) = documents.cells()
        {
            prop_assert_eq!(cells.len() as u64, documents.count());
            for cell in cells {
                let _ = cell.document.check(&generators());
            }
        }
    }
}

/// Editors validate a file against this schema.
#[test]
fn file_schema_accepts_a_scenario_or_a_list() {
    let schema = veeksha_scenario::file_schema(&generators());
    let problems = |yaml: &str| -> Vec<String> {
        let mut nothing = |_: &Path| Err(String::new());
        // Any value as a tree.
        let documents =
            Documents::from_yaml(&format!("file: {yaml}"), Path::new("s.yml"), &mut nothing).unwrap();
        let root = documents.single().unwrap().root;
        veeksha_scenario::check_value(&schema, root.get("file").unwrap(), "")
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(problems("{seed: 1}"), [""; 0]);
    assert_eq!(problems("[{seed: 1}, {client: {model: m}}]"), [""; 0]);
    assert!(problems("[{seed: 1}, {sed: 2}]")[0].contains("did you mean `seed`"));
    assert_eq!(problems("5").len(), 1);
    assert_eq!(schema["title"], "veeksha-host scenario");
}
