//! Cold cache.

use veeksha_events::{Event, RequestRecord};
use veeksha_model::{NodeId, SessionId, Usage};

use crate::support::{CACHE, check, cold, failed, health, near, one, passed, rate, skipped, value_of};

fn cached(tokens: u32, change: impl Fn(&mut RequestRecord)) -> Vec<Event> {
    one(|record| {
        record.usage = Some(Usage {
            prompt: 1000,
            completion: 50,
            cached: Some(tokens),
            reasoning: None,
        });
        record.total_prompt_tokens = 1000;
        change(record);
    })
}

/// 64 tokens are slack; 1 % of 1000 are 10.
#[test]
fn unexplained_cached_tokens_fail() {
    passed(check(&health(cold(), &cached(74, |_| ())), CACHE));
    let report = health(cold(), &cached(75, |_| ()));
    failed(check(&report, CACHE), "0/0 (75 cached, 0 explained)");
    near(value_of(check(&report, CACHE), "share unexplained"), 0.011);
    // Explained by an earlier prompt of the run.
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
        "640 explained",
    );
    // Explained by its own conversation: 900 of 1000 are history.
    let turn = |record: &mut RequestRecord| {
        record.history_parent = Some(NodeId(0));
    };
    passed(check(&health(cold(), &cached(960, turn)), CACHE));
}

/// 900 of 1000 are cached: 640 are explained, 64 are excluded, and the remaining 196 are
/// unexpected.
#[test]
fn cached_token_categories_add_up() {
    let account = |record: &mut RequestRecord| record.ideal_cached_tokens = Some(640);
    let report = health(cold(), &cached(900, account));
    let found = check(&report, CACHE);
    failed(
        found,
        "19.6 % of all prompt tokens were cached although no request of this run had sent them before (1 % allowed, and 64 tokens of \
         each prompt), in 1 of 1 request: 0/0 (900 cached, 640 explained); in total 90 % were cached",
    );
    for (name, tokens) in [
        ("cached tokens", 900.0),
        ("cached tokens with an ideal cache", 640.0),
        ("cached tokens from earlier requests", 640.0),
        ("cached tokens allowed in each prompt", 64.0),
        ("cached tokens from concurrent requests", 0.0),
        ("cached tokens unexplained", 196.0),
    ] {
        near(value_of(found, name), tokens);
    }
    // A server that evicted something has fewer than the explained tokens: 30 of 640.
    let report = health(cold(), &cached(30, account));
    let found = check(&report, CACHE);
    near(value_of(found, "cached tokens from earlier requests"), 30.0);
    near(value_of(found, "cached tokens allowed in each prompt"), 0.0);
}

/// The server has 1000 tokens where the host has 500, so 300 explained tokens of the host are 600
/// of the server's.
#[test]
fn explained_tokens_are_scaled_to_the_servers_tokenizer() {
    let halved = |record: &mut RequestRecord| {
        record.total_prompt_tokens = 500;
        record.ideal_cached_tokens = Some(300);
    };
    passed(check(&health(cold(), &cached(674, halved)), CACHE));
    failed(
        check(&health(cold(), &cached(675, halved)), CACHE),
        "675 cached, 600 explained",
    );
}

#[test]
fn skipped_when_the_server_reports_no_cached_tokens() {
    skipped(
        check(&health(rate(1.0), &cached(900, |_| ())), CACHE),
        "does not require a cold cache",
    );
    skipped(
        check(&health(cold(), &one(|_| ())), CACHE),
        "reports no cached tokens",
    );
}

/// The second of two prompts with a common prefix reached the server before the first one: the
/// deficit of one is the surplus of the other. A prompt that was sent when both were answered has
/// no such explanation.
#[test]
fn reordered_requests_explain_each_other() {
    let of = |session: u64, from: u64, to: u64, cached_tokens: u32, ideal: u32| {
        cached(cached_tokens, |record| {
            record.id.session = SessionId(session);
            record.dispatched_at = from;
            record.completed_at = to;
            record.ideal_cached_tokens = Some(ideal);
        })
        .into_iter()
        .filter(|event| matches!(event, Event::Finished(_)))
        .collect::<Vec<_>>()
    };
    let check_of = |first: Vec<Event>, second: Vec<Event>| {
        let report = health(cold(), &[first, second].concat());
        check(&report, CACHE).clone()
    };
    let (first, second) = (of(0, 0, 100, 600, 0), of(1, 1, 90, 0, 600));
    passed(&check_of(first.clone(), second.clone()));
    passed(&check_of(second, first.clone()));
    failed(
        &check_of(first.clone(), of(1, 100, 190, 0, 600)),
        "0/0 (600 cached, 0 explained)",
    );
    // Half of the surplus is explained: 536 beyond the slack, less 300.
    let half = check_of(first, of(1, 1, 90, 300, 600));
    near(value_of(&half, "cached tokens"), 900.0);
    near(value_of(&half, "cached tokens from earlier requests"), 300.0);
    near(value_of(&half, "cached tokens allowed in each prompt"), 64.0);
    near(value_of(&half, "cached tokens from concurrent requests"), 300.0);
    near(value_of(&half, "cached tokens unexplained"), 236.0);
}
