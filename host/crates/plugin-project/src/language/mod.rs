//! The languages whose projects can be built, with one file per language.

mod c;
mod javascript;
mod lost_output;
mod python;
mod rust;

use veeksha_manifest::Language;

use crate::build_job::LanguageBuild;

/// The build of a language; none if the host cannot build it.
pub(crate) fn build_of(language: Language) -> Option<&'static dyn LanguageBuild> {
    match language {
        Language::Rust => Some(&rust::RustBuild),
        Language::C => Some(&c::CBuild),
        Language::Python => Some(&python::PythonBuild),
        Language::JavaScript | Language::TypeScript => Some(&javascript::JavaScriptBuild),
        Language::Lua => None,
    }
}

/// The files of an SDK in a project.
pub(crate) struct SdkLayout {
    /// Folders below `sdk/` of the repository, and their places in the folder `sdk` of a project.
    /// Examples and tests in them are left out.
    pub(crate) copies: &'static [(&'static str, &'static str)],
    /// Texts of an example, which lies inside the SDK, and their replacements in a project, which
    /// contains it: the path of the SDK.
    pub(crate) replacements: &'static [(&'static str, &'static str)],
}

/// The files of a language's SDK in a project.
pub(crate) fn layout_of(language: Language) -> SdkLayout {
    match language {
        Language::Rust => SdkLayout {
            copies: &[("rust", "rust"), ("coroutines", "coroutines")],
            replacements: &[("\"../..\"", "\"sdk/rust\"")],
        },
        Language::Python => SdkLayout {
            copies: &[("python", "")],
            replacements: &[],
        },
        Language::JavaScript | Language::TypeScript => SdkLayout {
            copies: &[("js", "")],
            replacements: &[("\"../../", "\"./sdk/")],
        },
        Language::C => SdkLayout {
            copies: &[("c", "")],
            replacements: &[],
        },
        Language::Lua => SdkLayout {
            copies: &[("lua", "")],
            replacements: &[("\"../..\"", "\"sdk\"")],
        },
    }
}
