//! Metrics that cannot exist in a run, so that objectives on them are rejected before it.

use veeksha_metrics::{Catalogue, Metric, Needs, RunMetric};
use veeksha_ports::Guarantees;
use veeksha_scenario::{NamedClient, Scenario};

/// Returns the metrics that have no samples without this property of the workload.
fn that_need(needs: Needs) -> impl Iterator<Item = Metric> {
    Metric::all().filter(move |metric| metric.definition_of().needs == needs)
}

/// Excludes the metrics that cannot exist in a run of this scenario from the catalogue.
pub(crate) fn exclude(catalogue: &mut Catalogue, scenario: &Scenario, guarantees: &Guarantees) {
    if scenario.tools.is_empty() {
        let run_metrics = [RunMetric::ToolRuns, RunMetric::ToolFailures].map(RunMetric::name);
        let metrics = that_need(Needs::Tools).map(Metric::name);
        for name in metrics.chain(run_metrics) {
            catalogue.exclude(name, "the scenario declares no `tools`");
        }
    }
    let mut exclude_all = |needs: Needs, why: &str| {
        for metric in that_need(needs) {
            catalogue.exclude(metric.name(), why);
        }
    };
    if sends_output_limit(scenario) && guarantees.max_output_tokens.is_some_and(|tokens| tokens <= 1) {
        exclude_all(
            Needs::TwoTokens,
            "the session generator requests at most one token for each answer",
        );
    }
    if guarantees.max_depth.is_some_and(|depth| depth <= 1) {
        exclude_all(
            Needs::TwoRequests,
            "no request of the session generator follows another in its session",
        );
    }
}

/// Returns true if every server receives the limit of the workload: a server without a limit may
/// generate more, and a user-defined parameter may set another limit.
fn sends_output_limit(scenario: &Scenario) -> bool {
    scenario.all_clients().all(|NamedClient { client, .. }| {
        let mut custom = client.additional_sampling_params.keys();
        client.max_tokens_param.is_some()
            && !custom.any(|name| name.contains("tokens") || name.contains("length"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::source::Source;
    use veeksha_scenario::Document;

    /// Returns the excluded metrics of a scenario with a tool.
    fn excluded(guarantees: Guarantees, client: &str) -> Vec<&'static str> {
        excluded_of(
            &format!("client: {{{client}}}\ntools: {{sandbox: {{}}}}"),
            guarantees,
        )
    }

    fn excluded_of(yaml: &str, guarantees: Guarantees) -> Vec<&'static str> {
        let document = Document::from_yaml(yaml, "test.yml").unwrap();
        let source = Source::of(document, std::path::PathBuf::new());
        let scenario = source.settle(&[], &[], true).unwrap().scenario;
        let mut catalogue = Catalogue::built_in();
        exclude(&mut catalogue, &scenario, &guarantees);
        let known = catalogue.iter().filter_map(|info| info.metric);
        known
            .map(Metric::name)
            .filter(|name| catalogue.excluded(name).is_some())
            .collect()
    }

    fn output(max_output_tokens: Option<u32>) -> Guarantees {
        Guarantees {
            max_output_tokens,
            ..Guarantees::default()
        }
    }

    #[test]
    fn answers_of_one_token_have_no_gaps() {
        let mut gaps: Vec<&str> = that_need(Needs::TwoTokens).map(Metric::name).collect();
        gaps.sort_unstable();
        let mut found = excluded(output(Some(1)), "");
        found.sort_unstable();
        assert_eq!(found, gaps);
        assert_eq!(excluded(output(Some(2)), ""), [""; 0]);
        assert_eq!(excluded(output(None), ""), [""; 0]);
    }

    #[test]
    fn a_server_without_a_limit_may_generate_more() {
        assert_eq!(excluded(output(Some(1)), "max_tokens_param: null"), [""; 0]);
        let other = "additional_sampling_params: {max_completion_tokens: 20}";
        assert_eq!(excluded(output(Some(1)), other), [""; 0]);
        let unrelated = "additional_sampling_params: {temperature: 0}";
        assert_ne!(excluded(output(Some(1)), unrelated), [""; 0]);
    }

    #[test]
    fn scenarios_without_tools_have_no_tool_runs() {
        let of_tools: Vec<&str> = that_need(Needs::Tools).map(Metric::name).collect();
        assert_eq!(of_tools.len(), 4);
        assert_eq!(excluded_of("seed: 1", Guarantees::default()), of_tools);
        assert_eq!(excluded(Guarantees::default(), ""), [""; 0]);
    }

    #[test]
    fn sessions_of_depth_one_have_no_think_time() {
        let depth = |max_depth| Guarantees {
            max_depth,
            ..Guarantees::default()
        };
        let between_requests: Vec<&str> = that_need(Needs::TwoRequests).map(Metric::name).collect();
        assert!(!between_requests.is_empty());
        assert_eq!(excluded(depth(Some(1)), ""), between_requests);
        assert_eq!(excluded(depth(Some(2)), ""), [""; 0]);
        assert_eq!(excluded(depth(None), ""), [""; 0]);
    }
}
