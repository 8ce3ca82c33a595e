//! What a scenario leads one to expect of its run: what health checks hold it against.

use serde_json::Value;
use veeksha_health::{ColdCache, Expected, Gaps, OutputLength, Tolerance, Traffic};
use veeksha_model::Nanos;
use veeksha_scenario::{Generator, IntervalGenerator, Scenario, Traffic as Asked};

/// What is expected of a run of this scenario.
pub(crate) fn of(scenario: &Scenario) -> Expected {
    let client = &scenario.client;
    let made_to = client.ignore_eos == Some(true) || client.min_tokens_param.is_some();
    Expected {
        measured_until: scenario
            .runtime
            .timeout()
            .and_then(|timeout| Nanos::try_from(timeout.as_nanos()).ok()),
        output: match made_to {
            true => OutputLength::Exact(Tolerance::default()),
            false => OutputLength::AtMost(Tolerance::default()),
        },
        cold_cache: repeats_nothing(&scenario.session_generator).then(ColdCache::default),
        ..Expected::of(traffic(&scenario.traffic_scheduler))
    }
}

fn traffic(asked: &Asked) -> Traffic {
    match asked {
        Asked::Rate(rate) => {
            let (sessions_per_second, gaps) = match rate.interval_generator {
                IntervalGenerator::Fixed { interval } => (1.0 / interval, Gaps::Even),
                IntervalGenerator::Poisson { arrival_rate } => (arrival_rate, Gaps::Drawn { variation: 1.0 }),
                IntervalGenerator::Gamma { arrival_rate, cv } => {
                    (arrival_rate, Gaps::Drawn { variation: cv })
                }
            };
            Traffic::Rate {
                sessions_per_second,
                gaps,
            }
        }
        Asked::Concurrent(concurrent) => Traffic::Concurrent {
            target: concurrent.target_concurrent_sessions,
            ramp: (concurrent.rampup_seconds * 1e9) as Nanos,
        },
        Asked::FixedSchedule(_) => Traffic::FixedSchedule,
    }
}

/// Whether a server that never saw these prompts knows nothing of them but what the run itself sent: of a trace each request's share is
/// in the record; of other generators only the shipped one says whether its prompts begin alike.
fn repeats_nothing(generator: &Generator) -> bool {
    match generator {
        Generator::Trace(_) => true,
        Generator::Shipped { config, .. } => {
            let channels = config.get("channels").and_then(Value::as_array);
            let shared = |channel: &Value| channel.get("shared_prefix_ratio").and_then(Value::as_f64);
            channels.is_some_and(|channels| {
                channels
                    .iter()
                    .all(|channel| shared(channel).is_none_or(|ratio| ratio == 0.0))
            })
        }
        Generator::Wasm { .. } | Generator::Lua { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire_up::Source;
    use veeksha_scenario::Document;

    fn scenario(yaml: &str) -> Scenario {
        let document = Document::from_yaml(yaml, "test.yml").unwrap();
        let source = Source::of(document, std::path::PathBuf::new());
        source.settle(&[], &[], true).unwrap().scenario
    }

    #[test]
    fn a_cold_cache_is_expected_where_prompts_do_not_begin_alike() {
        let cold = |yaml: &str| of(&scenario(yaml)).cold_cache.is_some();
        assert!(cold("session_generator: {type: synthetic}"));
        assert!(cold(
            "session_generator: {type: synthetic, channels: [{type: text, shared_prefix_ratio: 0}]}"
        ));
        assert!(!cold(
            "session_generator: {type: synthetic, channels: [{type: text, shared_prefix_ratio: 0.3}]}"
        ));
    }

    #[test]
    fn the_rate_is_that_of_sessions() {
        let expected = of(&scenario(
            "traffic_scheduler: {type: rate, interval_generator: {type: fixed, interval: 0.25}}\nruntime: {benchmark_timeout: 7}",
        ));
        assert_eq!(
            expected.traffic,
            Traffic::Rate {
                sessions_per_second: 4.0,
                gaps: Gaps::Even
            }
        );
        assert_eq!(expected.measured_until, Some(7_000_000_000));
    }

    #[test]
    fn answers_are_as_long_as_asked_for_only_where_the_server_is_made_to() {
        let made = of(&scenario(
            "client: {type: openai_chat_completions, ignore_eos: true}",
        ));
        assert_eq!(made.output, OutputLength::Exact(Tolerance::default()));
        let free = of(&scenario(
            "client: {type: openai_chat_completions, ignore_eos: null}",
        ));
        assert_eq!(free.output, OutputLength::AtMost(Tolerance::default()));
    }
}
