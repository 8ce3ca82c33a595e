//! The rows of a conversation into a session of turns.

use std::time::Duration;

use veeksha_plugin::flavor::{Group, HistoryMode, Layout, Replay, Row, TimeUnit, Trace, TraceFlavor, Turn};
use veeksha_plugin::{Error, Plugin, Request, Session, seed_of, synthetic};

use crate::config::{Config, History, ThinkTime};
use crate::row::{Cells, Counts, columns};

/// An open flavor.
pub struct BurstGpt {
    config: Config,
}

impl Plugin for BurstGpt {
    type Config = Config;
    const NAME: &'static str = "burstgpt";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str =
        "BurstGPT's requests to ChatGPT and GPT-4: conversations and single calls, without text";

    fn config_schema() -> String {
        include_str!("../schema.json").into()
    }
}

impl TraceFlavor for BurstGpt {
    type Row = Cells;

    fn open(config: Config) -> Result<Self, Error> {
        if config.failed_output_tokens == Some(0) {
            return Err(Error::config(
                "/failed_output_tokens",
                "an answer has at least one token",
            ));
        }
        Ok(BurstGpt { config })
    }

    fn layout(&self) -> Layout {
        Layout::new(columns())
            .grouped_by("Session ID")
            .arrivals("Timestamp", TimeUnit::Seconds)
    }

    fn session(&self, _: &Trace<Cells>, epoch: u64, group: &Group<Cells>) -> Result<Replay, Error> {
        let mut requests: Vec<Request> = Vec::with_capacity(group.rows.len());
        let mut turns = Vec::with_capacity(group.rows.len());
        // The turn before, and the tokens of the conversation once it is answered.
        let mut before: Option<(Counts, u64)> = None;
        for row in &group.rows {
            let counts = Counts::of(row)?;
            let Some(output) = self.output(&counts) else {
                continue;
            };
            if counts.request == 0 {
                return Err(row.error("`Request tokens` is 0: there is nothing to send"));
            }
            let node = requests.len() as u32;
            let text = |tokens| synthetic(seed_of("burstgpt row", &[epoch, row.number]), tokens);
            let new = before.and_then(|(_, so_far)| self.new_tokens(so_far, &counts));
            let mut request = Request::new(node)
                .user(text(new.unwrap_or(counts.request)))
                .output_exactly(output);
            if let Some((before, _)) = before {
                request = request.wait(self.wait(&before, &counts));
                request = match new {
                    Some(_) => request.history(node - 1),
                    None => request.after(node - 1),
                };
            }
            requests.push(labelled(request, row));
            turns.push(Turn {
                history: match new {
                    Some(_) => HistoryMode::Live,
                    None => HistoryMode::Fresh,
                },
                at: counts.at,
                latency: counts.elapsed.map(|elapsed| elapsed.as_nanos() as u64),
                prompt_tokens: Some(counts.request),
                output_tokens: Some(counts.response),
                ..Turn::new(node)
            });
            before = Some((counts, u64::from(counts.request) + u64::from(output)));
        }
        if requests.is_empty() {
            return Err(only_failures(group));
        }
        let mut session = Session::new(requests);
        session.arrives_at = turns[0].at;
        if !group.key.is_empty() {
            session = session.label("session_id", &group.key);
        }
        Ok(Replay::new(session, turns))
    }
}

impl BurstGpt {
    /// Tokens to ask for; none: a failed request that is left out.
    fn output(&self, counts: &Counts) -> Option<u32> {
        match counts.response {
            0 => self.config.failed_output_tokens,
            tokens => Some(tokens),
        }
    }

    /// The tokens that a turn sends beyond the conversation so far; `None` where it does not
    /// continue it.
    fn new_tokens(&self, so_far: u64, counts: &Counts) -> Option<u32> {
        match self.config.history {
            History::Live => {
                let new = u64::from(counts.request).checked_sub(so_far)?;
                u32::try_from(new).ok().filter(|new| *new > 0)
            }
            History::Fresh => None,
        }
    }

    fn wait(&self, before: &Counts, counts: &Counts) -> Duration {
        match self.config.think_time {
            ThinkTime::Recorded => counts.think_time(before).unwrap_or_default(),
            ThinkTime::None => Duration::ZERO,
        }
    }
}

fn labelled(mut request: Request, row: &Row<Cells>) -> Request {
    let Cells { model, log_type, .. } = &row.cells;
    for (name, value) in [("model", model), ("log_type", log_type)] {
        if let Some(value) = value {
            request = request.label(name, value);
        }
    }
    request
}

fn only_failures(group: &Group<Cells>) -> Error {
    let Some(row) = group.rows.first() else {
        return Error::new("row", "a session has at least one row");
    };
    row.error("`Response tokens` is 0: the request failed, and its session has no other")
        .hint("set `on_bad_row` to `skip`, or `failed_output_tokens` of the flavor to send it; or take the file `without_fails`")
}

#[cfg(test)]
mod tests {
    use veeksha_plugin::flavor;

    use super::*;

    fn open(config: &str) -> BurstGpt {
        BurstGpt::open(veeksha_plugin::config::from_json(config).unwrap()).unwrap()
    }

    /// (timestamp in seconds, elapsed time, request tokens, response tokens), numbered from 1.
    type Log = (u64, Option<f64>, u64, u64);

    fn session(flavor: &BurstGpt, epoch: u64, key: &str, logs: &[Log]) -> Result<Replay, Error> {
        let trace = Trace::new(9, 9, "{}");
        let rows = (1..).zip(logs).map(|(number, (at, elapsed, request, response))| {
            let row = serde_json::json!({
                "Timestamp": at, "Session ID": key, "Elapsed time": elapsed, "Model": "GPT-4",
                "Request tokens": request, "Response tokens": response, "Log Type": "Conversation log",
            });
            (number, Some(at * 1_000_000_000), row.to_string())
        });
        flavor.session(&trace, epoch, &flavor::group(0, key, rows)?)
    }

    fn expected(node: u32, number: u64, tokens: u32, output: u32) -> Request {
        Request::new(node)
            .user(synthetic(seed_of("burstgpt row", &[0, number]), tokens))
            .output_exactly(output)
            .label("model", "GPT-4")
            .label("log_type", "Conversation log")
    }

    /// Turn 2 has 400 tokens, of which 100 + 200 are turn 1 and its answer. Turn 3 has fewer than
    /// the conversation so far: it was cut, or restarted.
    const CONVERSATION: [Log; 3] = [
        (10, Some(8.0), 100, 200),
        (30, Some(5.5), 400, 50),
        (40, Some(1.0), 90, 10),
    ];

    #[test]
    fn turns_send_what_is_new_and_continue_the_real_answers() {
        let replay = session(&open("{}"), 0, "77", &CONVERSATION).unwrap();
        let requests = [
            expected(0, 1, 100, 200),
            expected(1, 2, 100, 50).history(0).wait(Duration::from_secs(12)),
            expected(2, 3, 90, 10).after(1).wait(Duration::from_millis(4500)),
        ];
        assert_eq!(replay.session.requests, requests);
        assert_eq!(replay.session.arrives_at, Some(10_000_000_000));
        assert_eq!(
            replay.session.labels,
            [("session_id".to_owned(), "77".to_owned())]
        );
        let turn = |node, history, at, latency, prompt, output| Turn {
            history,
            at: Some(at),
            latency: Some(latency),
            prompt_tokens: Some(prompt),
            output_tokens: Some(output),
            ..Turn::new(node)
        };
        let turns = [
            turn(0, HistoryMode::Fresh, 10_000_000_000, 8_000_000_000, 100, 200),
            turn(1, HistoryMode::Live, 30_000_000_000, 5_500_000_000, 400, 50),
            turn(2, HistoryMode::Fresh, 40_000_000_000, 1_000_000_000, 90, 10),
        ];
        assert_eq!(replay.turns, turns);
    }

    /// The prompt that a server sees is as long as recorded, whichever way it comes about.
    #[test]
    fn the_lengths_of_prompts_are_those_of_the_trace() {
        for config in ["{}", r#"{"history": "fresh"}"#] {
            let replay = session(&open(config), 0, "1", &CONVERSATION).unwrap();
            let mut so_far: Vec<u64> = Vec::new();
            for (request, log) in replay.session.requests.iter().zip(&CONVERSATION) {
                let veeksha_plugin::Segment::Synthetic(text) = &request.messages[0].content[0] else {
                    panic!("only synthetic text is expected");
                };
                let before = request.history_parent.map_or(0, |parent| so_far[parent as usize]);
                assert_eq!(before + u64::from(text.tokens), log.2);
                so_far.push(log.2 + log.3);
            }
        }
    }

    #[test]
    fn a_turn_without_new_tokens_sends_its_whole_prompt() {
        let logs = [(0, None, 100, 200), (1, None, 300, 5)];
        let replay = session(&open("{}"), 0, "1", &logs).unwrap();
        assert_eq!(replay.session.requests[1], expected(1, 2, 300, 5).after(0));
    }

    #[test]
    fn think_times_are_recorded_gaps_where_known() {
        let waits = |config: &str, logs: &[Log]| -> Vec<u64> {
            let replay = session(&open(config), 0, "1", logs).unwrap();
            replay
                .session
                .requests
                .iter()
                .map(|r| r.wait_after_ready / 1_000_000)
                .collect()
        };
        let logs = [(10, Some(8.0), 1, 1), (15, None, 5, 1), (25, Some(1.0), 9, 1)];
        assert_eq!(
            waits("{}", &logs),
            [0, 0, 0],
            "sent before the answer; no elapsed time"
        );
        assert_eq!(waits("{}", &CONVERSATION), [0, 12_000, 4_500]);
        assert_eq!(waits(r#"{"think_time": "none"}"#, &CONVERSATION), [0, 0, 0]);
    }

    #[test]
    fn failed_requests_are_left_out_or_sent() {
        let logs = [(1, Some(2.0), 10, 5), (8, None, 0, 0), (20, None, 25, 3)];
        let replay = session(&open("{}"), 0, "1", &logs).unwrap();
        let left = [
            expected(0, 1, 10, 5),
            expected(1, 3, 10, 3).history(0).wait(Duration::from_secs(17)),
        ];
        assert_eq!(replay.session.requests, left);

        let failed = [(1, None, 10, 0)];
        let sent = session(&open(r#"{"failed_output_tokens": 7}"#), 0, "1", &failed).unwrap();
        assert_eq!(sent.session.requests, [expected(0, 1, 10, 7)]);
        assert_eq!(sent.turns[0].output_tokens, Some(0));

        // An answer that was not recorded is part of the conversation once it was asked for.
        let sent = session(
            &open(r#"{"failed_output_tokens": 7}"#),
            0,
            "1",
            &[(1, None, 10, 0), (2, None, 30, 1)],
        );
        assert_eq!(
            sent.unwrap().session.requests[1],
            expected(1, 2, 13, 1).history(0)
        );

        let error = session(&open("{}"), 0, "1", &failed).unwrap_err();
        assert_eq!(error.code, "row");
        assert_eq!(
            error.message,
            "row 1: `Response tokens` is 0: the request failed, and its session has no other"
        );
        assert!(error.hint.unwrap().contains("`on_bad_row`"));
    }

    /// A row without a session, as in the API log and in older releases.
    #[test]
    fn a_call_is_a_session_by_itself() {
        let row = r#"{"Timestamp": 5, "Request tokens": 472, "Response tokens": 18}"#;
        let group = flavor::group(4, "", [(5, Some(0), row.to_owned())]).unwrap();
        let replay = open("{}").session(&Trace::new(1, 1, row), 2, &group).unwrap();
        let text = synthetic(seed_of("burstgpt row", &[2, 5]), 472);
        assert_eq!(
            replay.session.requests,
            [Request::new(0).user(text).output_exactly(18)]
        );
        assert!(replay.session.labels.is_empty());
        assert_eq!(replay.turns[0].latency, None);
    }

    #[test]
    fn a_new_pass_has_new_text_of_the_same_shape() {
        let flavor = open("{}");
        let one = session(&flavor, 0, "1", &CONVERSATION).unwrap();
        let two = session(&flavor, 1, "1", &CONVERSATION).unwrap();
        assert_eq!(one, session(&flavor, 0, "1", &CONVERSATION).unwrap());
        assert_eq!(one.turns, two.turns);
        for (ours, theirs) in one.session.requests.iter().zip(&two.session.requests) {
            assert_ne!(ours.messages, theirs.messages);
            let messages = ours.messages.clone();
            assert_eq!(
                *ours,
                Request {
                    messages,
                    ..theirs.clone()
                }
            );
        }
    }

    #[test]
    fn refuses_impossible_rows_by_name() {
        let refused = |log: Log| session(&open("{}"), 0, "1", &[log]).unwrap_err().message;
        assert_eq!(
            refused((0, None, 0, 9)),
            "row 1: `Request tokens` is 0: there is nothing to send"
        );
        assert_eq!(
            refused((0, Some(-1.0), 3, 9)),
            "row 1: `Elapsed time` is -1, not a time from 0 seconds to 104 days"
        );
        let nothing = veeksha_plugin::config::from_json(r#"{"failed_output_tokens": 0}"#).unwrap();
        assert_eq!(
            BurstGpt::open(nothing).err().unwrap().path.as_deref(),
            Some("/failed_output_tokens")
        );
    }

    /// The example of the scenario: of c1 every turn continues the one before it, of c2 none; one
    /// call failed.
    #[test]
    fn the_example_has_the_sessions_of_its_scenario() {
        let mut lines = include_str!("../../../scenarios/traces/burstgpt.csv").lines();
        let header = lines.next().unwrap();
        let names =
            "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type";
        assert_eq!(header, names);
        let lines: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
        let of = |key: &str| -> Vec<Log> {
            let rows = lines.iter().filter(|cells| cells[1] == key);
            let number = |cell: &str| cell.parse().unwrap();
            rows.map(|cells| {
                (
                    number(cells[0]),
                    cells[2].parse().ok(),
                    number(cells[4]),
                    number(cells[5]),
                )
            })
            .collect()
        };
        let history = |logs: &[Log]| -> Vec<Option<u32>> {
            let replay = session(&open("{}"), 0, "1", logs).unwrap();
            replay
                .session
                .requests
                .iter()
                .map(|request| request.history_parent)
                .collect()
        };
        assert_eq!(history(&of("c1")), [None, Some(0), Some(1)]);
        assert_eq!(history(&of("c2")), [None, None]);
        let calls = of("")
            .into_iter()
            .map(|call| session(&open("{}"), 0, "", &[call]).is_ok());
        assert_eq!(calls.collect::<Vec<_>>(), [true, false, true]);
    }
}
