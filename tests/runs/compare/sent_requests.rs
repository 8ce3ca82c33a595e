//! Digests of the request bodies that a run sent.

use serde_json::Value;

use super::compared;
use crate::results::json;
use crate::simulated::real;

/// A scenario with single requests, so that no body repeats an answer.
fn scenario(temperature: &str, threads: u32) -> String {
    format!(
        r#"
return {{
  seed = 7,
  session_generator = {{ type = "lua", sessions = function(index, rng)
    return {{ requests = {{ {{ user = synthetic(rng:int(5, 40)), output = {{ tokens = 4, exact = true }} }} }} }}
  end }},
  traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 8 }},
  client = {{
    type = "openai_chat_completions", api_base = "sim://fast", model = "m",
    additional_sampling_params = {{ temperature = {temperature} }},
  }},
  runtime = {{ max_sessions = 40, num_client_threads = {threads}, num_plugin_threads = {threads} }},
}}
"#
    )
}

#[test]
fn sent_requests_differ_with_a_parameter_and_not_with_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |name: &str, temperature: &str, threads: u32| {
        let within = folder.path().join(name);
        std::fs::create_dir_all(&within).expect("a folder");
        real(&within, "s.lua", &scenario(temperature, threads), 0)
    };
    let base = run("base", "0.5", 1);
    let threaded = run("threaded", "0.5", 3);
    let warmer = run("warmer", "0.6", 1);

    let [of_base, of_threaded, of_warmer] = [&base, &threaded, &warmer].map(|run| {
        let summary = json(run, "metrics/summary_stats.json");
        assert_eq!(summary["sent_requests"]["requests"], 40);
        summary
    });
    assert_eq!(of_base["workload"], of_warmer["workload"]);
    assert_eq!(of_base["sent_requests"], of_threaded["sent_requests"]);
    assert_ne!(
        of_base["sent_requests"]["digest"],
        of_warmer["sent_requests"]["digest"]
    );

    let remarked = |other| {
        let comparison = compared(&[&base, other], &["--allow-invalid"], 0);
        let candidate: &Value = &comparison["candidates"][0];
        candidate["remarks"]
            .to_string()
            .contains("sent different requests within the first session")
    };
    assert!(remarked(&warmer));
    assert!(!remarked(&threaded));
}
