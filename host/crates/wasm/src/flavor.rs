//! A trace flavor: rows go in, sessions come out, one for each group.

use std::sync::Arc;

use veeksha_model::Session;
use veeksha_ports::{
    Flavor, FlavorFactory, Layout, PluginFailure, TraceFacts, TraceGroup, WorkloadInfo, check_layout,
};
use wasmtime::Store;
use wasmtime::component::ResourceAny;

use crate::bindings::trace_flavor::Guest;
use crate::bindings::types::Error;
use crate::instance::Instance;
use crate::opened::{Opened, Opens};
use crate::state::HostState;
use crate::text::{cut, grouped};
use crate::workload::Bound;
use crate::{admit, convert, rows, turns};

const LAYOUT: &str = "flavor.layout";
const SESSIONS: &str = "flavor.sessions";
const WARMUP: &str = "flavor.warmup";
/// Groups, and rows of a single group, that a report names one by one.
const NAMED: usize = 8;
/// Characters of a group's key shown in a report.
const KEY: usize = 60;

impl Opens for Guest {
    const OPEN: &'static str = "flavor.open";

    fn instance(bound: &Bound) -> Result<Instance<Self>, PluginFailure> {
        bound.loaded.flavor(&bound.grants)
    }

    fn open(
        &self,
        store: &mut Store<HostState>,
        config: &str,
    ) -> wasmtime::Result<Result<ResourceAny, Error>> {
        self.flavor().call_open(store, config)
    }
}

/// A flavor with a configuration and grants.
pub(crate) struct Factory {
    pub(crate) bound: Arc<Bound>,
    pub(crate) info: WorkloadInfo,
}

impl FlavorFactory for Factory {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn open(&self) -> Result<Box<dyn Flavor>, PluginFailure> {
        Ok(Box::new(Traced(Opened::new(Arc::clone(&self.bound))?)))
    }
}

struct Traced(Opened<Guest>);

impl Traced {
    fn refused(&self, function: &str, input: String, error: Error) -> PluginFailure {
        convert::refusal(&self.0.bound.loaded.name, function, Some(input), error)
    }
}

impl Flavor for Traced {
    fn layout(&mut self) -> Result<Layout, PluginFailure> {
        let layout = self.0.call(
            LAYOUT,
            || None,
            |store, guest, flavor| guest.flavor().call_layout(store, flavor),
        )?;
        let layout = rows::layout(layout);
        match check_layout(&layout) {
            Ok(()) => Ok(layout),
            Err(error) => {
                let mut failure = self.0.bound.unusable(LAYOUT, String::new(), error.to_string());
                failure.input = None;
                Err(failure)
            }
        }
    }

    fn sessions(
        &mut self,
        facts: &TraceFacts,
        epoch: u64,
        groups: &[TraceGroup],
    ) -> Result<Vec<Session>, PluginFailure> {
        if groups.is_empty() {
            return Ok(Vec::new());
        }
        let input = || format!("epoch = {epoch}, {}", named(groups));
        let (facts, rows) = (rows::facts(facts), rows::groups(groups));
        let answer = self.0.call(
            SESSIONS,
            || Some(input()),
            |store, guest, flavor| guest.flavor().call_sessions(store, flavor, &facts, epoch, &rows),
        )?;
        let replays = answer.map_err(|error| self.refused(SESSIONS, input(), error))?;
        let unusable = |why: String| self.0.bound.unusable(SESSIONS, input(), why);
        if replays.len() != groups.len() {
            return Err(unusable(format!(
                "asked for the sessions of {} groups, returned {}; one group gives one session",
                grouped(groups.len() as u64),
                grouped(replays.len() as u64)
            )));
        }
        groups
            .iter()
            .zip(replays)
            .map(|(group, replay)| turns::session(replay).map_err(|why| unusable(about(group, &why))))
            .collect()
    }

    fn warmup(&mut self, facts: &TraceFacts, groups: &[TraceGroup]) -> Result<Vec<Session>, PluginFailure> {
        let input = || named(groups);
        let (facts, rows) = (rows::facts(facts), rows::groups(groups));
        let answer = self.0.call(
            WARMUP,
            || Some(input()),
            |store, guest, flavor| guest.flavor().call_warmup(store, flavor, &facts, &rows),
        )?;
        let sessions = answer.map_err(|error| self.refused(WARMUP, input(), error))?;
        (0..)
            .zip(sessions)
            .map(|(index, session)| {
                let session = convert::session(session);
                admit::session(&session).map_err(|why| {
                    let why = format!("warm-up session {}: {why}", grouped(index));
                    self.0.bound.unusable(WARMUP, input(), why)
                })?;
                Ok(session)
            })
            .collect()
    }
}

/// What is wrong with a group's session.
fn about(group: &TraceGroup, why: &str) -> String {
    format!("group {}: {why}", grouped(group.index))
}

/// The groups of a call: as a range where they are one, with rows and key where there is only one.
fn named(groups: &[TraceGroup]) -> String {
    let (Some(first), Some(last)) = (groups.first(), groups.last()) else {
        return "no groups".into();
    };
    if let [group] = groups {
        let key = match group.key.as_str() {
            "" => String::new(),
            key => format!(", key `{}`", cut(key, KEY)),
        };
        let rows = listed(group.rows.iter().map(|row| row.number));
        return format!("group {}{key}, rows {rows}", group.index);
    }
    let range = groups
        .windows(2)
        .all(|pair| pair[0].index.checked_add(1) == Some(pair[1].index));
    match range {
        true => format!("groups {}..{}", first.index, last.index.saturating_add(1)),
        false => format!("groups {}", listed(groups.iter().map(|group| group.index))),
    }
}

fn listed(numbers: impl ExactSizeIterator<Item = u64>) -> String {
    let more = numbers.len().saturating_sub(NAMED);
    let shown: Vec<String> = numbers.take(NAMED).map(|number| number.to_string()).collect();
    match more {
        0 => shown.join(", "),
        _ => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use veeksha_ports::TraceRow;

    use super::*;

    fn group(index: u64, key: &str, rows: u64) -> TraceGroup {
        TraceGroup {
            index,
            key: key.into(),
            rows: (1..=rows)
                .map(|number| TraceRow {
                    number,
                    at: None,
                    fields: "{}".into(),
                })
                .collect(),
        }
    }

    fn all(indices: impl IntoIterator<Item = u64>) -> String {
        let groups: Vec<_> = indices.into_iter().map(|index| group(index, "", 1)).collect();
        named(&groups)
    }

    #[test]
    fn groups_are_named_shortly() {
        assert_eq!(all([]), "no groups");
        assert_eq!(all(12..20), "groups 12..20");
        assert_eq!(all([7, 3, 91]), "groups 7, 3, 91");
        assert_eq!(
            all((0..20).map(|i| 2 * i)),
            "groups 0, 2, 4, 6, 8, 10, 12, 14 and 12 more"
        );
        assert_eq!(all([u64::MAX, 0]), format!("groups {}, 0", u64::MAX));
        assert_eq!(named(&[group(4, "", 2)]), "group 4, rows 1, 2");
        assert_eq!(named(&[group(4, "chat-9", 1)]), "group 4, key `chat-9`, rows 1");
        let long = named(&[group(0, &"k".repeat(1 << 20), 100)]);
        assert!(long.len() < 200, "{long}");
        assert!(long.ends_with("7, 8 and 92 more"), "{long}");
    }
}
