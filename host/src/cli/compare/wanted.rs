//! Selection of the compared metrics.

use std::path::PathBuf;

use veeksha_metrics::Catalogue;

use veeksha_app::CommandFailure;

/// The compared metrics: all, or those in `--metrics` and `--fail-if`.
pub(super) struct Wanted {
    /// Names in `--metrics`, as given.
    asked: Vec<String>,
    /// Names in `--fail-if`, which are validated separately.
    judged: Vec<String>,
    /// Canonical names, as far as the runs read so far define them.
    names: Vec<String>,
    /// Names in `--metrics` that no run has defined so far, each with the most similar known name.
    unknown: Vec<(String, Option<String>)>,
}

impl Wanted {
    /// Creates the selection; without names it contains everything.
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

    /// Looks up the names among the metrics of a run, including those of plugins.
    pub(super) fn look_in(&mut self, catalogue: &Catalogue) {
        let own_name = |written: &str| {
            let metric = catalogue.get(written).map(|info| info.name.clone());
            metric.or_else(|| {
                catalogue
                    .run_metric(written)
                    .map(|run_metric| run_metric.name.to_owned())
            })
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

    /// Rejects a name that none of the runs defines.
    pub(super) fn check(&self, runs: &[PathBuf]) -> Result<(), CommandFailure> {
        let Some((written, meant)) = self.unknown.first() else {
            return Ok(());
        };
        let mut runs: Vec<String> = runs.iter().map(|run| super::path::shown(run)).collect();
        runs.dedup();
        let failure = CommandFailure::usage(format!(
            "--metrics: there is no metric or run metric `{written}` in {}",
            runs.join(" or ")
        ));
        Err(match meant {
            Some(meant) => failure.hinted(format!("did you mean `{meant}`?")),
            None => failure.hinted("`veeksha-host metrics` lists them"),
        })
    }
}
