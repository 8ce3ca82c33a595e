//! Prompt and output length.

use veeksha_events::Status;
use veeksha_health::{Expected, HealthOutcome, OutputLength, Tolerance};
use veeksha_model::ErrorClass;

use crate::support::{
    OUTPUT, PROMPT, S, check, failed, health, near, one, passed, rate, request, session_of, skipped, value_of,
};

/// 2 % of 100 tokens are 2; of 10 tokens one is allowed.
#[test]
fn prompt_tolerance_is_relative_to_the_target() {
    for (target, tokens, allowed) in [
        (100, 102, true),
        (100, 97, false),
        (10, 11, true),
        (10, 12, false),
        (10_000, 10_150, true),
        (10_000, 9_700, false),
    ] {
        let report = health(
            rate(1.0),
            &one(|record| {
                record.target_prompt_tokens = target;
                record.prompt_tokens = tokens;
            }),
        );
        let check = check(&report, PROMPT);
        assert_eq!(
            check.outcome == HealthOutcome::Passed,
            allowed,
            "{tokens} of {target}: {check:?}"
        );
        let difference = f64::from(tokens) - f64::from(target);
        near(check.distributions[0].summary.mean, difference);
        near(
            value_of(check, "largest difference"),
            difference / f64::from(target),
        );
    }
    // A fixed tolerance of 15 tokens (Veeksha's) would accept an empty prompt here.
    let report = health(
        rate(1.0),
        &one(|record| {
            record.target_prompt_tokens = 15;
            record.prompt_tokens = 0;
        }),
    );
    failed(check(&report, PROMPT), "0/0 (0 of 15)");
    let report = health(rate(1.0), &one(|record| record.target_prompt_tokens = 0));
    skipped(check(&report, PROMPT), "no measured request has a target");
}

#[test]
fn only_exact_answers_may_not_be_short() {
    let short = one(|record| (record.output_tokens, record.output_exact) = (20, true));
    passed(check(&health(rate(1.0), &short), OUTPUT));
    let exact = Expected {
        output: OutputLength::Exact(Tolerance::default()),
        ..rate(1.0)
    };
    failed(check(&health(exact.clone(), &short), OUTPUT), "0/0 (20 of 50)");
    passed(check(
        &health(
            exact,
            &one(|record| (record.output_tokens, record.output_exact) = (49, true)),
        ),
        OUTPUT,
    ));
    failed(
        check(
            &health(rate(1.0), &one(|record| record.output_tokens = 52)),
            OUTPUT,
        ),
        "longer",
    );
    let failure = one(|record| {
        record.status = Status::Failed {
            class: ErrorClass::Timeout,
            message: String::new(),
        };
        record.output_tokens = 0;
    });
    skipped(check(&health(rate(1.0), &failure), OUTPUT), "no answered request");
}

/// An agent that sets `output = 120` without `exact` bounds its answers: a short one is as
/// requested, although other requests of the run have exact lengths, and a long one is not.
#[test]
fn upper_limit_is_not_a_target() {
    let expected = || Expected {
        output: OutputLength::Exact(Tolerance::default()),
        short_share: 0.0,
        ..rate(1.0)
    };
    let limited = |tokens: u32| {
        let mut exact = request(0, 0, 0, S);
        exact.output_exact = true;
        let mut limited = request(1, 0, S, 2 * S);
        limited.output_tokens = tokens;
        health(expected(), &[session_of(&exact), session_of(&limited)].concat())
    };
    passed(check(&limited(20), OUTPUT));
    near(value_of(check(&limited(20), OUTPUT), "too short"), 0.0);
    assert_eq!(
        check(&limited(20), OUTPUT).findings,
        ["1 of 1 answer with an upper limit ended before it, which is not a violation"]
    );
    assert!(check(&limited(50), OUTPUT).findings.is_empty());
    failed(check(&limited(52), OUTPUT), "1 of 2 requests longer");
}

/// Shares refer to the requests with an exact length: one short answer of 50 exact ones is 2 %,
/// whatever the number of requests with a limit.
#[test]
fn allowed_share_of_short_answers_excludes_limits() {
    let mut events = Vec::new();
    for session in 0..200 {
        let mut record = request(session, 0, session * S, session * S + S);
        record.output_exact = session < 50;
        if session == 0 {
            record.output_tokens = 20;
        }
        events.extend(session_of(&record));
    }
    let expected = Expected {
        output: OutputLength::Exact(Tolerance::default()),
        short_share: 0.01,
        ..rate(1.0)
    };
    failed(
        check(&health(expected, &events), OUTPUT),
        "1 of 50 requests shorter",
    );
}

/// One answer of 280 that ends early is within 1 %; three are not; and none may be short where a
/// minimum was asked for.
#[test]
fn small_share_of_short_answers_passes() {
    let of = |short: u64, share: f64| {
        let mut events = Vec::new();
        for session in 0..280 {
            let mut record = request(session, 0, session * S, session * S + S);
            record.output_exact = true;
            if session < short {
                record.output_tokens = 20;
            }
            events.extend(session_of(&record));
        }
        let expected = Expected {
            output: OutputLength::Exact(Tolerance::default()),
            short_share: share,
            ..rate(1.0)
        };
        health(expected, &events)
    };
    let one = of(1, 0.01);
    passed(check(&one, OUTPUT));
    near(value_of(check(&one, OUTPUT), "too short"), 1.0);
    assert!(
        check(&one, OUTPUT).findings[0].contains("0/0 (20 of 50)"),
        "it is named all the same"
    );
    failed(check(&of(3, 0.01), OUTPUT), "3 of 280 requests shorter");
    failed(check(&of(1, 0.0), OUTPUT), "0/0 (20 of 50)");
}

/// Three of 98 tokens, one of 101, all of 100: sorted -2, -2, -2, 1. Mean -5/4; rank 0.95 * 3 =
/// 2.85: -2 + 0.85 * 3.
#[test]
fn lengths_are_summarised_exactly() {
    let mut events = Vec::new();
    for (session, tokens) in [98, 101, 98, 98].into_iter().enumerate() {
        let mut record = request(session as u64, 0, session as u64 * S, session as u64 * S + S);
        record.prompt_tokens = tokens;
        events.extend(session_of(&record));
    }
    let report = health(rate(1.0), &events);
    let summary = check(&report, PROMPT).distributions[0].summary;
    assert_eq!(
        (summary.count, summary.min, summary.p50, summary.max),
        (4, -2.0, -2.0, 1.0)
    );
    near(summary.mean, -1.25);
    near(summary.p95, 0.55);
    near(
        summary.std,
        (3.0 * 0.75_f64.powi(2) + 2.25_f64.powi(2)).sqrt() / 2.0,
    );
}
