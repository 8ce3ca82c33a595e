//! Whatever order threads bring the events in, and wherever the record stops.
use crate::sequences::*;
use proptest::prelude::*;
use serde_json::Value;
use veeksha_evaluate::Metric;
use veeksha_events::{Event, NeverSentReason, SessionEnd};
use veeksha_model::ChunkKind::{Content, Finish, Reasoning, Role};
use veeksha_model::{ChunkKind, ErrorClass};

/// How a session of one request goes.
#[derive(Clone, Debug)]
struct Course {
    begin: u64,
    steps: Vec<(u64, ChunkKind)>,
    tokens: u32,
    fate: Fate,
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
        let mut at = self.begin;
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
    )
        .prop_map(|(begin, steps, tokens, fate)| Course {
            begin,
            steps,
            tokens,
            fate,
        })
}

fn run() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(course(), 0..12).prop_map(|courses| {
        let events = courses
            .iter()
            .zip(0..)
            .flat_map(|(course, session)| course.events(session));
        events
            .chain([
                Event::TimeoutReached { at: ms(2500) },
                Event::RunEnded { at: ms(9000) },
            ])
            .collect()
    })
}

fn no_null_pretends_to_be_a_number(value: &Value) -> bool {
    // serde_json turns NaN and infinities into null; a figure of a summary must never be one.
    match value {
        Value::Object(entries) => entries.iter().all(|(key, value)| {
            let is_figure =
                key.ends_with(')') || ["mean", "p50", "p90", "p95", "p99"].contains(&key.as_str());
            !(is_figure && value.is_null()) && no_null_pretends_to_be_a_number(value)
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
        prop_assert_eq!(evaluate(slos(), events), evaluate(slos(), shuffled));
    }

    #[test]
    fn a_record_may_stop_anywhere(events in run(), part in 0.0..1.0f64) {
        let kept = (events.len() as f64 * part) as usize;
        let cut = &events[..kept];
        let evaluation = evaluate(vec![slo(Metric::EndToEnd, 0.9, 0.3)], cut.iter().cloned());
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
        for file in [evaluation.summary_stats(), evaluation.throughput_metrics(), evaluation.slo_results()] {
            prop_assert!(no_null_pretends_to_be_a_number(&file), "{}", file);
        }
        for entry in &evaluation.metrics {
            let s = entry.summary;
            let figures = [s.min, s.p50, s.p90, s.p95, s.p99, s.max];
            prop_assert!(figures.is_sorted(), "{:?}", entry);
            prop_assert!(s.min <= s.mean && s.mean <= s.max);
        }
        if let Some(goodput) = evaluation.slos.goodput {
            prop_assert!((0.0..=1.0).contains(&goodput));
        }
    }
}
