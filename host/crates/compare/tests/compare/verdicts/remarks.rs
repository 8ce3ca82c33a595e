//! Remarks for the reader.

use super::*;

#[test]
fn reports_a_run_on_both_sides() {
    let of = |label: &str| {
        let mut side = side(label, even(1.0));
        side.runs[0].place = Some("/runs/one".into());
        side
    };
    let comparison = compare(&[of("A"), of("B")], &[], &options()).unwrap();
    let remarks = comparison.candidates[0].remark_texts();
    assert!(
        remarks
            .iter()
            .any(|remark| remark.starts_with("/runs/one is on both sides")),
        "{remarks:?}"
    );
}

/// A copy has another location and the recorded name of its original; other parts of it may be
/// lost.
#[test]
fn reports_copies_of_a_run() {
    let of = |label: &str, name: &str, centre: f64| {
        let mut side = side(label, even(centre));
        side.runs[0].place = Some(format!("/runs/{label}"));
        side.runs[0].recorded_as = Some(name.into());
        side
    };
    let text = |b: CompareSide| {
        let comparison = compare(&[of("A", "one", 1.0), b], &[], &options()).unwrap();
        comparison.candidates[0].remark_texts().join("\n")
    };
    let copy = text(of("B", "one", 1.0));
    assert!(
        copy.contains("/runs/A and /runs/B are copies of one run, which is on both sides: "),
        "{copy}"
    );
    let cut = text(of("B", "one", 1.01));
    assert!(cut.contains("is on both sides"), "{cut}");
    let copies = text(of("B", "two", 1.0));
    assert!(
        copies.contains("/runs/A and /runs/B agree in every sample"),
        "{copies}"
    );
    let other = text(of("B", "two", 1.01));
    assert!(
        !other.contains("both sides: ") && !other.contains("agree"),
        "{other}"
    );

    // Within a side it counts once.
    let mut twice = of("A", "one", 1.0);
    twice.runs.push(of("B", "one", 1.01).runs[0].clone());
    let comparison = compare(&[twice, of("C", "two", 1.2)], &[], &options()).unwrap();
    let remarks = comparison.candidates[0].remark_texts().join("\n");
    assert!(
        remarks.contains("the 2 runs of A are copies of one another"),
        "{remarks}"
    );
}

#[test]
fn reports_remarks_in_order() {
    let mut a = side("A", even(1.0));
    let mut b = side("B", even(1.0));
    a.runs[0].window = Some((0, 60_000_000_000));
    b.runs[0].window = Some((0, 30_000_000_000));
    b.runs[0].workload = None;
    b.runs[0].metrics[0].samples.push(0, f64::NAN);
    let comparison = compare(&[a, b], &[], &options()).unwrap();
    insta::assert_snapshot!(comparison.candidates[0].remark_texts().join("\n"), @r"
    cannot check that the runs did the same work: B has no workload digest
    B: 1 value was left out because not a finite number
    from the first request to the end of the last answer, A lasted 60 s and B lasted 30 s
    one run on each side: the noise between runs is unknown, so small differences are found too often; fix: run each side several times
    4 values with a better side were judged; verdicts allow for their number (Holm), intervals do not
    ");
}

/// The findings of 8 runs about two metrics are one line per metric; the reasons are in the files.
#[test]
fn summarizes_certificates_of_many_runs() {
    let side_of = |label: &str, degraded: usize| CompareSide {
        label: label.into(),
        runs: (0..4)
            .map(|number| {
                let mut metrics = vec![
                    metric("ttfc", Better::Less, even(1.0 + 0.01 * number as f64)),
                    metric("tbc", Better::Less, even(1.0)),
                ];
                for metric in metrics.iter_mut().filter(|_| number < degraded) {
                    metric.trust.validity = Validity::Degraded;
                    metric.trust.why = vec![format!("late reads: {number}")];
                }
                run(&format!("{label}{number}"), metrics)
            })
            .collect(),
    };
    let comparison = compare(&[side_of("A", 3), side_of("B", 4)], &[], &options()).unwrap();
    let candidate = &comparison.candidates[0];
    let about: Vec<String> = candidate
        .remark_texts()
        .into_iter()
        .filter(|remark| remark.contains("DEGRADED"))
        .collect();
    assert_eq!(
        about,
        [
            "ttfc is DEGRADED in 3 of 4 runs of A and in 4 of 4 runs of B",
            "tbc is DEGRADED in 3 of 4 runs of A and in 4 of 4 runs of B"
        ]
    );
    let one = "tbc of B3 is DEGRADED: late reads: 3".to_owned();
    assert!(candidate.certificates.len() == 14 && candidate.certificates.contains(&one));
    assert!(comparison.html(None).contains(&one));
    let json = comparison.json(None).unwrap();
    assert_eq!(
        json["candidates"][0]["certificates"].as_array().map(Vec::len),
        Some(14)
    );
    // One run of each side.
    let single = |label| CompareSide {
        runs: side_of(label, 4).runs[..1].to_vec(),
        ..side_of(label, 4)
    };
    let comparison = compare(&[single("A"), single("B")], &[], &options()).unwrap();
    let remarks = comparison.candidates[0].remark_texts();
    assert!(
        remarks.contains(&"tbc is DEGRADED in A and in B: late reads: 0".to_owned()),
        "{remarks:?}"
    );
}

/// Among several runs the shortest and the longest are mentioned once; similar lengths are not
/// mentioned.
#[test]
fn reports_different_lengths_once() {
    let side_of = |label: &str, seconds: &[u64]| CompareSide {
        label: label.into(),
        runs: seconds
            .iter()
            .map(|seconds| RunData {
                window: Some((5, 5 + seconds * 1_000_000_000)),
                ..run(&format!("{label}{seconds}"), Vec::new())
            })
            .collect(),
    };
    let text = |a: &[u64], b: &[u64]| -> Vec<String> {
        let comparison = compare(&[side_of("A", a), side_of("B", b)], &[], &options()).unwrap();
        let remarks = comparison.candidates[0].remark_texts().into_iter();
        remarks.filter(|remark| remark.contains("last")).collect()
    };
    assert_eq!(
        text(&[6, 7, 6], &[47, 48, 47]),
        [
            "from the first request to the end of the last answer, A lasted 6 s to 7 s and B lasted 47 s to 48 s"
        ]
    );
    assert!(text(&[100, 105], &[108, 101]).is_empty());
}

#[test]
fn a_page_has_its_title_once() {
    let comparison = compare(&[side("A", even(1.0)), side("B", even(1.5))], &[], &options()).unwrap();
    let page = comparison.html(None);
    let heading = page.matches(">B against A</h").count();
    assert_eq!(heading, 1, "{page}");
    let three = [side("A", even(1.0)), side("B", even(1.5)), side("C", even(1.5))];
    let page = compare(&three, &[], &options()).unwrap().html(None);
    for heading in [
        "<h1>B, C against A</h1>",
        "<h2>B against A</h2>",
        "<h2>C against A</h2>",
    ] {
        assert!(page.contains(heading), "{heading}");
    }
}
