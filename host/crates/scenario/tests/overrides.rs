//! Overrides of the command line: their detection and their effect.

mod common;

use common::with;
use veeksha_scenario::{Document, Generator, IntervalGenerator, Secret, Traffic, dotted_flags};

fn split(line: &[&str]) -> (Vec<String>, Vec<(String, String)>) {
    dotted_flags(line.iter().map(|word| (*word).to_owned()).collect())
}

#[test]
fn distinguishes_dotted_flags_from_program_flags() {
    type Row = (
        &'static [&'static str],
        &'static [&'static str],
        &'static [(&'static str, &'static str)],
    );
    let table: &[Row] = &[
        (&["v", "run", "s.lua"], &["v", "run", "s.lua"], &[]),
        (
            &["v", "run", "--a.b", "5", "s.lua"],
            &["v", "run", "s.lua"],
            &[("a.b", "5")],
        ),
        (&["v", "--x.y=5", "run"], &["v", "run"], &[("x.y", "5")]),
        (&["--x.y=a=b"], &[], &[("x.y", "a=b")]),
        (&["--x.y="], &[], &[("x.y", "")]),
        (&["--c[0].b.value", "8"], &[], &[("c[0].b.value", "8")]),
        (&["--client.headers[a=b]=c"], &[], &[("client.headers[a=b]", "c")]),
        (&["--a.b=[1, 2]"], &[], &[("a.b", "[1, 2]")]),
        (
            &["--runtime.max_sessions", "-1", "s.lua"],
            &["s.lua"],
            &[("runtime.max_sessions", "-1")],
        ),
        (
            &["--a.values", "128", "256", "512", "s.lua"],
            &["s.lua"],
            &[("a.values", "[128, 256, 512]")],
        ),
        (
            &["--a.values", "1", "--b.c", "2"],
            &[],
            &[("a.values", "1"), ("b.c", "2")],
        ),
        (&["--a.name", "x", "run"], &["run"], &[("a.name", "x")]),
        (&["--a.on"], &[], &[("a.on", "")]),
        (&["--a.on", "--quiet"], &["--quiet"], &[("a.on", "")]),
        (
            &["--seed", "7", "--output_dir", "o", "--output-dir=p"],
            &[],
            &[("seed", "7"), ("output_dir", "o"), ("output_dir", "p")],
        ),
        (
            &["--name", "base line", "--description=d", "--tags", "[a, b]"],
            &[],
            &[("name", "base line"), ("description", "d"), ("tags", "[a, b]")],
        ),
        (
            &["--set", "a.b=c", "--port", "5"],
            &["--set", "a.b=c", "--port", "5"],
            &[],
        ),
        (
            &["--set=a.b=c", "--seeds", "5"],
            &["--set=a.b=c", "--seeds", "5"],
            &[],
        ),
        (&["run", "--", "--a.b", "5"], &["run", "--", "--a.b", "5"], &[]),
        (&["-a.b", "--.a", "--[0]"], &["-a.b", "--.a", "--[0]"], &[]),
    ];
    for (line, rest, overrides) in table {
        let (found_rest, found) = split(line);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(path, value)| (path.as_str(), value.as_str()))
            .collect();
        assert_eq!(found_rest, *rest, "{line:?}");
        assert_eq!(found, *overrides, "{line:?}");
    }
}

#[test]
fn word_takes_the_type_of_its_key() {
    let scenario = with(
        "{}",
        &[
            ("seed", "7"),
            ("output_dir", "2026"),
            ("client.model", "7"),
            ("client.api_key", "0012"),
            ("client.request_timeout", "12"),
            ("client.ignore_eos", "null"),
            ("client.max_tokens_param", "null"),
            ("client.additional_sampling_params", "{\"temperature\": 0.5}"),
            ("client.use_min_tokens_prompt_fallback", "yes"),
            ("runtime.pregenerate_sessions", "1"),
            ("runtime.num_client_threads", "4"),
            ("trace_recorder.enabled", "FALSE"),
            ("client.headers[X-Run.Id]", "12"),
            ("evaluators[0].target_channels", "text"),
        ],
    )
    .unwrap();
    assert_eq!(scenario.seed, 7);
    assert_eq!(scenario.output_dir.to_str(), Some("2026"));
    assert_eq!(scenario.client.model.as_deref(), Some("7"));
    assert_eq!(scenario.client.api_key.as_ref().map(Secret::expose), Some("0012"));
    assert_eq!(scenario.client.request_timeout, 12.0);
    assert_eq!(scenario.client.ignore_eos, None);
    assert_eq!(scenario.client.max_tokens_param, None);
    assert_eq!(scenario.client.additional_sampling_params["temperature"], 0.5);
    assert!(scenario.client.use_min_tokens_prompt_fallback);
    assert!(scenario.runtime.pregenerate_sessions);
    assert_eq!(scenario.runtime.num_client_threads, Some(4));
    assert!(!scenario.trace_recorder.enabled);
    assert_eq!(scenario.client.headers["X-Run.Id"], "12");
    let performance = common::performance(&scenario);
    assert_eq!(performance.target_channels, [veeksha_scenario::Channel::Text]);
}

#[test]
fn override_takes_precedence_over_file_and_default() {
    let yaml = "traffic_scheduler: {interval_generator: {type: gamma, cv: 2}}";
    let scenario = with(
        yaml,
        &[("traffic_scheduler.interval_generator.arrival_rate", "5")],
    )
    .unwrap();
    let Traffic::Rate(rate) = scenario.traffic_scheduler else {
        panic!("rate is the default")
    };
    assert_eq!(
        rate.interval_generator,
        IntervalGenerator::Gamma {
            arrival_rate: 5.0,
            cv: 2.0
        }
    );
    let rate = with(
        "{}",
        &[("traffic_scheduler.interval_generator.arrival_rate", "5")],
    )
    .unwrap();
    let Traffic::Rate(rate) = rate.traffic_scheduler else {
        panic!("rate is the default")
    };
    assert_eq!(
        rate.interval_generator,
        IntervalGenerator::Poisson { arrival_rate: 5.0 }
    );
}

#[test]
fn creates_missing_tables_and_lists() {
    let scenario = with(
        "{}",
        &[
            ("session_generator.channels[0].body_length_generator.max", "20"),
            (
                "session_generator.session_graph.num_request_generator.type",
                "fixed_stair",
            ),
            (
                "session_generator.session_graph.num_request_generator.values",
                "[1, 2]",
            ),
        ],
    )
    .unwrap();
    let Generator::Shipped { name, config } = scenario.session_generator else {
        panic!("synthetic is the default")
    };
    assert_eq!(name, "synthetic");
    assert_eq!(
        config["channels"],
        serde_json::json!([{
            "type": "text",
            "body_length_generator": {"type": "uniform", "min": 6, "max": 20},
            "shared_prefix_ratio": 0.0,
            "shared_prefix_probability": 1.0,
        }])
    );
    assert_eq!(config["session_graph"]["type"], "linear");
    assert_eq!(
        config["session_graph"]["num_request_generator"],
        serde_json::json!({"type": "fixed_stair", "values": [1, 2], "repeat_each": 1, "wrap": true})
    );
}

#[test]
fn lists_grow_by_one() {
    let yaml = "evaluators: [{slos: [{metric: ttfc, value: 1}]}]";
    let scenario = with(
        yaml,
        &[
            ("evaluators[0].slos[0].value", "2.5"),
            (
                "evaluators[0].slos[1]",
                "{metric: tbc, value: 0.1, percentile: 0.5}",
            ),
        ],
    )
    .unwrap();
    let performance = common::performance(&scenario);
    let veeksha_scenario::Slo::Map(veeksha_scenario::SloMap::Constant { value, .. }) = &performance.slos[0]
    else {
        panic!("{:?}", performance.slos)
    };
    assert_eq!((performance.slos.len(), *value), (2, 2.5));
}

#[test]
fn invalid_overrides_name_their_problem() {
    let yaml = "runtime: {max_sessions: 5}\nevaluators: [{type: performance}]";
    for (path, value, message) in [
        (
            "runtime.max_sessions",
            "",
            "cannot set `runtime.max_sessions` to ``: the value is missing; an empty text is written '\"\"'",
        ),
        ("runtime..x", "1", "cannot set `runtime..x`: a key is empty"),
        (
            "evaluators[0",
            "1",
            "cannot set `evaluators[0`: a bracket is not closed",
        ),
        (
            "evaluators[3].slos",
            "1",
            "cannot set `evaluators[3].slos`: `evaluators` has 1 items; the next is [1]",
        ),
        (
            "evaluators.slos",
            "1",
            "cannot set `evaluators.slos`: `evaluators` is a list; name an item, as in `evaluators[0]`",
        ),
        (
            "runtime.max_sessions.x",
            "1",
            "cannot set `runtime.max_sessions.x`: `runtime.max_sessions` is the number 5, which has no keys",
        ),
        (
            "client.headers",
            "{a: 1",
            "cannot set `client.headers` to `{a: 1`: not valid YAML: ",
        ),
        (
            "client.headers",
            "{a: 1, a: 2}",
            "cannot set `client.headers` to `{a: 1, a: 2}`: the key `a` is a duplicate; the first is on line 1",
        ),
    ] {
        let mut document = Document::from_yaml(yaml, "s.yml").unwrap();
        let error = document.set(path, value).unwrap_err().to_string();
        if message.ends_with(": ") {
            assert!(error.starts_with(message), "{error}");
        } else {
            assert_eq!(error, message);
        }
    }
}

#[test]
fn invalid_override_is_reported_with_its_path() {
    for (path, value, line) in [
        (
            "runtime.max_sesions",
            "5",
            "runtime.max_sesions: unknown key; did you mean `max_sessions`?",
        ),
        (
            "runtime.max_sessions",
            "many",
            "runtime.max_sessions: expected a whole number, got `many`",
        ),
        (
            "runtime.pregenerate_sessions",
            "maybe",
            "runtime.pregenerate_sessions: expected true or false, got `maybe`",
        ),
        ("seed", "-3", "seed: must be at least 0, got `-3`"),
        (
            "traffic_scheduler.type",
            "conc",
            "traffic_scheduler.type: unknown type `conc`; it must be `rate`, `concurrent`, `fixed_schedule` or `arrival_process`; did you mean `concurrent`?",
        ),
        ("runtime", "5", "runtime: expected a table of keys, got `5`"),
        (
            "wandb.enabled",
            "true",
            "wandb: not supported by this version yet; remove it",
        ),
    ] {
        assert_eq!(with("{}", &[(path, value)]).unwrap_err(), line);
    }
    assert!(with("{}", &[("wandb.enabled", "false")]).is_ok());
}

#[test]
fn type_names_are_case_insensitive() {
    let scenario = with("{}", &[("traffic_scheduler.type", "Concurrent")]).unwrap();
    assert!(matches!(scenario.traffic_scheduler, Traffic::Concurrent(_)));
}
