//! Refusals of files that are not plugins.

use std::path::Path;

use veeksha_app::CommandFailure;

use crate::form::FileForm;

/// Returns the failure for a file in a form that a command cannot use, with the fix.
pub(crate) fn unusable_form(path: &Path, form: FileForm) -> CommandFailure {
    let path = path.display();
    let failure = CommandFailure::usage(format!("{path} is {}", form.noun()));
    match form {
        FileForm::Scenario => failure.hinted(format!("check a scenario with `veeksha-host check {path}`")),
        FileForm::WasmText => failure.hinted("translate it with `wasm-tools parse`"),
        FileForm::Lua => {
            failure.hinted("this command takes a component; `plugin run` and `plugin test` take Lua files")
        }
        FileForm::Bundle => failure.hinted("give the component in the bundle"),
        FileForm::Component | FileForm::CoreModule | FileForm::Unknown => {
            failure.hinted("a plugin is a component (.wasm), a Lua file, or the folder of a project")
        }
    }
}
