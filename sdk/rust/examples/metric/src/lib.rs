//! The time in which an answer paused: the sum of its long gaps between chunks.

use veeksha_plugin::metric::{Better, Definition, Metric, Samples};
use veeksha_plugin::{Completion, Error, Plugin};

const NANOS_PER_MILLISECOND: u64 = 1_000_000;

#[derive(serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    /// A gap above this many milliseconds is a pause.
    longer_than_ms: u64,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            longer_than_ms: 200,
        }
    }
}

struct StalledTime {
    longer_than: u64,
}

impl Plugin for StalledTime {
    type Config = Config;
    const NAME: &'static str = "stalled_time";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "the time in which an answer paused";
}

impl Metric for StalledTime {
    fn open(config: Config) -> Result<Self, Error> {
        let longer_than = config.longer_than_ms.saturating_mul(NANOS_PER_MILLISECOND);
        Ok(StalledTime { longer_than })
    }

    fn definitions(&self) -> Vec<Definition> {
        let summary = "sum of the gaps between chunks that are longer than configured";
        vec![Definition::new("stalled_time", "s", Better::Less, summary)]
    }

    fn observe(&mut self, request: &Completion<'_>, samples: &mut Samples) {
        // A value that does not exist is left out. It is not 0.
        if !request.is_ok() || request.chunk_at.is_empty() {
            return;
        }
        let gaps = request.chunk_at.windows(2).map(|two| two[1] - two[0]);
        let stalled: u64 = gaps.filter(|gap| *gap > self.longer_than).sum();
        samples.add(0, stalled as f64 / 1e9);
    }
}

veeksha_plugin::export_metric!(StalledTime);
