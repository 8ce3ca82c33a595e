//! Projects of plugins: made of a template, built with the tools of their language.
//!
//! [`new_project`] copies the example of a kind from the SDK of a language, together with the SDK.
//! All SDKs are embedded in this program (`build.rs`).
//!
//! [`build_plugin`] builds a project's folder, or makes a component of a core module that another
//! tool built. Each language is a file of `language`: it finds the tools of the language, pins
//! their versions where it installs them itself, and runs them. Everything else is the same for all
//! languages: the component carries the project's manifest and must export the kinds that the
//! manifest states.
#![forbid(unsafe_code)]

mod build_job;
mod build_plugin;
mod contract;
mod embedded;
mod error;
mod language;
mod new_project;
mod project;
mod project_files;
mod python_imports;
mod tool;

pub use build_job::BuildProfile;
pub use build_plugin::{BuildOptions, PluginBuild, build_plugin};
pub use error::{MissingTool, ProjectError};
pub use new_project::{NewProject, new_project, templates};
pub use project::project_of;
