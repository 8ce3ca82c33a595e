//! The closing summary as text.

use veeksha_report::{ColorMode, RowMark, Section, SummaryRow, summary_table};

fn row(name: &str, cells: &[&str]) -> SummaryRow {
    SummaryRow {
        name: name.into(),
        cells: cells.iter().map(|cell| (*cell).into()).collect(),
        ..SummaryRow::default()
    }
}

fn sections() -> Vec<Section> {
    let columns = ["P50", "P99", "count"].map(String::from).to_vec();
    let ttfc = row("Time to First Chunk", &["12.3 ms", "123 ms", "12"]);
    let ttfc = SummaryRow {
        note: Some("P99 of fewer than 100 samples".into()),
        mark: RowMark::Warning,
        ..ttfc
    };
    let tbc = row("Time Between Chunks", &["5 ms", "9.9 ms", "1200"]);
    let slo = SummaryRow {
        mark: RowMark::Bad,
        ..row("ttfc_p99 ≤ 100 ms", &["123 ms"])
    };
    let met = SummaryRow {
        mark: RowMark::Good,
        ..row("tbc_p99 ≤ 50 ms", &["9.9 ms"])
    };
    vec![
        Section {
            title: "Latency".into(),
            columns,
            rows: vec![ttfc, tbc],
        },
        Section {
            title: "Nothing to say".into(),
            ..Section::default()
        },
        Section {
            title: "SLOs".into(),
            columns: Vec::new(),
            rows: vec![slo, met],
        },
    ]
}

#[test]
fn aligns_columns_and_omits_empty_sections() {
    insta::assert_snapshot!(summary_table(&sections(), 100, ColorMode::Plain), @r"
    Latency                    P50     P99  count
    ! Time to First Chunk  12.3 ms  123 ms     12  P99 of fewer than 100 samples
      Time Between Chunks     5 ms  9.9 ms   1200

    SLOs
    ✗ ttfc_p99 ≤ 100 ms  123 ms
    ✓ tbc_p99 ≤ 50 ms    9.9 ms
    ");
}

#[test]
fn narrow_terminal_truncates_names_and_moves_notes() {
    insta::assert_snapshot!(summary_table(&sections(), 44, ColorMode::Plain), @r"
    Latency                   P50     P99  count
    ! Time to First Chu…  12.3 ms  123 ms     12
        P99 of fewer than 100 samples
      Time Between Chun…     5 ms  9.9 ms   1200

    SLOs
    ✗ ttfc_p99 ≤ 100 ms  123 ms
    ✓ tbc_p99 ≤ 50 ms    9.9 ms
    ");
}

#[test]
fn lines_fit_the_width_if_cells_do() {
    for width in 40..120 {
        for line in summary_table(&sections(), width, ColorMode::Plain).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn color_adds_only_escape_sequences() {
    let coloured = summary_table(&sections(), 100, ColorMode::Ansi);
    assert!(coloured.contains("\x1b[31m✗\x1b[0m"));
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    plain.push_str(rest);
    let trimmed = |text: &str| {
        text.lines()
            .map(|line| line.trim_end().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        trimmed(&plain),
        trimmed(&summary_table(&sections(), 100, ColorMode::Plain))
    );
}

#[test]
fn accepts_uneven_rows_and_zero_width() {
    let rows = vec![
        row("a", &["1", "2", "3"]),
        row("b", &[]),
        row("a long name that is cut", &["1"]),
    ];
    let section = Section {
        title: "T".into(),
        columns: vec!["x".into()],
        rows,
    };
    let text = summary_table(&[section], 0, ColorMode::Plain);
    assert_eq!(text.lines().count(), 4);
    assert!(text.contains("a long name…"), "{text}");
}

#[test]
fn wraps_rows_without_cells() {
    let finding = SummaryRow {
        mark: RowMark::Warning,
        note: Some("more client threads would help, or a machine with less to do".into()),
        ..row(
            "TTFC: error 1.5 % of its P50 (305 µs of 20 ms); most of it lies between dispatch and send",
            &[],
        )
    };
    let section = Section {
        title: "Certificate: DEGRADED".into(),
        columns: vec!["error".into()],
        rows: vec![row("TTFC", &["305 µs"]), finding, row("short", &[])],
    };
    insta::assert_snapshot!(summary_table(&[section], 44, ColorMode::Plain), @r"
    Certificate: DEGRADED     error
      TTFC                   305 µs
    ! TTFC: error 1.5 % of its P50 (305 µs of
      20 ms); most of it lies between dispatch
      and send
        more client threads would help, or a
        machine with less to do
      short
    ");
}

#[test]
fn splits_wide_sections_into_blocks() {
    let columns = [
        "arrival_rate",
        "ttfc P50",
        "ttfc P99",
        "goodput",
        "output tok/s",
        "requests",
        "verdict",
    ];
    let cell = |cells: [&str; 7]| row("", &cells).cells;
    let section = Section {
        title: "Sweep".into(),
        columns: columns.map(String::from).to_vec(),
        rows: vec![
            SummaryRow {
                name: "rate=1".into(),
                cells: cell(["1", "20 ms", "31 ms", "100 %", "640", "200", "VALID"]),
                ..SummaryRow::default()
            },
            SummaryRow {
                name: "rate=10".into(),
                cells: cell(["10", "45 ms", "1.2 s", "71 %", "5210", "200", "DEGRADED"]),
                note: Some("2 of 3 objectives".into()),
                mark: RowMark::Bad,
            },
        ],
    };
    insta::assert_snapshot!(summary_table(std::slice::from_ref(&section), 60, ColorMode::Plain), @r"
    Sweep      arrival_rate  ttfc P50  ttfc P99  goodput
      rate=1              1     20 ms     31 ms    100 %
    ✗ rate=10            10     45 ms     1.2 s     71 %

    Sweep (2 of 2)    output tok/s  requests   verdict
      rate=1                   640       200     VALID
    ✗ rate=10                 5210       200  DEGRADED
        2 of 3 objectives
    ");
    for width in 40..140 {
        let text = summary_table(std::slice::from_ref(&section), width, ColorMode::Plain);
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        for cell in section
            .rows
            .iter()
            .flat_map(|row| &row.cells)
            .chain(&section.columns)
        {
            assert!(text.contains(cell.as_str()), "{width}: {cell}");
        }
    }
}

#[test]
fn objectives_show_observed_bound_and_count() {
    let objective = |name: &str, cells: &[&str], mark| SummaryRow {
        mark,
        ..row(name, cells)
    };
    let section = Section {
        title: "SLOs".into(),
        columns: ["observed", "bound", "samples"].map(String::from).to_vec(),
        rows: vec![
            objective("p99(ttfc)", &["123 ms", "< 100 ms", "1500"], RowMark::Bad),
            objective(
                "p95(my_metric{tier=\"gold\"})",
                &["2.7", "≤ 3", "40"],
                RowMark::Good,
            ),
            objective("error_rate", &["0.2 %", "< 1 %", "1500"], RowMark::Good),
        ],
    };
    insta::assert_snapshot!(summary_table(&[section], 80, ColorMode::Plain), @r#"
    SLOs                           observed     bound  samples
    ✗ p99(ttfc)                      123 ms  < 100 ms     1500
    ✓ p95(my_metric{tier="gold"})       2.7       ≤ 3       40
    ✓ error_rate                      0.2 %     < 1 %     1500
    "#);
}

#[test]
fn never_truncates_objectives() {
    let section = Section {
        title: "SLOs".into(),
        columns: ["observed", "bound"].map(String::from).to_vec(),
        rows: vec![
            SummaryRow {
                mark: RowMark::Bad,
                ..row(
                    "p99(ttfc_from_intended{tier=\"gold\"}) over 10 s",
                    &["123 ms", "< 100 ms"],
                )
            },
            row("A name that describes only itself", &["1", "2"]),
        ],
    };
    insta::assert_snapshot!(summary_table(&[section], 44, ColorMode::Plain), @r#"
    SLOs                      observed     bound
    ✗ p99(ttfc_from_intended{tier="gold"}) over
      10 s
                                123 ms  < 100 ms
      A name that describes…         1         2
    "#);
}
