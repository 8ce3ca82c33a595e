//! Expectations of a scenario about its run, which health checks test.

use veeksha_health::{ColdCache, Expected, ExpectedTraffic, GapVariation, OutputLength, Tolerance};
use veeksha_model::Nanos;
use veeksha_scenario::{Client, Scenario, Traffic};

/// Returns the expectations for a run of this scenario.
pub fn of(scenario: &Scenario) -> Expected {
    let of_all = |holds: fn(&Client) -> bool| scenario.all_clients().all(|named| holds(named.client));
    let made_to = of_all(|client| client.ignore_eos == Some(true) || client.min_tokens_param.is_some());
    let asked_for = Expected::of(traffic(&scenario.traffic_scheduler));
    Expected {
        measured_until: scenario
            .runtime
            .timeout()
            .and_then(|timeout| Nanos::try_from(timeout.as_nanos()).ok()),
        output: if made_to {
            OutputLength::Exact(Tolerance::default())
        } else {
            OutputLength::AtMost(Tolerance::default())
        },
        // A minimum is a guarantee of the endpoint; `ignore_eos` is sent to every server that
        // supports it.
        short_share: if of_all(|client| client.min_tokens_param.is_some()) {
            0.0
        } else {
            asked_for.short_share
        },
        cold_cache: Some(ColdCache::default()),
        ..asked_for
    }
}

fn traffic(asked: &Traffic) -> ExpectedTraffic {
    match asked {
        Traffic::Rate(rate) => {
            let variation = rate.interval_generator.variation();
            ExpectedTraffic::Rate {
                sessions_per_second: rate.interval_generator.mean_rate(),
                gaps: if variation > 0.0 {
                    GapVariation::Drawn { variation }
                } else {
                    GapVariation::Even
                },
            }
        }
        Traffic::Concurrent(concurrent) => ExpectedTraffic::Concurrent {
            target: concurrent.target_concurrent_sessions,
            ramp: (concurrent.rampup_seconds * 1e9) as Nanos,
        },
        Traffic::FixedSchedule(_) => ExpectedTraffic::FixedSchedule,
        Traffic::ArrivalProcess(_) => ExpectedTraffic::ArrivalProcess,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::source::Source;
    use veeksha_scenario::Document;

    fn scenario(yaml: &str) -> Scenario {
        let document = Document::from_yaml(yaml, "test.yml").unwrap();
        let source = Source::of(document, std::path::PathBuf::new());
        source.settle(&[], &[], true).unwrap().scenario
    }

    #[test]
    fn the_rate_is_that_of_sessions() {
        let expected = of(&scenario(
            "traffic_scheduler: {type: rate, interval_generator: {type: fixed, interval: 0.25}}\nruntime: {benchmark_timeout: 7}",
        ));
        assert_eq!(
            expected.traffic,
            ExpectedTraffic::Rate {
                sessions_per_second: 4.0,
                gaps: GapVariation::Even
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
        assert!(
            made.short_share > 0.0,
            "one early stop in hundreds is no other load"
        );
        let least = of(&scenario(
            "client: {type: openai_chat_completions, min_tokens_param: min_tokens}",
        ));
        assert_eq!(least.short_share, 0.0, "a minimum is kept by every answer");
        let free = of(&scenario(
            "client: {type: openai_chat_completions, ignore_eos: null}",
        ));
        assert_eq!(free.output, OutputLength::AtMost(Tolerance::default()));
    }
}
