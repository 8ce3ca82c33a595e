//! Outputs for machines and readers.

use veeksha_compare::{
    CompareOptions, CompareSide, Comparison, FailIf, RunData, RunValueData, ScenarioLabel, Statistic, compare,
};
use veeksha_model::Better;
use veeksha_slo::Aggregate;

use crate::synthetic::{even, metric, run};

/// Names and labels that every format must escape.
const EVIL: &str = "<b>&\"B\"'\n::error::";

fn comparison(label: &str, evil: &str) -> Comparison {
    let of = |label: &str, ttfc: f64, throughput: f64, rate: &str| {
        let metrics = vec![
            metric("ttfc", Better::Less, even(ttfc)),
            metric("speed", Better::Higher, even(throughput)),
            metric(evil, Better::Less, even(1.0).take(5)),
        ];
        let mut run = run(label, metrics);
        run.settings = vec![("traffic.rate".into(), rate.into()), (evil.into(), rate.into())];
        run.run_metrics = vec![RunValueData::new("error_rate", "1", Better::Less, 0.01)];
        CompareSide {
            label: label.into(),
            runs: vec![run],
        }
    };
    let options = CompareOptions {
        resamples: 100,
        ..CompareOptions::default()
    };
    compare(
        &[of("A", 1.0, 2.0, "10"), of(label, 1.1, 2.2, "20")],
        &[],
        &options,
    )
    .unwrap()
}

/// Shortens numbers that depend on random draws to four digits, because their last digits are not
/// stable.
fn shortened(text: String) -> String {
    let mut out = String::new();
    let mut digits = String::new();
    for c in text.chars().chain(['\0']) {
        if c.is_ascii_digit() || (c == '.' && !digits.is_empty()) {
            digits.push(c);
            continue;
        }
        match digits.parse::<f64>() {
            Ok(value) if digits.len() > 7 && digits.contains('.') => out += &format!("{value:.4}"),
            _ => out += &digits,
        }
        digits.clear();
        out.push(c);
    }
    out.trim_end_matches('\0').to_owned()
}

/// All formats have the same remarks: that ± is not an interval, that copies are on both sides, and
/// the state of the caches.
#[test]
fn every_format_has_the_remarks() {
    let of = |label: &str, cached: f64| {
        let run = |centre: f64| veeksha_compare::RunData {
            recorded_as: Some(centre.to_string()),
            cached_share: Some(cached),
            ..run(label, vec![metric("ttfc", Better::Less, even(centre))])
        };
        CompareSide {
            label: label.into(),
            runs: vec![run(1.0), run(1.1)],
        }
    };
    let comparison = compare(&[of("A", 0.0), of("B", 0.9)], &[], &CompareOptions::default()).unwrap();
    let table = &comparison.tables()[0];
    assert!(table.rows[0].cells[0].contains('±'), "{table:?}");
    let formats = [
        table.remarks.join("\n"),
        comparison.json(None).unwrap().to_string(),
        comparison.html(None),
        comparison.junit(None).unwrap(),
    ];
    for text in &formats {
        for remark in [
            "± is the standard deviation between the runs of a side",
            "are copies of one run, which is on both sides",
            "in its prefix cache",
        ] {
            assert_eq!(
                text.matches(remark).count(),
                if remark.starts_with("are") { 2 } else { 1 },
                "{remark}: {text}"
            );
        }
    }
    // Without several runs there is no such sign.
    let single = self::comparison("B", "odd").tables();
    assert!(single[0].remarks.iter().all(|remark| !remark.contains('±')));
}

#[test]
fn tables() {
    let tables = comparison("B", "odd").tables();
    let table = &tables[0];
    let mut text = format!("{}\n{}\n", table.title, table.columns.join(" | "));
    for row in &table.rows {
        let note = row.note.as_deref().unwrap_or_default();
        text += &format!("{} | {} | {note}\n", row.name, row.cells.join(" | "));
    }
    text += &table.settings.join("\n");
    insta::assert_snapshot!(text);
}

/// Only shares are percentages; a ratio that happens to be below 1 is a number.
#[test]
fn ratios_are_not_percentages() {
    let of = |label: &str, centre: f64| {
        let named = |name: &str| metric(name, Better::Higher, even(centre));
        let (mut share, mut ratio) = (named("fluidity"), named("speed_up"));
        (share.is_share, share.unit, ratio.unit) = (true, "1".into(), "1".into());
        CompareSide {
            label: label.into(),
            runs: vec![run(label, vec![share, ratio])],
        }
    };
    let asked = [Aggregate::Count, Aggregate::Sum]
        .map(|aggregate| ("fluidity".to_owned(), Statistic::OfSamples(aggregate)));
    let comparison = compare(&[of("A", 0.5), of("B", 0.6)], &asked, &CompareOptions::default()).unwrap();
    let table = &comparison.tables()[0];
    let cells = |name: &str| -> Vec<&str> {
        let mut rows = table.rows.iter();
        let row = rows.find(|row| row.name == name).expect("the row");
        row.cells[..3].iter().map(String::as_str).collect()
    };
    assert_eq!(cells("fluidity mean"), ["50 %", "60 %", "+10 points (+20 %)"]);
    assert_eq!(cells("speed_up mean"), ["0.5", "0.6", "+0.1 (+20 %)"]);
    assert_eq!(cells("fluidity count")[0], "1000 samples");
    assert_eq!(cells("fluidity sum")[0], "500");
}

#[test]
fn json() {
    let mut expression = FailIf::parse("worse(ttfc) or error_rate > 5%").unwrap();
    expression.check(&known()).unwrap();
    let comparison = comparison("B", "odd");
    let decision = expression.decide(&comparison);
    let json = comparison.json(Some(&decision)).unwrap();
    insta::assert_snapshot!(shortened(serde_json::to_string_pretty(&json).unwrap()));
}

fn known() -> Vec<veeksha_compare::KnownName> {
    use veeksha_compare::{KnownKind, KnownName};
    use veeksha_slo::Range;
    let of = |name: &str, unit: &str, kind| KnownName {
        name: name.into(),
        aliases: Vec::new(),
        unit: unit.into(),
        kind,
        range: match unit {
            "1" => Range::Share,
            _ => Range::NotNegative,
        },
    };
    vec![
        of("ttfc", "s", KnownKind::Metric),
        of("error_rate", "1", KnownKind::RunMetric),
    ]
}

#[test]
fn junit() {
    let comparison = comparison("B", EVIL);
    insta::assert_snapshot!("junit", comparison.junit(None).unwrap());
    let decision = FailIf::parse("worse(ttfc)").unwrap().decide(&comparison);
    let gated = comparison.junit(Some(&decision)).unwrap();
    // Only the gate's case fails: the report agrees with the exit code.
    assert_eq!(gated.matches("<failure").count(), 1);
    let passing = FailIf::parse("worse(speed)").unwrap().decide(&comparison);
    assert_eq!(
        comparison
            .junit(Some(&passing))
            .unwrap()
            .matches("<failure")
            .count(),
        0
    );
}

#[test]
fn annotations() {
    let comparison = comparison("B", EVIL);
    let decision = FailIf::parse("worse(ttfc)").unwrap().decide(&comparison);
    insta::assert_snapshot!(comparison.annotations(Some(&decision)));
    assert!(!comparison.annotations(None).contains("::error "));
    for line in comparison.annotations(None).lines() {
        assert!(
            line.starts_with("::warning title=") || line.starts_with("::notice title="),
            "{line}"
        );
    }
}

#[test]
fn page_is_complete_and_escapes_markup() {
    let comparison = comparison(EVIL, EVIL);
    let decision = FailIf::parse("worse(ttfc)").unwrap().decide(&comparison);
    let html = comparison.html(Some(&decision));
    // The only brackets are those of the page's own elements.
    assert!(!html.contains("<b>") && !html.contains("&\"B"));
    assert!(html.contains("&lt;b&gt;&amp;&quot;B&quot;&#39;"));
    for outside in ["http://", "https://", "<script", "src=", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert_balanced(&html);
    let skeleton: String = html
        .lines()
        .filter(|line| !line.contains("class=\"grid\"") && !line.contains("class=\"tick\""))
        .skip_while(|line| !line.starts_with("</head>"))
        .map(|line| format!("{}\n", without_numbers(line)))
        .collect();
    insta::assert_snapshot!(skeleton);
}

/// Removes digits that depend on random draws from a snapshot of the page's structure.
fn without_numbers(line: &str) -> String {
    let mut out = String::new();
    for c in line.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !out.ends_with('0') {
            out.push('0');
        }
    }
    out
}

/// Asserts that every element is closed, in order.
fn assert_balanced(html: &str) {
    let mut open = Vec::new();
    let body = &html[html.find("<html").unwrap()..];
    for tag in body.split('<').skip(1) {
        let name: String = tag
            .trim_start_matches('/')
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric())
            .collect();
        let inside = tag.split('>').next().unwrap_or_default();
        if tag.starts_with('/') {
            assert_eq!(open.pop().as_deref(), Some(name.as_str()), "{tag}");
        } else if !inside.ends_with('/') && name != "meta" {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn runs_that_cannot_be_compared_are_marked() {
    let mut b = CompareSide {
        label: "B".into(),
        runs: vec![run("B", vec![metric("ttfc", Better::Less, even(1.2))])],
    };
    b.runs[0].workload = Some(vec![(2, "x".into())]);
    let a = CompareSide {
        label: "A".into(),
        runs: vec![run("A", vec![metric("ttfc", Better::Less, even(1.0))])],
    };
    let options = CompareOptions {
        resamples: 100,
        ..CompareOptions::default()
    };
    let comparison = compare(&[a, b], &[], &options).unwrap();
    insta::assert_snapshot!(comparison.annotations(None), @r"
    ::error title=B against A%3A not comparable::the workloads of A and B differ within the first 2 sessions
    ::notice title=B against A::the runs are not comparable
    ");
    assert!(comparison.html(None).contains("Not comparable."));
    assert!(comparison.junit(None).unwrap().contains("<error message="));
    assert_eq!(
        comparison.json(None).unwrap()["candidates"][0]["comparable"],
        false
    );
    let table = &comparison.tables()[0];
    assert_eq!(table.rows[0].cells[4], "not comparable");
    assert_eq!(table.rows[0].cells[1], "1.2 s");
}

/// A scenario's name, description and tags are in JSON and on the page; without any of them nothing
/// is shown.
#[test]
fn scenario_labels_are_shown() {
    let side = |label: &str, name: &str| {
        let mut side = CompareSide {
            label: label.into(),
            runs: vec![RunData::default()],
        };
        side.runs[0].scenario = ScenarioLabel {
            name: Some(name.into()),
            description: Some("warm <cache>".into()),
            tags: vec!["chat".into(), "nightly".into()],
        };
        side
    };
    let sides = [side("A", "old"), side("B", "new")];
    let comparison = compare(&sides, &[], &CompareOptions::default()).unwrap();
    let json = comparison.json(None).unwrap();
    assert_eq!(json["baseline"]["scenarios"][0]["name"], "old");
    let scenario = &json["candidates"][0]["scenarios"][0];
    assert_eq!(scenario["description"], "warm <cache>");
    assert_eq!(scenario["tags"][1], "nightly");
    let page = comparison.html(None);
    assert!(
        page.contains("scenario new: warm &lt;cache&gt; (tags: chat, nightly)"),
        "{page}"
    );
    let label = comparison.candidates[0].side.scenarios[0].to_string();
    assert_eq!(label, "new: warm <cache> (tags: chat, nightly)");
}
