//! The metrics and figures that are looked at.

use std::path::PathBuf;

use veeksha_metrics::Catalogue;

use veeksha_app::Failure;

/// The metrics and figures that are looked at: all, or those that `--metrics` and then `--fail-if` name.
pub(super) struct Wanted {
    /// As they were written.
    asked: Vec<String>,
    /// What `--fail-if` names; it is checked elsewhere.
    judged: Vec<String>,
    /// Their own names, as far as the runs that were read know them.
    names: Vec<String>,
    /// Of those asked for that no run knew so far, the name that was perhaps meant.
    unknown: Vec<(String, Option<String>)>,
}

impl Wanted {
    /// Everything, if nothing is asked for.
    pub(super) fn new(asked: &[String], judged: &[&str]) -> Wanted {
        Wanted {
            asked: asked.iter().map(|name| name.trim().to_owned()).collect(),
            judged: judged.iter().map(|name| (*name).to_owned()).collect(),
            names: Vec::new(),
            unknown: asked.iter().map(|name| (name.trim().to_owned(), None)).collect(),
        }
    }

    pub(super) fn is_everything(&self) -> bool {
        self.asked.is_empty()
    }

    /// Looks the names up among those of a run, plugins' among them.
    pub(super) fn look_in(&mut self, catalogue: &Catalogue) {
        let own_name = |written: &str| {
            let metric = catalogue.get(written).map(|info| info.name.clone());
            metric.or_else(|| catalogue.figure(written).map(|figure| figure.name.to_owned()))
        };
        self.unknown.retain_mut(|(written, meant)| {
            *meant = catalogue.nearest(written).map(str::to_owned);
            own_name(written).is_none()
        });
        for name in self
            .asked
            .iter()
            .chain(&self.judged)
            .filter_map(|written| own_name(written))
        {
            if !self.names.contains(&name) {
                self.names.push(name);
            }
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.is_everything() || self.names.iter().any(|wanted| wanted == name)
    }

    /// Refuses a name that none of the runs knows.
    pub(super) fn check(&self, runs: &[PathBuf]) -> Result<(), Failure> {
        let Some((written, meant)) = self.unknown.first() else {
            return Ok(());
        };
        let mut runs: Vec<String> = runs.iter().map(|run| super::path::shown(run)).collect();
        runs.dedup();
        let failure = Failure::usage(format!(
            "--metrics: there is no metric or figure `{written}` in {}",
            runs.join(" or ")
        ));
        Err(match meant {
            Some(meant) => failure.hinted(format!("did you mean `{meant}`?")),
            None => failure.hinted("`veeksha-host metrics` lists them"),
        })
    }
}
