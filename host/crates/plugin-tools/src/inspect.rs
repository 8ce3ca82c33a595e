//! The description of a plugin.

use serde_json::{Value, json};
use veeksha_app::{CommandFailure, StandaloneHost};
use veeksha_componentize::ComponentOutline;
use veeksha_manifest::{PluginKind, section};
use veeksha_wasm::Descriptor;

use crate::plugin_file::PluginFile;

/// Width of the names at the left of the text.
const NAME_WIDTH: usize = 12;

/// The facts about a component.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The file.
    file: String,
    /// Its size in bytes.
    size: usize,
    /// BLAKE3 of the file, in hex.
    digest: String,
    kinds: Vec<PluginKind>,
    outline: ComponentOutline,
    /// The text of the manifest in the component.
    manifest: Option<String>,
    descriptor: Descriptor,
}

/// Describes a component. It is compiled, and its function `describe` is called.
///
/// # Errors
/// If the file is not a plugin, or does not describe itself.
pub fn inspect(host: &StandaloneHost, file: &PluginFile) -> Result<Inspection, CommandFailure> {
    let bytes = file.component()?;
    let refuse =
        |why: String| CommandFailure::new(veeksha_exit::PLUGIN, format!("{}: {why}", file.path.display()));
    let outline = ComponentOutline::read(&bytes).map_err(|error| refuse(error.to_string()))?;
    let manifest = section::read(&bytes).map_err(|error| refuse(error.to_string()))?;
    let descriptor = host.load(&file.name(), &bytes)?.describe()?;
    Ok(Inspection {
        file: file.path.display().to_string(),
        size: bytes.len(),
        digest: blake3::hash(&bytes).to_hex().to_string(),
        kinds: outline.kinds(),
        manifest: manifest.map(str::to_owned),
        outline,
        descriptor,
    })
}

impl Inspection {
    /// Returns the facts as JSON.
    pub fn json(&self) -> Value {
        let schema: Value = serde_json::from_str(&self.descriptor.config_schema).unwrap_or_default();
        json!({
            "file": self.file,
            "size_bytes": self.size,
            "digest": format!("blake3:{}", self.digest),
            "kinds": self.kind_names(),
            "contract": self.outline.contract_versions(),
            "imports": self.outline.imports,
            "exports": self.outline.exports,
            "debug_info": self.outline.has_debug_info,
            "manifest": self.manifest,
            "descriptor": {
                "name": self.descriptor.name,
                "version": self.descriptor.version,
                "summary": self.descriptor.summary,
                "config_schema": schema,
            },
        })
    }

    /// Returns the facts as text of several lines.
    pub fn text(&self) -> String {
        let Descriptor {
            name,
            version,
            summary,
            config_schema,
        } = &self.descriptor;
        let mut text = FactLines::default();
        text.fact("plugin", &format!("{name} {version}"));
        text.fact("summary", summary);
        text.fact("kinds", &self.kind_names().join(", "));
        text.fact(
            "contract",
            &format!("veeksha:plugin@{}", self.outline.contract_versions().join(", ")),
        );
        text.list("imports", &self.outline.imports);
        text.list("exports", &self.outline.exports);
        text.fact("size", &format!("{} bytes", self.size));
        text.fact("digest", &format!("blake3:{}", self.digest));
        text.fact(
            "debug info",
            if self.outline.has_debug_info { "yes" } else { "no" },
        );
        let manifest = self.manifest.as_deref().map(|text| text.trim_end().lines());
        let manifest = manifest.map(|lines| lines.map(str::to_owned).collect::<Vec<_>>());
        text.list("manifest", &manifest.unwrap_or_default());
        let schema: Value = serde_json::from_str(config_schema).unwrap_or_default();
        let schema = serde_json::to_string_pretty(&schema).unwrap_or_default();
        text.list("config", &schema.lines().map(str::to_owned).collect::<Vec<_>>());
        text.finished()
    }

    fn kind_names(&self) -> Vec<&'static str> {
        self.kinds.iter().map(|kind| kind.name()).collect()
    }
}

/// Lines with a name at the left and a value at the right.
#[derive(Default)]
struct FactLines(String);

impl FactLines {
    fn fact(&mut self, name: &str, value: &str) {
        self.0.push_str(&format!("{name:NAME_WIDTH$}{value}\n"));
    }

    /// Adds a value of several lines.
    fn list(&mut self, name: &str, values: &[String]) {
        let mut names = std::iter::once(name).chain(std::iter::repeat(""));
        if values.is_empty() {
            self.fact(name, "none");
        }
        for value in values {
            self.fact(names.next().unwrap_or_default(), value);
        }
    }

    fn finished(self) -> String {
        self.0.trim_end().to_owned()
    }
}
