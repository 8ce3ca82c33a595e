//! Tasks of a child process of the bench.

use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};
use veeksha_machine::{pin_to, raise_open_files};

use crate::baseline::Baseline;
use crate::error::BenchError;
use crate::lines::{LineReader, write_line};
use crate::load::{Cost, Meter, Pace, StreamLoad, TransportClient, drive_closed, drive_open};
use crate::server::{ChildMessage, EventLoop};

/// The argument with which [`BenchOptions::exe`](crate::BenchOptions::exe) is started as a child: a
/// hidden command that calls [`serve`] with standard input and output.
pub const CHILD_COMMAND: &str = "bench-server";

/// The task of a child process: the first line of its standard input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChildTask {
    /// Run the bench server, pinned to this core if given.
    Serve { core: Option<usize> },
    /// Drive a load and report its cost.
    Drive {
        address: SocketAddr,
        client: LoadClient,
        load: StreamLoad,
        tokens: u32,
        begin: StartMode,
    },
}

/// The client that drives a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LoadClient {
    /// The transport of a run.
    Transport,
    /// The baseline client.
    Baseline,
}

/// Start of the streams of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StartMode {
    /// All at once; each starts its next response when the previous one has ended.
    AtOnce,
    /// One after another, this many nanoseconds apart, one response each.
    Staggered(u64),
}

/// Runs as a child process of [`crate::run`]: reads its task from `commands`, one line of JSON, and
/// writes messages to `messages`. Returns at the end of `commands`.
///
/// # Errors
/// Any [`BenchError`]; it has also been written to `messages` if that was possible.
pub fn serve(commands: impl AsFd, mut answers: impl Write) -> Result<(), BenchError> {
    let mut lines = LineReader::of(commands);
    let Some(line) = lines.next()? else {
        return Ok(());
    };
    let task = serde_json::from_str(&line).map_err(|error| BenchError::Child {
        task: "an unknown task",
        what: format!("received `{line}`: {error}"),
    })?;
    // An unchanged limit is reported where it applies.
    let _ = raise_open_files();
    match task {
        ChildTask::Serve { core } => {
            if let Some(core) = core {
                // Running on any core is less precise, not wrong.
                let _ = pin_to(&[core]);
            }
            EventLoop::start(lines, answers)?.run()
        }
        ChildTask::Drive {
            address,
            client,
            load,
            tokens,
            begin,
        } => {
            let cost = match client {
                LoadClient::Baseline => Baseline::connect(address, load.streams, tokens)
                    .and_then(|mut baseline| baseline.run(load.replies)),
                LoadClient::Transport => drive(address, load, tokens, begin),
            };
            let message = match cost {
                Ok(cost) => ChildMessage::Load(cost),
                Err(error) => ChildMessage::Failed(error.to_string()),
            };
            write_line(&mut answers, &message)?;
            while lines.next()?.is_some() {}
            Ok(())
        }
    }
}

fn drive(address: SocketAddr, load: StreamLoad, tokens: u32, begin: StartMode) -> Result<Cost, BenchError> {
    let client = TransportClient::start(address, tokens)?;
    match begin {
        StartMode::AtOnce => drive_closed(&client, load),
        StartMode::Staggered(interval) => {
            let mut cost = Cost {
                merged: Some(0),
                ..Cost::default()
            };
            let meter = Meter::start();
            let pace = Pace {
                interval,
                requests: load.replies,
            };
            drive_open(&client, pace, |outcome| cost.count(&outcome))?;
            meter.read(&mut cost);
            Ok(cost)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_process_child::{InProcessChild, server};
    use crate::server::{ResponsePlan, WriteMode};

    fn drive(address: SocketAddr, client: LoadClient, begin: StartMode) -> Cost {
        let load = StreamLoad {
            streams: 4,
            replies: 12,
        };
        let mut child = InProcessChild::start(&ChildTask::Drive {
            address,
            client,
            load,
            tokens: 9,
            begin,
        });
        let message = child.receive_message();
        child.end().expect("an end");
        match message {
            ChildMessage::Load(cost) => cost,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_clients_receive_all_events() {
        let plan = ResponsePlan::busy(9, WriteMode::EachToken);
        let (mut server, address) = server(plan);
        for (client, begin) in [
            (LoadClient::Baseline, StartMode::AtOnce),
            (LoadClient::Transport, StartMode::AtOnce),
            (LoadClient::Transport, StartMode::Staggered(1_000_000)),
        ] {
            let cost = drive(address, client, begin)
                .checked(plan.events())
                .expect("no failure");
            assert_eq!(
                (cost.replies, cost.events, cost.tokens),
                (12, 12 * 11, 12 * 9),
                "{client:?} {begin:?}"
            );
            assert!(cost.cpu > 0 && cost.wall > 0 && cost.peak_resident.is_some());
            if begin == StartMode::Staggered(1_000_000) {
                assert!(cost.wall >= 11_000_000, "{}", cost.wall);
            }
        }
        let counts = server.counts();
        assert_eq!((counts.replies, counts.broken), (36, 0));
        server.end().expect("an end");
    }

    #[test]
    fn load_without_a_server_reports_failures() {
        let nowhere = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a port that is free again");
        let cost = drive(nowhere, LoadClient::Transport, StartMode::AtOnce);
        assert_eq!((cost.replies, cost.failed), (0, 12));
        let error = cost.checked(11).expect_err("failures").to_string();
        assert!(error.starts_with("12 of 12 requests failed, first: "), "{error}");
    }

    #[test]
    fn rejects_unknown_tasks_and_accepts_end_of_input() {
        let (mut commands, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
        commands.write_all(b"{\"sing\":{}}\n").expect("written");
        let error = serve(theirs, Vec::new()).expect_err("no task").to_string();
        assert!(error.contains("received `{\"sing\":{}}`"), "{error}");
        let (commands, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
        drop(commands);
        serve(theirs, Vec::new()).expect("an end");
    }
}
