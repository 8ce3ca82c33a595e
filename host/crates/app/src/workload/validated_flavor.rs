//! Flavor whose sessions are validated: a session that cannot be converted to prompts, for example
//! because an image is missing, is rejected with its row before the run starts, or skipped.

use std::sync::Arc;

use veeksha_model::Session;
use veeksha_ports::{
    FlavorFactory, FlavorInstance, Guarantees, Layout, PluginFailure, PluginFailureKind, TraceFacts,
    TraceGroup, WorkloadInfo,
};
use veeksha_prompt::Materializer;

/// Returns a factory whose flavors validate their sessions.
pub(crate) fn validated(
    factory: Arc<dyn FlavorFactory>,
    materializer: Arc<Materializer>,
) -> Arc<dyn FlavorFactory> {
    Arc::new(ValidatedFactory {
        factory,
        materializer,
    })
}

struct ValidatedFactory {
    factory: Arc<dyn FlavorFactory>,
    materializer: Arc<Materializer>,
}

impl FlavorFactory for ValidatedFactory {
    fn info(&self) -> &WorkloadInfo {
        self.factory.info()
    }

    fn open(&self) -> Result<Box<dyn FlavorInstance>, PluginFailure> {
        Ok(self.checked(self.factory.open()?))
    }

    fn open_silent(&self) -> Result<Box<dyn FlavorInstance>, PluginFailure> {
        Ok(self.checked(self.factory.open_silent()?))
    }

    fn guarantees(&self) -> Result<Guarantees, PluginFailure> {
        self.factory.guarantees()
    }
}

impl ValidatedFactory {
    fn checked(&self, flavor: Box<dyn FlavorInstance>) -> Box<dyn FlavorInstance> {
        Box::new(ValidatedFlavor {
            plugin: self.info().name.clone(),
            flavor,
            materializer: self.materializer.clone(),
        })
    }
}

struct ValidatedFlavor {
    plugin: String,
    flavor: Box<dyn FlavorInstance>,
    materializer: Arc<Materializer>,
}

impl ValidatedFlavor {
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

impl FlavorInstance for ValidatedFlavor {
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
