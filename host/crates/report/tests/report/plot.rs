//! Plots as SVG text.

use veeksha_report::{Panel, PanelKind, ReportError, portrait_svg};

fn panel(kind: PanelKind, series: Vec<(String, Vec<(f64, f64)>)>) -> Panel {
    Panel {
        title: "Prompts <all> & more".into(),
        x_label: "prompt tokens".into(),
        y_label: "requests".into(),
        kind,
        series,
        log_x: false,
    }
}

/// Returns the value of an attribute.
fn attribute(element: &str, name: &str) -> f64 {
    let from = element.find(&format!("{name}=\"")).unwrap() + name.len() + 2;
    let value = &element[from..];
    value[..value.find('"').unwrap()].parse().unwrap()
}

/// Returns the bars: rectangles of the first color.
fn bars(svg: &str) -> Vec<&str> {
    svg.lines()
        .filter(|line| line.contains("<rect") && line.contains("#0072B2"))
        .collect()
}

#[test]
fn bars_match_their_counts() {
    let points = vec![(0.0, 10.0), (100.0, 40.0), (200.0, 20.0), (400.0, 0.0)];
    let svg = portrait_svg(&[panel(PanelKind::Histogram, vec![(String::new(), points)])]).unwrap();
    let bars = bars(&svg);
    let heights: Vec<f64> = bars.iter().map(|bar| attribute(bar, "height")).collect();
    let widths: Vec<f64> = bars.iter().map(|bar| attribute(bar, "width")).collect();
    assert_eq!(bars.len(), 3);
    // To the pixel.
    assert!((heights[1] - 4.0 * heights[0]).abs() <= 4.0, "{heights:?}");
    assert!((heights[1] - 2.0 * heights[2]).abs() <= 2.0, "{heights:?}");
    assert!((widths[2] - 2.0 * widths[0]).abs() <= 2.0, "{widths:?}");
    assert!(heights[1] > 150.0, "the highest bar fills the panel: {heights:?}");
}

#[test]
fn texts_are_at_their_positions() {
    let series = vec![
        ("recorded".into(), vec![(1.0, 0.5), (2.0, 1.0)]),
        ("achieved".into(), vec![(1.5, 0.5), (2.0, 1.0)]),
    ];
    let svg = portrait_svg(&[panel(PanelKind::Cdf, series)]).unwrap();
    for word in [
        "Prompts &lt;all&gt; &amp; more",
        "prompt tokens",
        "requests",
        "recorded",
        "achieved",
        "requests (%)",
        ">\n20\n<",
        ">\n100\n<",
    ] {
        assert!(svg.contains(word), "{word}");
    }
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    assert!(svg.contains("#0072B2") && svg.contains("#D55E00"));
}

#[test]
fn panels_form_two_columns() {
    let line = || {
        panel(
            PanelKind::Line,
            vec![("rate".into(), vec![(0.0, 1.0), (10.0, 3.0)])],
        )
    };
    let svg = |count: usize| portrait_svg(&(0..count).map(|_| line()).collect::<Vec<_>>()).unwrap();
    for (count, size) in [
        (1, r#"width="480" height="300""#),
        (2, r#"width="960" height="300""#),
        (5, r#"width="960" height="900""#),
    ] {
        assert!(svg(count).contains(size), "{count}");
    }
    assert_eq!(svg(5), svg(5));
}

#[test]
fn skips_points_that_are_not_finite() {
    assert!(matches!(portrait_svg(&[]), Err(ReportError::NothingToPlot)));
    let nothing = panel(
        PanelKind::Line,
        vec![("x".into(), vec![(f64::NAN, 1.0), (1.0, f64::INFINITY)])],
    );
    assert!(portrait_svg(&[nothing]).unwrap().contains("no data"));
    // Any points give a plot: none, one, equal ones, negative ones, on either axis.
    for points in [
        vec![],
        vec![(0.0, 0.0)],
        vec![(5.0, 1.0), (5.0, 1.0)],
        vec![(-3.0, -1.0), (7.0, 2.0)],
        vec![(1e-9, 1.0), (1e12, 1e12)],
    ] {
        for kind in [PanelKind::Histogram, PanelKind::Cdf, PanelKind::Line] {
            for log_x in [false, true] {
                let mut panel = panel(kind, vec![("x".into(), points.clone())]);
                panel.log_x = log_x;
                let svg = portrait_svg(&[panel]).unwrap();
                assert!(
                    !svg.contains("NaN") && !svg.contains("inf"),
                    "{points:?} {kind:?}"
                );
            }
        }
    }
}
