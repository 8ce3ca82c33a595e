//! The requests of a conversation in the order in which they depend on one another: a chain, from
//! which subagents branch and to which they come back.

use veeksha_plugin::Error;
use veeksha_plugin::flavor::Row;

use crate::row::{Cells, Item};

/// Seconds by which sums of recorded times may miss one another.
const ABOUT: f64 = 1e-6;
/// The same where a capture has its times in whole seconds.
const ROUNDED: f64 = 1.0;

/// A request in its place.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) item: &'a Item,
    /// The subagent that sends it.
    pub(crate) agent: Option<&'a Item>,
    /// Whose hash ids it has: 0 the conversation's; else those of the n-th subagent.
    pub(crate) space: u32,
    /// Seconds from the start of the conversation.
    pub(crate) at: f64,
    /// The calls that it waits for, by their numbers; each precedes it.
    pub(crate) parents: Vec<u32>,
    /// Seconds that it waits after the last of them; a root, after the conversation began.
    pub(crate) wait: f64,
}

/// Every request of the row, parents before children.
pub(crate) fn calls(row: &Row<Cells>) -> Result<Vec<Call<'_>>, Error> {
    let mut walk = Walk {
        row,
        calls: Vec::with_capacity(row.cells.requests.len()),
        spaces: 0,
        about: if in_whole_seconds(&row.cells.requests) {
            ROUNDED
        } else {
            ABOUT
        },
    };
    let main = Chain {
        begin: 0.0,
        agent: None,
        space: 0,
        last: None,
    };
    walk.chain(&row.cells.requests, main)?;
    if walk.calls.is_empty() {
        Err(row.error("`requests` has none"))
    } else {
        Ok(walk.calls)
    }
}

struct Walk<'a> {
    row: &'a Row<Cells>,
    calls: Vec<Call<'a>>,
    spaces: u32,
    about: f64,
}

/// Requests that follow one another.
struct Chain<'a> {
    /// The origin of its times.
    begin: f64,
    agent: Option<&'a Item>,
    space: u32,
    /// The call after which the next one is sent; at first that which started the chain.
    last: Option<u32>,
}

impl<'a> Walk<'a> {
    /// Adds a chain and gives its last call.
    fn chain(&mut self, items: &'a [Item], mut chain: Chain<'a>) -> Result<Option<u32>, Error> {
        let started = chain.last;
        // The last calls of the subagents that are still at work.
        let mut working: Vec<u32> = Vec::new();
        for item in items {
            match item.kind.as_deref() {
                Some("subagent") => working.extend(self.subagent(item, &chain)?),
                None | Some("s" | "n") => {
                    let at = chain.begin + item.t;
                    let mut parents = Vec::from_iter(chain.last);
                    // Those that were done when it was sent come back to it; others go on next to
                    // it.
                    working.retain(|last| {
                        let done = self.end(*last) <= at + self.about && self.calls[*last as usize].at <= at;
                        if done {
                            parents.push(*last);
                        }
                        !done
                    });
                    let follows = chain.last != started && parents.len() == 1;
                    let wait = match item.think_time.filter(|_| follows) {
                        Some(think_time) => think_time,
                        None => at - parents.iter().map(|parent| self.end(*parent)).fold(0.0, f64::max),
                    };
                    chain.last = Some(self.calls.len() as u32);
                    self.calls.push(Call {
                        item,
                        agent: chain.agent,
                        space: chain.space,
                        at,
                        parents,
                        wait: wait.max(0.0),
                    });
                }
                Some(other) => {
                    let message =
                        format!("a request's `type` is `{other}`; known are `s`, `n` and `subagent`");
                    return Err(self.row.error(message));
                }
            }
        }
        Ok(chain.last.filter(|_| chain.last != started))
    }

    /// Adds what a subagent sent, from the chain's last call on.
    fn subagent(&mut self, agent: &'a Item, around: &Chain<'a>) -> Result<Option<u32>, Error> {
        self.spaces += 1;
        // The format counts from the subagent's start; some captures count from the conversation's.
        let from_start = agent
            .requests
            .first()
            .is_none_or(|first| first.t + ABOUT < agent.t);
        let chain = Chain {
            begin: if from_start {
                around.begin + agent.t
            } else {
                around.begin
            },
            agent: Some(agent),
            space: self.spaces,
            last: around.last,
        };
        self.chain(&agent.requests, chain)
    }

    /// When a call was answered.
    fn end(&self, call: u32) -> f64 {
        let call = &self.calls[call as usize];
        call.item.end(call.at)
    }
}

/// True if all requests have their times in whole seconds, those of subagents too; the subagents
/// themselves need not.
fn in_whole_seconds(items: &[Item]) -> bool {
    items.iter().all(|item| {
        if item.requests.is_empty() {
            item.t.fract() == 0.0
        } else {
            in_whole_seconds(&item.requests)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::row;

    /// (parents, seconds since the start, wait, space), call by call.
    type Placed = (Vec<u32>, f64, f64, u32);

    fn placed(requests: &str) -> Vec<Placed> {
        let row = row(&format!(r#"{{"requests": [{requests}]}}"#));
        let calls = calls(&row).unwrap();
        calls
            .into_iter()
            .map(|call| (call.parents, call.at, call.wait, call.space))
            .collect()
    }

    #[test]
    fn a_conversation_is_a_chain_with_think_times() {
        let chain = placed(
            r#"{"t": 1.5, "type": "s", "api_time": 2.0, "think_time": 0.25},
               {"t": 10.0, "type": "n", "api_time": 3.0, "think_time": 4.0},
               {"t": 20.0, "type": "s"},
               {"t": 21.0, "api_time": 9.0},
               {"t": 22.0, "think_time": -8.0}"#,
        );
        let expected: [Placed; 5] = [
            // The first begins with the conversation, whatever came before.
            (vec![], 1.5, 1.5, 0),
            (vec![0], 10.0, 4.0, 0),
            // No think time: the gap after the answer, 10 + 3.
            (vec![1], 20.0, 7.0, 0),
            // No api time: the gap after the request.
            (vec![2], 21.0, 1.0, 0),
            (vec![3], 22.0, 0.0, 0),
        ];
        assert_eq!(chain, expected);
    }

    /// Two subagents start after the first request; one is done before the second request, the
    /// other before the third.
    #[test]
    fn subagents_branch_off_and_come_back_when_they_are_done() {
        let agents = placed(
            r#"{"t": 0, "api_time": 2},
               {"t": 3, "type": "subagent", "requests": [
                   {"t": 0, "api_time": 1, "think_time": 9}, {"t": 2, "api_time": 1, "think_time": 0.5}]},
               {"t": 4, "type": "subagent", "requests": [{"t": 0.5, "api_time": 10}]},
               {"t": 7, "api_time": 1, "think_time": 5},
               {"t": 20, "think_time": 12}"#,
        );
        let expected: [Placed; 5] = [
            (vec![], 0.0, 0.0, 0),
            // Starts 1 s after the answer at 2.
            (vec![0], 3.0, 1.0, 1),
            (vec![1], 5.0, 0.5, 1),
            (vec![0], 4.5, 2.5, 2),
            // Joined by the first subagent, done at 6: its think time of 5 s after the answer at 2
            // counts from there.
            (vec![0, 2], 7.0, 1.0, 0),
        ];
        assert_eq!(agents[..5], expected);
        // Joined by the second, done at 14.5.
        assert_eq!(agents[5], (vec![4, 3], 20.0, 5.5, 0));
    }

    /// The subagent was done at 7.9 s by rounded times: a request of second 7 may have come after
    /// it, one of second 6 may not.
    #[test]
    fn whole_seconds_are_taken_as_rounded() {
        let joins = |at: f64, begin: f64| {
            let agents = placed(&format!(
                r#"{{"t": 0, "api_time": 2}},
                   {{"t": 3.2, "type": "subagent", "requests": [{{"t": {begin}, "api_time": 4.7}}]}},
                   {{"t": {at}}}"#
            ));
            agents[2].0 == [0, 1]
        };
        assert!(joins(7.0, 0.0));
        assert!(!joins(6.0, 0.0));
        assert!(!joins(7.0, 0.001), "these are not whole seconds");
    }

    #[test]
    fn times_of_a_subagent_may_count_from_the_conversation() {
        let absolute = placed(
            r#"{"t": 0, "api_time": 2},
               {"t": 3, "type": "subagent", "requests": [{"t": 3.5, "api_time": 1}, {"t": 6, "api_time": 1}]}"#,
        );
        assert_eq!(absolute[1], (vec![0], 3.5, 1.5, 1));
        assert_eq!(absolute[2], (vec![1], 6.0, 1.5, 1));
    }

    #[test]
    fn subagents_may_come_first_be_empty_or_start_others() {
        let odd = placed(
            r#"{"t": 1, "type": "subagent", "requests": [
                   {"t": 0, "api_time": 1},
                   {"t": 2, "type": "subagent", "requests": [{"t": 0, "api_time": 1}]},
                   {"t": 4, "api_time": 1}]},
               {"t": 2, "type": "subagent", "requests": []},
               {"t": 9}"#,
        );
        let expected: [Placed; 4] = [
            (vec![], 1.0, 1.0, 1),
            (vec![0], 3.0, 1.0, 2),
            (vec![0, 1], 5.0, 1.0, 1),
            // Nothing before it but the subagent, which was done at 6.
            (vec![2], 9.0, 3.0, 0),
        ];
        assert_eq!(odd, expected);
    }

    #[test]
    fn refuses_items_that_are_not_requests() {
        let refused = |requests: &str| {
            let row = row(&format!(r#"{{"requests": [{requests}]}}"#));
            calls(&row).unwrap_err().message
        };
        assert_eq!(
            refused(r#"{"type": "x"}"#),
            "row 1: a request's `type` is `x`; known are `s`, `n` and `subagent`"
        );
        assert_eq!(refused(""), "row 1: `requests` has none");
        assert_eq!(refused(r#"{"type": "subagent"}"#), "row 1: `requests` has none");
    }
}
