//! `veeksha-host run`.

use std::sync::Arc;

use veeksha_page::Live;
use veeksha_report::RunFolder;

use crate::cli::args::RunArgs;
use crate::cli::check;
use crate::collect::{self, Collector, Shown};
use crate::compat::Wanted;
use crate::drive::{Refused, check_cores, drive};
use crate::failure::{Failure, OUTPUT_DIR};
use crate::interrupt::Interrupts;
use crate::mode::Mode;
use crate::results::{Concluded, Judged};
use crate::say;
use crate::source::Loaded;
use crate::sweep::Table;
use crate::{exit, live, prompts, results, rooted, self_test, source, sweep, target, wire_up};

pub(super) fn run(
    args: &RunArgs,
    overrides: &[(String, String)],
    interrupts: &Interrupts,
) -> Result<u8, Failure> {
    let wanted = Wanted::of(&args.output)?;
    let cells = check::sound(source::cells(&args.drive.scenario, overrides)?, interrupts)?;
    let page = live::start(args)?;
    let context = Context {
        args,
        wanted,
        interrupts,
        page,
    };
    sweep::each(cells, interrupts, args.drive.quiet, |loaded, table| {
        one(loaded, &context, table)
    })
}

/// What the runs of one command share.
struct Context<'a> {
    args: &'a RunArgs,
    wanted: Wanted,
    interrupts: &'a Interrupts,
    page: Option<Arc<Live>>,
}

fn one(mut loaded: Loaded, context: &Context<'_>, table: Table) -> Result<Concluded, Failure> {
    let args = context.args;
    check_cores(&loaded.scenario.runtime)?;
    let (mut target, simulated) = target::settle(&mut loaded, &args.drive.scenario.scenario)?;
    let mut wired = wire_up::wire(&mut loaded, Mode::Run(args.drive.shard))?;
    target::complete(&mut target, &loaded, &wired)?;
    let wanted = args.self_test || loaded.scenario.certificate.self_test;
    if wanted {
        self_test::check()?;
    }
    let config = rooted::rooted(&loaded.scenario, loaded.folder()).to_yaml();
    let scenario = loaded.scenario;
    for note in &wired.notes {
        say::note(note);
    }

    let control = context.interrupts.next_run();
    let stamp = veeksha_clock::utc_stamp(veeksha_clock::wall_nanos());
    let folder = RunFolder::create(&scenario.output_dir, &config, &stamp)
        .map_err(|error| Failure::no_folder(error, OUTPUT_DIR))?;
    let mut collector = Collector::new(&scenario, &wired, &folder, &context.wanted, config)?;
    collector.watch()?;
    let shown = Shown {
        lines: collect::lines_of(&scenario, args.drive.quiet, args.stream_metrics),
        quiet: args.drive.quiet,
        sessions_planned: scenario.runtime.session_limit(),
        page: context.page.clone(),
    };
    let (events, thread) = collect::on_a_thread(collector, shown)?;
    let refused = Refused::default();
    let ended = drive(&scenario, &mut wired, target, &events, &control, &refused);
    drop(events);
    let collected = thread
        .join()
        .map_err(|_| Failure::internal("the collector of results has died"))?;
    if let Some(server) = simulated {
        server.stop();
    }
    prompts::report(&wired.materialiser);
    let ended = ended?;
    let stopped_before = control.is_stopped();
    let self_test = match wanted && !stopped_before {
        true => self_test::measure(&scenario, &collected.analysed.evaluation, &control),
        false => Ok(None),
    };
    let interrupted = control.is_stopped() && !stopped_before;
    // The results of the run itself are written whatever became of the test.
    let (self_test, failed) = match self_test {
        // What was cut short proves nothing.
        Ok(found) => (found.filter(|_| !interrupted), None),
        Err(failure) => (None, Some(failure)),
    };
    let judged = Judged {
        clock: results::Clock::Real,
        thresholds: results::thresholds(&scenario),
        self_test,
        threads: results::Threads::of(&scenario.runtime, &refused),
    };
    let mut concluded = results::conclude(&folder, collected, &ended, &judged, table)?;
    if let Some(page) = &context.page {
        page.publish(concluded.page.json().into());
    }
    if interrupted {
        say::err("the self-test was interrupted; the results of the run are complete");
        concluded.code = exit::INTERRUPTED;
    }
    failed.map_or(Ok(concluded), Err)
}
