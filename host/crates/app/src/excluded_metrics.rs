//! What no answer of a scenario can have: objectives on it are refused before a run is paid for.

use serde_json::Value;
use veeksha_metrics::{Catalogue, Metric, Needs};
use veeksha_scenario::{Generator, Scenario};

/// Returns the metrics that have no samples without this property of the workload.
fn that_need(needs: Needs) -> impl Iterator<Item = Metric> {
    Metric::all().filter(move |metric| metric.definition_of().needs == needs)
}

/// Takes out of the catalogue what cannot exist in a run of this scenario. Only of the shipped
/// generator is known what it makes.
pub(crate) fn exclude(catalogue: &mut Catalogue, scenario: &Scenario) {
    let Generator::Shipped { config, .. } = &scenario.session_generator else {
        return;
    };
    let mut without = |needs: Needs, why: &str| {
        for metric in that_need(needs) {
            catalogue.exclude(metric.name(), why);
        }
    };
    let output = config.pointer("/output_spec/text/output_length_generator");
    if is_told_a_limit(scenario) && output.is_some_and(is_at_most_one) {
        without(
            Needs::TwoTokens,
            "each answer is asked for as one token (`session_generator.output_spec.text.output_length_generator`)",
        );
    }
    if config.get("session_graph").is_some_and(has_one_layer) {
        without(
            Needs::TwoRequests,
            "no request follows another in its session (`session_generator.session_graph`)",
        );
    }
}

/// Only a server that is told a limit keeps it; parameters of the user's own may tell it another
/// one.
fn is_told_a_limit(scenario: &Scenario) -> bool {
    let client = &scenario.client;
    let mut own = client.additional_sampling_params.keys();
    client.max_tokens_param.is_some() && !own.any(|name| name.contains("tokens") || name.contains("length"))
}

/// Whether no request of a session waits for another one.
fn has_one_layer(graph: &Value) -> bool {
    let at_most_one = |key: &str| graph.get(key).is_some_and(is_at_most_one);
    match graph.get("type").and_then(Value::as_str) {
        Some("single_request") => true,
        Some("linear") => at_most_one("num_request_generator"),
        Some("branching") => at_most_one("num_layers_generator"),
        _ => false,
    }
}

/// Whether a distribution of lengths has no larger number than 1.
fn is_at_most_one(lengths: &Value) -> bool {
    let one = |value: &Value| value.as_u64().is_some_and(|value| value <= 1);
    match lengths.get("type").and_then(Value::as_str) {
        Some("fixed") => lengths.get("value").is_some_and(one),
        Some("uniform" | "zipf") => lengths.get("max").is_some_and(one),
        Some("fixed_stair") => {
            let values = lengths.get("values").and_then(Value::as_array);
            values.is_some_and(|values| values.iter().all(one))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use veeksha_scenario::Document;

    /// What is taken out, of those that may be.
    fn excluded(generator: &str, client: &str) -> Vec<&'static str> {
        let yaml = format!("session_generator: {{type: synthetic, {generator}}}\nclient: {{{client}}}");
        let document = Document::from_yaml(&yaml, "test.yml").unwrap();
        let source = Source::of(document, std::path::PathBuf::new());
        let scenario = source.settle(&[], &[], true).unwrap().scenario;
        let mut catalogue = Catalogue::built_in();
        exclude(&mut catalogue, &scenario);
        let known = catalogue.iter().filter_map(|info| info.metric);
        known
            .map(Metric::name)
            .filter(|name| catalogue.excluded(name).is_some())
            .collect()
    }

    fn of_lengths(lengths: &str) -> bool {
        let seen = excluded(
            &format!(
                "output_spec: {{text: {{output_length_generator: {{{lengths}}}}}}}, session_graph: {{type: linear}}"
            ),
            "",
        );
        assert!(
            seen.is_empty() || seen.len() == that_need(Needs::TwoTokens).count(),
            "{seen:?}"
        );
        !seen.is_empty()
    }

    #[test]
    fn an_answer_of_one_token_has_no_gaps() {
        for one in [
            "type: fixed, value: 1",
            "type: uniform, min: 1, max: 1",
            "type: zipf, min: 1, max: 1",
            "type: fixed_stair, values: [1, 1]",
        ] {
            assert!(of_lengths(one), "{one}");
        }
        for more in [
            "type: fixed, value: 2",
            "type: uniform, min: 1, max: 2",
            "type: fixed_stair, values: [1, 2]",
            "type: inverse_gaussian, mean: 1",
        ] {
            assert!(!of_lengths(more), "{more}");
        }
    }

    #[test]
    fn a_server_that_is_told_no_limit_may_say_more() {
        let one = "output_spec: {text: {output_length_generator: {type: fixed, value: 1}}}, session_graph: {type: linear}";
        assert_eq!(excluded(one, "max_tokens_param: null"), [""; 0]);
        let another = "additional_sampling_params: {max_completion_tokens: 20}";
        assert_eq!(excluded(one, another), [""; 0]);
        assert_ne!(
            excluded(one, "additional_sampling_params: {temperature: 0}"),
            [""; 0]
        );
    }

    #[test]
    fn a_session_of_one_request_waits_for_nothing() {
        let expected: Vec<&str> = that_need(Needs::TwoRequests).map(Metric::name).collect();
        for one in [
            "type: single_request",
            "type: linear, num_request_generator: {type: fixed, value: 1}",
            "type: branching, num_layers_generator: {type: fixed, value: 1}",
        ] {
            assert_eq!(
                excluded(&format!("session_graph: {{{one}}}"), ""),
                expected,
                "{one}"
            );
        }
        let more = "type: branching, num_layers_generator: {type: uniform, min: 1, max: 2}";
        assert_eq!(excluded(&format!("session_graph: {{{more}}}"), ""), [""; 0]);
    }
}
