//! Poisson arrivals whose rate rises and falls, as the traffic of a day does.

use std::f64::consts::TAU;

use veeksha_plugin::arrivals::ArrivalProcess;
use veeksha_plugin::{Error, Nanos, Plugin, Random};

#[derive(serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    /// Sessions per second at the quietest time.
    quiet_rate: f64,
    /// Sessions per second at the busiest time.
    busy_rate: f64,
    /// Seconds from one quiet time to the next.
    period_seconds: f64,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            quiet_rate: 2.0,
            busy_rate: 20.0,
            period_seconds: 60.0,
        }
    }
}

struct RushHour {
    config: Config,
    /// The instant of the last candidate, in seconds.
    now: f64,
}

impl RushHour {
    /// Sessions per second at an instant.
    fn rate(&self, seconds: f64) -> f64 {
        let busy = 0.5 - 0.5 * (TAU * seconds / self.config.period_seconds).cos();
        self.config.quiet_rate + (self.config.busy_rate - self.config.quiet_rate) * busy
    }
}

impl Plugin for RushHour {
    type Config = Config;
    const NAME: &'static str = "rush_hour";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "Poisson arrivals whose rate rises and falls periodically";
}

impl ArrivalProcess for RushHour {
    fn open(config: Config) -> Result<Self, Error> {
        if !(config.quiet_rate >= 0.0
            && config.busy_rate >= config.quiet_rate
            && config.busy_rate > 0.0)
        {
            return Err(Error::config(
                "/busy_rate",
                "must be above 0 and at least quiet_rate",
            ));
        }
        if config.period_seconds <= 0.0 {
            return Err(Error::config("/period_seconds", "must be above 0"));
        }
        Ok(RushHour { config, now: 0.0 })
    }

    fn next(&mut self, _session: u64, random: Random) -> Result<Option<Nanos>, Error> {
        // Candidates arrive at the busiest rate; each is kept with the share of the present rate.
        let mut draws = random.stream("arrivals");
        loop {
            self.now += draws.exponential() / self.config.busy_rate;
            if draws.chance(self.rate(self.now) / self.config.busy_rate) {
                return Ok(Some((self.now * 1e9) as Nanos));
            }
        }
    }
}

veeksha_plugin::export_arrival_process!(RushHour);
