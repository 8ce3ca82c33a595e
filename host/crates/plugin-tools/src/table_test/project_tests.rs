//! The tests of a project.

use std::path::{Path, PathBuf};

use veeksha_app::{CommandFailure, StandaloneHost};
use veeksha_manifest::PluginKind;

use super::condition::ResultCondition;
use super::format::{ExpectedError, TestCase};
use super::outcome::{TestOutcome, TestProblem, TestReport};
use super::session_case::{self, CaseFailure, CaseResult};
use super::{evaluation_case, read, scenario_case, snapshot, trace_case};
use crate::opened::{OpenedPlugin, PluginSettings};
use crate::plugin_file::PluginFile;

/// The folder of the tests of a project.
const TESTS: &str = "tests";

/// Options of `plugin test`.
#[derive(Clone, Debug, Default)]
pub struct TestOptions {
    /// Writes snapshots that are missing or differ.
    pub update: bool,
    /// Runs only tests whose names contain this text.
    pub filter: Option<String>,
    /// Disables the cache of compiled components.
    pub no_cache: bool,
}

/// Runs the tests of a project's folder. `done` is called after each.
///
/// # Errors
/// If the plugin cannot be opened, or a test file is wrong.
pub fn test_project(
    folder: &Path,
    options: &TestOptions,
    done: &mut dyn FnMut(&TestOutcome),
) -> Result<TestReport, CommandFailure> {
    let files = test_files(folder)?;
    let mut cases = Vec::new();
    for file in files {
        let name = file.strip_prefix(folder).unwrap_or(&file).display().to_string();
        cases.extend(
            read::read(&file)?
                .test
                .into_iter()
                .map(|case| (name.clone(), case)),
        );
    }
    check_names(&cases)?;
    let all = cases.len();
    if let Some(filter) = &options.filter {
        cases.retain(|(_, case)| case.name.contains(filter.as_str()));
    }
    let mut project = ProjectTests {
        folder,
        options,
        plugin: None,
    };
    let mut report = TestReport {
        outcomes: Vec::new(),
        filtered: all - cases.len(),
    };
    for (file, case) in &cases {
        let outcome = project.test(file, case)?;
        done(&outcome);
        report.outcomes.push(outcome);
    }
    Ok(report)
}

fn test_files(folder: &Path) -> Result<Vec<PathBuf>, CommandFailure> {
    let tests = folder.join(TESTS);
    let entries = std::fs::read_dir(&tests).map_err(|error| {
        CommandFailure::usage(format!("cannot read {}: {error}", tests.display()))
            .hinted("give the folder of a project, with test files in `tests`")
    })?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "toml" || extension == "lua")
    });
    files.sort();
    if files.is_empty() {
        return Err(CommandFailure::usage(format!(
            "{} has no test files (*.toml, *.lua)",
            tests.display()
        )));
    }
    Ok(files)
}

/// Refuses two tests of one name: they would share a snapshot.
fn check_names(cases: &[(String, TestCase)]) -> Result<(), CommandFailure> {
    let mut names: Vec<&str> = cases.iter().map(|(_, case)| case.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(CommandFailure::usage(format!(
            "two tests have the name `{}`: give each a different one",
            pair[0]
        ))),
        None => Ok(()),
    }
}

struct ProjectTests<'p> {
    folder: &'p Path,
    options: &'p TestOptions,
    /// The plugin, after the first test that needs it.
    plugin: Option<OpenedPlugin>,
}

impl ProjectTests<'_> {
    fn test(&mut self, file: &str, case: &TestCase) -> Result<TestOutcome, CommandFailure> {
        let mut outcome = TestOutcome {
            file: file.to_owned(),
            name: case.name.clone(),
            problems: Vec::new(),
            updated: false,
        };
        let conditions: Result<Vec<ResultCondition>, String> = case
            .expect
            .iter()
            .map(|text| ResultCondition::parse(text))
            .collect();
        let conditions = match conditions {
            Ok(conditions) => conditions,
            Err(why) => {
                outcome.problems.push(TestProblem::Test(format!("expect: {why}")));
                return Ok(outcome);
            }
        };
        match (self.result(case)?, &case.error) {
            (Ok(result), None) => {
                let unmet = conditions
                    .iter()
                    .filter_map(|condition| condition.unmet(&result.value));
                outcome.problems.extend(unmet.map(TestProblem::Unmet));
                if case.snapshot {
                    let tests = self.folder.join(TESTS);
                    let (problem, updated) =
                        snapshot::compare(&tests, &case.name, &result.snapshot, self.options.update)?;
                    outcome.problems.extend(problem);
                    outcome.updated = updated;
                }
            }
            (Ok(_), Some(expected)) => {
                let problem = format!("the plugin did not fail, expected {}", expected.shown());
                outcome.problems.push(TestProblem::Unmet(problem));
            }
            (Err(failure), expected) => outcome.problems.extend(unexpected(&failure, expected.as_ref())),
        }
        Ok(outcome)
    }

    /// Returns the result of a test, or the failure of the plugin.
    fn result(&mut self, case: &TestCase) -> Result<Result<CaseResult, CaseFailure>, CommandFailure> {
        if let Some(scenario) = &case.scenario {
            return Ok(scenario_case::scenario(self.folder, scenario, case));
        }
        let wanted = match &case.kind {
            Some(name) => match named_kind(name) {
                Ok(kind) => Some(kind),
                Err(why) => return Ok(Err(CaseFailure::Test(why))),
            },
            None => None,
        };
        if self.plugin.is_none() {
            let file = PluginFile::read(self.folder)?;
            let host = StandaloneHost::new(self.folder.to_owned(), &[], self.options.no_cache)?;
            self.plugin = Some(OpenedPlugin::open(host, &file)?);
        }
        let Some(plugin) = &self.plugin else {
            return Err(CommandFailure::internal("the plugin is not open"));
        };
        let kind = match plugin.kind(wanted) {
            Ok(kind) => kind,
            Err(failure) => return Ok(Err(CaseFailure::Test(failure.message))),
        };
        let settings = settings(case)?;
        Ok(match kind {
            PluginKind::SessionGenerator | PluginKind::AgentGenerator => {
                session_case::sessions(plugin, kind, &settings, case)
            }
            PluginKind::ArrivalProcess => session_case::arrivals(plugin, &settings, case),
            PluginKind::TraceFlavor => trace_case::flavor(plugin, &settings, self.folder, case),
            PluginKind::EndpointCodec => evaluation_case::codec(plugin, &settings, case),
            PluginKind::Metric => evaluation_case::metric(plugin, &settings, case),
            PluginKind::RequestCheck => evaluation_case::request_check(plugin, &settings, case),
            PluginKind::SloCheck => evaluation_case::slo_check(plugin, &settings, case),
        })
    }
}

fn settings(case: &TestCase) -> Result<PluginSettings, CommandFailure> {
    let config = case.config.clone().unwrap_or_default();
    Ok(PluginSettings {
        config: serde_json::to_string(&config).map_err(CommandFailure::internal)?,
        seed: case.seed,
        files: case.files.clone(),
        unchecked: false,
        silent: false,
    })
}

/// Returns the kind with a name.
///
/// # Errors
/// The nearest name.
pub fn named_kind(name: &str) -> Result<PluginKind, String> {
    PluginKind::from_name(name).ok_or_else(|| {
        let names = PluginKind::ALL.map(PluginKind::name);
        match veeksha_slo::nearest(name, names) {
            Some(nearest) => format!("unknown kind `{name}`: did you mean {nearest}?"),
            None => format!("unknown kind `{name}`: expected one of {}", names.join(", ")),
        }
    })
}

/// Returns the problem of a failure that is not the expected one.
fn unexpected(failure: &CaseFailure, expected: Option<&ExpectedError>) -> Option<TestProblem> {
    let shown = match failure {
        CaseFailure::Plugin(failure) => failure.to_string(),
        CaseFailure::Command(failure) => failure.to_string(),
        CaseFailure::Test(why) => return Some(TestProblem::Test(why.clone())),
    };
    let (Some(expected), Some((code, path, message))) = (expected, session_case::parts(failure)) else {
        return Some(TestProblem::Unmet(shown));
    };
    let equal = |wanted: &Option<String>, found: Option<&str>| {
        wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
    };
    let contains = expected
        .message
        .as_deref()
        .is_none_or(|part| message.contains(part));
    if equal(&expected.code, code) && equal(&expected.path, path) && contains {
        return None;
    }
    Some(TestProblem::Unmet(format!(
        "expected {}, got: {shown}",
        expected.shown()
    )))
}

impl ExpectedError {
    fn shown(&self) -> String {
        let part =
            |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name} `{value}`"));
        let parts = [
            part("code", &self.code),
            part("path", &self.path),
            part("message", &self.message),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() {
            return "an error".to_owned();
        }
        format!("an error with {}", parts.join(", "))
    }
}
