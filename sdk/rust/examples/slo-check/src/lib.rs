//! An objective of the whole run: no tier waits much longer than the one below it.

use veeksha_plugin::slo::{Results, SloCheck, Verdict};
use veeksha_plugin::{Error, Plugin};

#[derive(serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TiersInOrder {
    /// The values of the label `tier`, the best first.
    tiers: Vec<String>,
    /// The factor by which a better tier may be slower.
    tolerance: f64,
}

impl Default for TiersInOrder {
    fn default() -> Self {
        TiersInOrder {
            tiers: vec!["paid".into(), "free".into()],
            tolerance: 1.5,
        }
    }
}

impl Plugin for TiersInOrder {
    type Config = Self;
    const NAME: &'static str = "tiers_in_order";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "no tier waits much longer than the one below it";
}

impl SloCheck for TiersInOrder {
    fn open(config: Self) -> Result<Self, Error> {
        if config.tiers.len() < 2 {
            return Err(Error::config("/tiers", "an order has at least two tiers"));
        }
        Ok(config)
    }

    fn check(&self, results: &dyn Results) -> Result<Vec<Verdict>, Error> {
        let p90 = |tier: &str| results.percentile("ttfc", 90.0, &[("tier", tier)]);
        let mut verdicts = Vec::new();
        for two in self.tiers.windows(2) {
            let (better, below) = (&two[0], &two[1]);
            let bound = p90(below).ok_or_else(|| {
                Error::new("no-samples", format!("no request of {below} was answered"))
            })?;
            let name = format!("{better} before {below}");
            verdicts.push(Verdict::at_most(name, p90(better), bound * self.tolerance));
        }
        Ok(verdicts)
    }
}

veeksha_plugin::export_slo_check!(TiersInOrder);
