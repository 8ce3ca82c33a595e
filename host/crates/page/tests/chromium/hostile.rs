//! Injection tests: text must not be interpreted as markup.

use serde_json::json;
use veeksha_page::{Fact, PageData};

use crate::{open, sample};

/// Every text on a page contains markup.
#[test]
fn hostile_text_stays_text() {
    let hostile =
        "</script><img src=x onerror=\"window.hit=1\"><script>window.hit=1</script>{{data}}<!--\u{2028}'\"`";
    let mut events = sample::run::events(60, 20.0, 9);
    for event in &mut events {
        match event {
            veeksha_events::Event::Finished(record) => {
                record.labels = vec![(hostile.into(), hostile.into())];
                record.status = if record.id.session.0 % 3 == 0 {
                    veeksha_events::Status::Failed {
                        class: veeksha_model::ErrorClass::Protocol,
                        message: hostile.into(),
                    }
                } else {
                    veeksha_events::Status::Ok {
                        finish_reason: hostile.into(),
                    }
                };
            }
            veeksha_events::Event::Sampled(sample) => sample.metric = hostile.into(),
            _ => {}
        }
    }
    // Every text of the data, replaced through JSON so that new parts are included automatically.
    let data = sample::page_data::data(&events, 1000);
    let mut hostile_data = data.clone();
    hostile_data.run.name = hostile.into();
    hostile_data.run.summary = Some(hostile.into());
    hostile_data.run.remarks = vec![hostile.into()];
    hostile_data.run.facts = vec![Fact {
        name: hostile.into(),
        value: hostile.into(),
    }];
    hostile_data.configuration = Some(hostile.into());
    hostile_data.machine = hostile_data.run.facts.clone();
    hostile_data.versions = hostile_data.run.facts.clone();
    for metric in &mut hostile_data.metrics {
        (metric.label, metric.definition, metric.unit) = (hostile.into(), hostile.into(), hostile.into());
        metric.plugin = Some(hostile.into());
    }
    for slo in &mut hostile_data.slos {
        (slo.expression, slo.name, slo.detail) = (hostile.into(), Some(hostile.into()), Some(hostile.into()));
    }
    for key_metric in &mut hostile_data.key_metrics {
        (key_metric.label, key_metric.detail, key_metric.unit) =
            (hostile.into(), Some(hostile.into()), hostile.into());
    }
    for check in &mut hostile_data.health {
        (check.name, check.summary, check.details) = (hostile.into(), hostile.into(), vec![hostile.into()]);
    }
    for plugin in &mut hostile_data.plugins {
        (plugin.name, plugin.role, plugin.digest, plugin.source) = (
            hostile.into(),
            hostile.into(),
            Some(hostile.into()),
            Some(hostile.into()),
        );
    }
    for failure in &mut hostile_data.failures {
        (failure.class, failure.first_message, failure.first_request) =
            (hostile.into(), hostile.into(), Some(hostile.into()));
    }
    for reason in &mut hostile_data.never_sent {
        (reason.reason, reason.meaning) = (hostile.into(), hostile.into());
    }
    for dropped in &mut hostile_data.dropped_tool_runs {
        (dropped.tool, dropped.reason, dropped.meaning) = (hostile.into(), hostile.into(), hostile.into());
    }
    if let Some(slices) = &mut hostile_data.slices {
        slices
            .columns
            .iter_mut()
            .for_each(|column| (column.label, column.unit) = (hostile.into(), hostile.into()));
    }
    if let Some(certificate) = &mut hostile_data.certificate {
        certificate.basis = Some(hostile.into());
        for finding in &mut certificate.findings {
            (finding.what, finding.remedy, finding.metric) =
                (hostile.into(), Some(hostile.into()), Some(hostile.into()));
        }
        for bound in &mut certificate.bounds {
            bound.source = hostile.into();
        }
    }
    assert_text_stays_text(&hostile_data, hostile);
}

fn assert_text_stays_text(data: &PageData, title: &str) {
    let Some(mut opened) = open(1400, 950, data) else {
        return;
    };
    let browser = &mut opened.browser;
    assert_eq!(browser.text("h1"), title);
    // Includes elements that are created on interaction.
    let [x, y, width, height] = browser.place("#plot-scatter .plot-area");
    browser.hover((x + width * 0.5, y + height * 0.5));
    browser.drag((x + width * 0.1, y + 5.0), (x + width * 0.9, y + height * 0.9));
    browser.click("#requests-table tbody tr");
    browser.key("Escape", false);
    browser.click("#failures .link");
    assert_eq!(
        browser.eval(
            "window.hit === undefined && document.images.length === 0 && document.scripts.length === 2"
        ),
        json!(true)
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
    assert_eq!(browser.asked().len(), 1);
}
