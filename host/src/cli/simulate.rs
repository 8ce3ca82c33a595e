//! `veeksha-host simulate`.

use veeksha_pipeline::SimulatedTarget;
use veeksha_report::RunFolder;

use crate::cli::args::SimulateArgs;
use crate::cli::check;
use crate::collect::{Collector, Inline};
use crate::compat::Wanted;
use crate::failure::{Failure, OUTPUT_DIR};
use crate::interrupt::Interrupts;
use crate::mode::Mode;
use crate::results::{Concluded, Judged};
use crate::source::Loaded;
use crate::sweep::Table;
use crate::{results, rooted, say, source, sweep, wire_up};

pub(super) fn simulate(
    args: &SimulateArgs,
    overrides: &[(String, String)],
    interrupts: &Interrupts,
) -> Result<u8, Failure> {
    let wanted = Wanted::of(&args.output)?;
    let cells = check::sound(source::cells(&args.run.scenario, overrides)?, interrupts)?;
    sweep::each(cells, interrupts, args.run.quiet, |loaded, table| {
        one(loaded, args, &wanted, interrupts, table)
    })
}

fn one(
    mut loaded: Loaded,
    args: &SimulateArgs,
    wanted: &Wanted,
    interrupts: &Interrupts,
    table: Table,
) -> Result<Concluded, Failure> {
    let wired = wire_up::wire(&mut loaded, Mode::Simulate(args.run.shard))?;
    let config = rooted::rooted(&loaded.scenario, loaded.folder()).to_yaml();
    let scenario = loaded.scenario.clone();
    for note in &wired.notes {
        say::note(note);
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

    let control = interrupts.next_run();
    let stamp = veeksha_clock::utc_stamp(veeksha_clock::wall_nanos());
    let folder = RunFolder::create(&scenario.output_dir, &config, &stamp)
        .map_err(|error| Failure::no_folder(error, OUTPUT_DIR))?;
    let collector = Collector::new(&scenario, &wired, &folder, wanted, config)?;
    let mut collector = Inline::open(collector)?;
    let end = veeksha_pipeline::simulate(
        &wired.plan,
        &target,
        &wired.factory,
        &wired.tokenizer,
        &wired.materialiser,
        &mut |entry| collector.take(entry),
        &control,
    )?;
    let judged = Judged {
        clock: results::Clock::Virtual,
        thresholds: results::thresholds(&scenario),
        self_test: None,
        threads: results::Threads::default(),
    };
    results::conclude(&folder, collector.finish(), &end, &judged, table)
}
