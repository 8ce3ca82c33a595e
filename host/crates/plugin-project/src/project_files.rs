//! The files of a project that are the same for all kinds: README and CI job.

use veeksha_manifest::{Language, PluginManifest};

/// Returns the README of a project.
pub(crate) fn readme(name: &str, language: Language, example: &PluginManifest) -> String {
    let (source, sdk) = match language {
        Language::Rust => ("src/lib.rs", "sdk/rust/README.md"),
        Language::Python => ("src/plugin.py", "sdk/README.md"),
        Language::JavaScript => ("src/plugin.js", "sdk/README.md"),
        Language::TypeScript => ("src/plugin.ts", "sdk/README.md"),
        Language::C => ("src/plugin.c", "sdk/README.md"),
        Language::Lua => ("src/plugin.lua", "sdk/README.md"),
    };
    let kinds: Vec<&str> = example.kinds.iter().map(|kind| kind.name()).collect();
    let build = match language {
        Language::Lua => "",
        _ => "veeksha-host plugin build      # writes build/{name}.wasm\n",
    };
    format!(
        "# {name}\n\n\
         A plugin of veeksha-host ({kinds}): {summary}.\n\n\
         ```sh\n\
         {build}\
         veeksha-host plugin test       # runs tests/\n\
         veeksha-host run scenario.lua  # a run against the built-in simulator\n\
         ```\n\n\
         | file | content |\n\
         |---|---|\n\
         | `{source}` | the plugin |\n\
         | `plugin.toml` | name, version, kinds, requested capabilities |\n\
         | `scenario.lua` | a run that uses the plugin |\n\
         | `tests/sessions.toml` | tests; `veeksha-host plugin test --update` rewrites their snapshots |\n\
         | `sdk/` | the SDK; [its README]({sdk}) is the manual |\n\
         | `.github/workflows/plugin.yml` | a CI job that builds and tests the plugin |\n",
        kinds = kinds.join(", "),
        summary = example.summary,
        build = build.replace("{name}", name),
    )
}

/// Returns the CI job of a project.
pub(crate) fn workflow(language: Language) -> String {
    let tools = match language {
        Language::Rust => "rustup target add wasm32-unknown-unknown",
        Language::C => {
            "sudo apt-get update && sudo apt-get install -y clang lld wasi-libc libclang-rt-14-dev-wasm32"
        }
        // `plugin build` installs the tools of these languages, in pinned versions.
        Language::Python => "python3 --version",
        Language::JavaScript | Language::TypeScript => "npm --version",
        Language::Lua => "true",
    };
    let build = match language {
        Language::Lua => "",
        _ => "      - run: veeksha-host plugin build\n",
    };
    format!(
        "# Builds and tests the plugin. Set the repository variable VEEKSHA_HOST_REPOSITORY to the address of\n\
         # the repository of veeksha-host, and VEEKSHA_HOST_REVISION to the commit to use.\n\
         name: plugin\n\
         on: [push, pull_request]\n\
         jobs:\n\
         \x20 plugin:\n\
         \x20   runs-on: ubuntu-latest\n\
         \x20   steps:\n\
         \x20     - uses: actions/checkout@v4\n\
         \x20     - run: {tools}\n\
         \x20     - run: cargo install --locked --git ${{{{ vars.VEEKSHA_HOST_REPOSITORY }}}} --rev ${{{{ vars.VEEKSHA_HOST_REVISION }}}} veeksha-host\n\
         {build}\
         \x20     - run: veeksha-host plugin test\n\
         \x20     - run: veeksha-host check scenario.lua\n"
    )
}
