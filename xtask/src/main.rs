//! Chores of the repository.

mod component;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

/// Chores of the repository.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Turns one core module into a component.
    Component {
        /// A core module, as cargo leaves it for wasm32-unknown-unknown.
        module: PathBuf,
        /// Where to write the component.
        output: PathBuf,
    },
}

fn main() -> Result<()> {
    match Arguments::parse().chore {
        Chore::Component { module, output } => {
            let bytes =
                std::fs::read(&module).with_context(|| format!("cannot read {}", module.display()))?;
            let component = component::encode(&bytes)?;
            std::fs::write(&output, component).with_context(|| format!("cannot write {}", output.display()))
        }
    }
}
