//! The page as one file: markup, style, script and data combined.

use crate::data::PageData;

const MARKUP: &str = include_str!("../assets/page.html");
const STYLE: &str = include_str!("../assets/style.css");

/// The parts of the script in order of dependency.
const SCRIPT: &[&str] = &[
    include_str!("../assets/js/dom.js"),
    include_str!("../assets/js/format.js"),
    include_str!("../assets/js/model.js"),
    include_str!("../assets/js/selection.js"),
    include_str!("../assets/js/scale.js"),
    include_str!("../assets/js/plot.js"),
    include_str!("../assets/js/time_charts.js"),
    include_str!("../assets/js/value_charts.js"),
    include_str!("../assets/js/session.js"),
    include_str!("../assets/js/summary.js"),
    include_str!("../assets/js/tables.js"),
    include_str!("../assets/js/facts.js"),
    include_str!("../assets/js/live.js"),
    include_str!("../assets/js/main.js"),
];

/// Content security policy of a page from disk: nothing may be loaded or contacted.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// Content security policy of the live page, which may also contact its server.
pub(crate) const LIVE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'";

/// Returns the complete page of a run: `report.html`.
pub fn page(data: &PageData) -> String {
    join("file", POLICY, &data.json())
}

/// Returns the page with the latest data (`null` before the first), which requests newer data from
/// its server.
pub(crate) fn live_page(json: &str) -> String {
    join("live", LIVE_POLICY, json)
}

fn join(mode: &str, policy: &str, json: &str) -> String {
    let script: usize = SCRIPT.iter().map(|part| part.len()).sum();
    let mut html =
        String::with_capacity(MARKUP.len() + STYLE.len() + script + json.len() + json.len() / 32 + 256);
    let mut rest = MARKUP;
    // The markup is trusted: each placeholder occurs once, in this order. Inserted text is not
    // searched for placeholders.
    for (mark, put) in [
        ("{{mode}}", PagePart::Text(mode)),
        ("{{policy}}", PagePart::Text(policy)),
        ("{{style}}", PagePart::Text(STYLE)),
        ("{{data}}", PagePart::Json(json)),
        ("{{script}}", PagePart::Script),
    ] {
        let Some((before, after)) = rest.split_once(mark) else {
            continue;
        };
        html.push_str(before);
        match put {
            PagePart::Text(text) => html.push_str(text),
            PagePart::Json(json) => push_json(&mut html, json),
            PagePart::Script => {
                html.push_str("(function () {\n'use strict';\n");
                SCRIPT.iter().for_each(|part| html.push_str(part));
                html.push_str("}());\n");
            }
        }
        rest = after;
    }
    html.push_str(rest);
    html
}

enum PagePart<'a> {
    Text(&'a str),
    Json(&'a str),
    Script,
}

/// Appends JSON as the content of a `script` element. `<` occurs in JSON strings only, where
/// `\u003c` is equivalent, so that neither `</script` nor `<!--` can end or change the element.
fn push_json(html: &mut String, json: &str) {
    let mut parts = json.split('<');
    html.push_str(parts.next().unwrap_or_default());
    for part in parts {
        html.push_str("\\u003c");
        html.push_str(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fact, RunFacts};

    #[test]
    fn every_part_is_in_its_place_once() {
        let html = page(&PageData::default());
        assert!(!html.contains("{{"), "a mark was left");
        assert_eq!(html.matches("<script").count(), 2, "the data and the script");
        assert!(html.contains("default-src 'none'"));
        assert!(
            !html.contains("connect-src"),
            "a page from disk makes no requests"
        );
        assert!(live_page("null").contains("connect-src 'self'"));
        for scheme in ["http://", "https://"] {
            let at = html
                .match_indices(scheme)
                .filter(|(at, _)| !html[*at..].starts_with("http://www.w3.org/"));
            assert_eq!(at.count(), 0, "the page names no address ({scheme})");
        }
    }

    #[test]
    fn text_cannot_become_markup() {
        let hostile = "</script><img src=x onerror=alert(1)><!-- <script> {{script}} \u{2028}";
        let data = PageData {
            run: RunFacts {
                name: hostile.into(),
                facts: vec![Fact {
                    name: hostile.into(),
                    value: hostile.into(),
                }],
                ..RunFacts::default()
            },
            configuration: Some(hostile.into()),
            ..PageData::default()
        };
        let html = page(&data);
        assert_eq!(html.matches("<img").count(), 0);
        assert_eq!(html.matches("</script").count(), 2, "those of the markup");
        // The text between the markers of the data is the data.
        let from = html.find("id=\"data\">").unwrap() + "id=\"data\">".len();
        let to = from + html[from..].find("</script>").unwrap();
        let back: serde_json::Value = serde_json::from_str(&html[from..to]).unwrap();
        assert_eq!(back["run"]["name"], hostile);
        assert_eq!(back["configuration"], hostile);
    }
}
