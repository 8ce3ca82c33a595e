//! A check that the sessions of a workload do not depend on the instance that makes them.

use veeksha_model::{Session, SessionId};

use crate::plugin_failure::{PluginFailure, PluginFailureKind};
use crate::workload::{AgentSource, AgentStep, SessionSource, Workload, WorkloadFactory};

/// Sessions that are made twice.
const SAMPLE: u32 = 4;

/// Makes the first sessions of a workload with two instances, in different order and in batches of
/// different size, and compares them. Detects a static counter, the order of a hash map, and the
/// random generator of a language; each would make the sessions depend on the number of threads.
///
/// A failure of the workload is not reported here: it occurs again where the session is needed.
///
/// # Errors
/// The first session that differs.
pub fn check_purity(factory: &dyn WorkloadFactory) -> Result<(), PluginFailure> {
    let (Ok(first), Ok(second)) = (factory.open_silent(), factory.open_silent()) else {
        return Ok(());
    };
    let (function, differs) = match (first, second) {
        (Workload::Planned(first), Workload::Planned(second)) => {
            ("workload.sessions", differing_session(first, second))
        }
        (Workload::Reactive(first), Workload::Reactive(second)) => {
            ("agent.start", differing_agent(first, second))
        }
        _ => return Ok(()),
    };
    let Some(session) = differs else {
        return Ok(());
    };
    let mut failure = PluginFailure::new(
        &factory.info().name,
        function,
        PluginFailureKind::Result,
        format!(
            "session {session} came out differently when another instance made it again: a session must \
             depend on the configuration, the seed and its index alone, not on earlier calls (a counter, a \
             cache), on the order of a hash map or on the random generator of the language; use the \
             contract's `random`"
        ),
    );
    failure.input = Some(format!("session = {session}"));
    Err(failure)
}

/// Returns the first session that differs: one batch in order against single sessions in reverse.
fn differing_session(mut first: Box<dyn SessionSource>, mut second: Box<dyn SessionSource>) -> Option<u64> {
    let batch = first.sessions(0, SAMPLE).ok()?;
    let mut again: Vec<Option<Session>> = (0..batch.len() as u64)
        .rev()
        .map(|index| second.sessions(index, 1).ok()?.pop())
        .collect();
    again.reverse();
    (0..)
        .zip(batch.iter().zip(&again))
        .find(|(_, (one, other))| other.as_ref().is_some_and(|other| other != *one))
        .map(|(index, _)| index)
}

/// Returns the first agent whose first step differs: started in order against started in reverse.
fn differing_agent(mut first: Box<dyn AgentSource>, mut second: Box<dyn AgentSource>) -> Option<u64> {
    let length = first.length().ok()?.unwrap_or(u64::MAX).min(u64::from(SAMPLE));
    let steps: Vec<Option<AgentStep>> = (0..length)
        .map(|index| first.start(SessionId(index)).ok())
        .collect();
    let mut again: Vec<Option<AgentStep>> = (0..length)
        .rev()
        .map(|index| second.start(SessionId(index)).ok())
        .collect();
    again.reverse();
    (0..)
        .zip(steps.iter().zip(&again))
        .find(|(_, pair)| matches!(pair, (Some(one), Some(other)) if one != other))
        .map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use veeksha_model::{Label, Session};

    use super::*;
    use crate::workload::WorkloadInfo;

    /// A workload of three sessions with one label.
    struct Labelled {
        info: WorkloadInfo,
        label: fn(u64) -> String,
    }

    struct Sessions(fn(u64) -> String);

    impl WorkloadFactory for Labelled {
        fn info(&self) -> &WorkloadInfo {
            &self.info
        }

        fn open(&self) -> Result<Workload, PluginFailure> {
            Ok(Workload::Planned(Box::new(Sessions(self.label))))
        }
    }

    impl SessionSource for Sessions {
        fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
            Ok(Some(3))
        }

        fn sessions(&mut self, first: u64, count: u32) -> Result<Vec<Session>, PluginFailure> {
            let end = first.saturating_add(u64::from(count)).min(3);
            let session = |index| Session {
                labels: vec![Label::from(("label".to_owned(), (self.0)(index)))],
                ..Session::default()
            };
            Ok((first..end).map(session).collect())
        }
    }

    fn check(label: fn(u64) -> String) -> Result<(), PluginFailure> {
        check_purity(&Labelled {
            info: WorkloadInfo {
                name: "labelled".into(),
                version: String::new(),
                summary: String::new(),
                engine: "wasm",
                digest: String::new(),
                granted: Vec::new(),
            },
            label,
        })
    }

    #[test]
    fn accepts_sessions_that_depend_on_the_index() {
        assert_eq!(check(|index| index.to_string()), Ok(()));
    }

    #[test]
    fn reports_the_first_session_that_differs() {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let failure = check(|index| {
            let calls = CALLS.fetch_add(1, Ordering::Relaxed);
            if index == 0 {
                String::new()
            } else {
                calls.to_string()
            }
        })
        .unwrap_err();
        assert_eq!(failure.kind, PluginFailureKind::Result);
        assert!(
            failure.message.starts_with("session 1 came out differently"),
            "{failure}"
        );
    }
}
