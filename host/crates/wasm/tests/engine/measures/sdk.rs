//! Metrics and checks built with the SDK.

use super::*;

/// The three kinds of one component built with the SDK.
#[test]
fn the_sdk_measures_and_judges() {
    let plugin = load(EngineLimits::default(), "sdk-measure");
    let kinds = Kinds {
        metric: true,
        request_check: true,
        slo_check: true,
        ..Kinds::default()
    };
    assert_eq!(plugin.kinds(), kinds);
    assert_eq!(plugin.imports(), ["log"], "only for the message of a panic");
    let config = || r#"{"limit": 3}"#.to_owned();
    let longer = RequestRecord {
        output_tokens: 9,
        labels: vec![("tier".into(), "gold".into())],
        ..plain(1, 0)
    };
    let failed = RequestRecord {
        status: Status::Failed {
            class: ErrorClass::Timeout,
            message: String::new(),
        },
        output_tokens: 4,
        ..plain(2, 0)
    };
    let all = [plain(0, 0), longer, failed];
    let mut open = plugin.metric(config(), grants()).unwrap().open().unwrap();
    let names: Vec<&str> = open.definitions.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["excess", "most"]);
    let sample = |metric, value, weight, of| PluginSample {
        metric,
        value,
        weight,
        of,
    };
    assert_eq!(
        open.collector.observe(&batch(&all)).unwrap(),
        [sample(0, 0.0, 1.0, Some(0)), sample(0, 6.0, 2.0, Some(1))]
    );
    assert_eq!(open.collector.finish().unwrap(), [sample(1, 9.0, 1.0, None)]);
    let mut check = plugin.request_check(config(), grants()).unwrap().open().unwrap();
    assert_eq!(check.judge(&batch(&all)).unwrap(), [true, false, false]);

    let run = Arc::new(Run::default());
    let verdicts = plugin
        .slo_check(config(), grants())
        .unwrap()
        .check(run.clone())
        .unwrap();
    let met: Vec<(&str, bool, Option<f64>)> = verdicts
        .iter()
        .map(|verdict| (verdict.name.as_str(), verdict.met, verdict.observed))
        .collect();
    // `Run` has no samples of `excess`, a p99 of 1.0 for `ttfc` unfiltered, and one window of two
    // with samples.
    assert_eq!(
        met,
        [
            ("half of gold", false, None),
            ("ttfc", true, Some(1.0)),
            ("aggregate", true, Some(0.5)),
            ("busy seconds", false, Some(2.0)),
        ]
    );
    assert_eq!(verdicts[0].detail, "no more than the limit");
    assert!(
        run.asked
            .lock()
            .unwrap()
            .contains(&r#"percentile excess 50 [("tier", "gold")]"#.to_owned())
    );
}

#[test]
fn the_sdk_names_what_is_wrong() {
    let plugin = load(EngineLimits::default(), "sdk-measure");
    for refused in [
        plugin.metric(r#"{"limit": 0}"#.into(), grants()).err(),
        plugin.request_check(r#"{"limit": 0}"#.into(), grants()).err(),
        plugin.slo_check(r#"{"limit": 0}"#.into(), grants()).err(),
    ] {
        assert!(
            matches!(refused.unwrap().kind, PluginFailureKind::Refused { path: Some(path), .. } if path == "/limit")
        );
    }
    let mut open = plugin
        .metric(r#"{"limit": 3}"#.into(), grants())
        .unwrap()
        .open()
        .unwrap();
    let talkative = RequestRecord {
        output_tokens: 5000,
        ..plain(7, 1)
    };
    let failure = open.collector.observe(&[&plain(0, 0), &talkative]).unwrap_err();
    assert_eq!(failure.kind, PluginFailureKind::Trap);
    assert!(
        failure.message.ends_with("no answer has 5000 tokens"),
        "{failure}"
    );
    assert_eq!(failure.input.as_deref(), Some("request 7/1 (2 of 2)"));
    let frame = &failure.frames[0];
    assert!(
        frame.file.as_deref().unwrap().ends_with("sdk-measure/src/lib.rs"),
        "{failure}"
    );
}
