//! Every rule, with the exact message.

mod common;

use common::{bad, check};
use veeksha_scenario::{Document, Node, Place, Value};

#[test]
fn unknown_keys_suggest_the_nearest_name() {
    for (yaml, line) in [
        ("sed: 1", "s.yml:1: sed: unknown key; did you mean `seed`?"),
        (
            "runtime:\n  max_session: 5",
            "s.yml:2: runtime.max_session: unknown key; did you mean `max_sessions`?",
        ),
        (
            "traffic_scheduler:\n  type: rate\n  interval_generator:\n    arival_rate: 3",
            "s.yml:4: traffic_scheduler.interval_generator.arival_rate: unknown key; did you mean `arrival_rate`?",
        ),
        (
            "runtime:\n  plugin_limits:\n    memory: 5",
            "s.yml:3: runtime.plugin_limits.memory: unknown key; did you mean `memory_mib`?",
        ),
        (
            "evaluators:\n  - type: performance\n    slos:\n      - metric: ttfc\n        value: 1\n        percentil: 0.9",
            "s.yml:6: evaluators[0].slos[0].percentil: unknown key; did you mean `percentile`?",
        ),
        (
            "session_generator:\n  channels:\n    - type: text\n      body_length_generator:\n        type: fixed\n        vaule: 3",
            "s.yml:6: session_generator.channels[0].body_length_generator.vaule: unknown key; did you mean `value`?",
        ),
    ] {
        assert_eq!(bad(yaml), line);
    }
}

#[test]
fn key_of_another_variant_lists_the_valid_ones() {
    assert_eq!(
        bad("traffic_scheduler:\n  interval_generator:\n    type: gamma\n    interval: 3"),
        "s.yml:4: traffic_scheduler.interval_generator.interval: unknown key; valid keys: `arrival_rate`, `cv`, `type`"
    );
}

#[test]
fn table_is_placed_at_its_key() {
    assert_eq!(
        bad("seed: 1\nruntimes:\n  max_sessions: 5"),
        "s.yml:2: runtimes: unknown key; did you mean `runtime`?"
    );
}

#[test]
fn wrong_types_name_expected_and_actual() {
    for (yaml, line) in [
        (
            "seed: abc",
            "s.yml:1: seed: expected a whole number, got the text `abc`",
        ),
        (
            "seed: 1.5",
            "s.yml:1: seed: expected a whole number, got the number 1.5",
        ),
        (
            "seed: '1'",
            "s.yml:1: seed: expected a whole number, got the text `1`",
        ),
        (
            "seed:",
            "s.yml:1: seed: expected a whole number, got nothing (null)",
        ),
        ("seed: [1]", "s.yml:1: seed: expected a whole number, got a list"),
        (
            "output_dir: 5",
            "s.yml:1: output_dir: expected text, got the number 5",
        ),
        (
            "runtime: 5",
            "s.yml:1: runtime: expected a table of keys, got the number 5",
        ),
        (
            "runtime: [5]",
            "s.yml:1: runtime: expected a table of keys, got a list",
        ),
        (
            "runtime: {pregenerate_sessions: yes}",
            "s.yml:1: runtime.pregenerate_sessions: expected true or false, got the text `yes`",
        ),
        (
            "client: {model: 7}",
            "s.yml:1: client.model: expected text, got the number 7",
        ),
        (
            "client: {additional_sampling_params: [1]}",
            "s.yml:1: client.additional_sampling_params: expected a table of keys or text, got a list",
        ),
        (
            "traffic_scheduler: fast",
            "s.yml:1: traffic_scheduler: expected a table of keys, got the text `fast`",
        ),
        (
            "evaluators: performance",
            "s.yml:1: evaluators: expected a list, got the text `performance`",
        ),
        (
            "client: {headers: {X-A: 5}}",
            "s.yml:1: client.headers.X-A: expected text, got a number",
        ),
    ] {
        assert_eq!(bad(yaml), line);
    }
}

#[test]
fn values_out_of_range_name_their_bound() {
    for (yaml, line) in [
        ("seed: -1", "s.yml:1: seed: must be at least 0, got the number -1"),
        ("output_dir: ''", "s.yml:1: output_dir: must not be empty"),
        ("evaluators: []", "s.yml:1: evaluators: must not be empty"),
        (
            "traffic_scheduler: {type: concurrent, target_concurrent_sessions: 0}",
            "s.yml:1: traffic_scheduler.target_concurrent_sessions: must be at least 1, got the number 0",
        ),
        (
            "traffic_scheduler: {type: concurrent, rampup_seconds: -0.5}",
            "s.yml:1: traffic_scheduler.rampup_seconds: must be at least 0, got the number -0.5",
        ),
        (
            "traffic_scheduler: {interval_generator: {arrival_rate: 0}}",
            "s.yml:1: traffic_scheduler.interval_generator.arrival_rate: must be more than 0, got the number 0",
        ),
        (
            "traffic_scheduler: {interval_generator: {arrival_rate: .inf}}",
            "s.yml:1: traffic_scheduler.interval_generator.arrival_rate: expected a finite number, got an infinite number",
        ),
        (
            "traffic_scheduler: {interval_generator: {arrival_rate: .nan}}",
            "s.yml:1: traffic_scheduler.interval_generator.arrival_rate: expected a finite number, got a value that is not a number",
        ),
        (
            "evaluators: [{slos: [{metric: ttfc, value: 1, percentile: 99}]}]",
            "s.yml:1: evaluators[0].slos[0].percentile: must be at most 1, got the number 99",
        ),
        (
            "evaluators: [{target_channels: [text, text]}]",
            "s.yml:1: evaluators[0].target_channels[1]: is in the list twice",
        ),
        (
            "seed: 99999999999999999999",
            "s.yml:1: seed: must be at most 9223372036854775807, got the number 1e20",
        ),
        (
            "runtime: {num_dispatcher_threads: 0}",
            "s.yml:1: runtime.num_dispatcher_threads: must be at least 1, got the number 0",
        ),
        (
            "client: {request_timeout: 0}",
            "s.yml:1: client.request_timeout: must be more than 0, got the number 0",
        ),
    ] {
        assert_eq!(bad(yaml), line);
    }
}

#[test]
fn unknown_types_suggest_the_nearest_and_list_all() {
    for (yaml, line) in [
        (
            "traffic_scheduler:\n  type: concurent",
            "s.yml:2: traffic_scheduler.type: unknown type `concurent`; it must be `rate`, `concurrent`, `fixed_schedule` or `arrival_process`; did you mean `concurrent`?",
        ),
        (
            "session_generator: {type: sintetic}",
            "s.yml:1: session_generator.type: unknown type `sintetic`; it must be `synthetic`, `trace`, `wasm`, `replay` or `lua`; did you mean `synthetic`?",
        ),
        (
            "session_generator: {channels: [{type: text, body_length_generator: {type: uniforn}}]}",
            "s.yml:1: session_generator.channels[0].body_length_generator.type: unknown type `uniforn`; it must be `fixed`, `uniform`, `fixed_stair` or `zipf`; did you mean `uniform`?",
        ),
        (
            "client: {type: 5}",
            "s.yml:1: client.type: expected `openai_chat_completions`, `openai_completions`, `openai_responses`, `anthropic_messages`, `tgi_generate_stream`, `template` or `wasm`, got the number 5",
        ),
        (
            "evaluators: [{slos: [{metric: ttft, value: 1}]}]",
            "s.yml:1: evaluators[0].slos[0].metric: expected `ttfc`, `ttfc_from_intended`, `tbc`, `tpot`, `end_to_end_latency`, `e2e_from_intended`, `normalized_end_to_end_latency`, `output_throughput`, `session_duration` or `e2e`, got the text `ttft`; did you mean `ttfc`?",
        ),
    ] {
        assert_eq!(bad(yaml), line);
    }
}

#[test]
fn unsupported_veeksha_features_are_named() {
    for (yaml, line) in [
        (
            "session_generator: {type: trace, trace_file: t.jsonl, flavor: {type: audio}}",
            "s.yml:1: session_generator.flavor.type: `audio` is not supported by this version yet; it has `mooncake`, `request_log`, `timed_synthetic_session`, `wasm` or `lua`",
        ),
        (
            "session_generator: {type: lmeval}",
            "s.yml:1: session_generator.type: `lmeval` is not supported by this version yet; it has `synthetic`, `trace`, `wasm`, `replay` or `lua`",
        ),
        (
            "traffic_scheduler: {type: sequential_launch}",
            "s.yml:1: traffic_scheduler.type: `sequential_launch` is not supported by this version yet; it has `rate`, `concurrent`, `fixed_schedule` or `arrival_process`",
        ),
        (
            "client: {type: openai_router}",
            "s.yml:1: client.type: `openai_router` is not supported by this version yet; it has `openai_chat_completions`, `openai_completions`, `openai_responses`, `anthropic_messages`, `tgi_generate_stream`, `template` or `wasm`",
        ),
        (
            "evaluators: [{type: accuracy_lmeval}]",
            "s.yml:1: evaluators[0].type: `accuracy_lmeval` is not supported by this version yet; it has `performance`, `wasm` or `lua`",
        ),
        (
            "server:\n  type: vllm",
            "s.yml:1: server: not supported by this version yet; remove it",
        ),
        (
            "wandb: {enabled: true}",
            "s.yml:1: wandb: not supported by this version yet; remove it",
        ),
        (
            "evaluators: [{audio_channel: {interactivity_enabled: true}}]",
            "s.yml:1: evaluators[0].audio_channel: not supported by this version yet; remove it",
        ),
        (
            "endpoint: {api_base: 'http://h/v1', engine_type: vllm}",
            "s.yml:1: endpoint.engine_type: not supported by this version yet; remove it",
        ),
    ] {
        assert_eq!(bad(yaml), line);
    }
}

#[test]
fn disabled_features_may_be_unsupported() {
    for yaml in [
        "server: null",
        "server:",
        "wandb: {enabled: false, project: p}",
        "evaluators: [{text_channel: {decode_window_enabled: false}}]",
        "evaluators: [{audio_channel: null, image_channel: {}}]",
    ] {
        assert!(check(yaml).is_ok(), "{yaml}");
    }
}

#[test]
fn names_missing_keys() {
    for (yaml, line) in [
        (
            "session_generator: {type: wasm}",
            "s.yml:1: session_generator: `plugin` is missing",
        ),
        ("endpoint: {model: m}", "s.yml:1: endpoint: `api_base` is missing"),
        (
            "evaluators: [{slos: [{metric: ttfc}]}]",
            "s.yml:1: evaluators[0].slos[0]: `value` is missing",
        ),
        (
            "evaluators: [{slos: [{value: 1}]}]",
            "s.yml:1: evaluators[0].slos[0]: `metric` is missing",
        ),
    ] {
        assert_eq!(bad(yaml), line);
    }
    // Without shipped generators there is no default generator.
    let problems = Document::from_yaml("seed: 1", "s.yml")
        .unwrap()
        .check(&Default::default())
        .unwrap_err();
    assert_eq!(problems.to_string(), "s.yml:1: `session_generator` is missing");
}

#[test]
fn rules_of_headers() {
    for (yaml, line) in [
        (
            "client: {headers: {x-a: 'b {{session.labels.tenant}}'}}",
            "s.yml:1: client.headers.x-a: unknown placeholder `{{session.labels.tenant}}`; did you mean \
             `{{session.label.tenant}}`?",
        ),
        (
            "client: {targets: [{api_base: 'http://h', headers: {x-a: '{{session_id}}'}}]}",
            "s.yml:1: client.targets[0].headers.x-a: unknown placeholder `{{session_id}}`; did you mean `{{session.id}}`?",
        ),
        (
            "client: {headers: {x-a: '{{run.id'}}",
            "s.yml:1: client.headers.x-a: `{{` has no `}}` after it",
        ),
        (
            "client: {headers: {Traceparent: a}, traceparent: true}",
            "s.yml:1: client.traceparent: `headers` has a `traceparent`; remove one of the two",
        ),
        (
            "client: {session_headers: dinamo}",
            "s.yml:1: client.session_headers: expected `dynamo`, `llm-d`, `smg`, `claude-code`, `opencode` or `codex`, \
             got the text `dinamo`; did you mean `dynamo`?",
        ),
    ] {
        assert_eq!(bad(yaml), line);
    }
}

#[test]
fn rules_over_several_keys() {
    for (yaml, line) in [
        (
            "runtime:\n  max_sessions: -1\n  pregenerate_sessions: true",
            "s.yml:3: runtime.pregenerate_sessions: needs a positive `runtime.max_sessions`",
        ),
        (
            "runtime:\n  max_sessions: 0",
            "s.yml:2: runtime.max_sessions: no session would run; give a positive number, or -1 for no limit",
        ),
        (
            "runtime: {post_timeout_grace_seconds: -0.5}",
            "s.yml:1: runtime.post_timeout_grace_seconds: must be -1 (wait for all), 0 or more",
        ),
        (
            "evaluators:\n  - type: performance\n  - type: performance",
            "s.yml:3: evaluators[1]: there is already a `performance` evaluator; put all `slos` into one",
        ),
        (
            "evaluators: [{slos: ['p99(ttfc) < 1s', 'p99(ttfc)<1000ms']}]",
            "s.yml:1: evaluators[0].slos[1]: duplicate objective `p99(ttfc) < 1s`; give it a unique `name`",
        ),
        (
            "evaluators: [{text_channel: {decode_window_config: {min_active_requests: 4}}}]",
            "s.yml:1: evaluators[0].text_channel.decode_window_config: has no effect unless `decode_window_enabled` is true",
        ),
        (
            "evaluators: [{slos: [{metric: ttfc, value: 1}, {metric: ttfc, value: 2}]}]",
            "s.yml:1: evaluators[0].slos[1]: duplicate objective `ttfc 0.99`; give it a unique `name`",
        ),
        (
            "session_generator:\n  channels:\n  - type: text\n    body_length_generator:\n      type: uniform\n      min: 20\n      max: 10",
            "s.yml:6: session_generator.channels[0].body_length_generator.min: must be at most `max`: 20 is more than 10",
        ),
        (
            // The default of `max` is 12.
            "session_generator:\n  output_spec:\n    text:\n      output_length_generator:\n        min: 20",
            "s.yml:5: session_generator.output_spec.text.output_length_generator.min: must be at most `max`: 20 is more than 12",
        ),
        (
            "session_generator: {type: lua}",
            "s.yml:1: session_generator: a `lua` generator needs a function: `sessions` or `agent`",
        ),
        (
            "session_generator: {type: lua, sessions: f}",
            "s.yml:1: session_generator.sessions: expected a function, which only a Lua scenario can contain, got the text `f`",
        ),
        (
            "client: {max_tokens_param: max_tokens, min_tokens_param: max_tokens}",
            "s.yml:1: client.min_tokens_param: must differ from `max_tokens_param`",
        ),
        (
            "client: {max_tokens_param: ''}",
            "s.yml:1: client.max_tokens_param: must not be empty; null sends none",
        ),
        (
            "client: {use_min_tokens_prompt_fallback: true, min_tokens_prompt: go on}",
            "s.yml:1: client.min_tokens_prompt: must contain `{tokens}`, which is replaced by the number",
        ),
        (
            "client: {additional_sampling_params: '{temperature: 0}'}",
            "s.yml:1: client.additional_sampling_params: not valid JSON: key must be a string at line 1 column 2",
        ),
        (
            "client: {additional_sampling_params: '[1]'}",
            "s.yml:1: client.additional_sampling_params: the JSON text must be an object, as in `{\"temperature\": 0}`",
        ),
        (
            "client: {headers: {'X A': b}}",
            "s.yml:1: client.headers.X A: not a valid header name: use letters, digits and dashes",
        ),
        (
            "client: {headers: {X-A: \"a\\nb\"}}",
            "s.yml:1: client.headers.X-A: a header's value must be one line of ASCII",
        ),
        (
            "client: {headers: {Host: b}}",
            "s.yml:1: client.headers.Host: this header is set by the client itself",
        ),
        (
            "client: {headers: {X-A: a, x-a: b}}",
            "s.yml:1: client.headers.x-a: the same header as `X-A`: names of headers ignore case",
        ),
        (
            "tools: {s: {result_tokens: {type: constant, value: 16777217}}}",
            "s.yml:1: tools.s.result_tokens: a result has at most 16777216 tokens",
        ),
        (
            "client: {headers: {accept-encoding: gzip}}",
            "s.yml:1: client.headers.accept-encoding: this header is set by the client itself",
        ),
        (
            "client: {api_key: \"sk-1\\n\"}",
            "s.yml:1: client.api_key: an API key must be one line of ASCII without leading or trailing spaces",
        ),
    ] {
        assert_eq!(bad(yaml), line);
    }
}

#[test]
fn addresses() {
    for (address, message) in [
        (
            "localhost:8000/v1",
            "`localhost:8000/v1` has no scheme; write `http://localhost:8000/v1`",
        ),
        (
            "ftp://h/v1",
            "the scheme `ftp` is unknown; it must be `http`, `https` or `sim`",
        ),
        (
            "http:///v1",
            "`http:///v1` has no host; write it as in `http://localhost:8000/v1`",
        ),
        ("sim://", "`sim://` has no host; write it as in `sim://PROFILE`"),
        (
            "http://h:80000/v1",
            "`80000` is not a port; a port is a number from 1 to 65535",
        ),
        (
            "http://h:0/v1",
            "`0` is not a port; a port is a number from 1 to 65535",
        ),
        ("http://h /v1", "an address must not contain spaces"),
    ] {
        assert_eq!(
            bad(&format!("client: {{api_base: '{address}'}}")),
            format!("s.yml:1: client.api_base: {message}")
        );
    }
    for address in [
        "http://localhost:8000/v1",
        "https://[::1]:8000/v1",
        "https://[::1]/v1",
        "sim://default",
        "HTTP://u:p@h",
    ] {
        assert!(
            check(&format!("client: {{api_base: '{address}'}}")).is_ok(),
            "{address}"
        );
    }
}

#[test]
fn reports_all_problems_up_to_a_limit() {
    assert_eq!(
        bad("sed: 1\nruntime:\n  max_sessions: x\n  num_client_threads: 0"),
        "s.yml:1: sed: unknown key; did you mean `seed`?\n\
         s.yml:3: runtime.max_sessions: expected a whole number, got the text `x`\n\
         s.yml:4: runtime.num_client_threads: must be at least 1, got the number 0"
    );
    for (count, more) in [(100, "and 80 more problems"), (1000, "and 980 more problems")] {
        let many: String = (0..count).map(|i| format!("zzz{i}: 1\n")).collect();
        let lines = bad(&many);
        assert_eq!(lines.lines().count(), 21);
        assert!(lines.ends_with(more), "{lines}");
    }
}

#[test]
fn former_name_of_a_key_leads_to_the_new_one() {
    for (yaml, path) in [
        (
            "session_generator: {type: wasm, path: a.wasm}",
            "session_generator",
        ),
        (
            "evaluators: [{type: wasm, path: a.wasm, config: {}}]",
            "evaluators[0]",
        ),
        ("client: {type: wasm, codec: {path: a.wasm}}", "client.codec"),
        (
            "traffic_scheduler: {type: arrival_process, process: {type: wasm, path: a.wasm}}",
            "traffic_scheduler.process",
        ),
    ] {
        assert_eq!(
            bad(yaml),
            format!("s.yml:1: {path}.path: this key is now named `plugin`")
        );
    }
    // The former name is never suggested.
    assert_eq!(
        bad("session_generator: {type: wasm, plugin: a.wasm, paht: b}"),
        "s.yml:1: session_generator.paht: unknown key; valid keys: `config`, `files`, `grants`, `instances`, `limits`, `on_trap`, `plugin`, `recorded_run`, `type`"
    );
}

#[test]
fn an_empty_list_is_not_a_table() {
    assert_eq!(
        bad("runtime: []"),
        "s.yml:1: runtime: expected a table of keys, got a list"
    );
    assert_eq!(
        bad("session_generator: {type: wasm, plugin: a.wasm, config: []}"),
        "s.yml:1: session_generator.config: expected a table of keys, got a list"
    );
}

#[test]
fn values_that_may_be_secret_are_not_repeated() {
    for (yaml, line) in [
        (
            "client:\n  headers: hidden-17",
            "s.yml:2: client.headers: expected a table of keys, got a text",
        ),
        (
            "client:\n  headers: {x-api-key: 1234}",
            "s.yml:2: client.headers.x-api-key: expected text, got a number",
        ),
        (
            "client:\n  api_key: 1234",
            "s.yml:2: client.api_key: expected text, got a number",
        ),
    ] {
        assert_eq!(bad(yaml), line);
    }
}

#[test]
fn too_large_a_value_is_distinguished_from_too_deep_a_one() {
    let schema = serde_json::json!({"$defs": {"List": {"type": "array", "items": {"$ref": "#/$defs/List"}}}, "$ref": "#/$defs/List"});
    let mut deep = Node::new(Value::List(Vec::new()));
    for _ in 0..200 {
        deep = Node::new(Value::List(vec![deep]));
    }
    let problem = &veeksha_scenario::check_value(&schema, &deep, "a")[0];
    assert_eq!(
        problem.message,
        "is nested more than 128 levels deep and cannot be checked"
    );
    let items = vec![Node::new(Value::List(Vec::new())); 1_100_000];
    let wide = Node::new(Value::List(items));
    let problem = &veeksha_scenario::check_value(&schema, &wide, "a")[0];
    assert!(
        problem
            .message
            .starts_with("the check ends here after 2000000 steps"),
        "{problem}"
    );
}

#[test]
fn thresholds_are_in_order() {
    let message = "must be at most `invalid`: a run is degraded before it is invalid";
    assert_eq!(
        bad("certificate: {degraded: 0.5}"),
        format!("s.yml:1: certificate.degraded: {message}")
    );
    assert_eq!(
        bad("certificate: {simulator: {degraded: 0.5, invalid: 0.2}}"),
        format!("s.yml:1: certificate.simulator.degraded: {message}")
    );
    assert!(check("certificate: {simulator: {degraded: 0.5, invalid: 0.5}}").is_ok());
}

#[test]
fn another_word_for_a_direction_suggests_its_name() {
    let text = bad("evaluators: [{type: lua, metrics: {a: {better: lower}}}]");
    assert!(text.contains("did you mean `less`?"), "{text}");
}

#[test]
fn functions_and_places_of_lua() {
    let at = |line| Place {
        file: "s.lua".into(),
        line,
    };
    let node = |value, line| Node::at(value, at(line));
    let map = |entries: Vec<(&str, Node)>| {
        Value::Map(
            entries
                .into_iter()
                .map(|(key, node)| (key.to_owned(), node))
                .collect(),
        )
    };
    let scenario = |generator: Vec<(&str, Node)>| {
        Document::new(node(map(vec![("session_generator", node(map(generator), 2))]), 1))
            .check(&common::generators())
    };
    let kind = || ("type", node(Value::Text("lua".into()), 3));
    let function = |line| node(Value::Function, line);

    let two = scenario(vec![kind(), ("agent", function(4)), ("sessions", function(5))]).unwrap_err();
    assert_eq!(
        two.to_string(),
        "s.lua:4: session_generator.agent: give `sessions` or `agent`, not both"
    );

    let wrong = scenario(vec![kind(), ("agent", node(Value::Int(1), 4))]).unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "s.lua:4: session_generator.agent: expected a function, which only a Lua scenario can contain, got the number 1"
    );

    let stray = scenario(vec![("channels", function(7))]).unwrap_err();
    assert_eq!(
        stray.to_string(),
        "s.lua:7: session_generator.channels: expected a list, got a function"
    );

    let deep = scenario(vec![
        ("type", node(Value::Text("wasm".into()), 3)),
        ("plugin", node(Value::Text("a.wasm".into()), 3)),
        ("config", node(map(vec![("anything", function(8))]), 8)),
    ])
    .unwrap_err();
    assert_eq!(
        deep.to_string(),
        "s.lua:8: session_generator.config.anything: a function is not allowed here"
    );

    let good = scenario(vec![
        kind(),
        ("sessions", function(5)),
        ("length", node(Value::Float(3.0), 6)),
    ])
    .unwrap();
    assert_eq!(
        good.session_generator,
        veeksha_scenario::Generator::Lua {
            kind: veeksha_scenario::LuaKind::Sessions,
            length: Some(3),
            guarantees: Default::default(),
            files: Default::default(),
            recorded_run: None,
            place: Some(at(5)),
        }
    );
}
