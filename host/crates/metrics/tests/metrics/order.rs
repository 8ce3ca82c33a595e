//! Independence of the order in which threads produce the events, and of the point at which the
//! record stops.
use crate::sequences::*;
use proptest::prelude::*;
use serde_json::Value;
use veeksha_events::{Event, NeverSentReason, SessionEnd};
use veeksha_metrics::{Catalogue, Metric, Objectives, RunEvaluator, Setup, Stated};
use veeksha_model::ChunkKind::{Content, Finish, Reasoning, Role};
use veeksha_model::{Better, ChunkKind, ErrorClass, MetricDefinition, MetricSample, SessionId};
use veeksha_slo::Objective;

/// The parameters of a session of one request.
#[derive(Clone, Debug)]
struct Course {
    begin: u64,
    steps: Vec<(u64, ChunkKind)>,
    tokens: u32,
    fate: Fate,
    /// A second request after the first, the tokens of the chunks, a label, and plugin results.
    grown: Option<(u64, Vec<u32>, &'static str, f64, bool)>,
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Answered,
    Failed,
    Drained,
    Open,
    NeverSent,
}

impl Course {
    fn events(&self, session: u64) -> Vec<Event> {
        let mut events = self.first(session);
        events.push(Event::SessionPlanned {
            session: SessionId(session),
            digest: self.begin * 31 + u64::from(self.tokens),
        });
        let Some((wait, tokens, tier, value, good)) = &self.grown else {
            return events;
        };
        for event in &mut events {
            if let Event::Finished(record) = event {
                let known = tokens.iter().copied().cycle().take(record.generated_at().count());
                record.chunk_tokens = known.collect();
                record.labels = vec![("tier".into(), (*tier).to_owned())];
            }
        }
        if let Fate::Answered = self.fate {
            let begin = self.begin + 2000 + wait;
            let second = with_chunks(
                answered(session, 1, begin, begin + 40),
                2,
                &[(begin + 9, Content), (begin + 30, Content)],
            );
            events.extend(both(after(second, &[0], *wait)));
        }
        events.push(Event::Judged {
            plugin: "judge".into(),
            request: id(session, 0),
            good: *good,
        });
        for weight in [1.0, *value + 0.5] {
            events.push(Event::Sampled(MetricSample {
                metric: "jitter".into(),
                value: *value,
                weight,
                request: Some(id(session, 0)),
            }));
        }
        events
    }

    fn first(&self, session: u64) -> Vec<Event> {
        // Dispatched a millisecond after the scheduled instant, and answered after that.
        let mut at = self.begin + 1;
        let mut chunks = Vec::new();
        for (step, kind) in &self.steps {
            at += step;
            chunks.push((at, *kind));
        }
        let record = with_chunks(answered(session, 0, self.begin, at + 1), self.tokens, &chunks);
        let start = session_started(session, self.begin);
        let end = |end| session_finished(session, at + 1, end, 1);
        let [dispatch, finish] = match self.fate {
            Fate::NeverSent => {
                let withheld = never_sent(session, 0, NeverSentReason::RunEnded);
                return vec![start, withheld, end(SessionEnd::Incomplete)];
            }
            Fate::Open => return vec![start, dispatched(&record)],
            Fate::Failed => both(failed(record, ErrorClass::Timeout, None)),
            Fate::Drained => both(drained(record)),
            Fate::Answered => both(record),
        };
        vec![start, dispatch, finish, end(SessionEnd::Completed)]
    }
}

fn course() -> impl Strategy<Value = Course> {
    let kind = prop::sample::select(vec![Role, Content, Reasoning, Finish]);
    let fate = prop::sample::select(vec![
        Fate::Answered,
        Fate::Failed,
        Fate::Drained,
        Fate::Open,
        Fate::NeverSent,
    ]);
    (
        0u64..5000,
        prop::collection::vec((0u64..200, kind), 0..6),
        0u32..9,
        fate,
        prop::option::of((
            0u64..300,
            prop::collection::vec(0u32..4, 1..4),
            prop::sample::select(vec!["gold", "free"]),
            0.0..9.0f64,
            any::<bool>(),
        )),
    )
        .prop_map(|(begin, steps, tokens, fate, grown)| Course {
            begin,
            steps,
            tokens,
            fate,
            grown,
        })
}

/// Objectives of all kinds, including one on a plugin metric.
fn asked() -> Setup {
    let mut catalogue = Catalogue::built_in();
    catalogue.define(jitter()).unwrap();
    let stated = [
        "p90(ttfc) <= 300ms",
        "mean(tbc, window = 500ms) <= 100ms",
        "p50(itl{tier=\"gold\"}) <= 50ms",
        "mean(jitter{tier=\"free\"}) <= 4",
        "p90(session_slowdown) <= 2",
        "goodput >= 0.5",
    ]
    .map(|text| Stated::from(Objective::parse(text).unwrap()));
    Setup {
        objectives: Objectives::check(stated.into(), Vec::new(), vec!["judge".into()], &catalogue).unwrap(),
        catalogue,
        slice: Some(ms(700)),
        ..Setup::default()
    }
}

fn jitter() -> MetricDefinition {
    MetricDefinition {
        name: "jitter".into(),
        unit: "1".into(),
        better: Better::Less,
        summary: "a metric of the test".into(),
        plugin: "tester".into(),
    }
}

fn run() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(course(), 0..12).prop_map(|courses| {
        let events = courses
            .iter()
            .zip(0..)
            .flat_map(|(course, session)| course.events(session));
        events
            .chain([
                Event::MetricDefined(jitter()),
                Event::TimeoutReached { at: ms(2500) },
                Event::RunEnded { at: ms(9000) },
            ])
            .collect()
    })
}

fn no_null_pretends_to_be_a_number(value: &Value) -> bool {
    // serde_json turns NaN and infinities into null; a summary must not contain them.
    match value {
        Value::Object(entries) => entries.iter().all(|(key, value)| {
            let is_run_metric =
                key.ends_with(')') || ["mean", "p50", "p90", "p95", "p99"].contains(&key.as_str());
            !(is_run_metric && value.is_null()) && no_null_pretends_to_be_a_number(value)
        }),
        Value::Array(values) => values.iter().all(no_null_pretends_to_be_a_number),
        _ => true,
    }
}

proptest! {
    #[test]
    fn the_order_of_events_changes_nothing((events, shuffled) in run().prop_flat_map(|events| {
        (Just(events.clone()), Just(events).prop_shuffle())
    })) {
        let slos = || vec![slo(Metric::Ttfc, 0.9, 0.3), slo(Metric::Tbc, 0.5, 0.1)];
        prop_assert_eq!(evaluate(slos(), events.clone()), evaluate(slos(), shuffled.clone()));
        let (one, other) = (run_in(asked(), events), run_in(asked(), shuffled));
        prop_assert_eq!(one.summary_stats(), other.summary_stats());
        prop_assert_eq!(one.session_metrics(), other.session_metrics());
        prop_assert_eq!(one, other);
    }

    /// The last live statistics match the final ones, percentiles within their three digits.
    #[test]
    fn live_metrics_arrive_at_the_final_ones(events in run()) {
        let mut evaluator = RunEvaluator::new(asked());
        events.iter().for_each(|event| evaluator.on(event));
        let live = evaluator.live();
        let end = evaluator.finish();
        let all = |wanted: fn(&Event) -> bool| events.iter().filter(|event| wanted(event)).count() as u64;
        prop_assert_eq!(live.completed + live.failed, all(|event| matches!(event, Event::Finished(_))));
        prop_assert_eq!(live.completed + live.failed, end.counts.requests + end.counts.drained);
        prop_assert_eq!(live.errors.values().sum::<u64>(), live.failed);
        prop_assert_eq!(live.never_sent, end.counts.never_sent_total());
        prop_assert_eq!(live.sessions_started, end.counts.sessions);
        prop_assert_eq!(live.dispatched, live.completed + live.failed + live.in_flight);
        let seconds = |of: fn(&veeksha_metrics::LiveSecond) -> u64| live.seconds.iter().map(of).sum::<u64>();
        prop_assert_eq!(seconds(|second| second.completed), live.completed);
        prop_assert_eq!(seconds(|second| second.failed), live.failed);
        if end.counts.drained == 0 {
            prop_assert_eq!(live.completed, end.counts.completed);
            prop_assert_eq!(live.output_tokens, end.throughput.output_tokens);
            for (live, metric) in [
                (live.ttfc, Metric::Ttfc),
                (live.tbc, Metric::Tbc),
                (live.tpot, Metric::Tpot),
                (live.end_to_end, Metric::EndToEnd),
            ] {
                let exact = end.metric(metric);
                prop_assert_eq!(live.map_or(0, |live| live.count), exact.map_or(0, |exact| exact.count as u64));
                if let (Some(live), Some(exact)) = (live, exact) {
                    prop_assert!((live.max - exact.max).abs() <= 1e-3 * exact.max + 2e-9, "{}: {:?} {:?}", metric, live, exact);
                }
            }
        }
    }

    #[test]
    fn a_record_may_stop_anywhere(events in run(), part in 0.0..1.0f64) {
        let kept = (events.len() as f64 * part) as usize;
        let cut = &events[..kept];
        let evaluation = run_in(asked(), cut.iter().cloned());
        let count = |wanted: fn(&Event) -> bool| cut.iter().filter(|event| wanted(event)).count() as u64;
        let counts = &evaluation.counts;
        prop_assert_eq!(
            counts.requests + counts.drained,
            count(|event| matches!(event, Event::Finished(_)))
        );
        prop_assert_eq!(counts.requests, counts.completed + counts.errored + counts.cancelled);
        let ended = counts.successful_sessions + counts.errored_sessions + counts.cancelled_sessions
            + counts.incomplete_sessions;
        prop_assert_eq!(ended, counts.sessions);
        prop_assert!(!evaluation.end.complete);
        for file in [evaluation.summary_stats(), evaluation.throughput_metrics(), evaluation.slo_results(), evaluation.time_slices(), evaluation.curves(), evaluation.session_metrics()] {
            prop_assert!(no_null_pretends_to_be_a_number(&file), "{}", file);
        }
        let built_in = evaluation.metrics.iter().map(|entry| entry.summary);
        for s in built_in.chain(evaluation.custom.iter().map(|entry| entry.summary)) {
            let percentiles = [s.min, s.p50, s.p90, s.p95, s.p99, s.max];
            prop_assert!(percentiles.is_sorted(), "{:?}", s);
            prop_assert!(s.min <= s.mean && s.mean <= s.max);
        }
        if let Some(goodput) = evaluation.slos.goodput {
            prop_assert!((0.0..=1.0).contains(&goodput));
        }
    }
}
