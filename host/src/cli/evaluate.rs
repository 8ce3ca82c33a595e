//! `veeksha-host evaluate`: the figures of an old run, anew.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use veeksha_events::{Event, FailedPlugin, PluginPart};
use veeksha_metrics::Evaluation;
use veeksha_report::RunFolder;

use crate::analysis::{About, Analysis, Setup};
use crate::cli::args::EvaluateArgs;
use crate::compat::{Exporting, Wanted};
use crate::failure::Failure;
use crate::interrupt::{Finishing, Interrupts, missing_above};
use crate::judges::{self, Judges, Observer};
use crate::old_run::OldRun;
use crate::results::{self, Clock, Judged, Threads};
use crate::{evaluators, expected, objectives, say, tokenizers};

/// Where the evaluations of a run are, within its folder.
const EVALUATIONS: &str = "evaluations";
/// How another folder is named.
const ELSEWHERE: &str = "--to FOLDER names another folder";

pub(super) fn evaluate(args: &EvaluateArgs, interrupts: &Interrupts) -> Result<u8, Failure> {
    let wanted = Wanted::of(&args.output)?;
    let mut run = OldRun::open(&args.run, args.no_cache)?;
    let tokenizer = tokenizers::tokenizer(&run.loaded, &mut Vec::new())?.tokenizer;
    let mut judges = Judges::default();
    let config = args.plugin_config.as_str();
    judges::of_files(&mut judges, &run.loaded, &args.plugins, config, &tokenizer)?;
    // What the scenario's own plugins measured is in the record; what judges the run by its results is asked again.
    let mut judged_then = run.lua_judges.clone();
    let mut lost = false;
    match judges::of_scenario(&run.loaded, &tokenizer) {
        Ok(own) => {
            judged_then.extend(own.of_requests());
            judges.adopt_slo_checks(own);
        }
        Err(failure) => {
            lost = true;
            run.about_scenario.push(format!(
                "the scenario's plugins cannot be opened, so those that judge the run are not asked: {}",
                failure.message
            ));
        }
    }
    let measured_anew = judges.definitions()?;
    let anew = Anew::of(&judges, measured_anew.iter().map(|metric| metric.name.clone()));
    let mut definitions = run.definitions()?;
    definitions.retain(|metric| !anew.metrics.contains(&metric.name));
    definitions.extend(measured_anew);
    let catalogue = objectives::catalogue(&definitions)?;
    let mut judging = judges.of_requests();
    judging.extend(
        judged_then
            .into_iter()
            .filter(|plugin| !anew.checks.contains(plugin)),
    );
    let scenario = run.loaded.scenario.clone();
    let objectives = objectives::of_arguments(&args.slos, &args.goodput, &run.loaded, judging, &catalogue)?;

    let (scenario, config) = match args.slice {
        Some(slice) => (
            evaluators::with_slice(scenario, slice),
            evaluators::config_with_slice(&run.config, slice),
        ),
        None => (scenario, run.config.clone()),
    };
    let destination = match args.json {
        true => None,
        false => Some(Destination::make(args, &config, interrupts)?),
    };
    let folder = destination.as_ref().map(|destination| &destination.folder);
    let about = About::of(
        &scenario,
        folder.map_or(args.run.as_path(), RunFolder::path),
        config,
    );
    let setup = Setup {
        measuring: veeksha_metrics::Setup {
            measured_anew: anew.metrics.clone(),
            ..evaluators::setup(&scenario, objectives, &definitions)?
        },
        expected: expected::of(&scenario),
        decode_windows: evaluators::decode_windows(&scenario),
        fidelity: evaluators::fidelity(&scenario),
        views: wanted.views(&scenario)?,
        exporting: match folder {
            Some(_) => Exporting::start(&wanted, &scenario, &about)?,
            None => None,
        },
        about,
    };
    let mut analysis = Analysis::of_a_record(setup);
    let mut observer = None;
    if judges.observe_requests() {
        observer = Some(Observer::open(&judges, |event| analysis.on(&event))?);
    }
    // Of the record alone: what fails in this evaluation is told as its own failure.
    let mut failed_then = Vec::new();
    run.for_each(|event| {
        let judged_anew = match event {
            Event::RunJudged { plugin, .. } => judges.has(plugin),
            Event::PluginFailed(failed) => {
                judges.has(&failed.plugin)
                    || failed.part == PluginPart::SloCheck && judges.judge_run_as(&failed.plugin)
            }
            _ => false,
        };
        if !judged_anew && !anew.replaces(event) {
            analysis.on(event);
            if let Event::PluginFailed(failed) = event {
                failed_then.push(failed_in_the_run(failed));
            }
        }
        if let (Some(observer), Event::Finished(_)) = (&mut observer, event) {
            observer.take(&Arc::new(event.clone()), &mut |said| analysis.on(&said));
        }
    })?;
    let mut failures = observer.map_or_else(Vec::new, |observer| {
        observer.finish(&mut |said| analysis.on(&said))
    });
    let mut analysed = analysis.finish();
    let evaluation = &mut analysed.evaluation;
    evaluation.end.requests_unread = run.requests_unread();
    if run.is_damaged() {
        evaluation.record_is_damaged();
    }
    let taken_over = taken_over(evaluation, &run.lua_checks, &judges);
    failures.extend(judges::judge_run(evaluation, &judges.slo_checks));
    let never_judged = never_judged(evaluation, &run.lua_checks, &judges, lost);
    evaluation.slos.not_asked.extend(never_judged);
    let not_called: Vec<String> = not_called(evaluation, &run.lua_evaluators, &judges).collect();
    if args.slos.is_empty()
        && let Some(why) = &run.unknown
    {
        evaluation.slos.not_asked.push(format!(
            "the objectives of the scenario are not known, so that nothing is judged by them (`--slo` names others): {why}"
        ));
    }
    let remarks = run.notes.iter().chain(&run.about_scenario).chain(&taken_over);
    analysed.about.remarks = remarks.clone().cloned().collect();
    for note in remarks.chain(&failed_then).chain(&not_called) {
        say::err(format!("note: {note}"));
    }
    let judged = Judged {
        clock: match analysed.is_simulated() {
            true => Clock::Virtual,
            false => Clock::Real,
        },
        thresholds: results::thresholds(&scenario),
        self_test: None,
        threads: Threads::default(),
    };
    let code = results::conclude_again(folder, analysed, &failures, &judged, args.quiet)?;
    if let Some(destination) = destination {
        destination.keep();
    }
    Ok(code)
}

/// What must be known of the verdicts on the run whose checks are not asked again: that they are the run's own, or that there are none.
/// `lua_checks` are the evaluators that judged the run by Lua functions.
fn taken_over(evaluation: &Evaluation, lua_checks: &[String], judges: &Judges) -> Vec<String> {
    let said: BTreeSet<&String> = evaluation.slos.verdicts.iter().map(|said| &said.plugin).collect();
    let silent = silent_checks(evaluation, lua_checks, judges).map(|check| {
        format!(
            "the check of `{check}` is not asked again, and no verdict of it is in the record (it gave none, or the program that \
             recorded the run kept none): nothing is judged by it"
        )
    });
    let own = said.iter().filter(|plugin| !judges.judge_run_as(plugin));
    let own = own.map(|plugin| {
        format!("the verdicts of `{plugin}` on the run are the run's own: its check is not asked again")
    });
    own.chain(silent).collect()
}

/// The evaluators that judged the run by Lua functions and of which no verdict is known.
fn silent_checks<'a>(
    evaluation: &Evaluation,
    lua_checks: &'a [String],
    judges: &Judges,
) -> impl Iterator<Item = &'a String> {
    lua_checks.iter().filter(|check| {
        let mut said = evaluation.slos.verdicts.iter();
        !said.any(|said| said.plugin == **check) && !judges.has(check) && !has_failed(evaluation, check)
    })
}

/// Whose verdict on the run is not known: a run that was cut short was not judged.
fn never_judged(evaluation: &Evaluation, lua_checks: &[String], judges: &Judges, lost: bool) -> Vec<String> {
    if evaluation.end.complete {
        return Vec::new();
    }
    let silent = silent_checks(evaluation, lua_checks, judges).map(|check| {
        format!("the check of `{check}` is not known to have judged the run, whose record is not whole")
    });
    let lost = lost.then(|| "the scenario's plugins, which cannot be opened, are not known to have judged the run, whose record is not whole".to_owned());
    silent.chain(lost).collect()
}

/// Of which Lua evaluators of the scenario the functions are not called again: of those in whose place none was named.
fn not_called(
    evaluation: &Evaluation,
    lua_evaluators: &[String],
    judges: &Judges,
) -> impl Iterator<Item = String> {
    let left = lua_evaluators.iter().filter(|name| !judges.has(name));
    left.map(|name| {
        let failed = evaluation.failed.iter().any(|failed| failed.plugin == *name);
        let until = if failed { " until it failed" } else { "" };
        format!(
            "the Lua functions of `{name}` are not called again: what they measured and judged{until} is in the record; \
             `--plugin FILE.lua` calls those of a file"
        )
    })
}

fn failed_in_the_run(failed: &FailedPlugin) -> String {
    let FailedPlugin { plugin, message, .. } = failed;
    format!(
        "the plugin `{plugin}` failed in the run, {message}; it is not asked again, and what it would have said is not known"
    )
}

/// Whether a plugin failed while it judged the run.
fn has_failed(evaluation: &Evaluation, plugin: &str) -> bool {
    let over_the_run = evaluation
        .failed
        .iter()
        .filter(|failed| failed.part == PluginPart::SloCheck);
    over_the_run
        .map(|failed| &failed.plugin)
        .any(|failed| failed == plugin)
}

/// Where the results go. It is removed if the evaluation fails.
struct Destination {
    folder: RunFolder,
    finishing: Finishing,
    place: Place,
}

/// Who named the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The user: the results go into that very one.
    Given,
    /// Nobody: it is one of several within the run's, by date, and `latest` leads to the newest.
    Dated,
}

impl Destination {
    fn make(args: &EvaluateArgs, config: &str, interrupts: &Interrupts) -> Result<Self, Failure> {
        let (made, above, place) = match &args.to {
            Some(to) => {
                let above = missing_above(to);
                (RunFolder::create_at(to, config), above, Place::Given)
            }
            None => {
                let evaluations = args.run.join(EVALUATIONS);
                let stamp = veeksha_clock::utc_stamp(veeksha_clock::wall_nanos());
                let made = RunFolder::create_unlinked(&evaluations, config, &stamp);
                (made, vec![evaluations], Place::Dated)
            }
        };
        let folder = made.map_err(|error| Failure::no_folder(error, ELSEWHERE))?;
        let finishing = interrupts.unfinished(folder.path(), above);
        Ok(Destination {
            folder,
            finishing,
            place,
        })
    }

    /// The results are whole. Where `latest` cannot lead to them they are what they are all the same.
    fn keep(self) {
        let link = || match self.place {
            Place::Given => Ok(()),
            Place::Dated => self.folder.link_as_latest(),
        };
        let Ok(linked) = self.finishing.keep(|| Ok::<_, Infallible>(link()));
        if let Err(error) = linked {
            say::err(format!("note: no link leads to this evaluation: {error}"));
        }
    }
}

/// What is measured and judged again, so that what the record says of it does not count.
struct Anew {
    metrics: BTreeSet<String>,
    checks: BTreeSet<String>,
}

impl Anew {
    fn of(judges: &Judges, metrics: impl Iterator<Item = String>) -> Self {
        Anew {
            metrics: metrics.collect(),
            checks: judges.of_requests().into_iter().collect(),
        }
    }

    fn replaces(&self, event: &Event) -> bool {
        match event {
            Event::MetricDefined(metric) => self.metrics.contains(&metric.name),
            Event::Sampled(sample) => self.metrics.contains(&sample.metric),
            Event::Judged { plugin, .. } => self.checks.contains(plugin),
            _ => false,
        }
    }
}
