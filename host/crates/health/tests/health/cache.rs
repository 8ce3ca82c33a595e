//! A cache that should be cold.

use veeksha_events::{Event, RequestRecord};
use veeksha_model::{NodeId, Usage};

use crate::support::{CACHE, check, cold, failed, figure, health, near, one, passed, rate, skipped};

fn cached(tokens: u32, change: impl Fn(&mut RequestRecord)) -> Vec<Event> {
    one(|record| {
        record.usage = Some(Usage {
            prompt: 1000,
            completion: 50,
            cached: Some(tokens),
            reasoning: None,
        });
        change(record);
    })
}

/// 64 tokens are slack; 1 % of 1000 are 10.
#[test]
fn a_cache_that_knows_more_than_the_run_taught_it_fails() {
    passed(check(&health(cold(), &cached(74, |_| ())), CACHE));
    let report = health(cold(), &cached(75, |_| ()));
    failed(check(&report, CACHE), "0/0 (75 cached, 0 known)");
    near(figure(check(&report, CACHE), "unexpected share"), 0.011);
    // Known from an earlier prompt of the run.
    passed(check(
        &health(
            cold(),
            &cached(700, |record| record.ideal_cached_tokens = Some(640)),
        ),
        CACHE,
    ));
    failed(
        check(
            &health(
                cold(),
                &cached(800, |record| record.ideal_cached_tokens = Some(640)),
            ),
            CACHE,
        ),
        "640 known",
    );
    // Known from its own conversation: 900 of 1000 are history.
    let turn = |record: &mut RequestRecord| {
        record.history_parent = Some(NodeId(0));
        record.total_prompt_tokens = 1000;
    };
    passed(check(&health(cold(), &cached(960, turn)), CACHE));
}

#[test]
fn nothing_can_be_said_of_a_cache_that_is_not_told() {
    skipped(
        check(&health(rate(1.0), &cached(900, |_| ())), CACHE),
        "nothing is asked",
    );
    skipped(
        check(&health(cold(), &one(|_| ())), CACHE),
        "reports no cached tokens",
    );
}
