//! `veeksha-host evaluate`: the metrics of a recorded run, recomputed.

use std::convert::Infallible;

use veeksha_app::{CommandFailure, EvaluateOptions, Reevaluation};
use veeksha_present::terminal;
use veeksha_report::RunFolder;

use crate::cli::args::EvaluateArgs;
use crate::cli::output::{self, Printed};
use crate::interrupt::{Finishing, Interrupts, missing_above};

/// The subfolder of a run folder for its evaluations.
const EVALUATIONS: &str = "evaluations";
/// Hint if the folder for the results cannot be made.
const OTHER_FOLDER: &str = "--to FOLDER writes to another folder";

pub(super) fn evaluate(args: &EvaluateArgs, interrupts: &Interrupts) -> Result<u8, CommandFailure> {
    let compat = args.output.options()?;
    let options = EvaluateOptions {
        plugins: args.plugins.clone(),
        plugin_config: args.plugin_config.clone(),
        slos: args.slos.clone(),
        goodput: args.goodput.clone(),
        slice: args.slice,
        group_by: args.group_by.clone(),
        what_if: args.what_if.clone(),
        no_cache: args.no_cache,
    };
    let evaluation = Reevaluation::open(&args.run, &options)?;
    let destination = if args.json {
        None
    } else {
        Some(Destination::make(args, evaluation.config(), interrupts)?)
    };
    let folder = destination.as_ref().map(|destination| &destination.folder);
    let conclusion = evaluation.carry_out(folder, &compat)?;
    let printed = match (args.json, args.quiet) {
        (true, _) => Printed::Json,
        (false, true) => Printed::Nothing,
        (false, false) => Printed::Table,
    };
    let conclusion = output::conclusion(conclusion, printed);
    // Files that were written before the disk was full are valid, as those of a run.
    if let Some(destination) = destination {
        destination.keep(conclusion.is_ok());
    }
    Ok(conclusion?.code)
}

/// Folder of the results. It is removed if the evaluation has none.
struct Destination {
    folder: RunFolder,
    finishing: Finishing,
    place: DestinationKind,
}

/// Selection of the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DestinationKind {
    /// By the user; the results go directly into it.
    Given,
    /// Named by date, in the folder of the run, where `latest` links to the newest evaluation.
    Dated,
}

impl Destination {
    fn make(args: &EvaluateArgs, config: &str, interrupts: &Interrupts) -> Result<Self, CommandFailure> {
        let (made, above, place) = match &args.to {
            Some(to) => {
                let above = missing_above(to);
                (RunFolder::create_at(to, config), above, DestinationKind::Given)
            }
            None => {
                let evaluations = args.run.join(EVALUATIONS);
                let stamp = veeksha_clock::utc_stamp(veeksha_clock::wall_nanos());
                let made = RunFolder::create_unlinked(&evaluations, config, &stamp);
                (made, vec![evaluations], DestinationKind::Dated)
            }
        };
        let folder = made.map_err(|error| CommandFailure::no_folder(error, OTHER_FOLDER))?;
        let finishing = interrupts.unfinished(folder.path(), above);
        Ok(Destination {
            folder,
            finishing,
            place,
        })
    }

    /// Keeps the folder. Its results are valid even if `latest` cannot link to it, which links only
    /// to complete ones.
    fn keep(self, is_complete: bool) {
        let link = || match self.place {
            DestinationKind::Dated if is_complete => self.folder.link_as_latest(),
            DestinationKind::Dated | DestinationKind::Given => Ok(()),
        };
        let Ok(linked) = self.finishing.keep(|| Ok::<_, Infallible>(link()));
        if let Err(error) = linked {
            terminal::err(format!("note: cannot link `latest` to this evaluation: {error}"));
        }
    }
}
