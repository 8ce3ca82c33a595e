//! A flavor whose sessions can be sent: what the host could not make a prompt of is refused with its row, like anything else that the
//! flavor refuses. So a picture that is not there is found before the run starts, or skipped.

use std::sync::Arc;

use veeksha_model::Session;
use veeksha_ports::{
    Flavor, FlavorFactory, Layout, PluginFailure, PluginFailureKind, TraceFacts, TraceGroup, WorkloadInfo,
};
use veeksha_prompt::Materializer;

/// A factory whose flavors check what they make.
pub(crate) fn checked(
    factory: Arc<dyn FlavorFactory>,
    materializer: Arc<Materializer>,
) -> Arc<dyn FlavorFactory> {
    Arc::new(Checked {
        factory,
        materializer,
    })
}

struct Checked {
    factory: Arc<dyn FlavorFactory>,
    materializer: Arc<Materializer>,
}

impl FlavorFactory for Checked {
    fn info(&self) -> &WorkloadInfo {
        self.factory.info()
    }

    fn open(&self) -> Result<Box<dyn Flavor>, PluginFailure> {
        Ok(Box::new(CheckedFlavor {
            plugin: self.info().name.clone(),
            flavor: self.factory.open()?,
            materializer: self.materializer.clone(),
        }))
    }
}

struct CheckedFlavor {
    plugin: String,
    flavor: Box<dyn Flavor>,
    materializer: Arc<Materializer>,
}

impl CheckedFlavor {
    fn check(&self, session: &Session, group: &TraceGroup) -> Result<(), PluginFailure> {
        for request in &session.requests {
            if let Err(error) = self.materializer.check(request) {
                let rows = group.rows.iter().map(|row| row.number.to_string());
                let rows = rows.take(8).collect::<Vec<_>>().join(", ");
                return Err(PluginFailure::new(
                    &self.plugin,
                    "flavor.sessions",
                    PluginFailureKind::Refused {
                        code: "row".into(),
                        hint: None,
                        path: None,
                    },
                    format!("row {rows}: {error}"),
                ));
            }
        }
        Ok(())
    }
}

impl Flavor for CheckedFlavor {
    fn layout(&mut self) -> Result<Layout, PluginFailure> {
        self.flavor.layout()
    }

    fn sessions(
        &mut self,
        facts: &TraceFacts,
        epoch: u64,
        groups: &[TraceGroup],
    ) -> Result<Vec<Session>, PluginFailure> {
        let sessions = self.flavor.sessions(facts, epoch, groups)?;
        for (session, group) in sessions.iter().zip(groups) {
            self.check(session, group)?;
        }
        Ok(sessions)
    }

    fn warmup(&mut self, facts: &TraceFacts, groups: &[TraceGroup]) -> Result<Vec<Session>, PluginFailure> {
        self.flavor.warmup(facts, groups)
    }
}
