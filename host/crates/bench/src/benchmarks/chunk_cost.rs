//! P1 and P2: processor time per chunk. Client and baseline take turns in the same process.

use super::bench_result::BenchResult;
use super::cores::Cores;
use crate::baseline::Baseline;
use crate::child::Serving;
use crate::error::BenchError;
use crate::load::{Cost, StreamLoad, TransportClient, drive_closed};
use crate::options::{BenchOptions, Benchmark};
use crate::report::Measurement;
use crate::server::{ResponsePlan, WriteMode};

/// Concurrent streams.
const STREAMS: u32 = 64;

/// Tokens per response.
const TOKENS: u32 = 64;

/// P1: one write per token, the streams in turn.
pub(super) fn each_token(options: &BenchOptions) -> BenchResult {
    let measured = measure(options, WriteMode::EachToken, 1_500)?;
    let mut rows = vec![
        measured
            .row(
                Benchmark::P1,
                "CPU per chunk, 64 busy streams, one write per token",
            )
            .at_most(3.2)
            .times_baseline(1.3),
    ];
    rows.extend(measured.client_row(Benchmark::P1));
    Ok(rows)
}

/// P2: one write per response.
pub(super) fn whole_answers(options: &BenchOptions) -> BenchResult {
    let measured = measure(options, WriteMode::Whole, 6_000)?;
    let rate = |costs: &[Cost]| -> Vec<f64> { costs.iter().filter_map(Cost::events_per_second).collect() };
    let mut rows = vec![
        measured
            .row(Benchmark::P2, "CPU per chunk, 64 busy streams, whole responses")
            .at_most(0.5),
    ];
    rows.extend(measured.client_row(Benchmark::P2));
    rows.push(
        Measurement::of_repeats(Benchmark::P2, "chunks per second", "1/s", &rate(&measured.ours))
            .baseline(median(&rate(&measured.baseline)))
            .at_least(1e6)
            .note("also bounded by the server and this machine"),
    );
    Ok(rows)
}

struct Measured {
    ours: Vec<Cost>,
    baseline: Vec<Cost>,
    cores: Cores,
}

impl Measured {
    fn row(&self, benchmark: Benchmark, what: &str) -> Measurement {
        let each = |costs: &[Cost]| -> Vec<f64> { costs.iter().filter_map(Cost::micros_per_event).collect() };
        let reads: Vec<f64> = self
            .baseline
            .iter()
            .filter_map(|cost| Some(cost.events as f64 / cost.reads? as f64))
            .collect();
        let merged: Vec<f64> = self
            .ours
            .iter()
            .filter_map(|cost| Some(100.0 * cost.merged? as f64 / cost.events as f64))
            .collect();
        Measurement::of_repeats(benchmark, what, "µs", &each(&self.ours))
            .baseline(median(&each(&self.baseline)))
            .note(format!(
                "{}; the whole process, decoding included; {:.0} % of our chunks shared a read, the baseline read {:.1} at a time",
                self.cores.words(),
                median(&merged).unwrap_or(0.0),
                median(&reads).unwrap_or(0.0)
            ))
    }

    /// Processor time of the client thread alone, which bounds what one core can receive.
    fn client_row(&self, benchmark: Benchmark) -> Option<Measurement> {
        let each: Vec<f64> = self
            .ours
            .iter()
            .filter_map(Cost::client_micros_per_event)
            .collect();
        (!each.is_empty())
            .then(|| Measurement::of_repeats(benchmark, "of that, the client thread", "µs", &each))
    }
}

fn measure(options: &BenchOptions, writes: WriteMode, replies: u64) -> Result<Measured, BenchError> {
    let cores = Cores::choose();
    let plan = ResponsePlan::busy(TOKENS, writes);
    let serving = Serving::start(&options.exe, cores.server, plan)?;
    let address = serving.address;
    let load = StreamLoad {
        streams: STREAMS,
        replies,
    };
    let warm = StreamLoad {
        replies: u64::from(STREAMS),
        ..load
    };
    let (ours, baseline) = cores.on_client(move || {
        let client = TransportClient::start(address, TOKENS)?;
        let mut baseline = Baseline::connect(address, STREAMS, TOKENS)?;
        drive_closed(&client, warm)?.checked(plan.events())?;
        baseline.run(warm.replies)?.checked(plan.events())?;
        let (mut ours, mut baselines) = (Vec::new(), Vec::new());
        for _ in 0..options.repeats {
            ours.push(drive_closed(&client, load)?.checked(plan.events())?);
            baselines.push(baseline.run(load.replies)?.checked(plan.events())?);
        }
        Ok((ours, baselines))
    })?;
    Ok(Measured {
        ours,
        baseline,
        cores,
    })
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    veeksha_stats::percentile(&sorted, 0.5)
}
