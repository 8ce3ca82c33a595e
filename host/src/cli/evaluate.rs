//! `veeksha-host evaluate`: the figures of an old run, anew.

use std::collections::BTreeSet;
use std::sync::Arc;

use veeksha_events::Event;
use veeksha_report::RunFolder;

use crate::analysis::{About, Analysis, Setup};
use crate::cli::args::EvaluateArgs;
use crate::failure::Failure;
use crate::judges::{self, Judges, Observer};
use crate::old_run::OldRun;
use crate::results::{self, Clock, Judged, Threads};
use crate::{compat, evaluators, expected, objectives, say, tokenizers};

/// Where the evaluations of a run are, within its folder.
const EVALUATIONS: &str = "evaluations";

pub(super) fn evaluate(args: &EvaluateArgs) -> Result<u8, Failure> {
    let mut run = OldRun::open(&args.run, args.no_cache)?;
    let tokenizer = tokenizers::tokenizer(&run.loaded, &mut Vec::new())?.tokenizer;
    let mut judges = Judges::default();
    for (index, plugin) in args.plugins.iter().enumerate() {
        let last = index + 1 == args.plugins.len();
        let config = if last { args.plugin_config.as_str() } else { "{}" };
        judges::of_file(&mut judges, &run.loaded, plugin, config, &tokenizer)?;
    }
    // What the scenario's own plugins measured is in the record; what judges the run by its results is asked again.
    let mut judged_then = run.lua_judges.clone();
    match judges::of_scenario(&run.loaded, &tokenizer) {
        Ok(own) => {
            judged_then.extend(own.of_requests());
            judges.slo_checks.extend(own.slo_checks);
        }
        Err(failure) => run.about_scenario.push(format!(
            "the scenario's plugins cannot be opened, so those that judge the run are not asked: {}",
            failure.message
        )),
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
    let objectives = objectives::of_arguments(&args.slos, &args.goodput, &scenario, judging, &catalogue)?;

    let config = run.config.clone();
    let folder = folder(args, &config)?;
    let about = About::of(
        &scenario,
        folder.as_ref().map_or(args.run.as_path(), RunFolder::path),
        config,
    );
    let setup = Setup {
        measuring: evaluators::setup(&scenario, objectives, &definitions, args.slice)?,
        expected: expected::of(&scenario),
        decode_windows: evaluators::decode_windows(&scenario),
        fidelity: evaluators::fidelity(&scenario),
        views: compat::views(&args.output, &scenario)?,
        exporting: match &folder {
            Some(_) => compat::Exporting::start(&args.output, &scenario, &about)?,
            None => None,
        },
        about,
    };
    let mut analysis = Analysis::of_a_record(setup);
    let mut observer = None;
    if judges.observe_requests() {
        observer = Some(Observer::open(&judges, |event| analysis.on(&event))?);
    }
    run.for_each(|event| {
        if !anew.replaces(event) {
            analysis.on(event);
        }
        if let (Some(observer), Event::Finished(_)) = (&mut observer, event) {
            observer.take(&Arc::new(event.clone()), &mut |said| analysis.on(&said));
        }
    })?;
    let failures = observer.map_or_else(Vec::new, |observer| {
        observer.finish(&mut |said| analysis.on(&said))
    });
    for note in run.notes.iter().chain(&run.about_scenario).chain(&run.not_called) {
        say::err(format!("note: {note}"));
    }
    let mut analysed = analysis.finish();
    analysed.about.remarks = run.notes.iter().chain(&run.about_scenario).cloned().collect();
    let judged = Judged {
        clock: match analysed.is_simulated() {
            true => Clock::Virtual,
            false => Clock::Real,
        },
        thresholds: results::thresholds(&scenario),
        self_test: None,
        threads: Threads::default(),
    };
    results::conclude_again(
        folder.as_ref(),
        analysed,
        &judges.slo_checks,
        failures,
        &judged,
        args.quiet,
    )
}

/// The folder to write to, unless nothing is to be written.
fn folder(args: &EvaluateArgs, config: &str) -> Result<Option<RunFolder>, Failure> {
    if args.json {
        return Ok(None);
    }
    let stamp = veeksha_clock::utc_stamp(veeksha_clock::wall_nanos());
    let parent = args.to.clone().unwrap_or_else(|| args.run.join(EVALUATIONS));
    RunFolder::create(&parent, config, &stamp)
        .map(Some)
        .map_err(Failure::usage)
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
