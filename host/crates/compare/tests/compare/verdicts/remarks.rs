//! Remarks for the reader.

use super::*;

#[test]
fn a_run_against_itself_is_told() {
    let of = |label: &str| {
        let mut side = side(label, even(1.0));
        side.runs[0].place = Some("/runs/one".into());
        side
    };
    let comparison = compare(&[of("A"), of("B")], &[], &options()).unwrap();
    let remarks = &comparison.candidates[0].remarks;
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
fn a_copy_of_a_run_is_told() {
    let of = |label: &str, name: &str, centre: f64| {
        let mut side = side(label, even(centre));
        side.runs[0].place = Some(format!("/runs/{label}"));
        side.runs[0].recorded_as = Some(name.into());
        side
    };
    let said = |b: Side| {
        let comparison = compare(&[of("A", "one", 1.0), b], &[], &options()).unwrap();
        comparison.candidates[0].remarks.join("\n")
    };
    let copy = said(of("B", "one", 1.0));
    assert!(
        copy.contains("/runs/A and /runs/B are copies of one run, which is on both sides: "),
        "{copy}"
    );
    let cut = said(of("B", "one", 1.01));
    assert!(cut.contains("is on both sides"), "{cut}");
    let twin = said(of("B", "two", 1.0));
    assert!(
        twin.contains("/runs/A and /runs/B agree in every sample"),
        "{twin}"
    );
    let other = said(of("B", "two", 1.01));
    assert!(
        !other.contains("both sides: ") && !other.contains("agree"),
        "{other}"
    );

    // Within a side it counts once.
    let mut twice = of("A", "one", 1.0);
    twice.runs.push(of("B", "one", 1.01).runs[0].clone());
    let comparison = compare(&[twice, of("C", "two", 1.2)], &[], &options()).unwrap();
    let remarks = comparison.candidates[0].remarks.join("\n");
    assert!(
        remarks.contains("the 2 runs of A are copies of one another"),
        "{remarks}"
    );
}

#[test]
fn what_the_reader_should_know_is_said() {
    let mut a = side("A", even(1.0));
    let mut b = side("B", even(1.0));
    a.runs[0].window = Some((0, 60_000_000_000));
    b.runs[0].window = Some((0, 30_000_000_000));
    b.runs[0].workload = None;
    b.runs[0].metrics[0].samples.push(0, f64::NAN);
    let comparison = compare(&[a, b], &[], &options()).unwrap();
    insta::assert_snapshot!(comparison.candidates[0].remarks.join("\n"), @r"
    whether the runs did the same work is not known: B has no workload digest
    values of B that are no numbers were left out: 1
    from the first request to the end of the last answer A lasted 60 s, B 30 s
    one run on each side: how much such runs differ by themselves is not known; run each side several times to know it
    4 figures with a better side were judged; verdicts allow for their number (Holm), intervals are those of each figure by itself
    ");
}

/// The findings of 8 runs about two metrics are one line per metric; the reasons are in the files.
#[test]
fn what_certificates_say_of_many_runs_is_summed_up() {
    let side_of = |label: &str, degraded: usize| Side {
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
    let about: Vec<&String> = candidate
        .remarks
        .iter()
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
    let json = comparison.json(None);
    assert_eq!(
        json["candidates"][0]["certificates"].as_array().map(Vec::len),
        Some(14)
    );
    // One run of each side.
    let single = |label| Side {
        runs: side_of(label, 4).runs[..1].to_vec(),
        ..side_of(label, 4)
    };
    let comparison = compare(&[single("A"), single("B")], &[], &options()).unwrap();
    let remarks = &comparison.candidates[0].remarks;
    assert!(
        remarks.contains(&"tbc is DEGRADED in A and in B".to_owned()),
        "{remarks:?}"
    );
}

/// Among several runs the shortest and the longest are mentioned once; similar lengths are not
/// mentioned.
#[test]
fn how_long_runs_lasted_is_said_once() {
    let side_of = |label: &str, seconds: &[u64]| Side {
        label: label.into(),
        runs: seconds
            .iter()
            .map(|seconds| RunData {
                window: Some((5, 5 + seconds * 1_000_000_000)),
                ..run(&format!("{label}{seconds}"), Vec::new())
            })
            .collect(),
    };
    let told = |a: &[u64], b: &[u64]| -> Vec<String> {
        let comparison = compare(&[side_of("A", a), side_of("B", b)], &[], &options()).unwrap();
        let remarks = comparison.candidates[0].remarks.iter();
        remarks
            .filter(|remark| remark.contains("last"))
            .cloned()
            .collect()
    };
    assert_eq!(
        told(&[6, 7, 6], &[47, 48, 47]),
        ["from the first request to the end of the last answer A lasted 6 s to 7 s, B 47 s to 48 s"]
    );
    assert!(told(&[100, 105], &[108, 101]).is_empty());
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
