//! A Poisson process made with the Rust SDK, whose gaps are those of the host's: `{"rate": 5}`.
//! With `"sessions": 10` it ends after as many arrivals.

use veeksha_plugin::arrivals::ArrivalProcess;
use veeksha_plugin::{Error, Nanos, Plugin, Random};

struct Poisson {
    config: Config,
    /// The next arrival.
    at: Nanos,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    rate: f64,
    #[serde(default)]
    sessions: Option<u64>,
}

impl Plugin for Poisson {
    type Config = Config;
    const NAME: &'static str = "sdk-arrivals";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "a Poisson process";

    fn config_schema() -> String {
        r#"{
            "type": "object",
            "properties": {
                "rate": {"type": "number", "exclusiveMinimum": 0},
                "sessions": {"type": "integer"}
            },
            "required": ["rate"],
            "additionalProperties": false
        }"#
        .into()
    }
}

impl ArrivalProcess for Poisson {
    fn open(config: Config) -> Result<Self, Error> {
        Ok(Poisson { config, at: 0 })
    }

    fn next(&mut self, session: u64, random: Random) -> Result<Option<Nanos>, Error> {
        if self.config.sessions.is_some_and(|sessions| session >= sessions) {
            return Ok(None);
        }
        let at = self.at;
        let gap = random.stream("arrival").exponential() / self.config.rate;
        self.at += (gap * 1e9).round() as Nanos;
        Ok(Some(at))
    }
}

veeksha_plugin::export_arrival_process!(Poisson);
