//! `veeksha-host plugin run`.

use std::path::PathBuf;

use clap::Args;

use veeksha_app::{CommandFailure, StandaloneHost};
use veeksha_manifest::PluginKind;
use veeksha_plugin_tools::play::{AnswerScript, ScriptedEnd};
use veeksha_plugin_tools::{
    OpenedPlugin, PluginFile, PluginSettings, Preview, PreviewOptions, preview, session_graph,
};
use veeksha_present::terminal;

use super::settings::{PluginSettingArgs, kind};

#[derive(Debug, Args)]
pub(crate) struct RunPluginArgs {
    /// The plugin: a component, a core module, a Lua file, or the folder of a project.
    plugin: PathBuf,
    #[command(flatten)]
    settings: PluginSettingArgs,
    /// The kind to run, such as `agent-generator`. Needed only if the plugin has several.
    #[arg(long, value_parser = kind)]
    kind: Option<PluginKind>,
    /// The number of sessions or arrivals, from the first on.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    sessions: u32,
    /// Make only this session.
    #[arg(long, value_name = "INDEX", conflicts_with = "sessions")]
    session: Option<u64>,
    /// The text of the next answer to an agent; later requests are answered with `An answer.` Can
    /// be given more than once.
    #[arg(long = "answer", value_name = "TEXT")]
    answers: Vec<String>,
    /// The trace of a flavor.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The folder of a run, on which metrics and checks are computed.
    #[arg(long, value_name = "RUN")]
    on: Option<PathBuf>,
    /// Print canonical JSON: an array of sessions, of agents an array of their steps.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &RunPluginArgs) -> Result<u8, CommandFailure> {
    let file = PluginFile::read(&args.plugin)?;
    let settings = args.settings.settings()?;
    let plugin = OpenedPlugin::open(args.settings.host()?, &file)?;
    let options = options(args, settings);
    match preview(&plugin, &file, &options)? {
        Preview::Sessions(sessions) if args.json => {
            terminal::out(veeksha_plugin_tools::table_test::sessions_json(&sessions)?);
        }
        Preview::Sessions(sessions) => {
            for session in &sessions {
                terminal::out(session_graph(session));
            }
        }
        Preview::Arrivals(arrivals) if args.json => {
            terminal::out(serde_json::to_string(&arrivals).map_err(CommandFailure::internal)?);
        }
        Preview::Arrivals(arrivals) => {
            for (session, at) in arrivals.iter().enumerate() {
                terminal::out(format!("session {session}: {at:.6} s"));
            }
        }
        Preview::Evaluation(value) => {
            terminal::out(serde_json::to_string_pretty(&value).map_err(CommandFailure::internal)?);
        }
    }
    Ok(veeksha_exit::DONE)
}

fn options(args: &RunPluginArgs, settings: PluginSettings) -> PreviewOptions {
    let answer = |text: &String| ScriptedEnd {
        text: Some(text.clone()),
        ..ScriptedEnd::default()
    };
    PreviewOptions {
        kind: args.kind,
        settings,
        sessions: match args.session {
            Some(index) => vec![index],
            None => (0..u64::from(args.sessions)).collect(),
        },
        script: AnswerScript {
            ends: args.answers.iter().map(answer).collect(),
            ..AnswerScript::default()
        },
        trace: args.trace.clone(),
        on: args.on.clone(),
    }
}

impl PluginSettingArgs {
    /// Returns the host of the plugin.
    pub(super) fn host(&self) -> Result<StandaloneHost, CommandFailure> {
        StandaloneHost::new(PathBuf::new(), &[], self.no_cache)
    }
}
