//! What the host decides of tool runs: the names of their random streams, and their results.

use std::collections::HashMap;

use veeksha_model::{NodeId, SUBAGENT_LABEL, Seed, Segment, Session, SessionId, TIMER};
use veeksha_stats::{RandomStream, mix64};

/// The tool runs of a session so far, by subagent: names each by its subagent and its position
/// there, so that another order of concurrent answers names the same runs.
#[derive(Clone, Debug, Default)]
pub struct ToolRunKeys {
    runs: HashMap<String, u32>,
}

impl ToolRunKeys {
    /// Sets the keys of the tool runs that a session or a step of it adds.
    pub fn assign(&mut self, added: &mut Session) {
        for run in added.tool_runs.iter_mut().filter(|run| run.class != TIMER) {
            let mut labels = run.labels.iter();
            let subagent = labels.find(|(name, _)| name == SUBAGENT_LABEL);
            let subagent = subagent.map_or("", |(_, place)| place.as_str());
            let position = match self.runs.get_mut(subagent) {
                Some(runs) => {
                    *runs += 1;
                    *runs
                }
                None => {
                    self.runs.insert(subagent.to_owned(), 0);
                    0
                }
            };
            let mut words = [0; 2];
            RandomStream::new(0, position.into(), subagent).fill(0, &mut words);
            run.key = u64::from(words[0]) << 32 | u64::from(words[1]);
        }
    }
}

/// Returns the text that a tool run returns: as many tokens as its result has, generated from the
/// session and the run's key.
pub fn tool_result_text(session: SessionId, key: u64, tokens: u32) -> Segment {
    if tokens == 0 {
        return Segment::Text(String::new());
    }
    // Any constant: seeds of a workload's own text are small numbers or hashes of other things.
    let seed = mix64(mix64(session.0 ^ 0x746f_6f6c_2072_756e) ^ key);
    Segment::Synthetic {
        seed: Seed::from(seed),
        tokens,
    }
}

/// Replaces the results of tool runs in the messages of a session's requests by text. `result`
/// gives the key of a run and the tokens of its result, if they are known.
pub fn resolve_tool_results(
    id: SessionId,
    session: &mut Session,
    result: impl Fn(NodeId) -> Option<(u64, u32)>,
) {
    let messages = session
        .requests
        .iter_mut()
        .flat_map(|request| &mut request.messages);
    for segment in messages.flat_map(|message| &mut message.content) {
        if let Segment::ToolResult(run) = *segment
            && let Some((key, tokens)) = result(run)
        {
            *segment = tool_result_text(id, key, tokens);
        }
    }
}

#[cfg(test)]
mod tests {
    use veeksha_model::ToolRun;

    use super::*;

    fn runs(of: &[(u32, &str)]) -> Session {
        let run = |(node, subagent): &(u32, &str)| ToolRun {
            node: NodeId(*node),
            class: "sandbox".into(),
            labels: vec![(SUBAGENT_LABEL.into(), (*subagent).into())],
            ..ToolRun::default()
        };
        Session {
            tool_runs: of.iter().map(run).collect(),
            ..Session::default()
        }
    }

    fn keys(steps: &[&[(u32, &str)]]) -> HashMap<u32, u64> {
        let mut assigned = ToolRunKeys::default();
        let step = |step: &&[(u32, &str)]| {
            let mut added = runs(step);
            assigned.assign(&mut added);
            added.tool_runs
        };
        let runs: Vec<ToolRun> = steps.iter().flat_map(step).collect();
        runs.iter().map(|run| (run.node.0, run.key)).collect()
    }

    #[test]
    fn keys_do_not_depend_on_the_order_of_concurrent_subagents() {
        let one = keys(&[&[(1, "1"), (2, "2")], &[(3, "1")], &[(4, "2")]]);
        let other = keys(&[&[(1, "1"), (2, "2")], &[(3, "2")], &[(4, "1")]]);
        assert_eq!(
            [one[&1], one[&2], one[&3], one[&4]],
            [other[&1], other[&2], other[&4], other[&3]]
        );
        let mut different: Vec<u64> = one.into_values().collect();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), 4);
    }

    #[test]
    fn timers_do_not_count() {
        let mut with_timer = runs(&[(1, ""), (2, "")]);
        with_timer.tool_runs[0].class = TIMER.into();
        ToolRunKeys::default().assign(&mut with_timer);
        assert_eq!(with_timer.tool_runs[1].key, keys(&[&[(2, "")]])[&2]);
    }
}
