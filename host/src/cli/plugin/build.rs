//! `veeksha-host plugin build`.

use std::path::PathBuf;

use clap::Args;

use veeksha_app::CommandFailure;
use veeksha_componentize::DebugInfo;
use veeksha_plugin_project::{BuildOptions, BuildProfile, PluginBuild, build_plugin};
use veeksha_present::terminal;

#[derive(Debug, Args)]
pub(crate) struct BuildPluginArgs {
    /// The folder of a project, or a WebAssembly module that another tool built.
    #[arg(default_value = ".", value_name = "DIR|MODULE")]
    plugin: PathBuf,
    /// The component to write [default: build/NAME.wasm in the project, or MODULE.component.wasm].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Build quickly instead of building a fast plugin.
    #[arg(long)]
    dev: bool,
    /// Write the debug information to a separate file, NAME.debug.wasm.
    #[arg(long)]
    split_debug: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn build(args: &BuildPluginArgs) -> Result<u8, CommandFailure> {
    let options = BuildOptions {
        output: args.output.clone(),
        debug_info: if args.split_debug {
            DebugInfo::Split
        } else {
            DebugInfo::Included
        },
        profile: if args.dev {
            BuildProfile::Dev
        } else {
            BuildProfile::Release
        },
    };
    let report = |line: &str| terminal::err(veeksha_model::printable_lines(line));
    let built =
        build_plugin(&args.plugin, &options, &report).map_err(super::project_failure::project_failure)?;
    if args.json {
        let text = serde_json::to_string_pretty(&json(&built)).map_err(CommandFailure::internal)?;
        terminal::out(text);
    } else {
        terminal::out(veeksha_model::printable_lines(&text(&built)));
    }
    Ok(veeksha_exit::DONE)
}

fn kinds(built: &PluginBuild) -> Vec<&'static str> {
    built.kinds.iter().map(|kind| kind.name()).collect()
}

fn json(built: &PluginBuild) -> serde_json::Value {
    serde_json::json!({
        "file": built.path,
        "debug_file": built.debug_path,
        "size_bytes": built.size,
        "digest": format!("blake3:{}", built.digest),
        "kinds": kinds(built),
        "imports": built.imports,
        "tools": built.tools,
    })
}

fn text(built: &PluginBuild) -> String {
    const KIB: f64 = 1024.0;
    let listed = |names: Vec<&str>| {
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    };
    let imports: Vec<&str> = built.imports.iter().map(String::as_str).collect();
    let mut lines = vec![format!("built {}", built.path.display())];
    let mut line = |name: &str, value: String| lines.push(format!("  {name:<8}{value}"));
    if let Some(debug) = &built.debug_path {
        line("debug", debug.display().to_string());
    }
    line("size", format!("{:.1} KiB", built.size as f64 / KIB));
    line("digest", format!("blake3:{}", built.digest));
    line("kinds", listed(kinds(built)));
    line("imports", listed(imports));
    for tool in &built.tools {
        line("tool", tool.clone());
    }
    lines.join("\n")
}
