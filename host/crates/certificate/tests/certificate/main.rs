//! Certificates with expected values computed by hand. Times are in microseconds.
#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "a test may panic, also in its functions")]

mod client;
mod coverage;
mod late_reads;
#[expect(dead_code, reason = "the tests of the metrics use all of it")]
#[path = "../../../metrics/tests/metrics/sequences.rs"]
mod sequences;

use proptest::prelude::*;
use serde_json::Value;
use veeksha_certificate::{
    Basis, CertFinding, Certificate, ENOUGH, ErrorDistribution, ErrorSource, RunConditions, SelfTest,
    Thresholds, Verdict, certify,
};
use veeksha_events::{Event, NeverSentReason, RequestRecord, ThreadSample};
use veeksha_metrics::{ErrorPart, Evaluation, Metric};
use veeksha_model::{Chunk, ChunkKind, ErrorClass, Held, StampSource, Usage};

use crate::sequences::{answered, close, evaluate, failed, finished, never_sent};

const US: u64 = 1_000;

/// The timing of one request; each begins 100 ms after the previous one.
#[derive(Clone, Copy, Debug)]
struct Way {
    late: u64,
    send: u64,
    ttfc: u64,
    gap: u64,
    chunks: u64,
    lag: u64,
    stamps: StampSource,
}

/// Dispatched 30 µs late, sent 53 µs later; a first chunk after 20 ms, then one every 10 ms.
const QUIET: Way = Way {
    late: 30,
    send: 53,
    ttfc: 20_000,
    gap: 10_000,
    chunks: 5,
    lag: 25,
    stamps: StampSource::Kernel,
};

fn request(number: u64, way: Way) -> RequestRecord {
    let mut record = answered(number, 0, number * 100, 0);
    record.dispatched_at = record.intended + way.late * US;
    record.picked_up_at = Some(record.dispatched_at + 5 * US);
    record.sent_at = Some(record.dispatched_at + way.send * US);
    record.connection_reused = true;
    record.stamps = way.stamps;
    let first = record.dispatched_at + way.ttfc * US;
    let lag = match way.stamps {
        StampSource::Kernel => way.lag * US,
        StampSource::Read => 0,
    };
    let chunk = |place: u64| Chunk {
        at: first + place * way.gap * US,
        lag: lag as u32,
        bytes: 20,
        kind: ChunkKind::Content,
        merged: false,
    };
    record.chunks = (0..way.chunks).map(chunk).collect();
    record.output_tokens = way.chunks as u32;
    record.completed_at = record.chunks.last().map_or(first, |last| last.at);
    record.processed_at = record.completed_at;
    record
}

fn requests(count: u64, way: Way) -> Vec<Event> {
    (0..count).map(|number| finished(request(number, way))).collect()
}

/// Evaluates a run with an end event; without one, the record counts as cut short.
fn run(mut events: Vec<Event>) -> Evaluation {
    events.push(Event::RunEnded {
        at: 3600 * 1_000_000 * US,
    });
    evaluate(Vec::new(), events)
}

fn judge(events: Vec<Event>) -> Certificate {
    certify(
        &run(events),
        &Thresholds::default(),
        &RunConditions::default(),
        None,
    )
}

#[track_caller]
fn about(certificate: &Certificate, metric: Metric) -> &CertFinding {
    let found = certificate
        .findings
        .iter()
        .find(|finding| finding.metric == Some(metric));
    assert!(found.is_some(), "{metric} is not in {:#?}", certificate.findings);
    found.expect("as was just seen")
}

#[track_caller]
fn with_text<'a>(certificate: &'a Certificate, text: &str) -> &'a CertFinding {
    let found = certificate
        .findings
        .iter()
        .find(|finding| finding.what.contains(text));
    assert!(found.is_some(), "{text:?} is not in {:#?}", certificate.findings);
    found.expect("as was just seen")
}

#[track_caller]
fn errors(certificate: &Certificate, metric: Metric, mean: f64, p99: f64) {
    let bound = certificate.bound(metric).expect("a bound");
    assert!(
        (bound.mean_error * 1e6 - mean).abs() < 1e-6,
        "{metric}: {bound:?}"
    );
    // Percentiles have three digits.
    assert!(
        (bound.p99_error * 1e6 - p99).abs() <= 1e-3 * p99,
        "{metric}: {bound:?}"
    );
}

fn thread(name: &str, busy_ms: u64, waiting_ms: u64) -> Event {
    Event::ThreadSampled(ThreadSample {
        thread: name.into(),
        at: 0,
        span: 1_000_000 * US,
        busy: busy_ms * 1_000 * US,
        waiting: waiting_ms * 1_000 * US,
    })
}

/// Answers of five chunks with 4 tokens by usage, of which the host counts `tokens` each.
fn counted_as(tokens: u32) -> Certificate {
    let counted = |number| finished(in_chunks(request(number, QUIET), tokens, 20));
    judge((0..40).map(counted).collect())
}

/// Sets the host's tokens of each chunk, and the total.
fn in_chunks(mut record: RequestRecord, tokens: u32, total: u32) -> RequestRecord {
    record.chunk_tokens = vec![tokens; record.chunks.len()];
    record.output_tokens = total;
    record
}

#[test]
fn marks_metrics_of_tokens_per_chunk_where_usage_is_plausible() {
    assert_eq!(counted_as(4).token_doubt, None);
    assert_eq!(counted_as(4).json()["token_disagreement"], Value::Null);
    let other_tokenizer = counted_as(5);
    let marked: Vec<&str> = Metric::all()
        .filter(|metric| {
            let doubt = other_tokenizer.token_doubt(*metric);
            doubt.and_then(|doubt| doubt.disagreement) == Some(0.25)
        })
        .map(Metric::name)
        .collect();
    assert_eq!(marked, ["tpot", "itl", "fluidity", "fluidity_tokens",]);
    let file = other_tokenizer.json();
    assert_eq!(
        file["token_disagreement"],
        serde_json::json!({ "share": 0.25, "metrics": marked })
    );
    assert_eq!(file["token_counts_unverified"], false);
    assert_eq!(file["bounds"]["ttfc"]["token_disagreement"], Value::Null);
    assert_eq!(file["bounds"]["tpot"]["token_disagreement"], 0.25);
    let finding = with_text(&other_tokenizer, "differ by 25 % of all tokens");
    assert_eq!((finding.metric, finding.verdict), (None, Verdict::Valid));
    assert!(
        finding
            .what
            .contains("the server's usage has 800 in 40 answers, and their chunks have 1000. Usage is used."),
        "{}",
        finding.what
    );
    let remedy = finding.remedy.as_deref().expect("a remedy");
    assert_eq!(remedy, "name the model's tokenizer (`client.tokenizer`)");
    // Encoding generated text again does not always give the generated tokens.
    let of_model = RunConditions {
        tokenizer_is_of_model: true,
        ..RunConditions::default()
    };
    let counted = (0..40).map(|number| finished(in_chunks(request(number, QUIET), 5, 20)));
    let certificate = certify(&run(counted.collect()), &Thresholds::default(), &of_model, None);
    let finding = with_text(&certificate, "encoding generated text again");
    assert_eq!(finding.remedy, None);
    // The bound covers times only.
    let tpot = &about(&other_tokenizer, Metric::Tpot).what;
    assert!(
        tpot.contains(": timing error ")
            && tpot.ends_with(", without the error of token counts: token counts differ by 25 %"),
        "{tpot}"
    );
    assert!(
        about(&other_tokenizer, Metric::Ttfc)
            .what
            .contains("TTFC: error ")
    );
}

/// The host counts 30 prompt tokens in each of 40 requests.
#[test]
fn marks_metrics_of_prompt_tokens_that_the_server_counts_differently() {
    let reported = |prompt: u32| {
        let events = (0..40).map(|number| {
            let mut record = request(number, QUIET);
            record.usage = Some(Usage {
                prompt,
                completion: record.output_tokens,
                cached: None,
                reasoning: None,
            });
            finished(record)
        });
        judge(events.collect())
    };
    assert_eq!(reported(30).prompt_doubt, None);
    assert_eq!(reported(30).json()["prompt_token_disagreement"], Value::Null);
    // Usage that was not reported.
    assert_eq!(reported(0).prompt_doubt, None);
    let more = reported(60);
    assert_eq!(more.verdict, reported(30).verdict);
    let doubt = "the server counted 100 % more prompt tokens";
    for metric in [Metric::PromptTokens, Metric::TotalTokens] {
        assert_eq!(more.doubts(metric).as_deref(), Some(doubt));
    }
    assert_eq!(more.doubts(Metric::OutputTokens), None);
    let finding = with_text(&more, doubt);
    assert_eq!((finding.metric, finding.verdict), (None, Verdict::Valid));
    assert_eq!(
        more.json()["prompt_token_disagreement"],
        serde_json::json!({
            "share": 1.0, "requests": 40, "by_host": 1200, "by_server": 2400,
            "metrics": ["num_prompt_tokens", "num_total_tokens", "input_tokens_per_second", "total_tokens_per_second"],
        })
    );
    with_text(&reported(15), "the server counted 50 % fewer prompt tokens");
}

/// The advice to count with a chat template applies if the host does not, and if the server counts
/// more tokens.
#[test]
fn remedy_for_prompt_tokens_is_one_that_can_apply() {
    let remedy = |prompt: u32, tokenizer_is_of_model, may_have_uncounted_template| {
        let events = (0..40).map(|number| {
            let mut record = request(number, QUIET);
            record.usage = Some(Usage {
                prompt,
                completion: record.output_tokens,
                cached: None,
                reasoning: None,
            });
            finished(record)
        });
        let conditions = RunConditions {
            tokenizer_is_of_model,
            may_have_uncounted_template,
            ..RunConditions::default()
        };
        let certificate = certify(&run(events.collect()), &Thresholds::default(), &conditions, None);
        let finding = with_text(&certificate, "the server counted");
        let is_about_templates = finding.what.contains("Chat templates");
        (finding.remedy.clone().unwrap_or_default(), is_about_templates)
    };
    let (named, about_templates) = remedy(60, false, true);
    assert!(named.contains("client.tokenizer") && about_templates, "{named}");
    let (counted, about_templates) = remedy(60, true, true);
    assert!(
        counted.contains("client.apply_chat_template") && about_templates,
        "{counted}"
    );
    for (prompt, may_have_uncounted_template) in [(60, false), (15, true), (15, false)] {
        let none = remedy(prompt, true, may_have_uncounted_template);
        assert_eq!(none, (String::new(), false), "{prompt}");
    }
}

/// One answer in ten has chunks of several tokens, which the host's tokenizer counts as 40 % more
/// than the server. Of all tokens, 4 % differ.
#[test]
fn disagreement_of_few_answers_does_not_degrade_the_run() {
    let events = (0..40).map(|number| {
        let mut record = request(number, Way { chunks: 20, ..QUIET });
        if number % 10 == 0 {
            record.chunks.truncate(10);
            record = in_chunks(record, 2, 20);
            record.chunk_tokens[..4].fill(4);
        }
        finished(record)
    });
    let certificate = judge(events.collect());
    let doubt = certificate.token_doubt.expect("a doubt");
    assert_eq!(doubt.disagreement, Some(32.0 / 800.0));
    let finding = with_text(&certificate, "differ by 4 % of all tokens");
    assert_eq!(finding.verdict, Verdict::Valid);
    assert_eq!(certificate.verdict, Verdict::Valid);
}

/// A server that sends several tokens in a chunk, and reports the tokens of each.
#[test]
fn known_tokens_of_bundled_chunks_are_not_a_disagreement() {
    let certificate = counted_as(4);
    assert_eq!(
        (certificate.verdict, certificate.token_doubt),
        (Verdict::Valid, None)
    );
    assert!(about(&certificate, Metric::Tpot).what.contains("TPOT: error "));
}

/// Usage that covers two choices of which only one is read: twice the tokens.
#[test]
fn degrades_a_run_whose_usage_is_wrong() {
    let doubled = counted_as(2);
    assert_eq!(doubled.verdict, Verdict::Degraded);
    assert!(doubled.token_doubt(Metric::OutputTokens).is_some());
    let finding = with_text(&doubled, "differ by 50 % of all tokens");
    assert_eq!(
        (finding.metric, finding.verdict),
        (Some(Metric::Tpot), Verdict::Degraded)
    );
    let events = (0..40).map(|number| finished(in_chunks(request(number, QUIET), 1, 10)));
    let as_many_as_chunks = judge(events.collect());
    let finding = with_text(&as_many_as_chunks, "differ by 50 % of all tokens");
    assert_eq!(
        finding.remedy.as_deref(),
        Some("the server's usage is wrong: tokens and chunks of the answers agree")
    );
    let with_usage = |total: u32| {
        let mut events = Vec::new();
        for number in 0..40 {
            let mut record = request(number, QUIET);
            record.output_tokens = total;
            events.push(finished(record));
        }
        judge(events)
    };
    // Five chunks: five tokens, or six including the end token.
    assert_eq!(with_usage(5).verdict, Verdict::Valid);
    assert_eq!(with_usage(6).verdict, Verdict::Valid);
    let too_few = with_usage(3);
    assert_eq!(too_few.verdict, Verdict::Degraded);
    with_text(
        &too_few,
        "in 40 of 40 answers the server's usage has fewer tokens than the answer has chunks",
    );
    let unknown = with_usage(100);
    assert_eq!(unknown.verdict, Verdict::Degraded);
    with_text(
        &unknown,
        "in 40 of 40 answers the tokens of the first chunk are not known",
    );
}

/// A server without usage, whose chunks have one token each; the host's tokenizer counts two.
#[test]
fn degrades_a_run_whose_only_token_count_is_not_confirmed() {
    let without_usage = |tokens: u32, conditions: &RunConditions| {
        let events = (0..40).map(|number| {
            let mut record = in_chunks(request(number, QUIET), tokens, 5 * tokens);
            record.output_tokens_from_usage = false;
            finished(record)
        });
        certify(&run(events.collect()), &Thresholds::default(), conditions, None)
    };
    let unknown = RunConditions::default();
    let foreign = without_usage(2, &unknown);
    assert_eq!(foreign.verdict, Verdict::Degraded);
    let finding = with_text(
        &foreign,
        "the host's tokenizer counts 400 in 40 answers without usage",
    );
    assert_eq!(
        (finding.metric, finding.verdict),
        (Some(Metric::Tpot), Verdict::Degraded)
    );
    assert!(
        finding
            .remedy
            .as_ref()
            .is_some_and(|remedy| remedy.contains("report usage"))
    );
    let doubt = foreign.token_doubt(Metric::Tpot).expect("a doubt");
    assert_eq!((doubt.disagreement, doubt.is_unverified), (Some(0.5), true));
    let file = foreign.json();
    assert_eq!(file["token_counts_unverified"], true);
    assert_eq!(file["bounds"]["tpot"]["token_counts_unverified"], true);
    assert_eq!(file["bounds"]["ttfc"]["token_counts_unverified"], false);
    assert!(
        about(&foreign, Metric::Tpot)
            .what
            .ends_with("token counts differ by 50 % and are not verified"),
        "{}",
        about(&foreign, Metric::Tpot).what
    );
    // The chunks confirm the tokenizer.
    let confirmed = without_usage(1, &unknown);
    assert_eq!((confirmed.verdict, confirmed.token_doubt), (Verdict::Valid, None));
    // The server sends two tokens in a chunk, and the tokenizer is the model's.
    let of_model = RunConditions {
        tokenizer_is_of_model: true,
        ..unknown
    };
    let bundled = without_usage(2, &of_model);
    assert_eq!((bundled.verdict, bundled.token_doubt), (Verdict::Valid, None));
    let about_counts = |finding: &CertFinding| finding.what.contains("token counts differ");
    assert!(!bundled.findings.iter().any(about_counts));
    // A chunk without a token contradicts any tokenizer.
    let sparse = certify(
        &run((0..40)
            .map(|number| {
                let mut record = in_chunks(request(number, QUIET), 1, 10);
                record.output_tokens = 2;
                record.output_tokens_from_usage = false;
                finished(record)
            })
            .collect()),
        &Thresholds::default(),
        &of_model,
        None,
    );
    let doubt = sparse.token_doubt.expect("a doubt");
    assert_eq!((doubt.disagreement, doubt.is_unverified), (Some(1.5), false));
    assert!(sparse.findings.iter().any(about_counts));
}

/// Answers that are not streamed, without usage.
#[test]
fn marks_metrics_whose_only_token_count_is_the_tokenizers() {
    let whole = |tokenizer_is_of_model| {
        let events = (0..40).map(|number| {
            let mut record = request(number, Way { chunks: 1, ..QUIET });
            record.chunks[0].kind = ChunkKind::Finish;
            record.output_tokens = 20;
            record.output_tokens_from_usage = false;
            finished(record)
        });
        let conditions = RunConditions {
            tokenizer_is_of_model,
            ..RunConditions::default()
        };
        certify(&run(events.collect()), &Thresholds::default(), &conditions, None)
    };
    let unverified = whole(false);
    assert_eq!(unverified.verdict, Verdict::Valid);
    with_text(
        &unverified,
        "token counts are not verified: 40 answers have no usage",
    );
    let doubt = unverified.token_doubt(Metric::OutputTokens).expect("a doubt");
    assert_eq!((doubt.disagreement, doubt.is_unverified), (None, true));
    assert_eq!(whole(true).token_doubt, None);
}

/// 168 of 200 failed: the rest is of little significance, and the run must not be VALID.
#[test]
fn failed_requests_degrade_and_invalidate_a_run() {
    let with_failures = |failures: u64| {
        let events = (0..200).map(|number| {
            let record = request(number, QUIET);
            finished(if number < failures {
                failed(record, ErrorClass::Status, Some(503))
            } else {
                record
            })
        });
        judge(events.collect())
    };
    assert_eq!(with_failures(10).verdict, Verdict::Valid);
    let some = with_failures(11);
    assert_eq!(some.verdict, Verdict::Degraded);
    with_text(&some, "11 of 200 requests failed (5.5 %)");
    assert_eq!(with_failures(100).verdict, Verdict::Degraded);
    let most = with_failures(168);
    assert_eq!(most.verdict, Verdict::Invalid);
    with_text(&most, "168 of 200 requests failed (84 %)");
}

#[test]
fn does_not_judge_lateness_against_a_schedule_that_does_not_exist() {
    let late = || requests(40, Way { late: 2_000, ..QUIET });
    let open_loop = judge(late());
    assert_eq!(
        about(&open_loop, Metric::TtfcFromIntended).verdict,
        Verdict::Invalid
    );
    let closed = RunConditions {
        has_schedule: false,
        ..RunConditions::default()
    };
    let closed_loop = certify(&run(late()), &Thresholds::default(), &closed, None);
    assert_eq!(closed_loop.verdict, Verdict::Valid, "{:#?}", closed_loop.findings);
    for metric in [Metric::TtfcFromIntended, Metric::EndToEndFromIntended] {
        assert!(
            about(&closed_loop, metric)
                .what
                .ends_with("closed-loop traffic has no schedule")
        );
    }
}

/// The missing part of a record is unknown, regardless of the rest, also in virtual time.
#[test]
fn a_record_that_is_not_whole_vouches_for_less() {
    let thresholds = Thresholds::default();
    let verdicts = |evaluation: &Evaluation| {
        [
            certify(evaluation, &thresholds, &RunConditions::default(), None),
            Certificate::simulated(evaluation, &thresholds),
        ]
        .map(|certificate| {
            with_text(&certificate, "record");
            certificate.verdict
        })
    };
    let mut cut = evaluate(Vec::new(), requests(40, QUIET));
    assert_eq!(verdicts(&cut), [Verdict::Degraded; 2]);
    cut.mark_record_damaged();
    assert_eq!(verdicts(&cut), [Verdict::Invalid; 2]);
    let mut damaged = run(requests(40, QUIET));
    damaged.mark_record_damaged();
    assert_eq!(verdicts(&damaged), [Verdict::Invalid; 2]);
    assert!(!damaged.end.complete);
}

#[test]
fn quiet_run_is_valid_and_states_its_bound() {
    let certificate = judge(requests(40, QUIET));
    assert_eq!(
        (certificate.verdict, certificate.basis),
        (Verdict::Valid, Basis::Record)
    );
    // 53 to send, 5 typical and 20 at P99 between wire and stamp.
    errors(&certificate, Metric::Ttfc, 58.0, 73.0);
    // Plus 30 µs of dispatch lateness.
    errors(&certificate, Metric::TtfcFromIntended, 88.0, 103.0);
    errors(&certificate, Metric::EndToEnd, 58.0, 73.0);
    errors(&certificate, Metric::EndToEndFromIntended, 88.0, 103.0);
    errors(&certificate, Metric::Tbc, 2.0, 20.0);
    // Two stamps over four tokens.
    errors(&certificate, Metric::Tpot, 2.5, 10.0);
    assert_eq!(
        about(&certificate, Metric::Ttfc).what,
        "TTFC: error 0.29 % of its P50 (58 µs of 20 ms)"
    );
    assert_eq!(
        about(&certificate, Metric::Tbc).what,
        "TBC: error 0.02 % of its P50 (2 µs of 10 ms)"
    );
    assert!(
        certificate
            .findings
            .iter()
            .all(|finding| finding.remedy.is_none())
    );
    // Lengths have no timing error.
    assert_eq!(
        (certificate.bounds.len(), certificate.bound(Metric::PromptTokens)),
        (6, None)
    );
}

#[test]
fn slow_sending_falsifies_what_begins_with_dispatch_and_nothing_else() {
    // 305 µs of 20 ms are 1.5 %, of 60 ms 0.5 %.
    let slow = judge(requests(40, Way { send: 300, ..QUIET }));
    assert_eq!(slow.verdict, Verdict::Degraded);
    let ttfc = about(&slow, Metric::Ttfc);
    assert_eq!(
        ttfc.what,
        "TTFC: error 1.5 % of its P50 (305 µs of 20 ms); most of it lies between dispatch and the last byte sent"
    );
    assert!(
        ttfc.remedy
            .as_ref()
            .unwrap()
            .contains("runtime.num_client_threads")
    );
    for metric in [Metric::Tbc, Metric::Tpot, Metric::EndToEnd] {
        assert_eq!(about(&slow, metric).verdict, Verdict::Valid);
    }
    // 1005 µs are 5.025 %.
    let slower = judge(requests(40, Way { send: 1_000, ..QUIET }));
    assert_eq!(about(&slower, Metric::Ttfc).verdict, Verdict::Invalid);
    assert_eq!(slower.verdict, Verdict::Invalid);
    // The scenario may tolerate more.
    let tolerant = Thresholds {
        degraded: 0.06,
        invalid: 0.5,
        ..Thresholds::default()
    };
    let events = requests(40, Way { send: 1_000, ..QUIET });
    assert_eq!(
        certify(&run(events), &tolerant, &RunConditions::default(), None).verdict,
        Verdict::Valid
    );
}

#[test]
fn one_long_stall_shows_in_the_mean() {
    let mut events = requests(39, QUIET);
    // 39 requests of 58 µs and one of 20 005: (2262 + 20005) / 40.
    events.push(finished(request(
        39,
        Way {
            send: 20_000,
            ..QUIET
        },
    )));
    let certificate = judge(events);
    let bound = certificate.bound(Metric::Ttfc).unwrap();
    assert!((bound.mean_error * 1e6 - 556.675).abs() < 1e-6, "{bound:?}");
    assert_eq!(about(&certificate, Metric::Ttfc).verdict, Verdict::Degraded);
}

#[test]
fn late_dispatch_falsifies_what_begins_with_the_intended_instant() {
    let late = judge(requests(40, Way { late: 2_000, ..QUIET }));
    assert_eq!(about(&late, Metric::Ttfc).verdict, Verdict::Valid);
    let from_intended = about(&late, Metric::TtfcFromIntended);
    // 2058 of 22000.
    assert_eq!(from_intended.verdict, Verdict::Invalid);
    assert_eq!(
        from_intended.what,
        "TTFC from intended: error 9.4 % of its P50 (2.06 ms of 22 ms); most of it is late dispatch"
    );
    assert_eq!(late.host.late_dispatches, 40);
}

#[test]
fn what_a_limit_held_back_is_not_late() {
    let held = |number| {
        let mut record = request(number, Way { late: 2_030, ..QUIET });
        record.held = Held {
            sessions: 500 * US,
            in_flight: 1_000 * US,
            in_prefill: 500 * US,
        };
        record
    };
    let certificate = judge((0..40).map(|number| finished(held(number))).collect());
    assert_eq!(certificate.verdict, Verdict::Valid);
    errors(&certificate, Metric::TtfcFromIntended, 88.0, 103.0);
    let host = &certificate.host;
    close(host.dispatch_lateness.map(|late| late.p50), 30e-6);
    close(host.held.in_flight.map(|held| held.p50), 1e-3);
    assert_eq!((host.held.sessions.unwrap().count, host.late_dispatches), (40, 0));
}

#[test]
fn the_opening_of_a_connection_is_the_networks() {
    let opening = |number| {
        let mut record = request(number, Way { send: 6_053, ..QUIET });
        record.connection_reused = false;
        record.resolve = Some(1_000 * US);
        record.connect = Some(2_000 * US);
        record.tls = Some(3_000 * US);
        record
    };
    let mut events = requests(30, QUIET);
    events.extend((30..40).map(|number| finished(opening(number))));
    let certificate = judge(events);
    errors(&certificate, Metric::Ttfc, 58.0, 73.0);
    assert_eq!(certificate.verdict, Verdict::Valid);
    with_text(&certificate, "TTFC: 10 of 40 contain the opening of a connection");
    let host = &certificate.host;
    assert_eq!((host.connections_opened, host.connections_reused), (10, 30));
    // Never more than one in flight: one opening was necessary, nine were not. 30 of 39 reused a
    // connection.
    close(host.connection_reuse_share_after_first, 30.0 / 39.0);
    close(host.send_lateness.map(|send| send.max), 53e-6);
    close(host.send_lateness_with_opening.map(|send| send.max), 6_053e-6);
    close(host.resolve_time.map(|time| time.p50), 1e-3);
}

/// Only the end of an answer that arrived whole is known.
#[test]
fn responses_that_were_not_streamed_have_a_bound_of_their_end() {
    let whole = |number, way| {
        let mut record = request(number, way);
        let end = record.chunks.pop().unwrap();
        record.chunks = vec![Chunk {
            kind: ChunkKind::Finish,
            ..end
        }];
        record
    };
    let events = |way| (0..40).map(|number| finished(whole(number, way))).collect();
    let certificate = judge(events(QUIET));
    assert_eq!(certificate.verdict, Verdict::Valid);
    let metrics: Vec<_> = certificate.bounds.iter().map(|bound| bound.metric).collect();
    assert_eq!(metrics, [Metric::EndToEnd, Metric::EndToEndFromIntended]);
    errors(&certificate, Metric::EndToEnd, 58.0, 73.0);
    errors(&certificate, Metric::EndToEndFromIntended, 88.0, 103.0);
    // 6 of 60 ms.
    let disturbed = judge(events(Way { send: 6_000, ..QUIET }));
    assert_eq!(disturbed.verdict, Verdict::Invalid);
}

#[test]
fn few_requests_are_not_certified_and_never_invalid() {
    let certificate = judge(requests(ENOUGH - 1, QUIET));
    assert_eq!(certificate.verdict, Verdict::Valid);
    let ttfc = about(&certificate, Metric::Ttfc);
    assert!(
        ttfc.what
            .ends_with("; too few requests to certify it: 29, and 30 are needed"),
        "{}",
        ttfc.what
    );
    let bound = certificate.bound(Metric::Ttfc).expect("a bound");
    assert_eq!(
        bound.lack_of_samples().as_deref(),
        Some("not certified: 29 of 30 samples")
    );
    // 29 requests have 116 gaps.
    let all = certificate.bounds.len();
    assert_eq!(
        certificate.coverage(),
        Some(format!("1 of {all} metrics; {} have too few samples", all - 1))
    );
    assert_eq!(judge(requests(ENOUGH, QUIET)).coverage(), None);
    assert!(!about(&certificate, Metric::Tbc).what.contains("too few"));
    assert_eq!(
        judge(requests(
            5,
            Way {
                send: 10_000,
                ..QUIET
            }
        ))
        .verdict,
        Verdict::Degraded
    );
    assert!(
        !about(&judge(requests(ENOUGH, QUIET)), Metric::Ttfc)
            .what
            .contains("too few")
    );
}

#[test]
fn times_below_the_resolution_are_never_invalid() {
    // Sent at once, a first chunk after 90 µs, then one every 20 µs: errors of 8 and 2 µs.
    let way = Way {
        late: 0,
        send: 3,
        ttfc: 90,
        gap: 20,
        ..QUIET
    };
    let certificate = judge(requests(40, way));
    assert_eq!(certificate.verdict, Verdict::Degraded);
    let end = "; not certified, because no client can tell times below 100 µs apart";
    for metric in [Metric::Ttfc, Metric::Tbc] {
        let finding = about(&certificate, metric);
        assert_eq!(finding.verdict, Verdict::Degraded, "{}", finding.what);
        assert!(finding.what.ends_with(end), "{}", finding.what);
    }
    // 8 of 110 µs are 7 %.
    let way = Way { ttfc: 110, ..way };
    assert_eq!(
        about(&judge(requests(40, way)), Metric::Ttfc).verdict,
        Verdict::Invalid
    );
}

#[test]
fn nothing_answered_is_invalid() {
    let certificate = judge(vec![finished(failed(
        answered(0, 0, 0, 5),
        ErrorClass::Connect,
        None,
    ))]);
    assert_eq!(certificate.verdict, Verdict::Invalid);
    with_text(&certificate, "no request was answered");
    assert_eq!(certificate.bounds, []);
    let nothing = judge(Vec::new());
    assert_eq!(nothing.verdict, Verdict::Invalid);
    with_text(&nothing, "nothing was measured");
}

#[test]
fn simulated_time_is_exact() {
    let evaluation = run(requests(40, Way { send: 1_000, ..QUIET }));
    let certificate = Certificate::simulated(&evaluation, &Thresholds::default());
    assert_eq!(
        (certificate.verdict, certificate.basis),
        (Verdict::Valid, Basis::Simulated)
    );
    assert_eq!(certificate.bounds, []);
    with_text(&certificate, "time was simulated");
    assert_eq!(certificate.json()["basis"], "simulated");
}

/// A self-test of 40 requests that measured these errors (µs) in TTFC.
fn self_test(mean: f64, p99: f64) -> SelfTest {
    let errors = |mean: f64, p99: f64| {
        Some(ErrorDistribution {
            count: 40,
            p50: mean * 1e-6,
            p99: p99 * 1e-6,
            p99_upper: p99 * 1e-6,
            mean_abs: mean * 1e-6,
            max: p99 * 1e-6,
        })
    };
    SelfTest {
        requests: 40,
        matched: 40,
        ttfc: errors(mean, p99),
        ttfc_from_intended: errors(mean, p99),
        tbc: errors(1.0, 5.0),
        tpot: errors(1.0, 5.0),
        end_to_end: errors(mean, p99),
        end_to_end_from_intended: errors(mean, p99),
        ..SelfTest::default()
    }
}

#[test]
fn a_self_test_counts_where_it_found_more() {
    let with = |test: &SelfTest| {
        certify(
            &run(requests(40, QUIET)),
            &Thresholds::default(),
            &RunConditions::default(),
            Some(test),
        )
    };
    let more = with(&self_test(400.0, 900.0));
    assert_eq!((more.basis, more.verdict), (Basis::SelfTest, Verdict::Degraded));
    errors(&more, Metric::Ttfc, 400.0, 900.0);
    assert_eq!(more.bound(Metric::Ttfc).unwrap().source, ErrorSource::SelfTest);
    assert!(
        about(&more, Metric::Ttfc)
            .what
            .ends_with("; measured by the self-test")
    );
    // Lower than estimated: the estimate decides, also the bound next to the metric, and both are
    // reported.
    errors(&more, Metric::Tbc, 2.0, 20.0);
    assert_eq!(more.bound(Metric::Tbc).unwrap().source, ErrorSource::Estimated);
    assert!(
        about(&more, Metric::Tbc)
            .what
            .ends_with("; this is estimated from the run's record, and the self-test measured 1 µs")
    );
    // A test of three requests is reported as too small, and not used.
    let mut short = self_test(400.0, 900.0);
    short.matched = 3;
    short.ttfc = short.ttfc.map(|errors| ErrorDistribution { count: 3, ..errors });
    short.ttfc_from_intended = None;
    short.end_to_end = None;
    short.end_to_end_from_intended = None;
    let thin = with(&short);
    assert_eq!(thin.verdict, Verdict::Valid);
    with_text(
        &thin,
        "self-test: too short to count, it has 3 requests and 30 are needed",
    );
    let lost = SelfTest {
        chunks_differ: 1,
        ..self_test(1.0, 1.0)
    };
    assert_eq!(with(&lost).verdict, Verdict::Degraded);
    with_text(&with(&lost), "client and server do not agree");
}

#[test]
fn the_file_is_strict_and_has_its_keys() {
    let mut events = requests(40, Way { send: 300, ..QUIET });
    events.push(thread("client-0", 100, 0));
    let certificate = certify(
        &run(events),
        &Thresholds::default(),
        &RunConditions::default(),
        Some(&self_test(60.0, 400.0)),
    );
    let text = serde_json::to_string(&certificate.json()).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let keys: Vec<&String> = file.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "basis",
            "bounds",
            "findings",
            "host",
            "prompt_token_disagreement",
            "self_test",
            "thresholds",
            "token_counts_unverified",
            "token_disagreement",
            "verdict"
        ]
    );
    assert_eq!(
        (&file["verdict"], &file["basis"]),
        (&"DEGRADED".into(), &"self_test".into())
    );
    assert_eq!(file["findings"][1]["metric"], "ttfc");
    assert_eq!(file["bounds"]["ttfc"]["source"], "self_test");
    close(file["bounds"]["ttfc"]["p99_error"].as_f64(), 400e-6);
    close(file["bounds"]["ttfc"]["mean_error"].as_f64(), 305e-6);
    close(
        file["bounds"]["ttfc"]["relative_to_p50"].as_f64(),
        305.0 / 20_000.0,
    );
    close(file["self_test"]["ttfc"]["mean_abs"].as_f64(), 60e-6);
    close(file["host"]["client_lag"]["mean"].as_f64(), 25e-6);
    close(file["host"]["threads"][0]["busiest"].as_f64(), 0.1);
    assert_eq!(file["host"]["errors"]["ttfc"]["main"], "send");
    close(file["thresholds"]["busy"].as_f64(), 0.7);
}

#[test]
fn classes_of_failures_and_servers_are_counted() {
    let mut events = requests(2, QUIET);
    let mut elsewhere = failed(request(2, QUIET), ErrorClass::Truncated, Some(200));
    elsewhere.server = 1;
    events.push(finished(elsewhere));
    events.push(finished(failed(request(3, QUIET), ErrorClass::Cancelled, None)));
    let file = run(events).summary_stats();
    assert_eq!(
        file["error_class_freq"],
        serde_json::json!({"truncated": 1, "cancelled": 1})
    );
    assert_eq!(
        file["requests_by_server"],
        serde_json::json!({
            "0": {"requests": 3, "completed": 2, "failed": 1},
            "1": {"requests": 1, "completed": 0, "failed": 1},
        })
    );
}

fn any_way() -> impl Strategy<Value = Way> {
    let stamps = prop_oneof![Just(StampSource::Kernel), Just(StampSource::Read)];
    (
        0..5_000u64,
        0..5_000u64,
        1..50_000u64,
        0..20_000u64,
        0..9u64,
        0..5_000u64,
        stamps,
    )
        .prop_map(|(late, send, ttfc, gap, chunks, lag, stamps)| Way {
            late,
            send,
            ttfc,
            gap,
            chunks,
            lag,
            stamps,
        })
}

proptest! {
    /// For all runs, errors are finite and not negative, and the worst finding is the verdict.
    #[test]
    fn bounds_are_errors(ways in prop::collection::vec((any_way(), 0u32..1 << 9), 0..60), busy in 0..=1000u64) {
        let mut events = vec![thread("client-0", busy, 1000 - busy)];
        for (number, (way, merged)) in ways.iter().enumerate() {
            let mut record = request(number as u64, *way);
            for (place, chunk) in record.chunks.iter_mut().enumerate().skip(1) {
                chunk.merged = merged >> place & 1 == 1;
            }
            // Chunks that share a read share its time.
            for place in (1..record.chunks.len()).rev() {
                if record.chunks[place].merged {
                    record.chunks[place - 1].at = record.chunks[place].at;
                }
            }
            events.push(finished(record));
        }
        let certificate = judge(events);
        for bound in &certificate.bounds {
            prop_assert!(bound.mean_error > 0.0 && bound.mean_error.is_finite(), "{bound:?}");
            prop_assert!(bound.p99_error >= bound.mean_error, "{bound:?}");
            prop_assert!(bound.relative_to_p50.is_none_or(|relative| relative > 0.0 && relative.is_finite()));
        }
        let worst = certificate.findings.iter().map(|finding| finding.verdict).max().unwrap_or_default();
        prop_assert_eq!(certificate.verdict, worst);
        let late = certificate.host.late_merged_chunk_share.unwrap_or(0.0);
        prop_assert!((0.0..=1.0).contains(&late));
        // A non-finite number would be written to JSON as null.
        let json = certificate.json();
        for bound in json["bounds"].as_object().unwrap().values() {
            prop_assert!(bound["mean_error"].is_f64() && bound["p99_error"].is_f64());
        }
    }

    /// A larger error never improves the verdict.
    #[test]
    fn the_verdict_is_monotone(way in any_way(), count in 1..60u64, more in 0..20_000u64, lateness in any::<bool>()) {
        let worse = if lateness {
            // The first chunk keeps its distance from the intended instant.
            Way { late: way.late + more, ..way }
        } else {
            Way { send: way.send + more, ..way }
        };
        let before = judge(requests(count, way));
        let after = judge(requests(count, worse));
        for bound in &before.bounds {
            // The metric itself grows with the dispatch lateness, so its relative error may still
            // decrease.
            let later = after.bound(bound.metric).unwrap();
            prop_assert!(later.mean_error >= bound.mean_error && later.p99_error >= bound.p99_error * 0.998);
        }
        if !lateness {
            prop_assert!(after.verdict >= before.verdict, "{:?} after {:?}", after.verdict, before.verdict);
        }
    }
}

/// An error of 5 µs at each end of the stream is divided by the tokens after the first chunk: 40 of
/// bundled chunks of ten, not 49.
#[test]
fn the_error_of_tpot_is_divided_by_the_tokens_after_the_first_chunk() {
    let bundled = |number| {
        let mut record = request(number, QUIET);
        record.chunk_tokens = vec![10; 5];
        record.output_tokens = 50;
        finished(record)
    };
    let certificate = judge((0..40).map(bundled).collect());
    errors(&certificate, Metric::Tpot, 2.0 * 5.0 / 40.0, 2.0 * 20.0 / 40.0);
}
