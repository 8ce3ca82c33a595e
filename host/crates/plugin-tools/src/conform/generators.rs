//! Conformance of generators, flavors and arrival processes.

use veeksha_manifest::PluginKind;
use veeksha_model::{Nanos, Session};
use veeksha_ports::{
    CellType, FlavorInstance, Layout, PluginFailure, PluginFailureKind, SessionSource, TraceFacts,
    TraceGroup, TraceRow, Workload, WorkloadFactory, check_arrivals, check_purity,
};

use super::report::{ConformReport, shown};
use crate::opened::{OpenedPlugin, PluginSettings};
use crate::play::{AnswerScript, PlayError, PlayedSession, ScriptedEnd, ScriptedTool, play_agent};

/// The largest batch that the host asks for.
const LARGEST_BATCH: u32 = 64;
/// Sessions that are made to find memory that is never freed.
const MANY: u64 = 4_096;
/// Sessions of agents that are played.
const AGENTS: u64 = 4;
/// Arrivals that are compared.
const ARRIVALS: u32 = 256;

/// Checks a session or agent generator.
pub(super) fn generator(
    plugin: &OpenedPlugin,
    kind: PluginKind,
    settings: &PluginSettings,
    report: &mut ConformReport,
) {
    let Ok(factory) = plugin.workload(kind, settings) else {
        return;
    };
    report.add(
        format!("{kind}: the same sessions in any order, batch and instance"),
        check_purity(factory.as_ref(), &|_, _| Ok(())),
    );
    match factory.open_silent() {
        Ok(Workload::Planned(mut source)) => {
            report.add(
                format!("{kind}: batches of any size"),
                batches(factory.as_ref(), source.as_mut()),
            );
            report.add(
                format!("{kind}: stays below the memory limit"),
                many(source.as_mut()),
            );
        }
        Ok(Workload::Reactive(_)) => agents(plugin, kind, factory.as_ref(), report),
        Err(_) => {}
    }
}

/// Compares the largest batch with single sessions of another instance, last first.
fn batches(factory: &dyn WorkloadFactory, source: &mut dyn SessionSource) -> Result<(), PluginFailure> {
    let Workload::Planned(mut other) = factory.open_silent()? else {
        return Ok(());
    };
    let batch = source.sessions(0, LARGEST_BATCH)?;
    for (index, session) in batch.iter().enumerate().rev() {
        let again = other.sessions(index as u64, 1)?;
        if again.first() != Some(session) {
            return Err(differs(
                factory,
                format!("session {index} differs in a batch of {LARGEST_BATCH} and alone"),
            ));
        }
    }
    Ok(())
}

fn differs(factory: &dyn WorkloadFactory, message: String) -> PluginFailure {
    PluginFailure::new(
        &factory.info().name,
        "workload.sessions",
        PluginFailureKind::Result,
        message,
    )
}

fn many(source: &mut dyn SessionSource) -> Result<(), PluginFailure> {
    let mut first = 0;
    while first < MANY {
        if source.sessions(first, LARGEST_BATCH)?.len() < LARGEST_BATCH as usize {
            break;
        }
        first += u64::from(LARGEST_BATCH);
    }
    Ok(())
}

/// Plays agents: the same answers give the same steps, and every way in which a node can end is
/// answered by a step or an error.
fn agents(
    plugin: &OpenedPlugin,
    kind: PluginKind,
    factory: &dyn WorkloadFactory,
    report: &mut ConformReport,
) {
    let end = |end: ScriptedEnd| AnswerScript {
        ends: vec![end],
        ..AnswerScript::default()
    };
    let scripts = [
        ("an answer", AnswerScript::default()),
        (
            "an answer that was cut off",
            end(ScriptedEnd {
                finish: Some("length".to_owned()),
                ..ScriptedEnd::default()
            }),
        ),
        (
            "a failed request",
            end(ScriptedEnd {
                fail: Some("status".to_owned()),
                status: Some(503),
                retry_after: Some(1.0),
                ..ScriptedEnd::default()
            }),
        ),
        (
            "a cancelled request",
            end(ScriptedEnd {
                cancelled: true,
                ..ScriptedEnd::default()
            }),
        ),
    ];
    for (name, script) in scripts {
        report.add(
            format!("{kind}: {name}, twice with the same steps"),
            replay(plugin, factory, &script),
        );
    }
    let failed_tool = end(ScriptedEnd {
        tool: Some(ScriptedTool::Failed),
        ..ScriptedEnd::default()
    });
    // Only an agent whose first open node is a tool run can take it at once.
    match replay(plugin, factory, &failed_tool) {
        Err(PlayError::Script { .. }) => {
            report.skip(
                format!("{kind}: a failed tool run"),
                "it does not begin with a tool run",
            );
        }
        result => report.add(format!("{kind}: a failed tool run"), result),
    }
}

fn replay(
    plugin: &OpenedPlugin,
    factory: &dyn WorkloadFactory,
    script: &AnswerScript,
) -> Result<(), PlayError> {
    let first = played(plugin, factory, script, 0..AGENTS)?;
    let mut second = played(plugin, factory, script, (0..AGENTS).rev())?;
    second.reverse();
    for (one, other) in first.iter().zip(&second) {
        if one.steps != other.steps {
            let message = format!(
                "session {}: the same answers gave other steps in another instance",
                one.session
            );
            return Err(differs(factory, message).into());
        }
    }
    Ok(())
}

fn played(
    plugin: &OpenedPlugin,
    factory: &dyn WorkloadFactory,
    script: &AnswerScript,
    sessions: impl Iterator<Item = u64>,
) -> Result<Vec<PlayedSession>, PlayError> {
    let Workload::Reactive(mut agents) = factory.open_silent()? else {
        return Ok(Vec::new());
    };
    let length = agents.length()?.unwrap_or(u64::MAX);
    let count = |text: &str| plugin.host().tokenizer().count(text);
    sessions
        .filter(|session| *session < length)
        .map(|session| play_agent(agents.as_mut(), veeksha_model::SessionId(session), script, &count))
        .collect()
}

/// Checks an arrival process.
pub(super) fn arrivals(plugin: &OpenedPlugin, settings: &PluginSettings, report: &mut ConformReport) {
    let Ok(factory) = plugin.arrivals(settings) else {
        return;
    };
    report.add(
        "arrival-process: the same arrivals in every instance",
        check_arrivals(factory.as_ref()),
    );
    let in_batches = |size: u32| -> Result<Vec<Nanos>, PluginFailure> {
        let mut source = factory.open_silent()?;
        let mut arrivals = Vec::new();
        while (arrivals.len() as u32) < ARRIVALS {
            let next = source.next(size)?;
            let ends = (next.len() as u32) < size;
            arrivals.extend(next);
            if ends {
                break;
            }
        }
        Ok(arrivals)
    };
    let compared = in_batches(ARRIVALS).and_then(|whole| {
        if in_batches(1)? == whole {
            return Ok(());
        }
        Err(PluginFailure::new(
            plugin.name(),
            "process.next",
            PluginFailureKind::Result,
            "the arrivals depend on the size of the batch",
        ))
    });
    report.add("arrival-process: batches of any size", compared);
}

/// Checks a flavor with rows that fit its layout.
pub(super) fn flavor(plugin: &OpenedPlugin, settings: &PluginSettings, report: &mut ConformReport) {
    const NAME: &str = "trace-flavor: the same sessions in any order, batch and instance";
    let opened = || plugin.flavor(settings).map_err(shown);
    let checked = opened().and_then(|factory| {
        let mut one = factory.open_silent().map_err(|failure| failure.to_string())?;
        let mut other = factory.open_silent().map_err(|failure| failure.to_string())?;
        compare_groups(one.as_mut(), other.as_mut())
    });
    match checked {
        // Rows of typical values may be rows that the flavor has a reason to refuse.
        Ok(Some(refused)) => report.skip(
            NAME,
            format!("it refuses rows that were made from its layout: {refused}"),
        ),
        Ok(None) => report.add(NAME, Ok::<(), String>(())),
        Err(why) => report.add(NAME, Err::<(), String>(why)),
    }
}

/// Compares groups in one call with single groups of another instance. Returns the reason if the
/// flavor refuses them.
fn compare_groups(
    one: &mut dyn FlavorInstance,
    other: &mut dyn FlavorInstance,
) -> Result<Option<String>, String> {
    let layout = one.layout().map_err(|failure| failure.to_string())?;
    let groups: Vec<TraceGroup> = (0..4).map(|index| group(&layout, index)).collect();
    let facts = TraceFacts {
        rows: groups.len() as u64,
        groups: groups.len() as u64,
        first_row: groups[0].rows[0].fields.clone(),
    };
    let together: Vec<Session> = match one.sessions(&facts, 0, &groups) {
        Ok(sessions) => sessions,
        Err(failure)
            if matches!(
                failure.kind,
                PluginFailureKind::Refused { .. } | PluginFailureKind::Result
            ) =>
        {
            return Ok(Some(failure.message));
        }
        Err(failure) => return Err(failure.to_string()),
    };
    for (group, session) in groups.iter().zip(&together).rev() {
        let alone = other
            .sessions(&facts, 0, std::slice::from_ref(group))
            .map_err(|failure| failure.to_string())?;
        if alone.first() != Some(session) {
            return Err(format!(
                "group {} gives another session alone than with others",
                group.index
            ));
        }
    }
    Ok(None)
}

/// Returns a group of one row with a value in each column.
fn group(layout: &Layout, index: u64) -> TraceGroup {
    let cells = layout.columns.iter().map(|column| {
        let value = match column.cell {
            CellType::Text => format!("text {index}").into(),
            CellType::Count | CellType::Integer => (16 + index).into(),
            CellType::Number => (index as f64).into(),
            CellType::Truth => true.into(),
            CellType::Items => serde_json::json!([]),
            CellType::Members => serde_json::json!({}),
            CellType::Anything => "anything".into(),
        };
        (column.name.clone(), value)
    });
    let fields: serde_json::Map<String, serde_json::Value> = cells.collect();
    TraceGroup {
        index,
        key: format!("text {index}"),
        rows: vec![TraceRow {
            number: index + 1,
            at: layout.arrival.as_ref().map(|_| index * 1_000_000_000),
            fields: serde_json::Value::Object(fields).to_string(),
        }],
    }
}
