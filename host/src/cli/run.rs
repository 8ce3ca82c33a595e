//! `veeksha-host run`.

use veeksha_pipeline::Control;
use veeksha_report::RunFolder;

use crate::cli::args::RunArgs;
use crate::collect::{self, Collector, Live};
use crate::drive::{Refused, check_cores, drive};
use crate::exit;
use crate::failure::Failure;
use crate::mode::Mode;
use crate::say;
use crate::{interrupt, prompts, results, rooted, self_test, target, wire_up};

pub(super) fn run(args: &RunArgs, overrides: &[(String, String)]) -> Result<u8, Failure> {
    let mut loaded = wire_up::load(&args.drive.scenario, overrides)?;
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
        say::err(format!("note: {note}"));
    }

    let control = Control::default();
    interrupt::stop_on_signal(control.clone())?;
    let stamp = veeksha_clock::utc_stamp(veeksha_clock::wall_nanos());
    let folder = RunFolder::create(&scenario.output_dir, &config, &stamp).map_err(Failure::usage)?;
    let collector = Collector::new(&scenario, &wired, &folder)?;
    let live = if args.drive.quiet {
        Live::Quiet
    } else {
        collect::live_of(&scenario)
    };
    let (events, thread) = collect::on_a_thread(collector, live, scenario.runtime.session_limit())?;
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
        true => self_test::measure(&scenario, &collected.evaluation, &control),
        false => Ok(None),
    };
    let interrupted = control.is_stopped() && !stopped_before;
    // The results of the run itself are written whatever became of the test.
    let (self_test, failed) = match self_test {
        // What was cut short proves nothing.
        Ok(found) => (found.filter(|_| !interrupted), None),
        Err(failure) => (None, Some(failure)),
    };
    let judged = results::Judged {
        clock: results::Clock::Real,
        thresholds: results::thresholds(&scenario),
        self_test,
        threads: results::Threads::of(&scenario.runtime, &refused),
    };
    let code = results::conclude(&folder, collected, &ended, &judged, args.drive.quiet)?;
    if interrupted {
        say::err("the self-test was interrupted; the results of the run are complete");
        return Ok(exit::INTERRUPTED);
    }
    failed.map_or(Ok(code), Err)
}
