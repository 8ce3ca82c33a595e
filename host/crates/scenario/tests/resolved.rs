//! The resolved scenario as YAML: complete, readable again, without secrets.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "outside a test function the configuration does not know that this is a test"
)]

mod common;

use common::{generators, good};
use proptest::prelude::*;
use veeksha_scenario::{Client, ComponentUse, Document, Generator, Scenario};

fn again(scenario: &Scenario) -> Scenario {
    let yaml = scenario.to_yaml();
    match Document::from_yaml(&yaml, "config.yml")
        .unwrap()
        .check(&generators())
    {
        Ok(scenario) => scenario,
        Err(problems) => panic!("{problems}\n{yaml}"),
    }
}

#[test]
fn writes_every_key_with_its_value() {
    let yaml = good("").to_yaml();
    for line in [
        "output_dir: benchmark_output\n",
        "seed: 42\n",
        "session_generator:\n  type: synthetic\n",
        "traffic_scheduler:\n  type: rate\n  cancel_session_on_failure: true\n",
        "    type: poisson\n    arrival_rate: 1.0\n",
        "  max_tokens_param: max_completion_tokens\n",
        "  max_sessions: 25\n",
        "trace_recorder:\n  decisions: true\n  enabled: true\n  include_content: false\n",
    ] {
        assert!(yaml.contains(line), "{line} is not in\n{yaml}");
    }
}

#[test]
fn written_scenario_round_trips() {
    for yaml in [
        "",
        "traffic_scheduler: {type: concurrent, target_concurrent_sessions: 7, rampup_seconds: 0.25}",
        "traffic_scheduler: {interval_generator: {type: gamma, arrival_rate: 1e-3, cv: 0.1}}",
        "client: {type: openai_completions, max_tokens_param: null, ignore_eos: null, model: '5', tokenizer: 'null'}",
        "client: {headers: {Accept: 'yes', User-Agent: '1.0'}, additional_sampling_params: {stop: [\"\\n\", '- x'], a: null, b: 1.5}}",
        "endpoint: {api_base: 'https://h:1/v1', model: m}",
        "session_generator: {type: wasm, plugin: a/b.wasm, config: {x: [1, {y: 'no'}], z: ''}, files: {d: d.txt}}",
        "session_generator: {type: wasm, plugin: b.wasm, recorded_run: out/latest}",
        "session_generator: {type: replay, run: out/latest, files: {a: a.png}}",
        "session_generator: {session_graph: {type: branching}, channels: [{type: text, body_length_generator: {type: fixed_stair}}]}",
        "evaluators: [{slos: [{metric: e2e, value: 30, name: 'P99: all'}, {metric: tbc, value: 1e-9}]}]",
        "runtime: {max_sessions: -1, benchmark_timeout: 0, num_client_threads: 3, plugin_limits: {memory_mib: 17}}",
        "output_dir: '~'",
    ] {
        let scenario = good(yaml);
        assert_eq!(again(&scenario), scenario, "{yaml}");
    }
}

#[test]
fn secrets_are_neither_written_nor_printed() {
    let scenario = good(
        "
client:
  api_base: https://user:SECRET1@host/v1?key=SECRET2&version=3
  api_key: SECRET3
  address_append_value: chat/completions?sig=SECRET10
  proxy: http://SECRET11:SECRET12@proxy:3128
  headers:
    Authorization: Bearer SECRET4
    X-Api-Key: SECRET5
    Cookie: SECRET6
    bearer: SECRET13
    x-jwt: SECRET14
    sessionid: SECRET15
    x-pass: SECRET16
    x-access: SECRET17
    X-Request-Id: seen
  additional_sampling_params:
    {api_key: SECRET7, deep: {password: SECRET8}, max_tokens: 5, url: 'http://SECRET18@h', headers: {x-a: SECRET19}}
session_generator: {type: wasm, plugin: a.wasm, config: {hf_token: SECRET9, user: seen}}
",
    );
    let yaml = scenario.to_yaml();
    assert!(!yaml.contains("SECRET"), "{yaml}");
    for kept in [
        "https://***@host/v1?key=***&version=3",
        "chat/completions?sig=***",
        "http://***@proxy:3128",
        "X-Request-Id: seen",
        "max_tokens: 5",
        "user: seen",
    ] {
        assert!(yaml.contains(kept), "{kept} is not in\n{yaml}");
    }
    assert!(!format!("{:?}", scenario.client.api_key).contains("SECRET"));
    let other = good("endpoint: {api_base: 'http://h/v1', api_key: SECRET}").to_yaml();
    assert!(!other.contains("SECRET"), "{other}");
}

#[test]
fn redacted_secret_is_not_sent() {
    let scenario = good("client: {api_base: 'http://h/v1?k=v', api_key: k, headers: {X-Run: r, Accept: a}}");
    let read = again(&scenario);
    assert_eq!(read.client.api_key, None);
    assert_eq!(read.client.headers.keys().collect::<Vec<_>>(), ["Accept"]);
    assert_eq!(
        read.notes,
        [
            "client.api_key was removed from this configuration when it was written; the environment variable \
             OPENAI_API_KEY is used",
            "client.api_base has `***` where a secret was removed when this configuration was written; set it again to send requests",
            "client.headers[X-Run] was removed from this configuration when it was written; it is not sent",
        ]
    );
    // All other keys are unchanged.
    let expected = Client {
        api_key: None,
        api_base: Some("http://h/v1?k=***".to_owned()),
        headers: [("Accept".to_owned(), "a".to_owned())].into(),
        ..scenario.client
    };
    assert_eq!(read.client, expected);
}

#[test]
fn function_is_written_as_a_note() {
    let scenario = Scenario {
        session_generator: Generator::Lua {
            kind: veeksha_scenario::LuaKind::Agent,
            length: Some(5),
            guarantees: Default::default(),
            files: Default::default(),
            recorded_run: Some("earlier/run".into()),
            place: Some(veeksha_scenario::Place {
                file: "s.lua".into(),
                line: 12,
            }),
        },
        ..good("")
    };
    let yaml = scenario.to_yaml();
    assert!(
        yaml.contains(
            "session_generator:\n  type: lua\n  agent: \"function at s.lua:12\"\n  files: {}\n  guarantees:\n    distinct_prompts: false\n  length: 5\n"
        ) || yaml.contains(
            "session_generator:\n  type: lua\n  agent: function at s.lua:12\n  files: {}\n  length: 5\n"
        ),
        "{yaml}"
    );
    let problems = Document::from_yaml(&yaml, "config.yml")
        .unwrap()
        .check(&generators())
        .unwrap_err();
    assert_eq!(
        problems.to_string(),
        "config.yml:5: session_generator.agent: expected a function, which only a Lua scenario can contain, got the text \
         `function at s.lua:12`"
    );
}

proptest! {
    /// Any text survives the file, including text that YAML could interpret otherwise.
    #[test]
    fn arbitrary_text_round_trips(text in any_text(), key in any_text()) {
        let mut scenario = good("");
        scenario.client.model = Some(text.clone());
        scenario.client.min_tokens_prompt = format!("{text}{{tokens}}");
        scenario.session_generator = Generator::Wasm {
            component: ComponentUse {
                plugin: "a.wasm".to_owned(),
                config: [(key, serde_json::json!([text, {"deep": "x"}]))].into_iter().collect(),
                ..ComponentUse::default()
            },
            recorded_run: Some("run".into()),
        };
        prop_assert_eq!(again(&scenario), scenario);
    }

    /// Any number survives the file to its last bit.
    #[test]
    fn arbitrary_numbers_round_trip(float in 1e-300_f64..1e300, negative in any::<bool>(), whole in any::<i64>()) {
        let mut scenario = good("");
        let float = if negative { -float } else { float };
        scenario.client.additional_sampling_params =
            serde_json::json!({"float": float, "whole": whole}).as_object().unwrap().clone();
        prop_assert_eq!(again(&scenario), scenario);
    }
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,20}",
        "[ \t\n:#,&*!|>'\"%@`{}\\[\\]?~=<.-]{0,12}",
        "(null|true|no|~|1e5|0x1f|1_000|\\.inf|2026-01-01|<<|---|- a|a: b|a #b|\"|'| a|a |\n|a\nb\n| \n a)",
        any::<String>(),
    ]
    // Redacted secrets and values that no key accepts are tested elsewhere.
    .prop_filter("stars", |text| text != "***")
}

#[test]
fn name_description_and_tags_round_trip() {
    let scenario = good("name: Chat\ndescription: Twenty users.\ntags: [chat, nightly]\n");
    assert_eq!(scenario.name.as_deref(), Some("Chat"));
    assert_eq!(scenario.tags, ["chat", "nightly"]);
    let again = good(&scenario.to_yaml());
    assert_eq!(again.description.as_deref(), Some("Twenty users."));
    assert_eq!(again, scenario);
    assert!(!good("seed: 1").to_yaml().contains("tags"));
}
