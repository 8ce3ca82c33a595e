//! The end of a run: summary files, the table, and the exit code that says how it went.

use std::sync::PoisonError;

use veeksha_evaluate::{
    CertFinding, Certificate, Evaluation, FidelityReport, Metric, SelfTest, Thresholds, Verdict, certify,
};
use veeksha_model::ErrorClass;
use veeksha_pipeline::RunEnd;
use veeksha_report::{
    Colour, Mark, ReportError, Row, RunFolder, Section, duration, number, share, summary_table,
};

use serde_json::{Value, json};
use veeksha_scenario::{Runtime, Scenario};

use crate::collect::Collected;
use crate::drive::Refused;
use crate::exit;
use crate::failure::Failure;
use crate::{certificate_section, replay_section, say};

/// A percentile of fewer samples than this is hardly more than the largest value.
const P99_SAMPLES: usize = 100;

/// Width of the table where the terminal's is not known.
const WIDTH: usize = 110;

/// Whose time the run was measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// The machine's.
    Real,
    /// The simulation's.
    Virtual,
}

/// A share of merged chunks above which the gaps between chunks say more about the reads than about the server.
const MANY_MERGED: f64 = 0.05;

/// What a run is judged by, besides its own record.
pub(crate) struct Judged {
    /// Whose time it was.
    pub(crate) clock: Clock,
    /// When it does not trust itself.
    pub(crate) thresholds: Thresholds,
    /// What the self-test found, if there was one.
    pub(crate) self_test: Option<SelfTest>,
    /// What was done for the threads that measure.
    pub(crate) threads: Threads,
}

/// What was asked for the threads that dispatch, send and read, and what of it was refused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Threads {
    spin_microseconds: f64,
    realtime_priority: Option<u8>,
    dispatcher_cores: Vec<u32>,
    client_cores: Vec<u32>,
    refused: Vec<String>,
}

impl Threads {
    pub(crate) fn of(runtime: &Runtime, refused: &Refused) -> Self {
        let refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
        Threads {
            spin_microseconds: runtime.spin_microseconds,
            realtime_priority: runtime.realtime_priority,
            dispatcher_cores: runtime.dispatcher_cores.clone(),
            client_cores: runtime.client_cores.clone(),
            refused: refused.iter().cloned().collect(),
        }
    }

    fn json(&self) -> Value {
        json!({
            "spin_microseconds": self.spin_microseconds,
            "realtime_priority": self.realtime_priority,
            "dispatcher_cores": self.dispatcher_cores,
            "client_cores": self.client_cores,
            "refused": self.refused,
        })
    }

    /// A line for each thing that was done, and for each that was refused.
    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        if self.spin_microseconds > 0.0 {
            rows.push(row(
                "Spun before each arrival",
                vec![duration(self.spin_microseconds / 1e6)],
            ));
        }
        if let Some(priority) = self.realtime_priority {
            rows.push(row("Real-time priority", vec![priority.to_string()]));
        }
        for (name, cores) in [
            ("Dispatchers kept on cores", &self.dispatcher_cores),
            ("Clients kept on cores", &self.client_cores),
        ] {
            if !cores.is_empty() {
                let cores: Vec<String> = cores.iter().map(u32::to_string).collect();
                rows.push(row(name, vec![cores.join(", ")]));
            }
        }
        rows.extend(self.refused.iter().map(|reason| Row {
            name: reason.clone(),
            mark: Mark::Warning,
            ..Row::default()
        }));
        rows
    }
}

/// When a run of this scenario does not trust itself.
pub(crate) fn thresholds(scenario: &Scenario) -> Thresholds {
    Thresholds {
        degraded: scenario.certificate.degraded,
        invalid: scenario.certificate.invalid,
        ..Thresholds::default()
    }
}

/// Writes the summaries, prints the table unless it is not wanted, and says how the run went.
pub(crate) fn conclude(
    folder: &RunFolder,
    collected: Collected,
    end: &RunEnd,
    judged: &Judged,
    quiet: bool,
) -> Result<u8, Failure> {
    let Collected {
        evaluation,
        written,
        failures,
        fidelity,
    } = collected;
    let certificate = match judged.clock {
        Clock::Real => certify(&evaluation, &judged.thresholds, judged.self_test.as_ref()),
        Clock::Virtual => Certificate::simulated(&evaluation, &judged.thresholds),
    };
    let summaries = write(folder, &evaluation, fidelity.as_ref()).and_then(|()| {
        let mut file = certificate.json();
        file["threads"] = judged.threads.json();
        folder.write_json("certificate.json", &file)
    });
    if !quiet {
        let mut sections = sections(&evaluation, &certificate, judged);
        sections.extend(fidelity.as_ref().map(replay_section::section));
        say::out(summary_table(&sections, WIDTH, Colour::of_stdout()));
        say::out(format!("results: {}", folder.path().display()));
    }
    for (class, (count, message)) in &failures {
        say::err(format!(
            "{} failed ({class}); the first: {message}",
            say::counted(*count, "request")
        ));
    }
    if end.target_lost {
        say::err(
            "the run was stopped: one request after another could not connect; is the server still running?",
        );
    }
    if let Some(first) = &end.first_warmup_failure {
        say::err(format!(
            "{} of the warm-up failed; the first: {first}",
            say::counted(u64::from(end.warmup_failures), "request")
        ));
    }
    for failure in &end.plugin_failures {
        say::err(Failure::from(failure.clone()));
    }
    if certificate.verdict == Verdict::Invalid && evaluation.counts.completed > 0 {
        say::err(format!("the measurement is INVALID: {}", worst(&certificate)));
    }
    if evaluation.counts.requests == 0 {
        say::err("warning: nothing was measured: the run ended before its first request");
    }
    if let Err(error) = written.and(summaries) {
        return Err(Failure::internal(format!("the results are incomplete: {error}"))
            .hinted("free some space or choose another --output_dir"));
    }
    Ok(code(&evaluation, &certificate, end))
}

/// The first finding that makes a run invalid, in words.
fn worst(certificate: &Certificate) -> String {
    let invalid = |finding: &&CertFinding| finding.verdict == Verdict::Invalid;
    certificate
        .findings
        .iter()
        .find(invalid)
        .map_or_else(String::new, |finding| finding.what.clone())
}

/// The first of these that holds: interrupted, a plugin failed, the target was lost, nothing was measured, every request failed, the
/// measurement is invalid, an SLO failed, done.
fn code(evaluation: &Evaluation, certificate: &Certificate, end: &RunEnd) -> u8 {
    if end.interrupted {
        exit::INTERRUPTED
    } else if !end.plugin_failures.is_empty() {
        exit::PLUGIN
    } else if end.target_lost {
        exit::TARGET
    } else if evaluation.counts.requests == 0 {
        exit::INVALID
    } else if evaluation.counts.all_failed() {
        exit::TARGET
    } else if certificate.verdict == Verdict::Invalid {
        exit::INVALID
    } else if !evaluation.slos.all_met() {
        exit::SLO_FAILED
    } else {
        exit::DONE
    }
}

fn write(
    folder: &RunFolder,
    evaluation: &Evaluation,
    fidelity: Option<&FidelityReport>,
) -> Result<(), ReportError> {
    if let Some(fidelity) = fidelity {
        folder.write_json("metrics/replay_fidelity.json", &fidelity.replay_fidelity())?;
    }
    folder.write_json("metrics/summary_stats.json", &evaluation.summary_stats())?;
    folder.write_json(
        "metrics/throughput_metrics.json",
        &evaluation.throughput_metrics(),
    )?;
    folder.write_json("metrics/slo_results.json", &evaluation.slo_results())
}

fn sections(evaluation: &Evaluation, certificate: &Certificate, judged: &Judged) -> Vec<Section> {
    let mut sections = vec![
        requests(evaluation),
        latencies(evaluation, certificate),
        throughput(evaluation),
        slos(evaluation),
    ];
    // In virtual time nothing is late, by construction.
    if judged.clock == Clock::Real {
        let mut accuracy = accuracy(evaluation);
        accuracy.rows.extend(judged.threads.rows());
        sections.push(accuracy);
    }
    sections.push(certificate_section::section(certificate));
    sections
}

fn row(name: &str, cells: Vec<String>) -> Row {
    Row {
        name: name.into(),
        cells,
        ..Row::default()
    }
}

fn requests(evaluation: &Evaluation) -> Section {
    let counts = &evaluation.counts;
    let mut rows = vec![
        row("Sessions", vec![counts.sessions.to_string()]),
        row("Requests answered", vec![counts.completed.to_string()]),
    ];
    let mut bad = |name: &str, count: u64, mark: Mark| {
        if count > 0 {
            rows.push(Row {
                mark,
                ..row(name, vec![count.to_string()])
            });
        }
    };
    bad("Requests failed", counts.errored, Mark::Bad);
    for (class, count) in counts
        .error_classes
        .iter()
        // What was given up at the end has a line of its own.
        .filter(|(class, _)| **class != ErrorClass::Cancelled)
    {
        bad(&format!("  {}", class.name()), *count, Mark::Plain);
    }
    bad("Requests given up", counts.cancelled, Mark::Warning);
    bad("Requests never sent", counts.never_sent_total(), Mark::Warning);
    bad(
        "Sessions that never began although they were due",
        counts.arrivals_missed,
        Mark::Warning,
    );
    bad("Answers without tokens", counts.empty_answers, Mark::Warning);
    bad(
        "Requests sent after the timeout, not measured",
        counts.drained,
        Mark::Plain,
    );
    if counts.by_server.len() > 1 {
        for (server, of) in &counts.by_server {
            let failed = (of.failed > 0).then(|| format!("{} failed", of.failed));
            rows.push(Row {
                note: failed,
                ..row(
                    &format!("Requests to server {server}"),
                    vec![of.requests.to_string()],
                )
            });
        }
    }
    Section {
        title: "Requests".into(),
        columns: Vec::new(),
        rows,
    }
}

fn latencies(evaluation: &Evaluation, certificate: &Certificate) -> Section {
    let shown = [
        (Metric::Ttfc, certificate_section::name(Metric::Ttfc)),
        (
            Metric::TtfcFromIntended,
            certificate_section::name(Metric::TtfcFromIntended),
        ),
        (Metric::Tbc, certificate_section::name(Metric::Tbc)),
        (Metric::Tpot, certificate_section::name(Metric::Tpot)),
        (Metric::EndToEnd, certificate_section::name(Metric::EndToEnd)),
        (
            Metric::EndToEndFromIntended,
            certificate_section::name(Metric::EndToEndFromIntended),
        ),
        (Metric::PromptTokens, "New prompt tokens (without history)"),
        (Metric::OutputTokens, "Output tokens"),
    ];
    let rows = shown.into_iter().filter_map(|(metric, name)| {
        let summary = evaluation.metric(metric)?;
        let show = |value: f64| {
            if metric.unit() == "s" {
                duration(value)
            } else {
                number(value)
            }
        };
        let mut cells = [summary.mean, summary.p50, summary.p90, summary.p99, summary.max]
            .map(show)
            .to_vec();
        // How far the client may have falsified a sample.
        let bound = certificate.bound(metric);
        cells.push(bound.map_or_else(String::new, |bound| format!("± {}", duration(bound.p99_error))));
        let few = summary.count < P99_SAMPLES;
        let note = few.then(|| format!("P99 of {}", summary.count));
        Some(Row {
            note,
            ..row(name, cells)
        })
    });
    let columns = ["mean", "P50", "P90", "P99", "max", "error (P99)"]
        .map(String::from)
        .to_vec();
    Section {
        title: "Latencies and lengths".into(),
        columns,
        rows: rows.collect(),
    }
}

fn throughput(evaluation: &Evaluation) -> Section {
    let throughput = &evaluation.throughput;
    let figures = [
        ("Requests per second", throughput.requests_per_second),
        ("Input tokens per second", throughput.input_tokens_per_second),
        ("Output tokens per second", throughput.output_tokens_per_second),
    ];
    let rows = figures
        .into_iter()
        .filter_map(|(name, value)| Some(row(name, vec![number(value?)])));
    Section {
        title: "Throughput".into(),
        columns: Vec::new(),
        rows: rows.collect(),
    }
}

fn slos(evaluation: &Evaluation) -> Section {
    let mut rows: Vec<Row> = evaluation
        .slos
        .results
        .iter()
        .map(|result| {
            let slo = &result.slo;
            let observed = result.observed.map_or("no samples".into(), duration);
            let mark = if result.met { Mark::Good } else { Mark::Bad };
            let percentile = format!("P{}", number(slo.percentile * 100.0));
            let what = format!("{percentile} {}", slo.metric.name());
            let name = slo
                .name
                .as_ref()
                .map_or_else(|| what.clone(), |name| format!("{name} ({what})"));
            Row {
                mark,
                ..row(&name, vec![observed, format!("≤ {}", duration(slo.value))])
            }
        })
        .collect();
    if let Some(goodput) = evaluation.slos.goodput {
        rows.push(row("Goodput (requests that met all)", vec![share(goodput)]));
    }
    Section {
        title: "SLOs".into(),
        columns: Vec::new(),
        rows,
    }
}

fn accuracy(evaluation: &Evaluation) -> Section {
    let host = &evaluation.host;
    let delays = [
        ("Dispatch after the intended instant", &host.dispatch_lateness),
        ("Pick-up by a client after dispatch", &host.pickup_delay),
        ("Last byte sent after dispatch", &host.send_lateness),
    ];
    let mut rows: Vec<Row> = delays
        .into_iter()
        .filter_map(|(name, summary)| {
            let summary = summary.as_ref()?;
            Some(row(
                name,
                [summary.p50, summary.p99, summary.max].map(duration).to_vec(),
            ))
        })
        .collect();
    let delays_shown = rows.len();
    if let Some(merged) = host.merged_chunk_share {
        let many = merged > MANY_MERGED;
        let mark = if many { Mark::Warning } else { Mark::Plain };
        let note = many.then(|| "their gaps are known as 0; read the chunk times with care".to_owned());
        rows.push(Row {
            mark,
            note,
            ..row("Chunks that shared a read", vec![share(merged)])
        });
    }
    if let Some(lag) = &host.client_lag {
        let cells = [lag.p50, lag.p99, lag.max].map(duration).to_vec();
        rows.insert(
            rows.len().min(delays_shown),
            row("Read after the kernel had received", cells),
        );
    }
    for (name, held) in [
        ("Held back by the limit of sessions", &host.held.sessions),
        ("Held back by the limit in flight", &host.held.in_flight),
        ("Held back by the limit in prefill", &host.held.in_prefill),
    ] {
        rows.extend(
            held.as_ref()
                .map(|held| row(name, [held.p50, held.p99, held.max].map(duration).to_vec())),
        );
    }
    if host.connections_opened > 0 {
        let opened = say::counted(host.connections_opened, "connection");
        let inside = match host.ttfc_with_opening {
            0 => String::new(),
            count => format!("; within {count} times to first chunk"),
        };
        rows.push(Row {
            note: Some(format!("{opened} opened{inside}")),
            ..row(
                "Requests on a connection used before",
                vec![host.connection_reuse_share.map_or("-".into(), share)],
            )
        });
    }
    if host.starvations > 0 {
        let cells = vec![host.starvations.to_string(), duration(host.starved_seconds)];
        rows.push(Row {
            mark: Mark::Warning,
            ..row("Sessions that the plugin delivered late", cells)
        });
    }
    let columns = ["P50", "P99", "max"].map(String::from).to_vec();
    Section {
        title: "Accuracy of the host itself".into(),
        columns,
        rows,
    }
}
