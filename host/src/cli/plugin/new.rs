//! `veeksha-host plugin new`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use veeksha_app::CommandFailure;
use veeksha_manifest::{Language, PluginKind};
use veeksha_plugin_project::{NewProject, new_project, templates};
use veeksha_present::terminal;

#[derive(Debug, Args)]
pub(crate) struct NewPluginArgs {
    /// The folder to make; its last part is the name of the plugin.
    #[arg(required_unless_present = "list")]
    folder: Option<PathBuf>,
    /// The kind of the plugin.
    #[arg(long, required_unless_present = "list", value_parser = PossibleValuesParser::new(PluginKind::ALL.map(PluginKind::name)))]
    kind: Option<String>,
    /// The language of the plugin.
    #[arg(long, required_unless_present = "list", value_parser = PossibleValuesParser::new(Language::ALL.map(Language::name)))]
    lang: Option<String>,
    /// Print the kinds that have a template in each language.
    #[arg(long, conflicts_with_all = ["folder", "kind", "lang"])]
    list: bool,
}

pub(super) fn new(args: &NewPluginArgs) -> Result<u8, CommandFailure> {
    let kind = args.kind.as_deref().and_then(PluginKind::from_name);
    let language = args.lang.as_deref().and_then(Language::from_name);
    let (Some(folder), Some(kind), Some(language)) = (&args.folder, kind, language) else {
        terminal::out(list());
        return Ok(veeksha_exit::DONE);
    };
    let project = NewProject {
        folder,
        kind,
        language,
    };
    new_project(&project).map_err(super::project_failure::project_failure)?;
    let folder = folder.display();
    let build = match language {
        Language::Lua => "",
        _ => "\n  veeksha-host plugin build",
    };
    terminal::out(veeksha_model::printable_lines(&format!(
        "created {folder}: a plugin of the kind {kind} in {language}. Next:\n  cd {folder}{build}\n  veeksha-host plugin \
         test\n  veeksha-host run scenario.lua"
    )));
    Ok(veeksha_exit::DONE)
}

fn list() -> String {
    let width = Language::ALL
        .map(|language| language.name().len())
        .into_iter()
        .max()
        .unwrap_or(0);
    let line = |(language, kinds): (Language, Vec<PluginKind>)| {
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        format!(
            "{:width$}  {}",
            language.name(),
            if names.is_empty() {
                "-".to_owned()
            } else {
                names.join(", ")
            }
        )
    };
    templates().into_iter().map(line).collect::<Vec<_>>().join("\n")
}
