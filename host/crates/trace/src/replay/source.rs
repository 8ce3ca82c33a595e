//! The sessions of a trace, for the pipeline.

use std::sync::Arc;

use veeksha_model::{Nanos, Session};
use veeksha_ports::{
    FlavorInstance, Guarantees, PluginFailure, PluginFailureKind, SessionSource, TraceGroup, Workload,
    WorkloadFactory, WorkloadInfo,
};

use crate::index::TIME_END;
use crate::replay::read::GroupReader;
use crate::replay::sequence::GroupSequence;
use crate::replay::trace_data::TraceData;

/// Factory of a trace's workload.
pub(crate) struct Factory(pub(crate) Arc<TraceData>);

impl WorkloadFactory for Factory {
    fn info(&self) -> &WorkloadInfo {
        self.0.flavor.info()
    }

    fn open(&self) -> Result<Workload, PluginFailure> {
        let flavor = self.0.flavor.open()?;
        Ok(Workload::Planned(Box::new(SessionReader::new(
            Arc::clone(&self.0),
            flavor,
        ))))
    }

    fn open_silent(&self) -> Result<Workload, PluginFailure> {
        let flavor = self.0.flavor.open_silent()?;
        Ok(Workload::Planned(Box::new(SessionReader::new(
            Arc::clone(&self.0),
            flavor,
        ))))
    }

    fn guarantees(&self) -> Result<Guarantees, PluginFailure> {
        self.0.flavor.guarantees()
    }
}

/// The sessions of a trace, through one instance of its flavor.
pub(crate) struct SessionReader {
    trace: Arc<TraceData>,
    flavor: Box<dyn FlavorInstance>,
    reader: GroupReader,
}

impl SessionReader {
    pub(crate) fn open(trace: Arc<TraceData>) -> Result<Self, PluginFailure> {
        let flavor = trace.flavor.open()?;
        Ok(SessionReader::new(trace, flavor))
    }

    fn new(trace: Arc<TraceData>, flavor: Box<dyn FlavorInstance>) -> Self {
        SessionReader {
            flavor,
            reader: GroupReader::new(&trace),
            trace,
        }
    }

    /// Makes the sessions at some places of an epoch.
    pub(crate) fn of_epoch(
        &mut self,
        epoch: u64,
        first_place: u64,
        count: u64,
    ) -> Result<Vec<Session>, PluginFailure> {
        let trace = Arc::clone(&self.trace);
        let order = trace.sequence.epoch(epoch);
        let groups = (first_place..first_place + count)
            .map(|place| {
                let group = order.group(place);
                self.reader
                    .group(&trace, u64::from(group), trace.groups.rows(group))
            })
            .collect::<Result<Vec<_>, _>>()?;
        self.of_groups(epoch, &groups)
    }

    /// Makes the sessions at some places of the first epoch and discards them. With pools, session
    /// `k` takes row `k` of each, wrapping around in pools shorter than the longest.
    pub(crate) fn check_places(&mut self, first: u64, count: u64) -> Result<(), PluginFailure> {
        if !self.trace.draws() {
            return self.of_epoch(0, first, count).map(drop);
        }
        let trace = Arc::clone(&self.trace);
        let groups = (first..first + count)
            .map(|place| self.reader.group(&trace, place, trace.abreast(place)))
            .collect::<Result<Vec<_>, _>>()?;
        self.of_groups(0, &groups).map(drop)
    }

    /// Makes sessions of a trace of pools.
    pub(crate) fn of_draws(&mut self, first: u64, count: u64) -> Result<Vec<Session>, PluginFailure> {
        let trace = Arc::clone(&self.trace);
        let groups = (first..first + count)
            .map(|session| self.reader.group(&trace, session, trace.draw(session)))
            .collect::<Result<Vec<_>, _>>()?;
        self.of_groups(0, &groups)
    }

    /// Makes one session for each group.
    pub(crate) fn of_groups(
        &mut self,
        epoch: u64,
        groups: &[TraceGroup],
    ) -> Result<Vec<Session>, PluginFailure> {
        let trace = Arc::clone(&self.trace);
        let name = |mut failure: PluginFailure, groups: &[TraceGroup]| {
            let rows = trace.described(epoch, groups);
            failure.input = Some(match failure.input {
                Some(input) => format!("{rows}; {input}"),
                None => rows,
            });
            failure
        };
        let mut sessions = match self.flavor.sessions(&trace.facts, epoch, groups) {
            Ok(sessions) => sessions,
            // The flavor works but refuses a group: find out which.
            Err(failure) if refused(&failure) && groups.len() > 1 => {
                for group in groups {
                    let one = std::slice::from_ref(group);
                    if let Err(failure) = self.flavor.sessions(&trace.facts, epoch, one) {
                        return Err(name(failure, one));
                    }
                }
                return Err(name(failure, groups));
            }
            Err(failure) => return Err(name(failure, groups)),
        };
        if sessions.len() != groups.len() {
            let failure = PluginFailure::new(
                trace.flavor.info().name.clone(),
                "flavor.sessions",
                PluginFailureKind::Result,
                format!("returned {} sessions for {} groups", sessions.len(), groups.len()),
            );
            return Err(name(failure, groups));
        }
        for (session, group) in sessions.iter_mut().zip(groups) {
            if session.arrives_at.is_none() {
                session.arrives_at = group.rows.iter().filter_map(|row| row.at).min();
            }
            rebase(&trace, session, epoch).map_err(|failure| name(failure, std::slice::from_ref(group)))?;
        }
        Ok(sessions)
    }
}

/// Returns true if a failure concerns the rows and not the plugin.
pub(crate) fn refused(failure: &PluginFailure) -> bool {
    matches!(
        failure.kind,
        PluginFailureKind::Refused { .. } | PluginFailureKind::Result
    )
}

/// With replayed arrivals, shifts those of a session: the first one is at 0, and each epoch follows
/// the last.
fn rebase(trace: &TraceData, session: &mut Session, epoch: u64) -> Result<(), PluginFailure> {
    let GroupSequence::Arrivals { first, period, .. } = trace.sequence else {
        return Ok(());
    };
    let shift = epoch.saturating_mul(period);
    let mut late = false;
    let mut moved = |at: &mut Option<Nanos>| {
        if let Some(at) = at {
            *at = at.saturating_sub(first).saturating_add(shift);
            late |= *at >= TIME_END;
        }
    };
    moved(&mut session.arrives_at);
    for replay in session
        .requests
        .iter_mut()
        .filter_map(|request| request.replay.as_mut())
    {
        moved(&mut replay.recorded.at);
    }
    if late {
        return Err(PluginFailure::new(
            trace.flavor.info().name.clone(),
            "flavor.sessions",
            PluginFailureKind::Result,
            format!("epoch {epoch} would arrive more than 104 days after the first, the limit of a replay"),
        ));
    }
    Ok(())
}

impl SessionSource for SessionReader {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        Ok(self.trace.length())
    }

    fn sessions(&mut self, first: u64, count: u32) -> Result<Vec<Session>, PluginFailure> {
        let end = first.saturating_add(u64::from(count));
        let end = self.trace.length().map_or(end, |length| end.min(length));
        let mut next = first;
        if self.trace.draws() {
            return self.of_draws(first, end.saturating_sub(first));
        }
        let epoch_len = self.trace.sequence.len();
        let mut sessions = Vec::new();
        while next < end {
            let (epoch, place) = (next / epoch_len, next % epoch_len);
            let now = (end - next).min(epoch_len - place);
            sessions.extend(self.of_epoch(epoch, place, now)?);
            next += now;
        }
        Ok(sessions)
    }
}
