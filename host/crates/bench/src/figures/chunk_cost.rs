//! P1 and P2: what a chunk costs in processor time, beside the floor, in the same process, by turns.

use super::Rows;
use super::cores::Cores;
use crate::child::Serving;
use crate::floor::Floor;
use crate::load::{Client, Cost, Load, drive_closed};
use crate::report::Row;
use crate::server::{Plan, Writes};
use crate::{BenchError, BenchOptions, Figure};

/// Streams at the same time.
const STREAMS: u32 = 64;

/// Tokens of an answer.
const TOKENS: u32 = 64;

/// P1: each token in a write of its own, the streams in turn.
pub(super) fn each_token(options: &BenchOptions) -> Rows {
    let measured = measure(options, Writes::EachToken, 1_500)?;
    let mut rows = vec![
        measured
            .row(Figure::P1, "CPU per chunk, 64 busy streams, one write per token")
            .at_most(3.2)
            .times_floor(1.3),
    ];
    rows.extend(measured.client_row(Figure::P1));
    Ok(rows)
}

/// P2: each answer in one write.
pub(super) fn whole_answers(options: &BenchOptions) -> Rows {
    let measured = measure(options, Writes::Whole, 6_000)?;
    let rate = |costs: &[Cost]| -> Vec<f64> { costs.iter().filter_map(Cost::events_per_second).collect() };
    let mut rows = vec![
        measured
            .row(Figure::P2, "CPU per chunk, 64 busy streams, whole answers")
            .at_most(0.5),
    ];
    rows.extend(measured.client_row(Figure::P2));
    rows.push(
        Row::of_repeats(Figure::P2, "chunks per second", "1/s", &rate(&measured.ours))
            .floor(median(&rate(&measured.floor)))
            .at_least(1e6)
            .note("the server and this machine bound it, too"),
    );
    Ok(rows)
}

struct Measured {
    ours: Vec<Cost>,
    floor: Vec<Cost>,
    cores: Cores,
}

impl Measured {
    fn row(&self, figure: Figure, what: &str) -> Row {
        let each = |costs: &[Cost]| -> Vec<f64> { costs.iter().filter_map(Cost::micros_per_event).collect() };
        let reads: Vec<f64> = self
            .floor
            .iter()
            .filter_map(|cost| Some(cost.events as f64 / cost.reads? as f64))
            .collect();
        let merged: Vec<f64> = self
            .ours
            .iter()
            .filter_map(|cost| Some(100.0 * cost.merged? as f64 / cost.events as f64))
            .collect();
        Row::of_repeats(figure, what, "µs", &each(&self.ours))
            .floor(median(&each(&self.floor)))
            .note(format!(
                "{}; the whole process, decoding included; {:.0} % of our chunks shared a read, the floor had {:.1} to a read",
                self.cores.words(),
                median(&merged).unwrap_or(0.0),
                median(&reads).unwrap_or(0.0)
            ))
    }

    /// The client thread alone: what bounds how much one core receives.
    fn client_row(&self, figure: Figure) -> Option<Row> {
        let each: Vec<f64> = self
            .ours
            .iter()
            .filter_map(Cost::client_micros_per_event)
            .collect();
        (!each.is_empty()).then(|| Row::of_repeats(figure, "of that, the client thread", "µs", &each))
    }
}

fn measure(options: &BenchOptions, writes: Writes, replies: u64) -> Result<Measured, BenchError> {
    let cores = Cores::choose();
    let plan = Plan::busy(TOKENS, writes);
    let serving = Serving::start(&options.exe, cores.server, plan)?;
    let address = serving.address;
    let load = Load {
        streams: STREAMS,
        replies,
    };
    let warm = Load {
        replies: u64::from(STREAMS),
        ..load
    };
    let (ours, floor) = cores.on_client(move || {
        let client = Client::start(address, TOKENS)?;
        let mut floor = Floor::connect(address, STREAMS, TOKENS)?;
        drive_closed(&client, warm)?.checked(plan.events())?;
        floor.run(warm.replies)?.checked(plan.events())?;
        let (mut ours, mut floors) = (Vec::new(), Vec::new());
        for _ in 0..options.repeats {
            ours.push(drive_closed(&client, load)?.checked(plan.events())?);
            floors.push(floor.run(load.replies)?.checked(plan.events())?);
        }
        Ok((ours, floors))
    })?;
    Ok(Measured { ours, floor, cores })
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    veeksha_stats::percentile(&sorted, 0.5)
}
