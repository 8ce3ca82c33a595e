//! A metric, a request check and an SLO check made with the Rust SDK, in one component: answers of
//! at most `limit` tokens are good, and half of the requests labelled `gold` must be.
//! `{"limit": 3}`.

use std::time::Duration;

use veeksha_plugin::check::RequestCheck;
use veeksha_plugin::metric::{Better, Definition, Metric, Samples};
use veeksha_plugin::slo::{Results, SloCheck, Verdict};
use veeksha_plugin::{Completion, Error, Plugin};

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Brief {
    limit: u32,
}

const NAME: &str = "sdk-measure";
const VERSION: &str = env!("CARGO_PKG_VERSION");
const SUMMARY: &str = "short answers are good";

fn checked(config: Brief) -> Result<Brief, Error> {
    if config.limit == 0 {
        return Err(
            Error::config("/limit", "an answer has at least one token").hint("set `limit` to 1 or more")
        );
    }
    Ok(config)
}

/// The metric: how many tokens there were above the limit, and what was the most.
struct Excess {
    brief: Brief,
    most: u32,
}

impl Plugin for Excess {
    type Config = Brief;
    const NAME: &'static str = NAME;
    const VERSION: &'static str = VERSION;
    const SUMMARY: &'static str = SUMMARY;
}

impl Metric for Excess {
    fn open(config: Brief) -> Result<Self, Error> {
        let brief = checked(config)?;
        Ok(Excess { brief, most: 0 })
    }

    fn definitions(&self) -> Vec<Definition> {
        vec![
            Definition::new("excess", "tokens", Better::Less, "output tokens above the limit"),
            Definition::new(
                "most",
                "tokens",
                Better::Neither,
                "output tokens of the longest answer",
            ),
        ]
    }

    fn observe(&mut self, request: &Completion<'_>, samples: &mut Samples) {
        assert!(
            request.output_tokens < 1000,
            "no answer has {} tokens",
            request.output_tokens
        );
        self.most = self.most.max(request.output_tokens);
        let weight = match request.label("tier") {
            Some("gold") => 2.0,
            _ => 1.0,
        };
        if request.is_ok() {
            let excess = request.output_tokens.saturating_sub(self.brief.limit);
            samples.add_weighted(0, f64::from(excess), weight);
        }
    }

    fn finish(&mut self, samples: &mut Samples) {
        samples.add_of_run(1, f64::from(self.most));
    }
}

impl Plugin for Brief {
    type Config = Self;
    const NAME: &'static str = NAME;
    const VERSION: &'static str = VERSION;
    const SUMMARY: &'static str = SUMMARY;
}

impl RequestCheck for Brief {
    fn open(config: Self) -> Result<Self, Error> {
        checked(config)
    }

    fn is_good(&self, request: &Completion<'_>) -> bool {
        request.output_tokens <= self.limit
    }
}

struct Half {
    brief: Brief,
}

impl Plugin for Half {
    type Config = Brief;
    const NAME: &'static str = NAME;
    const VERSION: &'static str = VERSION;
    const SUMMARY: &'static str = SUMMARY;
}

impl SloCheck for Half {
    fn open(config: Brief) -> Result<Self, Error> {
        let brief = checked(config)?;
        Ok(Half { brief })
    }

    fn check(&self, results: &dyn Results) -> Result<Vec<Verdict>, Error> {
        if !results.metrics().contains(&"ttfc".to_owned()) {
            return Err(Error::new("no-metric", "nothing was answered"));
        }
        let gold = results.percentile("excess", 50.0, &[("tier", "gold")]);
        let windows = results.windows("ttfc", &[], Duration::from_secs(1));
        let busy = windows.iter().filter(|window| window.stats.count > 0).count();
        Ok(vec![
            Verdict::at_most("half of gold", gold, f64::from(self.brief.limit))
                .detail("no more than the limit"),
            Verdict::at_least("ttfc", Some(results.stats("ttfc", &[]).p99), 0.5),
            Verdict::at_least("aggregate", results.aggregate("goodput"), 0.5),
            Verdict::at_least("busy seconds", Some(busy as f64), 3.0),
        ])
    }
}

veeksha_plugin::export_metric!(Excess);
veeksha_plugin::export_request_check!(Brief);
veeksha_plugin::export_slo_check!(Half);
