//! Plugins that misbehave are stopped within limits, and the report describes the behavior.

use super::*;

#[test]
fn a_panic_names_the_authors_line_and_the_request() {
    let mut collector = collecting(tight(), "trap");
    collector.observe(&batch(&requests(3, 9))).unwrap();
    let failure = collector.observe(&batch(&requests(600, 300))).unwrap_err();
    assert_eq!(
        (failure.plugin.as_str(), failure.function.as_str(), &failure.kind),
        ("hostile-measure", "collector.observe", &PluginFailureKind::Trap)
    );
    assert!(failure.message.ends_with("a request was miscounted"), "{failure}");
    assert_eq!(failure.input.as_deref(), Some("request 300/0 (301 of 600)"));
    let source = include_str!("../../../../../../tests/guests/hostile-measure/src/lib.rs");
    let line = source
        .lines()
        .position(|line| line.contains("panic!(\"a request was miscounted"))
        .unwrap() as u32
        + 1;
    let innermost = &failure.frames[0];
    assert!(innermost.function.ends_with("miscounted"), "{innermost:?}");
    assert_eq!(innermost.line, Some(line), "{innermost:?}");
    // An incomplete metric is not reported: it has failed for the rest of the run, with the same
    // error each time.
    assert_eq!(collector.observe(&batch(&requests(1, 9))).unwrap_err(), failure);
    assert_eq!(collector.finish().unwrap_err(), failure);

    let mut check = checking(tight(), "trap");
    let failure = check.judge(&batch(&requests(600, 300))).unwrap_err();
    assert_eq!(
        (failure.function.as_str(), failure.input.as_deref()),
        ("checker.judge", Some("request 300/0 (301 of 600)"))
    );
    assert_eq!(check.judge(&batch(&requests(1, 9))).unwrap_err(), failure);
}

#[test]
fn an_error_of_the_plugin_is_its_own() {
    let refused = |failure: PluginFailure| {
        assert_eq!(failure.message, "it is bad");
        assert!(
            matches!(&failure.kind, PluginFailureKind::Refused { code, .. } if code == "bad"),
            "{failure}"
        );
        failure.input
    };
    let all = requests(64, 63);
    let failure = collecting(tight(), "error").observe(&batch(&all)).unwrap_err();
    assert_eq!(refused(failure).as_deref(), Some("request 63/0 (64 of 64)"));
    let failure = checking(tight(), "error").judge(&batch(&all)).unwrap_err();
    assert_eq!(refused(failure).as_deref(), Some("request 63/0 (64 of 64)"));
    refused(judging(tight(), "error").unwrap_err());
}

/// No request is named for a plugin that fails because of its accumulated state, or on many
/// requests at once.
#[test]
fn names_no_plugin_without_evidence() {
    let mut late = collecting(tight(), "late");
    let all = requests(60, 999);
    late.observe(&batch(&all)).unwrap();
    let failure = late.observe(&batch(&all)).unwrap_err();
    assert!(failure.message.ends_with("a hundred is enough"), "{failure}");
    assert_eq!(
        failure.input.as_deref(),
        Some("60 requests, beginning with request 0/0 (1 of 60)")
    );
    for input in [
        collecting(tight(), "crowd")
            .observe(&batch(&all))
            .unwrap_err()
            .input,
        checking(tight(), "crowd").judge(&batch(&all)).unwrap_err().input,
    ] {
        assert_eq!(
            input.as_deref(),
            Some("60 requests, beginning with request 0/0 (1 of 60)")
        );
    }
}

#[test]
fn samples_that_are_none_are_refused_by_name() {
    let why = |behaviour: &str| {
        let mut collector = collecting(tight(), behaviour);
        let failure = collector.observe(&batch(&requests(300, 280))).unwrap_err();
        assert_eq!(failure.kind, PluginFailureKind::Result, "{behaviour}: {failure}");
        assert_eq!(failure.function, "collector.observe");
        assert_eq!(collector.finish().unwrap_err(), failure);
        (failure.message, failure.input.unwrap())
    };
    let of_the_request = |message: &str| {
        (
            format!("the sample of `one` of request 280/0 (281 of 300) {message}"),
            "request 280/0 (281 of 300)".to_owned(),
        )
    };
    let values = "values are finite, and what does not exist is left out";
    assert_eq!(why("nan"), of_the_request(&format!("is NaN; {values}")));
    assert_eq!(why("infinite"), of_the_request(&format!("is -inf; {values}")));
    let weights = "weights are finite and above 0";
    assert_eq!(
        why("weight-infinite"),
        of_the_request(&format!("has the weight inf; {weights}"))
    );
    assert_eq!(
        why("weight-zero"),
        of_the_request(&format!("has the weight 0; {weights}"))
    );
    assert_eq!(
        why("weight-negative"),
        of_the_request(&format!("has the weight -1; {weights}"))
    );
    // The second call of the batch receives 44 requests.
    let call = "44 requests, beginning with request 256/0 (257 of 300)".to_owned();
    assert_eq!(
        why("metric"),
        (
            "sample 24 is of metric 2; it defines 2, counted from 0".into(),
            call.clone()
        )
    );
    assert_eq!(
        why("of"),
        (
            "a sample of `one` is of request 44; the batch has 44, counted from 0".into(),
            call
        )
    );
    let last = |behaviour: &str| {
        let failure = collecting(tight(), behaviour).finish().unwrap_err();
        assert_eq!(failure.function, "collector.finish");
        (failure.kind, failure.message)
    };
    assert_eq!(
        last("finish-nan"),
        (
            PluginFailureKind::Result,
            format!("a sample of `two` is NaN; {values}")
        )
    );
    assert_eq!(
        last("finish-of").1,
        "a sample of `two` is of request 0; the batch has 0, counted from 0"
    );
    assert_eq!(last("finish-trap").0, PluginFailureKind::Trap);
}

#[test]
fn definitions_that_cannot_be_are_refused_before_the_run() {
    let why = |behaviour: &str, function: &str| {
        let failure = opening(tight(), behaviour).err().unwrap();
        assert_eq!(failure.function, function, "{failure}");
        failure.message
    };
    let defining = |behaviour| why(behaviour, "collector.definitions");
    assert!(why("open-trap", "collector.open").contains("it does not open"));
    assert!(defining("definitions-trap").ends_with("nothing is defined today"));
    assert_eq!(defining("definitions-none"), "it defines no metrics");
    assert!(defining("definitions-name").starts_with("`Not a name` is not a metric name"));
    assert_eq!(defining("definitions-twice"), "it defines `one` twice");
    assert_eq!(
        defining("definitions-many"),
        "it defines 300 metrics, at most 256 are taken"
    );
    assert!(defining("definitions-huge").starts_with("it handed over more data"));
}

#[test]
fn as_many_judgements_as_requests() {
    let why = |behaviour: &str| {
        let failure = checking(tight(), behaviour)
            .judge(&batch(&requests(5, 9)))
            .unwrap_err();
        assert_eq!(failure.kind, PluginFailureKind::Result, "{failure}");
        failure.message
    };
    assert_eq!(why("too-few"), "given 5 requests, it judged 4");
    assert_eq!(why("too-many"), "given 5 requests, it judged 6");
    assert_eq!(why("none"), "given 5 requests, it judged 0");
    assert_eq!(
        why("huge"),
        "it handed over more data in one call than is taken (8 MiB)"
    );
}

#[test]
fn verdicts_that_are_none_are_refused() {
    let why = |behaviour: &str| {
        let failure = judging(tight(), behaviour).unwrap_err();
        assert_eq!(failure.kind, PluginFailureKind::Result, "{failure}");
        assert_eq!(failure.function, "checker.check");
        failure.message
    };
    assert_eq!(why("empty"), "it gave no verdict");
    assert_eq!(why("nameless"), "a verdict has no name");
    assert_eq!(why("twice"), "two verdicts are named `a`");
    assert_eq!(why("many"), "it gave 2,000 verdicts, at most 1,000 are allowed");
    assert_eq!(
        why("observed"),
        "the observed value of the verdict `a` is NaN; it must be finite"
    );
    assert_eq!(
        why("threshold"),
        "the threshold of the verdict `a` is inf; it must be finite"
    );
    assert_eq!(
        why("huge"),
        "it handed over more data in one call than is taken (8 MiB)"
    );
    let good = |behaviour: &str| judging(tight(), behaviour).unwrap().remove(0);
    let verdict = SloVerdict {
        name: "a".into(),
        met: true,
        observed: Some(1.0),
        threshold: 2.0,
        detail: "a detail".into(),
    };
    assert_eq!(good("good"), verdict);
    assert_eq!(good("unobserved").observed, None);
    assert_eq!(good("keep"), verdict, "a handle that is kept goes with the store");
}

/// An invalid query ends the check, with the reason.
#[test]
fn questions_that_cannot_be_are_refused() {
    let why = |behaviour: &str| {
        let failure = judging(tight(), behaviour).unwrap_err();
        assert_eq!(failure.kind, PluginFailureKind::Trap, "{failure}");
        failure.message
    };
    assert_eq!(
        why("percent"),
        "results: percentile 101 of `ttfc` requested; a percentile is from 0 to 100"
    );
    assert!(why("percent-nan").starts_with("results: percentile NaN"));
    assert_eq!(why("windows"), "results: windows of length 0 of `ttfc` requested");
}

/// Text that is not UTF-8 violates the contract and is refused.
#[test]
fn bytes_that_are_no_text_are_refused() {
    for failure in [
        judging(tight(), "text").unwrap_err(),
        opening(tight(), "definitions-text").err().unwrap(),
    ] {
        assert!(failure.message.contains("utf-8"), "{failure}");
        assert_eq!(failure.plugin, "hostile-measure");
    }
}

/// Labels come from the workload, not from the plugin: a batch is split to fit the plugin's memory.
#[test]
fn long_labels_do_not_use_up_the_plugins_memory() {
    let labelled = |session: u64| RequestRecord {
        labels: vec![("user".into(), format!("{session:07}").repeat(1 << 17))],
        ..plain(session, 0)
    };
    let all: Vec<RequestRecord> = (0..100).map(labelled).collect();
    assert_eq!(
        collecting(tight(), "good").observe(&batch(&all)).unwrap().len(),
        100
    );
    assert_eq!(
        checking(tight(), "good").judge(&batch(&all)).unwrap(),
        vec![true; 100]
    );
}

#[test]
fn interrupts_an_endless_loop() {
    let limits = || EngineLimits {
        call_deadline: Duration::from_millis(500),
        ..tight()
    };
    let stopped = |failure: PluginFailure| {
        assert_eq!(failure.kind, PluginFailureKind::Deadline { allowed_ms: 500 });
        failure.input
    };
    let all = requests(20, 7);
    let failure = collecting(limits(), "loop").observe(&batch(&all)).unwrap_err();
    assert_eq!(stopped(failure).as_deref(), Some("request 7/0 (8 of 20)"));
    let failure = checking(limits(), "loop").judge(&batch(&all)).unwrap_err();
    assert_eq!(stopped(failure).as_deref(), Some("request 7/0 (8 of 20)"));
    stopped(judging(limits(), "loop").unwrap_err());
}

/// `measure` queries two percentiles. Their time is charged to the host, with a separate limit.
#[test]
fn a_check_is_not_blamed_for_slow_answers() {
    let check = |results_deadline| {
        let limits = EngineLimits {
            call_deadline: Duration::from_millis(500),
            results_deadline,
            ..tight()
        };
        let run = Run {
            slow: Duration::from_millis(1000),
            ..Run::default()
        };
        let plugin = load(limits, "measure");
        plugin
            .slo_check("{}".into(), grants())
            .unwrap()
            .check(Arc::new(run))
    };
    assert_eq!(check(Duration::from_secs(60)).unwrap().len(), 2);
    let failure = check(Duration::from_millis(1100)).unwrap_err();
    assert_eq!(failure.kind, PluginFailureKind::Trap);
    assert_eq!(
        failure.message,
        "results: the host took more than 1100 ms to answer the queries of one call"
    );
}

#[test]
fn refuses_memory_above_the_limit() {
    let refused = |failure: PluginFailure| {
        assert!(
            matches!(failure.kind, PluginFailureKind::Memory { allowed, .. } if allowed == 64 << 20),
            "{failure}"
        );
    };
    let all = requests(2, 9);
    refused(collecting(tight(), "memory").observe(&batch(&all)).unwrap_err());
    refused(checking(tight(), "memory").judge(&batch(&all)).unwrap_err());
    refused(judging(tight(), "memory").unwrap_err());
    let failure = collecting(tight(), "huge").observe(&batch(&all)).unwrap_err();
    assert_eq!(
        failure.message,
        "it handed over more data in one call than is taken (8 MiB)"
    );
    refused(
        collecting(tight(), "ten-million")
            .observe(&batch(&all))
            .unwrap_err(),
    );
    // A collector cannot be replaced, so a leak ends it; a check can be, so it continues.
    let mut collector = collecting(tight(), "leak");
    let ended = (0..64).find_map(|_| collector.observe(&batch(&all)).err());
    refused(ended.unwrap());
    let swelling = EngineLimits {
        recycle_memory_bytes: 30 << 20,
        ..tight()
    };
    let mut check = checking(swelling, "leak");
    for _ in 0..200 {
        assert_eq!(check.judge(&batch(&all)).unwrap(), [true, true]);
    }
}
