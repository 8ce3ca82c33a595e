//! `veeksha-host simulate`.

use veeksha_pipeline::SimulatedTarget;
use veeksha_report::RunFolder;

use crate::cli::args::SimulateArgs;
use crate::collect::{Collector, Inline};
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::mode::Mode;
use crate::results::{Concluded, Judged};
use crate::sweep::Table;
use crate::wire_up::Loaded;
use crate::{results, rooted, say, sweep, wire_up};

pub(super) fn simulate(args: &SimulateArgs, overrides: &[(String, String)]) -> Result<u8, Failure> {
    let cells = wire_up::cells(&args.run.scenario, overrides)?;
    // A simulation is over in seconds: a signal ends it as it ends any program.
    let interrupts = Interrupts::default();
    sweep::each(cells, &interrupts, args.run.quiet, |loaded, table| {
        one(loaded, args, table)
    })
}

fn one(mut loaded: Loaded, args: &SimulateArgs, table: Table) -> Result<Concluded, Failure> {
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
    let collector = Collector::new(&scenario, &wired, &folder, &args.output, config)?;
    let mut collector = Inline::open(collector)?;
    let end = veeksha_pipeline::simulate(
        &wired.plan,
        &target,
        &wired.factory,
        &wired.tokenizer,
        &wired.materialiser,
        &mut |entry| collector.take(entry),
    )?;
    let judged = Judged {
        clock: results::Clock::Virtual,
        thresholds: results::thresholds(&scenario),
        self_test: None,
        threads: results::Threads::default(),
    };
    results::conclude(&folder, collector.finish(), &end, &judged, table)
}
