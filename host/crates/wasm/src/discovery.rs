//! The kinds and capabilities of a component, read from its bytes before anything is compiled.
//!
//! Only the imports and exports of the outermost component are read; the modules inside are
//! skipped, so that even a component of many megabytes takes microseconds.

use wasmparser::{Chunk, Encoding, Parser, Payload};

/// The package name of the contract.
const PACKAGE: &str = "veeksha:plugin";
/// The version of the contract in `wit/0.2.0`.
pub(crate) const VERSION: &str = "0.2.0";
/// The interfaces of the package that a plugin may import.
const CAPABILITIES: [&str; 4] = ["blobs", "log", "random", "tokens"];
/// The interfaces of the package that hold types or come with a kind; they are not capabilities.
const VOCABULARY: [&str; 3] = ["records", "results", "types"];
/// The kinds of plugin.
const KINDS: [ExportedKind; 8] = [
    ExportedKind {
        interface: "session-generator",
        noun: "a session generator",
        flag: |kinds| &mut kinds.session_generator,
    },
    ExportedKind {
        interface: "agent-generator",
        noun: "an agent generator",
        flag: |kinds| &mut kinds.agent_generator,
    },
    ExportedKind {
        interface: "arrival-process",
        noun: "an arrival process",
        flag: |kinds| &mut kinds.arrival_process,
    },
    ExportedKind {
        interface: "trace-flavor",
        noun: "a trace flavor",
        flag: |kinds| &mut kinds.trace_flavor,
    },
    ExportedKind {
        interface: "endpoint-codec",
        noun: "an endpoint codec",
        flag: |kinds| &mut kinds.endpoint_codec,
    },
    ExportedKind {
        interface: "metric",
        noun: "a metric",
        flag: |kinds| &mut kinds.metric,
    },
    ExportedKind {
        interface: "request-check",
        noun: "a request check",
        flag: |kinds| &mut kinds.request_check,
    },
    ExportedKind {
        interface: "slo-check",
        noun: "an SLO check",
        flag: |kinds| &mut kinds.slo_check,
    },
];
/// Maximum size of a component, in bytes.
const MAX_BYTES: usize = 256 << 20;

/// A kind of plugin.
struct ExportedKind {
    /// The interface that it exports.
    interface: &'static str,
    /// Its name in messages.
    noun: &'static str,
    /// Its flag in [`Kinds`].
    flag: fn(&mut Kinds) -> &mut bool,
}

/// The kinds of plugin that a component is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// It exports `session-generator`.
    pub session_generator: bool,
    /// It exports `agent-generator`.
    pub agent_generator: bool,
    /// It exports `arrival-process`.
    pub arrival_process: bool,
    /// It exports `trace-flavor`.
    pub trace_flavor: bool,
    /// It exports `endpoint-codec`.
    pub endpoint_codec: bool,
    /// It exports `metric`.
    pub metric: bool,
    /// It exports `request-check`.
    pub request_check: bool,
    /// It exports `slo-check`.
    pub slo_check: bool,
}

impl Kinds {
    /// Returns the kinds as text: `a session generator and a trace flavor`.
    pub(crate) fn as_text(mut self) -> String {
        let nouns: Vec<&str> = KINDS
            .iter()
            .filter(|kind| *(kind.flag)(&mut self))
            .map(|kind| kind.noun)
            .collect();
        match nouns.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, before)) => format!("{} and {last}", before.join(", ")),
            None => "not a plugin".to_owned(),
        }
    }
}

/// The kinds and imports of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Discovered {
    pub(crate) kinds: Kinds,
    /// Capabilities by their short names, in order, without `types`; then `wasi` if any of WASI is
    /// imported.
    pub(crate) imports: Vec<String>,
}

/// Reads the bytes of a component. The error states in one line why it is not a plugin, and the
/// fix.
pub(crate) fn discover(bytes: &[u8]) -> Result<Discovered, String> {
    if bytes.len() > MAX_BYTES {
        return Err(format!(
            "the component has {} MiB, at most {} are allowed",
            bytes.len() >> 20,
            MAX_BYTES >> 20
        ));
    }
    refuse_other_formats(bytes)?;
    let (imports, exports) = read_outermost(bytes)?;
    let kinds = kinds(&exports)?;
    Ok(Discovered {
        kinds,
        imports: capabilities(&imports)?,
    })
}

fn refuse_other_formats(bytes: &[u8]) -> Result<(), String> {
    let start = bytes.trim_ascii_start();
    if start.starts_with(b"(component") || start.starts_with(b"(module") {
        return Err("not a component: WebAssembly in text form; translate it with `wasm-tools parse`".into());
    }
    if !bytes.starts_with(b"\0asm") {
        return Err("not a component: the file is not WebAssembly (it does not begin with `\\0asm`)".into());
    }
    Ok(())
}

fn read_outermost(bytes: &[u8]) -> Result<(Vec<String>, Vec<String>), String> {
    let damaged = |error: wasmparser::BinaryReaderError| {
        format!(
            "not a component: the file is damaged or cut short ({} at byte {})",
            error.message(),
            error.offset()
        )
    };
    let mut parser = Parser::new(0);
    let mut at = 0;
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    loop {
        let rest = bytes.get(at..).ok_or("not a component: the file is cut short")?;
        let (consumed, payload) = match parser.parse(rest, true).map_err(damaged)? {
            Chunk::Parsed { consumed, payload } => (consumed, payload),
            Chunk::NeedMoreData(_) => return Err("not a component: the file is cut short".into()),
        };
        at += consumed;
        match payload {
            Payload::Version {
                encoding: Encoding::Module,
                ..
            } => {
                return Err(
                    "not a component but a core module; wrap it with `veeksha-host plugin build FILE`".into(),
                );
            }
            Payload::ModuleSection { unchecked_range, .. }
            | Payload::ComponentSection { unchecked_range, .. } => {
                at = unchecked_range.end;
            }
            Payload::ComponentImportSection(section) => {
                for import in section {
                    imports.push(import.map_err(damaged)?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section {
                    exports.push(export.map_err(damaged)?.name.name.to_owned());
                }
            }
            Payload::End(_) => return Ok((imports, exports)),
            _ => {}
        }
    }
}

/// Splits `veeksha:plugin/log@0.2.0` into interface and version; `None` for other packages.
fn ours(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix(PACKAGE)?.strip_prefix('/')?;
    Some(rest.split_once('@').unwrap_or((rest, "")))
}

/// Returns true if the host, at [`VERSION`], can serve `version`: below 1.0, patch releases are
/// compatible.
fn is_compatible(version: &str) -> bool {
    let line = VERSION.rsplit_once('.').map_or(VERSION, |(line, _)| line);
    version.rsplit_once('.').is_some_and(|(other, _)| other == line)
}

fn kinds(exports: &[String]) -> Result<Kinds, String> {
    let mut kinds = Kinds::default();
    let mut unsupported = None;
    for (interface, version) in exports.iter().filter_map(|name| ours(name)) {
        if !is_compatible(version) {
            unsupported = Some(version);
        } else if let Some(kind) = KINDS.iter().find(|kind| kind.interface == interface) {
            *(kind.flag)(&mut kinds) = true;
        }
    }
    match unsupported {
        _ if kinds != Kinds::default() => Ok(kinds),
        Some(version) => Err(other_version(version)),
        None => {
            let has = if exports.is_empty() {
                "nothing".into()
            } else {
                listed(exports)
            };
            let names = KINDS.map(|kind| format!("`{}`", kind.interface)).join(", ");
            Err(format!(
                "exports none of {names} of {PACKAGE}@{VERSION}; it exports {has}"
            ))
        }
    }
}

fn other_version(version: &str) -> String {
    format!("was built for {PACKAGE}@{version}, this host supports {VERSION}")
}

fn capabilities(imports: &[String]) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut unknown = Vec::new();
    let mut wasi = false;
    for name in imports {
        match ours(name) {
            Some((_, version)) if !is_compatible(version) => return Err(other_version(version)),
            Some((interface, _)) if VOCABULARY.contains(&interface) => {}
            Some((interface, _)) if CAPABILITIES.contains(&interface) => found.push(interface.to_owned()),
            None if name.starts_with("wasi:") => wasi = true,
            _ => unknown.push(name.clone()),
        }
    }
    if !unknown.is_empty() {
        return Err(format!(
            "imports {}, which this host does not offer; it offers log, random, tokens and blobs of \
             {PACKAGE}@{VERSION} and a stand-in for WASI 0.2",
            listed(&unknown)
        ));
    }
    found.sort();
    if wasi {
        found.push("wasi".into());
    }
    Ok(found)
}

/// Returns the first few of `names`, quoted.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 4;
    let mut text: Vec<String> = names
        .iter()
        .take(SHOWN)
        .map(|name| format!("`{}`", crate::text::cut(name, 80)))
        .collect();
    if names.len() > SHOWN {
        text.push(format!("{} more", names.len() - SHOWN));
    }
    text.join(", ")
}
