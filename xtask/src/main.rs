//! Chores of the repository that are more than one cargo command: `cargo xtask help`.
#![forbid(unsafe_code)]

mod c_bindings;
mod codegen;
mod digests;
mod guests;
mod report;
mod toolchain;
mod wit;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};

/// Chores of the repository.
///
/// Exit status: 0 done; 1 something is not as it should be; 2 wrong usage; 3 the pinned guest
/// toolchain cannot be had on this machine, so that nothing was built or compared.
#[derive(Parser)]
#[command(name = "cargo xtask", verbatim_doc_comment)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Rebuilds every component of the repository from source: `plugins/dist` and
    /// `tests/guests/dist`.
    Plugins {
        /// Writes nothing; fails when a rebuilt component differs from the one in the repository.
        #[arg(long)]
        check: bool,
        /// A guest toolchain made by `xtask/guest-toolchain.sh`, or `rustup` for the installed
        /// target wasm32-unknown-unknown
        /// [default: $VEEKSHA_GUEST_TOOLCHAIN, else one in the user's cache folder].
        #[arg(long, value_name = "FOLDER")]
        toolchain: Option<PathBuf>,
    },
    /// Regenerates every generated file: Lua annotations, C bindings, schemas of plugins, the word
    /// list.
    Codegen {
        /// Writes nothing; fails when a file is stale.
        #[arg(long)]
        check: bool,
    },
    /// Formats, lints and tests one crate, given by its folder or package: `cargo xtask test slo`.
    Test {
        /// A folder of `host/crates` or `plugins`, or a package.
        name: String,
        /// Arguments for `cargo test`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Prints every violation of the conventions that no compiler checks (STYLE.md).
    Tidy {
        /// Only violations in files whose path contains one of these, for example `crates/slo`.
        paths: Vec<String>,
        /// Only violations of this rule: cycle, width, phrase or name.
        #[arg(long)]
        rule: Option<String>,
    },
    /// The list of released `.wit` files, `wit/frozen.txt`.
    Wit(WitChore),
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct WitChore {
    /// Adds files that are not listed yet. A listed file that has changed stays an error.
    #[arg(long)]
    freeze: bool,
    /// Fails when a listed file has changed or is gone, or when a file is not listed.
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    match run(Arguments::parse().chore) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            match error.downcast_ref::<toolchain::Unavailable>() {
                Some(_) => ExitCode::from(3),
                None => ExitCode::FAILURE,
            }
        }
    }
}

fn run(chore: Chore) -> Result<()> {
    let repository = repository()?;
    match chore {
        Chore::Codegen { check } => codegen::run(&repository, check),
        Chore::Test { name, arguments } => codegen::test_crate(&repository, &name, &arguments),
        Chore::Plugins {
            check: false,
            toolchain,
        } => guests::rebuild(&repository, toolchain.as_deref()),
        Chore::Plugins {
            check: true,
            toolchain,
        } => guests::check(&repository, toolchain.as_deref()),
        Chore::Tidy { paths, rule } => report::tidy(&repository, &paths, rule.as_deref()),
        Chore::Wit(WitChore { freeze: true, .. }) => wit::freeze(&repository.join("wit")),
        Chore::Wit(WitChore { .. }) => wit::check(&repository.join("wit")),
    }
}

/// Returns the folder above this crate's folder: as cargo reports it now, else as it did at build
/// time.
fn repository() -> Result<PathBuf> {
    let own = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    let root = own.parent().context("xtask lies in no folder")?;
    root.canonicalize()
        .with_context(|| format!("cannot find {}", root.display()))
}
