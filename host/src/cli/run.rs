//! `veeksha-host run`.

use veeksha_pipeline::Control;
use veeksha_report::RunFolder;

use crate::cli::args::RunArgs;
use crate::collect::{self, Collector, Live};
use crate::drive::{Refused, check_cores, drive};
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
    let wanted = args.self_test || scenario.certificate.self_test;
    let self_test = match wanted && !control.is_stopped() {
        true => self_test::measure(&scenario, &collected.evaluation, &control),
        false => Ok(None),
    };
    // The results of the run itself are written whatever became of the test.
    let (self_test, failed) = match self_test {
        Ok(found) => (found, None),
        Err(failure) => (None, Some(failure)),
    };
    let judged = results::Judged {
        clock: results::Clock::Real,
        thresholds: results::thresholds(&scenario),
        self_test,
        threads: results::Threads::of(&scenario.runtime, &refused),
    };
    let code = results::conclude(&folder, collected, &ended, &judged, args.drive.quiet)?;
    failed.map_or(Ok(code), Err)
}
