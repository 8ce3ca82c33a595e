//! Configurations of Veeksha's documentation are accepted unchanged.

mod common;

use common::{bad, good};
use veeksha_scenario::{Generator, Grace, IntervalGenerator, Slo, SloMap, SloMetric, Traffic};

#[test]
fn the_content_generation_example() {
    let scenario = good(
        "
session_generator:
  type: synthetic
  channels:
    - type: text
      body_length_generator:
        type: uniform
        min: 100
        max: 500
      shared_prefix_ratio: 0.2
      shared_prefix_probability: 0.5
  output_spec:
    text:
      output_length_generator:
        type: uniform
        min: 50
        max: 200
",
    );
    let Generator::Shipped { config, .. } = scenario.session_generator else {
        panic!("synthetic")
    };
    assert_eq!(config["channels"][0]["shared_prefix_ratio"], 0.2);
    assert_eq!(
        config["output_spec"]["text"]["output_length_generator"]["max"],
        200
    );
    assert_eq!(config["session_graph"]["num_request_generator"]["min"], 6);
}

#[test]
fn stairs_and_zipf_and_inherited_history_at_the_top() {
    let scenario = good(
        "
session_generator:
  type: synthetic
  inherit_history: true
  channels:
    - type: text
      body_length_generator:
        type: fixed_stair
        values: [128, 256, 512, 1024]  # Values to cycle through
        repeat_each: 10
        wrap: true
  output_spec:
    text:
      output_length_generator: {type: zipf, min: 50, max: 2000, alpha: 1.5}
",
    );
    let Generator::Shipped { config, .. } = scenario.session_generator else {
        panic!("synthetic")
    };
    assert_eq!(config["inherit_history"], true);
    assert_eq!(config["channels"][0]["body_length_generator"]["values"][3], 1024);
    assert_eq!(
        config["output_spec"]["text"]["output_length_generator"]["alpha"],
        1.5
    );
}

#[test]
fn a_whole_configuration() {
    let scenario = good(
        "
seed: 42
output_dir: benchmark_output
traffic_scheduler:
  type: rate
  cancel_session_on_failure: false
  interval_generator:
    type: poisson
    arrival_rate: 5.0
evaluators:
  - type: performance
    target_channels: [\"text\"]
    stream_metrics: true
    stream_metrics_interval: 5.0
    slos:
      - name: P99 TTFC
        type: constant
        metric: ttfc
        percentile: 0.99
        value: 0.5
      - {type: constant, metric: e2e, percentile: 0.9, value: 30}
client:
  type: openai_chat_completions
  api_base: http://localhost:30000/v1
  model: meta-llama/Llama-3.2-1B-Instruct
  request_timeout: 120
  max_tokens_param: max_completion_tokens
  additional_sampling_params: '{\"temperature\": 0}'
runtime:
  max_sessions: -1
  benchmark_timeout: 60
  post_timeout_grace_seconds: 10
  num_dispatcher_threads: 2
  num_completion_threads: 2
  num_client_threads: 3
trace_recorder:
  enabled: true
  include_content: true
",
    );
    let Traffic::Rate(rate) = &scenario.traffic_scheduler else {
        panic!("rate")
    };
    assert_eq!(
        rate.interval_generator,
        IntervalGenerator::Poisson { arrival_rate: 5.0 }
    );
    assert!(!scenario.traffic_scheduler.cancel_session_on_failure());
    assert_eq!(scenario.runtime.session_limit(), None);
    assert_eq!(
        scenario.runtime.timeout(),
        Some(std::time::Duration::from_secs(60))
    );
    assert_eq!(
        scenario.runtime.grace(),
        Grace::For(std::time::Duration::from_secs(10))
    );
    assert_eq!(scenario.client.additional_sampling_params["temperature"], 0);
    let performance = common::performance(&scenario);
    let metrics: Vec<SloMetric> = performance
        .slos
        .iter()
        .filter_map(|slo| match slo {
            Slo::Map(SloMap::Constant { metric, .. }) => Some(*metric),
            _ => None,
        })
        .collect();
    assert_eq!(metrics, [SloMetric::Ttfc, SloMetric::EndToEndLatency]);
}

#[test]
fn defaults_match_veeksha() {
    let scenario = good("");
    assert_eq!(scenario.seed, 42);
    assert_eq!(scenario.output_dir.to_str(), Some("benchmark_output"));
    let Traffic::Rate(rate) = &scenario.traffic_scheduler else {
        panic!("rate")
    };
    assert_eq!(
        rate.interval_generator,
        IntervalGenerator::Poisson { arrival_rate: 1.0 }
    );
    assert!(rate.cancel_session_on_failure);
    assert_eq!(scenario.runtime.session_limit(), Some(25));
    assert_eq!(scenario.runtime.benchmark_timeout, 300.0);
    assert_eq!(scenario.runtime.grace(), Grace::Unlimited);
    assert_eq!(scenario.client.request_timeout, 300.0);
    assert_eq!(
        scenario.client.max_tokens_param.as_deref(),
        Some("max_completion_tokens")
    );
    assert_eq!(scenario.client.ignore_eos, Some(true));
    // The differences: no model is assumed, and no objective is checked by default.
    assert_eq!(scenario.client.model, None);
    let performance = common::performance(&scenario);
    assert!(performance.slos.is_empty());
}

#[test]
fn completions_have_separate_defaults() {
    let client = good("client: {type: openai_completions}").client;
    assert_eq!(client.max_tokens_param.as_deref(), Some("max_tokens"));
    assert_eq!(client.address_append_value, "completions");
}

#[test]
fn null_omits_parameters() {
    let client = good("client: {max_tokens_param: null, ignore_eos: null}").client;
    assert_eq!((client.max_tokens_param, client.ignore_eos), (None, None));
}

#[test]
fn endpoint_replaces_the_client_server() {
    let yaml = "
client: {api_base: 'http://a/v1', model: a, api_key: ka}
endpoint: {api_base: 'http://b/v1', model: b}
";
    let client = good(yaml).client;
    assert_eq!(client.api_base.as_deref(), Some("http://b/v1"));
    assert_eq!(client.model.as_deref(), Some("b"));
    assert_eq!(
        client.api_key.map(|key| key.expose().to_owned()).as_deref(),
        Some("ka")
    );
}

#[test]
fn accepts_integers_with_decimal_point() {
    assert_eq!(good("runtime: {max_sessions: 5.0}").runtime.max_sessions, 5);
}

#[test]
fn sweeps_and_includes_are_refused_for_single_scenarios() {
    let error = |yaml: &str| {
        veeksha_scenario::Document::from_yaml(yaml, "s.yml")
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        error("seed: 1\nruntime:\n  max_sessions: !expand [1, 2]"),
        "s.yml:3: this is a sweep of 2 scenarios (`!expand`, or a list of scenarios); a single one is required here"
    );
    assert_eq!(
        error("client: !include client.yml"),
        "s.yml:1: cannot include `client.yml`: files cannot be included here"
    );
    assert_eq!(
        error("- seed: 1\n- seed: 2"),
        "s.yml:1: this is a sweep of 2 scenarios (`!expand`, or a list of scenarios); a single one is required here"
    );
    assert_eq!(
        bad("seed: !!str 5"),
        "s.yml:1: seed: expected a whole number, got the text `5`"
    );
}

#[test]
fn chooses_client_threads_by_load() {
    let rate = good("").traffic_scheduler;
    let runtime = good("").runtime;
    assert_eq!(
        [1, 2, 8, 64].map(|cores| runtime.client_threads(&rate, cores)),
        [1, 1, 4, 4]
    );
    let busy =
        good("traffic_scheduler: {type: concurrent, target_concurrent_sessions: 500}").traffic_scheduler;
    assert_eq!(
        [1, 2, 8].map(|cores| runtime.client_threads(&busy, cores)),
        [1, 2, 4]
    );
    assert_eq!([1, 4, 64].map(|cores| runtime.plugin_threads(cores)), [1, 2, 8]);
    let given = good("runtime: {num_client_threads: 9, num_plugin_threads: 3}").runtime;
    assert_eq!((given.client_threads(&rate, 2), given.plugin_threads(2)), (9, 3));
    assert_eq!(good("runtime: {benchmark_timeout: 0}").runtime.timeout(), None);
    assert_eq!(good("runtime: {benchmark_timeout: -1}").runtime.timeout(), None);
}

#[test]
fn null_stands_for_an_absent_key_without_a_default() {
    let scenario = good(
        "session_generator:\n  type: synthetic\n  output_spec:\n    image: null\n    audio: null\n    video: null",
    );
    let Generator::Shipped { config, .. } = scenario.session_generator else {
        panic!("a shipped generator");
    };
    assert!(config["output_spec"].get("image").is_none());
}
