//! The manifest of a plugin, `plugin.toml`: types, checks, and the section of a component that
//! carries it. Pure.
//!
//! ```
//! use veeksha_manifest::{PluginKind, PluginManifest};
//!
//! let manifest = PluginManifest::parse(
//!     r#"
//!     [plugin]
//!     name = "coder"
//!     version = "0.1.0"
//!     summary = "an agent that writes code"
//!     kinds = ["agent-generator"]
//!     [build]
//!     language = "rust"
//!     "#,
//! )?;
//! assert_eq!(manifest.kinds, [PluginKind::AgentGenerator]);
//!
//! let text = "[plugin]\nname = \"coder\"\nversoin = \"0.1.0\"\n";
//! let mistake = PluginManifest::parse(text).unwrap_err();
//! assert_eq!(mistake.to_string(), "line 3: unknown key plugin.versoin: did you mean version?");
//! # Ok::<(), veeksha_manifest::ManifestError>(())
//! ```
//!
//! [`section`] puts the text of a manifest into a component and reads it again. [`lock`] is the
//! lock of a folder of scenarios, and [`PluginReference`] the way in which they name a plugin.
#![forbid(unsafe_code)]

mod capability;
mod error;
mod grant;
mod kind;
mod language;
pub mod lock;
mod path_pattern;
mod plugin_manifest;
mod reference;
mod run_rules;
pub mod section;
mod toml_json;
mod toml_reader;

pub use capability::CapabilityRequest;
pub use error::ManifestError;
pub use grant::{CapabilityGrants, GrantRefusal};
pub use kind::PluginKind;
pub use language::Language;
pub use path_pattern::PathPattern;
pub use plugin_manifest::{FILE_NAME, PluginManifest, is_plugin_name};
pub use reference::{PluginReference, ReferenceError, RegistryReference, is_sha256};
pub use run_rules::{InstancePolicy, OnTrap};
pub use toml_json::toml_to_json;
