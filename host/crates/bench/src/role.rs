//! What a child process of the bench is for, and being one.

use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};
use veeksha_machine::{pin_to, raise_open_files};

use crate::BenchError;
use crate::floor::Floor;
use crate::lines::{Lines, tell};
use crate::load::{Client, Cost, Load, Meter, Pace, drive_closed, drive_open};
use crate::server::{Server, Told};

/// What a child process is for; told on its standard input, as its first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// To serve, on this core if one is given.
    Serve { core: Option<usize> },
    /// To drive a load and tell what it cost.
    Drive {
        address: SocketAddr,
        client: Which,
        load: Load,
        tokens: u32,
        begin: Begin,
    },
}

/// Which client drives a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Which {
    /// The transport of a run.
    Transport,
    /// The least that a client can cost.
    Floor,
}

/// How the streams of a load begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Begin {
    /// All at once; each begins anew when it has ended.
    AtOnce,
    /// One after another, so many nanoseconds apart, and each once.
    Apart(u64),
}

/// Is a child process of [`crate::run`]: reads what it is for from `commands`, one line of JSON, and answers on `answers`. Returns when
/// `commands` end.
///
/// # Errors
/// Any [`BenchError`]; it has been told on `answers`, too, if that was possible.
pub fn serve(commands: impl AsFd, mut answers: impl Write) -> Result<(), BenchError> {
    let mut lines = Lines::of(commands);
    let Some(line) = lines.next()? else {
        return Ok(());
    };
    let role = serde_json::from_str(&line).map_err(|error| BenchError::Child {
        role: "an unknown purpose",
        what: format!("was told `{line}`: {error}"),
    })?;
    // A limit that stays as it is shows where it is met.
    let _ = raise_open_files();
    match role {
        Role::Serve { core } => {
            if let Some(core) = core {
                // Serving from any core is worse, and not wrong.
                let _ = pin_to(&[core]);
            }
            Server::start(lines, answers)?.run()
        }
        Role::Drive {
            address,
            client,
            load,
            tokens,
            begin,
        } => {
            let cost = match client {
                Which::Floor => Floor::connect(address, load.streams, tokens)
                    .and_then(|mut floor| floor.run(load.replies)),
                Which::Transport => drive(address, load, tokens, begin),
            };
            let told = match cost {
                Ok(cost) => Told::Load(cost),
                Err(error) => Told::Failed(error.to_string()),
            };
            tell(&mut answers, &told)?;
            while lines.next()?.is_some() {}
            Ok(())
        }
    }
}

fn drive(address: SocketAddr, load: Load, tokens: u32, begin: Begin) -> Result<Cost, BenchError> {
    let client = Client::start(address, tokens)?;
    match begin {
        Begin::AtOnce => drive_closed(&client, load),
        Begin::Apart(interval) => {
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
    use crate::played::{Played, server};
    use crate::server::{Plan, Writes};

    fn drive(address: SocketAddr, client: Which, begin: Begin) -> Cost {
        let load = Load {
            streams: 4,
            replies: 12,
        };
        let mut child = Played::start(&Role::Drive {
            address,
            client,
            load,
            tokens: 9,
            begin,
        });
        let told = child.told();
        child.end().expect("an end");
        match told {
            Told::Load(cost) => cost,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_clients_see_what_the_server_sent() {
        let plan = Plan::busy(9, Writes::EachToken);
        let (mut server, address) = server(plan);
        for (client, begin) in [
            (Which::Floor, Begin::AtOnce),
            (Which::Transport, Begin::AtOnce),
            (Which::Transport, Begin::Apart(1_000_000)),
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
            if begin == Begin::Apart(1_000_000) {
                assert!(cost.wall >= 11_000_000, "{}", cost.wall);
            }
        }
        let counts = server.counts();
        assert_eq!((counts.replies, counts.broken), (36, 0));
        server.end().expect("an end");
    }

    #[test]
    fn a_load_without_a_server_fails_in_words() {
        let nowhere = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a port that is free again");
        let cost = drive(nowhere, Which::Transport, Begin::AtOnce);
        assert_eq!((cost.replies, cost.failed), (0, 12));
        let error = cost.checked(11).expect_err("failures").to_string();
        assert!(error.starts_with("12 of 12 requests failed, first: "), "{error}");
    }

    #[test]
    fn a_role_that_is_none_is_refused_and_none_at_all_is_an_end() {
        let (mut commands, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
        commands.write_all(b"{\"sing\":{}}\n").expect("written");
        let error = serve(theirs, Vec::new()).expect_err("no role").to_string();
        assert!(error.contains("was told `{\"sing\":{}}`"), "{error}");
        let (commands, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
        drop(commands);
        serve(theirs, Vec::new()).expect("an end");
    }
}
