//! `veeksha-host simulate`.

use veeksha_pipeline::SimulatedTarget;
use veeksha_report::RunFolder;

use crate::cli::args::SimulateArgs;
use crate::collect::Collector;
use crate::failure::Failure;
use crate::mode::Mode;
use crate::say;
use crate::{results, rooted, wire_up};

pub(super) fn simulate(args: &SimulateArgs, overrides: &[(String, String)]) -> Result<u8, Failure> {
    let mut loaded = wire_up::load(&args.run.scenario, overrides)?;
    let wired = wire_up::wire(&mut loaded, Mode::Simulate(args.run.shard))?;
    let config = rooted::rooted(&loaded.scenario, loaded.folder()).to_yaml();
    let scenario = loaded.scenario.clone();
    for note in &wired.notes {
        say::err(format!("note: {note}"));
    }
    let of_target = scenario
        .client
        .api_base
        .as_deref()
        .and_then(|base| base.strip_prefix("sim://"));
    let name = args.profile.as_deref().or(of_target).unwrap_or("default");
    let timeout = u64::try_from(scenario.client.deadline().as_nanos()).unwrap_or(u64::MAX);
    let target = SimulatedTarget {
        profile: super::sim::profile(name, loaded.folder())?,
        request_timeout: timeout,
    };

    let stamp = veeksha_clock::utc_stamp(veeksha_clock::wall_nanos());
    let folder = RunFolder::create(&scenario.output_dir, &config, &stamp).map_err(Failure::usage)?;
    let mut collector = Collector::new(&scenario, &wired, &folder)?;
    let end = veeksha_pipeline::simulate(
        &wired.plan,
        &target,
        &wired.factory,
        &wired.tokenizer,
        &wired.materialiser,
        &mut |entry| collector.take(entry),
    )?;
    results::conclude(
        &folder,
        collector.finish(),
        &end,
        &results::Judged {
            clock: results::Clock::Virtual,
            thresholds: results::thresholds(&scenario),
            self_test: None,
            threads: results::Threads::default(),
        },
        args.run.quiet,
    )
}
