//! A check of a plugin's bytes: nothing is compiled or executed.

use serde_json::{Value, json};
use veeksha_app::CommandFailure;
use veeksha_componentize::ComponentOutline;
use veeksha_manifest::{CapabilityRequest, PluginKind, PluginManifest, section};

use crate::contract::{InterfaceFunctions, UsedInterfaces, VERSION, contract, used_interfaces};
use crate::form::FileForm;
use crate::plugin_file::PluginFile;

/// The package of the contract.
const PACKAGE: &str = "veeksha:plugin/";
/// Interfaces that hold types or come with a kind; a plugin may import them.
const VOCABULARY: [&str; 3] = ["records", "results", "types"];
/// The interfaces of the host, and what they allow.
const CAPABILITIES: [(&str, &str); 4] = [
    ("log", "writes lines to the log of the run"),
    (
        "random",
        "draws random numbers, which depend on the seed of the run",
    ),
    ("tokens", "counts tokens with the tokenizer of the target"),
    ("blobs", "opens files that the user grants, and no others"),
];
/// The effect of WASI.
const WASI: &str = "imports WASI, whose stand-ins give it no files, no network, no clock and no randomness";

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkCheck {
    file: String,
    form: FileForm,
    kinds: Vec<PluginKind>,
    contract: Vec<String>,
    imports: Vec<String>,
    /// The effects of the plugin, one sentence each.
    capabilities: Vec<String>,
    /// The reasons why the host would refuse it.
    problems: Vec<String>,
}

/// Checks the bytes of a plugin.
///
/// # Errors
/// If the file is not a plugin in any form, or damaged.
pub fn check(file: &PluginFile) -> Result<LinkCheck, CommandFailure> {
    let mut check = LinkCheck {
        file: file.path.display().to_string(),
        form: file.form,
        kinds: Vec::new(),
        contract: Vec::new(),
        imports: Vec::new(),
        capabilities: Vec::new(),
        problems: Vec::new(),
    };
    if file.form == FileForm::Lua {
        check
            .capabilities
            .push("runs in the sandbox of Lua, without files, network and clock".to_owned());
        return Ok(check);
    }
    let bytes = file.component()?;
    let damaged = |why: String| CommandFailure::new(veeksha_exit::PLUGIN, format!("{}: {why}", check.file));
    let outline = ComponentOutline::read(&bytes).map_err(|error| damaged(error.to_string()))?;
    let text = section::read(&bytes).map_err(|error| damaged(error.to_string()))?;
    check.kinds = outline.kinds();
    check.contract = outline.contract_versions();
    check.check_versions();
    check.check_imports(&outline);
    check.check_functions(&bytes);
    check.check_manifest(text);
    check.imports = outline.imports;
    Ok(check)
}

impl LinkCheck {
    /// Returns true if the host would take the plugin.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    fn check_versions(&mut self) {
        for version in &self.contract {
            if !is_compatible(version) {
                self.problems.push(format!(
                    "it was built for version {version} of the contract, this host has {VERSION}: build it again with the SDK of \
                     this host, or use a host that has {version}"
                ));
            }
        }
        if self.kinds.is_empty() {
            let names = PluginKind::ALL.map(PluginKind::name).join(", ");
            self.problems
                .push(format!("it exports no kind of plugin: export one of {names}"));
        }
    }

    fn check_imports(&mut self, outline: &ComponentOutline) {
        let mut has_wasi = false;
        for import in &outline.imports {
            let interface = import
                .strip_prefix(PACKAGE)
                .map(|name| name.split('@').next().unwrap_or(name));
            match interface {
                Some(name) if VOCABULARY.contains(&name) => {}
                Some(name) => match CAPABILITIES.iter().find(|(known, _)| *known == name) {
                    Some((name, effect)) => self.capabilities.push(format!("{name}: {effect}")),
                    None => {
                        let names = CAPABILITIES.map(|(name, _)| name);
                        let hint = veeksha_slo::nearest(name, names).map_or_else(
                            || format!("version {VERSION} has {}", names.join(", ")),
                            |nearest| format!("did you mean {nearest}?"),
                        );
                        self.problems.push(format!("it imports the unknown interface `{import}`: {hint}"));
                    }
                },
                None if import.starts_with("wasi:") => has_wasi = true,
                None => self.problems.push(format!(
                    "it imports `{import}`, which the host does not offer: remove the dependency that needs it"
                )),
            }
        }
        if has_wasi {
            self.capabilities.push(WASI.to_owned());
        }
    }

    /// Compares the functions of the interfaces with those of the contract.
    fn check_functions(&mut self, bytes: &[u8]) {
        // Interfaces of another version are reported as such.
        if self.contract.iter().any(|version| !is_compatible(version)) {
            return;
        }
        let (Ok(contract), Ok(UsedInterfaces { imports, exports })) = (contract(), used_interfaces(bytes))
        else {
            return;
        };
        for (interface, functions) in &imports {
            for function in unknown(functions, interface, &contract) {
                self.problems.push(format!(
                    "it imports the function `{}` of `{interface}`, which version {VERSION} of the contract does not have",
                    plain(function)
                ));
            }
        }
        for (interface, functions) in &exports {
            for missing in contract.get(interface).into_iter().flatten() {
                if !functions.contains(missing) {
                    self.problems.push(format!(
                        "it exports `{interface}` without the function `{}`: implement it",
                        plain(missing)
                    ));
                }
            }
        }
    }

    fn check_manifest(&mut self, text: Option<&str>) {
        let Some(text) = text else { return };
        match PluginManifest::parse(text) {
            Ok(manifest) => {
                self.capabilities.extend(manifest.requests.iter().map(sentence));
                for kind in manifest.kinds.iter().filter(|kind| !self.kinds.contains(kind)) {
                    self.problems.push(format!(
                        "its manifest states the kind {kind}, which it does not export"
                    ));
                }
            }
            Err(error) => self.problems.push(format!("its manifest is wrong: {error}")),
        }
    }

    /// Returns the result as text of several lines.
    pub fn text(&self) -> String {
        let mut lines = vec![format!("{}: {}", self.file, self.form.noun())];
        let kinds: Vec<&str> = self.kinds.iter().map(|kind| kind.name()).collect();
        if !kinds.is_empty() {
            lines.push(format!("kinds: {}", kinds.join(", ")));
            lines.push(format!("contract: {}", self.contract.join(", ")));
        }
        lines.extend(self.capabilities.iter().map(|sentence| format!("· {sentence}")));
        lines.extend(self.problems.iter().map(|problem| format!("✗ {problem}")));
        lines.push(match (self.problems.len(), self.form) {
            (0, FileForm::Lua) => {
                "its functions are known when it is loaded: `veeksha-host plugin run`".to_owned()
            }
            (0, _) => "the host can link it".to_owned(),
            (problems, _) => format!(
                "the host cannot use it: {}",
                veeksha_stats::counted(problems as u64, "problem")
            ),
        });
        lines.join("\n")
    }

    /// Returns the result as JSON.
    pub fn json(&self) -> Value {
        json!({
            "file": self.file,
            "form": self.form.noun(),
            "kinds": self.kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>(),
            "contract": self.contract,
            "imports": self.imports,
            "capabilities": self.capabilities,
            "problems": self.problems,
        })
    }
}

/// Returns true if the host can serve this version: below 1.0, patch releases are compatible.
fn is_compatible(version: &str) -> bool {
    let line = |version: &str| version.rsplit_once('.').map(|(line, _)| line.to_owned());
    line(version) == line(VERSION)
}

fn unknown<'f>(
    functions: &'f [String],
    interface: &str,
    contract: &'f InterfaceFunctions,
) -> Vec<&'f String> {
    let known = contract.get(interface).map_or(&[][..], Vec::as_slice);
    functions
        .iter()
        .filter(|function| !known.contains(function))
        .collect()
}

/// Returns a function's name without the mark of its kind: `workload.sessions`.
fn plain(function: &str) -> &str {
    function.split_once(']').map_or(function, |(_, name)| name)
}

fn sentence(request: &CapabilityRequest) -> String {
    match request {
        CapabilityRequest::ReadBlobs { glob } => {
            format!("asks to read files that match {glob} in the folder of the scenario")
        }
        CapabilityRequest::Environment { name } => format!("asks to read the environment variable {name}"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn check(path: &str) -> LinkCheck {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        super::check(&PluginFile::read(&root.join(path)).unwrap()).unwrap()
    }

    #[test]
    fn a_shipped_component_has_no_problems() {
        let check = check("plugins/dist/synthetic.wasm");
        assert_eq!(check.kinds, [PluginKind::SessionGenerator]);
        assert_eq!(check.problems, Vec::<String>::new());
        assert!(check.capabilities[0].starts_with("log: writes lines"));
    }

    #[test]
    fn problems_name_the_version_and_the_import() {
        let future = check("tests/guests/dist/future.wasm");
        assert!(
            future.problems[0].contains("this host has 0.2.0"),
            "{:?}",
            future.problems
        );
        let stranger = check("tests/guests/dist/stranger.wasm");
        let import = stranger
            .problems
            .iter()
            .any(|problem| problem.contains("`acme:cloud/upload@1.0.0`"));
        assert!(import, "{:?}", stranger.problems);
        let kindless = check("tests/guests/dist/kindless.wasm");
        assert!(!kindless.is_sound());
    }
}
