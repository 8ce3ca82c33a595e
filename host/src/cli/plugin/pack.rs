//! `veeksha-host plugin pack`.

use std::path::{Path, PathBuf};

use clap::Args;

use veeksha_app::{CommandFailure, write_file};
use veeksha_bundle::{Bundle, BundleFile, LayerKind};
use veeksha_plugin_tools::PluginFile;
use veeksha_present::terminal;

use super::keys::add_signature;

#[derive(Debug, Args)]
pub(crate) struct PackArgs {
    /// The folder of a project, or a component.
    #[arg(default_value = ".", value_name = "DIR|FILE")]
    plugin: PathBuf,
    /// The bundle to write [default: NAME.tar].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Add a scenario; may be repeated [default: scenario.lua of the project].
    #[arg(long, value_name = "FILE")]
    scenario: Vec<PathBuf>,
    /// Add a Lua file that a scenario requires; may be repeated.
    #[arg(long, value_name = "FILE")]
    lua: Vec<PathBuf>,
    /// Add a page of documentation; may be repeated [default: README.md of the project].
    #[arg(long, value_name = "FILE")]
    docs: Vec<PathBuf>,
    /// Add nothing but the component. `wkg oci pull` accepts no other bundle.
    #[arg(long, conflicts_with_all = ["scenario", "lua", "docs"])]
    component_only: bool,
    /// Sign the bundle with a private key.
    #[arg(long, value_name = "KEY")]
    sign: Option<PathBuf>,
}

pub(super) fn pack(args: &PackArgs) -> Result<u8, CommandFailure> {
    let file = PluginFile::read(&args.plugin)?;
    let is_lua = file.path.extension().is_some_and(|extension| extension == "lua");
    if is_lua {
        return Err(CommandFailure::usage(
            "a plugin in Lua has no component, so that no bundle can be made of it",
        )
        .hinted("a Lua plugin is a file: share it with its scenario"));
    }
    let folder = args.plugin.is_dir().then_some(args.plugin.as_path());
    let files = if args.component_only {
        Vec::new()
    } else {
        files(args, folder, &file)?
    };
    let mut bundle = veeksha_bundle::pack(file.bytes.clone(), &file.name(), files, args.component_only)
        .map_err(|error| CommandFailure::usage(format!("{}: {error}", file.path.display())))?;
    let signer = args
        .sign
        .as_ref()
        .map(|key| add_signature(&mut bundle, key))
        .transpose()?;
    let name = bundle.layers().next().map_or("plugin", |layer| layer.title);
    let default = PathBuf::from(name).with_extension("tar");
    let output = args.output.as_ref().unwrap_or(&default);
    let tar = bundle.to_tar().map_err(CommandFailure::internal)?;
    write_file(output, &tar)?;
    terminal::out(format!("packed {}, {} bytes", output.display(), tar.len()));
    terminal::out(veeksha_model::printable_lines(&layers(&bundle)));
    if let Some(signer) = signer {
        terminal::out(format!("  signed by {signer}"));
    }
    Ok(veeksha_exit::DONE)
}

/// Returns the digest and the layers as lines.
pub(super) fn layers(bundle: &Bundle) -> String {
    let mut lines = vec![format!("  digest    {}", bundle.digest())];
    for layer in bundle.layers() {
        lines.push(format!(
            "  {:<18} {}, {} bytes",
            layer.kind.name(),
            layer.title,
            layer.content.len()
        ));
    }
    lines.join("\n")
}

/// Returns the files next to the component: those of the arguments, else those that a project has.
fn files(
    args: &PackArgs,
    folder: Option<&Path>,
    plugin: &PluginFile,
) -> Result<Vec<BundleFile>, CommandFailure> {
    let of_project = |name: &str| -> Vec<PathBuf> {
        let path = folder.map(|folder| folder.join(name));
        path.filter(|path| path.is_file()).into_iter().collect()
    };
    let or_default = |given: &[PathBuf], name: &str| {
        if given.is_empty() {
            of_project(name)
        } else {
            given.to_vec()
        }
    };
    let mut debug = plugin.path.clone();
    debug.set_extension("debug.wasm");
    let debug: Vec<PathBuf> = Some(debug).filter(|path| path.is_file()).into_iter().collect();
    let mut files = Vec::new();
    for (kind, paths) in [
        (LayerKind::Scenario, or_default(&args.scenario, "scenario.lua")),
        (LayerKind::Lua, args.lua.clone()),
        (LayerKind::Docs, or_default(&args.docs, "README.md")),
        (LayerKind::Debug, debug),
    ] {
        for path in paths {
            let content = std::fs::read(&path)
                .map_err(|error| CommandFailure::usage(format!("cannot read {}: {error}", path.display())))?;
            files.push(BundleFile {
                kind,
                title: title(folder, &path),
                content,
            });
        }
    }
    Ok(files)
}

/// Returns the path of a file in its project; that of a file elsewhere is its name.
fn title(folder: Option<&Path>, path: &Path) -> String {
    let inside = folder.and_then(|folder| {
        let (folder, path) = (folder.canonicalize().ok()?, path.canonicalize().ok()?);
        path.strip_prefix(folder).ok().map(Path::to_owned)
    });
    let name = || PathBuf::from(path.file_name().unwrap_or_default());
    inside.unwrap_or_else(name).to_string_lossy().into_owned()
}
