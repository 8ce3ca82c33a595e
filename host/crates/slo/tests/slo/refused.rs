//! Invalid objectives and their messages.

use veeksha_slo::{Objective, ParseError};

fn said_of(read: Result<Objective, ParseError>) -> String {
    match read {
        Err(error) => format!("{error}\n"),
        Ok(objective) => format!("read as {objective}\n"),
    }
}

fn errors<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts
        .into_iter()
        .map(|text| said_of(Objective::parse(text)))
        .collect()
}

#[test]
fn something_is_missing_or_too_much() {
    insta::assert_snapshot!(errors([
        "",
        "   ",
        "p99(ttfc)",
        "p99(ttfc) is 500ms",
        "p99(ttfc) <",
        "p99(ttfc) < fast",
        "p99(ttfc < 5",
        "p99() < 5",
        "p99 < 500ms",
        "p99 ttfc < 5",
        "500ms > p99(ttfc)",
        "p99(ttfc) < 5 6",
        "p99(ttfc) < 5 and p99(tbc) < 1",
        "p99(ttfc) < 1h30m",
        "(p99(ttfc) < 1)",
        "p99(ttfc, tbc) < 1",
        "p99(ttfc{a=1} < 1",
    ]));
}

#[test]
fn names_that_do_not_exist() {
    insta::assert_snapshot!(errors([
        "p99th(ttfc) < 1",
        "percentile(ttfc, 99) < 1",
        "p101(ttfc) < 1",
        "p99.9.9(ttfc) < 1",
        "maen(ttfc) < 1",
        "average(ttfc) < 1",
        "frobnicate(ttfc) < 1",
        "p(ttfc) < 1",
        "error-rate < 1%",
        "p99(time.to.first) < 1",
        "métrique < 1",
    ]));
}

#[test]
fn comparisons_and_numbers() {
    insta::assert_snapshot!(errors([
        "ttfc = 1",
        "ttfc != 1",
        "ttfc =< 1",
        "ttfc => 1",
        "ttfc <> 1",
        "ttfc < 1 sec",
        "ttfc < 500MS",
        "ttfc < 5 tokens",
        "ttfc < 1e999",
        "ttfc < 1e-999",
        "ttfc < 1.",
        "ttfc < 1; rm",
        "ttfc < --1",
        "ttfc < ٣",
    ]));
}

#[test]
fn labels_and_windows() {
    insta::assert_snapshot!(errors([
        "p99(ttfc){a=1} < 1",
        "error_rate{a=1} < 1",
        "p99(ttfc{a}) < 1",
        "p99(ttfc{a=}) < 1",
        "p99(ttfc{a=x y}) < 1",
        "p99(ttfc{a==1}) < 1",
        "p99(ttfc{a=1, a=2}) < 1",
        "p99(ttfc{a=\"open) < 1",
        "p99(ttfc{a=\"\\q\"}) < 1",
        "p99(ttfc{a=1",
        "p99(ttfc{a=1 b=2}) < 1",
        "p99(ttfc, window = 10) < 1",
        "p99(ttfc, window = 0s) < 1",
        "p99(ttfc, window = -1s) < 1",
        "p99(ttfc, window = 3000h) < 1",
        "p99(ttfc, window 10s) < 1",
        "p99(ttfc, windows = 10s) < 1",
        "p99(ttfc, window = 10s, x) < 1",
    ]));
}

#[test]
fn conditions() {
    let texts = [
        "",
        "500ms",
        "p99(ttfc, window = 1s) < 1",
        "ttfc",
        "ttfc:500",
        "ttfc <= 500ms, tbc <= 5ms",
    ];
    insta::assert_snapshot!(
        texts
            .map(|text| said_of(Objective::parse_condition(text)))
            .concat()
    );
}

#[test]
fn refuses_too_long_text() {
    let fits = format!("p99(ttfc) < 1{}", " ".repeat(veeksha_slo::LONGEST - 13));
    assert!(Objective::parse(&fits).is_ok());
    let error = Objective::parse(&(fits + " ")).unwrap_err();
    assert_eq!(
        (error.column, error.problem.as_str()),
        (1, "4097 bytes are too many; at most 4096 are read")
    );
}
